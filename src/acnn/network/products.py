"""Products of the sparse rows of a patch operator, and of their adjoint, with arrays, distributed over threads.

With D_b the (n, n) matrix of block b (one angle and narrow scale) and A_b its (p, q) weights,

    y = sum_b D_b f A_b,      df = sum_b D_b^T g A_b^T,      dA_b = f^T D_b^T g.

n x (blocks x channels) numbers are never held: each task works through its blocks with one tile of channels. Tasks do
not depend on the number of threads and their results are added in one order, so neither does any bit of the results.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_TASKS = 8
"""Tasks aimed at: enough to keep several threads busy to the end, few enough that adding their results costs little."""

_COST = {32: 55, 16: 42, 8: 36}
"""Measured cost of one sparse product with a tile, by its width: its columns share the reading of entries."""


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows of a `PatchOperator` as its kernels read them.

    Attributes
    ----------
    start : (blocks * n + 1,) int64 array
    vertices : (entries,) array
        Uint16 or int32.
    values : (entries,) array
        Uint16, the bits of float16 numbers.
    n, blocks : int
        Vertices, and angles times narrow scales.
    """

    start: NDArray[np.int64]
    vertices: NDArray[Any]
    values: NDArray[np.uint16]
    n: int
    blocks: int


def convolve(rows: StoredRows, f: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """y = sum_b D_b f A_b: f (n, p), weights (blocks, p, q), y (n, q); float32 or float64.

    The sparse product is taken on the side with fewer channels.
    """
    from acnn.network.compiled_products import filter_then_gather, sparse_then_filter

    n, (blocks, p, q) = rows.n, weights.shape
    total = np.zeros((n, q), f.dtype)
    f = np.ascontiguousarray(f)
    if q <= p:
        width = _width(q)
        banks = _tiled(weights, width)  # (tiles, blocks, p, width)

        def gathered(task: tuple[int, slice]) -> tuple[int, NDArray[Any]]:
            tile, part = task
            y = np.zeros((n, width), f.dtype)
            filter_then_gather(
                rows.start, rows.vertices, rows.values, part.start, f, banks[tile, part], np.empty_like(y), y
            )
            return tile, y

        for tile, y in in_order(gathered, _tasks(len(banks), blocks)):
            _add_tile(total, tile, y)
        return total

    width, out = _width(p), _width(q)
    x, banks = _tiled(f, width), _tiled_twice(weights.transpose(0, 2, 1), width, out)
    nothing, no_gradient = np.empty((n, 0), f.dtype), np.empty((blocks, 0, width), f.dtype)

    def filtered(task: tuple[int, slice]) -> NDArray[Any]:
        tile, part = task
        y = np.zeros((banks.shape[2], n, out), f.dtype)
        work = np.empty((n, width), f.dtype)
        stored = rows.start, rows.vertices, rows.values, part.start
        sparse_then_filter(*stored, False, x[tile], banks[tile, part], work, y, nothing, no_gradient)
        return y

    for tiles in in_order(filtered, _tasks(len(x), blocks)):
        for tile, y in enumerate(tiles):
            _add_tile(total, tile, y)
    return total


def convolve_adjoint(
    rows: StoredRows,
    f: NDArray[Any],
    weights: NDArray[Any],
    g: NDArray[Any],
    *,
    wants_f: bool = True,
    wants_weights: bool = True,
) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    """df (n, p) and dA (blocks, p, q) for the gradient g (n, q) of `convolve`; None for what is not wanted."""
    from acnn.network.compiled_products import sparse_then_filter

    n, (blocks, p, q) = rows.n, weights.shape
    width, out = _width(q), _width(p)
    x = _tiled(g, width)
    banks = _tiled_twice(weights, width, out)  # (tiles of q, blocks, tiles of p, width, out)
    if not wants_f:
        banks = banks[:, :, :0]
    f = np.ascontiguousarray(f) if wants_weights else np.empty((n, 0), f.dtype)
    gradients = np.zeros((len(x), blocks, f.shape[1], width), f.dtype)
    total = np.zeros((n, p), f.dtype)

    def filtered(task: tuple[int, slice]) -> NDArray[Any]:
        tile, part = task
        y = np.zeros((banks.shape[2], n, out), f.dtype)
        work = np.empty((n, width), f.dtype)
        stored = rows.start, rows.vertices, rows.values, part.start
        sparse_then_filter(*stored, True, x[tile], banks[tile, part], work, y, f, gradients[tile, part])
        return y

    for tiles in in_order(filtered, _tasks(len(x), blocks)):
        for tile, y in enumerate(tiles):
            _add_tile(total, tile, y)
    joined = gradients.transpose(1, 2, 0, 3).reshape(blocks, f.shape[1], len(x) * width)[:, :, :q]
    return total if wants_f else None, np.ascontiguousarray(joined) if wants_weights else None


def patch_values(rows: StoredRows, f: NDArray[Any], begin: int, end: int) -> NDArray[Any]:
    """(blocks, end - begin, p) patches D_b f of the vertices begin to end."""
    from acnn.network.compiled_products import add_gathered

    x = _tiled(f, _width(f.shape[1]))
    patches = np.empty((rows.blocks, end - begin, f.shape[1]), f.dtype)

    def gathered(task: tuple[int, slice]) -> None:
        tile, part = task
        columns = slice(tile * x.shape[2], (tile + 1) * x.shape[2])
        for block in range(part.start, part.stop):
            y = np.zeros((end - begin, x.shape[2]), f.dtype)
            add_gathered(rows.start, rows.vertices, rows.values, block, begin, end, x[tile], y)
            patches[block, :, columns] = y[:, : patches[block, :, columns].shape[1]]

    for _ in in_order(gathered, _tasks(len(x), rows.blocks)):
        pass
    return patches


def patch_values_adjoint(rows: StoredRows, g: NDArray[Any], begin: int, end: int) -> NDArray[Any]:
    """(n, p) sum over blocks of D_b^T g_b, for the gradient g (blocks, end - begin, p) of `patch_values`."""
    from acnn.network.compiled_products import add_scattered

    y = _tiled(g, _width(g.shape[2]))
    total = np.zeros((rows.n, g.shape[2]), g.dtype)

    def scattered(task: tuple[int, slice]) -> tuple[int, NDArray[Any]]:
        tile, part = task
        x = np.zeros((rows.n, y.shape[3]), g.dtype)
        for block in range(part.start, part.stop):
            add_scattered(rows.start, rows.vertices, rows.values, block, begin, end, y[tile, block], x)
        return tile, x

    for tile, x in in_order(scattered, _tasks(len(y), rows.blocks)):
        _add_tile(total, tile, x)
    return total


def _tasks(tiles: int, blocks: int) -> Iterator[tuple[int, slice]]:
    """Tile and blocks of each task."""
    parts = min(blocks, -(-_TASKS // tiles))
    edges = np.linspace(0, blocks, parts + 1).astype(int).tolist()
    return ((t, slice(a, b)) for t in range(tiles) for a, b in pairwise(edges))


def _width(channels: int) -> int:
    """The width of tiles with which so many channels cost least."""
    return min(_COST, key=lambda width: -(-channels // width) * _COST[width])


def _tiled(x: NDArray[Any], width: int) -> NDArray[Any]:
    """(..., c) as C-contiguous tiles (ceil(c / width), ..., width), the last one filled up with zeros."""
    tiles = -(-x.shape[-1] // width)
    result = np.zeros((tiles, *x.shape[:-1], width), x.dtype)
    for tile in range(tiles):
        part = x[..., tile * width : (tile + 1) * width]
        result[tile, ..., : part.shape[-1]] = part
    return result


def _tiled_twice(weights: NDArray[Any], width: int, out: int) -> NDArray[Any]:
    """(blocks, p, q) as C-contiguous tiles (tiles of q, blocks, tiles of p, width, out) of the transposed matrices."""
    tiles = _tiled(_tiled(weights, width).transpose(0, 1, 3, 2), out)  # (tiles of p, tiles of q, blocks, width, out)
    return np.ascontiguousarray(tiles.transpose(1, 2, 0, 3, 4))


def _add_tile(total: NDArray[Any], tile: int, y: NDArray[Any]) -> None:
    """Add a tile (n, width) to its columns of (n, c)."""
    columns = total[:, tile * y.shape[1] : (tile + 1) * y.shape[1]]
    columns += y[:, : columns.shape[1]]


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Results of `work` on each item, in the order of the items, on `torch.get_num_threads()` threads.

    As many items are in flight as there are threads, so that memory stays bounded; what is done with the results
    happens in one order, so that sums of them are the same in every run.
    """
    import torch

    threads = torch.get_num_threads()
    if threads == 1:
        yield from map(work, items)
        return
    pool = _pool(threads, os.getpid())
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > threads:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """One pool for each process: threads do not survive a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"acnn-{process}")
