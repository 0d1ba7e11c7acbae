"""The largest logits of every row and their softmax, in compiled code: one pass, no copies."""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

NEGLIGIBLE = 30.0
"""Logits this far below the largest add less than 1e-9 to the sum, ten thousand of them together."""


@njit(cache=True, parallel=True)  # type: ignore[misc,unused-ignore]
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
        values = np.empty(k, np.float32)
        held = 0
        good = True
        for j in range(m):
            value = row[j]
            if value != value:
                good = False
                break
            if held == k and value <= values[k - 1]:
                continue
            place = held if held < k else k - 1
            while place > 0 and values[place - 1] < value:
                values[place], best[place] = values[place - 1], best[place - 1]
                place -= 1
            values[place], best[place] = value, j
            held = min(held + 1, k)
        finite[i] = good and -np.inf < values[0] < np.inf
        if not finite[i]:
            continue
        peak = values[0]
        total = 0.0
        for j in range(m):
            if row[j] > peak - NEGLIGIBLE:
                total += exp(row[j] - peak)
        for place in range(k):
            probabilities[i, place] = exp(values[place] - peak) / total
