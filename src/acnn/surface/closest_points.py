"""Closest points on a triangle mesh to points in space, by a tree of bounding boxes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.compilation import compiled
from acnn.shapes.mesh import BarycentricPoints
from acnn.types import FloatArray, IntArray

BLOCK = 20_000
"""Least number of points of a thread."""

FAR = 1e300
"""A squared distance above all others, but below that of an empty box."""


class ClosestPoints:
    """Closest points on one mesh, p*(x) = argmin |p - x| over points p of its faces.

    Parameters
    ----------
    vertices : (n, 3) array
    faces : (m, 3) array
        At least one.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.surface.closest_points import ClosestPoints
    >>> closest = ClosestPoints(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))
    >>> closest([[0.25, 0.5, 3.0]]).weights
    array([[0.25, 0.25, 0.5 ]])
    """

    def __init__(self, vertices: FloatArray, faces: IntArray) -> None:
        self._tree = box_tree(np.asarray(vertices, float)[faces])

    def __call__(self, points: ArrayLike, normals: ArrayLike | None = None, reach: float = np.inf) -> BarycentricPoints:
        """Closest point of the mesh to each of the given points.

        Parameters
        ----------
        points : (n, 3) array
        normals : (n, 3) array or None
            Directions: faces whose normal is less than 90 degrees from it are preferred. So the closest point of a
            finger is not on the finger that it touches.
        reach : float
            Distance within which they are preferred.

        Returns
        -------
        BarycentricPoints
            n points; of triangles that are equally near, in the first.

        Raises
        ------
        ValueError
            Where a point is not finite.
        """
        queries = np.asarray(points, float).reshape(-1, 3)
        if not np.isfinite(queries).all():
            raise ValueError("Points must be finite to have a nearest one.")
        directions = None if normals is None else np.asarray(normals, float).reshape(-1, 3)
        return BarycentricPoints(*nearest_triangles(self._tree, queries, directions, reach))


class BoxTree(NamedTuple):
    """Binary tree of bounding boxes; the children of node i are nodes 2 i + 1 and 2 i + 2.

    Attributes
    ----------
    low, high : (2 p - 1, 3) array
        Lower and upper corners of the boxes; the last p, a power of two, are leaves of one triangle each, or empty.
    order : (m,) array
        Triangles of the leaves.
    corners : (m, 3, 3) array
        Corners of the triangles.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    order: NDArray[np.int64]
    corners: NDArray[np.float64]


def box_tree(corners: NDArray[np.float64]) -> BoxTree:
    """Tree over triangles, sorted along Morton's space-filling curve.

    Parameters
    ----------
    corners : (m, 3, 3) array

    Returns
    -------
    BoxTree
    """
    order = np.argsort(morton_codes(corners.mean(axis=1)), kind="stable")
    count = 1 << (len(corners) - 1).bit_length()
    low, high = np.full((2 * count - 1, 3), np.inf), np.full((2 * count - 1, 3), -np.inf)
    leaves = slice(count - 1, count - 1 + len(corners))
    low[leaves], high[leaves] = corners[order].min(axis=1), corners[order].max(axis=1)
    while count > 1:
        below = slice(count - 1, 2 * count - 1)
        count //= 2
        low[count - 1 : 2 * count - 1] = low[below].reshape(count, 2, 3).min(axis=1)
        high[count - 1 : 2 * count - 1] = high[below].reshape(count, 2, 3).max(axis=1)
    return BoxTree(low, high, order, np.ascontiguousarray(corners))


def morton_codes(points: FloatArray) -> NDArray[np.uint64]:
    """(n,) array, positions of points on Morton's curve: the bits of their coordinates, 21 of each, interleaved."""
    start, length = points.min(axis=0), np.ptp(points, axis=0).max()
    bits = ((points - start) * ((2**21 - 1) / max(length, 1e-300))).astype(np.uint64)
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        bits = (bits | (bits << np.uint64(shift))) & np.uint64(mask)
    return bits[:, 0] | (bits[:, 1] << np.uint64(1)) | (bits[:, 2] << np.uint64(2))


def nearest_triangles(
    tree: BoxTree,
    points: NDArray[np.float64],
    normals: NDArray[np.float64] | None = None,
    reach: float = np.inf,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Closest triangle to each point, and the barycentric coordinates of its closest point.

    Parameters
    ----------
    tree : BoxTree
    points : (n, 3) array
    normals, reach
        As for `ClosestPoints`.

    Returns
    -------
    faces : (n,) int32 array
        Of triangles that are equally near, the first.
    weights : (n, 3) array
    """
    faces, weights = np.zeros(len(points), np.int32), np.zeros((len(points), 3))
    points = np.ascontiguousarray(points)
    directions = np.empty((0, 3)) if normals is None else np.ascontiguousarray(normals)
    cores = max(1, min(os.cpu_count() or 1, len(points) // BLOCK))
    bounds = np.linspace(0, len(points), cores + 1).astype(int)
    parts = [slice(first, last) for first, last in pairwise(bounds)]
    with ThreadPoolExecutor(cores) as pool:
        jobs = [pool.submit(_search, *tree, points[p], directions[p], reach**2, faces[p], weights[p]) for p in parts]
    for job in jobs:
        job.result()
    return faces, weights


@compiled(nogil=True, error_model="numpy")
def _search(low, high, order, corners, points, normals, reach, faces, weights):  # type: ignore[no-untyped-def]
    inner = len(low) // 2  # number of nodes that are not leaves
    stack, gaps = np.empty(64, np.int64), np.empty(64)
    candidate = np.empty(3)
    nearest, last = 0, inner
    for i in range(len(points)):
        restricted, found = len(normals) > 0, False
        best = min(reach, FAR) if restricted else FAR
        # Consecutive points are often close to each other: the leaf of the previous triangle is a good first candidate.
        stack[0], stack[1], gaps[0], gaps[1], top = 0, last, 0.0, 0.0, 2
        while top or not found:
            if not top:  # no face of that direction is near: any will do
                restricted, best = False, FAR
                stack[0], gaps[0], top = 0, 0.0, 1
            top -= 1
            if gaps[top] > best:
                continue
            node = stack[top]
            if node < inner:
                left, right = 2 * node + 1, 2 * node + 2
                gap_left, gap_right = _gap(points, i, low, high, left), _gap(points, i, low, high, right)
                if gap_left > gap_right:  # the nearer one is visited first, so it goes on top
                    left, right, gap_left, gap_right = right, left, gap_right, gap_left
                if gap_right <= best:
                    stack[top], gaps[top] = right, gap_right
                    top += 1
                if gap_left <= best:
                    stack[top], gaps[top] = left, gap_left
                    top += 1
                continue
            face = order[node - inner]
            if restricted and not _faces_along(normals, i, corners, face):
                continue
            distance = _in_triangle(points, i, corners, face, candidate)
            if distance < best or (distance == best and (face < nearest or not found)):
                best, nearest, last, found = distance, face, node, True
                for d in range(3):
                    weights[i, d] = candidate[d]
        faces[i] = nearest


@compiled(nogil=True, error_model="numpy")
def _faces_along(normals, i, corners, face):  # type: ignore[no-untyped-def]
    """Whether the normal of a triangle is less than 90 degrees from a direction."""
    total = 0.0
    for d in range(3):
        e, f = (d + 1) % 3, (d + 2) % 3
        total += normals[i, d] * (
            (corners[face, 1, e] - corners[face, 0, e]) * (corners[face, 2, f] - corners[face, 0, f])
            - (corners[face, 1, f] - corners[face, 0, f]) * (corners[face, 2, e] - corners[face, 0, e])
        )
    return total > 0.0


@compiled(nogil=True, error_model="numpy")
def _gap(points, i, low, high, node):  # type: ignore[no-untyped-def]
    """Squared distance from a point to the box of a node; infinite for an empty box."""
    total = 0.0
    for d in range(3):
        x = points[i, d]
        off = low[node, d] - x if x < low[node, d] else x - high[node, d] if x > high[node, d] else 0.0
        total += off * off
    return total


@compiled(nogil=True, error_model="numpy")
def _in_triangle(points, n, corners, face, weights):  # type: ignore[no-untyped-def]
    """Squared distance from a point to a triangle, and barycentric coordinates of its closest point into `weights`.

    That is the foot of the perpendicular where it lies inside, else the closest of the closest points of the edges.
    """
    d00, d01, d11, d20, d21 = 0.0, 0.0, 0.0, 0.0, 0.0
    for d in range(3):
        ab, ac, ap = (
            corners[face, 1, d] - corners[face, 0, d],
            corners[face, 2, d] - corners[face, 0, d],
            points[n, d] - corners[face, 0, d],
        )
        d00 += ab * ab
        d01 += ab * ac
        d11 += ac * ac
        d20 += ap * ab
        d21 += ap * ac
    determinant = d00 * d11 - d01 * d01
    if determinant > 1e-14 * d00 * d11:
        v, w = (d11 * d20 - d01 * d21) / determinant, (d00 * d21 - d01 * d20) / determinant
        if v >= 0.0 and w >= 0.0 and v + w <= 1.0:
            weights[0], weights[1], weights[2] = 1.0 - v - w, v, w
            return _squared_distance(points, n, corners, face, weights)
    best = np.inf
    start, end, fraction = 0, 1, 0.0
    for i in range(3):
        j = (i + 1) % 3
        along, length = 0.0, 0.0
        for d in range(3):
            side = corners[face, j, d] - corners[face, i, d]
            along += (points[n, d] - corners[face, i, d]) * side
            length += side * side
        along = min(max(along / max(length, 1e-300), 0.0), 1.0)
        distance = 0.0
        for d in range(3):
            off = corners[face, i, d] + along * (corners[face, j, d] - corners[face, i, d]) - points[n, d]
            distance += off * off
        if distance < best:
            best, start, end, fraction = distance, i, j, along
    weights[0], weights[1], weights[2] = 0.0, 0.0, 0.0
    weights[start] = 1.0 - fraction
    weights[end] = fraction
    return best


@compiled(nogil=True, error_model="numpy")
def _squared_distance(points, n, corners, face, weights):  # type: ignore[no-untyped-def]
    """Squared distance between a point and a barycentric point of a triangle."""
    total = 0.0
    for d in range(3):
        off = (
            weights[0] * corners[face, 0, d]
            + weights[1] * corners[face, 1, d]
            + weights[2] * corners[face, 2, d]
            - points[n, d]
        )
        total += off * off
    return total
