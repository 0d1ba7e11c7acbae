"""Partition of a surface into cells of about equal size, and the neighbourhoods of such cells.

Distances are corrected from a queue rather than in the order of a heap: the result is the same, and the code compiles
in a tenth of the time.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from acnn.compilation import compiled
from acnn.types import FloatArray, IntArray

_UNREACHED = 1e100


def partition(graph: csr_array, size: int, priority: FloatArray) -> tuple[IntArray, IntArray]:
    """Partition a graph into Voronoi cells of about `size` vertices by farthest point sampling.

    Each vertex belongs to the cell of the nearest seed; each new seed is the vertex farthest from all previous ones.
    The result depends on distances only, not on the order of vertices.

    Parameters
    ----------
    graph : (n, n) sparse array
        Symmetric, positive lengths.
    size : int
        Mean number of vertices of a cell.
    priority : (n,) array
        The first seed of a component is its vertex of largest priority.

    Returns
    -------
    members : (n,) array
        The vertices sorted by cell.
    starts : (cells + 1,) array
        Start of each cell in this list.
    """
    n = graph.shape[0]
    nearest = _UNREACHED * (1.0 + priority / max(float(priority.max()), 1e-300))
    label = np.zeros(n, np.int32)
    leaves = 1 << (n - 1).bit_length()
    # The largest distance of every subtree, with the root at 1 and the vertices at `leaves` and after.
    tree = np.full(2 * leaves, -1.0)
    tree[leaves : leaves + n] = nearest
    level = leaves
    while level > 1:
        tree[level // 2 : level] = tree[level : 2 * level].reshape(-1, 2).max(axis=1)
        level //= 2
    queue, waiting = np.empty(n, np.int32), np.zeros(n, bool)
    seeds = max(1, -(-n // size))
    _label_by_seeds(graph.indptr, graph.indices, graph.data, seeds, tree, nearest, label, queue, waiting)
    members = np.argsort(label, kind="stable").astype(np.int32)
    counts = np.bincount(label)
    counts = counts[counts > 0]
    return members, np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


class Neighbourhoods:
    """Neighbourhoods of cells in a graph; with workspaces, so that each costs no more than its own size.

    Parameters
    ----------
    graph : (n, n) sparse array
        Symmetric, positive lengths.
    """

    def __init__(self, graph: csr_array) -> None:
        n = graph.shape[0]
        self.graph = graph
        self._distance = np.full(n, np.inf)
        self._queue, self._reached = np.empty(n, np.int32), np.empty(n, np.int32)
        self._waiting = np.zeros(n, bool)

    def within(self, cell: IntArray, reach: float) -> IntArray:
        """Vertices within graph distance `reach` of a cell, the cell included, in no particular order.

        Parameters
        ----------
        cell : (c,) array
            Vertices.
        reach : float
            Distance.

        Returns
        -------
        (N,) array
        """
        graph = (self.graph.indptr, self.graph.indices, self.graph.data)
        workspaces = (self._distance, self._queue, self._waiting, self._reached)
        count = _reach(*graph, cell, reach, *workspaces)
        return self._reached[:count].copy()


@compiled(nogil=True)
def _label_by_seeds(
    indptr: IntArray,
    indices: IntArray,
    lengths: FloatArray,
    seeds: int,
    tree: FloatArray,
    nearest: FloatArray,
    label: IntArray,
    queue: IntArray,
    waiting: IntArray,
) -> None:
    """Set `label` to the number of the seed nearest to each vertex."""
    n, leaves, made = len(label), len(tree) // 2, 0
    while made < seeds or tree[1] >= _UNREACHED:  # every component gets a seed
        node = 1
        while node < leaves:
            node = 2 * node if tree[2 * node] == tree[node] else 2 * node + 1
        seed = node - leaves
        if nearest[seed] == 0.0:
            break
        nearest[seed], label[seed] = 0.0, made
        queue[0], head, count = seed, 0, 1
        while count > 0:
            v = queue[head]
            head = head + 1 if head + 1 < n else 0
            count -= 1
            waiting[v] = False
            node = leaves + v
            tree[node] = nearest[v]
            while node > 1:
                node //= 2
                larger = tree[2 * node] if tree[2 * node] > tree[2 * node + 1] else tree[2 * node + 1]
                if tree[node] == larger:
                    break
                tree[node] = larger
            for k in range(indptr[v], indptr[v + 1]):
                w, further = indices[k], nearest[v] + lengths[k]
                if further < nearest[w]:
                    nearest[w], label[w] = further, made
                    if not waiting[w]:
                        waiting[w] = True
                        queue[head + count if head + count < n else head + count - n] = w
                        count += 1
        made += 1


@compiled(nogil=True)
def _reach(
    indptr: IntArray,
    indices: IntArray,
    lengths: FloatArray,
    cell: IntArray,
    limit: float,
    distance: FloatArray,
    queue: IntArray,
    waiting: IntArray,
    reached: IntArray,
) -> int:
    """List the vertices within `limit` of a cell; `distance` is infinite and `waiting` false before and after."""
    n, head, count = len(distance), 0, len(cell)
    for k in range(count):
        distance[cell[k]], queue[k], reached[k], waiting[cell[k]] = 0.0, cell[k], cell[k], True
    found = count
    while count > 0:
        v = queue[head]
        head = head + 1 if head + 1 < n else 0
        count -= 1
        waiting[v] = False
        for k in range(indptr[v], indptr[v + 1]):
            w, further = indices[k], distance[v] + lengths[k]
            if further <= limit and further < distance[w]:
                if distance[w] == np.inf:
                    reached[found] = w
                    found += 1
                distance[w] = further
                if not waiting[w]:
                    waiting[w] = True
                    queue[head + count if head + count < n else head + count - n] = w
                    count += 1
    for k in range(found):
        distance[reached[k]] = np.inf
    return found
