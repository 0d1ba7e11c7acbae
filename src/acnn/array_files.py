"""Named arrays in one safetensors file: written whole or not at all, checked when read, never able to run code."""

from __future__ import annotations

import errno
import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the errors that mean that a file found no room."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any] | None = None) -> None:
    """Write arrays and facts about them to a file; readers never see a part of it.

    - path: in an existing folder or a new one
    - about: JSON-able

    Raises OSError where it cannot be written; with a number of `FULL` where there is no room.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    facts = {"about": dict(about or {}), "checksum": _checksum(whole)}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=".part", dir=path.parent)
    os.close(handle)
    try:
        save_file(whole, temporary, metadata={"acnn": json.dumps(facts)})
        os.replace(temporary, path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, SafetensorError) and (number := full_disk(error)):
            raise OSError(number, os.strerror(number), str(path)) from error
        raise


def read_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and facts of a file that `write_arrays` wrote.

    Raises InputError where it is missing, cut short or altered.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads(file.metadata()["acnn"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if facts["checksum"] != _checksum(arrays):
            raise ValueError("its checksum does not match")
        return arrays, facts["about"]
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InputError(
            f"{path}: not a sound file ({error}). Delete it; it will be made again when needed."
        ) from error


def full_disk(error: BaseException) -> int:
    """The number of the error (one of `FULL`) where an exception means that there was no room; else 0."""
    if isinstance(error, OSError) and error.errno in FULL:
        return error.errno
    # The safetensors library tells the number in its message only.
    return next((number for number in FULL if f"(os error {number})" in str(error)), 0)


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> int:
    """CRC-32 over all arrays: meant for damage, not for malice."""
    total = 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total = zlib.crc32(f"{name}{array.dtype.str}{array.shape}".encode(), total)
        total = zlib.crc32(array.reshape(-1).view(np.uint8).data, total)
    return total
