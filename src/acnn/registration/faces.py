"""Damage to the faces of a mesh that was moved onto a shape: collapsed, inverted, stretched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from acnn.shapes.mesh import Mesh, Shape
from acnn.surface.closest_points import ClosestPoints
from acnn.types import FloatArray, IntArray

COLLAPSED = 0.01
"""Fraction of its area, at the scale of the moved mesh, below which a face has collapsed: its edges have shrunk to
less than about a tenth, or it has become a sliver, and its normal is unreliable."""

ON_SURFACE = 0.25
"""Distance from a mesh, in the longest edge of a face, within which the face lies on it: others pass through it, or
belong to a part that the mesh has not."""

FOLDED = np.pi / 3
"""Change of the angle between a face and its surroundings, in radians: a face that is turned over changes by far more,
the edge of a finger or an ear that bends, by less."""

STRETCHED = 5.0
"""Factor beyond the change of scale by which an edge is stretched too much."""


@dataclass(frozen=True, eq=False)
class FaceDamage:
    """Damage to the faces of a mesh that was moved onto a shape.

    All is measured relative to the scale s of the movement, s^2 = area after / area before.

    Attributes
    ----------
    collapsed : (m,) bool array
        Faces whose area is below `COLLAPSED` s^2 times what it was.
    inverted : (m,) bool array
        Faces that have not collapsed and are either folded over: their normal points against the mean normal of the
        faces around them, and has turned against it by more than `FOLDED`; or upside down on the shape, if that is a
        mesh: centre and corners lie on it (`ON_SURFACE`), and nothing of it within their longest edge faces the same
        way.
    stretched : (m,) bool array
        Faces with an edge longer than `STRETCHED` s times what it was.
    largest_stretch : float
        The largest ratio of an edge's length to s times what it was.
    """

    collapsed: NDArray[np.bool_]
    inverted: NDArray[np.bool_]
    stretched: NDArray[np.bool_]
    largest_stretch: float

    @property
    def damaged(self) -> NDArray[np.bool_]:
        """(m,) faces that are collapsed, inverted or stretched."""
        return self.collapsed | self.inverted | self.stretched

    @property
    def collapsed_faces(self) -> int:
        """Number of collapsed faces."""
        return int(self.collapsed.sum())

    @property
    def inverted_faces(self) -> int:
        """Number of inverted faces."""
        return int(self.inverted.sum())

    def as_dict(self) -> dict[str, Any]:
        """The numbers."""
        return {name: getattr(self, name) for name in ("collapsed_faces", "inverted_faces", "largest_stretch")}


def face_damage(shape: Shape, before: Mesh, after: FloatArray, *, margin: float = 1.0) -> FaceDamage:
    """Find the faces of a mesh that a movement onto a shape has damaged.

    Parameters
    ----------
    shape : Shape
        Mesh or cloud that the mesh was moved onto.
    before : Mesh
        Of n vertices, before.
    after : (n, 3) array
        Its vertices after.
    margin : float
        Above 1, faces that are less collapsed or stretched by this factor count already.

    Returns
    -------
    FaceDamage
    """
    faces = before.faces
    doubled = [_doubled_normals(points, faces) for points in (before.vertices, after)]
    areas = [np.linalg.norm(normals, axis=1) for normals in doubled]
    scale = np.sqrt(areas[1].sum() / areas[0].sum())
    collapsed = areas[1] < margin * COLLAPSED * scale**2 * areas[0]
    corners = [points[faces] for points in (before.vertices, after)]
    lengths = [np.linalg.norm(c - np.roll(c, 1, axis=1), axis=2) for c in corners]
    stretches = (lengths[1] / np.maximum(scale * lengths[0], np.finfo(float).tiny)).max(axis=1)
    angles = [_ring_angles(normals, faces) for normals in doubled]
    inverted = (angles[1] > np.pi / 2) & (angles[1] - angles[0] > FOLDED)
    if isinstance(shape, Mesh):
        inverted |= _upside_down(shape, corners[1], doubled[1], lengths[1].max(axis=1))
    return FaceDamage(collapsed, inverted & ~collapsed, margin * stretches > STRETCHED, float(stretches.max()))


def _ring_angles(normals: FloatArray, faces: IntArray) -> FloatArray:
    """Angle between the normal of each face and the mean of those of the faces that share a vertex with it."""
    at_vertices = np.stack(
        [np.bincount(faces.ravel(), np.repeat(column, 3), int(faces.max()) + 1) for column in normals.T], axis=1
    )
    around = at_vertices[faces].sum(axis=1) - 3.0 * normals
    sine = np.linalg.norm(np.cross(normals, around), axis=1)
    return np.arctan2(sine, np.einsum("fd,fd->f", normals, around))


def _upside_down(mesh: Mesh, corners: FloatArray, normals: FloatArray, edges: FloatArray) -> NDArray[np.bool_]:
    """Whether each face lies upside down on a mesh; edges are the longest of each face."""
    outward = _doubled_normals(mesh.vertices, mesh.faces)
    outward /= np.maximum(np.linalg.norm(outward, axis=1, keepdims=True), np.finfo(float).tiny)
    closest = ClosestPoints(mesh.vertices, mesh.faces)
    there = mesh.vertices[mesh.faces]
    centres = corners.mean(axis=1)
    at_centres = closest(centres)
    against = np.einsum("fd,fd->f", normals, outward[at_centres.faces]) < 0
    for points in (centres, corners[:, 0], corners[:, 1], corners[:, 2]):
        suspects = np.flatnonzero(against)
        distances = np.linalg.norm(closest(points[suspects]).interpolate(there) - points[suspects], axis=1)
        against[suspects] = distances < ON_SURFACE * edges[suspects]
    suspects = np.flatnonzero(against)
    longest = np.linalg.norm(there - np.roll(there, 1, axis=1), axis=2).max(axis=1)
    radius = np.maximum(edges[suspects], longest[at_centres.faces[suspects]])
    around = cKDTree(there.mean(axis=1)).query_ball_point(centres[suspects], radius)
    for face, near in zip(suspects, around, strict=True):
        against[face] = not (outward[near] @ normals[face] > 0).any()
    return against


def _doubled_normals(vertices: FloatArray, faces: IntArray) -> FloatArray:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return np.cross(b - a, c - a)
