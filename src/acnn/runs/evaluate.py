"""How well a run matches the shapes of a dataset."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.correspondence.functional_map import basis_of
from acnn.correspondence.refine import EIGENFUNCTIONS, RefineMethod, known_method, refine
from acnn.datasets.dataset import Dataset, Example
from acnn.datasets.open import open_dataset
from acnn.errors import InputError
from acnn.evaluation.descriptors import DescriptorEvaluation, evaluate_descriptors, mean_evaluation
from acnn.evaluation.distances import ReferenceDistances
from acnn.evaluation.princeton import ShapeEvaluation, evaluate_map, evaluation_report, mirrored, smoothness
from acnn.evaluation.results import Matched
from acnn.methods.run import Run, open_run
from acnn.progress import Progress, begin_stage
from acnn.runs.segment import evaluate_segmentation
from acnn.shapes.mesh import BarycentricPoints, Mesh
from acnn.surface.surface import surface_of
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
    workers: int = 1,
    progress: Progress | None = None,
    keep: Callable[[Matched], None] | None = None,
) -> tuple[dict[str, Any], list[Failure]]:
    """Match shapes whose truth is known, and compare.

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
    workers : int
        Processes that prepare.
    progress : Progress or None
        Called with (done, in all); stages `preparing` and `matching`.
    keep : callable or None
        Called with each matched shape, for pictures and the like.

    Returns
    -------
    tuple[dict[str, Any], list[Failure]]
        What `acnn evaluate --json` prints, and the shapes that could not be prepared or matched; of a segmentation
        that of `evaluate_segmentation`, and of a learned descriptor its hit rates under `descriptor` as well. The truth
        on the other side (`symmetric`) is told where it is known of all shapes. `seen_in_training` and
        `seen_in_validation` name the test shapes that the network was trained on, or that chose the model, whatever
        they were called then; they are `unknown` for runs that did not record it.
    """
    opened = run if isinstance(run, Run) else open_run(run)
    if reestimate:
        opened = opened.reestimated()
    dataset = data if isinstance(data, Dataset) else open_dataset(data if data is not None else opened.facts["data"])
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
    prepared, failures = prepare(
        dataset,
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
    for done, shape in enumerate(prepared):
        if matching:
            matching(done, len(prepared))
        try:
            example = dataset.named(shape.name).read()
            matched, measured = judge.match(example, shape)
            described.append(judge.compare_descriptors(example, shape))
        except InputError as error:
            failures.append(Failure(shape.name, str(error)))
            continue
        for kind in kinds:
            found[kind].append(getattr(matched, kind))
        figures.append(measured)
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
    report["smoothness"] = means["smoothness"]
    if "refined" in report:
        report["refined"]["smoothness"] = means["refined_smoothness"]
    if described[0]:
        kinds_of_descriptors = {kind: mean_evaluation([one[kind] for one in described]) for kind in described[0]}
        report["descriptor"] = {kind: mean.as_dict() for kind, mean in kinds_of_descriptors.items()}
    content = {shape.name: shape.content for shape in prepared}
    evaluated = {entry["name"]: content[entry["name"]] for entry in report["shapes"]}
    report |= {"seen_in_training": opened.seen(evaluated, "train")}
    report |= {"seen_in_validation": opened.seen(evaluated, "validation")}
    return report | {"refinement": method, "seconds_per_shape": means["seconds"]}, failures


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


def _test_names(run: Run, dataset: Dataset, test_list: str | None) -> list[str]:
    """Names of the shapes to test on."""
    if test_list is not None:
        names = [s.name for s in dataset.select(test_list).samples]
    elif any(s.split == "test" for s in dataset.samples):
        names = [s.name for s in dataset.select("test").samples]
    else:
        trained = {*run.facts["train"], *run.facts["validation"]}
        names = [s.name for s in dataset.samples if s.name not in trained]
    if not names:
        raise InputError("There is no shape to test on that was not trained on: name some with --test.")
    return names


class _Judge:
    """Matches shapes with a run and compares with their truth.

    - distances: on the reference, by which errors are measured
    """

    def __init__(self, run: Run, unit: float | None, method: RefineMethod) -> None:
        self.run, self.method = run, method
        self.reference = surface_of(run.reference, unit)
        self.distances = ReferenceDistances(self.reference)
        self.basis = basis_of(self.reference, EIGENFUNCTIONS[method]) if method != "none" else None

    def match(self, example: Example, shape: Prepared) -> tuple[Matched, dict[str, float]]:
        """One shape, and `seconds`, `smoothness` and `refined_smoothness` of its matching.

        Raises
        ------
        InputError
            Where the network does not fit the shape, or nothing is known of its truth.
        """
        self.run.check_triangulation(example.shape)
        query = surface_of(example.shape, shape.unit)
        began = time.perf_counter()
        soft = self.run.soft_map(shape)
        measured = {"seconds": time.perf_counter() - began}
        measured["smoothness"] = smoothness(soft.query_to_reference, query, self.reference)
        truth, other, rows = ground_truth(example, self.run.mirror)

        def compare(point_map: IntArray, mirrored_truth: IntArray | BarycentricPoints | None = None) -> ShapeEvaluation:
            return evaluate_map(
                point_map, truth, self.distances, mirrored_truth=mirrored_truth, rows=rows, name=shape.name
            )

        def symmetric(point_map: IntArray) -> ShapeEvaluation | None:
            return None if other is None else compare(point_map, other)

        direct = soft.query_to_reference
        matched = Matched(shape.name, example, soft, None, compare(direct), None, symmetric(direct))
        if self.method == "none":
            return matched, measured
        refined = refine(soft, query, self.reference, self.method, reference_basis=self.basis).query_to_reference
        measured["refined_smoothness"] = smoothness(refined, query, self.reference)
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


def _same_reference(a: Mesh, b: Mesh) -> bool:
    return len(a.vertices) == len(b.vertices) and np.array_equal(a.faces, b.faces)
