"""Matching files, and the files of a match."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.correspondence.subvertex import subvertex_map
from acnn.errors import InputError
from acnn.files import make_folder, write_whole
from acnn.pipeline.map_files import fingerprint
from acnn.pipeline.match import TORN, match_pair, match_shape
from acnn.pipeline.run import Run, open_run
from acnn.shapes import Mesh, load, save
from acnn.shapes.coloring import position_bytes
from acnn.shapes.shape import FloatArray, IntArray, Shape
from acnn.surface import Surface, surface_of
from acnn.types import Progress, begin_stage

DOUBTFUL = 0.5
"""Mean confidence below which a match is called doubtful."""

UNREACHED = 0.5
"""Share of the target's area that a map of a whole shape should reach at least."""


@dataclass(frozen=True, eq=False)
class FileMatch:
    """Two shapes that were matched, with all that is needed to show them.

    - a, target: as loaded; the target is shape B, or the reference of a network
    - here, there: A and the target in run units
    - matched: (n,) for each vertex of A one of the target
    - confidence: (n,) in 0..1
    - colors: (m, 3) of the target's vertices
    - to_reference: True where the target is the reference of a network
    - facts: as `match_files` returns them
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


def match_files(
    a: Path,
    b: Path | None,
    model: Run | Path | str | None,
    out: Path,
    *,
    refinement: str = "auto",
    unit: float | None = None,
    barycentric: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
    keep: Callable[[FileMatch], object] | None = None,
) -> dict[str, Any]:
    """Match shape A to shape B (`match_pair`), or to the reference of a network (`match_shape`), and write the result.

    Files: `query_to_reference.txt`, or `a_to_b.txt`: on line i the vertex that matches vertex i of A's file, both
    counted from 0 as they stand in the files, -1 where A's vertex was left out on loading; the same counted from 1 as
    `.vts`, 0 where left out; `confidence.txt`; `map.npz` with all arrays, of shapes as loaded, and the `fingerprint` of
    both; and the shapes in corresponding colours, as `.ply` and, of meshes, `.glb`. With `barycentric`, points inside
    triangles as well: `NAME_faces` and `NAME_weights` in `map.npz`, the faces of the target as loaded.

    `keep` is called with the match at the end, to show it, say (`acnn.viewer.match_page`).

    Returns facts about the match; `notices` is what a user should know before trusting it.

    Raises InputError, before any work, where `out` cannot be a folder or the target of `barycentric` is a cloud.
    """
    begin_stage(progress, "reading")
    shape = load(a)
    target = load(b) if b is not None else None
    arguments: dict[str, Any] = {"refinement": refinement, "unit": unit, "cache": cache, "progress": progress}
    if target is None and model is None:
        raise InputError("Without a network there is no reference: give a second shape to match to.")
    if barycentric and target is not None and not isinstance(target, Mesh):
        raise InputError(f"{b}: a point cloud has no triangles for points to lie in. Leave out --barycentric.")
    make_folder(out / "map.npz")
    if target is None:
        assert model is not None
        run = model if isinstance(model, Run) else open_run(model)
        alone = match_shape(shape, run, **arguments)
        goal: Shape = run.reference
        name, label = "query_to_reference", "reference"
        here, there = alone.surface, surface_of(run.reference, run.facts.get("unit"))
        matched, confidence = alone.query_to_reference, alone.confidence
        arrays: dict[str, Any] = {name: matched, "confidence": confidence}
        facts: dict[str, Any] = {"route": "network", "why": "", "model": run.name, "refinement": alone.facts}
        facts |= {"mean_confidence": float(confidence.mean())}
    else:
        pair = match_pair(shape, target, model, **arguments)
        goal, name, label = target, "a_to_b", "b"
        here, there, matched, confidence, facts = pair.a, pair.b, pair.a_to_b, pair.confidence, pair.facts
        arrays = {name: matched, "confidence": confidence}
        if pair.through is not None:
            arrays |= {"query_to_reference": pair.through[0], "b_to_reference": pair.through[1]}
    begin_stage(progress, "writing")
    if barycentric:
        points = subvertex_map(matched, here, there)
        arrays |= {f"{name}_faces": points.faces, f"{name}_weights": points.weights}
    arrays |= {"a_fingerprint": fingerprint(shape), f"{label}_fingerprint": fingerprint(goal)}
    colors = position_bytes(goal.vertices)
    _save_colored(goal, colors, out / label)
    _save_colored(shape, colors[matched], out / "a")
    _write_map(out, name, matched if target is None else _numbered_as_file(matched, target), confidence, shape, arrays)
    facts["coverage"] = float(there.vertex_areas[np.unique(matched)].sum() / there.vertex_areas.sum())
    sizes = {"vertices": len(shape.vertices), "target_vertices": len(goal.vertices)}
    facts = sizes | facts | {"notices": notices(facts, here, there), "map": str(out / f"{name}.txt"), "out": str(out)}
    if keep is not None:
        keep(FileMatch(shape, goal, here, there, matched, confidence, colors, target is None, facts))
    return facts


def notices(facts: dict[str, Any], here: Surface, there: Surface) -> list[str]:
    """What speaks against a match, in words; empty where nothing does."""
    found = []
    sure = min(facts["mean_confidence"], facts.get("target_mean_confidence", 1.0))
    if facts["route"] == "descriptors":
        found.append(f"Matched by descriptors: {facts['why']}. Left and right, or limbs, may be exchanged: look at it.")
        if sure < DOUBTFUL:
            found.append(f"Lengths change by {1 - sure:.0%} on average: the map is doubtful, at least in places.")
    elif sure < DOUBTFUL:
        found.append(
            f"The network is unsure (mean confidence {sure:.0%}): the shapes are unlike those it learned from, and the "
            "map is doubtful. Try --model none (descriptors alone), or train on shapes like these (acnn train)."
        )
    if facts.get("distortion", 0.0) > TORN:
        found.append("Neighbours are matched far apart: the map is torn, and wrong at least in places.")
    share = float(here.vertex_areas.sum() / there.vertex_areas.sum())
    dense = len(here.vertices) > 0.5 * len(there.vertices)  # a coarse query cannot reach all vertices
    if dense and facts["coverage"] < UNREACHED * min(share, 1.0):
        found.append(f"Only {facts['coverage']:.0%} of the target is reached by the map.")
    return found


def _write_map(out: Path, name: str, matched: IntArray, confidence: FloatArray, shape: Shape, arrays: Any) -> None:
    """The files of a map: text from 0 and from 1, confidence, all arrays."""
    rows = _rows_of_file(matched, shape, -1)
    _write_lines(out / f"{name}.txt", rows, "%d")
    _write_lines(out / f"{name}.vts", rows + 1, "%d")
    _write_lines(out / "confidence.txt", _rows_of_file(confidence, shape, 0.0), "%.6f")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_whole(out / "map.npz", buffer.getvalue())


def _save_colored(shape: Shape, rgb: NDArray[np.uint8], path: Path) -> None:
    """The shape in colours, for mesh programs and, a mesh, for browsers."""
    colors = np.concatenate([rgb, np.full((len(rgb), 1), 255, np.uint8)], axis=1)
    if not isinstance(shape, Mesh):
        save(replace(shape, colors=colors), path.with_suffix(".ply"))
        return
    for suffix in (".ply", ".glb"):
        save(replace(shape, colors=colors, texture=None), path.with_suffix(suffix))


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
