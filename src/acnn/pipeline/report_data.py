"""What a report shows of a run: a few shapes matched and compared with the truth, figures, settings and timings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.datasets import open_dataset
from acnn.datasets.collection import Dataset, spread_over
from acnn.errors import InputError
from acnn.evaluation import ShapeEvaluation
from acnn.evaluation.published import (
    FAUST_EXACT,
    FAUST_REMESHED_ERROR,
    SHREC16_CUTS_ERROR,
    SHREC16_HOLES_ERROR,
    PublishedTable,
)
from acnn.pipeline.evaluate_run import Matched, evaluate_run
from acnn.pipeline.prepare import Failure
from acnn.pipeline.run import Run, open_run
from acnn.shapes.shape import FloatArray, IntArray, Mesh
from acnn.training.log import read_log
from acnn.types import Progress

LOG_POINTS = 240
RINGS = 2
"""Gaps between true points up to so many edges wide are not taken for missing."""


@dataclass(frozen=True, eq=False)
class ReportShape:
    """One matched shape.

    - vertices (n, 3), faces (k, 3): of a cloud, the triangles that stand for its surface
    - network, refined: (n,) reference vertices; `refined` is None where nothing was refined
    - truth: (n,) reference vertices, -1 unknown
    - network_errors, refined_errors: (n,) over the reference's length, NaN unknown
    - confidence: (n,) in 0..1
    - missing: (m,) reference vertices that have no counterpart on a part; None where the shape is whole
    - evaluation, refined_evaluation: figures
    """

    name: str
    vertices: FloatArray
    faces: IntArray
    is_cloud: bool
    network: IntArray
    refined: IntArray | None
    truth: IntArray
    network_errors: FloatArray
    refined_errors: FloatArray | None
    confidence: FloatArray
    missing: NDArray[np.bool_] | None
    evaluation: ShapeEvaluation
    refined_evaluation: ShapeEvaluation | None


@dataclass(frozen=True, eq=False)
class ReportData:
    """Everything a report shows.

    - title: the run's name; dataset: its data's
    - run: with its settings, reference and facts
    - shapes: those shown
    - figures: what `acnn evaluate --json` prints for them
    - published: figures to put beside; comparable: False where they are of other data
    - log: (steps, 2) seconds and loss while training, thinned out
    """

    title: str
    dataset: str
    run: Run
    shapes: tuple[ReportShape, ...]
    figures: dict[str, Any]
    published: PublishedTable
    comparable: bool
    log: FloatArray


def collect_report(
    folder: Path | str,
    data: str | Path | Dataset | None = None,
    *,
    test_list: str | None = None,
    shapes: int = 6,
    refinement: str = "auto",
    workers: int = 1,
    progress: Progress | None = None,
) -> tuple[ReportData, list[Failure]]:
    """Match some test shapes of a run and gather what a report shows.

    Parameters
    - folder: of a run, or of `acnn demo`, which holds one
    - data: as for `open_dataset`; None is the data it was trained on
    - test_list: shapes, as for `Dataset.select`; by default some that it was not trained on
    - shapes: how many, at most, where there is no list
    - refinement: as for `evaluate_run`
    - workers, progress: likewise

    Returns the data, and the shapes that failed to be prepared.
    """
    folder = Path(folder)
    if not (folder / "model.safetensors").is_file() and (folder / "run" / "model.safetensors").is_file():
        title, folder = folder.resolve().name, folder / "run"
    else:
        title = folder.resolve().name
        title = f"{folder.resolve().parent.name}/{title}" if title == "run" else title
    run = open_run(folder)
    dataset = data if isinstance(data, Dataset) else open_dataset(data if data is not None else run.facts["data"])
    names = test_list if test_list is not None else ",".join(unseen_shapes(dataset, run, shapes))
    kept: list[Matched] = []
    figures, failures = evaluate_run(
        run,
        dataset,
        test_list=names,
        refinement=refinement,
        workers=workers,
        progress=progress,
        keep=kept.append,
    )
    return report_of(title, dataset.name, run, kept, figures), failures


def report_of(title: str, dataset: str, run: Run, matched: Sequence[Matched], figures: dict[str, Any]) -> ReportData:
    """What a report shows of shapes that were matched already.

    - title, dataset: names
    - matched: the shapes to show
    - figures: of these or more shapes, as `evaluate_run` returns them
    """
    published, comparable = _published_for(dataset)
    shown = tuple(_shape(one, run.reference) for one in matched)
    log = _training_log(run.folder / "log.jsonl")
    return ReportData(title, dataset, run, shown, figures, published, comparable, log)


def errors_of_vertices(matched: Matched, evaluation: ShapeEvaluation) -> FloatArray:
    """(n,) error of every vertex of the shape, NaN where no truth is known; where several are, their mean."""
    example = matched.example
    n = len(example.shape.vertices)
    if example.pairs is not None:
        rows = example.pairs[:, 0]
        count = np.bincount(rows, minlength=n)
        total = np.bincount(rows, weights=evaluation.errors, minlength=n)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)
    known = (example.truth.face if example.truth is not None else example.labels) >= 0
    errors = np.full(n, np.nan)
    errors[known] = evaluation.errors
    return errors


def unseen_shapes(dataset: Dataset, run: Run, count: int) -> list[str]:
    """Names of some shapes that were not trained on, spread over them; remeshed copies are half of them."""
    if count < 1:
        raise InputError(f"{count} shapes cannot be shown: ask for at least 1.")
    trained = {*run.facts["train"], *run.facts["validation"]}
    marked = [s for s in dataset.samples if s.split == "test"]
    found = [s for s in marked or dataset.samples if s.name not in trained]
    if not found:
        raise InputError("There is no shape to show that was not trained on: name some with --test.")
    copies = [s for s in found if "_remeshed" in s.name]
    originals = [s for s in found if "_remeshed" not in s.name]
    if not copies or not originals:
        return [s.name for s in spread_over(found, count)]
    first = spread_over(originals, -(-count // 2))
    return [s.name for s in [*first, *spread_over(copies, count // 2)]]


def _shape(matched: Matched, reference: Mesh) -> ReportShape:
    shape = matched.example.shape
    is_cloud = not isinstance(shape, Mesh)
    if isinstance(shape, Mesh):
        faces = shape.faces
    else:
        from acnn.surface import surface_of

        faces = surface_of(shape, 1.0).faces
    last = matched.refined_evaluation
    return ReportShape(
        name=matched.name,
        vertices=shape.vertices,
        faces=faces,
        is_cloud=is_cloud,
        network=matched.soft_map.query_to_reference,
        refined=matched.refined,
        truth=matched.example.labels,
        network_errors=errors_of_vertices(matched, matched.evaluation),
        refined_errors=None if last is None else errors_of_vertices(matched, last),
        confidence=matched.soft_map.confidence,
        missing=_missing(matched.example.labels, reference),
        evaluation=matched.evaluation,
        refined_evaluation=last,
    )


def _missing(labels: IntArray, reference: Mesh) -> NDArray[np.bool_] | None:
    """(m,) reference vertices away from all true points; None where they are few, as on a whole shape."""
    hit = np.zeros(len(reference.vertices), bool)
    hit[labels[labels >= 0]] = True
    # Vertices between true points, as on a coarser shape, are there too: grown and shrunk again, such gaps are closed.
    gone = ~_grown(hit, reference.faces)
    if gone.mean() <= 0.02:
        return None
    return _grown(gone, reference.faces) & ~hit


def _grown(chosen: NDArray[np.bool_], faces: IntArray) -> NDArray[np.bool_]:
    grown = chosen.copy()
    for _ in range(RINGS):
        grown[faces[grown[faces].any(axis=1)]] = True
    return grown


def _published_for(dataset: str) -> tuple[PublishedTable, bool]:
    name = dataset.lower()
    if "cuts" in name or "holes" in name:
        return (SHREC16_CUTS_ERROR if "cuts" in name else SHREC16_HOLES_ERROR), "shrec" in name
    if "faust" in name:
        remeshed = "faust_r" in name or "remesh" in name
        return (FAUST_REMESHED_ERROR if remeshed else FAUST_EXACT), True
    return FAUST_EXACT, False


def _training_log(path: Path) -> FloatArray:
    """(points, 2) seconds and mean loss over equal stretches of a training log; empty where there is none."""
    rows = [(step["seconds"], step["loss"]) for step in read_log(path, "seconds", "loss")]
    table = np.array(rows, float).reshape(-1, 2)
    table = table[np.isfinite(table).all(axis=1)]
    if len(table) <= LOG_POINTS:
        return table
    return np.array([part.mean(axis=0) for part in np.array_split(table, LOG_POINTS)])
