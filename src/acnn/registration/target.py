"""Closest points of a target, a mesh with or without holes or a point cloud, with normals and where it has data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from acnn.shapes.mesh import Mesh, PointCloud, Shape
from acnn.shapes.topology import mesh_edges
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.surface import vertex_normals
from acnn.types import FloatArray, IntArray

NEIGHBOURS = 8
"""Points of a cloud that its tangent plane is averaged over: noise falls by sqrt(8), and a finger is still one."""

BEYOND_EDGE = 1.0
"""Offset from the mean of the nearest points, in their mean distance from it, from which a point lies beyond the edge
of a cloud: inside, the nearest points lie on all sides, and the offset is about 0.3."""


@dataclass(frozen=True, eq=False)
class TargetPoints:
    """Closest points of a target to n points.

    Attributes
    ----------
    positions : (n, 3) array
        The closest points.
    normals : (n, 3) array
        Outward unit normals there.
    inside : (n,) bool array
        False where the closest point lies on the boundary of the target: the surface that belongs there is missing.
    """

    positions: FloatArray
    normals: FloatArray
    inside: np.typing.NDArray[np.bool_]


class Target:
    """A shape to which something is fitted.

    Parameters
    ----------
    shape : Shape
        Mesh or cloud. Normals that a cloud lacks are estimated.

    Examples
    --------
    >>> import numpy as np
    >>> square = Mesh(np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]]))
    >>> found = Target(square)(np.array([[0.25, 0.5, 1], [2, 0.5, 1]]))
    >>> found.positions.tolist(), found.inside.tolist()
    ([[0.25, 0.5, 0.0], [1.0, 0.5, 0.0]], [True, False])
    """

    def __init__(self, shape: Shape) -> None:
        self._side: _MeshSide | _CloudSide = _MeshSide(shape) if isinstance(shape, Mesh) else _CloudSide(shape)

    def __call__(self, points: FloatArray, normals: FloatArray | None = None, reach: float = np.inf) -> TargetPoints:
        """Closest points of the target to (n, 3) points.

        Parameters
        ----------
        points : (n, 3) array
        normals : (n, 3) array or None
            Directions: points of the target that face the same way are preferred.
        reach : float
            Distance within which they are preferred.

        Returns
        -------
        TargetPoints
        """
        return self._side(points, normals, reach)


class _MeshSide:
    def __init__(self, mesh: Mesh) -> None:
        self._vertices, self._faces = mesh.vertices, mesh.faces
        self._closest = ClosestPoints(mesh.vertices, mesh.faces)
        self._normals = vertex_normals(mesh.vertices, mesh.faces)
        # Column k: whether the edge opposite corner k of a face has no other face.
        edges = mesh_edges(mesh.faces)
        self._open = np.zeros((len(mesh.faces), 3), bool)
        half_edges = edges.boundary()
        self._open[half_edges // 3, (half_edges + 2) % 3] = True
        self._at_boundary = np.zeros(len(mesh.vertices), bool)
        self._at_boundary[edges.vertices[edges.counts == 1].ravel()] = True

    def __call__(self, points: FloatArray, directions: FloatArray | None, reach: float) -> TargetPoints:
        found = self._closest(points, directions, reach)
        normals = unit_vectors(found.interpolate(self._normals[self._faces]))
        zero = found.weights < 1e-9
        on_edge = (zero & self._open[found.faces]).any(axis=1)
        corner = found.largest_corner(self._faces)
        on_corner = (zero.sum(axis=1) == 2) & self._at_boundary[corner]
        return TargetPoints(found.interpolate(self._vertices[self._faces]), normals, ~(on_edge | on_corner))


class _CloudSide:
    def __init__(self, cloud: PointCloud) -> None:
        from acnn.surface.surface import surface_of

        self._points = cloud.vertices
        self._normals = surface_of(cloud, 1.0).normals
        self._tree = cKDTree(cloud.vertices)
        self._count = min(NEIGHBOURS, len(cloud.vertices))

    def __call__(self, points: FloatArray, directions: FloatArray | None, reach: float) -> TargetPoints:
        distances, near = (x.reshape(len(points), -1) for x in self._tree.query(points, self._count))
        normals = self._normals[near]
        first: IntArray = np.zeros(len(points), int)
        if directions is not None:
            agreeing = (np.einsum("nkd,nd->nk", normals, directions) > 0) & (distances <= reach)
            first = agreeing.argmax(axis=1)  # 0 where none is
        nearest = normals[np.arange(len(points)), first]
        facing = np.einsum("nkd,nd->nk", normals, nearest) > 0  # leaves out the far side of thin parts
        weights = facing / facing.sum(axis=1, keepdims=True)
        normal = unit_vectors(np.einsum("nk,nkd->nd", weights, normals))
        centre = np.einsum("nk,nkd->nd", weights, self._points[near])
        offset = points - centre
        tangential = offset - np.einsum("nd,nd->n", offset, normal)[:, None] * normal
        radius = np.einsum("nk,nk->n", weights, np.linalg.norm(self._points[near] - centre[:, None], axis=2))
        inside = np.linalg.norm(tangential, axis=1) < BEYOND_EDGE * radius
        return TargetPoints(np.where(inside[:, None], centre + tangential, self._points[near[:, 0]]), normal, inside)


def unit_vectors(vectors: FloatArray) -> FloatArray:
    """(n, 3) vectors of length 1; zero stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
