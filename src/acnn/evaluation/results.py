"""Results of an evaluation: every shape with its map, ground truth and errors, and the report over all shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acnn.correspondence.soft_map import SoftMap
from acnn.datasets.dataset import Example
from acnn.errors import InputError
from acnn.evaluation.princeton import THRESHOLDS, ShapeEvaluation
from acnn.reports import Report
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


@dataclass(frozen=True, eq=False)
class ShapeFigures(Report):
    """Figures of one shape in a report."""

    name: str
    exact: float
    mean_error_x100: float


@dataclass(frozen=True, eq=False)
class PerMapFigures(Report):
    """Symmetric figures that do not accept a mix of left and right, see `acnn.evaluation.princeton`.

    `flipped` is the number of maps nearer to the mirrored ground truth.
    """

    exact: float
    auc: float
    mean_error_x100: float
    flipped: int


@dataclass(frozen=True, eq=False)
class EvaluationReport(Report):
    """Figures over a set of shapes, averaged over shapes: what `acnn evaluate --json` prints.

    Attributes
    ----------
    exact, auc : float
        In 0..1; `auc` is the mean of the curve.
    mean_error_x100 : float
    normalisation : str
        The length that errors are divided by.
    thresholds, curve : list[float]
        Fraction of matches with errors up to each threshold.
    coverage : float
        Fraction of the reference's area that is matched to.
    shapes : list[ShapeFigures]
    per_map : PerMapFigures or None
        Of a symmetric evaluation.
    symmetric, refined : EvaluationReport or None
        By the symmetric protocol; of the refined maps.
    smoothness : float or None
        See `smoothness`.
    descriptor : dict or None
        Hit rates of a learned descriptor and of the network's input.
    seen_in_training, seen_in_validation : list[str] or str or None
        Shapes that the model was trained on, or that chose it; `unknown` where a run did not record them.
    refinement : str or None
        The method of refinement.
    seconds_per_shape : float or None
    working_copies : dict[str, float] or None
        See `acnn.runs.evaluate.evaluate_run`.
    """

    exact: float
    auc: float
    mean_error_x100: float
    normalisation: str
    thresholds: list[float]
    curve: list[float]
    coverage: float
    shapes: list[ShapeFigures]
    per_map: PerMapFigures | None = None
    symmetric: EvaluationReport | None = None
    refined: EvaluationReport | None = None
    smoothness: float | None = None
    descriptor: dict[str, Any] | None = None
    seen_in_training: list[str] | str | None = None
    seen_in_validation: list[str] | str | None = None
    refinement: str | None = None
    seconds_per_shape: float | None = None
    working_copies: dict[str, float] | None = None


def evaluation_report(
    shapes: Sequence[ShapeEvaluation],
    normalisation: str,
    *,
    symmetric: Sequence[ShapeEvaluation] | None = None,
    refined: Sequence[ShapeEvaluation] | None = None,
    refined_symmetric: Sequence[ShapeEvaluation] | None = None,
) -> EvaluationReport:
    """Figures over a set of shapes, as `acnn evaluate --json` prints them, averaged over shapes.

    Parameters
    ----------
    shapes : Sequence[ShapeEvaluation]
        Evaluations of the network output (no refinement).
    normalisation : str
        `ReferenceDistances.normalisation`.
    symmetric, refined, refined_symmetric : Sequence[ShapeEvaluation] or None
        Evaluations by the symmetric protocol, of the refined maps, and both.

    Returns
    -------
    EvaluationReport
        The figures, with those of the other evaluations as its `symmetric` and `refined` (and `refined.symmetric`).

    Raises
    ------
    InputError
        Where there are no shapes.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.evaluation.distances import ReferenceDistances
    >>> from acnn.evaluation.princeton import evaluate_map
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    >>> surface = surface_of(Mesh(tetrahedron, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)))
    >>> evaluation = evaluate_map([0, 1, 2, 3], [0, 1, 2, 3], ReferenceDistances(surface), name="tetrahedron")
    >>> evaluation_report([evaluation], "sqrt_area").as_dict()["shapes"]
    [{'name': 'tetrahedron', 'exact': 1.0, 'mean_error_x100': 0.0}]
    """
    if not shapes:
        raise InputError("There are no evaluated shapes to report on.")
    whole = [shape.per_map for shape in shapes if shape.per_map is not None]
    per_map = None
    if len(whole) == len(shapes):
        per_map = PerMapFigures(*_means(whole), flipped=sum(shape.flipped for shape in whole))
    return EvaluationReport(
        *_means(shapes),
        normalisation=normalisation,
        thresholds=THRESHOLDS.tolist(),
        curve=np.mean([shape.curve for shape in shapes], axis=0).tolist(),
        coverage=float(np.mean([shape.coverage for shape in shapes])),
        shapes=[ShapeFigures(shape.name, shape.exact, shape.mean_error_x100) for shape in shapes],
        per_map=per_map,
        symmetric=evaluation_report(symmetric, normalisation) if symmetric else None,
        refined=evaluation_report(refined, normalisation, symmetric=refined_symmetric) if refined else None,
    )


def _means(evaluations: Sequence[Any]) -> tuple[float, float, float]:
    """Means of `exact`, `auc` and `mean_error_x100`."""
    exact, auc, error = (
        float(np.mean([getattr(evaluation, name) for evaluation in evaluations]))
        for name in ("exact", "auc", "mean_error_x100")
    )
    return exact, auc, error
