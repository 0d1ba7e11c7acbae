"""Page of a match: both shapes in 3D in one self-contained HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn._version import __version__
from acnn.shapes.mesh import Shape
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray
from acnn.viewer.pages import (
    CONFIDENCE_STOPS,
    Page,
    packed,
    packed_indices,
    packed_points,
    packed_values,
    page_html,
    write_page,
)

MATCH = Page(
    body="match.html",
    styles=("match.css",),
    scripts=("match.js",),
    stage={
        "label": "3D view: shape A on the left, the shape it is matched to on the right",
        "left": "a",
        "right": "b",
        "all": "both",
        "keys": "",
        "range": "",
        "below": "",
    },
)
VERDICTS = {
    "good": "No problem was found. Left/right or limbs may still be swapped; please inspect the colours.",
    "doubtful": "The map is wrong in places, or needs inspection before use.",
    "failed": "The map should not be used.",
}
"""Meaning of each verdict."""

REFINEMENTS = {
    "none": ("none", "The initial matches."),
    "zoomout": ("ZoomOut", "A smooth map that agrees with most of the initial matches."),
    "fm": ("functional map", "A smooth map through the most confident initial matches."),
    "pfm": ("partial functional map", "A smooth map onto the region that A covers."),
}
"""Name and description of each refinement method."""


@dataclass(frozen=True, eq=False)
class FileMatch:
    """Two matched shapes, with everything needed to show them.

    Attributes
    ----------
    a, target : Shape
        Shapes as loaded; the target is shape B, or the reference of a network.
    here, there : Surface
        A and the target in normalised units.
    matched : (n,) array
        Matched vertex of the target for each vertex of A.
    confidence : (n,) array
        In 0..1.
    colors : (m, 3) array
        Colours of the target vertices, uint8.
    to_reference : bool
        Whether the target is the reference of a network.
    facts : dict[str, Any]
        Facts of `match_files`.
    """

    a: Shape
    target: Shape
    here: Surface
    there: Surface
    matched: IntArray
    confidence: FloatArray
    colors: NDArray[np.uint8]
    to_reference: bool
    facts: dict[str, Any]


def write_match_page(match: FileMatch, out: Path) -> Path:
    """Write the page of a match as one HTML file.

    Parameters
    ----------
    match : FileMatch
        As `match_files` passes to `keep`.
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
    return write_page(match_html(match), out)


def match_html(match: FileMatch) -> str:
    """Return the page as text."""
    a = _name(match.a, "A")
    b = "the reference" if match.to_reference else _name(match.target, "B")
    content = {
        "version": __version__,
        "title": f"{a} → {b}",
        "verdict": match.facts["verdict"],
        "notices": match.facts["notices"],
        "a": _shape(match.a, match.here) | {"name": "A", "file": a, "up": _up(match)},
        "b": _shape(match.target, match.there)
        | {
            "name": "the reference" if match.to_reference else "B",
            "file": "" if match.to_reference else b,
            "up": "y",
            "colors": packed(match.colors),
        },
        "matched": packed_indices(match.matched, len(match.there.vertices)),
        "confidence": packed_values(match.confidence, 1.0),
        "stops": CONFIDENCE_STOPS,
        "facts": _facts(match),
    }
    return page_html(MATCH, f"{a} matched to {b}", content)


def _shape(shape: Shape, surface: Surface) -> dict[str, Any]:
    """A shape in normalised units, in which both have comparable size whatever the units of their files."""
    count = len(surface.vertices)
    numbers: IntArray = np.arange(count) if shape.source is None else shape.source.to_file
    same = np.array_equal(numbers, np.arange(count))
    return packed_points(surface.vertices) | {
        "faces": packed_indices(surface.faces, count),
        "cloud": surface.is_cloud,
        "numbers": None if same else packed_indices(numbers, int(numbers.max()) + 1),
    }


def _up(match: FileMatch) -> str:
    """The axis of A that correlates with the height of the matches, so that both stand upright."""
    height = match.there.vertices[match.matched, 1]
    correlations = [_correlation(match.here.vertices[:, axis], height) for axis in range(3)]
    # poses differ, so another axis must be clearly better than y
    return "xyz"[int(np.argmax(correlations))] if max(correlations) > correlations[1] + 0.3 else "y"


def _correlation(x: FloatArray, y: FloatArray) -> float:
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / max(float(np.linalg.norm(x) * np.linalg.norm(y)), 1e-300))


def _facts(match: FileMatch) -> list[dict[str, str]]:
    """Facts about the match as texts: name, value, note."""
    facts = match.facts
    target = "the reference" if match.to_reference else "B"
    entries = [
        ("Verdict", facts["verdict"], VERDICTS[facts["verdict"]]),
        ("Matched by", *_route(match)),
        (
            "Mean confidence",
            _percent(facts["mean_confidence"]),
            "How well edge lengths are preserved around each vertex, and how few vertices share its match.",
        ),
        ("Coverage", _percent(facts["coverage"]), _coverage(match, target)),
    ]
    if "distortion" in facts:
        entries.append(
            ("Distortion", _percent(facts["distortion"]), "Mean relative change of edge lengths from A to B.")
        )
    entries.append(("Refinement", *_refinement(facts["refinement"])))
    entries.append(("Vertices of A", f"{len(match.here.vertices):,}", _geometry(match.a, match.here)))
    entries.append((f"Vertices of {target}", f"{len(match.there.vertices):,}", _geometry(match.target, match.there)))
    unit = facts.get("unit", {})
    if unit.get("length") is not None:
        entries.append(("Unit of length", f"{unit['length']:.4g}", f"In coordinates of A: {unit['why']}."))
    return [{"name": name, "value": value, "note": note} for name, value, note in entries]


def _route(match: FileMatch) -> tuple[str, str]:
    facts = match.facts
    if facts["route"] != "network":
        return "descriptors", _sentence(facts["why"])
    model = Path(facts["model"]).name if facts.get("model") else ""
    way = "A is matched to its reference." if match.to_reference else "Both are matched to its reference, then A to B."
    return f"network {model}".strip(), " ".join(filter(None, [way, _sentence(facts["why"])]))


def _refinement(facts: dict[str, Any]) -> tuple[str, str]:
    name, what = REFINEMENTS.get(facts["used"], (facts["used"], ""))
    if "start" in facts:
        more = f"Started from {facts['start']}."
    else:
        more = f"Why: {facts['why']}." if facts["used"] == "none" else _sentence(facts["why"])
    return name, f"{what} {more}".strip()


def _coverage(match: FileMatch, target: str) -> str:
    note = f"Percentage of the area of {target} whose vertices are matched from A."
    if len(match.here.vertices) < len(match.there.vertices):
        note += " A has fewer vertices, so it cannot match all of them."
    return note


def _geometry(shape: Shape, surface: Surface) -> str:
    kind = "A point cloud." if surface.is_cloud else f"A mesh of {len(surface.faces):,} triangles."
    if shape.source is None or len(shape.source.from_file) == len(surface.vertices):
        return kind
    return f"{kind} The file has {len(shape.source.from_file):,} vertices; some were merged or removed on loading."


def _name(shape: Shape, default: str) -> str:
    return default if shape.source is None or not shape.source.path else shape.source.name


def _sentence(text: str) -> str:
    return text and f"{text[0].upper()}{text[1:].rstrip('.')}."


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}\u00a0%"
