"""CMC and ROC of descriptors against sorting all distances."""

import json

import numpy as np
import pytest

from acnn.errors import InputError
from acnn.evaluation import descriptors as module
from acnn.evaluation.descriptors import FALSE_POSITIVES, evaluate_descriptors, mean_evaluation


@pytest.fixture
def sample(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 13)
    rng = np.random.default_rng(0)
    target = rng.standard_normal((90, 4))
    truth = rng.permutation(90)[:60]
    mirror = rng.permutation(90)
    query = target[truth] + 0.5 * rng.standard_normal((60, 4))
    query[::3] = target[mirror[truth[::3]]] + 0.3 * rng.standard_normal((20, 4))
    truth[[5, 40]] = -1
    return query, target, truth, np.where(truth >= 0, mirror[truth], -1)


def brute_force(query, target, *truths):
    """Ranks of the better right match, its distances, and those of all other pairs."""
    distances = ((query[:, None] - target[None]) ** 2).sum(axis=2)
    ranks, matching, others = [], [], []
    for x in range(len(query)):
        right = {int(truth[x]) for truth in truths}
        if -1 in right:
            continue
        best = min(right, key=lambda y: distances[x, y])
        ranks.append(sum(distances[x, y] < distances[x, best] for y in range(len(target)) if y not in right))
        matching.append(distances[x, best])
        others += [distances[x, y] for y in range(len(target)) if y not in right]
    return np.array(ranks), np.array(matching), np.array(others)


def test_curves_are_those_of_sorted_distances(sample):
    query, target, truth, mirrored = sample
    result = evaluate_descriptors(query, target, truth, mirrored_truth=mirrored, neighbours=40)
    assert result.points == 58
    for found, truths in ((result.asymmetric, (truth,)), (result.symmetric, (truth, mirrored))):
        ranks, matching, others = brute_force(query, target, *truths)
        np.testing.assert_allclose(found.cmc, [(ranks < k).mean() for k in range(1, 41)], atol=1e-12)
        assert found.hit(10) == found.cmc[9]
        nearer = (matching[:, None] < others[None]).mean()
        assert found.auc == pytest.approx(nearer, abs=2e-3)
        ordered = np.concatenate([[0.0], np.sort(others)])
        for rate, value in zip(FALSE_POSITIVES, found.roc, strict=True):
            # so many other pairs are accepted; the histogram has steps of 1/128, so thresholds are known that well
            accepted = rate * len(others)
            thresholds = 0.98 * ordered[int(accepted)], 1.02 * ordered[min(int(accepted) + 1, len(others))]
            low, high = ((matching <= threshold).mean() for threshold in thresholds)
            assert low <= value + 1e-12
            assert value <= high + 1e-12 or rate == 1
    assert (result.symmetric.cmc >= result.asymmetric.cmc).all()
    assert result.symmetric.hit(1) > result.asymmetric.hit(1) + 0.2


def test_neither_blocks_nor_scale_nor_origin_matter(sample, monkeypatch):
    query, target, truth, mirrored = sample
    first = evaluate_descriptors(query, target, truth, mirrored_truth=mirrored).as_dict()
    monkeypatch.setattr(module, "BLOCK", 1000)
    moved = evaluate_descriptors(256 * query + 1e4, 256 * target + 1e4, truth, mirrored_truth=mirrored).as_dict()
    for part in ("asymmetric", "symmetric"):
        np.testing.assert_allclose(moved[part]["cmc"], first[part]["cmc"])
        np.testing.assert_allclose(moved[part]["roc"], first[part]["roc"], atol=1e-3)


def test_perfect_and_constant_descriptors():
    rng = np.random.default_rng(1)
    points, own = rng.standard_normal((300, 3)), np.arange(300)
    perfect = evaluate_descriptors(points, points, own)
    assert perfect.symmetric is None
    assert perfect.asymmetric.hit(1) == 1
    assert perfect.asymmetric.roc[0] == 1
    constant = evaluate_descriptors(np.ones((300, 3)), np.ones((300, 3)), own, mirrored_truth=own[::-1])
    assert constant.asymmetric.hit(100) == 0  # nothing is found where all are equally near
    assert constant.asymmetric.auc == pytest.approx(0.5)
    assert constant.symmetric.auc == pytest.approx(0.5)
    np.testing.assert_allclose(constant.asymmetric.roc, FALSE_POSITIVES)


def test_a_match_that_is_its_own_mirror_counts_once(sample):
    query, target, truth, _ = sample
    result = evaluate_descriptors(query, target, truth, mirrored_truth=truth)
    np.testing.assert_array_equal(result.symmetric.cmc, result.asymmetric.cmc)
    np.testing.assert_array_equal(result.symmetric.roc, result.asymmetric.roc)


def test_more_neighbours_than_points(sample):
    query, target, truth, _ = sample
    assert evaluate_descriptors(query, target, truth, neighbours=200).asymmetric.cmc[89:].tolist() == [1.0] * 111


def test_means_and_report(sample):
    query, target, truth, mirrored = sample
    one = evaluate_descriptors(query, target, truth, mirrored_truth=mirrored)
    two = evaluate_descriptors(target[truth], target, truth, mirrored_truth=mirrored)
    both = mean_evaluation([one, two])
    assert both.asymmetric.hit(1) == pytest.approx((one.asymmetric.hit(1) + two.asymmetric.hit(1)) / 2)
    assert both.points == 116
    report = json.loads(json.dumps(both.as_dict()))
    assert report["symmetric"]["hits"]["10"] == both.symmetric.hit(10)
    assert len(report["false_positives"]) == len(report["asymmetric"]["roc"])
    assert mean_evaluation([one, evaluate_descriptors(query, target, truth)]).symmetric is None


def test_bad_input_is_named(sample):
    query, target, truth, _ = sample
    with pytest.raises(InputError, match=r"\(n, q\) and \(m, q\) are needed"):
        evaluate_descriptors(query, target[:, :2], truth)
    with pytest.raises(InputError, match="must be finite"):
        evaluate_descriptors(query * np.nan, target, truth)
    with pytest.raises(InputError, match="truth maps vertex 0 to 90"):
        evaluate_descriptors(query, target, np.full(60, 90))
    with pytest.raises(InputError, match="No true match"):
        evaluate_descriptors(query, target, np.full(60, -1))
    with pytest.raises(InputError, match="truth must hold 60 whole numbers"):
        evaluate_descriptors(query, target, truth[:-1])
    with pytest.raises(InputError, match="known for 1 to 100"):
        evaluate_descriptors(query, target, truth).asymmetric.hit(101)
    with pytest.raises(InputError, match="no evaluated descriptors"):
        mean_evaluation([])
