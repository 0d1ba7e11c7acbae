"""Compiled core of the rational heat kernels: the kernel rows of one cell, and the sparse Cholesky factors they need.

Systems have a few hundred to a few thousand unknowns in a given elimination order, are factorised for many sets of
values on one sparsity pattern, and are solved for tiles of `TILE` right-hand sides at once. Libraries are slow at this:
they solve column by column and have a fixed cost per system.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from acnn.compilation import compiled
from acnn.surface.sparse_rows import smallest_kept
from acnn.types import FloatArray, IntArray

TILE = 32
"""Number of right-hand sides solved together: one row of a tile is eight vector registers of four doubles."""


@compiled(nogil=True)
def symbolic(n: int, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """Sparsity pattern of the Cholesky factor below the diagonal, by columns with ascending rows.

    Parameters
    ----------
    n : int
        Number of unknowns, in elimination order.
    low, high : (pairs,) array
        Off-diagonal entries of the matrix, low < high; pairs may repeat.

    Returns
    -------
    pointer : (n + 1,) array
        Start of each column.
    rows : (entries,) array
    """
    starts, rows, _ = transposed(n, high, low)  # entries of each column
    pointer = np.zeros(n + 1, np.int32)
    capacity = 24 * n + len(low)
    pattern = np.empty(capacity, np.int32)
    seen = np.full(n, -1, np.int32)
    first_child = np.full(n, -1, np.int32)
    sibling = np.full(n, -1, np.int32)
    used = 0
    for c in range(n):
        begin = used
        needed = used + (starts[c + 1] - starts[c])
        child = first_child[c]
        while child >= 0:
            needed += pointer[child + 1] - pointer[child]
            child = sibling[child]
        if needed > capacity:
            capacity = 2 * needed
            longer = np.empty(capacity, np.int32)
            longer[:used] = pattern[:used]
            pattern = longer
        for k in range(starts[c], starts[c + 1]):
            r = rows[k]
            if seen[r] != c:
                seen[r] = c
                pattern[used] = r
                used += 1
        child = first_child[c]
        while child >= 0:  # eliminating a column connects its rows: they become entries of its parent
            for k in range(pointer[child], pointer[child + 1]):
                r = pattern[k]
                if r > c and seen[r] != c:
                    seen[r] = c
                    pattern[used] = r
                    used += 1
            child = sibling[child]
        pointer[c + 1] = used
        if used > begin:
            parent = n
            for k in range(begin, used):
                parent = min(parent, pattern[k])
            sibling[c] = first_child[parent]
            first_child[parent] = c
    # Grouped by row and then by column again, the rows of each column ascend.
    starts, columns, _ = transposed(n, members(pointer), pattern[:used])
    return transposed(n, members(starts), columns)[:2]


@compiled(nogil=True)
def members(starts: IntArray) -> IntArray:
    """Group of each entry, from the starts of the groups (n + 1,)."""
    group = np.empty(starts[-1], np.int32)
    for g in range(len(starts) - 1):
        for k in range(starts[g], starts[g + 1]):
            group[k] = g
    return group


@compiled(nogil=True)
def transposed(n: int, rows: IntArray, columns: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Entries grouped by column: starts (n + 1,), row of each entry, and its index before grouping."""
    starts = np.zeros(n + 1, np.int32)
    for c in columns:
        starts[c + 1] += 1
    for c in range(n):
        starts[c + 1] += starts[c]
    fill = starts[:-1].copy()
    grouped = np.empty(len(rows), np.int32)
    origin = np.empty(len(rows), np.int32)
    for k in range(len(rows)):
        index = fill[columns[k]]
        grouped[index] = rows[k]
        origin[index] = k
        fill[columns[k]] = index + 1
    return starts, grouped, origin


@compiled(nogil=True)
def numeric(pointer: IntArray, rows: IntArray, values: FloatArray, diagonal: FloatArray) -> bool:
    """Overwrite a symmetric positive definite matrix, given on the factor's pattern, by its Cholesky factor.

    Parameters
    ----------
    pointer, rows : array
        Pattern of the factor, as `symbolic` returns it.
    values : (entries,) array
        Overwritten by the factor below the diagonal.
    diagonal : (n,) array
        Overwritten by the INVERSE of the factor's diagonal.

    Returns
    -------
    bool
        False where the matrix is not positive definite.
    """
    n = len(diagonal)
    work = np.zeros(n)
    head = np.full(n, -1, np.int32)  # for each row, the columns whose next unused entry lies in it, as a linked list
    following = np.full(n, -1, np.int32)
    position = pointer[:-1].copy()
    for c in range(n):
        begin, end = pointer[c], pointer[c + 1]
        for k in range(begin, end):
            work[rows[k]] = values[k]
        pivot = diagonal[c]
        earlier = head[c]
        while earlier >= 0:
            after = following[earlier]
            p = position[earlier]
            factor = values[p]
            pivot -= factor * factor
            stop = pointer[earlier + 1]
            for k in range(p + 1, stop):
                work[rows[k]] -= factor * values[k]
            position[earlier] = p + 1
            if p + 1 < stop:
                r = rows[p + 1]
                following[earlier] = head[r]
                head[r] = earlier
            earlier = after
        if not pivot > 0.0:
            return False
        inverse = 1.0 / np.sqrt(pivot)
        diagonal[c] = inverse
        for k in range(begin, end):
            values[k] = work[rows[k]] * inverse
            work[rows[k]] = 0.0
        if begin < end:
            r = rows[begin]
            following[c] = head[r]
            head[r] = c
    return True


@compiled(nogil=True, boundscheck=False)
def solve_tile(
    pointer: IntArray,
    rows: IntArray,
    values: FloatArray,
    row_pointer: IntArray,
    columns: IntArray,
    row_values: FloatArray,
    inverse: FloatArray,
    weight: FloatArray,
    given: FloatArray,
    work: FloatArray,
    result: FloatArray,
) -> None:
    """Solve L L^T x = b for a tile of right-hand sides and multiply row i of the solution by weight[i].

    Parameters
    ----------
    pointer, rows, values : array
        The factor by columns.
    row_pointer, columns, row_values : array
        The factor by rows.
    inverse : (n,) array
        Inverse of the factor's diagonal.
    weight : (n,) array
    given : (n, TILE) array
        Right-hand sides b; contiguous, as are all tiles.
    work : (n, TILE) array
        Workspace.
    result : (n, TILE) array
        Overwritten by the weighted solution.
    """
    n = len(inverse)
    for c in range(n):
        _eliminate(work, given, c, row_pointer[c], row_pointer[c + 1], columns, row_values, inverse[c])
    for c in range(n - 1, -1, -1):
        _eliminate(work, work, c, pointer[c], pointer[c + 1], rows, values, inverse[c])
        w = weight[c]
        for b in range(TILE):
            result[c, b] = w * work[c, b]


@intrinsic
def _eliminate(
    typing: Any, x: Any, given: Any, target: Any, begin: Any, end: Any, index: Any, factor: Any, scale: Any
) -> Any:
    """x[target] = scale (given[target] - sum of factor[k] x[index[k]] over begin <= k < end), for rows of a tile.

    Written in LLVM's representation so that the row stays in vector registers: numba keeps it in memory when the loop
    is written in Python, at a fifth of the speed. All arrays contiguous; x and given (n, TILE), factor and scale
    float64, index int32.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 1, 5, 6)]
        x_data, given_data, index_data, factor_data = (array.data for array in arrays)
        wide, vector = ir.IntType(64), ir.VectorType(ir.DoubleType(), TILE)
        undefined = ir.Constant(vector, ir.Undefined)
        first_lane = ir.Constant(ir.VectorType(ir.IntType(32), TILE), [0] * TILE)

        def row(data: Any, i: Any) -> Any:
            start = builder.gep(data, [builder.mul(i, ir.Constant(wide, TILE))])
            return builder.bitcast(start, vector.as_pointer())

        def spread(scalar: Any) -> Any:
            lane = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(lane, undefined, first_lane)

        target, begin, end = (context.cast(builder, arguments[i], signature.args[i], types.int64) for i in (2, 3, 4))
        total = cgutils.alloca_once(builder, vector)
        builder.store(builder.load(row(given_data, target), align=8), total)
        with cgutils.for_range_slice(builder, begin, end, ir.Constant(wide, 1), wide, True) as (k, _):
            other = builder.sext(builder.load(builder.gep(index_data, [k])), wide)
            scalar = builder.load(builder.gep(factor_data, [k]))
            product = builder.fmul(spread(scalar), builder.load(row(x_data, other), align=8), flags=["contract"])
            builder.store(builder.fsub(builder.load(total), product, flags=["contract"]), total)
        builder.store(builder.fmul(builder.load(total), spread(arguments[7])), row(x_data, target), align=8)
        return context.get_dummy_value()

    return types.void(x, given, target, begin, end, index, factor, types.float64), generate


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
    """Rows of p_t(z), z = S (S + tau W)^-1, for every angle and scale, of given vertices of one cell.

    W is assembled from the faces inside the neighbourhood alone, so that no heat crosses its boundary and rows still
    sum to 1.

    Parameters
    ----------
    targets : (r,) array
        Vertices whose rows are computed, all in `local`.
    local : (N,) array
        The cell's neighbourhood, in elimination order.
    ascending : (N,) array
        The order that sorts `local`.
    faces, vertex_faces_start, vertex_faces : array
        The triangulation, and the faces around each vertex.
    entries : (angles, m, 3) array
        Off-diagonal face entries of W for each angle.
    mass : (n,) array
        Vertex areas, the diagonal of S.
    tau : float
        The pole is at -1 / tau.
    coefficients : (scales, degree + 1) array
        Of p_t in powers of z.
    keep : float
        Least fraction of sum |row| that the stored entries hold; 1 stores all entries of the neighbourhood.

    Returns
    -------
    begins, counts : (angles, scales, r) array
        Start of each row in the lists below, and its number of entries; the first count is -1 where a factorisation
        failed.
    sums : (angles, scales, r) array
        Sum |row| before clipping.
    vertices, values : (entries,) array
    """
    size, angles, scales, wanted = len(local), entries.shape[0], coefficients.shape[0], len(targets)
    degree = coefficients.shape[1] - 1
    lookup = np.full(len(mass), -1, np.int32)
    for i in range(size):
        lookup[local[i]] = i
    inside, low, high = _inner_faces(local, lookup, faces, vertex_faces_start, vertex_faces)
    pointer, rows = symbolic(size, low, high)
    row_pointer, row_columns, origin = transposed(size, members(pointer), rows)
    entry = np.empty(len(low), np.int32)
    for k in range(len(low)):
        begin, end = pointer[low[k]], pointer[low[k] + 1]
        entry[k] = begin + np.searchsorted(rows[begin:end], high[k])
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
    entry_vertices, entry_values = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    for a in range(angles):
        values[:] = 0.0
        diagonal[:] = area
        for k in range(len(low)):
            w = tau * entries[a, inside[k // 3], k % 3]
            values[entry[k]] += w
            diagonal[low[k]] -= w
            diagonal[high[k]] -= w
        if not numeric(pointer, rows, values, diagonal):
            counts[0, 0, 0] = -1
            return begins, counts, sums, entry_vertices[:0], entry_values[:0]
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
                        entry_vertices = _longer(entry_vertices, capacity)
                        entry_values = _longer(entry_values, capacity)
                    begins[a, s, first + b] = used
                    row = sizes[b, : many[b]]
                    smallest = smallest_kept(row, keep * totals[b], histogram) if keep < 1.0 else 0.0
                    for k in range(len(row)):
                        if abs(row[k]) >= smallest:
                            entry_vertices[used] = vertices[at[b, k]]
                            entry_values[used] = row[k]
                            used += 1
                    counts[a, s, first + b] = used - begins[a, s, first + b]
                    sums[a, s, first + b] = totals[b]
    return begins, counts, sums, entry_vertices[:used].copy(), entry_values[:used].copy()


@compiled(nogil=True, fastmath={"contract"})
def _combine(powers: FloatArray, coefficients: FloatArray, total: FloatArray) -> None:
    """total[s] = sum over d of coefficients[s, d] powers[d], in blocks that stay in the first-level cache."""
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
    """A copy of an array with room for `length` entries."""
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
    """Entries of each column of a tile that may be among those stored, in order, and sum |column|."""
    n = len(order)
    totals[:] = 0.0
    for i in range(n):
        for b in range(TILE):
            totals[b] += abs(tile[i, b])
    if keep >= 1.0:
        _larger(tile, order, np.full(TILE, -1.0), many, at, size)
        return
    # The first bound is valid for kernels of up to a few hundred vertices. Otherwise, all entries below the second
    # bound together hold less than a tenth of what may be dropped, so that none of them is needed.
    held = _larger(tile, order, 2e-4 * totals, many, at, size)
    if (held < keep * totals).any():
        _larger(tile, order, totals * (0.1 * (1.0 - keep) / n), many, at, size)


@compiled(nogil=True, boundscheck=False)
def _larger(
    tile: FloatArray, order: IntArray, least: FloatArray, many: IntArray, at: IntArray, size: FloatArray
) -> FloatArray:
    """Collect the entries of each column with magnitudes above a bound; returns the sum of these magnitudes."""
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
