"""Labelling the vertices of shapes with the classes of a segmentation run, and the files of the result."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.correspondence.class_labels import class_borders, label_classes
from acnn.correspondence.map_files import files_of_match, fingerprint
from acnn.correspondence.match_checks import check_matchable
from acnn.datasets.dataset import Classes, Dataset
from acnn.datasets.labels import segmented
from acnn.errors import InputError
from acnn.evaluation.segmentation import (
    SegmentationEvaluation,
    SegmentationReport,
    evaluate_classes,
    segmentation_report,
)
from acnn.files import check_outputs, write_atomic
from acnn.methods.run import Run
from acnn.progress import Progress, begin_stage
from acnn.runs.match_results import SegmentReport
from acnn.shapes.mesh import Shape
from acnn.shapes.save import colored_files, rows_of_file, save_colored, write_lines
from acnn.surface.surface import Surface, surface_of
from acnn.training.prepare import Failure, prepare
from acnn.types import FloatArray, IntArray
from acnn.viewer.colors import class_colors
from acnn.viewer.images import grid, render, save_png


@dataclass(frozen=True, eq=False)
class Segmentation:
    """A shape with a class for every vertex.

    Attributes
    ----------
    shape, surface
        As loaded, and in normalised units.
    classes : (n,) array
        Number of the class of each vertex.
    confidence : (n,) array
        Probability of that class, in 0..1.
    names : tuple[str, ...]
        Of the classes.
    """

    shape: Shape
    surface: Surface
    classes: IntArray
    confidence: FloatArray
    names: tuple[str, ...]

    @property
    def fractions(self) -> dict[str, float]:
        """Fraction of the area that each class has."""
        areas = np.bincount(self.classes, weights=self.surface.vertex_areas, minlength=len(self.names))
        return dict(zip(self.names, (areas / areas.sum()).tolist(), strict=True))


@check_arguments
def segment_shape(
    shape: Shape,
    run: Run,
    *,
    regularise: bool = True,
    unit: float | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Segmentation:
    """Label the vertices of a mesh or cloud with the classes of a run.

    Parameters
    ----------
    shape : Shape
        As `load` returns it.
    run : Run
        Trained for segmentation, from `open_run`.
    regularise : bool
        Whether neighbouring vertices decide together (`label_classes`), or each takes its most probable class.
    unit : float or None
        Length of one normalised unit in the shape's coordinates; None is that of the run where it has one, else the
        shape's own geodesic diameter / 200.
    cache : bool
        Whether operators are looked for and kept in the cache.
    progress : Progress or None
        Called with (done, total); stages `operators` and `network output`.

    Raises
    ------
    InputError
        Where the run was trained for something else, or the shape has no surface.
    """
    if not run.class_names:
        raise InputError(f"{run.name}: was trained for {run.config.train.task}, not for segmentation. Use match_shape.")
    check_matchable(shape, "The shape", spectral=run.needs.spectral)
    run.check_triangulation(shape)
    inputs = run.prepare(shape, unit=unit, cache=cache, progress=begin_stage(progress, "operators"))
    begin_stage(progress, "network output")
    surface = surface_of(shape, inputs.unit)
    return Segmentation(shape, surface, *_labelled(run, inputs, surface, regularise), run.class_names)


def segment_file(
    path: Path,
    shape: Shape,
    run: Run,
    out: Path,
    *,
    unit: float | None = None,
    force: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
) -> SegmentReport:
    """Label the vertices of a file with the classes of a run, and write the result.

    Files: `labels.txt`, on line i the class of vertex i of the file, -1 where it was left out on loading;
    `labels.names.txt`, the names of the classes; `confidence.txt`; `map.npz` with all arrays, of the shape as loaded;
    `a_colored.ply` and, of a mesh, `.glb`; and `segmentation.png`, front and back. Files of an earlier `acnn match` in
    `out` are overwritten, other files only with `force`, and the input never.

    Parameters
    ----------
    path : Path
        The file.
    shape : Shape
        Loaded from it.
    run, unit, cache, progress
        As for `segment_shape`.
    out : Path
        Folder of the result.
    force : bool
        Overwrite existing files of other origin.

    Returns
    -------
    SegmentReport
        What `acnn match --json` prints.
    """
    names = ("labels.txt", "labels.names.txt", "confidence.txt", "map.npz", "segmentation.png")
    files = [*(out / name for name in names), *colored_files(shape, out / "a_colored")]
    earlier = files_of_match(out)
    check_outputs(files, inputs=(path,), earlier=earlier, force=force)
    found = segment_shape(shape, run, unit=unit, cache=cache, progress=progress)
    begin_stage(progress, "writing")
    colors = np.rint(255 * class_colors(len(found.names))).astype(np.uint8)
    listed = np.array(sorted({file.name for file in (*earlier, *files)}))
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        classes=found.classes,
        confidence=found.confidence,
        names=np.array(found.names),
        a_fingerprint=fingerprint(shape),
        files=listed,
    )
    write_atomic(out / "map.npz", buffer.getvalue())
    write_lines(out / "labels.txt", rows_of_file(found.classes, shape, -1), "%d")
    write_lines(out / "labels.names.txt", found.names, "%s")
    write_lines(out / "confidence.txt", rows_of_file(found.confidence, shape, 0.0), "%.6f")
    shown = colors[found.classes]
    save_colored(shape, shown, out / "a_colored")
    views = [render(shape, colors=shown, view=view, size=(450, 600)) for view in ("front", "back")]
    save_png(grid([views], [["front", "back"]]), out / "segmentation.png")
    return SegmentReport(
        route="segmentation",
        model=run.name,
        vertices=len(shape.vertices),
        mean_confidence=float(np.average(found.confidence, weights=found.surface.vertex_areas)),
        classes=[
            {"name": name, "area": area, "color": "#{:02x}{:02x}{:02x}".format(*colors[k])}
            for k, (name, area) in enumerate(found.fractions.items())
        ],
        notices=[],
        labels=str(out / "labels.txt"),
        image=str(out / "segmentation.png"),
        out=str(out),
    )


def evaluate_segmentation(
    run: Run,
    dataset: Dataset,
    names: Sequence[str],
    *,
    regularise: bool = True,
    workers: int = 1,
    progress: Progress | None = None,
) -> tuple[SegmentationReport, list[Failure]]:
    """Label shapes whose classes are known, and compare.

    Parameters
    ----------
    run : Run
        Trained for segmentation.
    dataset : Dataset
        With the run's reference, or with classes of its own.
    names : Sequence[str]
        Shapes to test on.
    regularise : bool
        As for `segment_shape`.
    workers : int
        Number of processes that prepare.
    progress : Progress or None
        Called with (done, total); stages `preparing` and `labelling`.

    Returns
    -------
    tuple[SegmentationReport, list[Failure]]
        What `acnn evaluate --json` prints, and the shapes that could not be labelled.

    Raises
    ------
    InputError
        Where the classes of the data are not known or not those of the run, or no shape could be labelled.
    """
    data = segmented(dataset, _classes_for(run, dataset))
    data = data if run.unit is None else replace(data, unit=run.unit)
    prepared, failures = prepare(
        data, run.needs, samples=names, workers=workers, progress=begin_stage(progress, "preparing")
    )
    labelling = begin_stage(progress, "labelling")
    evaluations: list[SegmentationEvaluation] = []
    seconds: list[float] = []
    content: dict[str, str] = {}
    for done, shape in enumerate(prepared):
        if labelling:
            labelling(done, len(prepared))
        try:
            whole = data.named(shape.name).read().shape
            run.check_triangulation(whole)
            surface = surface_of(whole, shape.unit)
            began = time.perf_counter()
            classes, _ = _labelled(run, shape, surface, regularise)
            seconds.append(time.perf_counter() - began)
            areas = surface.vertex_areas
            evaluations.append(evaluate_classes(classes, shape.labels, areas, len(run.class_names), shape.name))
            content[shape.name] = shape.content
        except InputError as error:
            failures.append(Failure(shape.name, str(error)))
    if not evaluations:
        raise InputError(f"No test shape could be labelled: {failures[0].item}: {failures[0].why}")
    report = segmentation_report(evaluations, run.class_names)
    report = replace(
        report,
        seen_in_training=run.seen(content, "train"),
        seen_in_validation=run.seen(content, "validation"),
        seconds_per_shape=float(np.mean(seconds)),
    )
    return report, failures


def _labelled(run: Run, inputs: Any, surface: Surface, regularise: bool) -> tuple[IntArray, FloatArray]:
    """Class of each vertex, and the network's probability of it."""
    count = len(run.class_names)
    soft = run.soft_map(inputs, k=count if regularise else 1)
    if not regularise:
        return soft.query_to_reference, soft.probabilities[:, 0].astype(np.float64)
    return label_classes(soft, surface, class_borders(run.reference_classes, run.reference.faces, count))


def _classes_for(run: Run, dataset: Dataset) -> Classes | None:
    """The run's classes where the data have its reference, else those of the data."""
    own = run.reference_classes
    same = np.array_equal(dataset.reference.faces, run.reference.faces)
    if own is not None and same and len(dataset.reference.vertices) == len(own):
        return Classes(run.class_names, own)
    if dataset.classes is not None and len(dataset.classes.names) != len(run.class_names):
        raise InputError(
            f"{dataset.name}: has {len(dataset.classes.names)} classes, but the network of {run.name} labels "
            f"{len(run.class_names)}: {', '.join(run.class_names[:5])}. Use data with the same classes."
        )
    return dataset.classes
