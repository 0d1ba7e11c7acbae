"""Damage to the faces of a mesh that was moved onto a shape: collapsed, inverted, stretched.

A face is *folded* if its normal has turned by more than 90 degrees against its surroundings, and now points against
them: with n and n' its unit normals before and after, R the rotation nearest to the mean of the rotations, weighted by
area, of the face and of those that share a vertex with it, and m' the mean of their normals after,

    n' . R n < 0  and  n' . m' < 0.

So rigid motion, bending and stretching of a region do not count, whichever way it faces afterwards, nor do faces that
were folded before and stay so or unfold. A surface that folds back over several faces is a region of this kind, and
only the shape that it lies on shows that it is wrong: a face is *upside down* if it lies on a mesh and nothing of that
within its longest edge faces the same way. Both are *inverted*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from acnn.registration.deformation import nearest_stretches
from acnn.registration.target import unit_vectors
from acnn.shapes.mesh import Mesh, Shape
from acnn.surface.closest_points import ClosestPoints
from acnn.types import FloatArray, IntArray

COLLAPSED = 0.01
"""Fraction of its area, at the scale of the moved mesh, below which a face has collapsed: its edges have shrunk to
less than about a tenth, or it has become a sliver, and its normal is unreliable."""

ON_SURFACE = 0.25
"""Distance from a mesh, in the longest edge of a face, within which the face lies on it: others pass through it, or
belong to a part that the mesh has not."""

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
        Faces that have not collapsed, and are folded, or upside down on the shape if that is a mesh (see the module).
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
    inverted = _folded(before.vertices, after, faces)
    if isinstance(shape, Mesh):
        inverted |= _upside_down(shape, corners[1], doubled[1], lengths[1].max(axis=1))
    return FaceDamage(collapsed, inverted & ~collapsed, margin * stretches > STRETCHED, float(stretches.max()))


def _folded(before: FloatArray, after: FloatArray, faces: IntArray) -> NDArray[np.bool_]:
    """Whether the normal of each face has turned by more than 90 degrees against those of the faces around it."""
    (frames, edges), (moved_frames, moved_edges) = (_frames(points, faces) for points in (before, after))
    # In the planes of the face, J = edges after / edges before. Its nearest rotation needs J up to a positive factor.
    (a, b), (c, d) = np.moveaxis(edges, 0, -1)
    jacobian = moved_edges @ np.moveaxis(np.array([[d, -b], [-c, a]]), -1, 0)
    angle = np.arctan2(jacobian[:, 1, 0] - jacobian[:, 0, 1], jacobian[:, 0, 0] + jacobian[:, 1, 1])
    turn: FloatArray = np.zeros((len(faces), 3, 3))
    turn[:, 0, 0] = turn[:, 1, 1] = np.cos(angle)
    turn[:, 1, 0], turn[:, 0, 1], turn[:, 2, 2] = np.sin(angle), -np.sin(angle), 1.0
    rotations = moved_frames @ turn @ frames.transpose(0, 2, 1)
    m, n = len(faces), int(faces.max()) + 1
    corners = sp.csr_array((np.ones(3 * m), (np.repeat(np.arange(m), 3), faces.ravel())), shape=(m, n))
    around = (corners @ corners.T) > 0
    rotation = around @ ((a * d - b * c)[:, None] * rotations.reshape(-1, 9))
    expected = nearest_stretches(rotation.reshape(-1, 3, 3), 1.0)
    normals, doubled = moved_frames[:, :, 2], _doubled_normals(after, faces)
    turned = np.einsum("fa,fab,fb->f", normals, expected, frames[:, :, 2]) < 0
    return turned & (np.einsum("fa,fa->f", normals, around @ doubled) < 0)


def _frames(points: FloatArray, faces: IntArray) -> tuple[FloatArray, FloatArray]:
    """(m, 3, 3) frames of faces, with the normal as last column, and (m, 2, 2) two edges in them, as columns."""
    first, second = points[faces[:, 1]] - points[faces[:, 0]], points[faces[:, 2]] - points[faces[:, 0]]
    x, z = (unit_vectors(vectors) for vectors in (first, np.cross(first, second)))
    y = np.cross(z, x)
    edges = [[np.einsum("fd,fd->f", edge, axis) for edge in (first, second)] for axis in (x, y)]
    return np.stack([x, y, z], axis=2), np.moveaxis(np.array(edges), -1, 0)


def _upside_down(mesh: Mesh, corners: FloatArray, normals: FloatArray, edges: FloatArray) -> NDArray[np.bool_]:
    """Whether each face lies upside down on a mesh; edges are the longest of each face."""
    outward = unit_vectors(_doubled_normals(mesh.vertices, mesh.faces))
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
