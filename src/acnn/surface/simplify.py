"""Remeshing with ground truth, and simplification by edge collapse."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints, Mesh
from acnn.shapes.topology import mesh_edges
from acnn.types import FloatArray, IntArray

_RING = 64
"""Largest number of faces around a vertex during edge collapse, unless the input has more."""


@dataclass(frozen=True, eq=False)
class Remeshed:
    """A remeshed shape and the ground truth of its vertices on the original.

    Attributes
    ----------
    mesh : Mesh
        n vertices.
    truth : BarycentricPoints
        Ground truth: the barycentric point of the original that each vertex comes from.
    """

    mesh: Mesh
    truth: BarycentricPoints


def remesh(mesh: Mesh, *, vertices: int | None = None, density: float = 1.0, seed: int = 0) -> Remeshed:
    """Remesh a mesh: other vertices, edges and vertex order, nearly the same surface and boundary.

    Every face is subdivided into 16, the result is decimated with random costs, and the order is shuffled. Between the
    old vertices the surface is smoothed (Phong tessellation), so that flat faces do not reveal the old mesh.

    Parameters
    ----------
    mesh : Mesh
        Manifold; it may have boundaries.
    vertices : int or None
        Number of vertices, at most 8 times the old number; None takes a random number within 10 % of the old one.
    density : float
        1 gives vertices the density of the original's, 0 a uniform density.
    seed : int
        Random seed.

    Returns
    -------
    Remeshed

    Raises
    ------
    InputError
        Where the number of vertices cannot be reached.

    Examples
    --------
    >>> import acnn
    >>> from acnn.surface.simplify import remesh
    >>> remesh(acnn.builtin_human(), vertices=1000).mesh
    Mesh(1000 vertices, 1996 faces)
    """
    random = np.random.default_rng(seed)
    old = np.asarray(mesh.faces, np.int64)
    count = len(mesh.vertices)
    target = round(count * random.uniform(0.9, 1.1)) if vertices is None else int(vertices)
    parent = np.arange(len(old))
    inside = np.tile(np.eye(3), (len(old), 1, 1))  # (face, corner, weight) in the old face
    faces, points = old, count
    for _ in range(2):
        faces, parent, inside, points = _quarter(faces, parent, inside, points)
    at = np.empty(points, np.int64)  # one of the corners at each point
    at[faces.ravel()] = np.arange(faces.size)
    face, weights = parent[at // 3], inside.reshape(-1, 3)[at]
    positions = _rounded(mesh, face, weights)
    noise = np.exp(0.7 * random.standard_normal(points))
    size = np.einsum("nk,nk->n", weights, _local_size(mesh)[old[face]]) ** density
    remaining, coarse = decimate(positions, faces.astype(np.int32), target, size=size, noise=noise)
    order = random.permutation(len(remaining))
    number = np.empty(len(remaining), np.int32)
    number[order] = np.arange(len(remaining), dtype=np.int32)
    sources = remaining[order]
    shuffled = number[coarse][random.permutation(len(coarse))]
    return Remeshed(
        Mesh(positions[sources], np.ascontiguousarray(shuffled)),
        BarycentricPoints(face[sources].astype(np.int32), weights[sources]),
    )


def _quarter(
    faces: NDArray[np.int64], parent: NDArray[np.int64], inside: NDArray[np.float64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]:
    """Subdivide each face at the midpoints of its edges; new vertices are numbered from `count` on."""
    start, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()
    key = np.minimum(start, end) * count + np.maximum(start, end)
    edges, edge_of = np.unique(key, return_inverse=True)
    middle = count + edge_of.reshape(-1, 3)  # of edges (0, 1), (1, 2), (2, 0)
    six = np.concatenate([faces, middle], axis=1)
    corners = np.concatenate([inside, 0.5 * (inside + inside[:, [1, 2, 0]])], axis=1)
    parts = np.array([(0, 3, 5), (3, 1, 4), (5, 4, 2), (3, 4, 5)])
    return (
        six[:, parts].reshape(-1, 3),
        np.repeat(parent, 4),
        corners[:, parts].reshape(-1, 3, 3),
        count + len(edges),
    )


def _rounded(
    mesh: Mesh, face: NDArray[np.int64], weights: NDArray[np.float64], strength: float = 0.6
) -> NDArray[np.float64]:
    """Points of faces, moved towards the tangent planes at the corners (Boubekeur and Alexa 2008)."""
    corners = np.asarray(mesh.vertices, np.float64)[mesh.faces]  # (m, 3, 3)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros((len(mesh.vertices), 3))
    for k in range(3):
        np.add.at(normals, mesh.faces[:, k], cross)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    flat = np.einsum("nk,nkd->nd", weights, corners[face])
    to_corner = flat[:, None] - corners[face]
    normal = normals[np.asarray(mesh.faces)[face]]  # (n, 3, 3)
    height = np.einsum("nkd,nkd->nk", to_corner, normal)
    return flat - strength * np.einsum("nk,nk,nkd->nd", weights, height, normal)


def _local_size(mesh: Mesh) -> NDArray[np.float64]:
    """Mean edge length at each vertex over the mean of all."""
    start, end = mesh.faces.ravel(), mesh.faces[:, [1, 2, 0]].ravel()
    length = np.linalg.norm(mesh.vertices[start] - mesh.vertices[end], axis=1)
    total = np.bincount(start, length, len(mesh.vertices)) + np.bincount(end, length, len(mesh.vertices))
    degree = np.bincount(start, minlength=len(mesh.vertices)) + np.bincount(end, minlength=len(mesh.vertices))
    return total / np.maximum(degree, 1) / length.mean()


def decimate(
    vertices: FloatArray,
    faces: IntArray,
    count: int,
    *,
    size: NDArray[np.float64] | None = None,
    noise: NDArray[np.float64] | None = None,
    required: bool = True,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Reduce a manifold mesh to `count` of its vertices, with well-shaped triangles.

    Edges are collapsed in the order of cost = (length / size)^2 noise + (distance / edge)^2, with the distance of the
    remaining vertex from the planes of the removed one's faces (quadric error) and `edge` the mean edge length of the
    result. A collapse that would pinch the surface, fold a triangle over or leave a sliver is rejected. Vertices of a
    boundary move only along it, and their distance counts from the planes through its edges as well. Edges are then
    flipped where the two triangles become more nearly Delaunay and the surface is nearly flat.

    Parameters
    ----------
    vertices : (n, 3) array
    faces : (m, 3) array
    count : int
        Number of vertices of the result, at least 12.
    size : (n,) array or None
        Relative target edge length at each vertex, 1 where None.
    noise : (n,) array or None
        Positive factors on the cost, for another triangulation of the same shape.
    required : bool
        False accepts more vertices than `count` where no more edges can be collapsed.

    Returns
    -------
    vertices : (count,) array
        The remaining vertices, in their old order.
    faces : (k, 3) int32 array
        Into these.

    Raises
    ------
    InputError
        Where the number of vertices cannot be reached.
    """
    points = np.ascontiguousarray(vertices, np.float64)
    triangles = np.ascontiguousarray(faces, np.int32)
    if not 12 <= count <= len(points):
        raise InputError(
            f"Cannot take {count} vertices of a shape that has {len(points)}: give a number from 12 to that."
        )
    sizes = np.ones(len(points)) if size is None else np.ascontiguousarray(size, np.float64)
    factors = np.ones(len(points)) if noise is None else np.ascontiguousarray(noise, np.float64)
    corners = points[triangles]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()
    edge = math.sqrt(area / count * 2 / math.sqrt(3))
    most = max(_RING, int(np.bincount(triangles.ravel(), minlength=1).max()))
    half_edges = mesh_edges(triangles).boundary()
    alive, coarse, left = _collapse(points, triangles, half_edges, sizes * edge, factors, edge, count, most)
    if left > count and required:
        raise InputError(f"Edge collapse stopped at {left} vertices instead of {count}: ask for more vertices.")
    kept = np.flatnonzero(alive)
    number = np.full(len(points), -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    return kept, _flip(points[kept], number[coarse])


def split_long_edges(
    vertices: FloatArray, faces: IntArray, longest: float, limit: int
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Split the edges of a mesh at their midpoints until none is longer than `longest`; the surface stays the same.

    Parameters
    ----------
    vertices : (n, 3) array
    faces : (m, 3) array
    longest : float
        Length above which an edge is split.
    limit : int
        Number of vertices above which nothing more is split.

    Returns
    -------
    vertices : (k, 3) array
        The old vertices first.
    faces : (j, 3) int32 array
    """
    points, triangles = np.asarray(vertices, np.float64), np.asarray(faces, np.int64)
    while len(points) < limit:
        start, end = triangles.ravel(), triangles[:, [1, 2, 0]].ravel()
        key = np.minimum(start, end) * len(points) + np.maximum(start, end)
        edges, edge_of = np.unique(key, return_inverse=True)
        low, high = edges // len(points), edges % len(points)
        split = np.linalg.norm(points[low] - points[high], axis=1) > longest
        if not split.any():
            break
        number = np.where(split, len(points) + np.cumsum(split) - 1, -1)
        middle = number[edge_of].reshape(-1, 3)  # of edges (0, 1), (1, 2), (2, 0); -1 where not split
        points = np.concatenate([points, 0.5 * (points[low[split]] + points[high[split]])])
        triangles = _split_faces(triangles, middle)
    return points, triangles.astype(np.int32)


def _split_faces(faces: NDArray[np.int64], middle: NDArray[np.int64]) -> NDArray[np.int64]:
    """Split each face at those midpoints of its edges that are not -1: into one to four."""
    count = (middle >= 0).sum(axis=1)
    # turned so that the first edge is the only one that is split, or the last the only one that is not
    turn = np.where(count == 1, np.argmax(middle >= 0, axis=1), 0)
    turn = np.where(count == 2, (np.argmin(middle >= 0, axis=1) + 1) % 3, turn)
    columns = (np.arange(3) + turn[:, None]) % 3
    corners, middle = np.take_along_axis(faces, columns, axis=1), np.take_along_axis(middle, columns, axis=1)
    six = np.concatenate([corners, middle], axis=1)
    parts = {
        0: [(0, 1, 2)],
        1: [(0, 3, 2), (3, 1, 2)],
        2: [(3, 1, 4), (0, 3, 4), (0, 4, 2)],
        3: [(0, 3, 5), (3, 1, 4), (5, 4, 2), (3, 4, 5)],
    }
    return np.concatenate([six[count == k][:, columns].reshape(-1, 3) for k, columns in parts.items()])


@compiled(error_model="numpy")
def _cost(p, quadric, size, noise, tolerance, u, v):  # type: ignore[no-untyped-def]
    x, y, z = p[v, 0], p[v, 1], p[v, 2]
    dx, dy, dz = x - p[u, 0], y - p[u, 1], z - p[u, 2]
    q = quadric[u]
    error = q[0] * x * x + q[4] * y * y + q[7] * z * z + q[9]
    error += 2 * (q[1] * x * y + q[2] * x * z + q[3] * x + q[5] * y * z + q[6] * y + q[8] * z)
    wanted = 0.5 * (size[u] + size[v])
    length = (dx * dx + dy * dy + dz * dz) / (wanted * wanted)
    return length * noise[u] + max(0.0, error) / (tolerance * tolerance)


@compiled(error_model="numpy")
def _normal(p, a, b, c):  # type: ignore[no-untyped-def]
    ux, uy, uz = p[b, 0] - p[a, 0], p[b, 1] - p[a, 1], p[b, 2] - p[a, 2]
    vx, vy, vz = p[c, 0] - p[a, 0], p[c, 1] - p[a, 1], p[c, 2] - p[a, 2]
    return uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx


@compiled(error_model="numpy")
def _quality(p, a, b, c):  # type: ignore[no-untyped-def]
    """4 sqrt(3) area / sum of squared edges: 1 for an equilateral triangle, 0 for a degenerate one."""
    nx, ny, nz = _normal(p, a, b, c)
    total = 0.0
    for k in range(3):
        total += (p[a, k] - p[b, k]) ** 2 + (p[b, k] - p[c, k]) ** 2 + (p[c, k] - p[a, k]) ** 2
    return 2.0 * math.sqrt(3.0) * math.sqrt(nx * nx + ny * ny + nz * nz) / max(total, 1e-300)


@compiled(error_model="numpy")
def _ring(faces, first, following, u, out):  # type: ignore[no-untyped-def]
    """Neighbours of u into `out`; returns how many."""
    n = 0
    corner = first[u]
    while corner >= 0:
        f = corner // 3
        for c in range(3):
            w = faces[f, c]
            if w == u:
                continue
            known = False
            for i in range(n):
                if out[i] == w:
                    known = True
                    break
            if not known and n < len(out):
                out[n] = w
                n += 1
        corner = following[corner]
    return n


@compiled(error_model="numpy")
def _unlink(first, following, w, corner):  # type: ignore[no-untyped-def]
    """Take a corner out of the list of corners at vertex w."""
    if first[w] == corner:
        first[w] = following[corner]
        return
    at = first[w]
    while following[at] != corner:
        at = following[at]
    following[at] = following[corner]


@compiled(error_model="numpy")
def _allowed(p, faces, first, following, counts, border, size, u, v, ring_u, ring_v, strict):  # type: ignore[no-untyped-def]
    nu = _ring(faces, first, following, u, ring_u)
    nv = _ring(faces, first, following, v, ring_v)
    common = 0
    for i in range(nu):
        for j in range(nv):
            if ring_u[i] == ring_v[j]:
                common += 1
                # a vertex of a boundary has fewer faces
                if counts[ring_u[i]] <= (2 if border[ring_u[i]] else 4 - (1 - strict)):
                    return False
    # link condition: otherwise two sheets would be glued together, or a boundary to another or to itself
    if common != (1 if border[u] else 2) or (border[u] and not border[v]):
        return False
    valence = nu + nv - 2 - common
    if valence > (9 if strict else 14) or valence < (3 if border[v] else 4 - (1 - strict)):
        return False
    floor = 0.35 if strict else 0.05
    limit = 2.0 if strict else 4.0
    corner = first[u]
    while corner >= 0:
        f = corner // 3
        corner = following[corner]
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        if v in (a, b, c):
            continue
        ox, oy, oz = _normal(p, a, b, c)
        before = _quality(p, a, b, c)
        if a == u:
            a = v
        elif b == u:
            b = v
        else:
            c = v
        nx, ny, nz = _normal(p, a, b, c)
        dot = nx * ox + ny * oy + nz * oz
        if dot <= (0.5 if strict else 0.2) * math.sqrt((nx * nx + ny * ny + nz * nz) * (ox * ox + oy * oy + oz * oz)):
            return False
        if _quality(p, a, b, c) < min(floor, before):
            return False
    for i in range(nu):
        w = ring_u[i]
        distance = 0.0
        for k in range(3):
            distance += (p[w, k] - p[v, k]) ** 2
        if math.sqrt(distance) > limit * 0.5 * (size[v] + size[w]):
            return False
    return True


@compiled(error_model="numpy")
def _before(costs, edges, i, cost, u, v, version_u, version_v):  # type: ignore[no-untyped-def]
    """Whether entry i of the heap comes before a collapse: by cost, then by the numbers, so that no two are equal."""
    if costs[i] != cost:
        return costs[i] < cost
    if edges[i, 0] != u:
        return edges[i, 0] < u
    if edges[i, 1] != v:
        return edges[i, 1] < v
    if edges[i, 2] != version_u:
        return edges[i, 2] < version_u
    return edges[i, 3] < version_v


@compiled(error_model="numpy")
def _put(costs, edges, i, cost, u, v, version_u, version_v):  # type: ignore[no-untyped-def]
    costs[i], edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3] = cost, u, v, version_u, version_v


@compiled(error_model="numpy")
def _push(costs, edges, size, cost, u, v, version):  # type: ignore[no-untyped-def]
    """Add the collapse of u into v to a binary heap of `size` entries (`heapq` would take longer to compile)."""
    at, version_u, version_v = size, version[u], version[v]
    while at > 0:
        parent = (at - 1) // 2
        if _before(costs, edges, parent, cost, u, v, version_u, version_v):
            break
        _put(costs, edges, at, costs[parent], edges[parent, 0], edges[parent, 1], edges[parent, 2], edges[parent, 3])
        at = parent
    _put(costs, edges, at, cost, u, v, version_u, version_v)


@compiled(error_model="numpy")
def _pop(costs, edges, size):  # type: ignore[no-untyped-def]
    """Remove the first entry of a heap, which then has `size` entries."""
    cost, u, v, version_u, version_v = costs[size], edges[size, 0], edges[size, 1], edges[size, 2], edges[size, 3]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        other = child + 1
        if other < size and _before(
            costs, edges, other, costs[child], edges[child, 0], edges[child, 1], edges[child, 2], edges[child, 3]
        ):
            child = other
        if not _before(costs, edges, child, cost, u, v, version_u, version_v):
            break
        _put(costs, edges, at, costs[child], edges[child, 0], edges[child, 1], edges[child, 2], edges[child, 3])
        at = child
    _put(costs, edges, at, cost, u, v, version_u, version_v)


@compiled(nogil=True, error_model="numpy")
def _costs(p, quadric, size, noise, tolerance, edges, out):  # type: ignore[no-untyped-def]
    for i in range(len(edges)):
        out[i] = _cost(p, quadric, size, noise, tolerance, edges[i, 0], edges[i, 1])


@compiled(nogil=True, error_model="numpy")
def _collapse_edges(  # type: ignore[no-untyped-def]
    p, faces, live_face, alive, first, following, counts, border, quadric, version, size, noise, tolerance,
    costs, edges, heap, left, count, strict, ring_u, ring_v,
):  # fmt: skip
    """Collapse edges of a heap, cheapest first, until `count` vertices are left, the heap is empty or its arrays full.

    Returns
    -------
    heap, left : int
        Entries of the heap and vertices that are left.
    """
    most = len(ring_v) // 2
    while left > count and heap > 0 and heap + 4 * most <= len(costs):
        u, v, version_u, version_v = edges[0, 0], edges[0, 1], edges[0, 2], edges[0, 3]
        heap -= 1
        _pop(costs, edges, heap)
        if version_u != version[u] or version_v != version[v] or not alive[u] or not alive[v]:
            continue
        if counts[u] + counts[v] >= most:
            continue
        if not _allowed(p, faces, first, following, counts, border, size, u, v, ring_u, ring_v, strict):
            continue
        corner = first[u]
        while corner >= 0:
            after = following[corner]
            f = corner // 3
            if faces[f, 0] == v or faces[f, 1] == v or faces[f, 2] == v:
                live_face[f] = False
                for c in range(3):
                    w = faces[f, c]
                    if w != u:
                        _unlink(first, following, w, 3 * f + c)
                        counts[w] -= 1
            else:
                faces[f, corner % 3] = v
                following[corner] = first[v]
                first[v] = corner
                counts[v] += 1
            corner = after
        first[u] = -1
        alive[u] = False
        counts[u] = 0
        left -= 1
        version[u] += 1
        version[v] += 1
        for k in range(10):
            quadric[v, k] += quadric[u, k]
        neighbours = _ring(faces, first, following, v, ring_v)
        for i in range(2 * neighbours):
            w = ring_v[i // 2]
            a, b = (v, w) if i % 2 == 0 else (w, v)
            _push(costs, edges, heap, _cost(p, quadric, size, noise, tolerance, a, b), a, b, version)
            heap += 1
    return heap, left


def _collapse(
    p: NDArray[np.float64],
    given: NDArray[np.int32],
    half_edges: IntArray,
    size: NDArray[np.float64],
    noise: NDArray[np.float64],
    tolerance: float,
    count: int,
    most: int,
) -> tuple[NDArray[np.bool_], NDArray[np.int32], int]:
    """Collapse edges until `count` vertices are left: which are alive, the faces among them, and their number."""
    n, faces = len(p), given.astype(np.int64)
    corners = faces.ravel()
    # the corners 3 f + i at each vertex, as linked lists
    first, following = np.full(n, -1), np.full(len(corners), -1)
    order = np.argsort(corners, kind="stable")
    same = corners[order[1:]] == corners[order[:-1]]
    following[order[1:][same]] = order[:-1][same]
    first[corners[order]] = order
    rim = np.stack([corners[half_edges], np.roll(faces, -1, axis=1).ravel()[half_edges]], axis=1)
    border = np.zeros(n, np.bool_)
    border[rim] = True
    live_face, alive = np.ones(len(faces), np.bool_), np.ones(n, np.bool_)
    counts, version = np.bincount(corners, minlength=n), np.zeros(n, np.int64)
    quadric = _quadrics(p, faces, half_edges, rim)
    ring_u, ring_v = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64)
    left = n
    # a second and third pass take what the strict rules refused
    for attempt in range(4):
        start, end = faces[live_face].ravel(), np.roll(faces[live_face], -1, axis=1).ravel()
        # an inner edge has another face, in which it runs the other way
        taken = (start < end) | (border[start] & border[end])
        pairs = np.stack([start[taken], end[taken]], axis=1)
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
        heap = len(pairs)
        costs, edges = np.empty(2 * heap + 8 * most), np.empty((2 * heap + 8 * most, 4), np.int64)
        initial = np.empty(heap)
        _costs(p, quadric, size, noise, tolerance, pairs, initial)
        order = np.lexsort((pairs[:, 1], pairs[:, 0], initial))  # what is sorted is a heap
        costs[:heap], edges[:heap, :2], edges[:heap, 2:] = initial[order], pairs[order], version[pairs[order]]
        while left > count and heap > 0:
            if heap + 4 * most > len(costs):
                costs, edges = np.concatenate([costs, costs]), np.concatenate([edges, edges])
            heap, left = _collapse_edges(
                p, faces, live_face, alive, first, following, counts, border, quadric, version, size, noise, tolerance,
                costs, edges, heap, left, count, attempt < 2, ring_u, ring_v,
            )  # fmt: skip
        if left <= count:
            break
    return alive, faces[live_face].astype(np.int32), left


def _quadrics(
    p: NDArray[np.float64], faces: NDArray[np.int64], half_edges: IntArray, rim: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(n, 10) squared distances from the planes of faces, and from those through boundary edges perpendicular to them.

    Upper triangles of symmetric 4 x 4 matrices; a face counts for a third at each corner.
    """
    a, b, c = p[faces[:, 0]], p[faces[:, 1]], p[faces[:, 2]]
    normals = np.cross(b - a, c - a)
    across = np.cross(p[rim[:, 1]] - p[rim[:, 0]], normals[half_edges // 3])
    at = np.concatenate([rim.ravel(), faces.ravel()])
    planes = []
    for normal, point, copies in ((across, p[rim[:, 0]], 2), (normals, a, 3)):
        unit = normal / (np.sqrt((normal**2).sum(axis=1, keepdims=True)) + 1e-300)
        plane = np.concatenate([unit, -(unit * point).sum(axis=1, keepdims=True)], axis=1)
        planes.append(np.repeat(plane, copies, axis=0))
    weights = np.repeat([1.0, 3.0], [rim.size, faces.size])
    i, j = np.triu_indices(4)
    rows = np.concatenate(planes)
    return np.stack([np.bincount(at, rows[:, k] * rows[:, m] / weights, len(p)) for k, m in zip(i, j, strict=True)], 1)


def _flip(points: NDArray[np.float64], faces: NDArray[np.int32], passes: int = 6) -> NDArray[np.int32]:
    """Flip edges whose opposite angles sum to more than pi, where the surface bends by less than 25 degrees."""
    triangles = [list(map(int, t)) for t in faces]
    for _ in range(passes):
        array = np.array(triangles, np.int32)
        side = {(t[k], t[(k + 1) % 3]): f for f, t in enumerate(triangles) for k in range(3)}
        degree = np.bincount(array.ravel(), minlength=len(points))
        touched: set[int] = set()
        flips = 0
        for a, b in _flippable(points, array):
            f, g = side.get((a, b)), side.get((b, a))
            if f is None or g is None or f in touched or g in touched:
                continue
            c = next(v for v in triangles[f] if v not in (a, b))
            d = next(v for v in triangles[g] if v not in (a, b))
            if (c, d) in side or (d, c) in side or min(degree[a], degree[b]) <= 4:
                continue
            triangles[f], triangles[g] = [c, a, d], [d, b, c]
            side[(c, d)] = side[(d, c)] = -1  # taken: no other flip of this pass may make the same edge
            degree[[a, b]] -= 1
            degree[[c, d]] += 1
            touched.update((f, g))
            flips += 1
        if not flips:
            break
    return np.array(triangles, np.int32)


def _flippable(points: NDArray[np.float64], faces: NDArray[np.int32]) -> list[tuple[int, int]]:
    """Edges worth flipping as (start, end), worst first."""
    corner = points[faces]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    start = faces.ravel().astype(np.int64)
    end = faces[:, [1, 2, 0]].ravel().astype(np.int64)
    tip = faces[:, [2, 0, 1]].ravel().astype(np.int64)
    face = np.repeat(np.arange(len(faces)), 3)
    p, q = points[start] - points[tip], points[end] - points[tip]
    angle = np.arctan2(np.linalg.norm(np.cross(p, q), axis=1), np.einsum("ij,ij->i", p, q))
    low, high = np.minimum(start, end), np.maximum(start, end)
    order = np.lexsort((start > end, high, low))
    # both directions of an inner edge are side by side
    inner = np.flatnonzero((low[order[1:]] == low[order[:-1]]) & (high[order[1:]] == high[order[:-1]]))
    one, two = order[inner], order[inner + 1]
    bend = np.einsum("ij,ij->i", normal[face[one]], normal[face[two]])
    excess = angle[one] + angle[two] - np.pi
    # where the angles exceed pi the quadrilateral is convex, so the two new triangles cannot fold over
    worth = np.flatnonzero((excess > 0.05) & (bend > np.cos(np.radians(25))))
    worth = worth[np.argsort(-excess[worth], kind="stable")]
    return [(int(start[one[i]]), int(end[one[i]])) for i in worth]
