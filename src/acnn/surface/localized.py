"""Compiled core of the localised rational kernel: all kernels of one cell, from its surroundings alone."""

from __future__ import annotations

import numpy as np

from acnn.compilation import compiled
from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.cholesky import TILE, members, numeric, solve_tile, symbolic, transposed
from acnn.surface.rows import smallest_kept


@compiled(nogil=True)
def cell_rows(
    targets: IntArray,
    local: IntArray,
    ascending: IntArray,
    faces: IntArray,
    vertex_faces_start: IntArray,
    vertex_faces: IntArray,
    entries: FloatArray,
    mass: FloatArray,
    tau: float,
    coefficients: FloatArray,
    keep: float,
) -> tuple[IntArray, IntArray, FloatArray, IntArray, FloatArray]:
    """Rows of p_t(z), z = S (S + tau W)^-1, for every angle and scale, at some vertices of one cell.

    W is assembled from the faces inside the surroundings alone, so no heat crosses their border and rows still sum
    to 1.

    Parameters
    - targets: (r,) vertices whose rows are wanted, all in `local`
    - local: (N,) the surroundings, in elimination order
    - ascending: (N,) the order that sorts `local`
    - faces, vertex_faces_start, vertex_faces: the triangulation, and the faces around each vertex
    - entries: (angles, m, 3) off-diagonal face entries of W for each angle
    - mass: (n,)
    - tau: the pole is at -1 / tau
    - coefficients: (scales, degree + 1) of p_t in powers of z
    - keep: share of sum |row| to keep; 1 keeps all of the surroundings

    Returns where each row begins, how many entries it has and sum |row| before clipping, (angles, scales, r) each, then
    the vertices and values of all entries.
    The first count is -1 where a factorisation failed.
    """
    size, angles, scales, wanted = len(local), entries.shape[0], coefficients.shape[0], len(targets)
    degree = coefficients.shape[1] - 1
    lookup = np.full(len(mass), -1, np.int32)
    for i in range(size):
        lookup[local[i]] = i
    inside, low, high = _inner_faces(local, lookup, faces, vertex_faces_start, vertex_faces)
    pointer, rows = symbolic(size, low, high)
    row_pointer, row_columns, origin = transposed(size, members(pointer), rows)
    place = np.empty(len(low), np.int32)
    for k in range(len(low)):
        begin, end = pointer[low[k]], pointer[low[k] + 1]
        place[k] = begin + np.searchsorted(rows[begin:end], high[k])
    vertices = local[ascending]

    begins, counts = np.zeros((angles, scales, wanted), np.int64), np.zeros((angles, scales, wanted), np.int32)
    sums = np.zeros((angles, scales, wanted))
    values, row_values, diagonal, area = np.empty(len(rows)), np.empty(len(rows)), np.empty(size), mass[local]
    powers, work = np.empty((degree + 1, size, TILE)), np.empty((size, TILE))
    total = np.empty((scales, size, TILE))
    histogram, totals, many = np.zeros(2048), np.empty(TILE), np.empty(TILE, np.int64)
    at, sizes = np.empty((TILE, size + 1), np.int32), np.empty((TILE, size + 1))
    used = 0
    capacity = angles * scales * wanted * (size if keep >= 1.0 else 64) + size
    found_at, found = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    for a in range(angles):
        values[:] = 0.0
        diagonal[:] = area
        for k in range(len(low)):
            w = tau * entries[a, inside[k // 3], k % 3]
            values[place[k]] += w
            diagonal[low[k]] -= w
            diagonal[high[k]] -= w
        if not numeric(pointer, rows, values, diagonal):
            counts[0, 0, 0] = -1
            return begins, counts, sums, found_at[:0], found[:0]
        for k in range(len(rows)):
            row_values[k] = values[origin[k]]
        for first in range(0, wanted, TILE):
            width = min(TILE, wanted - first)
            powers[0] = 0.0
            for b in range(width):
                powers[0, lookup[targets[first + b]], b] = 1.0
            for d in range(1, degree + 1):
                solve_tile(
                    pointer,
                    rows,
                    values,
                    row_pointer,
                    row_columns,
                    row_values,
                    diagonal,
                    area,
                    powers[d - 1],
                    work,
                    powers[d],
                )
            _combine(powers, coefficients, total)
            for s in range(scales):
                _candidates(total[s], ascending, keep, totals, many, at, sizes)
                for b in range(width):
                    if used + size > capacity:
                        capacity = 2 * capacity + size
                        found_at, found = _longer(found_at, capacity), _longer(found, capacity)
                    begins[a, s, first + b] = used
                    row = sizes[b, : many[b]]
                    smallest = smallest_kept(row, keep * totals[b], histogram) if keep < 1.0 else 0.0
                    for k in range(len(row)):
                        if abs(row[k]) >= smallest:
                            found_at[used] = vertices[at[b, k]]
                            found[used] = row[k]
                            used += 1
                    counts[a, s, first + b] = used - begins[a, s, first + b]
                    sums[a, s, first + b] = totals[b]
    return begins, counts, sums, found_at[:used].copy(), found[:used].copy()


@compiled(nogil=True, fastmath={"contract"})
def _combine(powers: FloatArray, coefficients: FloatArray, total: FloatArray) -> None:
    """total[s] = sum over d of coefficients[s, d] powers[d], in pieces that stay in the fastest cache."""
    scales, terms = coefficients.shape
    flat, out = powers.reshape(terms, -1), total.reshape(scales, -1)
    length = flat.shape[1]
    for begin in range(0, length, 256):
        end = min(begin + 256, length)
        for s in range(scales):
            piece = out[s, begin:end]
            piece[:] = 0.0
            for d in range(terms):
                c = coefficients[s, d]
                term = flat[d, begin:end]
                for k in range(end - begin):
                    piece[k] += c * term[k]


@compiled(nogil=True)
def _longer(array: FloatArray, length: int) -> FloatArray:
    grown = np.empty(length, array.dtype)
    grown[: len(array)] = array
    return grown


@compiled(nogil=True)
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


@compiled(nogil=True, boundscheck=False)
def _candidates(
    tile: FloatArray, order: IntArray, keep: float, totals: FloatArray, many: IntArray, at: IntArray, size: FloatArray
) -> None:
    """Entries of each column of a tile that may be among those kept, in order, and sum |column|."""
    n = len(order)
    totals[:] = 0.0
    for i in range(n):
        for b in range(TILE):
            totals[b] += abs(tile[i, b])
    if keep >= 1.0:
        _larger(tile, order, np.full(TILE, -1.0), many, at, size)
        return
    # A guess that holds for kernels of up to a few hundred vertices; where it does not, all entries below the second
    # bound together hold less than a tenth of what may go, so none of them can be needed.
    held = _larger(tile, order, 2e-4 * totals, many, at, size)
    if (held < keep * totals).any():
        _larger(tile, order, totals * (0.1 * (1.0 - keep) / n), many, at, size)


@compiled(nogil=True, boundscheck=False)
def _larger(
    tile: FloatArray, order: IntArray, least: FloatArray, many: IntArray, at: IntArray, size: FloatArray
) -> FloatArray:
    """Collect the entries of each column that are larger than a bound; returns the sum of their sizes."""
    many[:] = 0
    held = np.zeros(TILE)
    lowest = least.min()
    for i in range(len(order)):
        row = tile[order[i]]
        largest = 0.0
        for b in range(TILE):
            largest = max(largest, abs(row[b]))
        if largest <= lowest:
            continue
        for b in range(TILE):
            value = row[b]
            if abs(value) > least[b]:
                at[b, many[b]] = i
                size[b, many[b]] = value
                many[b] += 1
                held[b] += abs(value)
    return held
