"""Threads for compiled work that runs without the GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

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
