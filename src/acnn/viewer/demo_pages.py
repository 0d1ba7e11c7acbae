"""What `acnn demo` leaves to look at: pictures, and a report of each kind of shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acnn.datasets.collection import spread_over
from acnn.pipeline.evaluate_run import Matched
from acnn.pipeline.report_data import report_of
from acnn.pipeline.run import Run
from acnn.viewer.matches import draw_matches
from acnn.viewer.report import write_report

SHOWN = 4
"""Shapes in a report."""


def show_demo(out: Path, run: Run, matched: dict[str, list[Matched]], reports: dict[str, dict[str, Any]]) -> list[Path]:
    """Write `matches_KIND.png` and `report_KIND.html` for each kind of shape, and return the files.

    - out: folder
    - matched: shapes by kind; reports: what `evaluate_run` returned for them
    """
    files = draw_matches(out, run, matched)
    for kind, shapes in matched.items():
        some = spread_over(shapes, SHOWN)
        page = out / f"report_{kind}.html"
        write_report(report_of(f"acnn demo, {kind}", f"humans, {kind}", run, some, reports[kind]), page)
        files.append(page)
    return files
