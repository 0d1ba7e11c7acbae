"""Local triangulations of a point cloud: the compiled search for the triangles around every point."""

from __future__ import annotations

import numpy as np

from acnn.compilation import compiled
from acnn.types import FloatArray, IntArray

STRAIGHT = 1e-5
"""Angle in radians below which points are taken to lie on one circle or line: above the rounding of single precision,
and small enough to change nothing else."""


@compiled(nogil=True)
def local_triangulations(points: FloatArray, normals: FloatArray, near: IntArray) -> tuple[IntArray, FloatArray]:
    """Triangles at each point in the Delaunay triangulation of its neighbours in its tangent plane.

    A neighbour q of a point at the origin is joined to it where q / |q|^2 is a corner of the convex hull of all of
    them (the hull is the polar dual of the point's Voronoi cell); triangles go from one corner of the hull to the next.
    Neighbours on the far side of a thin part, whose normals point the other way, are left out.

    Each corner of a triangle whose local triangulation contains it adds 1/3 to its weight. On a regular grid four
    points or more lie on one circle, and their geometry prefers no triangulation of them. They are given the mean of
    all fans: each of m points on a circle adds 1/m to the triangles of the fan around it. So the result rotates with
    the points and does not depend on their order.

    Parameters
    ----------
    points, normals : (n, 3) array
    near : (n, k) array
        Neighbours of each point, -1 where there are fewer.

    Returns
    -------
    triangles : (m, 3) int32 array
        Each up to three times.
    weights : (m,) array
        What each adds to the weight of its triangle.
    """
    n, most = near.shape
    triangles, weights = np.empty((n * (most + 1), 3), np.int32), np.empty(n * (most + 1))
    count = 0
    flat = np.empty((most + 1, 2))
    index = np.empty(most + 1, np.int32)
    hull, path = np.empty(2 * most + 4, np.int64), np.empty(2 * most + 4, np.int64)
    for i in range(n):
        normal = normals[i]
        axis = np.argmin(np.abs(normal))
        helper = np.zeros(3)
        helper[axis] = 1.0
        first = np.cross(normal, helper)
        first /= np.sqrt(first @ first)
        second = np.cross(normal, first)
        # The point itself, at the origin, takes part in the hull: it is a corner of it where the surface ends.
        flat[0], index[0] = 0.0, -1
        many = 1
        for k in range(most):
            j = near[i, k]
            if j < 0 or j == i or normal @ normals[j] <= 0.0:
                continue
            offset = points[j] - points[i]
            x, y = offset @ first, offset @ second
            squared = x * x + y * y
            if squared <= 1e-12 * (offset @ offset):
                continue
            # Keep distances of space while directions come from the plane, so that folds do not look near.
            stretch = np.sqrt(squared / (offset @ offset))
            flat[many, 0], flat[many, 1] = x / squared * stretch, y / squared * stretch
            index[many] = j
            many += 1
        corners = _convex_hull(flat[:many], hull)
        begin = 0
        for c in range(corners):
            if not _goes_on(flat, hull, corners, c):
                begin = c
                break
        length = 0
        for step in range(corners):
            c = (begin + step) % corners
            a, b = hull[c], hull[(c + 1) % corners]
            if not _faces(flat, a, b):
                continue
            if length == 0:
                path[0] = a
                length = 1
            length = _append_between(flat[:many], a, b, path, length)
            if step + 1 < corners and _goes_on(flat, hull, corners, (c + 1) % corners):
                continue
            for k in range(length - 1):
                triangles[count, 0], triangles[count, 1] = i, index[path[k]]
                triangles[count, 2], weights[count] = index[path[k + 1]], 1.0 / (length + 1)
                count += 1
            length = 0
    return triangles[:count].copy(), weights[:count].copy()


@compiled(nogil=True)
def _faces(points: FloatArray, a: int, b: int) -> bool:
    """Whether a triangle of the origin lies on the side from a to b of the hull: not where the surface ends."""
    if a == 0 or b == 0:
        return False
    cross = points[a, 0] * points[b, 1] - points[a, 1] * points[b, 0]
    dot = points[a, 0] * points[b, 0] + points[a, 1] * points[b, 1]
    return cross > STRAIGHT * abs(dot)


@compiled(nogil=True)
def _goes_on(points: FloatArray, hull: IntArray, corners: int, c: int) -> bool:
    """Whether the two sides of the hull at corner c lie on one line: the corner and both neighbours on one circle."""
    a, b, d = hull[(c - 1) % corners], hull[c], hull[(c + 1) % corners]
    return _faces(points, a, b) and _faces(points, b, d) and _straight(points, a, b, d)


@compiled(nogil=True)
def _append_between(points: FloatArray, a: int, b: int, path: IntArray, length: int) -> int:
    """Append to a path the points on the way from a to b, in order, and b; returns the new length."""
    start = length
    for c in range(1, len(points)):
        if c in (a, b) or not _straight(points, a, c, b):
            continue
        k = length
        while k > start and _turn(points, 0, c, path[k - 1]) > 0.0:  # in the order in which the origin sees them
            path[k] = path[k - 1]
            k -= 1
        path[k] = c
        length += 1
    path[length] = b
    return length + 1


@compiled(nogil=True)
def _straight(points: FloatArray, a: int, b: int, c: int) -> bool:
    """Whether the way from a over b to c turns by less than `STRAIGHT`."""
    x, y = points[b, 0] - points[a, 0], points[b, 1] - points[a, 1]
    u, v = points[c, 0] - points[b, 0], points[c, 1] - points[b, 1]
    return abs(x * v - y * u) < STRAIGHT * (x * u + y * v)


@compiled(nogil=True)
def _convex_hull(points: FloatArray, hull: IntArray) -> int:
    """Corners of the convex hull, counter-clockwise, into `hull`; returns their number (Andrew's monotone chain)."""
    n = len(points)
    order = np.argsort(points[:, 0], kind="mergesort")
    for k in range(1, n):  # ties in x by y
        j = k
        while (
            j > 0 and points[order[j], 0] == points[order[j - 1], 0] and points[order[j], 1] < points[order[j - 1], 1]
        ):
            order[j], order[j - 1] = order[j - 1], order[j]
            j -= 1
    size = 0
    for sweep in range(2):
        floor = size + 1
        for step in range(n):
            p = order[step] if sweep == 0 else order[n - 1 - step]
            while size > floor and _turn(points, hull[size - 2], hull[size - 1], p) <= 0.0:
                size -= 1
            hull[size] = p
            size += 1
        size -= 1  # the end of one sweep is the start of the other
    return size


@compiled(nogil=True)
def _turn(points: FloatArray, a: int, b: int, c: int) -> float:
    """Twice the signed area of the triangle a, b, c."""
    return (points[b, 0] - points[a, 0]) * (points[c, 1] - points[a, 1]) - (points[b, 1] - points[a, 1]) * (
        points[c, 0] - points[a, 0]
    )
