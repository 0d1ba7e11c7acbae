"""`SparseRows`, kernel rows in compressed form: clipping, truncation to the largest entries, rounding to float16."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Kernel rows, ordered by angle, then scale, then vertex.

    Attributes
    ----------
    start : (angles * scales * rows + 1,) int64 array
        Start of each row in the lists below.
    vertices : (entries,) int32 array
        Ascending within a row.
    values : (entries,) float32 array
    mass_kept : (angles, scales) array
        Mean over rows of sum |stored entries| / sum |all entries|.
    """

    start: NDArray[np.int64]
    vertices: IntArray
    values: NDArray[np.float32]
    mass_kept: FloatArray

    def dense(self, n: int, first: int, count: int) -> FloatArray:
        """Rows first, first + 1, ... as a dense array.

        Parameters
        ----------
        n : int
            Number of vertices.
        first, count : int
            The first row, and the number of rows.

        Returns
        -------
        (count, n) array
        """
        rows = np.zeros((count, n))
        begin, end = self.start[first], self.start[first + count]
        lengths = np.diff(self.start[first : first + count + 1])
        rows[np.repeat(np.arange(count), lengths), self.vertices[begin:end]] = self.values[begin:end]
        return rows


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of the vertices of one job.

    Attributes
    ----------
    targets : (r,) array
        Positions of the rows among all rows computed.
    begins, counts : (angles, scales, r) array
        Start of each row in the lists below, and its length.
    totals : (angles, scales, r) array
        Sum |row| before clipping.
    vertices, values : (entries,) array
    """

    targets: IntArray
    begins: IntArray
    counts: IntArray
    totals: FloatArray
    vertices: IntArray
    values: FloatArray


def join(pieces: list[Piece], rows: int) -> SparseRows:
    """Join the rows of all jobs, ordered by angle, then scale, then row.

    Parameters
    ----------
    pieces : list[Piece]
        Together they hold every row once. The list is emptied, so that memory is freed along the way.
    rows : int
        Number of rows of each angle and scale.

    Returns
    -------
    SparseRows
    """
    angles, scales = pieces[0].counts.shape[:2]
    lengths = np.zeros((angles, scales, rows), dtype=np.int64)
    mass_kept = np.zeros((angles, scales))
    for piece in pieces:
        lengths[:, :, piece.targets] = piece.counts
    start = np.concatenate([[0], np.cumsum(lengths.ravel())])
    vertices, values = np.empty(start[-1], dtype=np.int32), np.empty(start[-1], dtype=np.float32)
    writes = start[:-1].reshape(lengths.shape)
    while pieces:
        piece = pieces.pop()
        stored = np.empty(piece.counts.size)
        _copy_rows(
            piece.begins.ravel(),
            writes[:, :, piece.targets].ravel(),
            piece.counts.ravel(),
            piece.vertices,
            piece.values,
            vertices,
            values,
            stored,
        )
        mass_kept += (stored.reshape(piece.totals.shape) / np.maximum(piece.totals, 1e-300)).sum(axis=2)
    return SparseRows(start, vertices, values, mass_kept / rows)


@compiled(nogil=True)
def _copy_rows(
    reads: IntArray,
    writes: IntArray,
    counts: IntArray,
    at: IntArray,
    value: FloatArray,
    vertices: IntArray,
    values: FloatArray,
    sums: FloatArray,
) -> None:
    """Copy rows from positions `reads` to positions `writes`, and add up sum |row| of each."""
    for row in range(len(counts)):
        read, write, total = reads[row], writes[row], 0.0
        for k in range(counts[row]):
            vertices[write + k] = at[read + k]
            values[write + k] = value[read + k]
            total += abs(value[read + k])
        sums[row] = total


def clip_dense(block: FloatArray, keep: float) -> tuple[IntArray, IntArray, FloatArray, IntArray, FloatArray]:
    """The fewest largest entries of each row of a dense block that hold a fraction `keep` of sum |row|.

    Parameters
    ----------
    block : (r, n) array
    keep : float

    Returns
    -------
    begins, counts : (r,) array
        Start of each row in the lists below, and its length.
    totals : (r,) array
        Sum |row| of the dense rows.
    vertices, values : (entries,) array
    """
    size = np.abs(block)
    totals = size.sum(axis=1)
    least = np.full(len(block), -1.0)
    if keep < 1.0:
        starts = block.shape[1] * np.arange(len(block) + 1)
        smallest_of_rows(size.ravel(), starts, keep * totals, *clipping_workspace(block.shape[1]), least)
    kept = size >= least[:, None]
    counts = kept.sum(axis=1, dtype=np.int32)
    begins = np.concatenate([[0], np.cumsum(counts[:-1], dtype=np.int64)])
    return begins, counts, totals, np.nonzero(kept)[1].astype(np.int32), block[kept].astype(np.float32)


def clipping_workspace(longest: int) -> tuple[FloatArray, FloatArray]:
    """Workspaces of `smallest_kept` for rows of at most `longest` entries: `histogram` and `inner`."""
    return np.zeros(_BINS), np.zeros(longest)


@compiled(nogil=True)
def smallest_of_rows(
    sizes: FloatArray,
    starts: IntArray,
    enough: FloatArray,
    histogram: FloatArray,
    inner: FloatArray,
    smallest: FloatArray,
) -> None:
    """`smallest_kept` of every row; row r is sizes[starts[r]] to sizes[starts[r + 1] - 1]."""
    for r in range(len(smallest)):
        smallest[r] = smallest_kept(sizes, starts[r], starts[r + 1] - starts[r], enough[r], histogram, inner)


_BINS = 2048
"""Bins of a histogram of magnitudes: exponent and three bits of the mantissa of a number in single precision."""


@compiled(nogil=True)
def smallest_kept(
    sizes: FloatArray, begin: int, count: int, enough: float, histogram: FloatArray, inner: FloatArray
) -> float:
    """Magnitude of the smallest entry among the fewest largest ones whose magnitudes sum to `enough`.

    Only the bin of a histogram in which the sum is reached has to be sorted.

    Parameters
    ----------
    sizes : array
    begin, count : int
        The entries: sizes[begin] to sizes[begin + count - 1].
    enough : float
    histogram : (2048,) array
        Workspace, zero before and after.
    inner : (count,) array
        Workspace.

    Returns
    -------
    float
    """
    for k in range(begin, begin + count):
        size = abs(sizes[k])
        histogram[_bin(size)] += size
    held, last = 0.0, _BINS
    while held < enough and last > 0:
        last -= 1
        held += histogram[last]
    held -= histogram[last]
    for k in range(_BINS):
        histogram[k] = 0.0
    within = 0
    for k in range(begin, begin + count):
        size = abs(sizes[k])
        if _bin(size) == last:
            inner[within] = size
            within += 1
    gap = 1
    while gap < within:
        gap = 3 * gap + 1
    while gap > 1:  # Shell's sort, the largest first
        gap //= 3
        for k in range(gap, within):
            size, at = inner[k], k
            while at >= gap and inner[at - gap] < size:
                inner[at] = inner[at - gap]
                at -= gap
            inner[at] = size
    k = 0
    while k < within - 1:
        held += inner[k]
        if held >= enough:
            break
        k += 1
    return inner[k] if within > 0 else 0.0


@intrinsic
def _bin(typing: Any, size: Any) -> Any:
    """Leading 11 bits of a non-negative number in single precision, the sign left out."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        single = builder.bitcast(builder.fptrunc(arguments[0], ir.FloatType()), ir.IntType(32))
        return builder.zext(builder.lshr(single, ir.Constant(ir.IntType(32), 20)), ir.IntType(64))

    return types.int64(types.float64), generate


def renormalise_and_round(
    start: NDArray[np.int64], values: NDArray[np.float32], threads: int | None = None
) -> NDArray[np.float16]:
    """Divide each row by its sum and round it to half precision such that it still sums to 1, to about 1e-6.

    Small half-precision numbers are spaced more closely than large ones: the remainder of rounding is added to the
    largest entry of a row first, then to smaller ones.

    Parameters
    ----------
    start : (rows + 1,) int64 array
        Start of each row.
    values : (entries,) float32 array
        Overwritten.
    threads : int or None
        None is one per core.

    Returns
    -------
    (entries,) float16 array
    """
    edges = np.linspace(0, len(start) - 1, 65).astype(np.int64)
    rounded = np.empty(len(values), np.float16)

    def run(part: tuple[int, int]) -> None:
        rows = start[part[0] : part[1] + 1]
        _round_rows(rows, values)
        rounded[rows[0] : rows[-1]] = values[rows[0] : rows[-1]]

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        list(pool.map(run, itertools.pairwise(edges)))
    return rounded


@compiled(nogil=True)
def _round_rows(start: NDArray[np.int64], values: NDArray[np.float32]) -> None:
    """Normalise rows and round them to half precision in place."""
    for row in range(len(start) - 1):
        begin, end = start[row], start[row + 1]
        total = 0.0
        for k in range(begin, end):
            total += values[k]
        rounded, largest = 0.0, 0.0
        for k in range(begin, end):
            values[k] = _halved(values[k] / total)
            rounded += values[k]
            largest = max(largest, abs(values[k]))
        for size in (1.0, 2.0**-5, 2.0**-8):
            left = 1.0 - rounded
            if abs(left) < 1e-7:
                break
            at = begin
            for k in range(begin, end):
                if abs(abs(values[k]) - size * largest) < abs(abs(values[at]) - size * largest):
                    at = k
            better = _halved(values[at] + left)
            rounded += better - values[at]
            values[at] = better


@compiled(nogil=True, inline="always")
def _halved(value: float) -> float:
    """The nearest number of half precision: eleven bits, or a multiple of 2^-24 below 2^-14."""
    if abs(value) < 2.0**-14:
        return np.rint(value * 2.0**24) * 2.0**-24
    shifted = value * (2.0**42 + 1.0)  # Veltkamp's splitting: of the 53 bits of a double the upper 11 remain
    return shifted - (shifted - value)


def largest_entries(rows: SparseRows, count: int) -> SparseRows:
    """Rows truncated to their `count` entries of largest magnitude, in the same order.

    Parameters
    ----------
    rows : SparseRows
    count : int

    Returns
    -------
    SparseRows
    """
    before = np.add.reduceat(np.abs(rows.values), rows.start[:-1]) if len(rows.values) else np.zeros(0)
    length = np.minimum(np.diff(rows.start), count)
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    vertices, values = np.empty(start[-1], np.int32), np.empty(start[-1], np.float32)
    _copy_largest(rows.start, rows.vertices.astype(np.int32), rows.values, start, vertices, values)
    after = np.add.reduceat(np.abs(values), start[:-1]) if len(values) else np.zeros(0)
    fraction = (after / before).reshape(*rows.mass_kept.shape, -1).mean(axis=2)
    return SparseRows(start, vertices, values, rows.mass_kept * fraction)


@compiled(nogil=True)
def _copy_largest(
    start: NDArray[np.int64],
    vertices: NDArray[np.int32],
    values: NDArray[np.float32],
    new_start: NDArray[np.int64],
    new_vertices: NDArray[np.int32],
    new_values: NDArray[np.float32],
) -> None:
    """Copy the largest entries of each row, as many as `new_start` has room for."""
    for row in range(len(start) - 1):
        begin, to = start[row], new_start[row]
        count = new_start[row + 1] - to
        order = np.argsort(-np.abs(values[begin : start[row + 1]]))[:count]
        order.sort()
        for k in range(count):
            new_vertices[to + k] = vertices[begin + order[k]]
            new_values[to + k] = values[begin + order[k]]
