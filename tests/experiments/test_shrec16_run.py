"""The partial experiment from one end to the other, on parts of a built-in person instead of the benchmark's."""

import json
import re
from pathlib import Path

import pytest
from scripts import run_script

from acnn.cli import main
from acnn.datasets import builtin_humans
from acnn.evaluation.published import SHREC16_CUTS_ERROR, SHREC16_HOLES_ERROR
from acnn.shapes import save
from acnn.surface.simplify import remesh

SCRIPT = Path(__file__).parents[2] / "experiments" / "shrec16" / "run.py"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """What the script printed and the folder it filled."""
    folder = tmp_path_factory.mktemp("shrec16")
    save(remesh(builtin_humans().mesh(3), vertices=500, seed=0).mesh, folder / "person.ply")
    parts = ["data", "parts", str(folder / "person.ply"), "--out", str(folder / "parts"), "--kind", "cuts"]
    assert main([*parts, "--count", "4", "--quiet"]) == 0
    tiny = ["epochs=3", "core_minutes=0", "angles=4", "scales=6,24", "shot_radii=8", "cut=0", "shared_outputs=40"]
    tiny.append("architecture=RES(IC16)+FC64+Softmax")
    words = ["--data", folder / "parts", "--kind", "cuts", "--train", "1-3", "--test", "4", "--out", folder / "out"]
    changes = [word for change in tiny for word in ("--set", change)]
    done = run_script(SCRIPT, *words, *changes, "--workers", "1", "--json", ACNN_CACHE=folder / "cache")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), folder / "out"


def test_it_prints_what_evaluate_prints_and_errors_by_missing_area(result):
    report, _ = result
    assert [shape["name"] for shape in report["shapes"]] == ["cuts_person_shape_4"]
    (row,) = report["by_missing"]
    missing = report["shapes"][0]["missing"]
    assert row["missing"][0] <= missing < row["missing"][1]
    assert row["network"] == pytest.approx(report["mean_error_x100"])
    assert row["refined"] == pytest.approx(report["refined"]["mean_error_x100"])


def test_it_leaves_results_curves_and_the_run(result):
    _, folder = result
    for name in ("results_cuts.json", "curves_cuts.csv", "curves_cuts.png", "cuts/person/model.safetensors"):
        assert (folder / name).is_file()


@pytest.mark.parametrize(("table", "refined"), [(SHREC16_CUTS_ERROR, 4.41), (SHREC16_HOLES_ERROR, 6.65)])
def test_published_figures_stand_beside_errors_of_the_same_kind(table, refined):
    """In the README, asymmetric published errors have the column of our asymmetric errors, and no other."""
    assert "asymmetric" in table.quantity
    published = {entry.value for entry in table.entries if entry.method != "best known"}
    readme = (SCRIPT.parent / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"(?:^\|.*\n)+", readme, re.MULTILINE):
        header, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        if "asymmetric" in header:
            rows = {line[0]: dict(zip(header[1:], line[1:], strict=True)) for line in lines}
            others = [row for row in rows.values() if not row["exact"]]
            if {float(row["asymmetric"]) for row in others} == published:
                assert all(row["symmetric"] == "" for row in others)
                assert float(rows["refined (`pfm`)"]["asymmetric"]) == refined
                return
    pytest.fail(f"no table with the errors of {table.name}")
