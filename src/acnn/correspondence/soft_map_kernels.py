"""The largest logits of every row and their softmax, in compiled code: one pass, no copies."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import NDArray

from acnn.compilation import compiled

NEGLIGIBLE = 25.0
"""Logits this far below the largest add less than 2e-7 to the sum, ten thousand of them together."""

LANES = 32
"""How many entries of a row are compared side by side."""


@compiled(parallel=True)
def largest_of_rows(
    logits: NDArray[Any], vertices: NDArray[Any], probabilities: NDArray[Any], finite: NDArray[Any]
) -> None:
    """Fill in the k largest of each row, the largest first, equal ones by the lower index.

    - logits: (rows, m) float32
    - vertices: (rows, k) int32; probabilities: (rows, k) float32
    - finite: (rows,) bool, False where a logit is NaN or the largest is infinite
    """
    m, k = logits.shape[1], vertices.shape[1]
    for i in prange(len(logits)):
        row, best = logits[i], vertices[i]
        peak, good = _peak(row)
        finite[i] = good
        if not good:
            continue
        floor = peak - np.float32(NEGLIGIBLE)
        values = np.empty(k, np.float32)
        held = 0
        bar = np.float32(-np.inf)  # what is not above it neither counts nor adds
        total = 0.0
        for j in range(m):
            value = row[j]
            if held == k and value <= bar:
                continue
            if value > floor:
                total += exp(value - peak)
            if held == k and value <= values[k - 1]:
                continue
            place = held if held < k else k - 1
            while place > 0 and values[place - 1] < value:
                values[place], best[place] = values[place - 1], best[place - 1]
                place -= 1
            values[place], best[place] = value, j
            held = min(held + 1, k)
            bar = min(floor, values[held - 1])
        for place in range(k):
            probabilities[i, place] = exp(values[place] - peak) / total


@compiled()
def _peak(row: NDArray[Any]) -> tuple[Any, bool]:
    """The largest of a row, and whether none is NaN and the largest is finite; lanes side by side, for vector code."""
    largest = np.full(LANES, -np.inf, np.float32)
    wrong = np.zeros(LANES, np.bool_)
    whole = len(row) - len(row) % LANES
    for j in range(0, whole, LANES):
        for lane in range(LANES):
            value = row[j + lane]
            largest[lane] = value if value > largest[lane] else largest[lane]
            wrong[lane] |= value != value
    for j in range(whole, len(row)):
        largest[0] = row[j] if row[j] > largest[0] else largest[0]
        wrong[0] |= row[j] != row[j]
    peak = largest.max()
    return peak, not wrong.any() and -np.inf < peak < np.inf
