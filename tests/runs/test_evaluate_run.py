"""How a run is judged: on whose reference, in which unit, and by which truth."""

from dataclasses import replace

import numpy as np
import pytest
from analytic import bumpy, permuted, random_sphere

from acnn.cli.evaluate import report_text
from acnn.datasets.dataset import Dataset, Example, InMemory, Sample
from acnn.errors import InputError
from acnn.methods.run import open_run
from acnn.runs.evaluate import evaluate_run
from acnn.runs.match import match_shape
from acnn.runs.train import train_run
from acnn.shapes import Mesh, load, save
from acnn.training import RunConfig

MESH = bumpy(2)
ALL = np.arange(len(MESH.vertices), dtype=np.int32)
SETTINGS = {"angles": 2, "scales": "6,24", "shot_radii": "20", "architecture": "FC16+IC16+Softmax", "epochs": 20}
UNIT = 0.04


def sample(name, shape=MESH, labels=ALL, **more):
    return Sample(name, InMemory(Example(shape, labels, **more)))


def stretched(factor):
    return Mesh(MESH.vertices * [1, factor, 1], MESH.faces)


def data(*samples, unit=None):
    return Dataset("bumps", MESH, samples, unit=unit)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A network that learned from two bumpy balls, in a unit of its own."""
    folder = tmp_path_factory.mktemp("run")
    learned = data(sample("a"), sample("b", stretched(1.2)), unit=UNIT)
    train_run(learned, folder, RunConfig().with_changes(SETTINGS))
    return open_run(folder)


def test_data_on_another_reference_are_refused(run):
    other = bumpy(1)
    small = Dataset("small", other, (Sample("s", InMemory(Example(other, np.arange(len(other.vertices))))),))
    with pytest.raises(InputError, match=r"small is on a reference of 42 vertices.*network \(162 vertices\)"):
        evaluate_run(run, small)


def test_the_unit_is_that_of_the_run_as_in_matching(run):
    kept = []
    shape = stretched(1.1)
    evaluate_run(run, data(sample("c", shape)), test_list="c", keep=kept.append)
    expected = match_shape(shape, run, refinement="none")
    assert expected.surface.unit == pytest.approx(UNIT)
    np.testing.assert_array_equal(kept[0].soft_map.query_to_reference, expected.query_to_reference)


def test_large_shapes_are_matched_on_working_copies(run):
    fine, kept = bumpy(3), []
    labels = np.linalg.norm(fine.vertices[:, None] - MESH.vertices, axis=2).argmin(axis=1).astype(np.int32)
    shapes = data(sample("c", fine, labels))
    report, _ = evaluate_run(run, shapes, test_list="c", refinement="none", working_size=162, keep=kept.append)
    assert report["working_copies"] == {"size": 162, "shapes": 1, "vertices": 642, "working": 162}
    assert "1 shape(s) of 642 vertices on average were matched on copies of 162" in report_text(report)
    matched = match_shape(fine, run, refinement="none", working_size=162)
    assert report["exact"] == (matched.query_to_reference == labels).mean()
    assert len(kept[0].soft_map.query_to_reference) == 642
    report, _ = evaluate_run(run, shapes, test_list="c", refinement="none", working_size=0)
    assert report["working_copies"] == {"size": 0, "shapes": 0}


def test_the_truth_on_the_other_side_is_each_shapes_own(run):
    kept = []
    turned = np.roll(ALL, 1)
    both = data(sample("c", mirrored=turned), sample("d"))
    report, failures = evaluate_run(run, both, test_list="c,d", refinement="fm", keep=kept.append)
    assert not failures
    c, d = kept
    assert c.symmetric.name == c.refined_symmetric.name == "c"
    assert d.symmetric is d.refined_symmetric is None
    assert "symmetric" not in report
    report, _ = evaluate_run(run, data(sample("c", mirrored=turned)), test_list="c")
    assert report["symmetric"]["exact"] == c.symmetric.exact >= report["exact"]
    per_map = report["symmetric"]["per_map"]
    assert per_map["mean_error_x100"] == c.symmetric.per_map.mean_error_x100 >= c.symmetric.mean_error_x100
    (row,) = [line for line in report_text(report).splitlines() if line.startswith("network, symmetric per map ")]
    assert f"{per_map['exact']:.1%}" in row
    assert f"{per_map['mean_error_x100']:.2f}" in row


def test_test_shapes_that_were_trained_on_are_known_by_content(tmp_path):
    """Under another name, in another order of vertices, and through a file; not where only the name agrees."""
    run = tmp_path / "run"
    learned = data(sample("a"), sample("b", stretched(1.2)), sample("v", stretched(1.3)))
    train_run(learned, run, RunConfig().with_changes(SETTINGS | {"epochs": 1}), train_list="a,b", val_list="v")
    shuffled, place = permuted(stretched(1.2), 3)
    save(MESH, tmp_path / "mesh.ply")
    tests = data(
        sample("shuffled", shuffled, np.argsort(place).astype(np.int32)),
        sample("loaded", load(tmp_path / "mesh.ply")),
        sample("chosen", stretched(1.3)),
        sample("a", stretched(1.1)),
    )
    report, _ = evaluate_run(run, tests, test_list="all")
    assert report["seen_in_training"] == ["shuffled", "loaded"]
    assert report["seen_in_validation"] == ["chosen"]
    assert "warning: the network was trained on 2 of these 4 shapes (shuffled, loaded)" in report_text(report)
    assert "warning: the network was validated on 1 of these 4 shapes (chosen)" in report_text(report)
    report, _ = evaluate_run(run, tests, test_list="a")
    assert report["seen_in_training"] == report["seen_in_validation"] == []
    assert "warning" not in report_text(report)


def test_a_run_that_did_not_record_what_it_was_trained_on_does_not_know(run):
    old = replace(run, record=replace(run.record, content=None))
    report, _ = evaluate_run(old, data(sample("c")), test_list="c")
    assert report["seen_in_training"] == report["seen_in_validation"] == "unknown"
    assert "were not recorded" in report_text(report)
    assert open_run("humans-1").seen({"c": "0"}, "train") == "unknown"


def test_a_shape_without_truth_does_not_stop_the_others(run, tmp_path):
    blind = np.full(len(ALL), -1, np.int32)
    some = data(sample("c"), sample("blind", stretched(1.1), blind))
    report, failures = evaluate_run(run, some, test_list="c,blind")
    assert [shape["name"] for shape in report["shapes"]] == ["c"]
    assert [failure.item for failure in failures] == ["blind"]
    with pytest.raises(InputError, match="blind"):
        evaluate_run(run, some, test_list="blind")
    _, failures = train_run(some, tmp_path, RunConfig().with_changes(SETTINGS | {"epochs": 1}))
    assert [(failure.item, failure.why) for failure in failures] == [
        ("blind", "no vertex has a known match on the reference")
    ]


def test_a_network_that_goes_by_the_triangulation_is_not_asked_about_others(run):
    dependent = replace(run, config=run.config.with_changes({"kinds": "shot,valences"}))
    other = random_sphere(162, 3)
    with pytest.raises(InputError, match="depends on the triangulation"):
        evaluate_run(dependent, data(sample("other", other)), test_list="other")
