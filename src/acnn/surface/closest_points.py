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

MOST_PAIRS = 1 << 21
"""How many pairs of point and sample are held at once where more triangles have to be tried; bounds the memory."""


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

    The triangles are sampled, long ones in several places, and those of the nearest samples are tried. No point of a
    triangle is further from one of its samples than the triangle's reach, so a triangle that was not tried can only be
    nearer where its reach is longer than the gap between the best distance and that of the last sample. Where it is
    also more than twice that of most of the tried ones, and the surface is within four times the reach, all such
    triangles are tried whose samples are near enough: small triangles do not hide a large one beside them. From
    further away the triangle found may be the second nearest, by a small part of its size.

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
        everywhere = np.concatenate(samples)
        self._tree = cKDTree(everywhere)
        # A sample is the middle of one of rows^2 equal parts, and its corners are what lies furthest from it.
        middle = self._corners.mean(axis=1, keepdims=True)
        self._reach = reach = np.linalg.norm(self._corners - middle, axis=2).max(axis=1) / rows
        size = np.floor(np.log2(np.maximum(reach, 1e-300)))[self._owner]
        self._classes = []  # samples of triangles alike in reach, and the longest reach of each class
        for one in np.unique(size):
            mine = np.flatnonzero(size == one)
            owners = self._owner[mine]
            self._classes.append((cKDTree(everywhere[mine]), owners, float(reach[owners].max())))

    def __call__(self, points: ArrayLike, block: int = 1 << 16) -> SurfacePoints:
        """The nearest point of the mesh to each of (n, 3) points."""
        wanted = np.asarray(points, float).reshape(-1, 3)
        search = _Search(wanted, self._corners)
        k = min(CANDIDATES, len(self._owner))
        for first in range(0, len(wanted), block):
            rows = np.arange(first, min(first + block, len(wanted)))
            distance, near = (found.reshape(len(rows), k) for found in self._tree.query(wanted[rows], k=k))
            for candidate in self._owner[near].T:
                search.take(rows, candidate)
            if k == len(self._owner):
                continue
            gap = distance[:, -1] - np.sqrt(search.best[rows])
            usual = np.median(self._reach[self._owner[near]], axis=1)
            for tree, owners, reach in self._classes:
                hidden = (gap < reach) & (2.0 * usual < reach) & (search.best[rows] < (4.0 * reach) ** 2)
                self._try_class(search, rows[hidden], tree, owners, reach)
        return SurfacePoints(search.faces, search.weights)

    @staticmethod
    def _try_class(search: _Search, rows: IntArray, tree: Any, owners: IntArray, reach: float) -> None:
        """Try the triangles of one class that may be nearer than the best found, in order of their samples."""
        done, k = 0, min(CANDIDATES, len(owners))
        while len(rows):
            left = []
            for some in np.array_split(rows, -(-len(rows) * k // MOST_PAIRS)):
                distance, near = (found.reshape(len(some), k) for found in tree.query(search.points[some], k=k))
                for column in range(done, k):
                    bound = np.sqrt(search.best[some]) + reach
                    maybe = distance[:, column] < bound
                    if not maybe.any():
                        break
                    search.take(some[maybe], owners[near[maybe, column]])
                left.append(some[distance[:, -1] < np.sqrt(search.best[some]) + reach])
            if k == len(owners):
                return
            rows, done, k = np.concatenate(left), k, min(2 * k, len(owners))


class _Search:
    """The best triangle so far for each of (n, 3) points, its weights, and the squared distance `best`."""

    def __init__(self, points: FloatArray, corners: FloatArray) -> None:
        self.points, self.corners = points, corners
        self.best = np.full(len(points), np.inf)
        self.faces, self.weights = np.empty(len(points), np.int32), np.empty((len(points), 3))

    def take(self, rows: IntArray, candidate: IntArray) -> None:
        """Let one triangle for each of the points `rows` be the best where it is closer."""
        some, corners = self.points[rows], self.corners[candidate]
        inside = nearest_in_triangles(some, corners)
        off = np.einsum("nk,nkd->nd", inside, corners) - some
        distance = np.einsum("nd,nd->n", off, off)
        closer = distance < self.best[rows]
        changed = rows[closer]
        self.best[changed] = distance[closer]
        self.faces[changed] = candidate[closer]
        self.weights[changed] = inside[closer]


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
