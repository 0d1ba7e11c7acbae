"""Moebius maps of the sphere through three points, their images and how much they change areas.

A Moebius map z -> (a z + b) / (c z + d) is a 2 x 2 complex matrix of determinant 1 that acts on homogeneous coordinates
[u, v] with z = u / v. These are all maps of the sphere that keep angles and orientation, and three point pairs fix one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from acnn.types import FloatArray, IntArray

ComplexArray: TypeAlias = NDArray[np.complex128]

CANDIDATES = 10_000
"""Moebius maps that are tried, at random where there are more pairs of triplets (the authors' number)."""

LENGTH_RATIO = 0.6
"""Distances between features may shrink or grow to this fraction. Shapes to be matched are nearly isometric, so that
most of the wrong candidates are found in this way before any map is made; the authors try all of them."""

LENGTH_SLACK = 0.1
"""Changes of distance below this, over sqrt(area), are always allowed: a limb may have two features at its end."""


@dataclass(frozen=True, eq=False)
class MoebiusMaps:
    """Moebius maps with the point pairs that they go through.

    Attributes
    ----------
    a, b : (k, 3) array
        Numbers of the points: point a[i, j] is sent to point b[i, j].
    matrices : (k, 2, 2) complex array
        Of determinant 1.
    """

    a: IntArray
    b: IntArray
    matrices: ComplexArray

    def __getitem__(self, rows: Any) -> MoebiusMaps:
        return MoebiusMaps(self.a[rows], self.b[rows], self.matrices[rows])

    def __len__(self) -> int:
        return len(self.a)


def candidate_maps(
    a: ComplexArray, b: ComplexArray, a_distances: FloatArray, b_distances: FloatArray, random: np.random.Generator
) -> MoebiusMaps:
    """Moebius maps through all pairs of triplets of points at similar distances, at most `CANDIDATES` of them.

    Parameters
    ----------
    a, b : (f, 2) and (g, 2) complex array
        Homogeneous coordinates of the points.
    a_distances, b_distances : (f, f) and (g, g) array
        Geodesic distances over sqrt(area).
    random : Generator
        Chooses where there are too many.
    """
    first = np.array(list(combinations(range(len(a)), 3)), dtype=int).reshape(-1, 3)
    second = np.array(list(permutations(range(len(b)), 3)), dtype=int).reshape(-1, 3)
    plausible = np.ones((len(first), len(second)), dtype=bool)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        here, there = a_distances[first[:, i], first[:, j]], b_distances[second[:, i], second[:, j]]
        plausible &= ~in_conflict(here[:, None], there[None])
    chosen = np.argwhere(plausible)
    if len(chosen) > CANDIDATES:
        chosen = chosen[np.sort(random.choice(len(chosen), CANDIDATES, replace=False))]
    source, target = first[chosen[:, 0]], second[chosen[:, 1]]
    matrices = moebius_through(a[source], b[target])
    usable = np.isfinite(matrices).all(axis=(1, 2))
    return MoebiusMaps(source[usable], target[usable], matrices[usable])


def in_conflict(a_distances: FloatArray, b_distances: FloatArray) -> NDArray[np.bool_]:
    """Where distances on the two shapes, over sqrt(area), differ too much for one map."""
    short, long = np.minimum(a_distances, b_distances), np.maximum(a_distances, b_distances)
    return (short < LENGTH_RATIO * long) & (long - short > LENGTH_SLACK)


def moebius_through(source: ComplexArray, target: ComplexArray) -> ComplexArray:
    """Moebius maps that send three points to three points.

    Parameters
    ----------
    source, target : (..., 3, 2) complex array
        Homogeneous coordinates of three distinct points each.

    Returns
    -------
    (..., 2, 2) complex array
        Of determinant 1; not finite where two of the three points coincide.
    """
    return normalised(inverse(to_canonical(target)) @ to_canonical(source))


def to_canonical(points: ComplexArray) -> ComplexArray:
    """(..., 2, 2) maps that send (..., 3, 2) homogeneous points to 0, 1 and infinity.

    z -> (z - z_0) (z_1 - z_2) / ((z - z_2) (z_1 - z_0))
    """
    p, q, r = points[..., 0, :], points[..., 1, :], points[..., 2, :]
    # The bracket [x, p] = x_u p_v - x_v p_u vanishes where x = p: it is z - z_0 without denominators.
    to_zero = np.stack([p[..., 1], -p[..., 0]], axis=-1) * _bracket(q, r)[..., None]
    to_infinity = np.stack([r[..., 1], -r[..., 0]], axis=-1) * _bracket(q, p)[..., None]
    return normalised(np.stack([to_zero, to_infinity], axis=-2))


def normalised(matrices: ComplexArray) -> ComplexArray:
    """(..., 2, 2) matrices divided by a square root of their determinant."""
    determinant = matrices[..., 0, 0] * matrices[..., 1, 1] - matrices[..., 0, 1] * matrices[..., 1, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return matrices / np.sqrt(determinant)[..., None, None]


def inverse(matrices: ComplexArray) -> ComplexArray:
    """(..., 2, 2) inverses of matrices of determinant 1."""
    a, b, c, d = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 0], matrices[..., 1, 1]
    return np.stack([np.stack([d, -b], axis=-1), np.stack([-c, a], axis=-1)], axis=-2)


def images(matrices: ComplexArray, points: ComplexArray) -> tuple[ComplexArray, FloatArray]:
    """Images of points under Moebius maps, and the logarithm of the change of area on the sphere.

        area' / area = (|x|^2 / |T x|^2)^2      for det T = 1

    Parameters
    ----------
    matrices : (k, 2, 2) complex array
        Of determinant 1.
    points : (n, 2) complex array
        Homogeneous coordinates of unit length.

    Returns
    -------
    tuple[(k, n, 2) complex array, (k, n) array]
        Homogeneous images, not of unit length, and logarithms.
    """
    mapped = np.einsum("kab,nb->kna", matrices, points)
    length = np.abs(mapped[..., 0]) ** 2 + np.abs(mapped[..., 1]) ** 2
    return mapped, -2.0 * np.log(np.maximum(length, 1e-300))


def area_confidence(log_ratio: FloatArray) -> FloatArray:
    """Confidence 2 / (r + 1 / r) of a map that changes areas by the factor r = exp(log_ratio): 1 where it does not."""
    return 1.0 / np.cosh(np.clip(log_ratio, -300.0, 300.0))


def _bracket(x: ComplexArray, y: ComplexArray) -> ComplexArray:
    return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
