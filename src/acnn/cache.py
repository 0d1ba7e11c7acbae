"""The cache on disk: its folder, the names of its entries, and its size limit.

The modification time of an entry is that of its last use. Where an added entry makes the cache larger than its limit,
the least recently used entries are removed. Entries used within the last hour stay, and a process that continues to use
some of its entries keeps all of them: training does not lose what it has prepared, however large that is. A
memory-mapped entry that is removed stays readable to the processes that have opened it.
"""

from __future__ import annotations

import logging
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from acnn.errors import InputError
from acnn.files import write_atomic
from acnn.reports import Report

Kind = Literal["patches", "spectra", "descriptors", "unit", "remeshed"]

DEFAULT_LIMIT = 10.0
"""Gigabytes; the operators of a few hundred shapes of 7,000 vertices."""

RECENT = 3600.0
"""Seconds since its last use for which an entry counts as in use."""

LIMIT_FILE = "limit.txt"
"""The file in the cache that holds the limit in gigabytes, where it is not `DEFAULT_LIMIT`."""

_KINDS = "|".join(get_args(Kind))
_ENTRY = re.compile(rf"({_KINDS})-[0-9a-f]+\.safetensors")
_PART = re.compile(rf"\.({_KINDS})-[0-9a-f]+-[0-9a-f]{{32}}\.part")

_log = logging.getLogger("acnn.cache")
_in_use: set[Path] = set()
_refreshed = 0.0


@dataclass(frozen=True)
class _Entry:
    path: Path
    size: int
    used: float


def cache_folder() -> Path:
    """The folder of the cache: `ACNN_CACHE`, else `acnn` in the user's cache folder of this system."""
    from platformdirs import user_cache_path

    folder = os.environ.get("ACNN_CACHE")
    return Path(folder) if folder else user_cache_path("acnn", appauthor=False)


def entry_path(kind: Kind, key: str, folder: Path | None = None) -> Path:
    """The file of an entry.

    Parameters
    ----------
    kind : str
        Kind of the entry.
    key : str
        Hash in hexadecimal digits.
    folder : Path or None
        None stands for `cache_folder()`.

    Returns
    -------
    Path
    """
    return (folder or cache_folder()) / f"{kind}-{key}.safetensors"


def mark_used(path: Path) -> None:
    """Record that this process uses an entry; every quarter of an hour, for all entries that it has used."""
    global _refreshed
    _in_use.add(path)
    if time.time() - _refreshed < RECENT / 4:
        _touch(path)
        return
    _refreshed = time.time()
    for each in tuple(_in_use):
        _touch(each)


def mark_added(path: Path) -> None:
    """Record that this process has written an entry, and reduce the cache to its limit."""
    _in_use.add(path)
    for each in tuple(_in_use):  # whenever they were used: what this process uses must not be removed
        _touch(each)
    shrink(path.parent)


def check_exists(path: Path) -> None:
    """Raise InputError where an entry that is in use has been removed by another process or by hand."""
    if not path.is_file():
        raise InputError(
            f"{path}: was removed from the cache while it was in use. Run the command again to recompute it."
        )


def limit_of(folder: Path) -> float:
    """The limit of a cache in gigabytes."""
    try:
        limit = float((folder / LIMIT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return DEFAULT_LIMIT
    return limit if limit >= 0 else DEFAULT_LIMIT


def set_limit(folder: Path, gigabytes: float) -> int:
    """Set the limit of a cache, for all processes that share it, and reduce the cache to it.

    Parameters
    ----------
    folder : Path
    gigabytes : float

    Returns
    -------
    int
        Number of entries removed.

    Raises
    ------
    InputError
        Where the limit is negative or not finite, or the cache cannot be written.
    """
    if not 0 <= gigabytes < float("inf"):
        raise InputError(f"--limit {gigabytes}: give the gigabytes that the cache may hold, 0 or more.")
    write_atomic(folder / LIMIT_FILE, f"{gigabytes!r}\n".encode())
    return shrink(folder)


def shrink(folder: Path) -> int:
    """Remove the least recently used entries of a cache until the rest is within its limit.

    Returns
    -------
    int
        Number of entries removed; those used within the last hour stay, whatever the limit.
    """
    entries = sorted(_entries(folder), key=lambda entry: entry.used)
    size = sum(entry.size for entry in entries)
    allowed, recent = 1e9 * limit_of(folder), time.time() - RECENT
    removed = 0
    for entry in entries:
        if size <= allowed or entry.used > recent:
            break
        if _remove(entry.path):
            removed += 1
            size -= entry.size
    return removed


def clear(folder: Path) -> int:
    """Remove all entries of a cache, and temporary files of processes that were killed; no other file.

    Returns
    -------
    int
        Number of entries removed.
    """
    removed = sum(1 for entry in _entries(folder) if _remove(entry.path))
    for path in _files(folder):
        with suppress(OSError):
            if _PART.fullmatch(path.name) and path.stat().st_mtime < time.time() - RECENT:
                path.unlink()
    return removed


@dataclass(frozen=True, eq=False)
class CacheSummary(Report):
    """Folder of a cache, number of its entries, their size, and its limit."""

    folder: str
    entries: int
    megabytes: float
    limit_gb: float


def cache_summary(folder: Path) -> CacheSummary:
    """Summary of a cache."""
    entries = _entries(folder)
    size = sum(entry.size for entry in entries)
    return CacheSummary(str(folder), len(entries), round(size / 1e6, 1), limit_of(folder))


def _entries(folder: Path) -> list[_Entry]:
    entries = []
    for path in _files(folder):
        if _ENTRY.fullmatch(path.name):
            with suppress(OSError):  # another process has just removed it
                status = path.stat()
                entries.append(_Entry(path, status.st_size, status.st_mtime))
    return entries


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except FileNotFoundError:
        _in_use.discard(path)
    except OSError:  # a read-only cache
        pass


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:  # removed by another process, or open in one on a system that does not allow this
        return False
    _log.debug("removed %s", path)
    return True
