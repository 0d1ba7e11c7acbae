"""Compiled core of the rational heat kernels: sparse Cholesky factors of one cell, their powers, and clipped rows.

Systems have a few hundred to a few thousand unknowns in a given elimination order, are factorised for many sets of
values on one sparsity pattern, and are solved for tiles of `TILE` right-hand sides at once. Libraries are slow at this:
they solve column by column and have a fixed cost per system.

Factors are computed in double precision and applied in single precision, which is twice as fast and whose rounding (an
L1 error of rows of about 1e-6) is far below the error of the rational functions.

Functions consist of plain loops over arrays that the caller allocates, and do not call each other: this is what numba
compiles quickly (array expressions inside take ten times as long to compile).
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
"""Number of right-hand sides solved together: one row of a tile is four vector registers of eight numbers."""


@compiled(nogil=True)
def inner_faces(
    local: IntArray,
    lookup: IntArray,
    faces: IntArray,
    vertex_faces_start: IntArray,
    vertex_faces: IntArray,
    inside: IntArray,
    low: IntArray,
    high: IntArray,
) -> int:
    """Faces with all corners in a neighbourhood, and the local vertices at their edges.

    Parameters
    ----------
    local : (N,) array
        Vertices of the neighbourhood.
    lookup : (n,) array
        Index in `local` of each vertex, -1 outside.
    faces, vertex_faces_start, vertex_faces : array
        The triangulation, and the faces around each vertex.
    inside : (m,) array
        Output: the faces.
    low, high : (3 m,) array
        Output: indices of the lower and the higher vertex of each edge; edge k of a face is opposite its corner k.

    Returns
    -------
    int
        Number of these faces.
    """
    count = 0
    for i in range(len(local)):
        for k in range(vertex_faces_start[local[i]], vertex_faces_start[local[i] + 1]):
            f = vertex_faces[k]
            a, b, c = lookup[faces[f, 0]], lookup[faces[f, 1]], lookup[faces[f, 2]]
            if a >= i and b >= i and c >= i:  # every face once, at its lowest corner
                inside[count] = f
                low[3 * count], high[3 * count] = (b, c) if b < c else (c, b)
                low[3 * count + 1], high[3 * count + 1] = (c, a) if c < a else (a, c)
                low[3 * count + 2], high[3 * count + 2] = (a, b) if a < b else (b, a)
                count += 1
    return count


@compiled(nogil=True)
def count_entries(
    low: IntArray,
    high: IntArray,
    starts: IntArray,
    grouped: IntArray,
    parent: IntArray,
    seen: IntArray,
    pointer: IntArray,
    row_pointer: IntArray,
) -> None:
    """Number of entries of each column and row of the Cholesky factor below the diagonal.

    The entries of row i are the vertices met on the way up the elimination tree from those of the matrix's row i.

    Parameters
    ----------
    low, high : (pairs,) array
        Off-diagonal entries of the matrix in elimination order, low < high; pairs may repeat.
    starts : (n + 2,) array
        Output: start of each row in `grouped`, from starts[0] on; zero before.
    grouped : (pairs,) array
        Output: the pairs, by `high`.
    parent : (n,) array
        Output: the elimination tree; -1 before, and at roots.
    seen : (n,) array
        Workspace, -1 before.
    pointer, row_pointer : (n + 1,) array
        Output: start of each column and row; zero before.
    """
    n = len(parent)
    for k in range(len(low)):
        starts[high[k] + 2] += 1
    for i in range(n):
        starts[i + 2] += starts[i + 1]
    for k in range(len(low)):
        grouped[starts[high[k] + 1]] = k
        starts[high[k] + 1] += 1
    for i in range(n):
        seen[i] = i
        for q in range(starts[i], starts[i + 1]):
            c = low[grouped[q]]
            while seen[c] != i:
                if parent[c] < 0:
                    parent[c] = i
                seen[c] = i
                pointer[c + 1] += 1
                row_pointer[i + 1] += 1
                c = parent[c]
    for i in range(n):
        pointer[i + 1] += pointer[i]
        row_pointer[i + 1] += row_pointer[i]


@compiled(nogil=True)
def list_entries(
    low: IntArray,
    starts: IntArray,
    grouped: IntArray,
    parent: IntArray,
    seen: IntArray,
    fill: IntArray,
    rows: IntArray,
    columns: IntArray,
    origin: IntArray,
    entry: IntArray,
) -> None:
    """Sparsity pattern of the Cholesky factor below the diagonal, by columns with ascending rows and by rows.

    Parameters
    ----------
    low, starts, grouped, parent
        As `count_entries` leaves them.
    seen : (n,) array
        Workspace, -1 before.
    fill : (n,) array
        Start of each column; overwritten.
    rows : (entries,) array
        Output: row of each entry, by columns.
    columns, origin : (entries,) array
        Output: column of each entry, by rows, and its index in `rows`.
    entry : (pairs,) array
        Output: index in `rows` of each entry of the matrix.
    """
    used = 0
    for i in range(len(parent)):
        seen[i] = i
        for q in range(starts[i], starts[i + 1]):
            first = low[grouped[q]]
            c = first
            while seen[c] != i:
                seen[c] = i
                rows[fill[c]] = i
                columns[used] = c
                origin[used] = fill[c]
                used += 1
                fill[c] += 1
                c = parent[c]
            entry[grouped[q]] = fill[first] - 1


@compiled(nogil=True)
def factorise(
    entries: FloatArray,
    tau: float,
    inside: IntArray,
    low: IntArray,
    high: IntArray,
    entry: IntArray,
    pointer: IntArray,
    rows: IntArray,
    values: FloatArray,
    diagonal: FloatArray,
    work: FloatArray,
    head: IntArray,
    following: IntArray,
    position: IntArray,
) -> bool:
    """Cholesky factor of S + tau W, with W assembled from the faces of a neighbourhood.

    Parameters
    ----------
    entries : (m, 3) array
        Off-diagonal face entries of W, of all faces of the shape.
    tau : float
    inside, low, high : array
        As `inner_faces` returns them.
    entry, pointer, rows : array
        Pattern of the factor, as `count_entries` and `list_entries` return it.
    values : (entries,) array
        Zero before; output: the factor below the diagonal.
    diagonal : (n,) array
        The diagonal of S; output: the INVERSE of the factor's diagonal.
    work : (n,) array
        Workspace, zero before and after.
    head, following : (n,) array
        Workspaces, -1 before.
    position : (n,) array
        Start of each column; overwritten.

    Returns
    -------
    bool
        False where the matrix is not positive definite.
    """
    n = len(diagonal)
    for f in range(len(inside)):
        for k in range(3):
            w = tau * entries[inside[f], k]
            values[entry[3 * f + k]] += w
            diagonal[low[3 * f + k]] -= w
            diagonal[high[3 * f + k]] -= w
    # head: for each row, the columns whose next unused entry lies in it, as a linked list.
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


@compiled(nogil=True)
def solve_repeatedly(
    pointer: IntArray,
    rows: IntArray,
    values: FloatArray,
    row_pointer: IntArray,
    columns: IntArray,
    row_values: FloatArray,
    inverse: FloatArray,
    area: FloatArray,
    nodes: FloatArray,
    work: FloatArray,
    solutions: FloatArray,
) -> None:
    """Terms x_(d + 1) = 4 ((L L^T)^-1 S - nodes[d]) x_d of a tile of right-hand sides, d = 0, 1, ...

    Parameters
    ----------
    pointer, rows, values : array
        The factor L by columns.
    row_pointer, columns, row_values : array
        The factor by rows.
    inverse : (n,) array
        Inverse of the factor's diagonal.
    area : (n,) array
        The diagonal of S.
    nodes : (degree,) array
    work : (n, TILE) array
        Workspace.
    solutions : ((degree + 1) n, TILE) array
        Rows d n to (d + 1) n - 1 are x_d; x_0 is given, the others are output.
    """
    n = len(inverse)
    for d in range(len(nodes)):
        for c in range(n):
            _eliminate(
                work, c, row_pointer[c], row_pointer[c + 1], columns, row_values,
                solutions, d * n + c, area[c], inverse[c],
            )  # fmt: skip
        for c in range(n - 1, -1, -1):
            _eliminate(work, c, pointer[c], pointer[c + 1], rows, values, work, c, np.float32(1.0), inverse[c])
            _advance(solutions, d * n + c, (d + 1) * n + c, work, c, nodes[d])


@compiled(nogil=True)
def combine(
    solutions: FloatArray,
    area: FloatArray,
    coefficients: FloatArray,
    kernels: FloatArray,
    largest: FloatArray,
    partial: FloatArray,
    sums: FloatArray,
) -> None:
    """Kernels of every scale from the solutions of a tile, sum_d coefficients[s, d] S x_d.

    Parameters
    ----------
    solutions : (terms * n, TILE) array
        x_d, as `solve_repeatedly` leaves them.
    area : (n,) array
        The diagonal of S.
    coefficients : (scales, terms) array
    kernels : (scales * n, TILE) array
        Output.
    largest : (scales * n,) array
        Output: largest magnitude of each row.
    partial : (1, TILE) array
        Workspace.
    sums : (scales, TILE) array
        Output: sum of the magnitudes of each column, in double precision.
    """
    n, terms = len(area), coefficients.shape[1]
    for s in range(len(coefficients)):
        for b in range(TILE):
            sums[s, b] = 0.0
        for begin in range(0, n, 64):  # short sums in single precision, long ones in double
            for b in range(TILE):
                partial[0, b] = 0.0
            for i in range(begin, min(begin + 64, n)):
                largest[s * n + i] = _combine_row(
                    kernels, s * n + i, solutions, i, n, coefficients, s * terms, terms, area[i], partial
                )
            for b in range(TILE):
                sums[s, b] += partial[0, b]


@compiled(nogil=True)
def clip_tile(
    kernels: FloatArray,
    largest: FloatArray,
    sums: FloatArray,
    width: int,
    order: IntArray,
    vertices: IntArray,
    keep: float,
    candidates: IntArray,
    sizes: FloatArray,
    histogram: FloatArray,
    inner: FloatArray,
    counts: IntArray,
    used: int,
    entry_vertices: IntArray,
    entry_values: FloatArray,
) -> int:
    """The fewest largest entries of each column of a tile that hold a fraction `keep` of its sum of magnitudes.

    Parameters
    ----------
    kernels, largest, sums : array
        As `combine` returns them.
    width : int
        Number of columns.
    order, vertices : (n,) array
        Rows in the order of their vertices, and these vertices.
    keep : float
        1 keeps all entries.
    candidates, sizes : (TILE * n,) array
        Workspaces: entries that may be among those kept, and their values.
    histogram, inner
        Workspaces of `smallest_kept`.
    counts : (scales, TILE) array
        Output: entries of each column.
    used : int
        Number of entries already in the lists below.
    entry_vertices, entry_values : array
        Output: the entries by scale and column, with ascending vertices. Complete columns are divided by their sums,
        which differ from 1 by rounding only.

    Returns
    -------
    int
        Number of entries with these.
    """
    n, full = len(order), keep >= 1.0
    for s in range(len(sums)):
        # The first bound is valid for kernels of up to a few hundred vertices. Otherwise, all entries below the second
        # bound together hold less than a tenth of what may be dropped, so that none of them is needed.
        bound = -1.0 if full else 2e-4
        while True:
            lowest = np.inf
            for b in range(width):
                counts[s, b] = 0
                inner[b] = 0.0
                if bound * sums[s, b] < lowest:
                    lowest = bound * sums[s, b]
            for i in range(n):
                row = s * n + order[i]
                if largest[row] > lowest:
                    for b in range(width):
                        value = kernels[row, b]
                        if abs(value) > bound * sums[s, b]:
                            candidates[b * n + counts[s, b]] = i
                            sizes[b * n + counts[s, b]] = value
                            counts[s, b] += 1
                            inner[b] += abs(value)
            complete = True
            for b in range(width):
                complete = complete and inner[b] >= keep * sums[s, b]
            if complete or bound < 2e-4:
                break
            bound = min(1e-4, 0.1 * (1.0 - keep) / n)
        for b in range(width):
            begin, smallest, scale, end = used, 0.0, 1.0, b * n + counts[s, b]
            if full:
                total = 0.0
                for k in range(b * n, end):
                    total += sizes[k]
                scale = 1.0 / total
            else:
                smallest = smallest_kept(sizes, b * n, counts[s, b], keep * sums[s, b], histogram, inner)
            for k in range(b * n, end):
                if abs(sizes[k]) >= smallest:
                    entry_vertices[used] = vertices[candidates[k]]
                    entry_values[used] = sizes[k] * scale
                    used += 1
            counts[s, b] = used - begin
    return used


@intrinsic
def _eliminate(
    typing: Any, x: Any, row: Any, begin: Any, end: Any, index: Any, factor: Any, given: Any, given_row: Any,
    weight: Any, scale: Any,
) -> Any:  # fmt: skip
    """x[row] = scale (weight given[given_row] - sum of factor[k] x[index[k]] over begin <= k < end), for rows of tiles.

    All arrays are contiguous: x and given (n, TILE) float32, factor float32, index int32.

    Written in LLVM's representation so that the row stays in vector registers: numba keeps it in memory when the loop
    is written in Python, at a fifth of the speed. Even and odd terms are summed apart, or each addition would wait for
    the one before it.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, index, factor, given = (_data(context, builder, signature, arguments, i) for i in (0, 4, 5, 6))
        target, begin, end, given_row = (_index(context, builder, signature, arguments, i) for i in (1, 2, 3, 7))
        sums = [cgutils.alloca_once(builder, _ROW) for _ in range(2)]
        start = builder.load(_row(builder, given, given_row), align=4)
        builder.store(builder.fmul(start, _spread(builder, arguments[8])), sums[0])
        builder.store(ir.Constant(_ROW, [0.0] * TILE), sums[1])

        def subtract(k: Any, total: Any) -> None:
            other = builder.sext(builder.load(builder.gep(index, [k])), _INT64)
            value = builder.load(_row(builder, x, other), align=4)
            product = builder.fmul(_spread(builder, builder.load(builder.gep(factor, [k]))), value, flags=["contract"])
            builder.store(builder.fsub(builder.load(total), product, flags=["contract"]), total)

        one, two = ir.Constant(_INT64, 1), ir.Constant(_INT64, 2)
        even = builder.add(begin, builder.and_(builder.sub(end, begin), ir.Constant(_INT64, -2)))
        with cgutils.for_range_slice(builder, begin, even, two, _INT64, True) as (k, _):
            subtract(k, sums[0])
            subtract(builder.add(k, one), sums[1])
        with cgutils.for_range_slice(builder, even, end, one, _INT64, True) as (k, _):
            subtract(k, sums[0])
        total = builder.fadd(builder.load(sums[0]), builder.load(sums[1]))
        builder.store(builder.fmul(total, _spread(builder, arguments[9])), _row(builder, x, target), align=4)
        return context.get_dummy_value()

    single = types.float32
    return types.void(x, row, begin, end, index, factor, given, given_row, single, single), generate


@intrinsic
def _advance(typing: Any, x: Any, row: Any, next_row: Any, solved: Any, solved_row: Any, node: Any) -> Any:
    """x[next_row] = 4 (solved[solved_row] - node x[row]), for rows of contiguous float32 tiles."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, solved = (_data(context, builder, signature, arguments, i) for i in (0, 3))
        row, next_row, solved_row = (_index(context, builder, signature, arguments, i) for i in (1, 2, 4))
        value = builder.load(_row(builder, solved, solved_row), align=4)
        product = builder.fmul(_spread(builder, arguments[5]), builder.load(_row(builder, x, row), align=4))
        value = builder.fmul(builder.fsub(value, product), ir.Constant(_ROW, [4.0] * TILE))
        builder.store(value, _row(builder, x, next_row), align=4)
        return context.get_dummy_value()

    return types.void(x, row, next_row, solved, solved_row, types.float32), generate


@intrinsic
def _combine_row(
    typing: Any, kernels: Any, row: Any, solutions: Any, first: Any, stride: Any, coefficients: Any, begin: Any,
    terms: Any, area: Any, partial: Any,
) -> Any:  # fmt: skip
    """kernels[row] = area times the sum over d < terms of coefficients.flat[begin + d] solutions[first + d stride].

    Magnitudes are added to partial[0], and the largest one is returned. All arrays are contiguous float32, the tiles
    with TILE columns.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kernels, solutions, coefficients, partial = (
            _data(context, builder, signature, arguments, i) for i in (0, 2, 5, 9)
        )
        row, first, stride, begin, terms = (_index(context, builder, signature, arguments, i) for i in (1, 3, 4, 6, 7))
        total = cgutils.alloca_once(builder, _ROW)
        builder.store(ir.Constant(_ROW, [0.0] * TILE), total)
        with cgutils.for_range_slice(builder, ir.Constant(_INT64, 0), terms, ir.Constant(_INT64, 1), _INT64, True) as (
            d,
            _,
        ):
            coefficient = builder.load(builder.gep(coefficients, [builder.add(begin, d)]))
            value = builder.load(_row(builder, solutions, builder.add(first, builder.mul(d, stride))), align=4)
            product = builder.fmul(_spread(builder, coefficient), value, flags=["contract"])
            builder.store(builder.fadd(builder.load(total), product, flags=["contract"]), total)
        value = builder.fmul(builder.load(total), _spread(builder, arguments[8]))
        builder.store(value, _row(builder, kernels, row), align=4)
        magnitude = builder.call(_function(builder, "llvm.fabs", _ROW), [value])
        sums = _row(builder, partial, ir.Constant(_INT64, 0))
        builder.store(builder.fadd(builder.load(sums, align=4), magnitude), sums, align=4)
        return builder.call(
            _function(builder, "llvm.vector.reduce.fmax", ir.FloatType()), [magnitude], fastmath=["nnan"]
        )

    signature = types.float32(
        kernels, row, solutions, first, stride, coefficients, begin, terms, types.float32, partial
    )
    return signature, generate


_INT64 = ir.IntType(64)
_ROW = ir.VectorType(ir.FloatType(), TILE)


def _data(context: Any, builder: Any, signature: Any, arguments: Any, i: int) -> Any:
    """Pointer to the first entry of an array argument."""
    return context.make_array(signature.args[i])(context, builder, arguments[i]).data


def _index(context: Any, builder: Any, signature: Any, arguments: Any, i: int) -> Any:
    """An integer argument as int64."""
    return context.cast(builder, arguments[i], signature.args[i], types.int64)


def _function(builder: Any, name: str, result: Any) -> Any:
    """A function of LLVM of one row."""
    return builder.module.declare_intrinsic(f"{name}.v{TILE}f32", fnty=ir.FunctionType(result, [_ROW]))


def _row(builder: Any, data: Any, i: Any) -> Any:
    """Pointer to row i of a tile, as a vector."""
    return builder.bitcast(builder.gep(data, [builder.mul(i, ir.Constant(_INT64, TILE))]), _ROW.as_pointer())


def _spread(builder: Any, scalar: Any) -> Any:
    """A vector with all entries equal to a number."""
    undefined = ir.Constant(_ROW, ir.Undefined)
    first_lane = ir.Constant(ir.VectorType(ir.IntType(32), TILE), [0] * TILE)
    lane = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(lane, undefined, first_lane)
