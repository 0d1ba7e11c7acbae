"""Heat kernels formed as dense rows first: truncated spectra, and exact ones. Slow or inexact, for comparison."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.heat import exact_rows, spectral_rows
from acnn.surface.laplacian import stiffness_parts
from acnn.surface.rows import Piece, SparseRows, clip_dense, join
from acnn.surface.spectrum import eigenpairs
from acnn.surface.surface import Surface
from acnn.types import Progress

BLOCK = 512
"""Rows held densely at a time."""


class SpectralKernels:
    """Kernels from the first k eigenpairs of each angle, as in the paper: exact only for wide scales or all pairs.

    Parameters
    - surface: mesh or cloud, in run units
    - frames: (m, 2, 3) the direction of theta = 0 on every face first
    - pairs: how many eigenpairs
    """

    def __init__(self, surface: Surface, frames: FloatArray, pairs: int) -> None:
        self.parts = stiffness_parts(surface, frames)
        self.mass = surface.vertex_areas
        self.pairs = min(pairs, len(self.mass) - 1)

    def rows(
        self,
        alpha: float,
        thetas: Sequence[float],
        times: Sequence[float],
        keep: float = 1.0,
        rows: IntArray | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> SparseRows:
        """Rows of Phi exp(-t Lambda) Phi^T S for every theta and t; parameters as for `RationalKernels.rows`."""

        def angle(theta: float) -> Callable[[float, IntArray], FloatArray]:
            values, functions = eigenpairs(self.parts.matrix(alpha, theta), self.mass, self.pairs)
            return lambda t, some: spectral_rows(values, functions, self.mass, t, some)

        return _clipped(angle, thetas, times, keep, len(self.mass), rows, threads, progress)


class ExactKernels:
    """Kernels to about 1e-12, from fourteen sparse complex factorisations for every angle and scale.

    Parameters
    - surface: mesh or cloud, in run units
    - frames: (m, 2, 3) the direction of theta = 0 on every face first
    """

    def __init__(self, surface: Surface, frames: FloatArray) -> None:
        self.parts = stiffness_parts(surface, frames)
        self.mass = surface.vertex_areas

    def rows(
        self,
        alpha: float,
        thetas: Sequence[float],
        times: Sequence[float],
        keep: float = 1.0,
        rows: IntArray | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> SparseRows:
        """Rows of exp(-t L) for every theta and t; parameters as for `RationalKernels.rows`."""

        def angle(theta: float) -> Callable[[float, IntArray], FloatArray]:
            matrix = self.parts.matrix(alpha, theta)
            return lambda t, some: exact_rows(matrix, self.mass, t, some)

        return _clipped(angle, thetas, times, keep, len(self.mass), rows, threads, progress)


def _clipped(
    angle: Callable[[float], Callable[[float, IntArray], FloatArray]],
    thetas: Sequence[float],
    times: Sequence[float],
    keep: float,
    n: int,
    rows: IntArray | None,
    threads: int | None,
    progress: Progress | None,
) -> SparseRows:
    """Form dense rows block by block, one angle per thread, and clip them."""
    chosen = np.arange(n) if rows is None else rows
    blocks = [np.arange(i, min(i + BLOCK, len(chosen))) for i in range(0, len(chosen), BLOCK)]
    done = [0]

    def run(theta: float) -> list[Piece]:
        dense = angle(theta)
        pieces = []
        for block in blocks:
            found = [clip_dense(np.ascontiguousarray(dense(t, chosen[block])), keep) for t in times]
            begins, counts, totals, vertices, values = zip(*found, strict=True)
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
        joined = [join(pieces, len(chosen)) for pieces in pool.map(run, thetas)]
    starts = np.cumsum([0] + [part.start[-1] for part in joined])
    return SparseRows(
        np.concatenate([part.start[:-1] + s for part, s in zip(joined, starts, strict=False)] + [starts[-1:]]),
        np.concatenate([part.vertices for part in joined]),
        np.concatenate([part.values for part in joined]),
        np.concatenate([part.mass_kept for part in joined]),
    )
