"""Report of a run: matched shapes, errors and settings in one self-contained HTML file that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn._version import __version__
from acnn.evaluation.curves import report_curves
from acnn.evaluation.princeton import ShapeEvaluation
from acnn.evaluation.published import (
    FAUST_EXACT,
    FAUST_REMESHED_ERROR,
    SHREC16_CUTS_ERROR,
    SHREC16_HOLES_ERROR,
    PublishedTable,
)
from acnn.evaluation.results import Matched, errors_of_vertices
from acnn.methods.run import Run
from acnn.shapes.mesh import Mesh
from acnn.training.log import read_log
from acnn.types import FloatArray, IntArray
from acnn.viewer.colors import position_bytes
from acnn.viewer.pages import (
    CONFIDENCE_STOPS,
    Page,
    is_page,
    packed,
    packed_indices,
    packed_points,
    packed_values,
    page_html,
    scale_stops,
    write_page,
)

REPORT = Page(
    body="report.html",
    styles=("report.css",),
    scripts=("charts.js", "shapes.js", "report_stage.js", "tables.js", "report.js"),
    stage={
        "label": "3D view: the reference on the left, the chosen shape on the right",
        "left": "reference",
        "right": "shape",
        "all": "all",
        "click": "click a point to see its match",
        "keys": "N and P change the shape, ",
        "range": '<label id="bar-range">up to <select id="range"></select></label>',
        "below": '<ul class="thumbs" id="thumbs" aria-label="All shapes"></ul>',
    },
)
LENGTHS = {"sqrt_area": "√area", "diameter": "geodesic diameter"}
LOG_POINTS = 240
"""Largest number of points of the loss curve."""

RINGS = 2
"""Largest width, in edges, of gaps between true points that do not count as missing."""


@dataclass(frozen=True, eq=False)
class ReportShape:
    """One matched shape.

    Attributes
    ----------
    name : str
        Of the shape.
    vertices : (n, 3) array
        Positions.
    faces : (k, 3) array
        Triangles; for a point cloud, those of its local triangulation.
    is_cloud : bool
        Whether the shape is a point cloud.
    network, refined : (n,) array
        Matched reference vertices; `refined` is None if nothing was refined.
    truth : (n,) array
        Ground truth: reference vertices, -1 unknown.
    network_errors, refined_errors : (n,) array
        Errors divided by the length of the reference, NaN unknown.
    confidence : (n,) array
        In 0..1.
    missing : (m,) array or None
        Mask of the reference vertices without a counterpart on a partial shape; None for a full shape.
    evaluation, refined_evaluation : ShapeEvaluation
        Figures; the latter is None if nothing was refined.
    """

    name: str
    vertices: FloatArray
    faces: IntArray
    is_cloud: bool
    network: IntArray
    refined: IntArray | None
    truth: IntArray
    network_errors: FloatArray
    refined_errors: FloatArray | None
    confidence: FloatArray
    missing: NDArray[np.bool_] | None
    evaluation: ShapeEvaluation
    refined_evaluation: ShapeEvaluation | None


@dataclass(frozen=True, eq=False)
class ReportData:
    """Data of a report.

    Attributes
    ----------
    title : str
        Name of the run.
    dataset : str
        Name of the dataset.
    run : Run
        Settings, reference and facts.
    shapes : tuple[ReportShape, ...]
        Shapes shown.
    figures : Mapping[str, Any]
        The report of `acnn evaluate --json`.
    published : PublishedTable
        Published figures to compare with.
    comparable : bool
        False if they are for other data.
    log : (points, 2) array
        Seconds and mean loss during training, subsampled.
    """

    title: str
    dataset: str
    run: Run
    shapes: tuple[ReportShape, ...]
    figures: Mapping[str, Any]
    published: PublishedTable
    comparable: bool
    log: FloatArray


def report_of(title: str, dataset: str, run: Run, matched: Sequence[Matched], figures: Mapping[str, Any]) -> ReportData:
    """Collect the data of a report on shapes that are already matched.

    Parameters
    ----------
    title, dataset : str
        Names.
    run : Run
        The run that matched them.
    matched : Sequence[Matched]
        Shapes to show.
    figures : Mapping[str, Any]
        Report of `evaluate_run` on these or more shapes.

    Returns
    -------
    ReportData
    """
    published, comparable = _published_for(dataset)
    shown = tuple(_report_shape(one, run.reference) for one in matched)
    log = _training_log(run.folder / "log.jsonl")
    return ReportData(title, dataset, run, shown, figures, published, comparable, log)


def write_report(data: ReportData, out: Path) -> Path:
    """Write a report as one HTML file.

    Parameters
    ----------
    data : ReportData
        Data of `collect_report`.
    out : Path
        Output file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    return write_page(report_html(data), out)


def is_report(path: Path) -> bool:
    """Return whether a file is a report, which may be overwritten by another."""
    return is_page(REPORT, path)


def report_html(data: ReportData) -> str:
    """Return the page as text."""
    return page_html(REPORT, f"{data.title}: correspondence report", _content(data))


def _content(data: ReportData) -> dict[str, Any]:
    """Data for the scripts of the page."""
    figures = data.figures
    reference = data.run.reference
    published = data.published
    return {
        "title": data.title,
        "version": __version__,
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
            "exact": "exact" in published.quantity,
            "entries": [
                {"method": e.method, "value": e.value, "source": e.source, "note": e.note} for e in published.entries
            ],
        },
        "reference": packed_points(reference.vertices)
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
    """Number of shapes evaluated, and of those shown."""
    measured, shown = len(data.figures["shapes"]), len(data.shapes)
    count = f"{measured} shape{'' if measured == 1 else 's'}"
    of = "" if shown == measured else f", {shown} shown"
    return f"Mean over {count} of “{data.dataset}”{of}." if measured > 1 else f"{count} of “{data.dataset}”."


def _shape(shape: ReportShape, reference_size: int) -> dict[str, Any]:
    count = len(shape.vertices)
    return packed_points(shape.vertices) | {
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


def _figures(report: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not report:
        return None
    names = ("exact", "mean_error_x100", "auc", "coverage", "smoothness")
    figures: dict[str, Any] = {name: report[name] for name in names if name in report}
    return figures | ({"symmetric": _figures(report["symmetric"])} if "symmetric" in report else {})


def _timings(data: ReportData) -> list[list[str]]:
    record = data.run.record
    known = {
        "Shapes trained on": f"{len(record.train)}",
        "Training steps": _number(record.step, "{:.0f}"),
        "Preparing (operators, descriptors)": _number(record.seconds_preparing, "{:.0f} s"),
        "Training": _number(record.seconds_training, "{:.0f} s"),
        "Network, one shape": _number(data.figures.get("seconds_per_shape"), "{:.2f} s"),
    }
    return [[name, value] for name, value in known.items() if value]


def _number(value: Any, form: str) -> str:
    return form.format(value) if isinstance(value, int | float) else ""


def _short(values: Any, digits: int = 4) -> list[float]:
    return [float(f"{float(value):.{digits}g}") for value in np.asarray(values)]


def _report_shape(matched: Matched, reference: Mesh) -> ReportShape:
    shape = matched.example.shape
    is_cloud = not isinstance(shape, Mesh)
    if isinstance(shape, Mesh):
        faces = shape.faces
    else:
        from acnn.surface.surface import surface_of

        faces = surface_of(shape, 1.0).faces
    last = matched.refined_evaluation
    return ReportShape(
        name=matched.name,
        vertices=shape.vertices,
        faces=faces,
        is_cloud=is_cloud,
        network=matched.soft_map.query_to_reference,
        refined=matched.refined,
        truth=matched.example.labels,
        network_errors=errors_of_vertices(matched, matched.evaluation),
        refined_errors=None if last is None else errors_of_vertices(matched, last),
        confidence=matched.soft_map.confidence,
        missing=_missing(matched.example.labels, reference),
        evaluation=matched.evaluation,
        refined_evaluation=last,
    )


def _missing(labels: IntArray, reference: Mesh) -> NDArray[np.bool_] | None:
    """(m,) mask of reference vertices away from all true points; None if they are few, as for a full shape."""
    hit = np.zeros(len(reference.vertices), bool)
    hit[labels[labels >= 0]] = True
    # Vertices between the true points of a coarser shape are not missing: dilation and erosion close such gaps.
    gone = ~_grown(hit, reference.faces)
    if gone.mean() <= 0.02:
        return None
    return _grown(gone, reference.faces) & ~hit


def _grown(chosen: NDArray[np.bool_], faces: IntArray) -> NDArray[np.bool_]:
    grown = chosen.copy()
    for _ in range(RINGS):
        grown[faces[grown[faces].any(axis=1)]] = True
    return grown


def _published_for(dataset: str) -> tuple[PublishedTable, bool]:
    name = dataset.lower()
    if "cuts" in name or "holes" in name:
        return (SHREC16_CUTS_ERROR if "cuts" in name else SHREC16_HOLES_ERROR), "shrec" in name
    if "faust" in name:
        remeshed = "faust_r" in name or "remesh" in name
        return (FAUST_REMESHED_ERROR if remeshed else FAUST_EXACT), True
    return FAUST_EXACT, False


def _training_log(path: Path) -> FloatArray:
    """(points, 2) seconds and mean loss over equal intervals of a training log; empty if there is none."""
    rows = [(step["seconds"], step["loss"]) for step in read_log(path, "seconds", "loss")]
    table = np.array(rows, float).reshape(-1, 2)
    table = table[np.isfinite(table).all(axis=1)]
    if len(table) <= LOG_POINTS:
        return table
    return np.array([part.mean(axis=0) for part in np.array_split(table, LOG_POINTS)])
