"""Matching files: a shape to the reference of a run, or to another shape through it."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.correspondence import SoftMap, query_to_target_through, refine
from acnn.correspondence.refine import known_method, suitable_method
from acnn.correspondence.subvertex import subvertex_map
from acnn.correspondence.unlearned import match_without_network
from acnn.descriptors.settings import describe_surface
from acnn.patches import build_patches, cached_patches
from acnn.pipeline.run import Run, open_run
from acnn.shapes import Mesh, load, save
from acnn.shapes.formats.files import write_whole
from acnn.shapes.shape import FloatArray, IntArray, Shape
from acnn.surface import Surface, surface_of
from acnn.surface.rows import Progress


@dataclass(frozen=True, eq=False)
class ShapeMatch:
    """A shape matched to the reference.

    - shape, surface: as loaded, and in run units
    - soft_map: what the network says
    - query_to_reference: (n,) the map, refined where asked for
    - confidence: (n,) of the network
    - facts: about the refinement
    """

    shape: Shape
    surface: Surface
    soft_map: SoftMap
    query_to_reference: IntArray
    confidence: FloatArray
    facts: dict[str, Any]


def match_shape(
    shape: Shape,
    run: Run,
    *,
    refinement: str = "auto",
    unit: float | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> ShapeMatch:
    """Match a mesh or a cloud to the reference of a run.

    Parameters
    - shape: as `load` returns it
    - run: the network
    - refinement: `none`, `fm`, `zoomout`, `pfm` or `auto`
    - unit: length of one run unit in the shape's coordinates; None is that of the run where it has one (it learned
      from parts, which come in the units of their reference), else the shape's own geodesic diameter / 200
    - cache: whether operators are looked for and kept in the cache
    - progress: called with (done, in all) while the operators are computed
    """
    method = known_method(refinement)
    unit = unit if unit is not None else run.facts.get("unit")
    make = cached_patches if cache else build_patches
    patches = make(shape, run.config.patches, unit=unit, progress=progress)
    surface = surface_of(shape, patches.unit)
    soft = run.soft_map(describe_surface(surface, run.config.descriptors, shape=shape), patches)
    refined = refine(soft, surface, surface_of(run.reference, run.facts.get("unit")), method)
    return ShapeMatch(shape, surface, soft, refined.query_to_reference, soft.confidence, refined.facts)


def match_files(
    a: Path,
    b: Path | None,
    run: Run | Path | str,
    out: Path,
    *,
    refinement: str = "auto",
    unit: float | None = None,
    barycentric: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Match shape A to the reference, or to shape B through it, and write the result.

    Files: `query_to_reference.txt`, or `a_to_b.txt`: on line i the vertex that matches vertex i of A's file, both
    counted from 0 as they stand in the files, -1 where A's vertex was left out on loading; the same counted from 1 as
    `.vts`, 0 where left out; `confidence.txt`; `map.npz` with all arrays, of shapes as loaded; and the shapes in
    corresponding colours, as `.ply` and `.glb`. With `barycentric`, points inside triangles as well: `NAME_faces` and
    `NAME_weights` in `map.npz`, the faces of the target as loaded.

    Returns facts about the match.
    """
    opened = run if isinstance(run, Run) else open_run(run)
    shape = load(a)
    target = load(b) if b is not None else None
    arguments: dict[str, Any] = {"refinement": refinement, "unit": unit, "cache": cache, "progress": progress}
    first = match_shape(shape, opened, **arguments)
    out.mkdir(parents=True, exist_ok=True)
    colors = _position_colors(opened.reference.vertices)
    facts: dict[str, Any] = {
        "vertices": len(shape.vertices),
        "mean_confidence": float(first.confidence.mean()),
        "route": "network",
        "refinement": first.facts,
    }
    arrays: dict[str, Any] = {"query_to_reference": first.query_to_reference, "confidence": first.confidence}
    if target is None:
        name = "query_to_reference"
        matched = first.query_to_reference
        reached = surface_of(opened.reference, opened.facts.get("unit"))
        _save_colored(Mesh(opened.reference.vertices, opened.reference.faces), colors, out / "reference")
    else:
        second = match_shape(target, opened, **arguments)
        name = "a_to_b"
        matched = query_to_target_through(
            first.query_to_reference,
            second.query_to_reference,
            surface_of(opened.reference, opened.facts.get("unit")),
            second.confidence,
        )
        # Directly between the two shapes, the steps that the reference's vertices leave are mended.
        method = known_method(refinement)
        matched = refine(matched, first.surface, second.surface, method, confidence=first.confidence).query_to_reference
        arrays |= {"a_to_b": matched, "b_to_reference": second.query_to_reference}
        facts |= {"target_vertices": len(target.vertices), "target_mean_confidence": float(second.confidence.mean())}
        colors_b = colors[second.query_to_reference]
        _save_colored(target, colors_b, out / "b")
        colors, reached = colors_b, second.surface
        matched = _numbered_as_file(matched, target)
    if barycentric:
        points = subvertex_map(arrays[name], first.surface, reached)
        arrays |= {f"{name}_faces": points.faces, f"{name}_weights": points.weights}
    _save_colored(shape, colors[arrays[name]], out / "a")
    _write_map(out, name, matched, first.confidence, shape, arrays)
    return facts | {"map": str(out / f"{name}.txt"), "out": str(out)}


def match_files_without_network(
    a: Path,
    b: Path,
    out: Path,
    *,
    unit: float | None = None,
    barycentric: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Match shape A to shape B by descriptors alone (`match_without_network`), and write what `match_files` writes.

    - unit: length of one run unit in A's coordinates; None is its own geodesic diameter / 200, or B's unit where A
      looks like a part of B in the same coordinates
    """
    shape, target = load(a), load(b)
    there = surface_of(target)
    unit, why = (unit, "given") if unit is not None else _unit_of_part(shape, there)
    here = surface_of(shape, unit)
    found = match_without_network(here, there, progress=progress)
    out.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {"a_to_b": found.query_to_reference, "confidence": found.confidence}
    if barycentric:
        points = subvertex_map(found.query_to_reference, here, there)
        arrays |= {"a_to_b_faces": points.faces, "a_to_b_weights": points.weights}
    colors = _position_colors(target.vertices)
    _save_colored(target, colors, out / "b")
    _save_colored(shape, colors[found.query_to_reference], out / "a")
    _write_map(out, "a_to_b", _numbered_as_file(found.query_to_reference, target), found.confidence, shape, arrays)
    return {
        "vertices": len(shape.vertices),
        "target_vertices": len(target.vertices),
        "mean_confidence": float(found.confidence.mean()),
        "route": "descriptors",
        "unit": {"length": here.unit, "why": why},
        "refinement": {"why": f"from {found.facts['start']}; {found.facts['chosen_because']}", **found.facts},
        "map": str(out / "a_to_b.txt"),
        "out": str(out),
    }


def _unit_of_part(shape: Shape, whole: Surface) -> tuple[float | None, str]:
    """The whole's unit for a shape that looks like a part of it in the same coordinates; None for any other."""
    there = surface_of(shape, whole.unit)
    method, why = suitable_method(there, whole)
    size = np.linalg.norm(np.ptp(there.vertices, axis=0)) / np.linalg.norm(np.ptp(whole.vertices, axis=0))
    if method == "pfm" and 0.1 < size < 1.1:
        return whole.unit, f"that of B, of which A seems to be a part: {why}"
    return None, "A's own geodesic diameter / 200"


def _write_map(out: Path, name: str, matched: IntArray, confidence: FloatArray, shape: Shape, arrays: Any) -> None:
    """The files of a map: text from 0 and from 1, confidence, all arrays."""
    rows = _rows_of_file(matched, shape, -1)
    _write_lines(out / f"{name}.txt", rows, "%d")
    _write_lines(out / f"{name}.vts", rows + 1, "%d")
    _write_lines(out / "confidence.txt", _rows_of_file(confidence, shape, 0.0), "%.6f")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_whole(out / "map.npz", buffer.getvalue())


def _save_colored(shape: Shape, colors: NDArray[np.uint8], path: Path) -> None:
    """The shape in colours, for mesh programs and for browsers."""
    colored = replace(shape, colors=colors, texture=None) if isinstance(shape, Mesh) else replace(shape, colors=colors)
    save(colored, path.with_suffix(".ply"))
    save(colored, path.with_suffix(".glb"))


def _rows_of_file(values: Any, shape: Shape, missing: float) -> Any:
    """One value for each vertex of the shape's file."""
    if shape.source is None:
        return values
    place = shape.source.from_file
    return np.where(place >= 0, np.asarray(values)[place], missing)


def _numbered_as_file(vertices: IntArray, shape: Shape) -> IntArray:
    """Vertices of a shape as they are numbered in its file."""
    return vertices if shape.source is None else shape.source.to_file[vertices]


def _write_lines(path: Path, values: Any, form: str) -> None:
    write_whole(path, "".join(form % value + "\n" for value in values).encode())


def _position_colors(vertices: FloatArray) -> Any:
    """RGBA for each vertex from where it is: the box around the shape spans the colours."""
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    share = (vertices - low) / np.maximum(high - low, 1e-300)
    return np.concatenate([np.round(40 + 200 * share), np.full((len(vertices), 1), 255)], axis=1).astype(np.uint8)
