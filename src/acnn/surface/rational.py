"""Heat kernels by a localised rational approximation: exact to a stated error, no eigenvectors, cost linear in n.

With one repeated real pole, z = (1 + tau L)^-1, every exp(-t L) is nearly a polynomial p_t(z): the same few sparse
solves serve all scales at once. And a kernel is local: the rows of a cell of some hundred vertices are computed on
the cell's surroundings alone, where a sparse factor is small and stays in the processor's cache.
"""

from __future__ import annotations

import heapq
import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from numpy.polynomial import Polynomial, chebyshev
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu

from acnn.compilation import compiled
from acnn.errors import InputError
from acnn.progress import Progress
from acnn.surface.geodesics import distance_graph
from acnn.surface.laplacian import stiffness_parts
from acnn.surface.sparse_rows import Piece, SparseRows, join
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

TOLERANCE = 5e-4
"""Largest error of p_t on the whole spectrum; rows then differ by 0.001 to 0.003 in L1 on a human."""

REACH = 4.5
"""How far the surroundings of a cell reach beyond it, in standard deviations sqrt(2 t) of the largest scale."""

REACH_EDGES = 10.0
"""And at least this many mean edges, for coarse meshes."""

CELL = 96
"""Vertices in a cell, on average."""

MAX_RATIO = 8.0
"""Largest ratio of scales that are computed together; beyond it the degree would rise."""


class RationalKernels:
    """Kernels of one surface; what depends on the surface alone is prepared once.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud, in run units.
    frames : (m, 2, 3) array
        The direction of theta = 0 on every face first.
    """

    def __init__(self, surface: Surface, frames: FloatArray) -> None:

        self.parts = stiffness_parts(surface, frames)
        self.mass = surface.vertex_areas
        self.mean_edge = surface.mean_edge
        self.graph = distance_graph(surface)
        self.cells = partition(self.graph, CELL, np.linalg.norm(surface.vertices, axis=1))
        self.rank = _elimination_rank(self.parts.matrix(), self.mass)
        self.faces = np.ascontiguousarray(surface.faces)
        self.vertex_faces = (np.argsort(self.faces.ravel(), kind="stable") // 3).astype(np.int32)
        count = np.bincount(self.faces.ravel(), minlength=len(self.mass))
        self.vertex_faces_start = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)

    def rows(
        self,
        alpha: float,
        thetas: Sequence[float],
        times: Sequence[float],
        keep: float = 1.0,
        rows: IntArray | None = None,
        tolerance: float = TOLERANCE,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> SparseRows:
        """Rows of exp(-t L(alpha, theta)) for every theta and t.

        Parameters
        ----------
        alpha : float
            1 / conductivity across the long axis.
        thetas, times : Sequence[float]
            Angles of the long axis, and scales (the largest at most 8 times the smallest).
        keep : float
            Share of sum |row| to keep; 1 keeps all of a cell's surroundings.
        rows : (r,) array or None
            Vertices wanted, ascending; None is all.
        tolerance : float
            Largest error of the rational functions.
        threads : int or None
            None is one per core.
        progress : Progress or None
            Called with (jobs done, jobs in all).
        """
        from acnn.surface.rational_kernels import cell_rows

        tau, coefficients = fit_exponentials(tuple(float(t) for t in times), tolerance)
        reach = max(REACH * float(np.sqrt(2.0 * max(times))), REACH_EDGES * self.mean_edge)
        n = len(self.mass)
        chosen = np.arange(n) if rows is None else rows
        position = np.full(n, -1, dtype=np.int32)
        position[chosen] = np.arange(len(chosen))
        members, starts = self.cells
        cells = [members[a:b] for a, b in itertools.pairwise(starts)]
        cells = sorted((cell for cell in cells if (position[cell] >= 0).any()), key=len, reverse=True)
        entries = np.stack([self.parts.mix(alpha, theta) for theta in thetas])

        def run(cell: IntArray) -> Piece:
            distance = np.full(n, np.inf)
            local = surroundings(self.graph.indptr, self.graph.indices, self.graph.data, cell, reach, distance)
            local = local[np.argsort(self.rank[local])]
            targets = cell[position[cell] >= 0]
            triangles = (self.faces, self.vertex_faces_start, self.vertex_faces)
            found = cell_rows(
                targets, local, np.argsort(local), *triangles, entries, self.mass, tau, coefficients, keep
            )
            if found[1].flat[0] < 0:
                raise InputError(
                    "The heat system of this shape is not positive definite: it has triangles without area or with "
                    "coordinates that are not numbers. Mend it with 'acnn info SHAPE --repair OUT'."
                )
            return Piece(position[targets], *found)

        pieces = []
        pool = ThreadPoolExecutor(threads or os.cpu_count())
        try:
            # The largest cells come first, so that no core is left with one of them at the end.
            jobs = [pool.submit(run, cell) for cell in cells]
            for done, job in enumerate(as_completed(jobs), 1):
                pieces.append(job.result())
                if progress:
                    progress(done, len(jobs))
        finally:
            pool.shutdown(cancel_futures=True)
        return join(pieces, len(chosen))


def _elimination_rank(stiffness: sp.csr_array, mass: FloatArray) -> IntArray:
    """(n,) position of each vertex in a fill-reducing order (multiple minimum degree, from SuperLU).

    Restricting one order of the whole shape to a cell's surroundings creates no fill that the whole did not have.
    """
    system = sp.csc_array(stiffness + sp.diags_array(mass))
    return splu(
        system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    ).perm_c.astype(np.int32)


@lru_cache(maxsize=64)
def fit_exponentials(times: tuple[float, ...], tolerance: float = TOLERANCE) -> tuple[float, FloatArray]:
    """Pole and coefficients so that p_t(1 / (1 + tau x)) is exp(-t x) within `tolerance` for all x >= 0 and all t.

    p_t(1) = 1 (rows sum to 1) and p_t(0) = 0 hold exactly. The smallest degree that does is taken, and the tau that is
    best for it.

    Returns
    -------
    tuple[float, array]
        Tau, and (times, degree + 1) coefficients of the powers of z.
    """
    if min(times) <= 0 or max(times) > MAX_RATIO * 1.0001 * min(times):
        raise InputError(f"Scales {times} must be positive and span at most a factor of {MAX_RATIO:g}.")
    y = np.cos((np.arange(512) + 0.5) * np.pi / 512)
    z = 0.5 + 0.5 * y
    best = np.inf
    for degree in range(4, 25):
        basis = chebyshev.chebvander(y, degree - 2) * (z * (1.0 - z))[:, None]
        inverse = np.linalg.pinv(basis)
        for tau in np.geomspace(min(times) / 20, max(times) / 2, 60):
            target = np.exp(-np.outer(times, (1.0 / z - 1.0) / tau)) - z
            solution = target @ inverse.T
            worst = float(np.abs(solution @ basis.T - target).max())
            if worst < best:
                best, pole, inner, best_degree = worst, float(tau), solution, degree
        if best <= tolerance:
            break
    else:
        raise InputError(f"No rational function of degree 24 has an error below {tolerance} at scales {times}.")
    coefficients = np.zeros((len(times), best_degree + 1))
    for i, row in enumerate(inner):
        series = chebyshev.Chebyshev(row, domain=[0, 1])
        in_z = np.asarray(series.convert(kind=Polynomial, domain=[-1, 1], window=[-1, 1]).coef, dtype=float)
        coefficients[i, 1 : 1 + len(in_z)] += in_z  # z (1 - z) q(z) + z
        coefficients[i, 2 : 2 + len(in_z)] -= in_z
        coefficients[i, 1] += 1.0
    return pole, coefficients


def partition(graph: csr_array, size: int, eagerness: FloatArray) -> tuple[IntArray, IntArray]:
    """Cut a graph into cells of about `size` vertices around farthest points.

    Each vertex belongs to the nearest of the seeds; each new seed is the vertex farthest from all before it. What comes
    out depends on distances only, not on the order of vertices.

    Parameters
    ----------
    graph : (n, n) array
        Symmetric, positive lengths.
    size : int
        Vertices wanted per cell, on average.
    eagerness : (n,) array
        Of the vertices of a component without a seed, the one of largest value becomes its first.

    Returns
    -------
    tuple[array, array]
        The vertices sorted by cell (n,), and the start of each cell in that list (cells + 1,).
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
    ----------
    indptr, indices, lengths : array
        The graph.
    cell : (c,) array
        Vertices.
    reach : float
        Distance.
    distance : (n,) array
        A workspace, infinite everywhere before and after.
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
