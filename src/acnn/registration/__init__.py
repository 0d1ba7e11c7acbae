"""Collections of shapes: a template fitted to shapes, and statistics of shapes in one topology."""

from acnn.registration.groups import GroupComparison, compare_groups
from acnn.registration.missing import complete_shapes
from acnn.registration.procrustes import Alignment, align_shapes
from acnn.registration.statistics import (
    ShapeStatistics,
    generalisation,
    principal_modes,
    shape_statistics,
    specificity,
)

__all__ = [
    "Alignment",
    "GroupComparison",
    "ShapeStatistics",
    "align_shapes",
    "compare_groups",
    "complete_shapes",
    "generalisation",
    "principal_modes",
    "shape_statistics",
    "specificity",
]
