"""Heat kernels by a local rational approximation of bounded error, without eigenvectors, at a cost linear in n.

With one repeated real pole, z = (1 + tau L)^-1, every exp(-t L) is close to a polynomial p_t(z): the same few sparse
solves serve all scales. Kernels are local: the surface is partitioned into cells of about a hundred vertices, and the
rows of a cell are computed on its neighbourhood alone, where the sparse factor is small and fits the processor's cache.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from numpy.polynomial import Polynomial, chebyshev
from scipy.sparse.linalg import splu

from acnn.errors import InputError
from acnn.progress import Progress
from acnn.surface.geodesics import distance_graph
from acnn.surface.heat import HeatKernels
from acnn.surface.heat_local import LocalSystem, Neighbourhoods, Triangles, Workspace, partition
from acnn.surface.sparse_rows import Piece, SparseRows, join
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

TOLERANCE = 1.2e-3
"""Largest error of p_t on the whole spectrum; rows then have L1 errors of 0.002 to 0.006 on a human. The degree is 7 at
four scales each twice the one before, 6 at two or one; 5e-4 would take 8 and 7."""

REACH = 3.3
"""Radius of the neighbourhood of a cell, in standard deviations sqrt(2 t) of the largest scale: a Gaussian has mass
1e-3 (in one dimension) or 4e-3 (in two) beyond it. On FAUST, L1 errors are the same as with 3.7 and 4.5."""

REACH_EDGES = 10.0
"""Least radius of the neighbourhood of a cell in mean edge lengths, for coarse meshes."""

CELL = 96
"""Mean number of vertices of a cell: three tiles of right-hand sides (`heat_rational_kernels.TILE`)."""

ONE_ORDER = 100_000
"""Vertices up to which one elimination order serves all cells. It takes a factorisation of the full shape, whose cost
grows faster than n; beyond, each cell has an order of its own."""

MAX_RATIO = 8.0
"""Largest ratio of scales that are computed together; larger ratios need a higher degree."""


class RationalKernels(HeatKernels):
    """Heat kernels of one surface; what depends on the surface alone is computed once."""

    def __init__(self, surface: Surface, frames: FloatArray) -> None:
        super().__init__(surface, frames)
        self.mean_edge = surface.mean_edge
        self.graph = distance_graph(surface)
        self.cells = partition(self.graph, CELL, np.linalg.norm(surface.vertices, axis=1))
        self.stiffness = self.parts.matrix()
        self.rank = _elimination_rank(self.stiffness, self.mass) if len(self.mass) <= ONE_ORDER else None
        self.triangles = Triangles.of(surface.faces, len(self.mass))

    def rows(
        self,
        alpha: float,
        thetas: Sequence[float],
        times: Sequence[float],
        keep: float = 1.0,
        rows: IntArray | None = None,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> SparseRows:
        """Rows of exp(-t L(alpha, theta)) for every theta and t.

        Parameters
        ----------
        alpha, thetas, keep, rows, threads, progress
            As for `HeatKernels.rows`; `keep` = 1 stores all entries of a cell's neighbourhood.
        times : Sequence[float]
            Scales t, the largest at most 8 times the smallest.

        Returns
        -------
        SparseRows

        Raises
        ------
        InputError
            Where the scales are too far apart, or the heat system is not positive definite.
        """
        tau, coefficients = fit_exponentials(tuple(float(t) for t in times), TOLERANCE)
        reach = max(REACH * float(np.sqrt(2.0 * max(times))), REACH_EDGES * self.mean_edge)
        n = len(self.mass)
        targets = np.arange(n) if rows is None else rows
        position = np.full(n, -1, dtype=np.int32)
        position[targets] = np.arange(len(targets))
        members, starts = self.cells
        cells = [members[a:b] for a, b in itertools.pairwise(starts)]
        cells = sorted((cell for cell in cells if (position[cell] >= 0).any()), key=len, reverse=True)
        entries = np.stack([self.parts.mix(alpha, theta) for theta in thetas])
        nodes = leja_points(coefficients.shape[1] - 1)
        polynomials = newton_coefficients(coefficients, nodes)
        of_thread = threading.local()

        def run(cell: IntArray) -> Piece:
            if not hasattr(of_thread, "workspace"):
                of_thread.neighbourhoods, of_thread.workspace = Neighbourhoods(self.graph), Workspace(n)
            local = of_thread.neighbourhoods.within(cell, reach)
            if self.rank is None:
                local = np.sort(local)
                rank = _elimination_rank(self.stiffness[local][:, local], self.mass[local])
            else:
                rank = self.rank[local]
            local = local[np.argsort(rank)]
            system = LocalSystem(self.mass, self.triangles, local, of_thread.workspace)
            cell_targets = cell[position[cell] >= 0]
            computed = system.kernel_rows(cell_targets, entries, tau, nodes, polynomials, keep)
            return Piece(position[cell_targets], *computed)

        pieces = []
        pool = ThreadPoolExecutor(threads or os.cpu_count())
        try:
            # The largest cells come first, so that all cores finish at about the same time.
            jobs = [pool.submit(run, cell) for cell in cells]
            for done, job in enumerate(as_completed(jobs), 1):
                pieces.append(job.result())
                if progress:
                    progress(done, len(jobs))
        finally:
            pool.shutdown(cancel_futures=True)
        del job, jobs  # they hold the pieces, which are freed one by one while they are joined
        return join(pieces, len(targets))


@lru_cache(maxsize=64)
def leja_points(count: int) -> FloatArray:
    """Points of [0, 1] in an order for which products of (z - point) stay small: 1, 0, 1/2, ...

    Each next point maximises the product of the distances from the previous ones.
    """
    candidates = np.linspace(0.0, 1.0, 2001)
    points = np.ones(count)
    product = np.abs(candidates - 1.0)
    for k in range(1, count):
        points[k] = candidates[np.argmax(product)]
        product *= 4.0 * np.abs(candidates - points[k])
    return points


def newton_coefficients(coefficients: FloatArray, nodes: FloatArray) -> FloatArray:
    """Coefficients of polynomials in the products of 4 (z - node), instead of the powers of z.

    Powers of z have large coefficients of both signs, whose cancellation would multiply rounding errors by hundreds.

    Parameters
    ----------
    coefficients : (polynomials, degree + 1) array
        Of the powers of z.
    nodes : (degree,) array

    Returns
    -------
    (polynomials, degree + 1) array
    """
    rest = coefficients.copy()
    degree = len(nodes)
    for k in range(degree):  # division by z - nodes[k]: the remainder stays at k, the quotient after it
        for power in range(degree - 1, k - 1, -1):
            rest[:, power] += nodes[k] * rest[:, power + 1]
    return rest / 4.0 ** np.arange(degree + 1)


def _elimination_rank(stiffness: sp.csr_array, mass: FloatArray) -> IntArray:
    """(n,) position of each vertex in a fill-reducing order (multiple minimum degree, from SuperLU).

    Restricting one order of the full shape to a cell's neighbourhood creates no fill that the full shape does not have.
    """
    system = sp.csc_array(stiffness + sp.diags_array(mass))
    return splu(
        system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    ).perm_c.astype(np.int32)


@lru_cache(maxsize=64)
def fit_exponentials(times: tuple[float, ...], tolerance: float = TOLERANCE) -> tuple[float, FloatArray]:
    """Pole and coefficients such that |p_t(1 / (1 + tau x)) - exp(-t x)| <= tolerance for all x >= 0 and all t.

    p_t(1) = 1 (rows sum to 1) and p_t(0) = 0 hold exactly. The degree is the smallest that reaches the tolerance, with
    the tau of the smallest error.

    Parameters
    ----------
    times : tuple[float, ...]
        Scales t.
    tolerance : float
        Largest error.

    Returns
    -------
    tau : float
        The pole is at x = -1 / tau.
    coefficients : (times, degree + 1) array
        Of the powers of z = 1 / (1 + tau x).

    Raises
    ------
    InputError
        Where the times are not positive, too far apart, or degree 24 is not enough.
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
