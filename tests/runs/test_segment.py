"""Segmentation and learned descriptors from end to end: train, evaluate, label a file."""

import json

import numpy as np
import pytest
from analytic import bumpy, write_bumps

from acnn.cli import main
from acnn.errors import InputError
from acnn.methods.registry import METHODS
from acnn.methods.run import open_run
from acnn.runs.evaluate import evaluate_run
from acnn.runs.match import match_shape
from acnn.runs.segment import segment_shape
from acnn.runs.train import config_of_method, train_run
from acnn.shapes import PointCloud, load

TINY = {"epochs": 1, "loss_vertices": 100}
SIZES = {
    "acnn": {"angles": 2, "scales": "6,24"},
    "gcnn": {"rings": 2, "rays": 4, "radius": 30.0},
    "scnn": {"spectral.eigenpairs": 10, "splines": 4},
    "lscnn": {"spectral.eigenpairs": 10, "splines": 4},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Shapes of two classes, and a run that has learned them."""
    root = tmp_path_factory.mktemp("segment")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(root / "cache"))
        shapes = write_bumps(root / "bumps", 3)
        (shapes / "classes.txt").write_text("".join(f"{int(z > 0)}\n" for z in bumpy(2).vertices[:, 2]))
        (shapes / "classes.names.txt").write_text("lower half\nupper half\n")
        words = ["angles=2", "scales=20,200", "architecture=FC16+IC16+Softmax", "shot_radii=60", "remeshed=0"]
        options = [word for change in [*words, "learning_rate=0.01"] for word in ("--set", change)]
        lists = ["--train", "0,1", "--epochs", "60", "--quiet"]
        train = ["train", str(shapes), "--task", "segmentation", "--out", str(root / "run"), *options, *lists]
        assert main(train) == 0
        yield root


def test_classes_are_learned_and_measured(folder, capsys):
    run, shapes = folder / "run", folder / "bumps"
    facts = json.loads((run / "run.json").read_text())
    assert facts["task"] == "segmentation"
    assert facts["classes"] == ["lower half", "upper half"]
    assert main(["evaluate", str(run), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [shape["name"] for shape in report["shapes"]] == ["bump_2"]  # the one that was not trained on
    assert report["accuracy"] > 0.9
    assert set(report["iou"]) == {"lower half", "upper half"}
    assert report["seen_in_training"] == []
    clouds, _ = evaluate_run(run, f"{shapes}+clouds", test_list="all")
    assert len(clouds["shapes"]) == 3
    assert clouds["accuracy"] > 0.7
    assert main(["evaluate", str(run)]) == 0
    assert "of the area right" in capsys.readouterr().out


def test_a_file_is_labelled(folder, tmp_path, capsys):
    shape, out = folder / "bumps" / "bump_2.ply", tmp_path / "out"
    command = ["match", str(shape), "--model", str(folder / "run"), "--out", str(out)]
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    labels = np.loadtxt(out / "labels.txt", dtype=int)
    found = segment_shape(load(shape), open_run(folder / "run"))
    assert np.array_equal(labels, found.classes)
    assert (labels == (bumpy(2).vertices[:, 2] > 0)).mean() > 0.9
    assert (out / "labels.names.txt").read_text() == "lower half\nupper half\n"
    assert [entry["name"] for entry in facts["classes"]] == list(found.names)
    assert sum(entry["area"] for entry in facts["classes"]) == pytest.approx(1.0)
    colors = load(out / "a_colored.ply").colors
    for k in (0, 1):
        red, green, blue = (int(facts["classes"][k]["color"][i : i + 2], 16) for i in (1, 3, 5))
        assert (colors[labels == k] == [red, green, blue, 255]).all()
    assert (out / "segmentation.png").stat().st_size > 1000
    assert main(command) == 0  # an earlier result is replaced
    assert "upper half" in capsys.readouterr().out
    assert segment_shape(PointCloud(found.shape.vertices), open_run(folder / "run")).classes.shape == labels.shape


def test_what_needs_a_map_is_refused_in_one_sentence(folder, tmp_path, capsys):
    run, shape, out = str(folder / "run"), str(folder / "bumps" / "bump_2.ply"), str(tmp_path / "out")
    for words in (
        ["match", shape, shape, "--model", run, "--out", out],
        ["match", shape, "--model", run, "--out", out, "--barycentric"],
        ["report", run, "--out", str(tmp_path / "page.html")],
        ["figure", run, "curve", "--out", str(tmp_path / "curve.png")],
    ):
        assert main(words) == 2
        assert "was trained for segmentation" in capsys.readouterr().err
    with pytest.raises(InputError, match="use it with 'acnn match A --model RUN'"):
        match_shape(load(shape), open_run(run))
    assert not list(tmp_path.iterdir())


def test_tasks_that_a_method_has_not_are_refused_with_those_that_have(folder, tmp_path, capsys):
    data, run = str(folder / "bumps"), str(tmp_path / "run")
    for words, message in (
        (["--method", "rf", "--task", "segmentation"], "'rf' is trained for labels, not for segmentation: use gcnn"),
        (["--method", "osd", "--task", "labels"], "'osd' is trained for descriptor, not for labels"),
        (["--task", "poses"], "There is no task 'poses'; there are labels, segmentation, descriptor"),
        (["--classes", f"{data}/classes.txt"], "Classes are for --task segmentation"),
    ):
        assert main(["train", data, "--out", run, *words]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("task", ["segmentation", "descriptor"])
@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if len(method.presets) > 1])
def test_every_network_can_be_trained_for_every_task(name, task, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(folder / "cache"))
    config = config_of_method(name, None, task)
    assert (config.method, config.train.task) == (name, task)
    config = config.with_changes(TINY | SIZES[name] | {"shot_radii": "60", "remeshed": 0.0})
    train_run(str(folder / "bumps"), tmp_path / "run", config, train_list="0,1")
    report, failures = evaluate_run(tmp_path / "run", refinement="none")
    assert not failures
    if task == "segmentation":
        assert 0 <= report["accuracy"] <= 1
    else:
        found = report["descriptor"]
        assert 0 < found["learned"]["asymmetric"]["hits"]["10"] <= 1
        assert 0 < found["input"]["asymmetric"]["hits"]["10"] <= 1


def test_a_network_for_other_classes_starts_from_the_layers_of_a_run(folder, tmp_path):
    first = open_run(folder / "run")
    changes = {"task": "labels", "start": str(folder / "run"), "steps": 1, "learning_rate": 0.0}
    config = first.config.with_changes(changes)
    train_run(folder / "bumps", tmp_path / "run", config, train_list="0")
    before, after = (run.matcher.network.state_dict() for run in (first, open_run(tmp_path / "run")))
    assert after["classifier.weight"].shape[0] == 162
    shared = [name for name in before if not name.startswith("classifier.")]
    assert shared
    assert all(before[name].equal(after[name]) for name in shared)
    for change, words in [
        ({"architecture": "FC8+IC16+Softmax"}, "cannot start from the weights"),
        ({"angles": 4}, "cannot start from the weights"),
        ({"start": str(tmp_path / "nothing")}, "not a finished run"),
    ]:
        with pytest.raises(InputError, match=words):
            train_run(folder / "bumps", tmp_path / "other", config.with_changes(change), train_list="0", resume=True)
