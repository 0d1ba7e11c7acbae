"""From a dataset to a run, stopped and gone on with."""

import json
import os

import pytest
import torch
from analytic import sphere, write_bumps

from acnn.cli import main
from acnn.errors import InputError
from acnn.methods.run import open_run
from acnn.runs.train import train_run
from acnn.shapes import save
from acnn.training import RunConfig


def test_a_run_that_is_done_says_the_same_when_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    shapes, run = write_bumps(tmp_path / "bumps", 2), tmp_path / "run"
    changes = {"angles": 2, "scales": "6,24", "architecture": "FC8+IC8+Softmax", "epochs": 2}
    config = RunConfig().with_changes(changes)
    facts, _ = train_run(str(shapes), run, config)
    with pytest.raises(InputError, match="--resume"):
        train_run(str(shapes), run, config)
    again, _ = train_run(str(shapes), run, config, resume=True)
    for key in ("step", "loss", "accuracy", "core_seconds", "seconds_training"):
        assert again[key] == facts[key]
    assert facts["step"] == 4
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    with pytest.raises(InputError, match="angles was 2 and is 4"):
        train_run(str(shapes), run, config.with_changes({"angles": 4}), resume=True)
    with pytest.raises(InputError, match=r"settings \(shapes: 2 before, 1 now\)"):
        train_run(str(shapes), run, config, train_list="bump_0", resume=True)
    assert before == {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    longer, _ = train_run(str(shapes), run, config.with_changes({"epochs": 3}), resume=True)
    assert longer["step"] == 6


def test_resuming_needs_neither_the_settings_nor_the_lists_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    shapes, run = write_bumps(tmp_path / "bumps", 4), tmp_path / "run"
    tiny = ["angles=2", "scales=6,24", "architecture=FC8+IC8+Softmax"]
    words = ["train", str(shapes), "--out", str(run), "--quiet"]
    settings = [word for change in tiny for word in ("--set", change)]
    assert main([*words, *settings, "--method", "acnn", "--train", "0-1", "--val", "3", "--epochs", "1"]) == 0
    capsys.readouterr()
    assert main([*words, "--resume", "--epochs", "2", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["step"] == 4
    assert facts["train"] == ["bump_0", "bump_1"]
    assert facts["validation"] == ["bump_3"]
    assert main([*words, "--resume", "--epochs", "3", "--method", "acnn"]) == 2  # other settings, given on purpose
    assert "settings (" in capsys.readouterr().err


def test_a_run_starts_from_the_weights_of_another(tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    shapes, first = write_bumps(tmp_path / "bumps", 2), tmp_path / "first"
    changes = {"angles": 2, "scales": "6,24", "architecture": "FC8+IC8+Softmax", "epochs": 4, "learning_rate": 0.01}
    config = RunConfig().with_changes(changes)
    train_run(str(shapes), first, config)
    still = {"start": str(first), "architecture": "FC8+IC8+RES(IC8)+Softmax", "epochs": 1, "learning_rate": 0.0}
    train_run(str(shapes), tmp_path / "second", config.with_changes(still))
    before, after = (open_run(tmp_path / name).matcher.network for name in ("first", "second"))
    for old, new in ((before.layers[1], after.layers[1]), (before.classifier, after.classifier)):
        torch.testing.assert_close(new.weight, old.weight)
    assert not after.layers[2].norm.weight.any()
    seen, own = (open_run(tmp_path / name).record.content["train"] for name in ("second", "first"))
    assert seen[len(own) :] == own  # what the first run was trained on, the second one has seen, too
    other = config.with_changes({"start": str(first), "architecture": "FC9+IC8+Softmax"})
    with pytest.raises(InputError, match="cannot start from"):
        train_run(str(shapes), tmp_path / "third", other)
    with pytest.raises(InputError, match="another reference"):
        train_run(str(shapes), tmp_path / "fourth", config.with_changes({"start": "humans"}))


def test_without_the_cache_it_is_neither_read_nor_written(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("ACNN_CACHE", str(cache))
    shapes = write_bumps(tmp_path / "bumps", 2)
    tiny = ["angles=2", "scales=6,24", "architecture=FC8+IC8+Softmax", "shared_outputs=0"]
    words = [word for change in tiny for word in ("--set", change)]
    run = str(tmp_path / "run")
    assert main(["train", str(shapes), "--out", run, "--epochs", "1", *words, "--no-cache", "--quiet"]) == 0
    assert main(["evaluate", run, str(shapes), "--test", "all", "--no-cache", "--quiet"]) == 0
    assert not list(cache.iterdir())
    assert os.environ["ACNN_CACHE"] == str(cache)


def test_a_bad_architecture_is_told_before_anything_is_done(tmp_path, capsys):
    shapes = write_bumps(tmp_path / "bumps", 1)
    assert main(["train", str(shapes), "--out", str(tmp_path / "run"), "--arch", "FC8+XX+Softmax"]) == 2
    assert "XX" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_shapes_of_another_kind_are_refused_before_training(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    shapes, run = write_bumps(tmp_path / "shapes", 3), tmp_path / "run"
    save(sphere(1), shapes / "other_0.ply")
    tiny = ["angles=2", "scales=6,24", "architecture=FC8+IC8+Softmax", "epochs=1"]
    words = ["train", str(shapes), "--out", str(run), "--quiet", *(w for change in tiny for w in ("--set", change))]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "1 of 4 training shapes do not belong to the reference" in told
    assert "other_0.ply: has 42 vertices, not 162" in told
    assert "--train" in told
    assert not run.exists()
    assert main([*words, "--train", "bump_*"]) == 0


def test_a_training_that_diverges_exits_with_code_1_and_advice(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    shapes = write_bumps(tmp_path / "shapes", 2)
    tiny = ["angles=2", "scales=6,24", "architecture=FC8+IC8+FC8+IC8+Softmax", "epochs=40", "learning_rate=1e30"]
    words = ["--quiet", *(word for change in tiny for word in ("--set", change))]
    assert main(["train", str(shapes), "--out", str(tmp_path / "run"), *words]) == 1
    told = capsys.readouterr().err
    assert "diverges" in told
    assert "learning_rate" in told
    assert "bug in acnn" not in told
