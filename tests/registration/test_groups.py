"""Comparison of groups: Hotelling's T^2, exact permutation p-values, level and power."""

from itertools import combinations

import numpy as np
import pytest

from acnn.errors import InputError
from acnn.registration.groups import compare_groups


def hotelling(a, b):
    """T^2 of two samples of vectors, from its definition."""
    pooled = ((len(a) - 1) * np.cov(a.T) + (len(b) - 1) * np.cov(b.T)) / (len(a) + len(b) - 2)
    d = b.mean(axis=0) - a.mean(axis=0)
    return len(a) * len(b) / (len(a) + len(b)) * d @ np.linalg.solve(pooled, d)


def test_statistics_at_the_vertices_are_hotellings():
    random = np.random.default_rng(0)
    shapes = random.normal(size=(15, 8, 3))
    groups = ["b"] * 6 + ["a"] * 7 + [None] * 2
    result = compare_groups(shapes, groups, permutations=99)
    assert result.names == ("a", "b")
    assert result.counts == (7, 6)
    expected = [hotelling(shapes[6:13, i], shapes[:6, i]) for i in range(8)]
    assert np.allclose(result.hotelling, expected, rtol=1e-5)
    assert np.allclose(result.difference, shapes[:6].mean(axis=0) - shapes[6:13].mean(axis=0))
    assert result.distance == pytest.approx(np.sqrt((result.difference**2).sum() / 8))
    assert (result.p_values >= result.uncorrected).all()


def test_p_values_approach_those_of_all_assignments():
    random = np.random.default_rng(4)
    shapes = random.normal(size=(10, 5, 3))
    shapes[:5, 0] += 1.0
    result = compare_groups(shapes, ["a"] * 5 + ["b"] * 5, permutations=4000, seed=1)
    squares, largest, first = [], [], []
    for chosen in combinations(range(10), 5):
        mask = np.isin(np.arange(10), chosen)
        difference = shapes[mask].mean(axis=0) - shapes[~mask].mean(axis=0)
        squares.append((difference**2).sum())
        local = [hotelling(shapes[mask, i], shapes[~mask, i]) for i in range(5)]
        largest.append(max(local))
        first.append(local[0])
    observed = squares[0]  # combinations begin with 0, 1, 2, 3, 4
    assert result.p_value == pytest.approx(np.mean(np.array(squares) >= observed * (1 - 1e-9)), abs=0.025)
    assert result.p_values[0] == pytest.approx(np.mean(np.array(largest) >= first[0] * (1 - 1e-9)), abs=0.025)
    assert result.uncorrected[0] == pytest.approx(np.mean(np.array(first) >= first[0] * (1 - 1e-9)), abs=0.025)


def test_level_is_kept_and_a_local_difference_is_found():
    random = np.random.default_rng(7)
    groups = ["a"] * 10 + ["b"] * 10
    rejected = np.zeros(2)
    for repetition in range(200):
        shapes = random.normal(size=(20, 30, 3))
        result = compare_groups(shapes, groups, permutations=99, seed=repetition)
        rejected += [result.p_value <= 0.05, (result.p_values <= 0.05).any()]
    # 99 % of binomial(200, 0.05) lie in 3..19
    assert (rejected >= 3).all()
    assert (rejected <= 19).all()
    shapes[10:, 4] += 3.0
    result = compare_groups(shapes, groups, permutations=999)
    assert result.p_values[4] <= 0.01
    assert np.count_nonzero(result.p_values <= 0.05) == 1
    assert result.as_dict()["significant_vertices"] == 1


def test_vertices_without_data_are_not_tested():
    random = np.random.default_rng(1)
    weights = np.ones((8, 6))
    weights[:3, 2] = 0
    result = compare_groups(random.normal(size=(8, 6, 3)), ["a"] * 4 + ["b"] * 4, weights=weights, permutations=50)
    assert np.isnan(result.p_values[2])
    assert np.isnan(result.hotelling[2])
    assert np.isfinite(np.delete(result.p_values, 2)).all()


def test_too_few_permutations_are_refused():
    with pytest.raises(InputError, match="at least 19"):
        compare_groups(np.zeros((4, 3, 3)), ["a", "a", "b", "b"], permutations=5)
