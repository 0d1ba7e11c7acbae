"""Compiled rounding of rows to half precision without losing their sums."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


def renormalise_and_round(start: NDArray[np.int64], values: NDArray[np.float32]) -> NDArray[np.float16]:
    """Divide each row by its sum and round it to half precision so that its sum is 1 within about 1e-6.

    Half-precision numbers lie the closer the smaller they are: what rounding leaves over is given first to a large
    entry, then to smaller and smaller ones.
    """
    _divide(start, values)
    rounded = values.astype(np.float16)
    # numba has no half precision on the CPU: corrections are found in single precision, a few entries of each row.
    for size in (1.0, 2.0**-6, 2.0**-9):
        row_sum = np.add.reduceat(rounded.astype(np.float32), start[:-1], dtype=np.float64)
        at = _nearest_in_size(start, values, size)
        rounded[at] = (rounded[at].astype(np.float64) + (1.0 - row_sum)).astype(np.float16)
    return rounded


@njit(cache=True, nogil=True)
def _divide(start: NDArray[np.int64], values: NDArray[np.float32]) -> None:
    for row in range(len(start) - 1):
        total = 0.0
        for k in range(start[row], start[row + 1]):
            total += values[k]
        for k in range(start[row], start[row + 1]):
            values[k] /= total


@njit(cache=True, nogil=True)
def _nearest_in_size(start: NDArray[np.int64], values: NDArray[np.float32], size: float) -> NDArray[np.int64]:
    """For each row the entry whose magnitude is nearest to `size` times the largest one."""
    found = np.empty(len(start) - 1, np.int64)
    for row in range(len(start) - 1):
        largest = 0.0
        for k in range(start[row], start[row + 1]):
            largest = max(largest, abs(values[k]))
        best = np.inf
        found[row] = start[row]
        for k in range(start[row], start[row + 1]):
            gap = abs(abs(values[k]) - size * largest)
            if gap < best:
                best = gap
                found[row] = k
    return found
