"""Several methods on the same shapes: runs of trained methods, and methods for two shapes as they are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.correspondence.refine import known_method
from acnn.correspondence.soft_map import soft_map_from_point_map
from acnn.datasets.dataset import Dataset
from acnn.datasets.open import open_dataset
from acnn.errors import InputError
from acnn.evaluation.distances import ReferenceDistances
from acnn.evaluation.princeton import evaluate_map
from acnn.evaluation.results import EvaluationReport, Matched, errors_of_vertices, evaluation_report
from acnn.methods.method import PairMethod
from acnn.methods.registry import PAIR_METHODS
from acnn.methods.run import Run, open_run, run_folder
from acnn.progress import Progress, begin_stage, named_stages
from acnn.reports import Report
from acnn.runs.evaluate import evaluate_run, ground_truth, unseen_shapes
from acnn.surface.surface import surface_of
from acnn.training.prepare import Failure
from acnn.types import FloatArray, IntArray
from acnn.viewer.comparison_figures import ComparedMethod, ComparisonData


@dataclass(frozen=True, eq=False)
class MethodResult:
    """What one method found.

    Attributes
    ----------
    label : str
        Its name, with that of the run where two runs are of one method, and of its folder where that is the same, too.
    matched : dict[str, Matched]
        Shapes by name; those that it could not match are missing.
    figures : Report
        As `acnn evaluate --json` prints them.
    """

    label: str
    matched: dict[str, Matched]
    figures: Report


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several methods on the same shapes.

    Attributes
    ----------
    dataset : Dataset
        With the reference that all shapes were matched to.
    names : tuple[str, ...]
        Of the shapes.
    results : tuple[MethodResult, ...]
        One a method, in the order asked for.
    """

    dataset: Dataset
    names: tuple[str, ...]
    results: tuple[MethodResult, ...]


@check_arguments
def compare_methods(
    methods: Sequence[str | Path],
    data: str | Path | Dataset | None = None,
    *,
    test_list: str | None = None,
    shapes: int = 4,
    refinement: str = "none",
    workers: int = 1,
    progress: Progress | None = None,
) -> tuple[Comparison, list[Failure]]:
    """Match the same shapes to one reference by several methods.

    Parameters
    ----------
    methods : sequence of str or Path
        Folders or names of runs, and names of pair methods (`acnn.methods.registry.PAIR_METHODS`).
    data : str or Path or Dataset or None
        As for `open_dataset`; None is the data that the first run was trained on.
    test_list : str or None
        Shapes, as for `Dataset.select`; by default some that no run was trained on.
    shapes : int
        Largest number of shapes if there is no list.
    refinement : str
        `none`, `fm`, `zoomout`, `pfm` or `auto`; pair methods that have a refinement of their own use that.
    workers : int
        Number of processes that prepare shapes.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    tuple[Comparison, list[Failure]]
        The results, and what could not be matched, with the method that could not.

    Raises
    ------
    InputError
        Where a method is neither a run nor a pair method, or a run has another reference than the data.
    """
    if not methods:
        raise InputError(f"Name at least one run, or one of {', '.join(PAIR_METHODS)}.")
    opened = [_opened(item) for item in methods]
    runs = [method for method in opened if isinstance(method, Run)]
    if runs:
        dataset = runs[0].open_dataset(data)
    elif data is None:
        raise InputError("Without a run there is no dataset to match: give one (--data).")
    else:
        dataset = data if isinstance(data, Dataset) else open_dataset(data)
    chosen = dataset.select(test_list if test_list is not None else unseen_shapes(dataset, runs, shapes))
    names = tuple(sample.name for sample in chosen.samples)
    results: list[MethodResult] = []
    failures: list[Failure] = []
    for label, method in zip(_labels(opened), opened, strict=True):
        kept: list[Matched] = []
        options: dict[str, Any] = {"test_list": ",".join(names), "refinement": refinement, "keep": kept.append}
        options["progress"] = named_stages(progress, f"{label}: {{}}")
        if isinstance(method, Run):
            figures, failed = evaluate_run(method, dataset, workers=workers, **options)
        else:
            figures, failed = evaluate_pair_method(method, dataset, **options)
        results.append(MethodResult(label, {one.name: one for one in kept}, figures))
        failures += [Failure(f"{failure.item} ({label})", failure.why, failure.unrelated) for failure in failed]
    return Comparison(dataset, names, tuple(results)), failures


def evaluate_pair_method(
    method: PairMethod,
    data: str | Path | Dataset,
    *,
    test_list: str | None = None,
    refinement: str = "none",
    progress: Progress | None = None,
    keep: Callable[[Matched], None] | None = None,
) -> tuple[EvaluationReport, list[Failure]]:
    """Match every test shape to the reference of a dataset by a method for two shapes, and compare.

    Parameters
    ----------
    method : PairMethod
        Of `acnn.methods.registry.PAIR_METHODS`.
    data : str or Path or Dataset
        As for `open_dataset`.
    test_list : str or None
        Shapes, as for `Dataset.select`; by default those marked `test`, or all.
    refinement : str
        As for `evaluate_run`, where the method takes one.
    progress : Progress or None
        Called with (done, total).
    keep : callable or None
        Called with each matched shape.

    Returns
    -------
    tuple[EvaluationReport, list[Failure]]
        Figures as of `evaluate_run`, and the shapes that the method could not match.

    Raises
    ------
    InputError
        Where no shape could be matched.
    """
    dataset = data if isinstance(data, Dataset) else open_dataset(data)
    refining = known_method(refinement)
    marked = any(sample.split == "test" for sample in dataset.samples)
    samples = dataset.select(test_list if test_list is not None else "test" if marked else "all").samples
    reference = surface_of(dataset.reference, dataset.unit)
    distances = ReferenceDistances(reference)
    matching = begin_stage(progress, "matching")
    found: list[Matched] = []
    failures: list[Failure] = []
    seconds: list[float] = []
    for done, sample in enumerate(samples):
        if matching:
            matching(done, len(samples))
        try:
            example = sample.read()
            began = time.perf_counter()
            pair = method.match(surface_of(example.shape, dataset.unit), reference, refining, None)
        except InputError as error:
            failures.append(Failure(sample.name, str(error)))
            continue
        seconds.append(time.perf_counter() - began)
        truth, other, rows = ground_truth(example, dataset.mirror)
        known: dict[str, Any] = {"rows": rows, "name": sample.name}
        plain = evaluate_map(pair.a_to_b, truth, distances, **known)
        symmetric = None
        if other is not None:
            symmetric = evaluate_map(pair.a_to_b, truth, distances, mirrored_truth=other, **known)
        soft = soft_map_from_point_map(pair.a_to_b, len(reference.vertices), pair.confidence)
        found.append(Matched(sample.name, example, soft, None, plain, None, symmetric))
        if keep:
            keep(found[-1])
    if not found:
        raise InputError(f"No test shape could be matched: {failures[0].item}: {failures[0].why}")
    symmetrics = [one.symmetric for one in found if one.symmetric is not None]
    report = evaluation_report(
        [one.evaluation for one in found],
        distances.normalisation,
        symmetric=symmetrics if len(symmetrics) == len(found) else None,
    )
    return replace(report, refinement=refining, seconds_per_shape=float(np.mean(seconds))), failures


def comparison_data(comparison: Comparison) -> ComparisonData:
    """What figures show of a comparison: final maps, and their errors in percent of the geodesic diameter."""
    by_area = ReferenceDistances(surface_of(comparison.dataset.reference, comparison.dataset.unit))
    percent = 100.0 * by_area.length / by_area.diameter  # of errors over sqrt(area)
    shapes = [comparison.dataset.named(name).read().shape for name in comparison.names]
    methods = []
    for result in comparison.results:
        maps: list[IntArray | None] = []
        errors: list[FloatArray | None] = []
        for matched in map(result.matched.get, comparison.names):
            if matched is None:
                maps.append(None)
                errors.append(None)
                continue
            refined = matched.refined_evaluation
            maps.append(matched.soft_map.query_to_reference if matched.refined is None else matched.refined)
            errors.append(percent * errors_of_vertices(matched, matched.evaluation if refined is None else refined))
        methods.append(ComparedMethod(result.label, maps, errors))
    return ComparisonData(comparison.dataset.reference, comparison.names, shapes, methods)


def _opened(item: str | Path) -> Run | PairMethod:
    """A pair method by its name, or a run; a folder of the same name is taken for the run."""
    if str(item) in PAIR_METHODS and not Path(item).is_dir():
        return PAIR_METHODS[str(item)]
    return open_run(run_folder(Path(item)))


def _labels(methods: Sequence[Run | PairMethod]) -> list[str]:
    names = [(one.method.name if isinstance(one, Run) else one.name).upper() for one in methods]
    folders = [one.folder.name if isinstance(one, Run) else "" for one in methods]
    labels = []
    for name, folder, one in zip(names, folders, methods, strict=True):
        if names.count(name) == 1 or not isinstance(one, Run):
            labels.append(name)
        else:  # the runs of two demos are both called 'run'
            parts = one.folder.resolve().parts[-1 if folders.count(folder) == 1 else -2 :]
            labels.append(f"{name} ({'/'.join(parts)})")
    return labels
