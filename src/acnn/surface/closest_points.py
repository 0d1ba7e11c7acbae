"""Points on the triangles of a mesh, and the nearest of them to points in space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.shapes.shape import FloatArray, IntArray


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
    """The nearest points of one mesh to any points in space, found through a tree of boxes.

    Parameters
    - vertices: (n, 3)
    - faces: (m, 3), at least one
    """

    def __init__(self, vertices: FloatArray, faces: IntArray) -> None:
        from acnn.surface.box_tree import box_tree

        self._tree = box_tree(np.asarray(vertices, float)[faces])

    def __call__(self, points: ArrayLike) -> SurfacePoints:
        """The nearest point of the mesh to each of (n, 3) points, which must be finite."""
        from acnn.surface.box_tree import nearest_triangles

        wanted = np.asarray(points, float).reshape(-1, 3)
        if not np.isfinite(wanted).all():
            raise ValueError("Points must be finite to have a nearest one.")
        return SurfacePoints(*nearest_triangles(self._tree, wanted))
