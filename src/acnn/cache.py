"""The cache on disk: where it is, the names of its entries, and how large it may become.

An entry is used by the last process that wrote or read it, which its time of change shows. Where an entry is added and
all of them are larger than the limit, those not used for the longest time are removed. Entries used within the last
hour stay, and a process that goes on using some of its entries keeps all of them: training does not lose what it has
prepared, however large that is. A memory-mapped entry that is removed stays readable to who has opened it.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from acnn.errors import InputError
from acnn.files import write_whole

Kind = Literal["patches", "spectra", "descriptors", "unit", "remeshed"]

DEFAULT_LIMIT = 10.0
"""Gigabytes; the operators of a few hundred shapes of 7,000 vertices."""

RECENT = 3600.0
"""Seconds since its last use for which an entry is taken to be in use."""

LIMIT_FILE = "limit.txt"
"""The file in the cache that holds the limit in gigabytes, where it is not `DEFAULT_LIMIT`."""

_KINDS = "|".join(get_args(Kind))
_ENTRY = re.compile(rf"({_KINDS})-[0-9a-f]+\.safetensors")
_PART = re.compile(rf"\.({_KINDS})-[0-9a-f]+-[0-9a-f]{{32}}\.part")

_in_use: set[Path] = set()
_refreshed = 0.0


@dataclass(frozen=True)
class _Entry:
    path: Path
    size: int
    used: float


def cache_folder() -> Path:
    """Where entries are kept: `ACNN_CACHE`, else `acnn` in the user's cache folder of this system."""
    from platformdirs import user_cache_path

    chosen = os.environ.get("ACNN_CACHE")
    return Path(chosen) if chosen else user_cache_path("acnn", appauthor=False)


def entry_path(kind: Kind, key: str, folder: Path | None = None) -> Path:
    """The file of an entry, by a hash in hex digits; a folder of None stands for `cache_folder()`."""
    return (folder or cache_folder()) / f"{kind}-{key}.safetensors"


def mark_used(path: Path) -> None:
    """Note that this process uses an entry; now and then this is noted of all entries that it has used."""
    global _refreshed
    _in_use.add(path)
    if time.time() - _refreshed < RECENT / 4:
        _touch(path)
        return
    _refreshed = time.time()
    for each in tuple(_in_use):
        _touch(each)


def mark_added(path: Path) -> None:
    """Note that this process has written an entry, and remove what is above the limit of its folder."""
    _in_use.add(path)
    for each in tuple(_in_use):  # whatever the time since: what this process uses must not be removed by it
        _touch(each)
    shrink(path.parent)


def check_there(path: Path) -> None:
    """Raise InputError where an entry that is in use has been removed by another process or by hand."""
    if not path.is_file():
        raise InputError(
            f"{path}: was removed from the cache while it was in use. Run the same again: it is computed again."
        )


def limit_of(folder: Path) -> float:
    """The limit of a cache in gigabytes."""
    try:
        limit = float((folder / LIMIT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return DEFAULT_LIMIT
    return limit if limit >= 0 else DEFAULT_LIMIT


def set_limit(folder: Path, gigabytes: float) -> int:
    """Set the limit of a cache, for all processes that share it, and remove what is above it.

    Returns
    -------
    int
        How many entries were removed.

    Raises
    ------
    InputError
        Where it is not a number from 0 on, or the cache cannot be written.
    """
    if not 0 <= gigabytes < float("inf"):
        raise InputError(f"--limit {gigabytes}: give the gigabytes that the cache may hold, from 0 on.")
    write_whole(folder / LIMIT_FILE, f"{gigabytes!r}\n".encode())
    return shrink(folder)


def shrink(folder: Path) -> int:
    """Remove the entries of a cache that were not used for the longest time, until the rest is within its limit.

    Returns
    -------
    int
        How many entries were removed; those used within the last hour stay, whatever the limit.
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
    """Remove all entries of a cache, and what writing them left behind where it was killed; no other file.

    Returns
    -------
    int
        How many entries were removed.
    """
    removed = sum(1 for entry in _entries(folder) if _remove(entry.path))
    for path in _files(folder):
        with suppress(OSError):
            if _PART.fullmatch(path.name) and path.stat().st_mtime < time.time() - RECENT:
                path.unlink()
    return removed


def cache_facts(folder: Path) -> dict[str, Any]:
    """`folder`, number of `entries`, their size as `megabytes`, and the limit as `limit_gb`."""
    entries = _entries(folder)
    size = sum(entry.size for entry in entries)
    return {
        "folder": str(folder),
        "entries": len(entries),
        "megabytes": round(size / 1e6, 1),
        "limit_gb": limit_of(folder),
    }


def _entries(folder: Path) -> list[_Entry]:
    found = []
    for path in _files(folder):
        if _ENTRY.fullmatch(path.name):
            with suppress(OSError):  # another process has just removed it
                state = path.stat()
                found.append(_Entry(path, state.st_size, state.st_mtime))
    return found


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
    except OSError:  # a cache that may only be read
        pass


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:  # gone already, or open in another process of a system that does not allow it
        return False
    return True
