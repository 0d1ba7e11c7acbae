"""How well a run matches the shapes of a dataset."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acnn.correspondence import SoftMap, basis_of, refine
from acnn.correspondence.refine import EIGENFUNCTIONS, RefineMethod, known_method
from acnn.datasets import open_dataset
from acnn.datasets.collection import BarycentricTruth, Dataset, Example
from acnn.errors import InputError
from acnn.evaluation import (
    ReferenceDistances,
    ShapeEvaluation,
    evaluate_map,
    evaluation_report,
    mirrored,
    smoothness,
)
from acnn.pipeline.prepare import Failure, prepare
from acnn.pipeline.run import Run, open_run
from acnn.shapes.shape import IntArray
from acnn.surface import Surface, surface_of
from acnn.surface.rows import Progress


@dataclass(frozen=True, eq=False)
class Matched:
    """One shape as a run matched it.

    - name, example: the shape
    - soft_map: what the network says
    - refined: (n,) the refined map, or None
    - evaluation, refined_evaluation: against the truth
    - symmetric, refined_symmetric: the same where the truth on the other side counts, too; None where that is unknown
    """

    name: str
    example: Example
    soft_map: SoftMap
    refined: IntArray | None
    evaluation: ShapeEvaluation
    refined_evaluation: ShapeEvaluation | None
    symmetric: ShapeEvaluation | None = None
    refined_symmetric: ShapeEvaluation | None = None


def evaluate_run(
    run: Run | Path | str,
    data: str | Path | Dataset | None = None,
    *,
    test_list: str | None = None,
    refinement: str = "none",
    workers: int = 1,
    preparing: Progress | None = None,
    progress: Progress | None = None,
    keep: Callable[[Matched], None] | None = None,
) -> tuple[dict[str, Any], list[Failure]]:
    """Match shapes whose truth is known, and compare.

    Parameters
    - run: or its folder
    - data: as for `open_dataset`; None is the data it was trained on
    - test_list: shapes, as for `Dataset.select`; by default those marked `test`, or all that were not trained on
    - refinement: `none`, `fm`, `zoomout`, `pfm` or `auto`
    - workers: processes that prepare
    - preparing, progress: called with (done, in all)
    - keep: called with each matched shape, for pictures and the like

    Returns what `acnn evaluate --json` prints, and the shapes that failed to be prepared.
    """
    opened = run if isinstance(run, Run) else open_run(run)
    dataset = data if isinstance(data, Dataset) else open_dataset(data if data is not None else opened.facts["data"])
    method = known_method(refinement)
    if test_list is None:
        trained = {*opened.facts["train"], *opened.facts["validation"]}
        test_list = "test" if any(s.split == "test" for s in dataset.samples) else None
        chosen = dataset.select(test_list) if test_list else None
        names = [s.name for s in (chosen or dataset).samples if chosen or s.name not in trained]
    else:
        names = [s.name for s in dataset.select(test_list).samples]
    if not names:
        raise InputError("There is no shape to test on that was not trained on: name some with --test.")
    prepared, failures = prepare(
        dataset,
        opened.config.descriptors,
        opened.config.patches,
        samples=names,
        workers=workers,
        reference=False,
        progress=preparing,
    )
    if not prepared:
        raise InputError(f"No test shape could be prepared: {failures[0].item}: {failures[0].why}")
    reference = surface_of(opened.reference, dataset.unit)
    distances = ReferenceDistances(reference)
    base = basis_of(reference, _pairs(reference, method)) if method != "none" else None
    results: dict[str, list[ShapeEvaluation]] = {"": [], "symmetric": [], "refined": [], "refined symmetric": []}
    seconds, rough, rough_refined = [], [], []
    for done, shape in enumerate(prepared):
        if progress:
            progress(done, len(prepared))
        example = dataset.named(shape.name).read()
        query = surface_of(example.shape, shape.unit)
        patches, descriptors = shape.patches(), shape.descriptors()
        began = time.perf_counter()
        soft = opened.soft_map(descriptors, patches)
        seconds.append(time.perf_counter() - began)
        truth, other, rows = _truth(example, opened.mirror)
        maps = {"": soft.query_to_reference}
        rough.append(smoothness(maps[""], query, reference))
        if method != "none":
            maps["refined"] = refine(soft, query, reference, method, reference_basis=base).query_to_reference
            rough_refined.append(smoothness(maps["refined"], query, reference))
        for key, point_map in maps.items():
            results[key].append(evaluate_map(point_map, truth, distances, rows=rows, name=shape.name))
            if other is not None:
                symmetric = evaluate_map(point_map, truth, distances, mirrored_truth=other, rows=rows, name=shape.name)
                results[f"{key} symmetric".strip()].append(symmetric)
        if keep:
            last = {key: found[-1] if found else None for key, found in results.items()}
            keep(
                Matched(
                    shape.name,
                    example,
                    soft,
                    maps.get("refined"),
                    results[""][-1],
                    last["refined"],
                    last["symmetric"],
                    last["refined symmetric"],
                )
            )
    report = evaluation_report(
        results[""],
        distances.normalisation,
        symmetric=results["symmetric"] or None,
        refined=results["refined"] or None,
        refined_symmetric=results["refined symmetric"] or None,
    )
    report["smoothness"] = float(np.mean(rough))
    if "refined" in report:
        report["refined"]["smoothness"] = float(np.mean(rough_refined))
    return report | {"refinement": method, "seconds_per_shape": float(np.mean(seconds))}, failures


def _pairs(surface: Surface, method: RefineMethod) -> int:
    return min(EIGENFUNCTIONS[method], len(surface.vertices) - 1)


def _truth(
    example: Example, mirror: IntArray | None
) -> tuple[IntArray | BarycentricTruth, IntArray | BarycentricTruth | None, IntArray | None]:
    """Truth of a shape, that on the other side where it is known, and the vertices they belong to (None: all)."""
    other = example.mirrored
    if other is None and mirror is not None:
        other = mirrored(example.labels, mirror).astype(np.int32)
    if example.pairs is not None:
        rows, truth = example.pairs.T
        return truth, None if other is None else other[rows], rows
    if example.truth is not None:
        return example.truth, example.mirrored_truth or other, None
    return example.labels, other, None
