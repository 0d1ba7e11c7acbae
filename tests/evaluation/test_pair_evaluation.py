"""Errors of pairs: known maps, edge-only distances, failed and flipped maps, pooling, calibration."""

import json
from dataclasses import replace

import numpy as np
import pytest
from analytic import grid

from acnn.datasets.builtin import builtin_humans
from acnn.datasets.pairs import Pair, open_pairs
from acnn.errors import InputError
from acnn.evaluation.pairs import ConfidenceCounts, PairEvaluation, PairEvaluator, PairsReport
from acnn.surface.geodesics import GeodesicSolver
from acnn.surface.surface import surface_of


@pytest.fixture(scope="module")
def pair() -> Pair:
    return open_pairs("humans", remesh=False).read("human_16_00", "human_17_03")


@pytest.fixture(scope="module")
def evaluator() -> PairEvaluator:
    return PairEvaluator()


@pytest.fixture(scope="module")
def mirrored(pair: Pair, evaluator: PairEvaluator) -> PairEvaluation:
    return evaluator(pair, builtin_humans().mirror, verdict="doubtful")


def test_true_map_has_no_error(pair: Pair, evaluator: PairEvaluator) -> None:
    found = evaluator(pair, np.arange(len(pair.a.vertices)))
    for figures in (found.errors, found.edge_errors):
        assert figures.exact == 1
        assert figures.mean_error_x100 < 1e-6
        assert figures.beyond_20 == 0
    assert (found.failed, found.flipped, found.coverage) == (False, False, pytest.approx(1))


def test_mirrored_map_is_flipped_and_failed(mirrored: PairEvaluation) -> None:
    found = mirrored
    assert (found.failed, found.flipped) == (True, True)
    assert found.errors.mean_error_x100 > 15
    assert found.symmetric is not None
    assert found.symmetric.mean_error_x100 < 1e-6
    report = PairsReport((found,)).as_dict()
    assert (report["failed_pairs"], report["flipped_pairs"]) == (1, 1)


def test_paths_along_edges_are_never_shorter(pair: Pair, evaluator: PairEvaluator) -> None:
    random = np.random.default_rng(0)
    numbers = np.arange(len(pair.a.vertices))
    some = replace(
        pair, truth=np.where(numbers % 10 == 0, numbers, -1), mirrored=None
    )  # a tenth, for the time it takes
    found = evaluator(some, random.integers(0, len(pair.b.vertices), len(pair.a.vertices)))
    ratio = found.edge_errors.mean_error_x100 / found.errors.mean_error_x100
    assert 1.01 < ratio < 1.1
    assert found.failed


def test_distances_on_a_grid_by_each_method() -> None:
    square = surface_of(grid(11))
    far = 10 * (square.vertices[1] - square.vertices[0]).max()
    edges, graph, exact = (GeodesicSolver(square, m).distances_from([0])[0] for m in ("edges", "graph", "exact"))
    # Diagonals of all squares run from corner 0 to corner 120, so that the other way is twice as long along edges.
    assert edges[120] == pytest.approx(2**0.5 * far)
    other = GeodesicSolver(square, "edges").distances_from([10])[0]
    assert other[110] == pytest.approx(2 * far)
    assert GeodesicSolver(square, "graph").distances_from([10])[0][110] == pytest.approx(2**0.5 * far)
    assert (edges >= graph - 1e-9).all()
    assert (graph >= exact - 1e-6).all()


def test_unknown_truth_is_left_out(evaluator: PairEvaluator) -> None:
    square = grid(5)
    truth = np.arange(25)
    truth[10:] = -1
    matches = np.zeros(25, int)
    matches[:10] = truth[:10]
    found = evaluator(Pair(("x", "y"), square, square, truth), matches, np.linspace(0, 1, 25))
    assert (found.errors.vertices, found.errors.exact) == (10, 1.0)
    assert found.confidence is not None
    assert sum(found.confidence.matches) == 10
    with pytest.raises(InputError, match="not known for any vertex"):
        evaluator(Pair(("x", "y"), square, square, np.full(25, -1)), matches)


def test_report_pools_vertices_and_counts_self_pairs_apart(
    pair: Pair, evaluator: PairEvaluator, mirrored: PairEvaluation
) -> None:
    square = grid(5)
    own = evaluator(Pair(("x", "x"), square, square, np.arange(25)), np.zeros(25, int))
    right = evaluator(Pair(("x", "y"), square, square, np.arange(25)), np.arange(25), verdict="good")
    wrong = mirrored
    report = PairsReport((own, right, wrong)).as_dict()
    n = len(pair.a.vertices)
    assert report["vertices"] == 25 + n
    assert report["mean_error_x100"] == pytest.approx(wrong.errors.mean_error_x100 * n / (25 + n))
    assert report["self_pairs"]["pairs"] == 1
    assert report["failed_pairs"] == 1
    assert report["verdicts"] == {"doubtful": {"pairs": 1, "failed": 1}, "good": {"pairs": 1, "failed": 0}}
    assert "symmetric" not in report
    assert [entry["b"] for entry in report["pairs"]] == ["x", "y", "human_17_03"]
    assert PairEvaluation.from_dict(json.loads(json.dumps(wrong.as_dict()))) == wrong
    with pytest.raises(InputError, match="two different shapes"):
        PairsReport((own,)).as_dict()


def test_calibration_of_known_confidences() -> None:
    matches, right = np.zeros(100, int), np.zeros(100, int)
    matches[[20, 80]] = 100
    right[[20, 80]] = [20, 80]
    counts = ConfidenceCounts(tuple(matches), tuple(right))
    assert counts.calibration_error() == pytest.approx(0.005)
    # Pairs of a right and a wrong match: 80 x 80 in order, 20 x 20 in the wrong one, 2 x 80 x 20 tied, of 100 x 100.
    assert counts.auc() == pytest.approx((80 * 80 + 0.5 * 2 * 80 * 20) / 100**2)
    assert ConfidenceCounts(tuple(matches), tuple(matches)).auc() is None
