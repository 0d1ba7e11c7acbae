"""Which side of a surface is outside."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.topology import IntArray, agree, next_corner
from acnn.shapes.triangles import corner_columns, cross, dot, minus

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

    - vertices: (n, 3); faces: (m, 3) manifold; component: (m,) of each face
    - half_edges: boundary half-edges; loop: the boundary loop of each
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
