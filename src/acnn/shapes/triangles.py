"""Plain measures of triangles: normals with the length of twice the area."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def corner_columns(vertices: NDArray[np.float64], faces: NDArray[np.integer]) -> list[list[NDArray[np.float64]]]:
    """Coordinate k of corner i of every face as [i][k], each (m,): contiguous columns, for speed on large meshes."""
    columns = [np.ascontiguousarray(vertices[:, k]) for k in range(3)]
    return [[column[faces[:, i]] for column in columns] for i in range(3)]


def cross(u: list[NDArray[np.float64]], v: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """The cross product of vectors given as three columns."""
    return [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]


def dot(u: list[NDArray[np.float64]], v: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The inner product of vectors given as three columns."""
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def minus(u: list[NDArray[np.float64]], v: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """The difference of vectors given as three columns."""
    return [a - b for a, b in zip(u, v, strict=True)]
