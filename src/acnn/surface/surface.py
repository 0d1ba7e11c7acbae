"""What every operator works on: weighted triangles over points, made from a mesh or from a point cloud.

A mesh brings its own triangles. A cloud gets those of local tangent-plane triangulations, which overlap: a triangle
found from all three of its corners counts once, one found from a single corner a third. Everything in this subpackage
and beyond takes a `Surface`, so that meshes and clouds share one path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.mesh import Mesh, PointCloud, Shape
from acnn.types import FloatArray, IntArray

REFERENCE_LENGTH = 200.0
"""Geodesic diameter of the reference shape in run units: lengths, scales t and radii are stated at this size."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles over points, in run units.

    Attributes
    ----------
    vertices : (n, 3) array
        Centred on the area centroid and divided by `unit`.
    faces : (m, 3) int32 array
        Counter-clockwise seen from outside.
    face_weights : (m,) array
        How much of each triangle counts: 1 on a mesh; on a cloud 1/3, 2/3 or 1, or what triangulations of points on one
        circle share.
    normals : (n, 3) array
        Unit, outward.
    unit : float
        Length of one run unit in the coordinates of the shape.
    is_cloud : bool
        True where the triangles overlap, so that edges and boundaries mean nothing.
    """

    vertices: FloatArray
    faces: IntArray
    face_weights: FloatArray
    normals: FloatArray
    unit: float
    is_cloud: bool = False

    def __repr__(self) -> str:
        kind = "cloud" if self.is_cloud else "mesh"
        return f"Surface({kind}, {len(self.vertices)} vertices, {len(self.faces)} faces, unit {self.unit:g})"

    @cached_property
    def _doubled_normals(self) -> FloatArray:
        a, b, c = (self.vertices[self.faces[:, i]] for i in range(3))
        return np.cross(b - a, c - a)

    @cached_property
    def face_areas(self) -> FloatArray:
        """(m,) geometric areas, not weighted."""
        return 0.5 * np.linalg.norm(self._doubled_normals, axis=1)

    @cached_property
    def face_normals(self) -> FloatArray:
        """(m, 3) unit normals."""
        return self._doubled_normals / np.maximum(2.0 * self.face_areas, np.finfo(float).tiny)[:, None]

    @cached_property
    def vertex_areas(self) -> FloatArray:
        """(n,) lumped mass s_i: a third of the weighted area of the triangles around each vertex."""
        share = np.repeat(self.face_weights * self.face_areas / 3.0, 3)
        return np.bincount(self.faces.ravel(), weights=share, minlength=len(self.vertices)).astype(float)

    @cached_property
    def mean_edge(self) -> float:
        """Mean length of the triangles' sides."""
        corners = self.vertices[self.faces]  # (m, 3, 3)
        return float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean())


@check_arguments
def surface_of(shape: Shape | Surface, unit: float | None = None) -> Surface:
    """Turn a mesh or a cloud into the triangles that operators work on, in run units.

    Parameters
    ----------
    shape : Shape or Surface
        A mesh whose every vertex belongs to a face, or a cloud (both as `load` returns them). A surface is returned as
        it is, scaled where another unit is given.
    unit : float or None
        Length of one run unit in the shape's coordinates. None takes the geodesic diameter of the shape's largest
        component divided by 200. A part or a scan of known scale is given the reference's unit instead.

    Raises
    ------
    InputError
        Where a vertex would have no area.
    """
    from acnn.surface.geodesics import geodesic_diameter

    if unit is not None and not (np.isfinite(unit) and unit > 0):
        raise InputError(f"The unit of length must be a positive number, not {unit}.")
    if isinstance(shape, Surface):
        if unit is None or unit == shape.unit:
            return shape
        return replace(shape, vertices=shape.vertices * (shape.unit / unit), unit=float(unit))
    # Coordinates far from the origin or far from 1 would cost digits in everything after this.
    centre = shape.vertices.mean(axis=0)
    extent = float(np.abs(shape.vertices - centre).max())
    if not extent > 0:
        raise InputError("All points of the shape coincide: there is no surface to work on.")
    vertices = (shape.vertices - centre) / extent
    if isinstance(shape, Mesh):
        weights: FloatArray = np.ones(len(shape.faces))
        faces = shape.faces
        normals = vertex_normals(vertices, faces)
    else:
        from acnn.surface.cloud import triangulate_cloud

        faces, weights, normals = triangulate_cloud(PointCloud(vertices, shape.normals))
    is_cloud = isinstance(shape, PointCloud)
    rough = Surface(vertices, faces, weights, normals, extent, is_cloud)
    empty = np.flatnonzero(~(rough.vertex_areas > 0))
    if len(empty) and is_cloud:
        raise InputError(
            f"Point {empty[0]} of the cloud (and {len(empty) - 1} more) forms no triangle with its neighbours: it lies "
            "too far from the others. Remove such points."
        )
    if len(empty):
        raise InputError(
            f"Vertex {empty[0]} (and {len(empty) - 1} more) belongs to no triangle of positive area, so it has no "
            "neighbourhood. Read the shape with acnn.load, or mend the file with 'acnn info SHAPE --repair OUT'."
        )
    # The unit found here, when given again, must lead to the same surface: what is cached is known by it.
    length = float(unit) if unit is not None else extent * geodesic_diameter(rough) / REFERENCE_LENGTH
    middle = rough.vertex_areas @ vertices / rough.vertex_areas.sum()
    return Surface((vertices - middle) * (extent / length), faces, weights, normals, length, is_cloud)


def vertex_normals(vertices: FloatArray, faces: IntArray) -> FloatArray:
    """(n, 3) unit normals of vertices, the face normals averaged by the angle at the vertex."""
    corners = vertices[faces]
    following = np.roll(corners, -1, axis=1) - corners  # (m, 3 corners, 3)
    preceding = np.roll(corners, 1, axis=1) - corners
    crossed = np.cross(following, preceding)
    doubled_area = np.linalg.norm(crossed, axis=2)
    angle = np.arctan2(doubled_area, np.einsum("ijk,ijk->ij", following, preceding))
    weighted = crossed * (angle / np.maximum(doubled_area, np.finfo(float).tiny))[..., None]
    normals = np.stack(
        [np.bincount(faces.ravel(), weights=weighted[..., axis].ravel(), minlength=len(vertices)) for axis in range(3)],
        axis=1,
    )
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    # Where faces cancel out (a vertex of a folded sheet), any direction is as good as another; zero would not be unit.
    return np.where(length > 1e-12, normals / np.maximum(length, 1e-300), [0.0, 0.0, 1.0])
