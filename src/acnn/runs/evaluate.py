"""How well a run matches the shapes of a dataset."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from acnn.arguments import check_arguments
from acnn.correspondence.functional_map import basis_of
from acnn.correspondence.lift import lift_soft_map
from acnn.correspondence.refine import EIGENFUNCTIONS, RefineMethod, known_method, refine
from acnn.datasets.dataset import Dataset, Example, spread_over
from acnn.errors import InputError
from acnn.evaluation.descriptors import DescriptorEvaluation, evaluate_descriptors, mean_evaluation
from acnn.evaluation.distances import ReferenceDistances
from acnn.evaluation.princeton import ShapeEvaluation, evaluate_map, mirrored, smoothness
from acnn.evaluation.results import EvaluationReport, Matched, evaluation_report
from acnn.evaluation.segmentation import SegmentationReport
from acnn.methods.run import Run, open_run
from acnn.progress import Progress, begin_stage
from acnn.runs.match_routes import coarse_below, working_size_of
from acnn.runs.segment import evaluate_segmentation
from acnn.runs.working_pair import lift_to_reference
from acnn.shapes.mesh import BarycentricPoints, Mesh, content_hash
from acnn.surface.surface import surface_of
from acnn.surface.working_copy import WorkingCopy, working_copy
from acnn.training.prepare import Failure, prepare
from acnn.training.prepared import Prepared
from acnn.types import FloatArray, IntArray


@check_arguments
def evaluate_run(
    run: Run | Path | str,
    data: str | Path | Dataset | None = None,
    *,
    test_list: str | None = None,
    refinement: str = "auto",
    reestimate: bool = False,
    working_size: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    keep: Callable[[Matched], None] | None = None,
) -> tuple[EvaluationReport | SegmentationReport, list[Failure]]:
    """Match shapes whose ground truth is known, and compare.

    Parameters
    ----------
    run : Run or Path or str
        Or its folder.
    data : str or Path or Dataset or None
        As for `open_dataset`; None is the data it was trained on.
    test_list : str or None
        Shapes, as for `Dataset.select`; by default those marked `test`, or all that were not trained on.
    refinement : str
        `none`, `fm`, `zoomout`, `pfm` or `auto`.
    reestimate : bool
        Take the statistics of batch normalisation from each query instead of the training shapes.
    working_size : int or None
        As for `match_shape`: larger shapes are matched on working copies, and their maps are lifted. Segmentations are
        of the shapes themselves.
    workers : int
        Processes that prepare.
    progress : Progress or None
        Called with (done, total); stages `preparing` and `matching`.
    keep : callable or None
        Called with each matched shape, to render it, for example.

    Returns
    -------
    tuple[EvaluationReport or SegmentationReport, list[Failure]]
        What `acnn evaluate --json` prints, and the shapes that could not be prepared or matched; of a segmentation
        that of `evaluate_segmentation`, and of a learned descriptor its hit rates under `descriptor` as well. Figures
        of the symmetric protocol are given where the mirrored ground truth of all shapes is known. `seen_in_training`
        and `seen_in_validation` name the test shapes that the network was trained on, or that chose the model, whatever
        they were called then; they are `unknown` for runs that did not record it. `working_copies` has their `size`,
        the number of `shapes` that were copied, and the mean numbers of `vertices` and of `working` vertices of these.
    """
    opened = run if isinstance(run, Run) else open_run(run)
    if reestimate:
        opened = opened.reestimated()
    dataset = opened.open_dataset(data)
    if opened.class_names:
        names = _test_names(opened, dataset, test_list)
        return evaluate_segmentation(opened, dataset, names, workers=workers, progress=progress)
    if not _same_reference(dataset.reference, opened.reference):
        raise InputError(
            f"The ground truth of {dataset.name} is on a reference of {len(dataset.reference.vertices)} vertices, "
            f"not that of the network ({len(opened.reference.vertices)} vertices). Use data with the same reference."
        )
    unit = opened.unit
    dataset = dataset if unit is None else replace(dataset, unit=unit)
    method = known_method(refinement)
    names = _test_names(opened, dataset, test_list)
    size, coarse = working_size_of(working_size, opened), coarse_below(opened)
    prepared, failures = prepare(
        replace(dataset, samples=tuple(replace(s, read=_CopyReader(s.read, size, coarse)) for s in dataset.samples)),
        opened.needs,
        samples=names,
        workers=workers,
        progress=begin_stage(progress, "preparing"),
    )
    matching = begin_stage(progress, "matching")
    judge = _Judge(opened, dataset.unit, method)
    kinds = ("evaluation", "symmetric", "refined_evaluation", "refined_symmetric")
    found: dict[str, list[ShapeEvaluation | None]] = {kind: [] for kind in kinds}
    figures: list[dict[str, float]] = []
    described: list[dict[str, DescriptorEvaluation]] = []
    content: dict[str, str] = {}
    copied: list[tuple[int, int]] = []
    for done, shape in enumerate(prepared):
        if matching:
            matching(done, len(prepared))
        try:
            example = dataset.named(shape.name).read()
            copy = working_copy(example.shape, size, coarse)
            matched, measured = judge.match(example, copy, shape)
            described.append(judge.compare_descriptors(_on_copy(example, copy), shape))
        except InputError as error:
            failures.append(Failure(shape.name, str(error)))
            continue
        for kind in kinds:
            found[kind].append(getattr(matched, kind))
        figures.append(measured)
        content[shape.name] = content_hash(example.shape)
        if copy.is_copy:
            copied.append((len(example.shape.vertices), len(copy.shape.vertices)))
        if keep:
            keep(matched)
    if not figures:
        raise InputError(f"No test shape could be matched: {failures[0].item}: {failures[0].why}")
    whole = {kind: [one for one in those if one is not None] for kind, those in found.items()}
    everywhere = {kind: those if len(those) == len(figures) else None for kind, those in whole.items()}
    report = evaluation_report(
        whole["evaluation"],
        judge.distances.normalisation,
        symmetric=everywhere["symmetric"],
        refined=everywhere["refined_evaluation"],
        refined_symmetric=everywhere["refined_symmetric"],
    )
    means = {name: float(np.mean([measured[name] for measured in figures])) for name in figures[0]}
    kinds_of_descriptors = {kind: mean_evaluation([one[kind] for one in described]) for kind in described[0]}
    refined = report.refined and replace(report.refined, smoothness=means["refined_smoothness"])
    copies: dict[str, float] = {"size": size, "shapes": len(copied)}
    if copied:
        copies |= dict(zip(("vertices", "working"), np.mean(copied, axis=0).tolist(), strict=True))
    report = replace(
        report,
        refined=refined,
        smoothness=means["smoothness"],
        descriptor={kind: mean.as_dict() for kind, mean in kinds_of_descriptors.items()} or None,
        seen_in_training=opened.seen(content, "train"),
        seen_in_validation=opened.seen(content, "validation"),
        refinement=method,
        seconds_per_shape=means["seconds"],
        working_copies=copies,
    )
    return report, failures


def ground_truth(
    example: Example, mirror: IntArray | None
) -> tuple[IntArray | BarycentricPoints, IntArray | BarycentricPoints | None, IntArray | None]:
    """Ground truth of a shape, that on the other side where it is known, and the vertices they belong to (None: all).

    Parameters
    ----------
    example : Example
        The shape.
    mirror : (m,) array or None
        The reference vertex on the other side of each, where the shape itself does not know.
    """
    other = example.mirrored
    if other is None and mirror is not None:
        other = mirrored(example.labels, mirror).astype(np.int32)
    if example.pairs is not None:
        rows, truth = example.pairs.T
        return truth, None if other is None else other[rows], rows
    if example.truth is not None:
        return example.truth, example.mirrored_truth or other, None
    return example.labels, other, None


def unseen_shapes(dataset: Dataset, runs: Sequence[Run], count: int) -> list[str]:
    """Choose shapes that were not trained on, evenly spread over the dataset; half of them remeshed copies.

    Parameters
    ----------
    dataset : Dataset
        Its test split, or all shapes if it has none.
    runs : sequence of Run
        Whose training and validation shapes are excluded.
    count : int
        Largest number of shapes.

    Returns
    -------
    list[str]
        Their names.

    Raises
    ------
    InputError
        If `count` is below 1 or no shape is left.
    """
    if count < 1:
        raise InputError(f"--shapes {count}: give at least 1.")
    trained = {name for run in runs for name in (*run.record.train, *run.record.validation)}
    marked = [s for s in dataset.samples if s.split == "test"]
    unseen = [s for s in marked or dataset.samples if s.name not in trained]
    if not unseen:
        raise InputError("All shapes were used in training or validation: choose some with --test.")
    copies = [s for s in unseen if "_remeshed" in s.name]
    originals = [s for s in unseen if "_remeshed" not in s.name]
    if not copies or not originals:
        return [s.name for s in spread_over(unseen, count)]
    first = spread_over(originals, -(-count // 2))
    return [s.name for s in [*first, *spread_over(copies, count // 2)]]


def _test_names(run: Run, dataset: Dataset, test_list: str | None) -> list[str]:
    """Names of the shapes to test on."""
    if test_list is not None:
        names = [s.name for s in dataset.select(test_list).samples]
    elif any(s.split == "test" for s in dataset.samples):
        names = [s.name for s in dataset.select("test").samples]
    else:
        trained = {*run.record.train, *run.record.validation}
        names = [s.name for s in dataset.samples if s.name not in trained]
    if not names:
        raise InputError("There is no shape to test on that was not trained on: name some with --test.")
    return names


class _Judge:
    """Matches shapes with a run and compares with their ground truth.

    - distances: on the reference, by which errors are measured
    """

    def __init__(self, run: Run, unit: float | None, method: RefineMethod) -> None:
        self.run, self.method = run, method
        self.reference = surface_of(run.reference, unit)
        self.distances = ReferenceDistances(self.reference)
        self.basis = basis_of(self.reference, EIGENFUNCTIONS[method]) if method != "none" else None

    def match(self, example: Example, copy: WorkingCopy, shape: Prepared) -> tuple[Matched, dict[str, float]]:
        """One shape, and `seconds`, `smoothness` and `refined_smoothness` of its matching.

        The copy is the one that was prepared.

        Raises
        ------
        InputError
            Where the network does not fit the shape, or nothing is known of its ground truth.
        """
        self.run.check_triangulation(example.shape)
        query = surface_of(copy.shape, shape.unit)
        began = time.perf_counter()
        soft = self.run.soft_map(shape)
        measured = {"seconds": time.perf_counter() - began}
        measured["smoothness"] = smoothness(soft.query_to_reference, query, self.reference)

        def lifted(point_map: IntArray) -> IntArray:
            return lift_to_reference(point_map, copy, (query, self.reference), self.run.reference)

        truth, other, rows = ground_truth(example, self.run.mirror)

        def compare(point_map: IntArray, mirrored_truth: IntArray | BarycentricPoints | None = None) -> ShapeEvaluation:
            return evaluate_map(
                point_map, truth, self.distances, mirrored_truth=mirrored_truth, rows=rows, name=shape.name
            )

        def symmetric(point_map: IntArray) -> ShapeEvaluation | None:
            return None if other is None else compare(point_map, other)

        direct = lifted(soft.query_to_reference)
        shown = lift_soft_map(soft, copy)
        matched = Matched(shape.name, example, shown, None, compare(direct), None, symmetric(direct))
        if self.method == "none":
            return matched, measured
        refined = refine(soft, query, self.reference, self.method, reference_basis=self.basis).query_to_reference
        measured["refined_smoothness"] = smoothness(refined, query, self.reference)
        refined = lifted(refined)
        found = replace(
            matched, refined=refined, refined_evaluation=compare(refined), refined_symmetric=symmetric(refined)
        )
        return found, measured

    def compare_descriptors(self, example: Example, shape: Prepared) -> dict[str, DescriptorEvaluation]:
        """Hit rates of the `learned` descriptor and of the network's `input`; empty where labels were learned."""
        learned = self.run.matcher.describe(shape)
        if learned is None:
            return {}
        pairs = {"learned": (learned, self.described)}
        if self.run.needs.descriptors is not None:
            pairs["input"] = (shape.descriptors(), self.run.reference_inputs.descriptors())
        other = example.mirrored
        if other is None and self.run.mirror is not None:
            other = mirrored(example.labels, self.run.mirror).astype(np.int32)
        return {
            kind: evaluate_descriptors(here, there, example.labels, mirrored_truth=other)
            for kind, (here, there) in pairs.items()
        }

    @cached_property
    def described(self) -> FloatArray:
        """(m, q) learned descriptors of the reference."""
        found = self.run.matcher.describe(self.run.reference_inputs)
        assert found is not None
        return found


@dataclass(frozen=True, eq=False)
class _CopyReader:
    """Reads the working copy of a shape instead of the shape."""

    read: Callable[[], Example]
    size: int
    coarse: int

    def __call__(self) -> Example:
        example = self.read()
        return _on_copy(example, working_copy(example.shape, self.size, self.coarse))


def _on_copy(example: Example, copy: WorkingCopy) -> Example:
    """A copy with the labels of the nearest vertices; the example itself where it was not copied."""
    if not copy.is_copy:
        return example
    mirrored = None if example.mirrored is None else example.mirrored[copy.vertices]
    return Example(copy.shape, example.labels[copy.vertices], mirrored=mirrored)


def _same_reference(a: Mesh, b: Mesh) -> bool:
    return len(a.vertices) == len(b.vertices) and np.array_equal(a.faces, b.faces)
