"""Heat kernels: what all methods share, and kernels to machine precision and from eigenpairs, the reference for them.

A row of the heat operator holds the weights of all vertices in the average around one of them,

    H(t) = exp(-t S^-1 W),      (H f)(x_i) = sum_j H_ij f(x_j) = sum_j h_t(x_i, x_j) s_j f(x_j),

the area element s_j included, so that rows sum to 1 without normalisation.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from acnn.progress import Progress
from acnn.surface.laplacian import stiffness_parts
from acnn.surface.sparse_rows import Piece, SparseRows, clip_dense, join
from acnn.surface.spectra import eigenpairs
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

_NODES = 28
"""Nodes of the contour integral: 3.89^-28 is 3e-17, below the rounding of float64."""

BLOCK = 512
"""Number of rows that are dense in memory at a time."""


def exact_rows(stiffness: sp.csr_array, mass: FloatArray, t: float, rows: IntArray) -> FloatArray:
    """Rows of H(t) = exp(-t S^-1 W), to about 1e-12.

    The exponential is a Cauchy integral, exp(-tL) = 1/(2 pi i) int e^z (z + tL)^-1 dz, along a cotangent contour around
    the negative axis (Talbot's, with the coefficients of Weideman, SIAM J. Numer. Anal. 44, 2006, where the error of
    the trapezoidal rule with N nodes falls like 3.89^-N). It takes one sparse complex factorisation for each of
    N / 2 = 14 nodes, whatever the spectrum.

    Parameters
    ----------
    stiffness : (n, n) sparse array
        W, symmetric positive semidefinite.
    mass : (n,) array
        The diagonal of S, positive.
    t : float
        Time.
    rows : (r,) array
        Vertices.

    Returns
    -------
    (r, n) array

    Examples
    --------
    >>> import acnn, numpy as np
    >>> from acnn.surface import exact_rows, stiffness
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> rows = exact_rows(stiffness(surface), surface.vertex_areas, 24.0, np.array([0, 7]))
    >>> bool(np.allclose(rows.sum(axis=1), 1.0))
    True
    """
    unit = np.zeros((len(mass), len(rows)), dtype=complex)
    unit[rows, np.arange(len(rows))] = 1.0
    total = np.zeros((len(mass), len(rows)))
    weighted = sp.csc_array(t * stiffness).astype(complex)
    angles = (2 * np.arange(_NODES // 2) + 1) * np.pi / _NODES  # the lower half follows by conjugation
    for angle in angles:
        cot = 1.0 / np.tan(0.6407 * angle)
        z = _NODES * (0.5017 * angle * cot - 0.6122 + 0.2645j * angle)
        dz = _NODES * (0.5017 * cot - 0.5017 * 0.6407 * angle * (1.0 + cot**2) + 0.2645j)
        factor = splu(
            (weighted + sp.diags_array(z * mass)).tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        total += np.imag(np.exp(z) * dz * factor.solve(unit)) * (2.0 / _NODES)
    return (mass[:, None] * total).T


def spectral_rows(
    eigenvalues: FloatArray, eigenfunctions: FloatArray, mass: FloatArray, t: float, rows: IntArray
) -> FloatArray:
    """Rows of Phi exp(-t Lambda) Phi^T S, accurate only where exp(-t lambda) is negligible at the last eigenpair.

    Parameters
    ----------
    eigenvalues : (k,) array
    eigenfunctions : (n, k) array
        Orthonormal with respect to the mass.
    mass : (n,) array
        The diagonal of S.
    t : float
        Time.
    rows : (r,) array
        Vertices.

    Returns
    -------
    (r, n) array

    Examples
    --------
    >>> import acnn, numpy as np
    >>> from acnn.surface import eigenpairs, spectral_rows, stiffness
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> pairs = eigenpairs(stiffness(surface), surface.vertex_areas, 50)
    >>> spectral_rows(*pairs, surface.vertex_areas, 400.0, np.array([0, 7])).shape
    (2, 2500)
    """
    return (eigenfunctions[rows] * np.exp(-t * eigenvalues)) @ (eigenfunctions.T * mass)


class HeatKernels(ABC):
    """A method to compute the heat kernels of one surface.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud, in normalised units.
    frames : (m, 2, 3) array
        Orthonormal frame of every face, the direction of theta = 0 first.
    """

    def __init__(self, surface: Surface, frames: FloatArray) -> None:
        self.parts = stiffness_parts(surface, frames)
        self.mass = surface.vertex_areas

    @abstractmethod
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
        """Rows of exp(-t L(alpha, theta)) for every theta and t, ordered by angle, then scale, then vertex.

        Parameters
        ----------
        alpha : float
            Conductivity along the long axis over that across it.
        thetas : Sequence[float]
            Angles of the long axis from v_M, in radians.
        times : Sequence[float]
            Scales t.
        keep : float
            Least fraction of sum |row| that the stored entries hold; 1 stores all that were computed.
        rows : (r,) array or None
            Vertices whose rows are computed, ascending; None is all.
        threads : int or None
            None is one per core.
        progress : Progress or None
            Called with (done, total).

        Returns
        -------
        SparseRows

        Raises
        ------
        InputError
            Where the method cannot compute these scales together.
        """


DenseRows = Callable[[float, IntArray], FloatArray]
"""(r, n) rows of the kernel of a scale t at r vertices."""


class DenseKernels(HeatKernels):
    """Heat kernels whose rows are computed at all vertices, and then clipped."""

    @abstractmethod
    def dense_rows(self, alpha: float, theta: float) -> DenseRows:
        """Rows of the kernels of one angle."""

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
        """Rows of the kernels, computed block by block, one angle per thread.

        Parameters
        ----------
        alpha, thetas, times, keep, rows, threads, progress
            As for `HeatKernels.rows`.

        Returns
        -------
        SparseRows
        """
        targets = np.arange(len(self.mass)) if rows is None else rows
        blocks = [np.arange(i, min(i + BLOCK, len(targets))) for i in range(0, len(targets), BLOCK)]
        done = [0]

        def run(theta: float) -> list[Piece]:
            dense = self.dense_rows(alpha, theta)
            pieces = []
            for block in blocks:
                clipped = [clip_dense(np.ascontiguousarray(dense(t, targets[block])), keep) for t in times]
                begins, counts, totals, vertices, values = zip(*clipped, strict=True)
                shift = np.concatenate([[0], np.cumsum([len(v) for v in vertices])[:-1]])[:, None]
                pieces.append(
                    Piece(
                        block,
                        (np.stack(begins) + shift)[None],
                        np.stack(counts)[None],
                        np.stack(totals)[None],
                        np.concatenate(vertices),
                        np.concatenate(values),
                    )
                )
                done[0] += 1
                if progress:
                    progress(done[0], len(blocks) * len(thetas))
            return pieces

        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            joined = [join(pieces, len(targets)) for pieces in pool.map(run, thetas)]
        starts = np.cumsum([0] + [part.start[-1] for part in joined])
        return SparseRows(
            np.concatenate([part.start[:-1] + s for part, s in zip(joined, starts, strict=False)] + [starts[-1:]]),
            np.concatenate([part.vertices for part in joined]),
            np.concatenate([part.values for part in joined]),
            np.concatenate([part.mass_kept for part in joined]),
        )


class SpectralKernels(DenseKernels):
    """Heat kernels from the first k eigenpairs of each angle, as in the paper: accurate only for wide scales.

    Parameters
    ----------
    surface, frames
        As for `HeatKernels`.
    pairs : int
        Number k of eigenpairs.
    """

    def __init__(self, surface: Surface, frames: FloatArray, pairs: int) -> None:
        super().__init__(surface, frames)
        self.pairs = min(pairs, len(self.mass) - 1)

    def dense_rows(self, alpha: float, theta: float) -> DenseRows:
        """Rows of Phi exp(-t Lambda) Phi^T S."""
        values, functions = eigenpairs(self.parts.matrix(alpha, theta), self.mass, self.pairs)
        return lambda t, block: spectral_rows(values, functions, self.mass, t, block)


class ExactKernels(DenseKernels):
    """Heat kernels to about 1e-12, from 14 sparse complex factorisations for every angle and scale."""

    def dense_rows(self, alpha: float, theta: float) -> DenseRows:
        """Rows of exp(-t L), see `exact_rows`."""
        matrix = self.parts.matrix(alpha, theta)
        return lambda t, block: exact_rows(matrix, self.mass, t, block)
