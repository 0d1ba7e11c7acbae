"""Cutting a surface into small cells with wide surroundings, on which kernels are computed one cell at a time."""

from __future__ import annotations

import heapq

import numpy as np
from scipy.sparse import csr_array

from acnn.compilation import compiled
from acnn.shapes.shape import FloatArray, IntArray


def partition(graph: csr_array, size: int, eagerness: FloatArray) -> tuple[IntArray, IntArray]:
    """Cut a graph into cells of about `size` vertices around farthest points.

    Each vertex belongs to the nearest of the seeds; each new seed is the vertex farthest from all before it. What comes
    out depends on distances only, not on the order of vertices.

    Parameters
    - graph: (n, n) symmetric, positive lengths
    - size: vertices wanted per cell, on average
    - eagerness: (n,) of the vertices of a component without a seed, the one of largest value becomes its first

    Returns the vertices sorted by cell (n,), and the start of each cell in that list (cells + 1,).
    """
    n = graph.shape[0]
    label = _farthest_point_labels(graph.indptr, graph.indices, graph.data, max(1, -(-n // size)), eagerness)
    members = np.argsort(label, kind="stable").astype(np.int32)
    counts = np.bincount(label)
    counts = counts[counts > 0]
    return members, np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


@compiled(nogil=True)
def _farthest_point_labels(
    indptr: IntArray, indices: IntArray, lengths: FloatArray, seeds: int, eagerness: FloatArray
) -> IntArray:
    n = len(indptr) - 1
    unreached = 1e100
    nearest = unreached * (1.0 + eagerness / max(eagerness.max(), 1e-300))
    label = np.zeros(n, np.int32)
    # Distances only fall, so what the heap says of a vertex is an upper bound; it is put back when out of date.
    waiting = [(-nearest[v], np.int32(v)) for v in range(n)]
    heapq.heapify(waiting)
    made = 0
    while made < seeds or -waiting[0][0] >= unreached:  # every component gets a seed
        bound, seed = heapq.heappop(waiting)
        if -bound > nearest[seed]:
            heapq.heappush(waiting, (-nearest[seed], seed))
            continue
        if nearest[seed] == 0.0:
            break
        nearest[seed] = 0.0
        label[seed] = made
        front = [(0.0, seed)]
        while len(front) > 0:
            distance, v = heapq.heappop(front)
            if distance > nearest[v]:
                continue
            for k in range(indptr[v], indptr[v + 1]):
                w = indices[k]
                further = distance + lengths[k]
                if further < nearest[w]:
                    nearest[w] = further
                    label[w] = made
                    heapq.heappush(front, (further, w))
        made += 1
        heapq.heappush(waiting, (0.0, seed))
    return label


@compiled(nogil=True)
def surroundings(
    indptr: IntArray,
    indices: IntArray,
    lengths: FloatArray,
    cell: IntArray,
    reach: float,
    distance: FloatArray,
) -> IntArray:
    """Vertices within graph distance `reach` of a cell, the cell included, in no particular order.

    Parameters
    - indptr, indices, lengths: the graph
    - cell: (c,) vertices
    - reach: distance
    - distance: (n,) a workspace, infinite everywhere before and after
    """
    front = [(0.0, cell[0])]
    found = [cell[0]]
    front.pop()
    found.pop()
    for v in cell:
        distance[v] = 0.0
        front.append((0.0, v))
        found.append(v)
    while len(front) > 0:
        so_far, v = heapq.heappop(front)
        if so_far > distance[v]:
            continue
        for k in range(indptr[v], indptr[v + 1]):
            w = indices[k]
            further = so_far + lengths[k]
            if further <= reach and further < distance[w]:
                if distance[w] == np.inf:
                    found.append(w)
                distance[w] = further
                heapq.heappush(front, (further, w))
    vertices = np.array(found)
    for v in vertices:
        distance[v] = np.inf
    return vertices
