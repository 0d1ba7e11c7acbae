"""Data of the live viewer: shapes with their maps to a reference, and the network that computed them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from acnn.correspondence.map_files import files_of_match, read_map
from acnn.errors import InputError
from acnn.input_files import read_npz
from acnn.patches.settings import PatchSettings
from acnn.progress import Progress, begin_stage, named_stages
from acnn.runs.cost import announce_reading
from acnn.shapes.formats.raw import decode_image
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh, Shape, Texture
from acnn.surface.surface import surface_of
from acnn.surface.working_copy import WorkingCopy
from acnn.training.prepare import Failure
from acnn.types import IntArray
from acnn.viewer.match_page import has_image
from acnn.viewer.view_data import MATCH, NETWORK, REFINED, TRUTH, ViewData, ViewShape

if TYPE_CHECKING:
    from acnn.evaluation.results import Matched
    from acnn.methods.run import Run


def collect_view(
    items: Sequence[Path],
    model: Path | None = None,
    *,
    data: str | None = None,
    test_list: str | None = None,
    shapes: int = 3,
    refinement: str = "auto",
    working_size: int | None = None,
    cache: bool = True,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
) -> tuple[ViewData, list[Failure]]:
    """Read and match the shapes for the viewer.

    Parameters
    ----------
    items : Sequence[Path]
        Shape files, one folder of a run, or one folder that `acnn match` wrote.
    model : Path or None
        Folder or name of a run that matches the files: a single one to its reference, several to the last of them as
        `match` does; None shows them unmatched.
    data, test_list, shapes
        Shapes of a run, as for `collect_report`.
    refinement, working_size
        As for `evaluate_run` and `match`.
    cache : bool
        Whether operators are read from and written to the cache.
    progress : Progress or None
        Called with (done, total).
    announce : callable or None
        Called with a sentence where the files are large, and for every shape that was matched on a working copy.

    Returns
    -------
    tuple[ViewData, list[Failure]]
        The data, and the shapes that could not be prepared.

    Raises
    ------
    InputError
        If an item is neither a shape nor a run.
    """
    if not items:
        raise InputError("Nothing to show: give shape files, a run folder, or a result of 'acnn match'.")
    folders = [item for item in items if item.is_dir()]
    if not folders:
        if data is not None or test_list is not None:
            raise InputError("--data and --test select shapes of a run: give a run folder instead of files.")
        options = {"refinement": refinement, "working_size": working_size, "cache": cache}
        return _of_files(items, model, options, progress, announce or (lambda _: None)), []
    if len(items) > 1 or model is not None:
        raise InputError(f"{folders[0]}: cannot be combined with others. Give one run, or files with --model RUN.")
    if files_of_match(folders[0]):
        return _of_result(folders[0]), []
    return _of_run(folders[0], data, test_list, shapes, refinement, working_size, progress)


def _of_result(folder: Path) -> ViewData:
    """The shapes and the map that `acnn match` wrote; nothing is computed again."""
    arrays = read_npz(folder / "map.npz")
    label = "b" if "a_to_b" in arrays else "reference"
    a, target = load(folder / "a_colored.ply"), load(folder / f"{label}_colored.ply")
    found = read_map(folder / "map.npz", a, target)
    if found.notes:
        raise InputError(f"{folder}: {found.notes[0]} Match the shapes again.")
    settings = PatchSettings()
    one = ViewShape("A", a, surface_of(a), {MATCH: found.vertices}, {}, None, settings)
    confidence = arrays.get("confidence")
    if confidence is not None and confidence.shape == found.vertices.shape:
        one = replace(one, judged_confidence=confidence)
    other = ViewShape("B" if label == "b" else label, target, surface_of(target), {}, {}, None, settings)
    other = replace(other, texture=_texture_of_result(folder, label, target, arrays))
    return ViewData(folder.resolve().name, (one.textured(MATCH, other),), None, other, reference_last=True)


def _texture_of_result(folder: Path, label: str, target: Shape, arrays: dict[str, Any]) -> Texture | None:
    """The texture of the target that `acnn match` stored; None where it had none, or the files no longer fit."""
    uv, corners = (arrays.get(f"{label}_{name}") for name in ("uv", "uv_faces"))
    file = folder / f"{label}_texture.jpg"
    image = decode_image(file.read_bytes()) if file.is_file() else None
    if uv is None or corners is None or image is None or not isinstance(target, Mesh):
        return None
    fits = uv.ndim == 2 and uv.shape[1] == 2 and uv.dtype.kind == "f" and bool(np.isfinite(uv).all())
    fits = fits and corners.shape == target.faces.shape and corners.dtype.kind in "iu"
    fits = fits and bool((corners >= 0).all() and (corners < len(uv)).all())
    return Texture(uv, corners, image) if fits else None


def _of_files(
    files: Sequence[Path],
    model: Path | None,
    options: dict[str, Any],
    progress: Progress | None,
    announce: Callable[[str], None],
) -> ViewData:
    cache = options["cache"]
    announce_reading(files, announce, "shown")
    begin_stage(progress, "reading")
    loaded = [load(path) for path in files]  # all of them first: a bad file is reported before the long computation
    names = _distinct([path.name for path in files])
    title = ", ".join(names)
    if model is None:
        plain = [
            ViewShape(name, shape, surface_of(shape), {}, {}, None, PatchSettings(), None, cache)
            for name, shape in zip(names, loaded, strict=True)
        ]
        return ViewData(title, tuple(plain))
    from acnn.methods.run import open_run, run_folder
    from acnn.runs.match import match, match_shape

    def announce_copy(name: str, copy: WorkingCopy | None) -> None:
        if copy is not None and copy.is_copy:
            counts = len(copy.shape.vertices), len(copy.original.vertices)
            announce("{}: matched on a copy of {:,} vertices; it has {:,}.".format(name, *counts))

    run = open_run(run_folder(model))
    settings = run.config.patches
    if len(loaded) == 1:
        alone = match_shape(loaded[0], run, progress=progress, **options)
        announce_copy(names[0], alone.working_copy)
        maps = {NETWORK: alone.soft_map.query_to_reference}
        if options["refinement"] != "none":
            maps[REFINED] = alone.query_to_reference
        one = ViewShape(
            names[0], loaded[0], alone.surface, maps, {}, alone.soft_map, settings, alone.surface.unit, cache
        )
        one = replace(one, judged_confidence=alone.confidence)
        return ViewData(title, (one,), run, _reference(run, cache))
    queries = []
    for name, shape in zip(names[:-1], loaded[:-1], strict=True):
        stages = progress if len(loaded) == 2 else named_stages(progress, f"{name}, {{}}")
        pair = match(shape, loaded[-1], model=run, progress=stages, **options)
        announce_copy(name, pair.copies and pair.copies[0])
        maps = {} if pair.soft_map is None else {NETWORK: pair.soft_map.query_to_reference}
        maps[MATCH] = pair.a_to_b
        one = ViewShape(name, shape, pair.a, maps, {}, pair.soft_map, settings, pair.a.unit, cache)
        queries.append(replace(one, judged_confidence=pair.confidence))
    announce_copy(names[-1], pair.copies and pair.copies[1])
    target = ViewShape(names[-1], loaded[-1], pair.b, {}, {}, None, settings, pair.b.unit, cache)
    if isinstance(loaded[-1], Mesh) and has_image(loaded[-1]):
        target = replace(target, texture=loaded[-1].texture)
    textured = (one.textured(MATCH, target) for one in queries)
    return ViewData(title, tuple(textured), run, target, reference_last=True)


def _of_run(
    folder: Path,
    data: str | None,
    test_list: str | None,
    shapes: int,
    refinement: str,
    working_size: int | None,
    progress: Progress | None,
) -> tuple[ViewData, list[Failure]]:
    from acnn.evaluation.results import errors_of_vertices
    from acnn.methods.run import open_run, run_folder
    from acnn.runs.evaluate import evaluate_run, unseen_shapes

    run = open_run(run_folder(folder))
    run.check_matches()
    dataset = run.open_dataset(data)
    kept: list[Matched] = []
    _, failures = evaluate_run(
        run,
        dataset,
        test_list=test_list if test_list is not None else ",".join(unseen_shapes(dataset, [run], shapes)),
        refinement=refinement,
        working_size=working_size,
        progress=progress,
        keep=kept.append,
    )
    shown = []
    for one in kept:
        maps: dict[str, IntArray] = {NETWORK: one.soft_map.query_to_reference}
        errors = {NETWORK: errors_of_vertices(one, one.evaluation)}
        if one.refined is not None and one.refined_evaluation is not None:
            maps[REFINED] = one.refined
            errors[REFINED] = errors_of_vertices(one, one.refined_evaluation)
        if (one.example.labels >= 0).any():
            maps[TRUTH] = one.example.labels
        surface = surface_of(one.example.shape, dataset.unit)
        shown.append(
            ViewShape(
                one.name, one.example.shape, surface, maps, errors, one.soft_map, run.config.patches, dataset.unit
            )
        )
    return ViewData(folder.resolve().name, tuple(shown), run, _reference(run, True)), failures


def _reference(run: Run, cache: bool) -> ViewShape:
    unit = run.unit
    mesh: Mesh = run.reference
    return ViewShape("reference", mesh, surface_of(mesh, unit), {}, {}, None, run.config.patches, unit, cache)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, numbered where one occurs twice."""
    return [name if names.count(name) == 1 else f"{name} ({i + 1})" for i, name in enumerate(names)]
