"""Compiled search for the triangles around every point of a cloud."""

from __future__ import annotations

import numpy as np

from acnn.compilation import compiled
from acnn.shapes.shape import FloatArray, IntArray

TIE = 1e-5
"""Weights that decide between four points on a circle; beyond rounding, and too small to be felt elsewhere."""


@compiled(nogil=True)
def delaunay_stars(points: FloatArray, normals: FloatArray, near: IntArray) -> IntArray:
    """Triangles (m, 3) that hold each point in the Delaunay triangulation of its neighbours in its tangent plane.

    A neighbour q of a point at the origin is joined to it where q / |q|^2 is a corner of the convex hull of all of
    them (the hull is the polar dual of the point's Voronoi cell); triangles go from one corner of the hull to the next.
    Neighbours on the far side of a thin part, whose normals point the other way, are left out.

    On a regular grid four points lie on one circle, and stars that cut them differently would leave gaps. Each point
    therefore has a weight, TIE of the squared distance of a near neighbour at most, by which |q|^2 is less; being the
    same in all stars, it makes them agree.

    Parameters
    - points, normals: (n, 3)
    - near: (n, k) neighbours of each point, -1 where there are fewer
    """
    n, most = near.shape
    weights = np.zeros(n)
    for i in range(n):
        for k in range(min(5, most)):
            if near[i, k] >= 0:
                offset = points[near[i, k]] - points[i]
                weights[i] = TIE * ((1e4 * np.sin(i)) % 1.0) * (offset @ offset)
    triangles = np.empty((n * (most + 1), 3), np.int32)
    count = 0
    flat = np.empty((most + 1, 2))
    index = np.empty(most + 1, np.int32)
    hull = np.empty(2 * most + 4, np.int64)
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
            stretch /= 1.0 + (weights[i] - weights[j]) / (offset @ offset)
            flat[many, 0], flat[many, 1] = x / squared * stretch, y / squared * stretch
            index[many] = j
            many += 1
        corners = _convex_hull(flat[:many], hull)
        for c in range(corners):
            a, b = hull[c], hull[(c + 1) % corners]
            if index[a] >= 0 and index[b] >= 0 and flat[a, 0] * flat[b, 1] - flat[a, 1] * flat[b, 0] > 0.0:
                triangles[count, 0], triangles[count, 1], triangles[count, 2] = i, index[a], index[b]
                count += 1
    return triangles[:count].copy()


@compiled(nogil=True)
def _convex_hull(points: FloatArray, hull: IntArray) -> int:
    """Corners of the convex hull, counter-clockwise, into `hull`; returns how many (Andrew's monotone chain)."""
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
    return (points[b, 0] - points[a, 0]) * (points[c, 1] - points[a, 1]) - (points[b, 1] - points[a, 1]) * (
        points[c, 0] - points[a, 0]
    )
