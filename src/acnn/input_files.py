"""Safe readers of users' files: bytes, NumPy arrays (.npy, .npz), text, tables of numbers and JSON.

Nothing in a file is executed, no memory is allocated before the file is known to contain what its header promises, and
every defect is an InputError that names the file.
"""

from __future__ import annotations

import io
import json
import math
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError

MAX_BYTES = 1 << 31
"""Largest file that is read: 2 GiB."""

MAX_UNPACKED = 1 << 30
"""Largest total size of the arrays in one archive: twice that of a map of ten million vertices with all its arrays."""


class ArrayError(ValueError):
    """Bytes that are not an array in NumPy's format; the message describes the defect without the file's name."""


def read_bytes(path: Path) -> bytes:
    """Read a regular file of at most `MAX_BYTES`.

    Parameters
    ----------
    path : Path

    Returns
    -------
    bytes

    Raises
    ------
    InputError
        Where it is missing, empty, too large, a folder or a device, or cannot be opened.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder. Name a file in it.")
        size = path.stat().st_size
        if not path.is_file():
            raise InputError(f"{path}: is not a regular file.")
        if size == 0:
            raise InputError(f"{path.name}: the file is empty. Export or copy it again.")
        if size > MAX_BYTES:
            raise InputError(f"{path.name}: {size / 1e9:.1f} GB is too large. Simplify it first.")
        return path.read_bytes()
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be opened ({getattr(error, 'strerror', None) or error}).") from error


def read_npy(path: Path) -> NDArray[Any]:
    """Read the array of a .npy file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    array
        Read-only.

    Raises
    ------
    InputError
        Where the file is missing, damaged or truncated, or holds anything but numbers, booleans or strings.
    """
    try:
        return parse_npy(read_bytes(path))
    except ArrayError as error:
        raise InputError(f"{path}: cannot be read as an array: {error}. Write it with numpy.save.") from error


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz archive.

    Parameters
    ----------
    path : Path

    Returns
    -------
    dict[str, array]
        Read-only arrays by name.

    Raises
    ------
    InputError
        As `read_npy`, and where the total size of the arrays exceeds `MAX_UNPACKED`.
    """
    data = read_bytes(path)
    name = ""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            size = sum(member.file_size for member in members)
            if size > MAX_UNPACKED:
                raise ArrayError(f"unpacked it would have {size / 1e9:.2f} GB")
            arrays = {}
            for member in members:
                name = member.filename
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.flag_bits & 1:
                    raise ArrayError("it is encrypted or compressed in a way that NumPy does not use")
                arrays[name.removesuffix(".npy")] = parse_npy(archive.read(member))
            return arrays
    # What zipfile and zlib raise for damaged archives.
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        where = f"array '{name}': " if name else ""
        raise InputError(
            f"{path}: cannot be read as an .npz archive: {where}{str(error).rstrip('.') or 'it is truncated'}. "
            "Write it again."
        ) from error


def parse_npy(data: bytes) -> NDArray[Any]:
    """Parse the bytes of a .npy file.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    array
        Numbers, booleans or strings; read-only, never empty.

    Raises
    ------
    ArrayError
        Where the bytes are anything else, or fewer than the header promises.
    """
    stream = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers written by Python 2
            version = np.lib.format.read_magic(stream)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = header(stream)
    # The header is parsed as a Python literal, which can raise no other errors.
    except (ValueError, SyntaxError, TypeError, TokenError, RecursionError, MemoryError) as error:
        raise ArrayError("it does not begin like a .npy file, or its header is damaged") from error
    if dtype.hasobject:
        raise ArrayError("it holds Python objects, which are not read since they could execute code")
    if dtype.kind not in "biufcSU" or dtype.itemsize == 0:
        raise ArrayError(f"it holds {dtype}, but numbers or strings are needed")
    if len(shape) > 32 or min(shape, default=1) < 1:
        raise ArrayError(f"its shape is {shape}, so it is empty")
    count, begin = math.prod(shape), stream.tell()
    if count * dtype.itemsize > len(data) - begin:
        raise ArrayError(f"its header promises an array of shape {shape}, but the file ends before that")
    array = np.frombuffer(data, dtype, count, begin).reshape(shape, order="F" if fortran else "C")
    if dtype.kind == "U":
        characters = np.frombuffer(data, dtype.str[0] + "u4", count * dtype.itemsize // 4, begin)
        if ((characters > 0x10FFFF) | ((characters >= 0xD800) & (characters < 0xE000))).any():
            raise ArrayError("it holds strings that are not valid Unicode")
    return array.astype(dtype.newbyteorder("="), copy=False)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file in UTF-8, without empty ones at the end.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list[str]

    Raises
    ------
    InputError
        Where the file is missing, empty or not text.
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read as text (byte {error.start} is not UTF-8).") from error
    lines = io.StringIO(text, newline=None).read().split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise InputError(f"{path}: the file is empty.")
    return lines


def parse_numbers(lines: Sequence[str], kind: type) -> NDArray[Any]:
    """Parse lines of numbers; '#' begins a comment, and lines without numbers are skipped.

    Parameters
    ----------
    lines : sequence of str
    kind : type
        `int` or `float`.

    Returns
    -------
    (rows, columns) array

    Raises
    ------
    ValueError
        Where a line holds anything else, or another number of columns than the first one.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about text without any number
            # NumPy before 2.4 truncates fractions to integers, with this warning.
            warnings.simplefilter("error", DeprecationWarning)
            return np.loadtxt(lines, dtype=kind, ndmin=2)
    except DeprecationWarning as error:
        raise ValueError("a number is not an integer") from error


def read_table(path: Path, kind: type) -> NDArray[Any]:
    """Read a text file of numbers, one row per line.

    Parameters
    ----------
    path : Path
    kind : type
        `int` or `float`.

    Returns
    -------
    (rows, columns) array

    Raises
    ------
    InputError
        Where the file is missing or holds anything else.
    """
    try:
        table = parse_numbers(read_lines(path), kind)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: cannot be read as a table of numbers ({error}).") from error
    if not table.size:
        raise InputError(f"{path}: the file holds no numbers.")
    return table


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object.

    Parameters
    ----------
    path : Path

    Returns
    -------
    dict[str, Any]

    Raises
    ------
    InputError
        Where the file is missing or holds anything else.
    """
    try:
        content = json.loads(read_bytes(path).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: cannot be read as JSON ({error}).") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds a {type(content).__name__}; a JSON object is needed.")
    return content
