"""Lifting a map between working copies to the vertices of the original shapes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acnn.correspondence.point_maps import barycentric_map
from acnn.correspondence.soft_map import SoftMap
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.surface import Surface
from acnn.surface.working_copy import WorkingCopy
from acnn.types import FloatArray, IntArray

APART = 3.0
"""Times the longest edge of a triangle of A's copy, or the mean edge of B's copy where that is longer, from which on
two of its matches are so far apart that the map is discontinuous there."""


@dataclass(frozen=True, eq=False)
class LiftedMap:
    """A map of all vertices of A to B.

    Attributes
    ----------
    a_to_b : (n,) int32 array
        Vertices of B.
    points : BarycentricPoints or None
        Points of triangles of B; None where B is a cloud, or neither shape was copied.
    """

    a_to_b: IntArray
    points: BarycentricPoints | None


def lift_map(
    copy_map: IntArray,
    a: WorkingCopy,
    b: WorkingCopy,
    surfaces: tuple[Surface, Surface],
    images: tuple[FloatArray, FloatArray] | None = None,
) -> LiftedMap:
    """Lift a map of A's copy to B's copy to the original shapes.

    Matches of the copy's vertices are first moved into triangles of B's copy (`barycentric_map`). A vertex of A goes to
    the closest point on A's copy, from there to the same barycentric combination of the matches of that triangle's
    corners, and on to the closest point of B. Where the map is discontinuous, it follows the nearest corner instead.

    Parameters
    ----------
    copy_map : (k,) int array
        Vertices of B's copy.
    a, b : WorkingCopy
        Both shapes with their copies.
    surfaces : tuple[Surface, Surface]
        Of the copies, in the same unit of length.
    images : tuple[array, array] or None
        (k, 3) points near B that the vertices of A's copy are matched to, in B's coordinates, and (k, 3) directions
        there, where they are known; None takes them from triangles of B's copy.

    Returns
    -------
    LiftedMap
        For every vertex of A.

    Examples
    --------
    >>> import acnn
    >>> import numpy as np
    >>> from acnn.surface.working_copy import working_copy
    >>> human = acnn.builtin_human()
    >>> copy = working_copy(human, 1000)
    >>> surface = acnn.surface_of(copy.shape)
    >>> lifted = lift_map(np.arange(1000), copy, copy, (surface, surface))
    >>> error = np.linalg.norm(human.vertices[lifted.a_to_b] - human.vertices, axis=1)  # in metres
    >>> bool(error.mean() < 0.005), bool((error == 0).mean() > 0.75)  # edges have 25 mm
    (True, True)
    """
    if images is None and not (a.is_copy or b.is_copy):
        return LiftedMap(copy_map, None)
    positions, normals = copy_images(copy_map, b.shape, surfaces) if images is None else images
    if a.is_copy:
        positions, normals = _interpolated(positions, normals, a, surfaces)
    if not isinstance(b.original, Mesh):
        from scipy.spatial import cKDTree

        return LiftedMap(cKDTree(b.original.vertices).query(positions, workers=-1)[1].astype(np.int32), None)
    reach = surfaces[1].mean_edge * surfaces[1].unit
    points = ClosestPoints(b.original.vertices, b.original.faces)(positions, normals, reach)
    return LiftedMap(_nearest_corners(points, positions, b.original), points)


def copy_images(
    copy_map: IntArray, b: Shape, surfaces: tuple[Surface, Surface]
) -> tuple[FloatArray, FloatArray | None]:
    """Points of B's triangles that vertices of A are matched to (`barycentric_map`), or of a cloud its own points.

    Parameters
    ----------
    copy_map : (k,) int array
        Vertices of B.
    b : Shape
        In its own coordinates.
    surfaces : tuple[Surface, Surface]
        Of A and B, in the same unit of length.

    Returns
    -------
    images : (k, 3) array
        In B's coordinates.
    normals : (k, 3) array or None
        There; None for a cloud.
    """
    here, there = surfaces
    if there.is_cloud:
        return b.vertices[copy_map], None
    points = barycentric_map(copy_map, here, there)
    return points.interpolate(b.vertices[there.faces]), points.interpolate(there.normals[there.faces])


def lift_soft_map(soft_map: SoftMap, a: WorkingCopy, b: WorkingCopy | None = None) -> SoftMap:
    """Lift a soft map of copies: every vertex has the candidates of the nearest vertex of the copy.

    Parameters
    ----------
    soft_map : SoftMap
        Of A's copy to B's copy, or to a reference.
    a : WorkingCopy
        A with its copy.
    b : WorkingCopy or None
        B with its copy; None for a reference.

    Returns
    -------
    SoftMap
        Of A to B.
    """
    if b is not None and b.is_copy:
        soft_map = soft_map.compose(b.vertices, len(b.original.vertices))
    return soft_map.rows(a.nearest) if a.is_copy else soft_map


def _nearest_corners(points: BarycentricPoints, positions: FloatArray, mesh: Mesh) -> IntArray:
    """(n,) corner of the triangle of each point that is nearest to a position."""
    corners = mesh.faces[points.faces]
    gaps = np.stack([((mesh.vertices[corners[:, k]] - positions) ** 2).sum(axis=1) for k in range(3)], axis=1)
    return corners[np.arange(len(corners)), gaps.argmin(axis=1)].astype(np.int32)


def _interpolated(
    images: FloatArray, normals: FloatArray | None, a: WorkingCopy, surfaces: tuple[Surface, Surface]
) -> tuple[FloatArray, FloatArray | None]:
    """(n, 3) images of A's own vertices, and normals there."""
    here, there = surfaces
    factor = there.unit / here.unit  # images are in the coordinates of B
    corners, ends = a.shape.vertices[here.faces], images[here.faces]
    lengths, apart = (np.linalg.norm(x - np.roll(x, 1, axis=1), axis=2).max(axis=1) for x in (corners, ends))
    discontinuous = apart > APART * np.maximum(lengths * factor, there.mean_edge * there.unit)
    broken = discontinuous[a.points.faces]
    positions = a.points.interpolate(ends)
    positions[broken] = images[a.nearest[broken]]
    if normals is None:
        return positions, None
    directions = a.points.interpolate(normals[here.faces])
    directions[broken] = normals[a.nearest[broken]]
    return positions, directions
