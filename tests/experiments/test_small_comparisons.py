"""The other comparisons in small versions: descriptors on built-in humans, methods and claims on parts of one."""

import json
from pathlib import Path

import pytest
from scripts import run_script

from acnn.cli import main
from acnn.datasets import builtin_humans
from acnn.shapes import save
from acnn.surface.simplify import remesh

FOLDER = Path(__file__).parents[2] / "experiments"
TINY = ["angles=2", "scales=6,24", "shot_radii=8", "loss_vertices=100"]


def run(folder, script, *words):
    """What a script prints with --json."""
    done = run_script(FOLDER / script, *words, "--json", ACNN_CACHE=folder / "cache")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With `parts`: three cuts of a built-in human."""
    folder = tmp_path_factory.mktemp("comparisons")
    save(remesh(builtin_humans().mesh(3), vertices=400, seed=0).mesh, folder / "person.ply")
    words = ["data", "parts", str(folder / "person.ply"), "--out", str(folder / "parts"), "--kind", "cuts"]
    assert main([*words, "--count", "3", "--quiet"]) == 0
    return folder


def test_descriptors_are_compared_by_their_hits(folder):
    words = ["--data", "humans", "--train", "human_00_00,human_01_01", "--query", "human_17_03"]
    words += ["--targets", "human_18_03", "--methods", "wks,shot-16,osd", "--workers", 1]
    words += ["--out", folder / "runs", "--results", folder / "hits"]
    found, _ = run(folder, "table/descriptors.py", *words)
    assert found["rows"] == ["wks", "shot-16", "osd"]
    for hits in found["hits"].values():
        assert 0 < hits["asymmetric"]["1"] < hits["asymmetric"]["10"] < hits["asymmetric"]["100"] < 1
        assert hits["symmetric"]["10"] >= hits["asymmetric"]["10"]
    kept = json.loads((folder / "hits" / "shot-16.json").read_text())
    assert kept["dimension"] == 16
    assert len(kept["asymmetric"]["cmc"]) == 100


def test_methods_are_compared_on_partial_shapes(folder):
    words = ["--data", folder / "parts", "--kind", "cuts", "--train", "1-2", "--test", "3", "--methods", "rf-wks,pfm"]
    words += ["--out", folder / "runs", "--results", folder / "shrec16"]
    found, _ = run(folder, "table/shrec16.py", *words)
    assert (found["classes"], found["rows"]) == (["person"], ["rf-wks", "pfm"])
    for name in found["rows"]:
        kept = json.loads((folder / "shrec16" / "cuts" / name / "person.json").read_text())
        assert [shape["name"] for shape in kept["shapes"]] == ["cuts_person_shape_3"]
        assert kept["mean_error_x100"] > 0
    assert (folder / "runs" / "curves_cuts.png").is_file()
    assert "*missing*" in (folder / "runs" / "table_cuts.md").read_text()
    _, messages = run(folder, "table/shrec16.py", *words)
    assert "pfm, person: kept from before" in messages


def test_claims_are_measured_on_test_and_training_shapes(folder):
    words = ["--faust", "humans", "--train", "human_00_00", "--test", "human_17_03", "--shrec16", folder / "parts"]
    words += ["--class", "person", "--train-parts", "1-2", "--test-parts", "3", "--core-minutes", "0.02"]
    words += ["--out", folder / "claims", "--results", folder / "claimed"]
    words += [word for change in TINY for word in ("--set", change)]
    found, _ = run(folder, "claims/run.py", *words, "--rows", "bn,no-dropout")
    assert list(found["rows"]) == ["bn", "no-dropout"]
    for figures in found["rows"].values():
        assert 0 <= figures["exact"] <= 1
        assert 0 <= figures["training_exact"] <= 1
    layers = json.loads((folder / "claimed" / "no-dropout.json").read_text())["changes"]["architecture"]
    assert "DO" not in layers
