"""Detection of mesh defects, independent of the unit of length: coincident vertices, degenerate faces, orientation.

Edge swaps, which give degenerate faces an area, are the only function here that changes a mesh.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.topology import (
    corner_columns,
    cross,
    dot,
    double_cover,
    groups,
    mesh_edges,
    minus,
    next_corner,
    orientations_agree,
)
from acnn.types import IntArray

MIN_HEIGHT = 1e-10
"""A triangle whose height is below this fraction of its longest edge is degenerate: six digits above rounding."""

MAX_SWAP_ROUNDS = 32
"""Limit on the rounds of edge swaps; a round swaps at most one edge of each neighbour."""

MIN_OPEN_VOLUME = 1e-3
"""Fraction of area^1.5 above which a capped volume determines the outside of open components; a sphere has 0.094."""


def coincident_vertices(vertices: NDArray[np.float64]) -> IntArray:
    """For each vertex the first one with exactly the same coordinates, itself if there is no other.

    0.0 and -0.0 are the same coordinate. A vertex that is not finite coincides with none.

    Parameters
    ----------
    vertices : (n, 3) float64 array

    Returns
    -------
    (n,) int64 array
    """
    bits = np.ascontiguousarray(vertices + 0.0).view(np.uint64)
    # Sorting one hash is several times faster than sorting triples; equal hashes are compared in full below.
    hashes = bits[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    hashes = (hashes ^ (hashes >> np.uint64(29))) + bits[:, 1] * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(32))) + bits[:, 2] * np.uint64(0x94D049BB133111EB)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    equal = np.flatnonzero(hashes[1:] == hashes[:-1])
    same = (bits[order[equal + 1]] == bits[order[equal]]).all(axis=1)
    is_first = np.ones(len(order), bool)
    is_first[equal[same] + 1] = False
    if not same.all():  # two points share a hash
        order = np.lexsort((bits[:, 2], bits[:, 1], bits[:, 0]))
        is_first[1:] = (bits[order[1:]] != bits[order[:-1]]).any(axis=1)
    result = np.empty(len(vertices), np.int64)
    result[order] = order[is_first][np.cumsum(is_first) - 1]
    not_finite = np.flatnonzero(~np.isfinite(vertices).all(axis=1))
    result[not_finite] = not_finite
    return result


def is_triangle_soup(faces: NDArray[np.integer], points: IntArray) -> bool:
    """Whether no two faces share a vertex although some of their vertices coincide.

    Parameters
    ----------
    faces : (m, 3) int array
    points : (n,) int array
        As `coincident_vertices` returns them.
    """
    corners = faces.reshape(-1)
    if len(faces) < 2 or np.bincount(corners, minlength=len(points)).max() > 1:
        return False
    return len(np.unique(points[corners])) < len(corners)


def weld_labels(faces: NDArray[np.integer], points: IntArray, soup: bool) -> IntArray:
    """Which vertices to weld: for each vertex the smallest one of its group.

    In a triangle soup all coincident vertices are welded. In any other mesh these are the ends of edges of length zero,
    and boundary edges in pairs: two edges between the same two points, in opposite directions as those of neighbours
    are, with no third edge there. So texture seams are closed, and coincident sheets stay separate.

    Parameters
    ----------
    faces : (m, 3) int array
    points : (n,) int array
        As `coincident_vertices` returns them.
    soup : bool
        Whether the mesh is a triangle soup.

    Returns
    -------
    (n,) int64 array
    """
    n = len(points)
    if soup:
        return points
    a, b = _zero_length_edges(faces, points)
    if (points != np.arange(n)).any():
        boundary_a, boundary_b = _boundary_pairs(faces, points)
        a, b = np.concatenate([a, boundary_a]), np.concatenate([b, boundary_b])
    if len(a) == 0:
        return np.arange(n)
    count, labels = groups(a, b, n)
    smallest = np.full(count, n, np.int64)
    np.minimum.at(smallest, labels, np.arange(n))
    return smallest[labels]


def degenerate_faces(vertices: NDArray[np.float64], faces: IntArray) -> NDArray[np.bool_]:
    """(m,) faces whose height is at most `MIN_HEIGHT` times their longest edge."""
    used = np.zeros(len(vertices), bool)
    used[faces] = True
    extent = float(np.ptp(vertices[used], axis=0).max()) if len(faces) else 0.0
    if extent == 0.0:
        return np.ones(len(faces), bool)
    p = corner_columns(vertices / extent, faces)
    u, v = minus(p[1], p[0]), minus(p[2], p[0])
    normal, w = cross(u, v), minus(v, u)
    longest = np.maximum(np.maximum(dot(u, u), dot(v, v)), dot(w, w))
    # A face so small that its squares underflow compares 0 <= 0, and is degenerate too.
    return np.asarray(np.sqrt(dot(normal, normal)) <= MIN_HEIGHT * longest)


def swap_degenerate_edges(vertices: NDArray[np.float64], faces: IntArray, uv_faces: IntArray | None) -> int:
    """Give degenerate faces an area, where possible, by swapping their longest edge with the neighbour; in place.

    A degenerate face (c, a, b) has c on its longest edge a b. With the neighbour (b, a, d) it becomes (c, a, d),
    (c, d, b): the same surface, with c a corner on both sides. Removing the face instead would open a slit there. Faces
    at a boundary or a texture seam are left as they are, and those where c and d are already joined by an edge.

    Parameters
    ----------
    vertices : (n, 3) array
    faces : (m, 3) array
        Changed in place.
    uv_faces : (m, 3) array or None
        Changed in place.

    Returns
    -------
    int
        Number of edges swapped.
    """
    swapped = 0
    degenerate = degenerate_faces(vertices, faces)
    tables = (faces,) if uv_faces is None else (faces, uv_faces)
    for _ in range(MAX_SWAP_ROUNDS):
        if not degenerate.any():
            break
        f, k, g, l = _possible_swaps(vertices, faces, uv_faces, degenerate)
        if len(f) == 0:
            break
        changed = np.concatenate([f, g])
        before = [table[changed] for table in tables]
        for table in tables:
            c, d = table[f, k], table[g, l]
            # In the neighbour's own direction the shared edge runs from b to a.
            b, a = table[g, (l + 1) % 3], table[g, (l + 2) % 3]
            table[f], table[g] = np.column_stack([c, a, d]), np.column_stack([c, d, b])
        failed = degenerate_faces(vertices, faces[changed]).reshape(2, -1).any(axis=0)
        undo = np.concatenate([failed, failed])
        for table, rows in zip(tables, before, strict=True):
            table[changed[undo]] = rows[undo]
        degenerate[f[~failed]] = False
        swapped += int((~failed).sum())
        if failed.all():
            break
    return swapped


def inside_out(
    vertices: NDArray[np.float64],
    faces: IntArray,
    component: IntArray,
    count: int,
    half_edges: IntArray,
    loop: IntArray,
    loops: int,
) -> tuple[NDArray[np.bool_], int, int]:
    """Find the components whose faces point inwards.

    A closed component is inside out where its volume 1/6 sum_f det(a, b, c) is negative. Open components are judged
    together with all others, since a cavity such as an eye socket is ambiguous on its own: each boundary loop is capped
    by a fan around its centre, and where the capped volumes of all components sum to less than
    -`MIN_OPEN_VOLUME` area^1.5, every open component is inside out.

    Parameters
    ----------
    vertices : (n, 3) array
    faces : (m, 3) array
        Of a manifold.
    component : (m,) array
        Component of each face.
    count : int
        Number of components.
    half_edges : (b,) array
        Boundary half-edges.
    loop : (b,) array
        Boundary loop of each.
    loops : int
        Number of boundary loops.

    Returns
    -------
    (m,) bool array
        Faces of components that are inside out.
    int
        How many of these components are closed.
    int
        How many are open.
    """
    extent = float(np.ptp(vertices, axis=0).max())
    points = (vertices - vertices.mean(axis=0)) / extent
    p = corner_columns(points, faces)
    normal = cross(minus(p[1], p[0]), minus(p[2], p[0]))
    size = np.bincount(component, minlength=count)
    centre = np.column_stack([np.bincount(component, p[0][k], count) / size for k in range(3)])
    # det(a, b, c) = a . (b - a) x (c - a), with a relative to the component's centre for accuracy.
    from_centre = minus(p[0], [np.ascontiguousarray(centre[:, k])[component] for k in range(3)])
    volume = np.bincount(component, dot(from_centre, normal) / 6, count)
    area = np.bincount(component, np.sqrt(dot(normal, normal)) / 2, count)
    is_open = np.zeros(count, bool)
    if loops:
        owner = component[half_edges // 3]
        is_open[owner] = True
        corners = faces.reshape(-1)
        begin = points[corners[half_edges]] - centre[owner]
        end = points[corners[next_corner(half_edges)]] - centre[owner]
        loop_size = np.bincount(loop, minlength=loops)
        cap = np.column_stack([np.bincount(loop, begin[:, k], loops) / loop_size for k in range(3)])
        volume += np.bincount(owner, np.einsum("ij,ij->i", cap[loop], np.cross(end, begin)) / 6, count)
    inverted = ~is_open & (volume < -1e-12 * area**1.5)  # a volume within rounding of zero determines nothing
    closed = int(inverted.sum())
    if volume.sum() < -MIN_OPEN_VOLUME * area.sum() ** 1.5:
        inverted |= is_open
    return inverted[component], closed, int((inverted & is_open).sum())


def spanning_tree_flips(
    faces: IntArray, first: IntArray, second: IntArray, non_orientable: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Faces of non-orientable components to flip so that neighbours along a spanning tree are consistent.

    Parameters
    ----------
    faces : (m, 3) array
    first, second : (p,) array
        Paired half-edges.
    non_orientable : (m,) bool array
        As `consistent_flips` returns it.

    Returns
    -------
    (m,) bool array
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    m = len(faces)
    inside = non_orientable[first // 3]
    first, second = first[inside], second[inside]
    f, g, agree = first // 3, second // 3, orientations_agree(faces, first, second)
    # Weights from 1 name the pair of half-edges; pairs that agree come first, so that few edges need cutting.
    by_weight = np.lexsort((np.arange(len(f)), ~agree))
    weight = np.empty(len(f))
    weight[by_weight] = np.arange(1, len(f) + 1)
    low, high = np.minimum(f, g), np.maximum(f, g)
    # In the order of weight, the first of several pairs between the same two faces is the lightest.
    _, lightest = np.unique((low * m + high)[by_weight], return_index=True)
    kept = by_weight[lightest]
    graph = coo_array((weight[kept], (low[kept], high[kept])), shape=(m, m)).tocsr()
    tree = by_weight[np.rint(minimum_spanning_tree(graph).tocoo().data).astype(np.int64) - 1]
    sheets = double_cover(f[tree], g[tree], agree[tree], m)
    return non_orientable & (sheets[:m] > sheets[m:])


def _zero_length_edges(faces: NDArray[np.integer], points: IntArray) -> tuple[IntArray, IntArray]:
    """Ends of edges between coincident vertices; welding them removes the two faces there without opening a slit."""
    corners = faces.astype(np.int64)
    begin, end = corners.reshape(-1), np.roll(corners, -1, axis=1).reshape(-1)
    zero = (points[begin] == points[end]) & (begin != end)
    return begin[zero], end[zero]


def _boundary_pairs(faces: NDArray[np.integer], points: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of vertices to weld at coincident boundary edges; see `weld_labels`."""
    n, corners = len(points), faces.astype(np.int64).reshape(-1)
    half = mesh_edges(faces).boundary()
    shared = np.bincount(points, minlength=n)[points] > 1
    begin, end = corners[half], corners[next_corner(half)]
    possible = (shared[begin] | shared[end]) & (points[begin] != points[end])
    half, begin, end = half[possible], begin[possible], end[possible]
    key = np.minimum(points[begin], points[end]) * n + np.maximum(points[begin], points[end])
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    counts = np.diff(np.append(starts, len(key)))
    first, second = order[starts[counts == 2]], order[starts[counts == 2] + 1]
    opposite = points[corners[next_corner(next_corner(half))]]
    neighbours = (points[begin[first]] == points[end[second]]) & (opposite[first] != opposite[second])
    first, second = first[neighbours], second[neighbours]
    return np.concatenate([begin[first], end[first]]), np.concatenate([end[second], begin[second]])


def _possible_swaps(
    vertices: NDArray[np.float64], faces: IntArray, uv_faces: IntArray | None, degenerate: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Degenerate faces f with the corner k opposite their longest edge, and neighbours g with theirs, l; none twice."""
    n = len(vertices)
    edges = mesh_edges(faces)
    first, second = edges.pairs()
    mate = np.full(3 * len(faces), -1, np.int64)
    mate[first], mate[second] = second, first
    f = np.flatnonzero(degenerate)
    p = vertices[faces[f]]
    side = np.argmax(np.linalg.norm(np.roll(p, -1, axis=1) - p, axis=2), axis=1)  # half-edge 3 f + side is the longest
    other = mate[3 * f + side]
    g = other // 3
    usable = (other >= 0) & ~degenerate[g]
    k, l = (side + 2) % 3, (other % 3 + 2) % 3
    c, d = faces[f, k], faces[g, l]
    low, high = np.sort(edges.vertices.astype(np.int64), axis=1).T
    key, new_key = low * n + high, np.minimum(c, d) * n + np.maximum(c, d)
    at = np.minimum(np.searchsorted(key, new_key), len(key) - 1)
    usable &= (key[at] != new_key) & (c != d)
    if uv_faces is not None:
        usable &= _same_uv(faces, uv_faces, f, side, g, other % 3)
    f, k, g, l, new_key = f[usable], k[usable], g[usable], l[usable], new_key[usable]
    # One swap per neighbour and per new edge in a round; the others follow in the next.
    _, one = np.unique(g, return_index=True)
    one = one[np.unique(new_key[one], return_index=True)[1]]
    return f[one], k[one], g[one], l[one]


def _same_uv(
    faces: IntArray, uv_faces: IntArray, f: IntArray, side: IntArray, g: IntArray, other: IntArray
) -> NDArray[np.bool_]:
    """Where faces f and g have the same texture coordinates along their shared edge, so that it is no seam."""
    begin_f, end_f = uv_faces[f, side], uv_faces[f, (side + 1) % 3]
    begin_g, end_g = uv_faces[g, other], uv_faces[g, (other + 1) % 3]
    parallel = faces[f, side] == faces[g, other]
    return np.where(parallel, (begin_f == begin_g) & (end_f == end_g), (begin_f == end_g) & (end_f == begin_g))
