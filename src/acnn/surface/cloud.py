"""Point clouds: overlapping local triangulations, and curvature from fitted quadrics."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from acnn.errors import InputError
from acnn.shapes import PointCloud
from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.surface import Surface

NEIGHBOURS = 24
"""Least number of points that a quadric is fitted to."""

STAR = 40
"""Points among which the neighbours of a point are sought."""

ROUNDS = 3
"""How often estimated normals are replaced by those of the triangles found with them."""


def triangulate_cloud(cloud: PointCloud) -> tuple[IntArray, FloatArray, FloatArray]:
    """Triangles around every point, from the Delaunay triangulation of its neighbours in its tangent plane.

    Each triangle is found from one, two or all three of its corners and counts with weight 1/3, 2/3 or 1; where more
    than three points lie on one circle, all their triangulations share the weight (`delaunay_stars`). Where no normals
    are given they are estimated, and then made better by those of the triangles found with them.

    Returns faces (m, 3) turned outwards, their weights (m,), and outward unit normals of the points (n, 3).
    Raises InputError for fewer than four points.
    """
    from acnn.surface.orientation import outward_normals

    n = len(cloud.vertices)
    if n < 4:
        raise InputError(f"A cloud of {n} points has no surface; at least 4 are needed.")
    near = cKDTree(cloud.vertices).query(cloud.vertices, min(STAR + 1, n))[1].astype(np.int32)
    if cloud.normals is not None:
        normals = _unit(cloud.normals)
        return *_stars(cloud.vertices, normals, near), normals
    normals = outward_normals(cloud.vertices)
    for _ in range(ROUNDS):
        faces, weights = _stars(cloud.vertices, normals, near)
        a, b, c = (cloud.vertices[faces[:, k]] for k in range(3))
        vector = np.cross(b - a, c - a) * weights[:, None]
        total = np.stack(
            [np.bincount(faces.ravel(), weights=np.repeat(vector[:, axis], 3), minlength=n) for axis in range(3)],
            axis=1,
        )
        found = np.linalg.norm(total, axis=1, keepdims=True) > 0
        normals = np.where(found, _unit(total.astype(float)), normals)
    return *_stars(cloud.vertices, normals, near), normals


def _stars(points: FloatArray, normals: FloatArray, near: IntArray) -> tuple[IntArray, FloatArray]:
    """Unique triangles found around the points, turned as the normals say, and their weights."""
    from acnn.surface.stars import delaunay_stars

    found, share = delaunay_stars(points, normals, near)
    faces, same = np.unique(np.sort(found, axis=1), axis=0, return_inverse=True)
    a, b, c = (points[faces[:, k]] for k in range(3))
    facing = np.einsum("ij,ij->i", np.cross(b - a, c - a), normals[faces].sum(axis=1))
    faces[facing < 0] = faces[facing < 0][:, [0, 2, 1]]
    return faces.astype(np.int32), np.bincount(same.ravel(), weights=share, minlength=len(faces)).astype(float)


def quadric_tensors(surface: Surface, radius: float) -> FloatArray:
    """(n, 3, 3) second fundamental form from a quadric z = (a x^2 + 2 b x y + c y^2) / 2 + d x + e y + f at each point.

    The fit is weighted least squares over all points within twice the radius, at least NEIGHBOURS of them, in the
    frame of the point's normal; z points inwards, so that convex is positive.
    """
    points, normals = surface.vertices, surface.normals
    n = len(points)
    tree = cKDTree(points)
    distance, near = tree.query(points, min(4 * NEIGHBOURS, n))
    reach = np.maximum(2.0 * radius, distance[:, min(NEIGHBOURS, n - 1)] * (1.0 + 1e-9))  # all that are equally far
    across = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    first = _unit(np.cross(normals, across))
    second = np.cross(normals, first)
    tensors = np.empty((n, 3, 3))
    crowded = distance[:, -1] < reach if n > distance.shape[1] else np.zeros(n, bool)
    for begin in range(0, n, 4096):  # bounds the memory of the stacked systems
        part = np.arange(begin, min(begin + 4096, n))
        part = part[~crowded[part]]
        tensors[part] = _fitted(points, normals, first, second, part, near[part], distance[part], reach[part])
    dense = np.flatnonzero(crowded)
    within = tree.query_ball_point(points[dense], reach[dense], return_length=True)
    begin = 0
    while begin < len(dense):
        rows = max(1, 4096 * 4 * NEIGHBOURS // int(within[begin : begin + 4096].max()))
        part = dense[begin : begin + rows]
        apart, close = tree.query(points[part], min(int(within[begin : begin + rows].max()) + 1, n))
        tensors[part] = _fitted(points, normals, first, second, part, close, apart, reach[part])
        begin += rows
    return tensors


def _fitted(
    points: FloatArray,
    normals: FloatArray,
    first: FloatArray,
    second: FloatArray,
    part: IntArray,
    near: IntArray,
    distance: FloatArray,
    reach: FloatArray,
) -> FloatArray:
    """(p, 3, 3) tensors at the points `part`, from their neighbours (p, k) at `distance` that lie within `reach`."""
    offset = points[near] - points[part, None]
    x = np.einsum("ijk,ik->ij", offset, first[part])
    y = np.einsum("ijk,ik->ij", offset, second[part])
    z = -np.einsum("ijk,ik->ij", offset, normals[part])
    facing = np.einsum("ijk,ik->ij", normals[near], normals[part])  # leaves out the far side of thin parts
    weight = np.exp(-2.0 * (distance / reach[:, None]) ** 2) * (distance <= reach[:, None])
    weight = np.where(facing > 0, weight, 0.0)
    size = reach[:, None]
    terms = np.stack([x * x / 2, x * y, y * y / 2, x * size, y * size, size**2 * np.ones_like(x)], axis=2)
    terms /= size[..., None] ** 2
    normal = np.einsum("ij,ija,ijb->iab", weight, terms, terms)
    normal += 1e-9 * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(6)
    fit = np.linalg.solve(normal, np.einsum("ij,ija,ij->ia", weight, terms, z)[..., None])[:, :3, 0]
    a, b, c = fit.T / reach**2
    u, v = first[part], second[part]
    return (
        a[:, None, None] * _outer(u, u)
        + b[:, None, None] * (_outer(u, v) + _outer(v, u))
        + c[:, None, None] * _outer(v, v)
    )


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    return a[:, :, None] * b[:, None, :]


def _unit(vectors: FloatArray) -> FloatArray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
