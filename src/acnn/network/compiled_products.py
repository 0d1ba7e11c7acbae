"""Compiled products of sparse rows with narrow tiles of channels, kept in vector registers.

A tile is a C-contiguous array (rows, width) of float32 or float64 with one of `WIDTHS` columns. They are
written in LLVM's own terms because numba keeps a row in memory when the same loop is written in Python, at a fifth of
the speed. They are compiled into `sparse_kernels.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from acnn.compilation import compiled

WIDTHS = (32, 16, 8)
"""Columns of a tile. Of 32 and of 64, 32 is faster: a tile of 6,890 rows then stays in the second-level cache."""

_INDEX = ir.IntType(64)
_WORD = ir.IntType(32)
_compiled: Any = intrinsic(prefer_literal=True)


@_compiled
def gather_rows(
    typing: Any, x: Any, y: Any, i: Any, begin: Any, end: Any, vertices: Any, values: Any, width: Any
) -> Any:
    """y[i] += sum of values[k] x[vertices[k]] over begin <= k < end; values are the bits of float16 numbers.

    Rows are summed in several interleaved parts, or each addition would wait for the one before it.
    """
    lanes = width.literal_value
    parts = 64 // lanes

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (x_row, y_row), entry, (i, begin, end) = _sparse(context, builder, signature, arguments, lanes)
        vector = y_row(i).type.pointee
        sums = [cgutils.alloca_once(builder, vector) for _ in range(parts)]
        builder.store(builder.load(y_row(i), align=4), sums[0])
        for total in sums[1:]:
            builder.store(ir.Constant(vector, [0.0] * lanes), total)

        def add(k: Any, total: Any) -> None:
            vertex, weight = entry(k)
            _fused_add(builder, total, weight, builder.load(x_row(vertex), align=4))

        step = ir.Constant(_INDEX, parts)
        whole = builder.add(begin, builder.mul(builder.udiv(builder.sub(end, begin), step), step))
        with cgutils.for_range_slice(builder, begin, whole, step, _INDEX, True) as (k, _):
            for part, total in enumerate(sums):
                add(builder.add(k, ir.Constant(_INDEX, part)), total)
        with cgutils.for_range_slice(builder, whole, end, ir.Constant(_INDEX, 1), _INDEX, True) as (k, _):
            add(k, sums[0])
        result = builder.load(sums[0])
        for total in sums[1:]:
            result = builder.fadd(result, builder.load(total))
        builder.store(result, y_row(i), align=4)
        return context.get_dummy_value()

    return types.void(x, y, i, begin, end, vertices, values, width), generate


@_compiled
def scatter_row(
    typing: Any, y: Any, x: Any, i: Any, begin: Any, end: Any, vertices: Any, values: Any, width: Any
) -> Any:
    """x[vertices[k]] += values[k] y[i] for begin <= k < end: the adjoint of `gather_rows`."""
    lanes = width.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (y_row, x_row), entry, (i, begin, end) = _sparse(context, builder, signature, arguments, lanes)
        own = builder.load(y_row(i), align=4)
        with cgutils.for_range_slice(builder, begin, end, ir.Constant(_INDEX, 1), _INDEX, True) as (k, _):
            vertex, weight = entry(k)
            product = builder.fmul(weight, own, flags=["contract"])
            old = builder.load(x_row(vertex), align=4)
            builder.store(builder.fadd(old, product, flags=["contract"]), x_row(vertex), align=4)
        return context.get_dummy_value()

    return types.void(y, x, i, begin, end, vertices, values, width), generate


@_compiled
def multiply_rows(
    typing: Any,
    a: Any,
    first: Any,
    row_stride: Any,
    stride: Any,
    b: Any,
    begin: Any,
    end: Any,
    c: Any,
    i: Any,
    column: Any,
    rows: Any,
    lanes: Any,
    width: Any,
) -> Any:
    """c[i + r] += sum of a[first + r row_stride + k stride] b[k] over begin <= k < end, for 0 <= r < rows.

    The inner part of a matrix product, on columns column to column + lanes of the tiles b and c. a is read as one flat
    array, so that it may be transposed by its strides; k = begin reads a[first + r row_stride].
    """
    count = rows.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a_data, b_data, c_data = (_data(context, builder, signature, arguments, k) for k in (0, 4, 7))
        first, row_stride, stride, begin, end, i, column = (
            context.cast(builder, arguments[k], signature.args[k], types.int64) for k in (1, 2, 3, 5, 6, 8, 9)
        )
        part = lanes.literal_value
        b_row, c_row = (
            _rows(builder, builder.gep(data, [column]), part, width.literal_value) for data in (b_data, c_data)
        )
        vector = c_row(i).type.pointee
        targets = [c_row(builder.add(i, ir.Constant(_INDEX, r))) for r in range(count)]
        sums = [cgutils.alloca_once(builder, vector) for _ in range(count)]
        for target, total in zip(targets, sums, strict=True):
            builder.store(builder.load(target, align=4), total)
        with cgutils.for_range_slice(builder, begin, end, ir.Constant(_INDEX, 1), _INDEX, True) as (k, _):
            row = builder.load(b_row(k), align=4)
            place = builder.add(first, builder.mul(builder.sub(k, begin), stride))
            for total in sums:
                factor = _spread(builder, builder.load(builder.gep(a_data, [place])), part)
                _fused_add(builder, total, factor, row)
                place = builder.add(place, row_stride)
        for target, total in zip(targets, sums, strict=True):
            builder.store(builder.load(total), target, align=4)
        return context.get_dummy_value()

    return types.void(a, first, row_stride, stride, b, begin, end, c, i, column, rows, lanes, width), generate


def _sparse(
    context: Any, builder: Any, signature: Any, arguments: Any, lanes: int
) -> tuple[list[Callable[[Any], Any]], Callable[[Any], tuple[Any, Any]], list[Any]]:
    """Rows of both tiles, entries (vertex, weight in all lanes) and the bounds of a gather or scatter."""
    tiles = [_data(context, builder, signature, arguments, k) for k in (0, 1)]
    vertices, values = (_data(context, builder, signature, arguments, k) for k in (5, 6))
    bounds = [context.cast(builder, arguments[k], signature.args[k], types.int64) for k in (2, 3, 4)]
    number = tiles[0].type.pointee

    def entry(k: Any) -> tuple[Any, Any]:
        vertex = builder.zext(builder.load(builder.gep(vertices, [k])), _INDEX)
        weight = _decoded(builder, builder.load(builder.gep(values, [k])))
        if isinstance(number, ir.DoubleType):
            weight = builder.fpext(weight, number)
        return vertex, _spread(builder, weight, lanes)

    return [_rows(builder, tile, lanes, lanes) for tile in tiles], entry, bounds


def _data(context: Any, builder: Any, signature: Any, arguments: Any, k: int) -> Any:
    """Pointer to the first number of an array argument."""
    return context.make_array(signature.args[k])(context, builder, arguments[k]).data


def _rows(builder: Any, data: Any, lanes: int, width: int) -> Callable[[Any], Any]:
    """Function from the number of a row of a tile to a pointer to its first lanes as one vector."""
    vector = ir.VectorType(data.type.pointee, lanes).as_pointer()
    return lambda i: builder.bitcast(builder.gep(data, [builder.mul(i, ir.Constant(_INDEX, width))]), vector)


def _spread(builder: Any, number: Any, lanes: int) -> Any:
    """A vector with one number in all lanes."""
    undefined = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    lane = builder.insert_element(undefined, number, ir.Constant(_WORD, 0))
    return builder.shuffle_vector(lane, undefined, ir.Constant(ir.VectorType(_WORD, lanes), [0] * lanes))


def _fused_add(builder: Any, total: Any, factor: Any, row: Any) -> None:
    """total += factor row, in one instruction where the processor has it."""
    product = builder.fmul(factor, row, flags=["contract"])
    builder.store(builder.fadd(builder.load(total), product, flags=["contract"]), total)


def _decoded(builder: Any, bits: Any) -> Any:
    """The float32 of a finite float16 given by its bits, with instructions that every processor has.

    Exponent and fraction are moved to their place in a float32, where the exponent is then 112 too small.
    """
    bits = builder.zext(bits, _WORD)
    size = builder.shl(builder.and_(bits, ir.Constant(_WORD, 0x7FFF)), ir.Constant(_WORD, 13))
    sign = builder.shl(builder.and_(bits, ir.Constant(_WORD, 0x8000)), ir.Constant(_WORD, 16))
    number = builder.bitcast(builder.or_(size, sign), ir.FloatType())
    return builder.fmul(number, ir.Constant(ir.FloatType(), 2.0**112))


_CHUNK = 128
"""Rows of a tile multiplied at once: they stay in the first-level cache."""


@compiled(nogil=True, boundscheck=False)
def filter_then_gather(
    start: NDArray[Any],
    vertices: NDArray[Any],
    values: NDArray[Any],
    first: int,
    f: NDArray[Any],
    weights: NDArray[Any],
    work: NDArray[Any],
    y: NDArray[Any],
) -> None:
    """y += sum over blocks b of D_b (f A_b), for one tile of output channels.

    Parameters
    ----------
    first : int
        Number of the first block (angle * narrow scales + scale).
    f : (n, p) array
        C-contiguous.
    weights : (blocks, p, width) array
    work, y : (n, width) array
        Overwritten and added to.
    """
    n, p = f.shape
    for b in range(len(weights)):
        work[:] = 0
        for k in range(0, p, _CHUNK):
            _add_product(f.ravel()[k:], p, 1, n, weights[b][k : k + _CHUNK], work)
        add_gathered(start, vertices, values, first + b, 0, n, work, y)


@compiled(nogil=True, boundscheck=False)
def sparse_then_filter(
    start: NDArray[Any],
    vertices: NDArray[Any],
    values: NDArray[Any],
    first: int,
    transposed: bool,
    x: NDArray[Any],
    weights: NDArray[Any],
    work: NDArray[Any],
    y: NDArray[Any],
    f: NDArray[Any],
    gradient: NDArray[Any],
) -> None:
    """With h_b = D_b x, or D_b^T x: y += sum over blocks b of h_b A_b, and gradient_b = f^T h_b.

    Parameters
    ----------
    first : int
        Number of the first block.
    x : (n, width) array
        One tile of input channels.
    weights : (blocks, tiles, width, out width) array
        No tiles where y is not wanted.
    work : (n, width) array
        Overwritten.
    y : (tiles, n, out width) array
        Added to.
    f : (n, p) array
        C-contiguous; no columns where the gradient is not wanted.
    gradient : (blocks, p, width) array
        Added to.
    """
    n, p = f.shape
    for b in range(len(weights)):
        work[:] = 0
        if transposed:
            add_scattered(start, vertices, values, first + b, 0, n, x, work)
        else:
            add_gathered(start, vertices, values, first + b, 0, n, x, work)
        for tile in range(weights.shape[1]):
            _add_product(work.ravel(), work.shape[1], 1, n, weights[b, tile], y[tile])
        if p > 0:
            for i in range(0, n, _CHUNK):
                _add_product(f[i : i + _CHUNK].ravel(), 1, p, p, work[i : i + _CHUNK], gradient[b])


@compiled(nogil=True, boundscheck=False)
def add_gathered(
    start: NDArray[Any],
    vertices: NDArray[Any],
    values: NDArray[Any],
    block: int,
    begin: int,
    end: int,
    x: NDArray[Any],
    y: NDArray[Any],
) -> None:
    """y += rows begin to end of D x: x (n, width), y (end - begin, width)."""
    row, width = block * len(x) + begin, x.shape[1]
    if width == 32:
        for i in range(end - begin):
            gather_rows(x, y, i, start[row + i], start[row + i + 1], vertices, values, 32)
    elif width == 16:
        for i in range(end - begin):
            gather_rows(x, y, i, start[row + i], start[row + i + 1], vertices, values, 16)
    else:
        for i in range(end - begin):
            gather_rows(x, y, i, start[row + i], start[row + i + 1], vertices, values, 8)


@compiled(nogil=True, boundscheck=False)
def add_scattered(
    start: NDArray[Any],
    vertices: NDArray[Any],
    values: NDArray[Any],
    block: int,
    begin: int,
    end: int,
    y: NDArray[Any],
    x: NDArray[Any],
) -> None:
    """x += (rows begin to end of D)^T y: y (end - begin, width), x (n, width). The adjoint of `add_gathered`."""
    row, width = block * len(x) + begin, x.shape[1]
    if width == 32:
        for i in range(end - begin):
            scatter_row(y, x, i, start[row + i], start[row + i + 1], vertices, values, 32)
    elif width == 16:
        for i in range(end - begin):
            scatter_row(y, x, i, start[row + i], start[row + i + 1], vertices, values, 16)
    else:
        for i in range(end - begin):
            scatter_row(y, x, i, start[row + i], start[row + i + 1], vertices, values, 8)


@compiled(nogil=True, boundscheck=False)
def _add_product(a: NDArray[Any], row_stride: int, stride: int, rows: int, b: NDArray[Any], c: NDArray[Any]) -> None:
    """c[i] += sum over k of a[i row_stride + k stride] b[k], with as many rows at once as fill the registers."""
    count, width = b.shape
    i = 0
    if width == 32:
        while i + 6 <= rows:
            multiply_rows(a, i * row_stride, row_stride, stride, b, 0, count, c, i, 0, 6, 16, 32)
            multiply_rows(a, i * row_stride, row_stride, stride, b, 0, count, c, i, 16, 6, 16, 32)
            i += 6
        while i < rows:
            multiply_rows(a, i * row_stride, row_stride, stride, b, 0, count, c, i, 0, 1, 32, 32)
            i += 1
    elif width == 16:
        while i + 6 <= rows:
            multiply_rows(a, i * row_stride, row_stride, stride, b, 0, count, c, i, 0, 6, 16, 16)
            i += 6
        while i < rows:
            multiply_rows(a, i * row_stride, row_stride, stride, b, 0, count, c, i, 0, 1, 16, 16)
            i += 1
    else:
        while i + 8 <= rows:
            multiply_rows(a, i * row_stride, row_stride, stride, b, 0, count, c, i, 0, 8, 8, 8)
            i += 8
        while i < rows:
            multiply_rows(a, i * row_stride, row_stride, stride, b, 0, count, c, i, 0, 1, 8, 8)
            i += 1
