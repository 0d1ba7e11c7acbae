"""Compilation of numerical functions with numba, cached on disk until the source of any of them changes."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core.event import Listener, install_listener, register

Function = TypeVar("Function", bound=Callable[..., Any])

_callbacks: list[Callable[[], None]] = []


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Decorate a function to be compiled at its first call and cached on disk for later processes.

    A compiled function contains copies of the functions and constants that it uses, including those from other files,
    but numba recompiles it only after edits of its own file. Here an edit of any file with compiled functions counts.

    Parameters
    ----------
    **options
        Options of `numba.njit`, except `cache`.

    Returns
    -------
    callable
        The decorator.
    """

    def decorate(function: Function) -> Function:
        dispatcher = njit(cache=True, **options)(function)
        _install_pause()
        # numba has no public interface for further dependencies of a function. Should a later version keep its stamp
        # elsewhere, its own stays in use, and only those who edit these sources could get a stale function.
        index = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if index is not None and hasattr(index, "_source_stamp"):
            index._source_stamp = _stamp()
        return dispatcher

    return decorate


@contextmanager
def on_compilation(
    callback: Callable[[], None], *, pause: Callable[[], None] | None = None, go_on: Callable[[], None] | None = None
) -> Iterator[None]:
    """While active, call `callback` once, as soon as compilation of code of this package begins.

    Code that numba loads from its disk cache does not count. Compilation in the worker processes of `run_in_processes`
    does.

    Parameters
    ----------
    callback : callable
        Called in the thread that compiles.
    pause, go_on : callable or None
        Called whenever compilation begins here, and when it ends.

    Yields
    ------
    None
    """
    depth = 0  # compiling one function compiles those that it calls

    class Compilation(Listener):  # type: ignore[misc,unused-ignore]
        def on_start(self, event: Any) -> None:
            nonlocal depth
            if _is_own(event):
                depth += 1
                notify_compilation()
                if depth == 1 and pause is not None:
                    pause()

        def on_end(self, event: Any) -> None:
            nonlocal depth
            if _is_own(event):
                depth -= 1
                if depth == 0 and go_on is not None:
                    go_on()

    _callbacks.append(callback)
    try:
        with install_listener("numba:compile", Compilation()):
            yield
    finally:
        if callback in _callbacks:
            _callbacks.remove(callback)


def notify_compilation() -> None:
    """Call all waiting callbacks: compilation has begun, here or in a worker process."""
    while _callbacks:
        _callbacks.pop()()


class _PauseCollection(Listener):  # type: ignore[misc,unused-ignore]
    """Pause Python's garbage collection during compilation, which then takes a fifth less time.

    Compilation creates millions of small objects that live until it ends. Events come from one thread at a time,
    because numba compiles under a lock.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.enabled = False

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.enabled = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.enabled:
            gc.enable()


@lru_cache(maxsize=1)
def _install_pause() -> None:
    register("numba:compile", _PauseCollection())


def _is_own(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith("acnn.")


@lru_cache(maxsize=1)
def _stamp() -> str:
    """Hash of all files of the package with compiled functions."""
    digest = hashlib.blake2b(digest_size=20)
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        source = path.read_bytes()
        if b"\nfrom numba" in source or b"\nfrom acnn.compilation" in source:
            digest.update(f"{path.relative_to(folder).as_posix()} {len(source)}\n".encode())
            digest.update(source)
    return digest.hexdigest()
