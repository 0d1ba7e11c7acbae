"""`Surface`, weighted triangles over points in normalised units, made from a mesh or from a point cloud.

A mesh has its own triangles. A cloud gets those of local triangulations in tangent planes, which overlap: a triangle
that belongs to the local triangulations of all three of its corners has weight 1, one of a single corner weight 1/3.
All operators take a `Surface`, so that meshes and clouds share one code path.

Normalised units are the unit of length of a run: the reference's geodesic diameter is 200 (`REFERENCE_LENGTH`).
Lengths, radii and scales t (a length squared) are stated in them. `Surface.unit` is the length of one normalised unit
in the coordinates of the shape.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.mesh import Mesh, PointCloud, Shape
from acnn.types import FloatArray, IntArray

REFERENCE_LENGTH = 200.0
"""Geodesic diameter of the reference shape in normalised units: the size at which radii and scales t are stated."""


@dataclass(frozen=True, eq=False)
class Surface:
    """Weighted triangles over points, in normalised units.

    Attributes
    ----------
    vertices : (n, 3) array
        Centred on the area centroid and divided by `unit`.
    faces : (m, 3) int32 array
        Counter-clockwise seen from outside.
    face_weights : (m,) array
        Weight of each triangle in integrals: 1 on a mesh; on a cloud 1/3, 2/3 or 1, or fractions of these where several
        triangulations of points on one circle are averaged.
    normals : (n, 3) array
        Unit, outward.
    unit : float
        Length of one normalised unit in the coordinates of the shape.
    is_cloud : bool
        True where the triangles overlap, so that edges and boundaries have no meaning.
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
        """(m,) array, areas A_f of the triangles, not weighted."""
        return 0.5 * np.linalg.norm(self._doubled_normals, axis=1)

    @cached_property
    def face_normals(self) -> FloatArray:
        """(m, 3) array, unit normals of the triangles."""
        return self._doubled_normals / np.maximum(2.0 * self.face_areas, np.finfo(float).tiny)[:, None]

    @cached_property
    def vertex_areas(self) -> FloatArray:
        """(n,) array, lumped mass s_i = sum_f w_f A_f / 3 over the triangles f at each vertex."""
        thirds = np.repeat(self.face_weights * self.face_areas / 3.0, 3)
        return np.bincount(self.faces.ravel(), weights=thirds, minlength=len(self.vertices)).astype(float)

    @cached_property
    def mean_edge(self) -> float:
        """Mean edge length of the triangles."""
        corners = self.vertices[self.faces]  # (m, 3, 3)
        return float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean())


@check_arguments
def surface_of(shape: Shape | Surface, unit: float | None = None) -> Surface:
    """Surface of a mesh or a cloud, centred and scaled to normalised units.

    Parameters
    ----------
    shape : Shape or Surface
        A mesh whose every vertex belongs to a face, or a cloud (both as `load` returns them). A surface is returned
        unchanged, or rescaled where another unit is given.
    unit : float or None
        Length of one normalised unit in the shape's coordinates. None takes the geodesic diameter of the shape's
        largest component divided by 200. A partial shape or a scan of known scale is given the reference's unit.

    Returns
    -------
    Surface

    Raises
    ------
    InputError
        Where the unit is not positive, all points coincide, or a vertex would have no area.

    Examples
    --------
    >>> import acnn
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> surface.vertices.shape, surface.faces.shape
    ((2500, 3), (4996, 3))
    >>> acnn.surface_of(acnn.builtin_human(), unit=0.5).unit
    0.5
    """
    if unit is not None and not (np.isfinite(unit) and unit > 0):
        raise InputError(f"The unit of length must be a positive number, not {unit}.")
    if isinstance(shape, Surface):
        if unit is None or unit == shape.unit:
            return shape
        return replace(shape, vertices=shape.vertices * (shape.unit / unit), unit=float(unit))
    geometry = _geometry_of(shape)
    # The unit measured here, when given later, must lead to the same surface: it is part of cache keys.
    length = float(unit) if unit is not None else geometry.unit
    base = geometry.surface
    vertices = (base.vertices - geometry.centroid) * (base.unit / length)
    return Surface(vertices, base.faces, base.face_weights, base.normals, length, base.is_cloud)


@dataclass(frozen=True, eq=False)
class _Geometry:
    """What surfaces of one shape in any unit have in common.

    Attributes
    ----------
    surface : Surface
        With coordinates of size 1 around the mean of the vertices.
    checksum : int
        Of the shape's arrays, which a caller may have changed since.
    """

    surface: Surface
    checksum: int

    @cached_property
    def centroid(self) -> FloatArray:
        """(3,) centroid of the area."""
        areas = self.surface.vertex_areas
        return areas @ self.surface.vertices / areas.sum()

    @cached_property
    def unit(self) -> float:
        """Length of one normalised unit by the shape's own geodesic diameter."""
        from acnn.surface.geodesics import geodesic_diameter

        return self.surface.unit * geodesic_diameter(self.surface) / REFERENCE_LENGTH


_geometries: WeakKeyDictionary[Shape, _Geometry] = WeakKeyDictionary()
"""Geometry of the shapes in use: a match asks for the surface of each of them several times."""


def _geometry_of(shape: Shape) -> _Geometry:
    """Geometry of a shape, made once for as long as the shape exists and its arrays stay the same."""
    checksum = 0
    for array in (shape.vertices, shape.faces if isinstance(shape, Mesh) else shape.normals):
        if array is not None:
            checksum = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data, checksum)
    known = _geometries.get(shape)
    if known is None or known.checksum != checksum:
        known = _geometries[shape] = _Geometry(_surface_of_size_1(shape), checksum)
    return known


def _surface_of_size_1(shape: Shape) -> Surface:
    """The surface of a shape in coordinates of size 1; `unit` is that size in the shape's coordinates."""
    # This module takes a Surface and so imports this one.
    from acnn.surface.cloud import triangulate_cloud

    if not len(shape.vertices):
        raise InputError("The shape has no vertices: there is no surface to work on.")
    invalid = np.flatnonzero(~np.isfinite(shape.vertices).all(axis=1))
    if len(invalid):
        raise InputError(
            f"Vertex {invalid[0]} (and {len(invalid) - 1} more) is not finite and belongs to no triangle. Read the "
            "shape with acnn.load, or repair the file with 'acnn info SHAPE --repair OUT'."
        )
    # Coordinates far from the origin, or far from 1 in size, would lose digits in everything computed from them.
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
        faces, weights, normals = triangulate_cloud(PointCloud(vertices, shape.normals))
    is_cloud = isinstance(shape, PointCloud)
    surface = Surface(vertices, faces, weights, normals, extent, is_cloud)
    empty = np.flatnonzero(~(surface.vertex_areas > 0))
    if len(empty) and is_cloud:
        raise InputError(
            f"Point {empty[0]} of the cloud (and {len(empty) - 1} more) forms no triangle with its neighbours: it lies "
            "too far from the others. Remove such points."
        )
    if len(empty):
        raise InputError(
            f"Vertex {empty[0]} (and {len(empty) - 1} more) belongs to no triangle of positive area, so it has no "
            "neighbourhood. Read the shape with acnn.load, or repair the file with 'acnn info SHAPE --repair OUT'."
        )
    return surface


def vertex_normals(vertices: FloatArray, faces: IntArray) -> FloatArray:
    """Unit normals of vertices: face normals averaged with the angles at the vertex as weights.

    Parameters
    ----------
    vertices : (n, 3) array
    faces : (m, 3) array

    Returns
    -------
    (n, 3) array

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.surface import vertex_normals
    >>> vertex_normals(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))
    array([[0., 0., 1.],
           [0., 0., 1.],
           [0., 0., 1.]])
    """
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
    # Where face normals cancel (a vertex of a folded sheet) the direction is arbitrary, but it has to have length 1.
    return np.where(length > 1e-12, normals / np.maximum(length, 1e-300), [0.0, 0.0, 1.0])
