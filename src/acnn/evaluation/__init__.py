"""Evaluation: the Princeton protocol, curves, coverage, smoothness, and published figures for comparison."""

from acnn.evaluation.distances import Normalisation, ReferenceDistances
from acnn.evaluation.princeton import (
    THRESHOLDS,
    ShapeEvaluation,
    coverage,
    evaluate_map,
    mirrored,
    princeton_curve,
    smoothness,
)
from acnn.evaluation.results import evaluation_report
from acnn.shapes.mesh import BarycentricPoints

__all__ = [
    "THRESHOLDS",
    "BarycentricPoints",
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
