"""Rows of the comparisons: records of several classes joined, kept files, tables that show what is missing."""

import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "experiments"
sys.path.insert(0, str(FOLDER))

import rows  # noqa: E402

from acnn.errors import InputError  # noqa: E402


def record(exact, shapes, error=10.0, symmetric=True):
    """A record of some shapes whose errors are all the same."""
    curve = [exact, 1.0]
    figures = {"exact": exact, "mean_error_x100": error, "thresholds": [0.0, 0.3], "curve": curve}
    report = {**figures, "shapes": [{"name": str(k)} for k in range(shapes)]}
    if symmetric:
        report["symmetric"] = {**figures, "mean_error_x100": error / 2}
    facts = {"parameters": 10, "training_core_minutes": 1.0, "steps": 5, "seconds_per_shape": 2.0}
    return rows.record_of(report) | facts


def test_every_shape_counts_the_same_where_classes_are_joined():
    both = rows.joined([record(0.2, 3, error=10.0), record(0.6, 1, error=30.0)])
    assert both["exact"] == pytest.approx(0.3)
    assert both["mean_error_x100"] == pytest.approx(15.0)
    assert both["symmetric"]["mean_error_x100"] == pytest.approx(7.5)
    assert both["curve"] == pytest.approx([0.3, 1.0])
    assert both["within_010"] == pytest.approx(0.3 + 0.7 / 3)
    assert len(both["shapes"]) == 4
    half = rows.joined([record(0.2, 1), record(0.2, 1, symmetric=False)])
    assert half["symmetric"]["mean_error_x100"] is None  # it is not known of all


def test_rows_are_kept_until_settings_change(tmp_path):
    messages, failures, computed = [], [], []

    def compute(name):
        computed.append(name)
        if name == "bad":
            raise InputError("cannot be done")
        return {"exact": 0.5}

    def run(settings):
        rows.kept_rows(
            ["good", "bad"],
            tmp_path / "rows",
            settings,
            compute,
            message=messages.append,
            failed=lambda name, why: failures.append((name, why)),
        )

    run({"seed": 0})
    assert computed == ["good", "bad"]
    assert failures == [("bad", "cannot be done")]
    run({"seed": 0})
    assert computed == ["good", "bad", "bad"]
    assert "good: kept from before" in messages
    run({"seed": 1})
    assert computed[3:] == ["good", "bad"]
    assert json.loads((tmp_path / "rows" / "good.json").read_text()) == {
        "row": "good",
        "settings": {"seed": 1},
        "exact": 0.5,
    }
    assert list(rows.read_rows(["bad", "good"], tmp_path / "rows")) == ["good"]


def test_the_table_shows_what_is_missing():
    all_rows = {"bim": rows.Row("bim", "", "as published"), "gcnn": rows.Row("gcnn", "gcnn", "equal terms")}
    table = rows.figures_table(all_rows, {"gcnn": record(0.25, 2)}, properties=True)
    head, line, bim, gcnn = table.splitlines()
    assert head.count("|") == line.count("|") == bim.count("|") == gcnn.count("|")
    assert "*missing*" in bim
    assert "| mesh | any | yes | spatial | yes | yes | any | 25.0% | 10.00 |" in gcnn
    assert rows.draw_curves({"gcnn": record(0.25, 2, symmetric=False)})[1:4] == b"PNG"
    svg = [rows.draw_curves({"gcnn": record(0.25, 2)}, "svg") for _ in range(2)]
    assert svg[0] == svg[1]


def test_unknown_rows_are_refused():
    with pytest.raises(InputError, match="There is no row 'c'; there are a, b"):
        rows.known_rows("a,c", {"a": 1, "b": 2})
