"""Sparse Cholesky factors of small systems, and solves with many right-hand sides at once, in compiled code.

Systems here have a few hundred to a few thousand unknowns in a given elimination order, are factorised for many sets
of values on one pattern, and are solved for tiles of `TILE` right-hand sides side by side. No library does that
quickly: those that factorise well solve column by column, and start up once per system.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from acnn.compilation import compiled
from acnn.shapes.shape import FloatArray, IntArray

TILE = 32
"""Right-hand sides solved together: one row of a tile is eight vector registers of four doubles."""


@compiled(nogil=True)
def symbolic(n: int, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """Pattern of the Cholesky factor, below the diagonal, by columns with ascending rows.

    Parameters
    - n: unknowns, in elimination order
    - low, high: (pairs,) entries of the matrix, low < high; pairs may repeat

    Returns column starts (n + 1,) and rows.
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
        while child >= 0:  # eliminating a column leaves its rows connected: they pass on to its parent
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
    """The group of each entry, from where the groups begin (n + 1,)."""
    group = np.empty(starts[-1], np.int32)
    for g in range(len(starts) - 1):
        for k in range(starts[g], starts[g + 1]):
            group[k] = g
    return group


@compiled(nogil=True)
def transposed(n: int, rows: IntArray, columns: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Group entries by column: starts (n + 1,), row of each entry, and where each entry stood before."""
    starts = np.zeros(n + 1, np.int32)
    for c in columns:
        starts[c + 1] += 1
    for c in range(n):
        starts[c + 1] += starts[c]
    fill = starts[:-1].copy()
    grouped = np.empty(len(rows), np.int32)
    origin = np.empty(len(rows), np.int32)
    for k in range(len(rows)):
        place = fill[columns[k]]
        grouped[place] = rows[k]
        origin[place] = k
        fill[columns[k]] = place + 1
    return starts, grouped, origin


@compiled(nogil=True)
def numeric(pointer: IntArray, rows: IntArray, values: FloatArray, diagonal: FloatArray) -> bool:
    """Overwrite a symmetric positive definite matrix, given on the factor's pattern, by its Cholesky factor.

    On return `values` holds the factor below the diagonal and `diagonal` the INVERSE of the factor's diagonal.
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
    """result = weight * (solution for the right-hand sides `given`), row by row, for contiguous tiles (n, TILE).

    The factor comes by columns (pointer, rows, values) and by rows; `work` is a workspace of the same size.
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
    """x[target] = scale (given[target] - sum of factor[k] x[index[k]] over begin <= k < end), whole rows of a tile.

    Written in LLVM's own terms so that the row stays in vector registers: numba keeps it in memory when the loop is
    written in Python, at a fifth of the speed. All arrays contiguous; x and given (n, TILE), factor and scale float64,
    index int32.
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
