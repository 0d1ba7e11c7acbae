"""Defects of meshes, found in any unit of length: coincident vertices, triangles without area, inverted orientation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.topology import agree, corner_columns, cross, dot, groups, mesh_edges, minus, next_corner
from acnn.types import IntArray


def same_place(vertices: NDArray[np.float64]) -> IntArray:
    """For each vertex the first one with exactly the same coordinates (0.0 and -0.0 are the same), itself if alone.

    A vertex that is not finite lies nowhere, so it is alone.
    """
    n = len(vertices)
    bits = np.ascontiguousarray(vertices + 0.0).view(np.uint64)
    # Sorting one mixed word is several times faster than sorting triples; a run of equal words is checked below.
    word = bits[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(29))) + bits[:, 1] * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(32))) + bits[:, 2] * np.uint64(0x94D049BB133111EB)
    order = np.argsort(word, kind="stable")
    fresh, clash = _runs(bits, order, word)
    if clash:
        order = np.lexsort((bits[:, 2], bits[:, 1], bits[:, 0]))
        fresh, _ = _runs(bits, order, None)
    result = np.empty(n, np.int64)
    result[order] = order[fresh][np.cumsum(fresh) - 1]
    nowhere = np.flatnonzero(~np.isfinite(vertices).all(axis=1))
    result[nowhere] = nowhere
    return result


def stitches(faces: NDArray[np.integer], place: IntArray, vertices_in_use_once: bool) -> IntArray:
    """Which vertices are one, as a label (n,), each the smallest vertex of its group.

    A soup, whose every face has vertices of its own, is joined at every place where vertices coincide. In any other
    mesh only boundary edges are joined, in pairs: two edges between the same two places, running in opposite directions
    as neighbours do, and no third edge there. So texture seams close, while sheets that lie on each other stay apart.
    """
    n = len(place)
    if vertices_in_use_once:
        return place
    pairs_a, pairs_b = _zero_length_edges(faces, place)
    if (place != np.arange(n)).any():
        edge_a, edge_b = _boundary_pairs(faces, place)
        pairs_a, pairs_b = np.concatenate([pairs_a, edge_a]), np.concatenate([pairs_b, edge_b])
    if len(pairs_a) == 0:
        return np.arange(n)
    count, label = groups(pairs_a, pairs_b, n)
    smallest = np.full(count, n, np.int64)
    np.minimum.at(smallest, label, np.arange(n))
    return smallest[label]


def is_soup(faces: NDArray[np.integer], place: IntArray) -> bool:
    """Whether no two faces share a vertex although some meet at the same places."""
    if len(faces) < 2:
        return False
    used = np.bincount(faces.reshape(-1), minlength=len(place))
    if used.max() > 1:
        return False
    corners = place[faces.reshape(-1)]
    return len(np.unique(corners)) < len(corners)


def _runs(bits: NDArray[np.uint64], order: IntArray, word: NDArray[np.uint64] | None) -> tuple[NDArray[np.bool_], bool]:
    """Where a new place begins in the sorted order, and whether two places share one word."""
    differs = np.ones(len(order), bool)
    if word is None:
        differs[1:] = (bits[order[1:]] != bits[order[:-1]]).any(axis=1)
        return differs, False
    word = word[order]
    alike = np.flatnonzero(word[1:] == word[:-1])
    same = (bits[order[alike + 1]] == bits[order[alike]]).all(axis=1)
    differs[alike[same] + 1] = False
    return differs, not bool(same.all())


def _zero_length_edges(faces: NDArray[np.integer], place: IntArray) -> tuple[IntArray, IntArray]:
    # Joining their ends collapses the two flat faces at such an edge without opening a slit.
    flat = faces.astype(np.int64)
    begin, end = flat.reshape(-1), np.roll(flat, -1, axis=1).reshape(-1)
    zero = (place[begin] == place[end]) & (begin != end)
    return begin[zero], end[zero]


def _boundary_pairs(faces: NDArray[np.integer], place: IntArray) -> tuple[IntArray, IntArray]:
    flat = faces.astype(np.int64).reshape(-1)
    half = mesh_edges(faces).boundary()
    shared = np.bincount(place, minlength=len(place))[place] > 1
    begin, end = flat[half], flat[next_corner(half)]
    possible = (shared[begin] | shared[end]) & (place[begin] != place[end])
    half, begin, end = half[possible], begin[possible], end[possible]
    low, high = np.minimum(place[begin], place[end]), np.maximum(place[begin], place[end])
    key = low * len(place) + high
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(key[order]) != 0)) if len(key) else np.zeros(0, np.int64)
    counts = np.diff(np.append(starts, len(key)))
    first, second = order[starts[counts == 2]], order[starts[counts == 2] + 1]
    third = place[flat[next_corner(next_corner(half))]]
    neighbours = (place[begin[first]] == place[end[second]]) & (third[first] != third[second])
    first, second = first[neighbours], second[neighbours]
    return np.concatenate([begin[first], end[first]]), np.concatenate([end[second], begin[second]])


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

    Returns
    -------
    int
        How many faces were swapped.
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
    edges = mesh_edges(faces)
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
    low, high = np.sort(edges.vertices.astype(np.int64), axis=1).T
    key = low * n + high
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


CLEARLY = 1e-3  # |volume| above this share of area^1.5 tells the outside of an open part; a sphere has 0.094


def inside_out(
    vertices: NDArray[np.float64],
    faces: IntArray,
    component: IntArray,
    count: int,
    half_edges: IntArray,
    loop: IntArray,
    loops: int,
) -> tuple[NDArray[np.bool_], int, int]:
    """Faces of components that are inside out, and how many closed and open components those are.

    A closed component is inside out where its volume 1/6 sum_f det(a, b, c) is negative. Open components are judged
    together with all others, for a hollow (an eye socket) says little on its own: each boundary loop is capped by a fan
    around its centre, and where the capped volumes of the whole shape sum to clearly less than zero
    (-1e-3 area^1.5), every open component is turned.

    Parameters
    ----------
    vertices : (n, 3) array
    faces : (m, 3) array
        Manifold.
    component : (m,) array
        Of each face.
    half_edges : array
        Boundary half-edges.
    loop : array
        The boundary loop of each.
    """
    extent = float(np.ptp(vertices, axis=0).max())
    points = (vertices - vertices.mean(axis=0)) / extent
    p = corner_columns(points, faces)
    normal = cross(minus(p[1], p[0]), minus(p[2], p[0]))
    size = np.bincount(component, minlength=count)
    centre = np.column_stack([np.bincount(component, p[0][k], count) / size for k in range(3)])
    # det(a, b, c) = a . (b - a) x (c - a), with a seen from the component's centre for accuracy.
    from_centre = minus(p[0], [np.ascontiguousarray(centre[:, k])[component] for k in range(3)])
    volume = np.bincount(component, dot(from_centre, normal) / 6, count)
    area = np.bincount(component, np.sqrt(dot(normal, normal)) / 2, count)
    is_open = np.zeros(count, bool)
    if loops:
        owner = component[half_edges // 3]
        is_open[owner] = True
        flat = faces.reshape(-1)
        begin = points[flat[half_edges]] - centre[owner]
        end = points[flat[next_corner(half_edges)]] - centre[owner]
        length = np.bincount(loop, minlength=loops)
        cap = np.column_stack([np.bincount(loop, begin[:, k], loops) / length for k in range(3)])
        volume += np.bincount(owner, np.einsum("ij,ij->i", cap[loop], np.cross(end, begin)) / 6, count)
    wrong = ~is_open & (volume < -1e-12 * area**1.5)
    closed = int(wrong.sum())
    if volume.sum() < -CLEARLY * area.sum() ** 1.5:
        wrong |= is_open
    return wrong[component], closed, int((wrong & is_open).sum())


def spanning_orientation(
    faces: IntArray, first: IntArray, second: IntArray, one_sided: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Faces of one-sided components to turn so that neighbours along a spanning tree agree."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    from acnn.shapes.topology import groups

    m = len(faces)
    f, g = first // 3, second // 3
    inside = one_sided[f]
    first, second, f, g = first[inside], second[inside], f[inside], g[inside]
    # Numbers from 1 name the pair of half-edges; pairs that agree come first, so that few edges need cutting.
    weight = np.empty(len(f))
    same = agree(faces, first, second)
    weight[np.lexsort((np.arange(len(f)), ~same))] = np.arange(1, len(f) + 1)
    low, high = np.minimum(f, g), np.maximum(f, g)
    order = np.argsort(-weight, kind="stable")  # of two edges between the same faces the lighter is kept
    key = low * m + high
    _, kept = np.unique(key[order][::-1], return_index=True)
    kept = order[::-1][kept]
    graph = coo_array((weight[kept], (low[kept], high[kept])), shape=(m, m)).tocsr()
    tree = np.rint(minimum_spanning_tree(graph).tocoo().data).astype(np.int64)
    by_weight = np.argsort(weight)
    chosen = by_weight[tree - 1]
    f, g, same = f[chosen], g[chosen], same[chosen]
    a = np.concatenate([f, f + m])
    b = np.concatenate([np.where(same, g, g + m), np.where(same, g + m, g)])
    _, label = groups(a, b, 2 * m)
    return one_sided & (label[:m] > label[m:])
