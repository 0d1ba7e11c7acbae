"""`acnn evaluate --pairs`: from files to figures, rotations, resuming, and pairs that fail."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from analytic import write_bumps

from acnn.cli import main
from acnn.datasets.builtin import builtin_humans
from acnn.errors import InputError
from acnn.files import read_arrays, write_arrays
from acnn.methods.run import MODELS
from acnn.runs import evaluate_pairs as module
from acnn.runs.evaluate_pairs import PairSettings, evaluate_pairs, random_rotation
from acnn.runs.train import train_run
from acnn.shapes import Mesh, load, save
from acnn.surface.simplify import decimate
from acnn.training import RunConfig

PLAIN = PairSettings(method="descriptors", refinement="none", remesh=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two humans of 1,000 vertices and one connectivity."""
    root = tmp_path_factory.mktemp("pairs") / "people"
    root.mkdir()
    humans = builtin_humans()
    kept, faces = decimate(humans.mesh(0).vertices, humans.faces, 1000)
    for name, index in (("p0", 0), ("p1", 3)):
        save(Mesh(humans.vertices[index][kept].astype(float), faces), root / f"{name}.ply")
    return root


@pytest.fixture
def exact_match(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """Instead of matching, vertex i is matched to vertex i; returns the shapes that were asked for."""
    asked: list[tuple[Any, Any]] = []

    def match(a: Any, b: Any, *, working_size: int | None, **_: Any) -> Any:
        assert working_size in (None, 300)
        asked.append((a, b))
        n = len(a.vertices)
        return SimpleNamespace(
            a_to_b=np.arange(n), confidence=np.ones(n), verdict="good", report={"route": "descriptors"}
        )

    monkeypatch.setattr(module, "match", match)
    return asked


def test_rotations_change_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.parent / "one.txt").write_text("p0 p1\n")
    words = ["evaluate", str(folder), "--method", "descriptors", "--refine", "none", "--no-remesh", "--json"]
    reports = []
    for rotation in ([], ["--rotate"]):
        assert main([*words, *rotation, "--pairs", str(folder.parent / "one.txt")]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    plain, rotated = reports
    assert rotated["rotate"] == 0
    assert plain["pairs"][0]["exact"] == rotated["pairs"][0]["exact"]
    assert plain["mean_error_x100"] == pytest.approx(rotated["mean_error_x100"], abs=1e-6)
    assert plain["mean_error_x100"] <= plain["edge_dijkstra"]["mean_error_x100"]
    assert plain["flipped_pairs"] is None
    assert {"exact", "auc", "curve", "thresholds", "coverage", "failed_pairs", "beyond_20", "data"} <= set(plain)


def test_random_rotations_are_rotations_of_their_own() -> None:
    first, second = random_rotation(0, "a"), random_rotation(0, "b")
    np.testing.assert_allclose(first @ first.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(first) == pytest.approx(1)
    assert np.abs(first - second).max() > 0.1
    np.testing.assert_array_equal(first, random_rotation(0, "a"))


def test_self_pairs_are_counted_apart(folder: Path, exact_match: list[Any]) -> None:
    report, failures = evaluate_pairs(folder, settings=PLAIN)
    assert not failures
    assert len(exact_match) == 4
    assert report["self_pairs"]["pairs"] == 2
    assert report["vertices"] == 2 * 1000
    assert report["exact"] == 1
    assert report["confidence"]["calibration_error"] == pytest.approx(0, abs=0.006)


def test_results_are_kept_and_resumed(folder: Path, exact_match: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "new" / "results.jsonl"
    first, _ = evaluate_pairs(folder, settings=PLAIN, out=out)
    lines = out.read_text().splitlines()
    assert len(lines) == 1 + 4
    out.write_text("\n".join(lines[:3]) + "\n" + lines[3][:40])  # interrupted while writing the third pair
    again, _ = evaluate_pairs(folder, settings=PLAIN, out=out)
    assert len(exact_match) == 4 + 2
    for one, other in zip(first["pairs"], again["pairs"], strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}
    assert evaluate_pairs(folder, settings=PLAIN, out=out)[0]["pairs"] == again["pairs"]
    with pytest.raises(InputError, match="not a file of results with these settings"):
        evaluate_pairs(folder, settings=replace(PLAIN, working_size=300), out=out)


def test_results_of_a_model_that_has_changed_are_not_continued(
    folder: Path, exact_match: list[Any], tmp_path: Path
) -> None:
    run, how, out = tmp_path / "run", replace(PLAIN, method="auto"), tmp_path / "results.jsonl"
    shutil.copytree(MODELS / "humans", run)
    evaluate_pairs(folder, run, settings=how, out=out)
    evaluate_pairs(folder, run, settings=how, out=out)
    assert len(exact_match) == 4
    arrays, _ = read_arrays(run / "reference.safetensors")
    write_arrays(run / "reference.safetensors", arrays | {"vertices": 2 * arrays["vertices"]})
    with pytest.raises(InputError, match="as it was before"):
        evaluate_pairs(folder, run, settings=how, out=out)


def test_the_working_size_is_reported(folder: Path, exact_match: list[Any]) -> None:
    assert evaluate_pairs(folder, settings=PLAIN)[0]["working_size"] == 2500
    assert evaluate_pairs(folder, settings=replace(PLAIN, working_size=300))[0]["working_size"] == 300


def test_a_failing_pair_does_not_stop_the_others(
    folder: Path, exact_match: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    matching = module.match

    def match(a: Any, b: Any, **options: Any) -> Any:
        if a is not b and not exact_match[1:]:
            exact_match.append((a, b))
            raise RuntimeError("eigenpairs did not converge")
        return matching(a, b, **options)

    monkeypatch.setattr(module, "match", match)
    words = ["evaluate", str(folder), "--method", "descriptors", "--no-remesh", "--pairs", "--json"]
    assert main(words) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["failed"] == [{"item": "p0 p1", "why": "RuntimeError: eigenpairs did not converge"}]
    assert [(p["a"], p["b"]) for p in report["pairs"]] == [("p0", "p0"), ("p1", "p0"), ("p1", "p1")]


def test_options_of_pairs_need_pairs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "humans", "--rotate"]) == 2
    assert "--rotate is an option of --pairs" in capsys.readouterr().err
    assert main(["evaluate", str(folder), "--pairs", "0", "--no-remesh", "--method", "descriptors"]) == 2
    assert "no pair was selected by --pairs 0" in capsys.readouterr().err
    assert main(["evaluate", str(folder), "--pairs", "nowhere.txt", "--method", "descriptors"]) == 2
    assert "nowhere.txt" in capsys.readouterr().err


def test_descriptors_from_files_need_shapes_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    shapes = write_bumps(tmp_path / "bumps", 2)
    for path in shapes.glob("*.ply"):
        np.save(path.with_suffix(".npy"), load(path).vertices.astype(np.float32))
    tiny = {"kinds": "file", "angles": 2, "scales": "6,24", "architecture": "FC8+IC8+Softmax", "epochs": 1}
    train_run(shapes, tmp_path / "run", RunConfig().with_changes(tiny))
    with pytest.raises(InputError, match="--no-remesh"):
        evaluate_pairs(shapes, tmp_path / "run", pairs="1")
    report, failures = evaluate_pairs(shapes, tmp_path / "run", pairs="1", settings=PairSettings(remesh=False))
    assert len(report["pairs"]) == 1
    assert not failures
