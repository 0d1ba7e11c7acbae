"""Body parts of the built-in humans: 14 classes, left and right apart.

Defined once, by planes through the joints of the first human, who stands upright with hanging arms; all others have the
same vertices.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from acnn.datasets.builtin import builtin_humans
from acnn.datasets.dataset import Classes
from acnn.types import FloatArray, IntArray

LIMBS = ("upper arm", "forearm", "hand", "thigh", "shin", "foot")
BODY_PARTS = ("head", "torso", *(f"{side} {limb}" for side in ("left", "right") for limb in LIMBS))

# In metres on the first human, of 1.90 m, with |x| to the side and y up.
_NECK, _ELBOW, _WRIST, _KNEE, _ANKLE = 1.63, 1.24, 1.0, 0.53, 0.1
_SHOULDER, _ARMPIT, _BESIDE = 0.18, 1.42, 0.13  # |x| of the shoulder; below the armpit, arms lie beyond a slanted line
_CROTCH, _GROIN = 0.91, 0.45  # height of the crotch, slope of the groin
_FINGERTIPS = 0.78


@cache
def body_parts() -> Classes:
    """The classes of the built-in humans, `BODY_PARTS`.

    Examples
    --------
    >>> body_parts().names[:3]
    ('head', 'torso', 'left upper arm')
    """
    parts = _parts_of_standing(builtin_humans().vertices[0])
    parts.setflags(write=False)
    return Classes(BODY_PARTS, parts)


def _parts_of_standing(vertices: FloatArray) -> IntArray:
    """(n,) number in `BODY_PARTS` of each vertex of the first human."""
    x, y, _ = vertices.T
    side = np.abs(x)
    limb = np.full(len(vertices), -1)
    arm = (side > _SHOULDER + _BESIDE * np.maximum(0.0, _ARMPIT - y)) & (y > _FINGERTIPS)
    # The arm hangs outwards: planes across it rise with |x|.
    along = y - 0.3 * (side - 0.27)
    limb[arm] = np.select([along > _ELBOW, along > _WRIST], [0, 1], 2)[arm]
    leg = ~arm & (y < _CROTCH + _GROIN * side)
    limb[leg] = np.select([y > _KNEE, y > _ANKLE], [3, 4], 5)[leg]
    trunk = np.where(y > _NECK, 0, 1)
    number = 2 + limb + np.where(x > 0, 0, len(LIMBS))
    return np.where(limb >= 0, number, trunk).astype(np.int32)
