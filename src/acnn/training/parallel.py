"""Parallel work: independent tasks on processes or a Dask scheduler, and distributed training with torchrun."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import wait as wait_for_any
from multiprocessing.synchronize import Event
from typing import TYPE_CHECKING, Any, TypeVar

from acnn.compilation import notify_compilation, on_compilation
from acnn.errors import InputError

if TYPE_CHECKING:
    from torch import nn

T = TypeVar("T")
R = TypeVar("R")

ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
NOTICE_SECONDS = 1.0
"""How often the main process looks whether its workers are compiling."""

GRACE = 5.0
"""Seconds that a process has to end by itself before it is killed: signals wait until compiled code returns."""

DIED = "its process ended without a message, most likely for lack of memory"


def run_in_processes(
    function: Callable[[T], R], tasks: list[T], workers: int
) -> Generator[tuple[int, R | str], None, None]:
    """Yield (number of the task, its result) as results come from processes of one thread each.

    A task whose process dies (killed, out of memory) gives the text `DIED`; the others are done all the same. When the
    iteration is closed or interrupted, tasks not begun are dropped and those under way are ended. The processes end
    with this one, even where it is killed.

    Parameters
    ----------
    function : callable
        Importable, as it is called in other processes; what it raises is raised here, and ends the others.

    Raises
    ------
    InputError
        Where no process can be started at all.
    """
    left = list(range(len(tasks)))
    works = False
    while left:
        begun: set[int] = set()
        for index, result in _run_pool(function, tasks, left, workers, begun):
            left.remove(index)
            works = True
            yield index, result
        # A process died and took its pool along: whose fault it was shows when each task is alone.
        suspects = [index for index in left if index in begun]
        if suspects and not works and not list(_run_pool(abs, [0], [0], 1, set())):
            raise InputError(
                "No further process can be started. A script that asks for several workers must guard its main part "
                "with 'if __name__ == \"__main__\":', since each process reads it again."
            )
        while suspects:
            for index, result in _run_pool(function, tasks, list(suspects), 1, set()):
                suspects.remove(index)
                left.remove(index)
                yield index, result
            if suspects:
                left.remove(suspects[0])
                yield suspects.pop(0), DIED


def run_on_scheduler(
    function: Callable[[T], R], tasks: list[T], address: str
) -> Generator[tuple[int, R | str], None, None]:
    """Yield (number of the task, its result) as results come from the workers of a Dask scheduler.

    A task that is lost (its worker was killed over and over) gives a text that states it.

    Raises
    ------
    InputError
        Where Dask is not installed or no scheduler answers.
    """
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise InputError("A scheduler needs Dask: pip install 'acnn[dask]'.") from error
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"No Dask scheduler answers at '{address}' ({error}). Start one with 'dask scheduler', workers with "
            "'dask worker ADDRESS', and give the address it prints, such as tcp://192.168.0.1:8786."
        ) from error
    try:
        if not client.scheduler_info().get("workers"):
            raise InputError(
                f"The Dask scheduler at '{address}' has no workers: start some with 'dask worker {address}'."
            )
        futures = {client.submit(function, task, pure=False): index for index, task in enumerate(tasks)}
        try:
            for future in as_completed(list(futures), loop=client.loop):
                lost = future.exception()
                yield futures[future], future.result() if lost is None else f"{type(lost).__name__}: {lost}"
        finally:
            client.cancel([future for future in futures if not future.done()])
    finally:
        client.close(timeout=5)


def _run_pool(
    function: Callable[[T], R], tasks: list[T], wanted: list[int], workers: int, begun: set[int]
) -> Generator[tuple[int, R], None, None]:
    """Results of the wanted tasks from one pool; ends early, without the rest, where a process of it dies.

    Tasks given to the pool are put into `begun`. One worker is given one task at a time, in order.
    """
    context = multiprocessing.get_context("spawn")
    finished = False
    compiling = context.Event()
    with _one_thread_each():
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(compiling,))
        try:
            # Few at a time, so that dropping the rest is quick and tasks do not pile up in pipes.
            waiting, running = list(reversed(wanted)), dict[Future[Any], int]()
            while waiting or running:
                while waiting and len(running) < (1 if workers == 1 else 2 * workers):
                    index = waiting.pop()
                    begun.add(index)
                    running[pool.submit(_run_or_leave, function, tasks[index])] = index
                for future in wait(running, NOTICE_SECONDS, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
                if compiling.is_set():
                    notify_compilation()
            finished = True
        except BrokenProcessPool:
            finished = True
        finally:
            _close(pool, at_once=not finished)


def _close(pool: ProcessPoolExecutor, at_once: bool) -> None:
    if at_once:
        processes = list((getattr(pool, "_processes", None) or {}).values())
        for process in processes:
            process.terminate()
        running = {process.sentinel: process for process in processes}
        until = time.monotonic() + GRACE
        while running and (ended := wait_for_any(list(running), max(0.0, until - time.monotonic()))):
            for sentinel in ended:
                del running[sentinel]
        for process in running.values():
            process.kill()
    pool.shutdown(wait=True, cancel_futures=True)


def _run_or_leave(function: Callable[[T], R], task: T) -> R:
    try:
        return function(task)
    except SystemExit:
        # The pool would take this for a result and go on with the next task.
        os._exit(143)


def _start_worker(compiling: Event) -> None:
    """Leave Ctrl-C to the main process, clean up (temporary files) when it stops or is gone, and report compilation."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    threading.Thread(target=_end_with_main_process, daemon=True).start()
    until_the_end = ExitStack()
    until_the_end.enter_context(on_compilation(compiling.set))
    atexit.register(until_the_end.close)


def _end_with_main_process() -> None:
    main = multiprocessing.parent_process()
    assert main is not None
    main.join()
    os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Numerical libraries read these when they are loaded, which in a fresh process is before any code of ours runs."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class Processes:
    """The processes of a run: who this one is, and sums over all of them, through gloo.

    PyTorch is imported where there are several only: workers of `run_in_processes` start twice as fast without it.
    """

    def __init__(self) -> None:
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.count > 1:
            import torch.distributed as dist

            if not dist.is_initialized():
                dist.init_process_group("gloo")

    def sum(self, value: float) -> float:
        """The sum of a number over all processes."""
        if self.count == 1:
            return value
        import torch
        import torch.distributed as dist

        tensor = torch.tensor([value], dtype=torch.float64)
        dist.all_reduce(tensor)
        return float(tensor)

    def agreed(self, value: float) -> float:
        """The first process's value, for all: clocks differ."""
        if self.count == 1:
            return value
        import torch
        import torch.distributed as dist

        tensor = torch.tensor([value], dtype=torch.float64)
        dist.broadcast(tensor, 0)
        return float(tensor)

    def sum_gradients(self, model: nn.Module) -> None:
        """Replace every gradient by the sum over all processes."""
        if self.count == 1:
            return
        import torch
        import torch.distributed as dist

        for parameter in model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def average_buffers(self, model: nn.Module) -> None:
        """Replace running statistics by their mean over all processes."""
        if self.count == 1:
            return
        import torch.distributed as dist

        for buffer in model.buffers():
            if buffer.is_floating_point():
                dist.all_reduce(buffer)
                buffer /= self.count
