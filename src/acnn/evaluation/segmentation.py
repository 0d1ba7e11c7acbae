"""How well classes of vertices are labelled: fractions of the area, and intersection over union."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acnn.errors import InputError
from acnn.reports import Report
from acnn.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class SegmentationEvaluation:
    """Labelled classes of one shape beside the true ones.

    Attributes
    ----------
    name : str
        Of the shape.
    confusion : (k, k) array
        Fraction of the labelled area that is of class i and was labelled j; sums to 1.
    """

    name: str
    confusion: FloatArray

    @property
    def accuracy(self) -> float:
        """Fraction of the area that is labelled right."""
        return float(np.trace(self.confusion))

    @property
    def iou(self) -> FloatArray:
        """(k,) area in both over area in either, of each class; NaN for a class that occurs in neither."""
        return intersection_over_union(self.confusion)

    def as_dict(self) -> dict[str, Any]:
        """`name`, `accuracy` and `mean_iou`."""
        return {"name": self.name, "accuracy": self.accuracy, "mean_iou": float(np.nanmean(self.iou))}


def evaluate_classes(
    predicted: IntArray, truth: IntArray, areas: FloatArray, count: int, name: str = ""
) -> SegmentationEvaluation:
    """Compare labelled classes with true ones, by area.

    Parameters
    ----------
    predicted : (n,) array
        Class of each vertex.
    truth : (n,) array
        True class, -1 unknown: such vertices do not count.
    areas : (n,) array
        Of the vertices.
    count : int
        Number of classes.
    name : str
        Of the shape.

    Raises
    ------
    InputError
        Where no true class is known, sizes do not fit, or a vertex with a known class is given one that there is not.

    Examples
    --------
    >>> evaluate_classes(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([1.0, 2.0, 1.0]), 2).accuracy
    0.75
    """
    given, true, shape = np.asarray(predicted), np.asarray(truth), name or "The shape"
    if not given.shape == true.shape == areas.shape == (len(areas),):
        raise InputError(f"{shape}: {given.shape} classes, {true.shape} true ones and {areas.shape} areas do not fit.")
    known = true >= 0
    total = float(areas[known].sum())
    if not total > 0:
        raise InputError(f"{shape}: no vertex has a known class, so that classes cannot be compared.")
    for what, classes in (("class", given), ("true class", true)):
        wrong = np.flatnonzero(known & ((classes < 0) | (classes >= count)))
        if len(wrong):
            raise InputError(
                f"{shape}: the {what} of vertex {wrong[0]} is {classes[wrong[0]]}; classes are 0 to {count - 1}."
            )
    cell = true[known].astype(np.int64) * count + given[known]
    confusion: FloatArray = np.zeros(count * count)
    np.add.at(confusion, cell, areas[known] / total)
    return SegmentationEvaluation(name, confusion.reshape(count, count))


def intersection_over_union(confusion: FloatArray) -> FloatArray:
    """(k,) of each class of a (k, k) confusion; NaN where a class occurs in neither."""
    both = np.diag(confusion)
    either = confusion.sum(axis=0) + confusion.sum(axis=1) - both
    return np.divide(both, either, out=np.full(len(both), np.nan), where=either > 0)


@dataclass(frozen=True, eq=False)
class SegmentationReport(Report):
    """How well classes are labelled over a set of shapes: what `acnn evaluate --json` prints of a segmentation.

    Attributes
    ----------
    accuracy : float
        Fraction of the area that is labelled rightly, the mean over shapes.
    mean_iou : float
    iou : dict[str, float or None]
        Of each class over all shapes; None where it does not occur.
    classes : list[str]
    confusion : list of lists
        (k, k) fractions of the area, true classes by predicted ones.
    shapes : list[dict]
        The same of each shape.
    seen_in_training, seen_in_validation, seconds_per_shape
        As of `EvaluationReport`.
    """

    accuracy: float
    mean_iou: float
    iou: dict[str, float | None]
    classes: list[str]
    confusion: list[list[float]]
    shapes: list[dict[str, Any]]
    seen_in_training: list[str] | str | None = None
    seen_in_validation: list[str] | str | None = None
    seconds_per_shape: float | None = None


def segmentation_report(evaluations: Sequence[SegmentationEvaluation], names: Sequence[str]) -> SegmentationReport:
    """What `acnn evaluate` prints of a segmentation.

    Returns
    -------
    SegmentationReport
        Over all shapes.
    """
    confusion = np.mean([evaluation.confusion for evaluation in evaluations], axis=0)
    iou = intersection_over_union(confusion)
    return SegmentationReport(
        accuracy=float(np.mean([evaluation.accuracy for evaluation in evaluations])),
        mean_iou=float(np.nanmean(iou)),
        iou={name: None if np.isnan(value) else float(value) for name, value in zip(names, iou, strict=True)},
        classes=list(names),
        confusion=confusion.tolist(),
        shapes=[evaluation.as_dict() for evaluation in evaluations],
    )
