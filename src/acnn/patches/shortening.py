"""Rows cut to their largest entries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.surface.rows import SparseRows


def largest_entries(rows: SparseRows, count: int) -> SparseRows:
    """Rows with at most `count` entries each, those largest in size, in the order in which they were."""
    before = np.add.reduceat(np.abs(rows.values), rows.start[:-1]) if len(rows.values) else np.zeros(0)
    length = np.minimum(np.diff(rows.start), count)
    start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    vertices, values = np.empty(start[-1], np.int32), np.empty(start[-1], np.float32)
    _copy_largest(rows.start, rows.vertices.astype(np.int32), rows.values, start, vertices, values)
    after = np.add.reduceat(np.abs(values), start[:-1]) if len(values) else np.zeros(0)
    share = (after / before).reshape(*rows.mass_kept.shape, -1).mean(axis=2)
    return SparseRows(start, vertices, values, rows.mass_kept * share)


@compiled(nogil=True)
def _copy_largest(
    start: NDArray[np.int64],
    vertices: NDArray[np.int32],
    values: NDArray[np.float32],
    new_start: NDArray[np.int64],
    new_vertices: NDArray[np.int32],
    new_values: NDArray[np.float32],
) -> None:
    for row in range(len(start) - 1):
        begin, to = start[row], new_start[row]
        count = new_start[row + 1] - to
        order = np.argsort(-np.abs(values[begin : start[row + 1]]))[:count]
        order.sort()
        for k in range(count):
            new_vertices[to + k] = vertices[begin + order[k]]
            new_values[to + k] = values[begin + order[k]]
