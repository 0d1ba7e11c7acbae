"""Compiled copying of kernel rows from where they were computed to where they are stored."""

from __future__ import annotations

from numba import njit

from acnn.shapes.shape import FloatArray, IntArray


@njit(cache=True, nogil=True)
def copy_rows(
    begins: IntArray, counts: IntArray, at: IntArray, value: FloatArray, vertices: IntArray, values: FloatArray
) -> None:
    """Copy rows that stand one after the other in (at, value) to where each begins in (vertices, values)."""
    read = 0
    for row in range(len(counts)):
        write = begins[row]
        for k in range(counts[row]):
            vertices[write + k] = at[read + k]
            values[write + k] = value[read + k]
        read += counts[row]
