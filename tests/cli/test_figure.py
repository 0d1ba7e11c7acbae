"""`acnn figure` on a run trained for a moment on shapes of one's own."""

import json

import numpy as np
import pytest
from analytic import write_bumps
from PIL import Image

from acnn.cli import main
from acnn.runs.train import train_run
from acnn.training import RunConfig


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure")
    shapes = write_bumps(folder / "bumps", 3)
    changes = {"angles": 2, "scales": "6,24", "architecture": "FC8+IC8+Softmax", "epochs": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(folder / "cache"))
        train_run(str(shapes), folder / "run", RunConfig().with_changes(changes), train_list="0-1")
        yield folder / "run"


@pytest.mark.parametrize("kind", ["transfer", "errors", "filters", "curve"])
def test_every_kind_is_written(run, tmp_path, capsys, kind):
    target = tmp_path / "new" / f"{kind}.png"
    assert main(["figure", str(run), kind, "--out", str(target), "--refine", "none", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["figure"] == str(target)
    assert facts.get("shapes", ["bump_2"]) == ["bump_2"]
    picture = np.asarray(Image.open(target).convert("RGB")).astype(int)
    assert (np.ptp(picture, axis=2) > 40).mean() > 0.001  # something in colour
    assert [path.name for path in target.parent.iterdir()] == [target.name]  # nothing half-written is left


@pytest.mark.parametrize("kind", ["comparison", "partial"])
def test_methods_are_shown_below_each_other(run, tmp_path, capsys, kind):
    target = tmp_path / f"{kind}.png"
    words = ["figure", "descriptors", str(run), kind, "--test", "2", "--refine", "none", "--out", str(target), "--json"]
    data = ["--data", str(run.parent / "bumps")]
    assert main([*words, *data]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["shapes"] == ["bump_2"]
    assert list(facts["methods"]) == ["DESCRIPTORS", "ACNN"]
    assert 0 <= facts["methods"]["ACNN"]["exact"] <= 1
    both = np.asarray(Image.open(target))
    assert main([*words[:1], *words[2:], "--force"]) == 0
    alone = np.asarray(Image.open(target))
    assert both.shape[0] > alone.shape[0] + 400  # a row less
    assert both.shape[1] == alone.shape[1]


def test_curves_of_several_methods_in_one_plot(run, tmp_path, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr("acnn.evaluation.curves.write_curves_png", lambda *args, **more: drawn.append(args[1]))
    words = ["figure", "descriptors", str(run), "curve", "--test", "2", "--refine", "none", "--json"]
    assert main([*words, "--data", str(run.parent / "bumps"), "--out", str(tmp_path / "curves.png")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["shapes"] == ["bump_2"]
    assert list(facts["methods"]) == list(drawn[0]) == ["DESCRIPTORS", "ACNN"]
    for label, curve in drawn[0].items():
        assert len(curve) == 100
        assert curve[0] >= facts["methods"][label]["exact"]
    assert drawn[0]["DESCRIPTORS"] != drawn[0]["ACNN"]


def test_clear_errors(run, tmp_path, capsys):
    assert main(["figure", str(run), "pie", "--out", str(tmp_path / "a.png")]) == 2
    assert "transfer, errors, filters, curve" in capsys.readouterr().err
    assert main(["figure", str(run), "bim", "errors", "--out", str(tmp_path / "a.png")]) == 2
    assert "shows one run: give one, or use 'curve', 'comparison' or 'partial'" in capsys.readouterr().err
    assert main(["figure", str(run), "curve", "--out", str(tmp_path / "a.jpg")]) == 2
    assert ".png" in capsys.readouterr().err
    assert main(["figure", str(tmp_path), "filters", "--out", str(tmp_path / "a.png")]) == 2
    assert main(["figure", str(run), "errors", "--out", str(tmp_path / "a.png"), "--up", "w"]) == 2
    assert not (tmp_path / "a.png").exists()
