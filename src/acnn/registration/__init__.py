"""Collections of shapes: a template fitted to shapes, and statistics of shapes in one topology."""

from acnn.registration.faces import FaceDamage, face_damage
from acnn.registration.fit import Fit, Level, fit, transfer_shape
from acnn.registration.fitted_map import FittedMap, fit_map
from acnn.registration.groups import GroupComparison, compare_groups
from acnn.registration.missing import complete_shapes
from acnn.registration.procrustes import Alignment, align_shapes
from acnn.registration.skin import transfer_skin
from acnn.registration.statistics import (
    ShapeStatistics,
    generalisation,
    principal_modes,
    shape_statistics,
    specificity,
)

__all__ = [
    "Alignment",
    "FaceDamage",
    "Fit",
    "FittedMap",
    "GroupComparison",
    "Level",
    "ShapeStatistics",
    "align_shapes",
    "compare_groups",
    "complete_shapes",
    "face_damage",
    "fit",
    "fit_map",
    "generalisation",
    "principal_modes",
    "shape_statistics",
    "specificity",
    "transfer_shape",
    "transfer_skin",
]
