"""Matching files, and the files of a match."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.correspondence.judge import Judgement
from acnn.correspondence.map_files import files_of_match, fingerprint
from acnn.correspondence.matchable import check_matchable
from acnn.correspondence.point_maps import barycentric_map
from acnn.errors import InputError
from acnn.files import check_outputs, write_atomic
from acnn.methods.registry import AUTO
from acnn.methods.run import Run
from acnn.progress import Progress, begin_stage
from acnn.runs.cost import machine_memory_mb, match_cost
from acnn.runs.match import match, match_shape, resolve_method
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh, Shape
from acnn.shapes.save import save
from acnn.surface.surface import surface_of
from acnn.types import FloatArray, IntArray
from acnn.viewer.colors import position_bytes
from acnn.viewer.match_page import FileMatch


@check_arguments
def match_files(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str] | None,
    model: Run | str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    *,
    method: str = AUTO,
    refinement: str = "auto",
    reestimate: bool = False,
    unit: float | None = None,
    barycentric: bool = False,
    force: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
    keep: Callable[[FileMatch], object] | None = None,
    announce: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Match shape A to shape B (`match`), or to the reference of a network (`match_shape`), and write the result.

    Files: `query_to_reference.txt`, or `a_to_b.txt`: on line i the vertex that matches vertex i of A's file, both
    counted from 0 as they stand in the files, -1 where A's vertex was left out on loading; the same counted from 1 as
    `.vts`, 0 where left out; `confidence.txt`; `map.npz` with all arrays, of shapes as loaded, the `fingerprint` of
    both, and the names of the `files` that were written; and the shapes in corresponding colours, `a_colored` and
    `b_colored` or `reference_colored`, as `.ply` and, of meshes, `.glb`. With `barycentric`, points inside triangles as
    well: `NAME_faces` and `NAME_weights` in `map.npz`, the faces of the target as loaded.

    The files of an earlier match in `out` are overwritten; any other file of such a name only with `force`, and A and B
    never. `match.html` is kept free for the page.

    `keep` is called with the match at the end, to show it, say (`acnn.viewer.match_page`); `announce` before the work
    with a sentence on what it will cost, where that is much (`match_cost`).

    Parameters
    ----------
    a, b : path
        Files; without B, A is matched to the reference of the model.
    model, method, refinement, unit, cache, progress
        As for `match`.
    out : path
        Folder of the result.
    reestimate : bool
        Take the statistics of batch normalisation from the shape instead of the training shapes.
    barycentric, force, keep, announce
        See above.

    Returns
    -------
    dict[str, Any]
        Facts about the match: `verdict` is `good`, `doubtful` or `failed`, and `notices` what a user should know before
        trusting it.

    Raises
    ------
    InputError
        Before any work, where a file of the result cannot be written or must not be overwritten, or the target of
        `barycentric` is a cloud.
    """
    a, b, out = Path(a), None if b is None else Path(b), Path(out)
    begin_stage(progress, "reading")
    shape = load(a)
    target = load(b) if b is not None else None
    arguments: dict[str, Any] = {"refinement": refinement, "unit": unit, "cache": cache, "progress": progress}
    chosen = resolve_method(model, method)
    run = chosen if isinstance(chosen, Run) else None
    if run is not None and reestimate:
        run = run.reestimated()
    if target is None and run is None:
        raise InputError("Without a model there is no reference: give a second shape to match to.")
    if barycentric and target is not None and not isinstance(target, Mesh):
        raise InputError(f"{b}: a point cloud has no triangles for points to lie in. Leave out --barycentric.")
    goal: Shape = target if target is not None else run.reference  # type: ignore[union-attr]
    name, label = ("query_to_reference", "reference") if target is None else ("a_to_b", "b")
    files = [out / file for file in (f"{name}.txt", f"{name}.vts", "confidence.txt", "map.npz", "match.html")]
    files += [*_colored_files(shape, out / "a_colored"), *_colored_files(goal, out / f"{label}_colored")]
    earlier = files_of_match(out)
    check_outputs(files, inputs=(a, b), earlier=earlier, force=force)
    cost = match_cost([len(one.vertices) for one in (shape, target) if one is not None])
    words = cost.text(machine_memory_mb()["available"] / 1024)
    if announce is not None and words:
        announce(words)
    if target is None:
        assert run is not None
        remarks = check_matchable(shape, "A", spectral=run.shipped)
        alone = match_shape(shape, run, **arguments)
        here, there = alone.surface, surface_of(run.reference, run.unit)
        matched, confidence = alone.query_to_reference, alone.confidence
        arrays: dict[str, Any] = {name: matched, "confidence": confidence}
        facts: dict[str, Any] = {"route": "network", "why": "", "model": run.name, "refinement": alone.facts}
        facts |= {"verdict": alone.verdict, "mean_confidence": float(confidence.mean()), "remarks": remarks}
        judgement = alone.judgement
        facts["judgement"] = judgement.as_dict()
    else:
        pair = match(shape, target, model=run, method=AUTO if run is not None else chosen.name, **arguments)
        here, there, matched, confidence, facts = pair.a, pair.b, pair.a_to_b, pair.confidence, pair.facts
        judgement = pair.judgement
        arrays = {name: matched, "b_to_a": pair.b_to_a, "confidence": confidence}
        if pair.through is not None:
            arrays |= {"query_to_reference": pair.through[0], "b_to_reference": pair.through[1]}
    begin_stage(progress, "writing")
    if barycentric:
        points = barycentric_map(matched, here, there)
        arrays |= {f"{name}_faces": points.faces, f"{name}_weights": points.weights}
        if "b_to_a" in arrays and not here.is_cloud:
            points = barycentric_map(arrays["b_to_a"], there, here)
            arrays |= {"b_to_a_faces": points.faces, "b_to_a_weights": points.weights}
    arrays |= {"a_fingerprint": fingerprint(shape), f"{label}_fingerprint": fingerprint(goal)}
    # The list comes with the first file that is written: an interrupted result can be written again.
    arrays["files"] = np.array(sorted({file.name for file in (*earlier, *files)}))
    colors = position_bytes(goal.vertices)
    _write_map(out, name, matched if target is None else _numbered_as_file(matched, target), confidence, shape, arrays)
    _save_colored(goal, colors, out / f"{label}_colored")
    _save_colored(shape, colors[matched], out / "a_colored")
    facts["coverage"] = float(there.vertex_areas[np.unique(matched)].sum() / there.vertex_areas.sum())
    sizes = {"vertices": len(shape.vertices), "target_vertices": len(goal.vertices)}
    facts = sizes | facts | {"notices": _notices(facts, judgement), "map": str(out / f"{name}.txt"), "out": str(out)}
    if keep is not None:
        keep(FileMatch(shape, goal, here, there, matched, confidence, colors, target is None, facts))
    return facts


def _notices(facts: dict[str, Any], judgement: Judgement) -> list[str]:
    """What a user should know before trusting a match; empty where there is nothing."""
    found = [*judgement.reasons, *judgement.advice, *facts["remarks"]]
    if facts["route"] == "descriptors":
        swapped = "Left/right or limbs may be swapped; please inspect the result."
        found.insert(0, f"Matched by descriptors: {facts['why']}. {swapped}")
    return found


def _write_map(out: Path, name: str, matched: IntArray, confidence: FloatArray, shape: Shape, arrays: Any) -> None:
    """The files of a map: text from 0 and from 1, confidence, all arrays."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomic(out / "map.npz", buffer.getvalue())
    rows = _rows_of_file(matched, shape, -1)
    _write_lines(out / f"{name}.txt", rows, "%d")
    _write_lines(out / f"{name}.vts", rows + 1, "%d")
    _write_lines(out / "confidence.txt", _rows_of_file(confidence, shape, 0.0), "%.6f")


def _save_colored(shape: Shape, rgb: NDArray[np.uint8], path: Path) -> None:
    """The shape in colours, for mesh programs and, a mesh, for browsers."""
    colors = np.concatenate([rgb, np.full((len(rgb), 1), 255, np.uint8)], axis=1)
    plain = replace(shape, texture=None) if isinstance(shape, Mesh) else shape
    for file in _colored_files(shape, path):
        save(replace(plain, colors=colors), file)


def _colored_files(shape: Shape, path: Path) -> list[Path]:
    """The files of a shape in colours: GLB holds meshes only."""
    return [path.with_suffix(suffix) for suffix in ((".ply", ".glb") if isinstance(shape, Mesh) else (".ply",))]


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
    write_atomic(path, "".join(form % value + "\n" for value in values).encode())
