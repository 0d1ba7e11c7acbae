"""What the live viewer shows: some shapes with their maps to a reference, and the network that made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from acnn.correspondence import SoftMap, reference_to_target_from
from acnn.datasets import open_dataset
from acnn.errors import InputError
from acnn.patches import PatchOperator, PatchSettings
from acnn.pipeline.patches import make_patches
from acnn.pipeline.prepare import Failure
from acnn.shapes import load
from acnn.shapes.shape import FloatArray, IntArray, Mesh, Shape
from acnn.surface import Surface, principal_frames, surface_of
from acnn.types import Progress, begin_stage, named_stages

if TYPE_CHECKING:  # these load torch
    from acnn.pipeline.evaluate_run import Matched
    from acnn.pipeline.run import Run

NETWORK, REFINED, MATCH, TRUTH = "network", "refined", "match", "truth"
"""Names of maps: the network's own; refined, to its reference; what `match_pair` gives; the ground truth."""


@dataclass(frozen=True, eq=False)
class ViewShape:
    """One shape of the viewer.

    - name, shape, surface: the last in run units; its triangles stand for a cloud
    - maps: (n,) reference vertices by the name of the map, -1 unknown; empty where nothing was matched
    - errors: (n,) by the same names, over the reference's length; NaN unknown
    - soft_map: of the network, or None
    - settings: of its patches
    - unit: as given when the patches were made, so that the cache knows them again
    - cache: whether patches are looked for and kept there
    - judged_confidence: (n,) in 0..1, of the map that was found (`map_confidence`), or None
    """

    name: str
    shape: Shape
    surface: Surface
    maps: dict[str, IntArray]
    errors: dict[str, FloatArray]
    soft_map: SoftMap | None
    settings: PatchSettings
    unit: float | None = None
    cache: bool = True
    judged_confidence: FloatArray | None = None

    @property
    def confidence(self) -> FloatArray | None:
        """(n,) in 0..1: of the map where it was judged, else of the network, else None."""
        if self.judged_confidence is None and self.soft_map is not None:
            return self.soft_map.confidence.astype(float)
        return self.judged_confidence

    @cached_property
    def patches(self) -> PatchOperator:
        """The shape's patch operator, from the cache or computed when first asked for."""
        return make_patches(self.shape, self.settings, unit=self.unit, cache=self.cache)

    @cached_property
    def directions(self) -> FloatArray:
        """(faces, 2, 3) principal directions, that of the larger signed curvature first."""
        return principal_frames(self.surface, self.settings.smoothing)


@dataclass(frozen=True, eq=False)
class ViewData:
    """Everything the viewer shows.

    - title: of the window
    - shapes: those matched, or merely looked at
    - run: None where nothing was matched
    - reference: what the shapes are matched to: the reference of the run, or where files are matched to each other the
      last of them; None where nothing was matched
    - reference_last: whether it stands to the right of the shapes, not to the left
    """

    title: str
    shapes: tuple[ViewShape, ...]
    run: Run | None = None
    reference: ViewShape | None = None
    reference_last: bool = False

    @property
    def map_names(self) -> tuple[str, ...]:
        """Names of the maps that every shape has, the best last but for the truth."""
        names = (NETWORK, REFINED, MATCH, TRUTH)
        return tuple(n for n in names if self.shapes and all(n in s.maps for s in self.shapes))

    def onward(self, shape: ViewShape, map_name: str) -> IntArray:
        """(m,) for each reference vertex a vertex of a matched shape, through one of its maps."""
        if self.reference is None:
            raise InputError("Nothing was matched: give a run with --model.")
        matched = shape.maps[map_name]
        known = np.flatnonzero(matched >= 0)
        confidence = None if shape.confidence is None else shape.confidence[known]
        return known[reference_to_target_from(matched[known], self.reference.surface, confidence)].astype(np.int32)


def collect_view(
    items: Sequence[Path],
    model: Path | None = None,
    *,
    data: str | None = None,
    test_list: str | None = None,
    shapes: int = 3,
    refinement: str = "auto",
    cache: bool = True,
    progress: Progress | None = None,
) -> tuple[ViewData, list[Failure]]:
    """Read and match what the viewer is to show.

    Parameters
    - items: files of shapes, or one folder of a run
    - model: folder or name of a run that matches the files, one to its reference, several to the last of them as
      `match_pair` does; None shows them unmatched
    - data, test_list, shapes: for a run, its shapes: as for `collect_report`
    - refinement: as for `evaluate_run`
    - cache: whether operators of files are looked for and kept in the cache
    - progress: called with (done, in all)

    Returns the data, and the shapes that failed to be prepared.
    Raises InputError for an item that is neither a shape nor a run.
    """
    if not items:
        raise InputError("There is nothing to show: give files of shapes, or the folder of a run.")
    folders = [item for item in items if item.is_dir()]
    if not folders:
        if data is not None or test_list is not None:
            raise InputError("--data and --test choose shapes of a run: give its folder instead of files.")
        return _of_files(items, model, refinement, cache, progress), []
    if len(items) > 1 or model is not None:
        raise InputError(f"{folders[0]}: a run is shown by itself. Give one run, or files with --model RUN.")
    return _of_run(folders[0], data, test_list, shapes, refinement, progress)


def _of_files(
    files: Sequence[Path], model: Path | None, refinement: str, cache: bool, progress: Progress | None
) -> ViewData:
    begin_stage(progress, "reading")
    loaded = [load(path) for path in files]  # all of them first: a bad file is noticed before any long work
    names = _distinct([path.name for path in files])
    title = ", ".join(names)
    if model is None:
        settings = PatchSettings()
        plain = [
            ViewShape(name, shape, surface_of(shape), {}, {}, None, settings, None, cache)
            for name, shape in zip(names, loaded, strict=True)
        ]
        return ViewData(title, tuple(plain))
    from acnn.pipeline.match import match_pair, match_shape
    from acnn.pipeline.run import open_run, run_folder

    run = open_run(run_folder(model))
    settings = run.config.patches
    if len(loaded) == 1:
        alone = match_shape(loaded[0], run, refinement=refinement, cache=cache, progress=progress)
        maps = {NETWORK: alone.soft_map.query_to_reference}
        if refinement != "none":
            maps[REFINED] = alone.query_to_reference
        one = ViewShape(
            names[0], loaded[0], alone.surface, maps, {}, alone.soft_map, settings, alone.surface.unit, cache
        )
        one = replace(one, judged_confidence=alone.confidence)
        return ViewData(title, (one,), run, _reference(run, cache))
    found = []
    for name, shape in zip(names[:-1], loaded[:-1], strict=True):
        stages = progress if len(loaded) == 2 else named_stages(progress, f"{name}, {{}}")
        pair = match_pair(shape, loaded[-1], run, refinement=refinement, cache=cache, progress=stages)
        maps = {} if pair.soft_map is None else {NETWORK: pair.soft_map.query_to_reference}
        maps[MATCH] = pair.a_to_b
        one = ViewShape(name, shape, pair.a, maps, {}, pair.soft_map, settings, pair.a.unit, cache)
        found.append(replace(one, judged_confidence=pair.confidence))
    target = ViewShape(names[-1], loaded[-1], pair.b, {}, {}, None, settings, pair.b.unit, cache)
    return ViewData(title, tuple(found), run, target, reference_last=True)


def _of_run(
    folder: Path,
    data: str | None,
    test_list: str | None,
    shapes: int,
    refinement: str,
    progress: Progress | None,
) -> tuple[ViewData, list[Failure]]:
    from acnn.pipeline.evaluate_run import evaluate_run
    from acnn.pipeline.report_data import errors_of_vertices, unseen_shapes
    from acnn.pipeline.run import open_run, run_folder

    run = open_run(run_folder(folder))
    dataset = open_dataset(data if data is not None else run.facts["data"])
    kept: list[Matched] = []
    _, failures = evaluate_run(
        run,
        dataset,
        test_list=test_list if test_list is not None else ",".join(unseen_shapes(dataset, run, shapes)),
        refinement=refinement,
        progress=progress,
        keep=kept.append,
    )
    found = []
    for one in kept:
        maps: dict[str, IntArray] = {NETWORK: one.soft_map.query_to_reference}
        errors = {NETWORK: errors_of_vertices(one, one.evaluation)}
        if one.refined is not None and one.refined_evaluation is not None:
            maps[REFINED] = one.refined
            errors[REFINED] = errors_of_vertices(one, one.refined_evaluation)
        if (one.example.labels >= 0).any():
            maps[TRUTH] = one.example.labels
        surface = surface_of(one.example.shape, dataset.unit)
        found.append(
            ViewShape(
                one.name, one.example.shape, surface, maps, errors, one.soft_map, run.config.patches, dataset.unit
            )
        )
    return ViewData(folder.resolve().name, tuple(found), run, _reference(run, True)), failures


def _reference(run: Run, cache: bool) -> ViewShape:
    unit = run.facts.get("unit")
    mesh: Mesh = run.reference
    return ViewShape("reference", mesh, surface_of(mesh, unit), {}, {}, None, run.config.patches, unit, cache)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, numbered where one occurs twice."""
    return [name if names.count(name) == 1 else f"{name} ({i + 1})" for i, name in enumerate(names)]
