"""Named arrays in one safetensors file: written whole or not at all, checked when read, never able to run code."""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.files import whole_file

_TYPES = {
    "U8": np.uint8,
    "U16": np.uint16,
    "I32": np.int32,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
}

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of the errors that mean that a file found no room."""


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any] | None = None, *, durable: bool = False
) -> None:
    """Write arrays and facts about them to a file; readers never see a part of it.

    - path: in an existing folder or a new one
    - about: JSON-able
    - durable: as for `acnn.files.whole_file`

    Raises OSError where it cannot be written; with a number of `FULL` where there is no room.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    facts = {"about": dict(about or {}), "checksum": _checksum(whole)}
    try:
        with whole_file(path, durable=durable) as temporary:
            save_file(whole, temporary, metadata={"acnn": json.dumps(facts)})
    except SafetensorError as error:
        if number := full_disk(error):
            raise OSError(number, os.strerror(number), str(path)) from error
        raise


def read_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays and facts of a file that `write_arrays` wrote.

    Raises InputError where it is missing, cut short or altered.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            about, checksum = _facts(file.metadata())
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    # TypeError is what the library raises for types of numbers that NumPy does not have.
    except (OSError, ValueError, TypeError, SafetensorError) as error:
        raise _damaged(path, error) from error
    if checksum != _checksum(arrays):
        raise _damaged(path, "its checksum does not match")
    return arrays, about


def map_arrays(path: Path, *, verify: bool = True) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """As `read_arrays`, but the arrays stay on disk and are read as they are used.

    - verify: read everything once and compare checksums
    """
    try:
        arrays, metadata = _mapped(path)
        about, checksum = _facts(metadata)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error
    if verify and checksum != _checksum(arrays):
        raise _damaged(path, "its checksum does not match")
    return arrays, about


def _damaged(path: Path, why: object) -> InputError:
    return InputError(f"{path}: not a valid file ({why}). Copy it again, or make it again.")


def _facts(metadata: Any) -> tuple[dict[str, Any], Any]:
    """What `write_arrays` was told about the arrays, and their checksum; raises ValueError where it wrote neither."""
    content = metadata.get("acnn") if isinstance(metadata, dict) else None
    facts = _json(content) if isinstance(content, str) else None
    if not isinstance(facts, dict) or "checksum" not in facts or not isinstance(facts.get("about"), dict):
        raise ValueError("acnn did not write it, or its metadata are damaged")
    return facts["about"], facts["checksum"]


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def _mapped(path: Path) -> tuple[dict[str, NDArray[Any]], Any]:
    """Arrays of a safetensors file as views of a memory map (the format: header length, JSON header, data).

    Raises OSError, or ValueError where it is damaged.
    """
    size = path.stat().st_size
    if size < 8:
        raise ValueError("it is cut short")
    data = np.memmap(path, dtype=np.uint8, mode="r")
    length = int(np.frombuffer(data[:8].tobytes(), dtype="<u8")[0])
    if not 2 <= length <= size - 8:
        raise ValueError("its header is damaged")
    header = _json(data[8 : 8 + length].tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is damaged")
    metadata = header.pop("__metadata__", None)
    arrays = {}
    for name, about in header.items():
        try:
            begin, end = (8 + length + int(offset) for offset in about["data_offsets"])
            kind, shape = _TYPES[about["dtype"]], tuple(int(side) for side in about["shape"])
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"the header of '{name}' is damaged") from error
        if not 8 + length <= begin <= end <= size:
            raise ValueError("it is cut short")
        arrays[name] = data[begin:end].view(kind).reshape(shape)
    return arrays, metadata


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
