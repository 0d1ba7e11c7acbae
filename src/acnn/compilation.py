"""Compilation of numerical functions with numba, kept on disk until the source of any of them changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Decorate a function to be compiled at its first call and kept on disk for later processes.

    A compiled function holds copies of the functions and constants that it uses, also of those from other files, but
    numba recompiles it only after edits of its own file. Here an edit of any file with compiled functions counts.

    Parameters
    ----------
    **options
        Those of `numba.njit`, without `cache`.

    Returns
    -------
    Callable
        The decorator.
    """

    def decorate(function: Function) -> Function:
        dispatcher = njit(cache=True, **options)(function)
        # numba has no public way to state what else a function depends on. Should a later version keep its stamp
        # elsewhere, its own remains, and only someone who edits these sources could meet a stale function.
        index = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if index is not None and hasattr(index, "_source_stamp"):
            index._source_stamp = _stamp()
        return dispatcher

    return decorate


@lru_cache(maxsize=1)
def _stamp() -> str:
    """Hash of all files of the package that hold compiled functions."""
    digest = hashlib.blake2b(digest_size=20)
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*.py")):
        source = path.read_bytes()
        if b"\nfrom numba" in source or b"\nfrom acnn.compilation" in source:
            digest.update(f"{path.relative_to(folder).as_posix()} {len(source)}\n".encode())
            digest.update(source)
    return digest.hexdigest()
