"""Heat kernels by sparse scaling and squaring: a short Taylor step, then H(2h) = H(h)^2 with small entries dropped.

What is dropped from a row is added to its diagonal entry, so that rows still sum to 1. Every later squaring doubles an
error, so the threshold is halved for each of them. Simple and fast, but about ten times less accurate than the rational
kernels in the same time; kept for comparison.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp

from acnn.compilation import compiled
from acnn.errors import InputError
from acnn.progress import Progress
from acnn.surface.heat import HeatKernels
from acnn.surface.sparse_rows import Piece, SparseRows, clipping_workspace, join, smallest_of_rows
from acnn.types import FloatArray, IntArray

TOLERANCE = 1e-3
"""Entries below this are dropped at the last squaring."""

_TAYLOR = 3
"""Degree of the Taylor polynomial of the first step."""


class SquaringKernels(HeatKernels):
    """Heat kernels of one surface by scaling and squaring."""

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
        alpha, thetas, times, keep, rows, threads, progress
            As for `HeatKernels.rows`.

        Returns
        -------
        SparseRows

        Raises
        ------
        InputError
            Where a scale is not the smallest one times a power of two.
        """
        ratios = np.log2(np.asarray(times) / min(times))
        if not np.allclose(ratios, np.round(ratios), atol=1e-9):
            raise InputError(
                f"Scales {', '.join(f'{t:g}' for t in times)}: squaring needs each to be the smallest times a power of "
                "two, such as 3,6,12,24. Use '--kernel rational' for others."
            )
        n = len(self.mass)
        targets = np.arange(n) if rows is None else rows
        pieces: list[Piece] = []
        counts = np.zeros((len(thetas), len(times), len(targets)), dtype=np.int32)
        begins, totals = np.zeros(counts.shape, dtype=np.int64), np.zeros(counts.shape)
        vertices, values, used = [], [], 0
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            for a, theta in enumerate(thetas):
                step, squarings = self._short_step(alpha, theta, min(times), round(ratios.max()))
                for doubling in range(squarings, -1, -1):
                    for s in np.flatnonzero(np.round(ratios.max() - ratios).astype(int) == doubling):
                        begin, count, total, at, value = _clip_rows(step, targets, keep)
                        begins[a, s], counts[a, s], totals[a, s] = begin + used, count, total
                        vertices.append(at)
                        values.append(value)
                        used += len(at)
                    if doubling:
                        step = _square(step, TOLERANCE / 2.0 ** (doubling - 1), pool)
                if progress:
                    progress(a + 1, len(thetas))
        pieces.append(
            Piece(np.arange(len(targets)), begins, counts, totals, np.concatenate(vertices), np.concatenate(values))
        )
        return join(pieces, len(targets))

    def _short_step(self, alpha: float, theta: float, t: float, doublings: int) -> tuple[sp.csr_array, int]:
        """Taylor polynomial of exp(-h L) with h |L| <= 1, and the number of squarings from it to the largest scale."""
        laplacian = sp.csr_array(sp.diags_array(1.0 / self.mass) @ self.parts.matrix(alpha, theta))
        norm = float(abs(laplacian).sum(axis=1).max())
        halvings = max(0, int(np.ceil(np.log2(max(t * norm, 1e-300)))))
        step = (-t / 2.0**halvings) * laplacian
        total = sp.csr_array(sp.eye_array(len(self.mass)))
        for order in range(_TAYLOR, 0, -1):
            total = sp.csr_array(sp.eye_array(len(self.mass)) + (step @ total) / order)
        total.indices, total.indptr = total.indices.astype(np.int32), total.indptr.astype(np.int64)
        return total, halvings + doublings


def _square(matrix: sp.csr_array, threshold: float, pool: ThreadPoolExecutor) -> sp.csr_array:
    """matrix @ matrix, entries below the threshold moved to the diagonal."""
    n = matrix.shape[0]
    edges = np.linspace(0, n, max(2, min(n, 16))).astype(np.int64)
    jobs = [
        pool.submit(_square_rows, matrix.indptr, matrix.indices, matrix.data, int(a), int(b), threshold)
        for a, b in itertools.pairwise(edges)
    ]
    counts, indices, data = zip(*(job.result() for job in jobs), strict=True)
    start = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
    squared = sp.csr_array((n, n))
    squared.data, squared.indices, squared.indptr = np.concatenate(data), np.concatenate(indices), start
    return squared


@compiled(nogil=True)
def _square_rows(
    start: IntArray, index: IntArray, value: FloatArray, first: int, last: int, threshold: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows first to last - 1 of the square of a sparse matrix: their lengths, columns and values."""
    n = len(start) - 1
    total, seen, touched = np.zeros(n), np.full(n, -1, np.int64), np.empty(n, np.int32)
    counts = np.zeros(last - first, np.int64)
    capacity = 64 * (last - first) + n
    indices, data = np.empty(capacity, np.int32), np.empty(capacity)
    used = 0
    for i in range(first, last):
        many = 0
        for k in range(start[i], start[i + 1]):
            j, factor = index[k], value[k]
            for q in range(start[j], start[j + 1]):
                c = index[q]
                if seen[c] != i:
                    seen[c] = i
                    total[c] = 0.0
                    touched[many] = c
                    many += 1
                total[c] += factor * value[q]
        if used + many > capacity:
            capacity = 2 * capacity + many
            longer_indices, longer_data = np.empty(capacity, np.int32), np.empty(capacity)
            for k in range(used):
                longer_indices[k], longer_data[k] = indices[k], data[k]
            indices, data = longer_indices, longer_data
        begin, dropped, diagonal = used, 0.0, -1
        for k in range(many):
            c = touched[k]
            if c != i and abs(total[c]) < threshold:
                dropped += total[c]
                continue
            if c == i:
                diagonal = used
            indices[used], data[used] = c, total[c]
            used += 1
        data[diagonal] += dropped
        counts[i - first] = used - begin
    return counts, indices[:used].copy(), data[:used].copy()


def _clip_rows(
    matrix: sp.csr_array, rows: IntArray, keep: float
) -> tuple[IntArray, IntArray, FloatArray, IntArray, FloatArray]:
    """The fewest largest entries of given rows that hold a fraction `keep` of sum |row|, sorted by column."""
    chosen = matrix[rows]
    chosen.sort_indices()
    size, starts, lengths = np.abs(chosen.data), chosen.indptr.astype(np.int64), np.diff(chosen.indptr)
    totals = np.add.reduceat(size, starts[:-1])  # no row is empty
    least = np.zeros(len(rows))
    if keep < 1.0:
        smallest_of_rows(size, starts, keep * totals, *clipping_workspace(int(lengths.max())), least)
    kept = size >= np.repeat(least, lengths)
    counts = np.add.reduceat(kept, starts[:-1], dtype=np.int32)
    begins = np.concatenate([[0], np.cumsum(counts[:-1], dtype=np.int64)])
    return begins, counts, totals, chosen.indices[kept].astype(np.int32), chosen.data[kept].astype(np.float32)
