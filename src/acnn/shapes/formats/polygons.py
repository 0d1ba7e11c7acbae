"""Polygons of any size made into triangles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
EAR_BUDGET = 1_000_000  # ears take time like the square of the corners; beyond this, fans are left as they are


def triangulate(vertices: NDArray[np.float64], corners: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Split polygons into triangles that keep the polygon's vertices, orientation and order in the file.

    A polygon is split into a fan around its first corner; where a triangle of that fan would turn over (the polygon is
    not convex), around another corner for quads, and by clipping ears for larger ones.

    - vertices: (n, 3); corners: (c,) vertex of each polygon corner; sizes: (polygons,) corners of each, at least 3

    Returns (triangles, 3) positions in `corners`, and (triangles,) the polygon of each.
    """
    starts = np.cumsum(sizes) - sizes
    if len(sizes) and (sizes == 3).all():
        return np.arange(len(corners)).reshape(-1, 3), np.arange(len(sizes))
    counts = sizes - 2
    owner = np.repeat(np.arange(len(sizes)), counts)
    step = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = starts[owner]
    triangles = np.column_stack([first, first + step + 1, first + step + 2])
    turned = _turned_over(vertices, corners, sizes, triangles, owner)
    begin = np.cumsum(counts) - counts
    quads = turned[sizes[turned] == 4]
    triangles[begin[quads]] = starts[quads][:, None] + np.array([1, 2, 3])
    triangles[begin[quads] + 1] = starts[quads][:, None] + np.array([1, 3, 0])
    larger = turned[sizes[turned] > 4]
    affordable = np.cumsum(sizes[larger] ** 2) <= EAR_BUDGET
    for polygon in larger[affordable].tolist():
        at, size = int(starts[polygon]), int(sizes[polygon])
        ears = _clip_ears(vertices[corners[at : at + size]])
        triangles[begin[polygon] : begin[polygon] + size - 2] = at + np.array(ears, np.int64)
    return triangles, owner


def _turned_over(
    vertices: NDArray[np.float64], corners: IntArray, sizes: IntArray, triangles: IntArray, owner: IntArray
) -> IntArray:
    """Polygons with a fan triangle whose normal points against the polygon's own."""
    large = np.flatnonzero(sizes[owner] > 3)
    p = vertices[corners[triangles[large]]]
    with np.errstate(over="ignore", invalid="ignore"):
        normals = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
        total = np.zeros((len(sizes), 3))
        np.add.at(total, owner[large], normals)
        against = np.einsum("ij,ij->i", normals, total[owner[large]]) < 0
    return np.unique(owner[large][against])


def _clip_ears(points: NDArray[np.float64]) -> list[tuple[int, int, int]]:
    """Triangles of a simple polygon, by taking off ears in the plane of its mean normal."""
    centred = points - points.mean(axis=0)
    normal = np.cross(centred, np.roll(centred, -1, axis=0)).sum(axis=0)
    drop = int(np.argmax(np.abs(normal)))
    keep = [(drop + 1) % 3, (drop + 2) % 3]
    # Mirrored where the normal points away, so that the polygon always runs counter-clockwise.
    flat = centred[:, keep] * (1.0 if normal[drop] >= 0 else np.array([-1.0, 1.0]))
    left = np.arange(len(points))
    result: list[tuple[int, int, int]] = []
    while len(left) > 3:
        before, after = np.roll(left, 1), np.roll(left, -1)
        convex = np.flatnonzero(_turn(flat[before], flat[left], flat[after]) > 0)
        ear = 1
        for i in convex.tolist():
            a, b, c = flat[before[i]], flat[left[i]], flat[after[i]]
            others = flat[left[(left != before[i]) & (left != left[i]) & (left != after[i])]]
            inside = (_turn(a, b, others) >= 0) & (_turn(b, c, others) >= 0) & (_turn(c, a, others) >= 0)
            if not inside.any():
                ear = i
                break
        result.append((int(before[ear]), int(left[ear]), int(after[ear])))
        left = np.delete(left, ear)
    result.append((int(left[0]), int(left[1]), int(left[2])))
    return result


def _turn(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
    """Twice the signed area of triangles in the plane, positive counter-clockwise."""
    return (b[..., 0] - a[..., 0]) * (c[..., 1] - a[..., 1]) - (b[..., 1] - a[..., 1]) * (c[..., 0] - a[..., 0])
