"""Results of an evaluation: every shape with its map, its ground truth and its errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acnn.correspondence.soft_map import SoftMap
from acnn.datasets.dataset import Example
from acnn.evaluation.princeton import ShapeEvaluation
from acnn.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Matched:
    """One shape as a run matched it.

    Attributes
    ----------
    name, example
        The shape.
    soft_map : SoftMap
        The network output.
    refined : (n,) array or None
        The refined map, or None.
    evaluation, refined_evaluation
        Against the ground truth.
    symmetric, refined_symmetric : ShapeEvaluation or None
        The same by the symmetric protocol; None where the mirrored ground truth is unknown.
    """

    name: str
    example: Example
    soft_map: SoftMap
    refined: IntArray | None
    evaluation: ShapeEvaluation
    refined_evaluation: ShapeEvaluation | None
    symmetric: ShapeEvaluation | None = None
    refined_symmetric: ShapeEvaluation | None = None


def errors_of_vertices(matched: Matched, evaluation: ShapeEvaluation) -> FloatArray:
    """Error of every vertex of a shape.

    Parameters
    ----------
    matched : Matched
        The shape.
    evaluation : ShapeEvaluation
        One of its evaluations.

    Returns
    -------
    (n,) array
        NaN where the ground truth is unknown; the mean where a vertex has several.
    """
    example = matched.example
    n = len(example.shape.vertices)
    if example.pairs is not None:
        rows = example.pairs[:, 0]
        count = np.bincount(rows, minlength=n)
        total = np.bincount(rows, weights=evaluation.errors, minlength=n)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)
    known = (example.truth.faces if example.truth is not None else example.labels) >= 0
    errors = np.full(n, np.nan)
    errors[known] = evaluation.errors
    return errors
