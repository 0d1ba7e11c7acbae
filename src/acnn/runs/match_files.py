"""Matching files, and the files of a match."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.correspondence.judge import Judgement
from acnn.correspondence.landmarks import read_landmarks
from acnn.correspondence.map_files import files_of_match, fingerprint
from acnn.correspondence.match_checks import check_matchable
from acnn.correspondence.point_maps import barycentric_map
from acnn.errors import InputError
from acnn.files import check_outputs, write_atomic
from acnn.methods.registry import AUTO
from acnn.methods.run import Run, run_digest
from acnn.progress import Progress, begin_stage, expect_stages
from acnn.runs.cost import announce_reading, match_cost, match_stages
from acnn.runs.match import match, match_shape
from acnn.runs.match_results import MatchReport, SegmentReport
from acnn.runs.match_routes import HUMANS, resolve_method, working_size_of
from acnn.runs.segment import segment_file
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh, Shape
from acnn.shapes.save import colored_files, numbered_as_file, rows_of_file, save_colored, write_lines
from acnn.surface.surface import surface_of
from acnn.types import FloatArray, IntArray
from acnn.viewer.colors import position_bytes
from acnn.viewer.match_page import FileMatch, has_image, texture_jpeg


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
    working_size: int | None = None,
    landmarks: str | os.PathLike[str] | None = None,
    barycentric: bool = False,
    force: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
    keep: Callable[[FileMatch], object] | None = None,
    announce: Callable[[str], object] | None = None,
    read: Callable[[Path], Shape] = load,
) -> MatchReport | SegmentReport:
    """Match shape A to shape B (`match`), or to the reference of a network (`match_shape`), and write the result.

    Files: `query_to_reference.txt`, or `a_to_b.txt`: on line i the vertex that matches vertex i of A's file, both
    0-based in file order, -1 where A's vertex was left out on loading; the same counted from 1 as
    `.vts`, 0 where left out; `confidence.txt`; `map.npz` with all arrays, of shapes as loaded, the `fingerprint` of
    both, and the names of the `files` that were written; and the shapes in corresponding colours, `a_colored` and
    `b_colored` or `reference_colored`, as `.ply` and, of meshes, `.glb`; `b_texture.jpg` where B has a texture, whose
    coordinates are in `map.npz`. With `barycentric`, points inside triangles as
    well: `NAME_faces` and `NAME_weights` in `map.npz`, the faces of the target as loaded.

    The files of an earlier match in `out` are overwritten; any other file of such a name only with `force`, and A and B
    never. `match.html` is kept free for the page.

    A run that was trained for segmentation labels the vertices of A instead, see `segment_file`.

    `keep` is called with the match at the end, to show it, say (`acnn.viewer.match_page`); `announce` before the work
    with a sentence on what will be done and what it will cost, where that is much (`reading_cost`, `match_cost`). A
    shape of many vertices is shown with some of them (`reduced`).

    Parameters
    ----------
    a, b : path
        Files; without B, A is matched to the reference of the model.
    model, method, refinement, unit, working_size, cache, progress
        As for `match`.
    out : path
        Folder of the result.
    landmarks : path or None
        File of corresponding vertices of A and B (`read_landmarks`), which guide the map.
    reestimate : bool
        Take the statistics of batch normalisation from the shape instead of the training shapes.
    barycentric, force, keep, announce
        See above.
    read : callable
        Reads a shape file.

    Returns
    -------
    MatchReport or SegmentReport
        What `acnn match --json` prints: `verdict` is `good`, `doubtful` or `failed`, and `notices` are what a user
        should know before trusting it.

    Raises
    ------
    InputError
        Before any work, where a file of the result cannot be written or must not be overwritten, the target of
        `barycentric` is a cloud, or the files are too large for the memory.
    """
    a, b, out = Path(a), None if b is None else Path(b), Path(out)
    memory = announce_reading([a] if b is None else [a, b], announce)
    begin_stage(progress, "reading")
    shape = read(a)
    target = read(b) if b is not None else None
    arguments: dict[str, Any] = {
        **{"refinement": refinement, "unit": unit, "working_size": working_size},
        **{"cache": cache, "progress": progress},
    }
    if landmarks is not None:
        if target is None:
            raise InputError(f"{landmarks}: landmarks are pairs of vertices of two shapes. Give a second shape.")
        arguments["landmarks"] = read_landmarks(Path(landmarks), shape, target)
    chosen = resolve_method(model, method)
    run = chosen if isinstance(chosen, Run) else None
    if run is not None and reestimate:
        run = run.reestimated()
    if run is not None and run.class_names:
        if target is not None or barycentric:
            run.check_matches()
        return segment_file(a, shape, run, out, unit=unit, force=force, cache=cache, progress=progress)
    if target is None and run is None:
        raise InputError("Without a model there is no reference: give a second shape to match to.")
    if barycentric and target is not None and not isinstance(target, Mesh):
        raise InputError(f"{b}: a point cloud has no triangles for points to lie in. Leave out --barycentric.")
    goal: Shape = target if target is not None else run.reference  # type: ignore[union-attr]
    name, label = ("query_to_reference", "reference") if target is None else ("a_to_b", "b")
    files = [out / file for file in (f"{name}.txt", f"{name}.vts", "confidence.txt", "map.npz", "match.html")]
    files += [*colored_files(shape, out / "a_colored"), *colored_files(goal, out / f"{label}_colored")]
    texture = goal.texture if isinstance(goal, Mesh) and has_image(goal) else None
    files += [out / f"{label}_texture.jpg"] if texture is not None else []
    earlier = files_of_match(out)
    check_outputs(files, inputs=(a, b, None if landmarks is None else Path(landmarks)), earlier=earlier, force=force)
    size = working_size_of(working_size, run)
    counts = [len(one.vertices) for one in (shape, target) if one is not None]
    if run is not None:
        expect_stages(progress, match_stages(counts, size, refined=refinement != "none"))
    words = match_cost(counts, size).text(memory)
    if announce is not None and words:
        announce(words)
    if target is None:
        assert run is not None
        remarks = check_matchable(shape, "A", spectral=run.shipped)
        alone = match_shape(shape, run, **arguments)
        here, there = alone.surface, run.reference_surface
        matched, confidence = alone.query_to_reference, alone.confidence
        arrays: dict[str, Any] = {name: matched, "confidence": confidence}
        judgement = alone.judgement
        report = MatchReport(
            route="network",
            why="",
            model=run.name,
            refinement=alone.report.as_dict(),
            remarks=remarks,
            working_copies={"size": size, "a": alone.working_copy.report},
            verdict=alone.verdict,
            judgement=judgement.as_dict(),
            mean_confidence=float(confidence.mean()),
        )
        shown: tuple[Shape, Shape] = alone.working_copy.preview, run.reference
    else:
        pair = match(shape, target, model=run, method=AUTO if run is not None else chosen.name, **arguments)
        here, there, matched, confidence, report = pair.a, pair.b, pair.a_to_b, pair.confidence, pair.report
        judgement = pair.judgement
        shown = (shape, target) if pair.copies is None else (pair.copies[0].preview, pair.copies[1].preview)
        arrays = {name: matched, "b_to_a": pair.b_to_a, "confidence": confidence}
        if pair.through is not None:
            arrays |= {"query_to_reference": pair.through[0], "b_to_reference": pair.through[1]}
    begin_stage(progress, "writing")
    if barycentric:
        points = pair.points if target is not None else barycentric_map(matched, here, there)
        arrays |= {f"{name}_faces": points.faces, f"{name}_weights": points.weights}
        if "b_to_a" in arrays and not here.is_cloud:
            points = barycentric_map(arrays["b_to_a"], there, here)
            arrays |= {"b_to_a_faces": points.faces, "b_to_a_weights": points.weights}
    arrays |= {"a_fingerprint": fingerprint(shape), f"{label}_fingerprint": fingerprint(goal)}
    if texture is not None:
        arrays |= {f"{label}_uv": texture.uv, f"{label}_uv_faces": texture.uv_faces}
    # The list comes with the first file that is written: an interrupted result can be written again.
    arrays["files"] = np.array(sorted({file.name for file in (*earlier, *files)}))
    colors = position_bytes(goal.vertices)
    _write_map(out, name, matched if target is None else numbered_as_file(matched, target), confidence, shape, arrays)
    if texture is not None and texture.image is not None:
        write_atomic(out / f"{label}_texture.jpg", texture_jpeg(texture.image))
    save_colored(goal, colors, out / f"{label}_colored")
    save_colored(shape, colors[matched], out / "a_colored")
    report = replace(
        report,
        vertices=len(shape.vertices),
        target_vertices=len(goal.vertices),
        coverage=float(there.vertex_areas[np.unique(matched)].sum() / there.vertex_areas.sum()),
        notices=_notices(report, judgement),
        map=str(out / f"{name}.txt"),
        out=str(out),
    )
    if keep is not None:
        full = FileMatch(shape, goal, here, there, matched, confidence, colors, target is None, report)
        keep(_reduced_match(full, shown))
    return report


def model_digest(model: Run | str | os.PathLike[str] | None, method: str = AUTO) -> str:
    """Hash of the network that a match would use (`run_digest`), which may be trained further; empty without one.

    Parameters
    ----------
    model, method
        As for `match`.
    """
    if model is None:
        return run_digest(HUMANS) if method == AUTO else ""
    return run_digest(model.folder if isinstance(model, Run) else model)


def free_result_folder(a: Path, b: Path | None) -> Path:
    """A folder for a result that was given none: `A_to_B` below the current folder, or `A_to_B-2` and so on.

    Parameters
    ----------
    a, b : Path
        Files; without B the name is `A_to_reference`.

    Returns
    -------
    Path
        That does not exist yet.
    """
    name = f"{a.stem}_to_{b.stem if b is not None else 'reference'}"
    folder, number = Path(name), 1
    while os.path.lexists(folder):
        number += 1
        folder = Path(f"{name}-{number}")
    return folder


def _reduced_match(match: FileMatch, shown: tuple[Shape, Shape]) -> FileMatch:
    """A match between the vertices with which two shapes are shown, which may be some of theirs."""
    a, target = shown
    if a is match.a and target is match.target:
        return match
    matched, confidence, colors, here, there = match.matched, match.confidence, match.colors, match.here, match.there
    if a is not match.a:
        assert a.source is not None
        rows = a.source.to_file
        matched, confidence, here = matched[rows], confidence[rows], surface_of(a, here.unit)
        a = _with_numbers_of(a, match.a)
    if target is not match.target:
        from scipy.spatial import cKDTree

        assert target.source is not None
        matched = cKDTree(target.vertices).query(match.target.vertices[matched])[1].astype(np.int32)
        colors, there = colors[target.source.to_file], surface_of(target, there.unit)
        target = _with_numbers_of(target, match.target)
    return FileMatch(a, target, here, there, matched, confidence, colors, match.to_reference, match.report)


def _with_numbers_of(part: Shape, shape: Shape) -> Shape:
    """Some vertices of a shape, numbered as in the file of the shape."""
    assert part.source is not None
    if shape.source is None:
        return part
    rows = part.source.to_file
    back = np.full(len(shape.source.from_file), -1, np.int32)
    back[shape.source.to_file[rows]] = np.arange(len(rows), dtype=np.int32)
    return replace(part, source=replace(shape.source, from_file=back, to_file=shape.source.to_file[rows]))


def _notices(report: MatchReport, judgement: Judgement) -> list[str]:
    """What a user should know before trusting a match; empty where there is nothing."""
    found = [*judgement.reasons, *judgement.advice, *report.remarks]
    if report.route == "descriptors":
        swapped = "Left/right or limbs may be swapped; please inspect the result."
        found.insert(0, f"Matched by descriptors: {report.why}. {swapped}")
    elif report.why:
        found.insert(0, f"{report.why[0].upper()}{report.why[1:]}.")
    return found


def _write_map(out: Path, name: str, matched: IntArray, confidence: FloatArray, shape: Shape, arrays: Any) -> None:
    """The files of a map: text from 0 and from 1, confidence, all arrays."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomic(out / "map.npz", buffer.getvalue())
    rows = rows_of_file(matched, shape, -1)
    write_lines(out / f"{name}.txt", rows, "%d")
    write_lines(out / f"{name}.vts", rows + 1, "%d")
    write_lines(out / "confidence.txt", rows_of_file(confidence, shape, 0.0), "%.6f")
