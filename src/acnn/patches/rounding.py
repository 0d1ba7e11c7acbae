"""Compiled rounding of rows to half precision without losing their sums."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled


def renormalise_and_round(
    start: NDArray[np.int64], values: NDArray[np.float32], threads: int | None = None
) -> NDArray[np.float16]:
    """Divide each row by its sum and round it to half precision so that it still sums to 1, to about 1e-6.

    Half-precision numbers lie the closer the smaller they are: what rounding leaves over is given first to the largest
    entry of a row, then to smaller and smaller ones. `values` is overwritten.
    """
    edges = np.linspace(0, len(start) - 1, 65).astype(np.int64)
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        list(pool.map(lambda part: _round_rows(start[part[0] : part[1] + 1], values), itertools.pairwise(edges)))
    return values.astype(np.float16)


@compiled(nogil=True)
def _round_rows(start: NDArray[np.int64], values: NDArray[np.float32]) -> None:
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
    """The nearest number that half precision can hold: eleven bits, or a multiple of 2^-24 below 2^-14."""
    if abs(value) < 2.0**-14:
        return np.rint(value * 2.0**24) * 2.0**-24
    shifted = value * (2.0**42 + 1.0)  # Veltkamp's splitting: of the 53 bits of a double the upper 11 remain
    return shifted - (shifted - value)
