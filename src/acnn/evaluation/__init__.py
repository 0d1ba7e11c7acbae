"""Evaluation: the Princeton protocol, curves, coverage, smoothness, and published figures to stand beside."""

from acnn.datasets.collection import BarycentricTruth
from acnn.evaluation.distances import Normalisation, ReferenceDistances
from acnn.evaluation.princeton import (
    THRESHOLDS,
    ShapeEvaluation,
    coverage,
    evaluate_map,
    evaluation_report,
    mirrored,
    princeton_curve,
    smoothness,
)

__all__ = [
    "THRESHOLDS",
    "BarycentricTruth",
    "Normalisation",
    "ReferenceDistances",
    "ShapeEvaluation",
    "coverage",
    "evaluate_map",
    "evaluation_report",
    "mirrored",
    "princeton_curve",
    "smoothness",
]
