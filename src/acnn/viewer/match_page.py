"""Page of a match: both shapes in 3D in one self-contained HTML file."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from numpy.typing import NDArray

from acnn._version import __version__
from acnn.correspondence.point_maps import barycentric_map, vertex_distortions
from acnn.correspondence.texture import transfer_texture
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape, Texture
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray
from acnn.viewer.pages import (
    CONFIDENCE_STOPS,
    NONE16,
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
        "click": "click a point to see its match",
        "keys": "",
        "range": "",
        "below": '<svg id="overlay" class="overlay" aria-hidden="true"></svg>',
    },
)
LARGEST_IMAGE = 2048
"""Longest side of a texture in the page, in pixels."""

SMOOTHED = 100_000
"""Vertices of A up to which the checkerboard is drawn at points inside triangles of B rather than at vertices."""

FLAT = 0.45
"""Ratio of the extents along y and z below which z points up: a standing body is flat along y where z is up."""

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
    report : Mapping[str, Any]
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
    report: Mapping[str, Any]


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
    turned = match.here.vertices @ _alignment(match).T
    points = _points(match)
    content = {
        "version": __version__,
        "title": f"{a} → {b}",
        "map": "query_to_reference" if match.to_reference else "a_to_b",
        "verdict": match.report["verdict"],
        "notices": match.report["notices"],
        "up": _up(turned, match.there.vertices),
        "a": _shape(match.a, match.here, turned) | {"name": "A", "file": a},
        "b": _shape(match.target, match.there, match.there.vertices)
        | {
            "name": "the reference" if match.to_reference else "B",
            "file": "" if match.to_reference else b,
            "colors": packed(match.colors),
        },
        "matched": packed_indices(match.matched, len(match.there.vertices)),
        "images": _images(match, points),
        "confidence": packed_values(match.confidence, 1.0),
        "distortion": packed_values(vertex_distortions(match.matched, match.here, match.there), 1.0),
        "stops": {"confidence": CONFIDENCE_STOPS, "distortion": CONFIDENCE_STOPS[::-1]},
        "facts": _facts(match),
    }
    content["a"] |= {"texture": None}
    content["b"] |= {"texture": None}
    target = match.target
    if points is not None and isinstance(match.a, Mesh) and isinstance(target, Mesh) and has_image(target):
        content["a"] |= {"texture": _texture(transfer_texture(match.a, target, points)[0])}
        content["b"] |= {"texture": _texture(target.texture)}
    return page_html(MATCH, f"{a} matched to {b}", content)


def _shape(shape: Shape, surface: Surface, vertices: FloatArray) -> dict[str, Any]:
    """A shape in normalised units, in which both have comparable size whatever the units of their files."""
    count = len(surface.vertices)
    numbers: IntArray = np.arange(count) if shape.source is None else shape.source.to_file
    same = np.array_equal(numbers, np.arange(count))
    return packed_points(vertices) | {
        "faces": packed_indices(surface.faces, count),
        "cloud": surface.is_cloud,
        "numbers": None if same else packed_indices(numbers, int(numbers.max()) + 1),
        "file_vertices": count if shape.source is None else len(shape.source.from_file),
    }


def _alignment(match: FileMatch) -> FloatArray:
    """(3, 3) rotation of A to the target that brings matched points closest, weighted by confidence."""
    weights = np.maximum(match.confidence, 1e-3)[:, None]
    here, there = match.here.vertices, match.there.vertices[match.matched]
    here = here - (weights * here).sum(axis=0) / weights.sum()
    there = there - (weights * there).sum(axis=0) / weights.sum()
    left, _, right = np.linalg.svd(there.T @ (weights * here))
    left[:, 2] *= np.sign(np.linalg.det(left @ right))  # a rotation, never a reflection
    return left @ right


def _up(a: FloatArray, b: FloatArray) -> str:
    """The axis that points up in both aligned shapes: y, or z where both are flat along y."""
    extents = np.ptp(a, axis=0) + np.ptp(b, axis=0)
    return "z" if extents[1] < FLAT * extents[2] else "y"


def _points(match: FileMatch) -> BarycentricPoints | None:
    """The matches as points inside triangles; None where the target is a cloud, or A is large."""
    if match.there.is_cloud or len(match.matched) > SMOOTHED:
        return None
    return barycentric_map(match.matched, match.here, match.there)


def _images(match: FileMatch, points: BarycentricPoints | None) -> dict[str, str] | None:
    """Coordinates of the matches on the target, packed as those of its vertices."""
    if points is None:
        return None
    target = match.there.vertices
    frame = packed_points(target)
    steps = (points.interpolate(target[match.there.faces]) - frame["low"]) / frame["step"]
    return packed(np.clip(np.rint(steps), 0, NONE16).astype(np.uint16))


def has_image(shape: Shape) -> bool:
    """Whether a shape has a texture with its image."""
    return isinstance(shape, Mesh) and shape.texture is not None and shape.texture.image is not None


def texture_jpeg(image: NDArray[np.uint8]) -> bytes:
    """The image of a texture as JPEG, of at most `LARGEST_IMAGE` pixels a side."""
    small = PIL.Image.fromarray(image[..., :3])
    small.thumbnail((LARGEST_IMAGE, LARGEST_IMAGE))
    stream = io.BytesIO()
    small.save(stream, "JPEG", quality=92, subsampling=0)
    return stream.getvalue()


def _texture(texture: Texture | None) -> dict[str, Any]:
    """Texture coordinates in 16 bits, the corners of every face, and the image as a data address."""
    assert texture is not None
    assert texture.image is not None
    low, high = float(texture.uv.min()), float(texture.uv.max())
    step = max(high - low, 1e-12) / NONE16
    return {
        "uv": packed(np.rint((texture.uv - low) / step).astype(np.uint16)),
        "low": low,
        "step": step,
        "faces": packed_indices(texture.uv_faces, len(texture.uv)),
        "image": f"data:image/jpeg;base64,{base64.b64encode(texture_jpeg(texture.image)).decode('ascii')}",
    }


def _facts(match: FileMatch) -> list[dict[str, str]]:
    """Facts about the match as texts: name, value, note."""
    facts = match.report
    target = "the reference" if match.to_reference else "B"
    entries = [
        ("Verdict", facts["verdict"], VERDICTS[facts["verdict"]]),
        ("Matched by", *_route(match)),
        (
            "Mean confidence",
            _percent(facts["mean_confidence"]),
            "Estimated probability that a match is within 0.05 of the root of the area, averaged over A.",
        ),
        ("Coverage", _percent(facts["coverage"]), _coverage(match, target)),
    ]
    if "distortion" in facts:
        entries.append(
            ("Distortion", _percent(facts["distortion"]), "Mean relative change of edge lengths from A to B.")
        )
    entries.append(("Refinement", *_refinement(facts["refinement"])))
    for name, shape, surface, count in (
        ("A", match.a, match.here, facts.get("vertices")),
        (target, match.target, match.there, facts.get("target_vertices")),
    ):
        count = len(surface.vertices) if count is None else count
        entries.append((f"Vertices of {name}", f"{count:,}", _geometry(shape, surface, count)))
    if any(copy["vertices"] != copy["working"] for copy in _copies(facts)):
        sizes = " and ".join(f"{copy['working']:,}" for copy in _copies(facts))
        note = "The vertices that were matched; the map was lifted from them to all vertices."
        entries.append(("Working copies", sizes, note))
    unit = facts.get("unit", {})
    if unit.get("length") is not None:
        entries.append(("Unit of length", f"{unit['length']:.4g}", f"In coordinates of A: {unit['why']}."))
    return [{"name": name, "value": value, "note": note} for name, value, note in entries]


def _route(match: FileMatch) -> tuple[str, str]:
    facts = match.report
    if facts["route"] != "network":
        return facts["route"], _sentence(facts["why"])
    model = Path(facts["model"]).name if facts.get("model") else ""
    way = "A is matched to its reference." if match.to_reference else "Both are matched to its reference, then A to B."
    return f"network {model}".strip(), " ".join(filter(None, [way, _sentence(facts["why"])]))


def _refinement(facts: Mapping[str, Any]) -> tuple[str, str]:
    name, what = REFINEMENTS.get(facts["used"], (facts["used"], ""))
    if "start" in facts:
        more = f"Started from {facts['start']}."
    else:
        more = f"Why: {facts['why']}." if facts["used"] == "none" else _sentence(facts["why"])
    return name, f"{what} {more}".strip()


def _coverage(match: FileMatch, target: str) -> str:
    note = f"Percentage of the area of {target} whose vertices are matched from A."
    if match.report.get("vertices", len(match.here.vertices)) < match.report.get(
        "target_vertices", len(match.there.vertices)
    ):
        note += " A has fewer vertices, so it cannot match all of them."
    return note


def _copies(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Numbers of vertices of the shapes and of the copies that were matched."""
    copies = facts.get("working_copies", {})
    return [copies[name] for name in ("a", "b") if name in copies]


def _geometry(shape: Shape, surface: Surface, count: int) -> str:
    kind = "A point cloud." if surface.is_cloud else f"A mesh of {len(surface.faces):,} triangles."
    if len(surface.vertices) < count:
        return f"{kind[:-1]}, as far as it is shown here: with {len(surface.vertices):,} of its vertices."
    if shape.source is None or len(shape.source.from_file) == len(surface.vertices):
        return kind
    return f"{kind} The file has {len(shape.source.from_file):,} vertices; some were merged or removed on loading."


def _name(shape: Shape, default: str) -> str:
    return default if shape.source is None or not shape.source.path else shape.source.name


def _sentence(text: str) -> str:
    return text and f"{text[0].upper()}{text[1:].rstrip('.')}."


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f}\u00a0%"
