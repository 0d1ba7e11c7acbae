"""Compiled core of the localised rational kernel: all kernels of one cell, from its surroundings alone."""

from __future__ import annotations

import numpy as np
from numba import njit

from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.cholesky import TILE, numeric, solve_tile, symbolic, transposed


@njit(cache=True, nogil=True)
def cell_rows(
    targets: IntArray,
    local: IntArray,
    faces: IntArray,
    vertex_faces_start: IntArray,
    vertex_faces: IntArray,
    entries: FloatArray,
    mass: FloatArray,
    tau: float,
    coefficients: FloatArray,
    keep: float,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows of p_t(z), z = S (S + tau W)^-1, for every angle and scale, at some vertices of one cell.

    W is assembled from the faces inside the surroundings alone, so no heat crosses their border and rows still sum
    to 1.

    Parameters
    - targets: (r,) vertices whose rows are wanted, all in `local`
    - local: (N,) the surroundings, in elimination order
    - faces, vertex_faces_start, vertex_faces: the triangulation, and the faces around each vertex
    - entries: (angles, m, 3) off-diagonal face entries of W for each angle
    - mass: (n,)
    - tau: the pole is at -1 / tau
    - coefficients: (scales, degree + 1) of p_t in Chebyshev polynomials of 2z - 1
    - keep: share of sum |row| to keep; 1 keeps all of the surroundings

    Returns the number of entries of each row (angles, scales, r), then their vertices and values, one after the other.
    Counts are -1 where a factorisation failed.
    """
    size, angles, scales, wanted = len(local), entries.shape[0], coefficients.shape[0], len(targets)
    degree = coefficients.shape[1] - 1
    lookup = np.full(len(mass), -1, np.int32)
    for i in range(size):
        lookup[local[i]] = i
    inside, low, high = _inner_faces(local, lookup, faces, vertex_faces_start, vertex_faces)
    pointer, rows = symbolic(size, low, high)
    columns = np.empty(len(rows), np.int32)
    for c in range(size):
        columns[pointer[c] : pointer[c + 1]] = c
    row_pointer, row_columns, origin = transposed(size, columns, rows)
    place = np.empty(len(low), np.int32)
    for k in range(len(low)):
        begin, end = pointer[low[k]], pointer[low[k] + 1]
        place[k] = begin + np.searchsorted(rows[begin:end], high[k])
    ascending = np.argsort(local)
    vertices = local[ascending]

    counts = np.zeros((angles, scales, wanted), np.int32)
    used = 0
    capacity = angles * scales * wanted * (size if keep >= 1.0 else 64)
    found_at = np.empty(capacity, np.int32)
    found = np.empty(capacity, np.float32)
    values, row_values = np.empty(len(rows)), np.empty(len(rows))
    diagonal = np.empty(size)
    before, now, work = np.empty((size, TILE)), np.empty((size, TILE)), np.empty((size, TILE))
    total = np.empty((scales, size, TILE))
    flipped = np.empty((TILE, size))
    histogram = np.zeros(2048)

    for a in range(angles):
        values[:] = 0.0
        for i in range(size):
            diagonal[i] = mass[local[i]]
        for k in range(len(low)):
            w = tau * entries[a, inside[k // 3], k % 3]
            values[place[k]] += w
            diagonal[low[k]] -= w
            diagonal[high[k]] -= w
        if not numeric(pointer, rows, values, diagonal):
            counts[0, 0, 0] = -1
            return counts, found_at[:0], found[:0]
        for k in range(len(rows)):
            row_values[k] = values[origin[k]]
        for first in range(0, wanted, TILE):
            width = min(TILE, wanted - first)
            now[:] = 0.0
            for b in range(width):
                now[lookup[targets[first + b]], b] = 1.0
            for s in range(scales):
                for i in range(size):
                    for b in range(TILE):
                        total[s, i, b] = coefficients[s, 0] * now[i, b]
            for d in range(1, degree + 1):
                work[:] = now
                solve_tile(pointer, rows, values, row_pointer, row_columns, row_values, diagonal, work)
                for i in range(size):
                    s_i = mass[local[i]]
                    for b in range(TILE):  # T_1 = y, then T_d+1 = 2 y T_d - T_d-1 with y = 2z - 1
                        if d == 1:
                            work[i, b] = 2.0 * s_i * work[i, b] - now[i, b]
                        else:
                            work[i, b] = 4.0 * s_i * work[i, b] - 2.0 * now[i, b] - before[i, b]
                    for s in range(scales):
                        c = coefficients[s, d]
                        for b in range(TILE):
                            total[s, i, b] += c * work[i, b]
                before, now, work = now, work, before
            for s in range(scales):
                for i in range(size):
                    for b in range(TILE):
                        flipped[b, i] = total[s, ascending[i], b]
                for b in range(width):
                    if used + size > capacity:
                        capacity = 2 * capacity + size
                        longer_at, longer = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
                        longer_at[:used], longer[:used] = found_at[:used], found[:used]
                        found_at, found = longer_at, longer
                    count = keep_largest(flipped[b], keep, histogram, found_at[used:], found[used:])
                    for k in range(used, used + count):
                        found_at[k] = vertices[found_at[k]]
                    counts[a, s, first + b] = count
                    used += count
    return counts, found_at[:used].copy(), found[:used].copy()


@njit(cache=True, nogil=True)
def _inner_faces(
    local: IntArray, lookup: IntArray, faces: IntArray, vertex_faces_start: IntArray, vertex_faces: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Faces with all corners in `local`, and the pairs of local vertices at their three edges (edge k opposite k)."""
    capacity = 0
    for v in local:
        capacity += vertex_faces_start[v + 1] - vertex_faces_start[v]
    inside = np.empty(capacity, np.int32)
    count = 0
    for v in local:
        for k in range(vertex_faces_start[v], vertex_faces_start[v + 1]):
            f = vertex_faces[k]
            a, b, c = faces[f]
            if v == min(a, b, c) and lookup[a] >= 0 and lookup[b] >= 0 and lookup[c] >= 0:
                inside[count] = f
                count += 1
    low, high = np.empty(3 * count, np.int32), np.empty(3 * count, np.int32)
    for k in range(count):
        for corner in range(3):
            i = lookup[faces[inside[k], (corner + 1) % 3]]
            j = lookup[faces[inside[k], (corner + 2) % 3]]
            low[3 * k + corner], high[3 * k + corner] = min(i, j), max(i, j)
    return inside[:count], low, high


@njit(cache=True, nogil=True)
def keep_largest(
    row: FloatArray, keep: float, histogram: FloatArray, kept_at: IntArray, kept: FloatArray
) -> int:
    """Copy the fewest entries of largest size that hold a share `keep` of sum |row|; returns how many.

    The entries stay in order; a share of 1 keeps all. `histogram` (2048,) is a workspace, zero before and after.
    """
    n = len(row)
    if keep >= 1.0:
        for i in range(n):
            kept_at[i] = i
            kept[i] = row[i]
        return n
    # Bins of size: the exponent and three bits of the mantissa of a single-precision number, so 9 to 13 % wide.
    total = 0.0
    bits = np.abs(row).astype(np.float32).view(np.int32)
    for i in range(n):
        total += abs(row[i])
        histogram[bits[i] >> 20] += abs(row[i])
    held = 0.0
    bin = 2048
    while held < keep * total and bin > 0:
        bin -= 1
        held += histogram[bin]
    held -= histogram[bin]  # what lies in bins above the last one needed
    histogram[:] = 0.0
    inner = np.empty(n, np.float64)
    many = 0
    for i in range(n):
        if bits[i] >> 20 == bin:
            inner[many] = abs(row[i])
            many += 1
    inner = np.sort(inner[:many])
    smallest = 0.0
    for k in range(many - 1, -1, -1):
        smallest = inner[k]
        held += smallest
        if held >= keep * total:
            break
    count = 0
    for i in range(n):
        if abs(row[i]) >= smallest:
            kept_at[count] = i
            kept[count] = row[i]
            count += 1
    return count
