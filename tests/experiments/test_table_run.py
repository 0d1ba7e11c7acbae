"""The comparison of methods, in a small version on the built-in humans."""

import json
from pathlib import Path

import pytest
from scripts import run_script

RUN = Path(__file__).parents[2] / "experiments" / "table" / "run.py"


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The folder of a comparison of two methods, and how to run it again."""
    folder = tmp_path_factory.mktemp("table")
    words = ["--data", "humans", "--train", "human_00_00,human_00_01,human_01_00", "--test", "human_17_03"]
    words += ["--methods", "osd,rf-wks", "--core-minutes", "0.1", "--workers", "1"]
    words += ["--out", folder / "out", "--results", folder / "rows", "--json"]

    def run():
        return run_script(RUN, *words, ACNN_CACHE=folder / "cache")

    done = run()
    assert done.returncode == 0, done.stderr
    return folder, done, run


def test_rows_table_and_figure_are_written(compared):
    folder, done, _ = compared
    assert json.loads(done.stdout)["rows"] == ["osd", "rf-wks"]
    for name in ("osd", "rf-wks"):
        row = json.loads((folder / "rows" / f"{name}.json").read_text())
        assert 0 < row["exact"] < row["within_010"] < 1
        assert row["symmetric"]["mean_error_x100"] <= row["mean_error_x100"]
        assert row["parameters"] > 1000
    table = (folder / "out" / "table.md").read_text()
    assert "| osd | as published" in table
    assert "| any | geometry | yes | spectral | no | no | descriptor |" in table
    assert "| gcnn | equal terms | mesh | any | yes | spatial | yes | yes | any | *missing* |" in table
    assert (folder / "out" / "curves.png").read_bytes()[1:4] == b"PNG"


def test_finished_rows_are_not_computed_again(compared):
    folder, _, run = compared
    before = (folder / "rows" / "osd.json").stat().st_mtime_ns
    again = run()
    assert "osd: kept from before" in again.stderr
    assert (folder / "rows" / "osd.json").stat().st_mtime_ns == before


def test_unknown_rows_are_refused(tmp_path):
    done = run_script(RUN, "--data", "humans", "--methods", "abc", "--out", tmp_path)
    assert done.returncode == 2
    assert "There is no row 'abc'" in done.stderr
