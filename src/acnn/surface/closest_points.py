"""Points on the triangles of a mesh, and the nearest of them to points in space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.shapes.shape import FloatArray, IntArray

CANDIDATES = 12
"""How many of the nearest samples of the surface are looked at more closely."""

FINEST = 12
"""Long triangles are sampled with up to so many rows of points."""


@dataclass(frozen=True, eq=False)
class SurfacePoints:
    """Points inside triangles of a mesh.

    - faces: (n,) triangle that holds each point
    - weights: (n, 3) barycentric weights of its corners, at least 0, rows sum to 1
    """

    faces: IntArray
    weights: FloatArray

    def __len__(self) -> int:
        return len(self.faces)

    def of_corners(self, corner_values: NDArray[Any]) -> FloatArray:
        """(n, ...) values at the points, from (m, 3, ...) values at the corners of every face."""
        return np.einsum("nk,nk...->n...", self.weights, np.asarray(corner_values)[self.faces])

    def nearest_vertex(self, mesh_faces: IntArray) -> IntArray:
        """(n,) the corner of largest weight."""
        return np.asarray(mesh_faces)[self.faces, self.weights.argmax(axis=1)].astype(np.int32)


def points_at_vertices(mesh_faces: IntArray, vertices: ArrayLike) -> SurfacePoints:
    """Vertices of a mesh as points inside one of their triangles; every one of them must belong to a face."""
    flat = np.asarray(mesh_faces).ravel()
    corner = np.zeros(int(flat.max()) + 1, np.int64)
    corner[flat[::-1]] = np.arange(len(flat))[::-1]  # the first face of each vertex
    at = corner[np.asarray(vertices)]
    return SurfacePoints((at // 3).astype(np.int32), np.eye(3)[at % 3])


class ClosestPoints:
    """The nearest points of one mesh to any points in space.

    The triangles are sampled, long ones in several places; of the triangles of the nearest samples the closest one
    counts. Exact but for meshes with triangles far longer than the gaps between sheets.

    Parameters
    - vertices: (n, 3)
    - faces: (m, 3)
    """

    def __init__(self, vertices: FloatArray, faces: IntArray) -> None:
        from scipy.spatial import cKDTree

        self._corners = np.asarray(vertices, float)[faces]  # (m, 3, 3)
        side = np.linalg.norm(self._corners - np.roll(self._corners, 1, axis=1), axis=2).max(axis=1)
        rows = np.clip(np.ceil(side / max(float(np.median(side)), 1e-300)), 1, FINEST).astype(int)
        samples, owner = [], []
        for count in np.unique(rows):
            mine = np.flatnonzero(rows == count)
            weights = _spread_weights(int(count))
            samples.append(np.einsum("sk,fkd->fsd", weights, self._corners[mine]).reshape(-1, 3))
            owner.append(np.repeat(mine, len(weights)))
        self._owner = np.concatenate(owner)
        self._tree = cKDTree(np.concatenate(samples))

    def __call__(self, points: ArrayLike, block: int = 1 << 16) -> SurfacePoints:
        """The nearest point of the mesh to each of (n, 3) points."""
        wanted = np.asarray(points, float).reshape(-1, 3)
        faces, weights = np.empty(len(wanted), np.int32), np.empty((len(wanted), 3))
        k = min(CANDIDATES, len(self._owner))
        for first in range(0, len(wanted), block):
            some = wanted[first : first + block]
            near = self._owner[self._tree.query(some, k=k)[1].reshape(len(some), k)]
            best = np.full(len(some), np.inf)
            for candidate in near.T:
                inside = nearest_in_triangles(some, self._corners[candidate])
                place = np.einsum("nk,nkd->nd", inside, self._corners[candidate])
                distance = np.einsum("nd,nd->n", place - some, place - some)
                closer = distance < best
                best[closer] = distance[closer]
                faces[first : first + block][closer] = candidate[closer]
                weights[first : first + block][closer] = inside[closer]
        return SurfacePoints(faces, weights)


def nearest_in_triangles(points: FloatArray, corners: FloatArray) -> FloatArray:
    """(n, 3) barycentric weights of the point of each triangle that is nearest to the point beside it.

    Inside, the foot of the perpendicular; else the nearest of the feet on the three sides, each kept within its side.

    Parameters
    - points: (n, 3)
    - corners: (n, 3, 3) of the triangles
    """
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    ab, ac, ap = b - a, c - a, points - a
    dot = lambda x, y: np.einsum("nd,nd->n", x, y)  # noqa: E731
    d00, d01, d11, d20, d21 = dot(ab, ab), dot(ab, ac), dot(ac, ac), dot(ap, ab), dot(ap, ac)
    below = d00 * d11 - d01 * d01
    flat = below <= 1e-14 * d00 * d11
    below = np.where(flat, 1.0, below)
    v, w = (d11 * d20 - d01 * d21) / below, (d00 * d21 - d01 * d20) / below
    weights = np.stack([1.0 - v - w, v, w], axis=1)
    outside = np.flatnonzero(flat | (weights < 0).any(axis=1))
    if len(outside):
        corner, point = corners[outside], points[outside]
        best = np.full(len(outside), np.inf)
        for i, j in ((0, 1), (1, 2), (2, 0)):
            start, side = corner[:, i], corner[:, j] - corner[:, i]
            along = np.clip(dot(point - start, side) / np.maximum(dot(side, side), 1e-300), 0.0, 1.0)
            off = start + along[:, None] * side - point
            distance = dot(off, off)
            closer = distance < best
            best[closer] = distance[closer]
            rows = outside[closer]
            weights[rows] = 0.0
            weights[rows, i], weights[rows, j] = 1.0 - along[closer], along[closer]
    return weights


def _spread_weights(rows: int) -> FloatArray:
    """Barycentric weights of the middles of the rows^2 equal parts of a triangle."""
    found = []
    for i in range(rows):
        for j in range(rows - i):
            found.append(((i + 1 / 3) / rows, (j + 1 / 3) / rows))
            if i + j + 1 < rows:
                found.append(((i + 2 / 3) / rows, (j + 2 / 3) / rows))
    uv = np.array(found)
    return np.column_stack([1.0 - uv.sum(axis=1), uv])
