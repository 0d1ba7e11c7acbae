"""Heat kernels by a localised rational approximation: exact to a stated error, no eigenvectors, cost linear in n.

With one repeated real pole, z = (1 + tau L)^-1, every exp(-t L) is nearly a polynomial p_t(z): the same few sparse
solves serve all scales at once. And a kernel is local: the rows of a cell of some hundred vertices are computed on
the cell's surroundings alone, where a sparse factor is small and stays in the processor's cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from numpy.polynomial import chebyshev
from scipy.sparse.linalg import splu

from acnn.errors import InputError
from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.geodesics import distance_graph
from acnn.surface.laplacian import StiffnessParts
from acnn.surface.surface import Surface

TOLERANCE = 5e-4
"""Largest error of p_t on the whole spectrum; rows then differ by 0.001 to 0.003 in L1 on a human."""

REACH = 4.0
"""How far the surroundings of a cell reach beyond it, in standard deviations sqrt(2 t) of the largest scale."""

CELL = 96
MAX_RATIO = 8.0

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Kernel rows in one compressed list, ordered by angle, then scale, then vertex.

    - start: (angles * scales * rows + 1,) int64
    - vertices: (entries,) int32, ascending within a row
    - values: (entries,) float32
    """

    start: IntArray
    vertices: IntArray
    values: FloatArray


class RationalKernels:
    """Kernels of one surface; what depends on the surface alone is prepared once.

    Parameters
    - surface: mesh or cloud, in run units
    - parts: its stiffness parts
    """

    def __init__(self, surface: Surface, parts: StiffnessParts) -> None:
        from acnn.surface.cells import partition

        self.parts = parts
        self.mass = surface.vertex_areas
        self.graph = distance_graph(surface)
        self.cells = partition(self.graph, CELL)
        n = len(self.mass)
        self.rank = _elimination_rank(parts.matrix(), self.mass)
        self.faces = np.ascontiguousarray(parts.faces)
        order = np.argsort(self.faces.ravel(), kind="stable")
        self.vertex_faces = (order // 3).astype(np.int32)
        count = np.bincount(self.faces.ravel(), minlength=n)
        self.vertex_faces_start = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)

    def rows(
        self,
        alpha: float,
        thetas: Sequence[float],
        times: Sequence[float],
        keep: float = 1.0,
        rows: IntArray | None = None,
        tolerance: float = TOLERANCE,
        reach: float = REACH,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> SparseRows:
        """Rows of exp(-t L(alpha, theta)) for every theta and t.

        Parameters
        - alpha: 1 / conductivity across the long axis
        - thetas, times: angles of the long axis, and scales (the largest at most 8 times the smallest)
        - keep: share of sum |row| to keep; 1 keeps all of a cell's surroundings
        - rows: (r,) vertices wanted, ascending; None is all
        - tolerance: largest error of the rational functions
        - reach: of the surroundings, in standard deviations of the largest kernel
        - threads: None is one per core
        - progress: called with (cells done, cells in all)
        """
        from acnn.surface.cells import surroundings
        from acnn.surface.localized import cell_rows

        tau, coefficients = fit_exponentials(tuple(float(t) for t in times), tolerance)
        entries = np.stack([self.parts.mix(alpha, theta) for theta in thetas])
        beyond = reach * float(np.sqrt(2.0 * max(times)))
        n = len(self.mass)
        wanted = np.zeros(n, dtype=bool)
        wanted[slice(None) if rows is None else rows] = True
        members, starts = self.cells
        cells = [members[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]
        jobs = [(cell, cell[wanted[cell]]) for cell in cells]
        jobs = sorted((job for job in jobs if len(job[1])), key=lambda job: -len(job[1]))

        def run(job: tuple[IntArray, IntArray]) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
            cell, targets = job
            distance = np.full(n, np.inf)
            local = surroundings(self.graph.indptr, self.graph.indices, self.graph.data, cell, beyond, distance)
            local = local[np.argsort(self.rank[local])]
            found = cell_rows(
                targets,
                local,
                self.faces,
                self.vertex_faces_start,
                self.vertex_faces,
                entries,
                self.mass,
                tau,
                coefficients,
                keep,
            )
            return targets, *found

        pieces = []
        pool = ThreadPoolExecutor(threads or os.cpu_count())
        try:
            for done, future in enumerate(as_completed([pool.submit(run, job) for job in jobs]), 1):
                pieces.append(future.result())
                if progress:
                    progress(done, len(jobs))
        finally:
            pool.shutdown(cancel_futures=True)
        if any(counts.min(initial=0) < 0 for _, counts, _, _ in pieces):
            raise InputError(
                "The heat system of this shape is not positive definite: it has triangles without area or with "
                "coordinates that are not numbers. Mend it with 'acnn info SHAPE --repair OUT'."
            )
        return _joined(pieces, np.flatnonzero(wanted), len(thetas), len(times))


def _joined(
    pieces: list[tuple[IntArray, IntArray, IntArray, FloatArray]], rows: IntArray, angles: int, scales: int
) -> SparseRows:
    """Put the cells' rows in order: angle, scale, vertex."""
    from acnn.surface.rows import copy_rows

    position = np.full(int(rows.max(initial=0)) + 1, -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    lengths = np.zeros((angles, scales, len(rows)), dtype=np.int64)
    for targets, counts, _, _ in pieces:
        lengths[:, :, position[targets]] = counts
    start = np.concatenate([[0], np.cumsum(lengths.ravel())])
    vertices = np.empty(start[-1], dtype=np.int32)
    values = np.empty(start[-1], dtype=np.float32)
    begins = start[:-1].reshape(lengths.shape)
    while pieces:
        targets, counts, at, value = pieces.pop()
        copy_rows(begins[:, :, position[targets]].ravel(), counts.ravel(), at, value, vertices, values)
    return SparseRows(start, vertices, values)


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

    Returns tau, and (times, degree + 1) coefficients in Chebyshev polynomials of 2z - 1.
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
    # z (1 - z) = (1 - y^2) / 4 = (T_0 - T_2) / 8, and the straight part z = (T_0 + T_1) / 2
    coefficients = np.zeros((len(times), best_degree + 1))
    for i, row in enumerate(inner):
        product = chebyshev.chebmul(row, [0.125, 0.0, -0.125])
        coefficients[i, : len(product)] = product
    coefficients[:, :2] += 0.5
    return pole, coefficients
