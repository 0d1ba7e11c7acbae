"""Triangles without area: recognised in any unit of length, and taken out without tearing the surface."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.topology import IntArray, mesh_edges
from acnn.shapes.triangles import corner_columns, cross, dot, minus

FLAT = 1e-10  # a triangle lower than this share of its longest edge has no area
ROUNDS = 32


def without_area(vertices: NDArray[np.float64], faces: IntArray) -> NDArray[np.bool_]:
    """Faces whose height is below FLAT times their longest edge."""
    used = np.zeros(len(vertices), bool)
    used[faces] = True
    extent = float(np.ptp(vertices[used], axis=0).max()) if len(faces) else 0.0
    if extent == 0.0:
        return np.ones(len(faces), bool)
    p = corner_columns(vertices / extent, faces)
    u, v = minus(p[1], p[0]), minus(p[2], p[0])
    normal, w = cross(u, v), minus(v, u)
    longest = np.maximum(np.maximum(dot(u, u), dot(v, v)), dot(w, w))
    # A face so small that its squares vanish compares 0 <= 0 and has no area either.
    return np.asarray(np.sqrt(dot(normal, normal)) <= FLAT * longest)


def swap_flat(vertices: NDArray[np.float64], faces: IntArray, uv_faces: IntArray | None) -> int:
    """Give flat faces an area, where possible, by swapping the longest edge with the neighbour behind it; in place.

    A flat face (c, a, b) has c on its longest edge a b. With the neighbour (b, a, d) it becomes (c, a, d), (c, d, b):
    the same surface, with c a corner on both sides. Leaving the flat face out instead would tear a slit there. Left
    alone are faces at a boundary or texture seam, and where c and d already share an edge.

    Returns how many faces were swapped.
    """
    swapped = 0
    flat = without_area(vertices, faces)
    for _ in range(ROUNDS):
        if not flat.any():
            break
        f, k, g, l = _swaps(vertices, faces, uv_faces, flat)
        if len(f) == 0:
            break
        changed = np.concatenate([f, g])
        before = faces[changed], None if uv_faces is None else uv_faces[changed]
        for table in (faces,) if uv_faces is None else (faces, uv_faces):
            c, d = table[f, k], table[g, l]
            # In the neighbour's own direction its shared edge runs from b to a.
            b, a = table[g, (l + 1) % 3], table[g, (l + 2) % 3]
            table[f], table[g] = np.column_stack([c, a, d]), np.column_stack([c, d, b])
        bad = without_area(vertices, faces[changed]).reshape(2, -1).any(axis=0)
        undo = np.concatenate([bad, bad])
        faces[changed[undo]] = before[0][undo]
        if uv_faces is not None and before[1] is not None:
            uv_faces[changed[undo]] = before[1][undo]
        flat[f[~bad]] = False
        swapped += int((~bad).sum())
        if bad.all():
            break
    return swapped


def _swaps(
    vertices: NDArray[np.float64], faces: IntArray, uv_faces: IntArray | None, flat: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Flat faces f with the corner k opposite their longest edge, and sound neighbours g with theirs, l; none twice."""
    n = len(vertices)
    edges = mesh_edges(faces, n)
    first, second = edges.pairs()
    mate = np.full(3 * len(faces), -1, np.int64)
    mate[first], mate[second] = second, first
    f = np.flatnonzero(flat)
    p = vertices[faces[f]]
    length = np.linalg.norm(np.roll(p, -1, axis=1) - p, axis=2)
    side = np.argmax(length, axis=1)  # half-edge 3 f + side is the longest
    other = mate[3 * f + side]
    g = other // 3
    usable = (other >= 0) & ~flat[g]
    k, l = (side + 2) % 3, (other % 3 + 2) % 3
    c, d = faces[f, k], faces[g, l]
    key = edges.ends[:, 0] * n + edges.ends[:, 1]
    wanted = np.minimum(c, d) * n + np.maximum(c, d)
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    usable &= (key[at] != wanted) & (c != d)
    if uv_faces is not None:
        usable &= _same_chart(faces, uv_faces, f, side, g, other % 3)
    f, k, g, l, wanted = f[usable], k[usable], g[usable], l[usable], wanted[usable]
    # One swap per neighbour and per new edge in a round; the others have their turn in the next.
    _, one = np.unique(g, return_index=True)
    _, two = np.unique(wanted[one], return_index=True)
    one = one[two]
    return f[one], k[one], g[one], l[one]


def _same_chart(
    faces: IntArray, uv_faces: IntArray, f: IntArray, side: IntArray, g: IntArray, other: IntArray
) -> NDArray[np.bool_]:
    """Where faces f and g have the same texture coordinates along the edge they share: no seam runs there."""
    begin, end = uv_faces[f, side], uv_faces[f, (side + 1) % 3]
    here, there = uv_faces[g, other], uv_faces[g, (other + 1) % 3]
    parallel = faces[f, side] == faces[g, other]
    return np.where(parallel, (begin == here) & (end == there), (begin == there) & (end == here))
