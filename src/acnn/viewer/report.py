"""The report page: one HTML file with everything in it, which asks for nothing from anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import acnn
from acnn.evaluation import ShapeEvaluation
from acnn.evaluation.curves import report_curves
from acnn.pipeline.report_data import ReportData, ReportShape
from acnn.shapes.coloring import position_bytes
from acnn.viewer.page_parts import CONFIDENCE_STOPS, Page, is_page, page_html, scale_stops, write_page
from acnn.viewer.report_arrays import packed, packed_indices, packed_places, packed_values

REPORT = Page(
    body="report.html",
    styles=("report.css",),
    scripts=("charts.js", "shapes.js", "report_stage.js", "tables.js", "report.js"),
    stage={
        "label": "3D view: the reference on the left, the chosen shape on the right",
        "left": "reference",
        "right": "shape",
        "all": "all",
        "keys": "N and P change the shape, ",
        "range": '<label id="bar-range">up to <select id="range"></select></label>',
        "below": '<ul class="thumbs" id="thumbs" aria-label="All shapes"></ul>',
    },
)
LENGTHS = {"sqrt_area": "√area", "diameter": "geodesic diameter"}


def write_report(data: ReportData, out: Path) -> Path:
    """Write a report as one HTML file.

    - data: of `collect_report`
    - out: the file

    Returns the file. Raises InputError where it cannot be written.
    """
    return write_page(report_html(data), out)


def is_report(path: Path) -> bool:
    """Whether a file is a report, which another may take the place of."""
    return is_page(REPORT, path)


def report_html(data: ReportData) -> str:
    """The page as text."""
    return page_html(REPORT, f"{data.title}: correspondence report", _content(data))


def _content(data: ReportData) -> dict[str, Any]:
    """What the page's scripts get."""
    figures = data.figures
    reference = data.run.reference
    published = data.published
    return {
        "title": data.title,
        "version": acnn.__version__,
        "dataset": data.dataset,
        "summary": _summary(data),
        "measured": len(figures["shapes"]),
        "length": LENGTHS.get(figures["normalisation"], figures["normalisation"]),
        "refinement": figures.get("refinement", "none"),
        "figures": {"network": _figures(figures), "refined": _figures(figures.get("refined"))},
        "thresholds": _short(figures["thresholds"]),
        "curves": {name: _short(curve) for name, curve in report_curves(figures).items()},
        "published": {
            "quantity": published.quantity,
            "data": published.data,
            "comparable": data.comparable,
            "exact": published.quantity.startswith("share of exact"),
            "entries": [
                {"method": e.method, "value": e.value, "source": e.source, "note": e.note} for e in published.entries
            ],
        },
        "reference": packed_places(reference.vertices)
        | {
            "faces": packed_indices(reference.faces, len(reference.vertices)),
            "colors": packed(position_bytes(reference.vertices)),
        },
        "shapes": [_shape(shape, len(reference.vertices)) for shape in data.shapes],
        "scales": {"error": scale_stops("heat"), "confidence": CONFIDENCE_STOPS},
        "timings": _timings(data),
        "log": [_short(column, 5) for column in data.log.T] if len(data.log) else [],
        "config": str(data.run.config),
    }


def _summary(data: ReportData) -> str:
    """Over how many shapes the figures are, and how many of these are shown."""
    measured, shown = len(data.figures["shapes"]), len(data.shapes)
    count = f"{measured} shape{'' if measured == 1 else 's'}"
    of = "" if shown == measured else f", {shown} shown"
    return f"Mean over {count} of “{data.dataset}”{of}." if measured > 1 else f"{count} of “{data.dataset}”."


def _shape(shape: ReportShape, reference_size: int) -> dict[str, Any]:
    count = len(shape.vertices)
    return packed_places(shape.vertices) | {
        "name": shape.name,
        "cloud": shape.is_cloud,
        "faces": packed_indices(shape.faces, count),
        "network": packed_indices(shape.network, reference_size),
        "refined": None if shape.refined is None else packed_indices(shape.refined, reference_size),
        "truth": packed_indices(shape.truth, reference_size),
        "networkError": packed_values(shape.network_errors),
        "refinedError": None if shape.refined_errors is None else packed_values(shape.refined_errors),
        "confidence": packed_values(shape.confidence, 1.0),
        "missing": None if shape.missing is None else packed(shape.missing.astype(np.uint8)),
        "figures": {"network": _of(shape.evaluation), "refined": _of(shape.refined_evaluation)},
    }


def _of(evaluation: ShapeEvaluation | None) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    figures = {name: getattr(evaluation, name) for name in ("exact", "mean_error_x100", "auc", "coverage")}
    return figures | {"curve": _short(evaluation.curve)}


def _figures(report: dict[str, Any] | None) -> dict[str, Any] | None:
    if not report:
        return None
    names = ("exact", "mean_error_x100", "auc", "coverage", "smoothness")
    figures: dict[str, Any] = {name: report[name] for name in names if name in report}
    return figures | ({"symmetric": _figures(report["symmetric"])} if "symmetric" in report else {})


def _timings(data: ReportData) -> list[list[str]]:
    facts = data.run.facts
    known = {
        "Shapes trained on": f"{len(facts.get('train', []))}",
        "Training steps": _number(facts.get("step"), "{:.0f}"),
        "Preparing (operators, descriptors)": _number(facts.get("seconds_preparing"), "{:.0f} s"),
        "Training": _number(facts.get("seconds_training"), "{:.0f} s"),
        "Network, one shape": _number(data.figures.get("seconds_per_shape"), "{:.2f} s"),
    }
    return [[name, value] for name, value in known.items() if value]


def _number(value: Any, form: str) -> str:
    return form.format(value) if isinstance(value, int | float) else ""


def _short(values: Any, digits: int = 4) -> list[float]:
    return [float(f"{float(value):.{digits}g}") for value in np.asarray(values)]
