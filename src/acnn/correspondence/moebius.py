"""Moebius maps of the sphere through three points, their images and how much they change areas.

A Moebius map z -> (a z + b) / (c z + d) is a 2 x 2 complex matrix of determinant 1 that acts on homogeneous coordinates
[u, v] with z = u / v. These are all maps of the sphere that keep angles and orientation, and three point pairs fix one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.types import FloatArray

ComplexArray = NDArray[np.complex128]


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
