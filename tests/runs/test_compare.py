"""Several methods on the same shapes: known maps have known errors, and what cannot be matched is reported."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from analytic import sphere

from acnn.datasets.dataset import Dataset, Example, InMemory, Sample
from acnn.errors import InputError
from acnn.methods.method import PairMap, PairMethod
from acnn.methods.registry import PAIR_METHODS
from acnn.methods.run import MODELS
from acnn.runs import compare as module
from acnn.runs.compare import Comparison, MethodResult, compare_methods, comparison_data, evaluate_pair_method


def method(point_map, refused=()):
    """A pair method that gives this map, and refuses shapes of some numbers of vertices."""

    def match(a, b, refinement, progress=None):
        if len(a.vertices) in refused:
            raise InputError("A is refused: use the method 'other'.")
        return PairMap(np.asarray(point_map, np.int32), 0.0, {})

    return PairMethod("fake", "a known map", match)


@pytest.fixture(scope="module")
def ball():
    """A sphere, matched to itself, whose mirror image is the opposite point."""
    mesh = sphere(3)
    opposite = np.argmin(mesh.vertices @ mesh.vertices.T, axis=1).astype(np.int32)
    assert np.allclose(mesh.vertices[opposite], -mesh.vertices, atol=1e-9)
    itself = Example(mesh, np.arange(len(mesh.vertices), dtype=np.int32))
    samples = (Sample("ball_0", InMemory(itself)), Sample("ball_1", InMemory(itself)))
    return Dataset("balls", mesh, samples, mirror=opposite), opposite


def test_the_true_map_has_no_error(ball):
    dataset, opposite = ball
    report, failures = evaluate_pair_method(method(np.arange(len(opposite))), dataset)
    assert (report["exact"], report["mean_error_x100"], failures) == (1.0, 0.0, [])
    assert [shape["name"] for shape in report["shapes"]] == ["ball_0", "ball_1"]


def test_the_mirrored_map_is_wrong_by_a_diameter_and_right_by_the_symmetric_protocol(ball):
    dataset, opposite = ball
    kept = []
    report, _ = evaluate_pair_method(method(opposite), dataset, test_list="0", keep=kept.append)
    assert report["exact"] == 0.0
    assert report["symmetric"]["exact"] == 1.0
    # half a great circle over sqrt(4 pi), by distances along edges
    assert report["mean_error_x100"] == pytest.approx(100 * np.pi / np.sqrt(4 * np.pi), rel=0.06)
    result = MethodResult("FAKE", {one.name: one for one in kept}, report)
    data = comparison_data(Comparison(dataset, ("ball_0", "ball_1"), (result,)))
    errors = data.methods[0].errors
    assert np.mean(errors[0]) == pytest.approx(100.0, rel=0.05)  # percent of the geodesic diameter
    assert errors[1] is None  # it was not matched


def test_a_refused_shape_is_a_failure_and_the_others_are_matched(ball):
    dataset, opposite = ball
    small = sphere(2)
    other = Sample("small", InMemory(Example(small, np.arange(len(small.vertices), dtype=np.int32))))
    mixed = replace(dataset, samples=(dataset.samples[0], other))
    refusing = method(np.arange(len(opposite)), refused=(len(small.vertices),))
    report, failures = evaluate_pair_method(refusing, mixed)
    assert [shape["name"] for shape in report["shapes"]] == ["ball_0"]
    assert [(failure.item, failure.why) for failure in failures] == [("small", "A is refused: use the method 'other'.")]
    with pytest.raises(InputError, match="No test shape could be matched: small"):
        evaluate_pair_method(refusing, mixed, test_list="small")


def test_methods_are_compared_on_the_same_shapes(ball, monkeypatch):
    dataset, opposite = ball
    monkeypatch.setitem(PAIR_METHODS, "right", method(np.arange(len(opposite))))
    monkeypatch.setitem(PAIR_METHODS, "wrong", replace(method(opposite), name="wrong"))
    comparison, failures = compare_methods(["right", "wrong"], dataset, shapes=1)
    assert [result.label for result in comparison.results] == ["FAKE", "WRONG"]
    assert comparison.names == ("ball_0",)
    assert [result.figures["exact"] for result in comparison.results] == [1.0, 0.0]
    assert not failures


def test_runs_of_one_method_are_told_apart(ball, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "evaluate_run", lambda run, *_, **__: ({"exact": 0.5}, []))
    for name in ("first/run", "second/run", "other"):
        shutil.copytree(MODELS / "humans", tmp_path / name)
    runs = [tmp_path / name for name in ("first", "second", "other")]
    comparison, _ = compare_methods(runs, ball[0], shapes=1)
    assert [result.label for result in comparison.results] == ["ACNN (first/run)", "ACNN (second/run)", "ACNN (other)"]


def test_what_is_no_method_is_refused():
    with pytest.raises(InputError, match="not a finished run"):
        compare_methods(["no such folder"])
    with pytest.raises(InputError, match="give one \\(--data\\)"):
        compare_methods(["bim"])
    with pytest.raises(InputError, match="descriptors, pfm, bim"):
        compare_methods([])
