"""Page of shape statistics: sliders for the modes, scores of the shapes, quality of the model, in one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acnn._version import __version__
from acnn.errors import InputError
from acnn.registration.statistics import ShapeStatistics
from acnn.surface.simplify import decimate
from acnn.types import FloatArray, IntArray
from acnn.viewer.pages import Page, packed_indices, packed_points, packed_values, page_html, scale_stops, write_page

STATISTICS = Page(
    body="statistics.html",
    styles=("report.css", "statistics.css"),
    scripts=("charts.js", "statistics.js"),
    stage={
        "label": "3D view: the model on the left, the chosen shape on the right",
        "left": "model",
        "right": "shape",
        "all": "both",
        "click": "move the sliders to change the model",
        "keys": "N and P change the shape, ",
        "range": "",
        "below": "",
    },
)
LARGEST, BUDGET = 5000, 1_200_000
"""Vertices of a shape on the page, and of all shapes and modes together (6 bytes each, 8 as text)."""


@dataclass(frozen=True, eq=False)
class StatisticsPage:
    """What the page shows.

    Attributes
    ----------
    title : str
        Name of the collection.
    statistics : ShapeStatistics
        The model.
    faces : (m, 3) array
        Triangles of all shapes.
    names : sequence of str
        Of the shapes.
    groups : sequence of str or None, or None
        Group of each shape.
    notices : sequence of str
        What the reader should know.
    """

    title: str
    statistics: ShapeStatistics
    faces: IntArray
    names: Sequence[str]
    groups: Sequence[str | None] | None = None
    notices: Sequence[str] = ()


def write_statistics_page(page: StatisticsPage, out: Path) -> Path:
    """Write the page as one HTML file.

    Parameters
    ----------
    page : StatisticsPage
        What it shows.
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
    return write_page(statistics_html(page), out)


def statistics_html(page: StatisticsPage) -> str:
    """Return the page as text."""
    statistics = page.statistics
    kept, faces = _reduced(statistics.mean, page.faces, len(statistics.aligned) + len(statistics.modes))
    displacements = statistics.standard_deviations[:, None, None] * statistics.modes[:, kept]
    comparison = statistics.groups
    count = len(statistics.mean)
    content = {
        "version": __version__,
        "title": page.title,
        "summary": f"Variation of {len(page.names)} shapes of {count:,} vertices around their mean."
        + ("" if len(kept) == count else f" Shown with {len(kept):,} vertices."),
        "notices": list(page.notices),
        "cards": _cards(statistics),
        "names": list(page.names),
        "groups": None
        if comparison is None or page.groups is None
        else [-1 if group is None else comparison.names.index(group) for group in page.groups],
        "faces": packed_indices(faces, len(kept)),
        "mean": packed_points(statistics.mean[kept]),
        "modes": [packed_points(mode) for mode in displacements],
        "shapes": [packed_points(shape) for shape in statistics.aligned[:, kept]],
        "scores": [_short(row, 4) for row in statistics.scores],
        "deviations": _short(statistics.standard_deviations),
        "explained": _short(statistics.explained_variance),
        "compactness": _short(statistics.compactness),
        "generalisation": _short(statistics.generalisation),
        "specificity": _short(statistics.specificity),
        "comparison": None
        if comparison is None
        else {
            "names": list(comparison.names),
            "difference": packed_values(np.linalg.norm(comparison.difference[kept], axis=1)),
            "p": packed_values(comparison.p_values[kept], 1.0),
        },
        "stops": scale_stops("heat"),
    }
    return page_html(STATISTICS, f"{page.title}: shape statistics", content)


def _cards(statistics: ShapeStatistics) -> list[dict[str, str]]:
    facts = [
        ("Shapes", str(len(statistics.aligned)), f"{len(statistics.mean):,} vertices each"),
        (
            "Modes",
            str(len(statistics.modes)),
            f"explain {100 * statistics.compactness[-1]:.1f} % of the variance",
        ),
        (
            "Typical deviation",
            f"{np.sqrt(statistics.total_variance):.3g}",
            "root mean square distance of a vertex from the mean",
        ),
    ]
    if statistics.weights is not None:
        missing = 100 * float(np.mean(statistics.weights == 0))
        facts.append(("Vertices without data", f"{missing:.1f} %", "filled in by the model"))
    if statistics.groups is not None:
        groups = statistics.groups
        names = " and ".join(f"{n} {name}" for n, name in zip(groups.counts, groups.names, strict=True))
        tested = np.isfinite(groups.p_values)
        local = 100 * float(np.mean(groups.p_values[tested] <= 0.05)) if tested.any() else 0.0
        facts += [
            ("Groups differ, p-value", f"{groups.p_value:.3g}", f"{names}; {groups.permutations:,} permutations"),
            ("Vertices that differ", f"{local:.1f} %", "p ≤ 0.05, corrected for multiple comparison"),
        ]
    return [{"name": name, "value": value, "note": note} for name, value, note in facts]


def _reduced(mean: FloatArray, faces: IntArray, shapes: int) -> tuple[IntArray, IntArray]:
    """Vertices to show, and faces of these; all of them where the mesh cannot be simplified."""
    count = max(500, min(LARGEST, BUDGET // shapes))
    everything = np.arange(len(mean)), faces
    if len(mean) <= count:
        return everything
    try:
        return decimate(mean.astype(np.float64), faces.astype(np.int32), count)
    except InputError:
        return everything


def _short(numbers: FloatArray, digits: int = 5) -> list[float]:
    return [float(f"{x:.{digits}g}") for x in numbers]
