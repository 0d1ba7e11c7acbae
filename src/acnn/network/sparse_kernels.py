"""Products of patch operators with tiles of channels and small dense matrices, in compiled code without the GIL.

Weights are read as they are stored, as the bits of float16 numbers: a decoded copy would be twice as large, and reading
it would cost more than decoding on the way. `start`, `vertices` and `values` are those of `PatchOperator`, a block is
one angle and narrow scale, and tiles are as in `acnn.network.vector_rows`. Every number is summed by one thread in one
order, so that results do not depend on how the work is shared out.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.network.vector_rows import gather_rows, multiply_rows, scatter_row

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
    - first: number of the first block (angle * narrow scales + scale)
    - f: (n, p) C-contiguous
    - weights: (blocks, p, width)
    - work, y: (n, width), overwritten and added to
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
    - first: number of the first block
    - x: (n, width) one tile of input channels
    - weights: (blocks, tiles, width, out width); no tiles where y is not wanted
    - work: (n, width), overwritten
    - y: (tiles, n, out width), added to
    - f: (n, p) C-contiguous; no columns where the gradient is not wanted
    - gradient: (blocks, p, width), added to
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
