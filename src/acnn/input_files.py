"""Files that users give: their bytes, arrays in NumPy's formats (.npy, .npz) and tables of numbers, read without trust.

Nothing in a file is run, no memory is taken before the file is known to hold what its header promises, and whatever is
wrong with it is an InputError that names the file.
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
"""Largest file that is read."""

MAX_UNPACKED = 1 << 30
"""Largest sum of arrays in one archive: a map of ten million vertices with all that belongs to it has half of it."""


class ArrayError(ValueError):
    """Bytes that are not an array in NumPy's format; the message gives the fault without the file's name."""


def read_bytes(path: Path) -> bytes:
    """Read a regular file of at most `MAX_BYTES`.

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
            raise InputError(f"{path.name}: {size / 1e9:.1f} GB is more than can be read. Simplify it first.")
        return path.read_bytes()
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be opened ({getattr(error, 'strerror', None) or error}).") from error


def read_npy(path: Path) -> NDArray[Any]:
    """Read the array of a .npy file; it is read-only.

    Raises
    ------
    InputError
        Where the file is missing, damaged or cut short, or holds anything but numbers, booleans or words.
    """
    try:
        return parse_npy(read_bytes(path))
    except ArrayError as error:
        raise InputError(f"{path}: cannot be read as an array: {error}. Write it with numpy.save.") from error


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of an .npz archive by name; they are read-only.

    Raises
    ------
    InputError
        As `read_npy`, and where the arrays would be larger than `MAX_UNPACKED` together.
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
    # What zipfile and zlib raise for archives that are not, or no longer, what they should be.
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
        where = f"array '{name}': " if name else ""
        raise InputError(
            f"{path}: cannot be read as an .npz archive: {where}{str(error).rstrip('.') or 'it is cut short'}. "
            "Write it again."
        ) from error


def parse_npy(data: bytes) -> NDArray[Any]:
    """The array of a .npy file from its bytes: numbers, booleans or words, read-only, never empty.

    Raises
    ------
    ArrayError
        Where the bytes are anything else, or fewer than the header promises.
    """
    stream = io.BytesIO(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers of Python 2 are read all the same
            version = np.lib.format.read_magic(stream)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = header(stream)
    # The header is text that is parsed as Python's literals, so that these are all that can go wrong with it.
    except (ValueError, SyntaxError, TypeError, TokenError, RecursionError, MemoryError) as error:
        raise ArrayError("it does not begin as a .npy file does, or its header is damaged") from error
    if dtype.hasobject:
        raise ArrayError("it holds Python objects, which are not read since they could run code")
    if dtype.kind not in "biufcSU" or dtype.itemsize == 0:
        raise ArrayError(f"it holds {dtype}, but numbers or words are needed")
    if len(shape) > 32 or min(shape, default=1) < 1:
        raise ArrayError(f"its shape is {shape}, so that it holds nothing")
    count, begin = math.prod(shape), stream.tell()
    if count * dtype.itemsize > len(data) - begin:
        raise ArrayError(f"its header promises an array of shape {shape}, but the file ends before that")
    array = np.frombuffer(data, dtype, count, begin).reshape(shape, order="F" if fortran else "C")
    if dtype.kind == "U":
        letters = np.frombuffer(data, dtype.str[0] + "u4", count * dtype.itemsize // 4, begin)
        if ((letters > 0x10FFFF) | ((letters >= 0xD800) & (letters < 0xE000))).any():
            raise ArrayError("it holds words with letters that do not exist")
    return array.astype(dtype.newbyteorder("="), copy=False)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text in UTF-8, without empty ones at the end.

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
    """(rows, columns) numbers of lines of text; '#' begins a comment, and lines without numbers are passed over.

    Raises
    ------
    ValueError
        Where a line holds anything else, or as many as the first one does not.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about text without any number
            # NumPy before 2.4 makes whole numbers of fractions, with this warning.
            warnings.simplefilter("error", DeprecationWarning)
            return np.loadtxt(lines, dtype=kind, ndmin=2)
    except DeprecationWarning as error:
        raise ValueError("a number is not whole") from error


def read_table(path: Path, kind: type) -> NDArray[Any]:
    """Read the (rows, columns) numbers of a text file, one row a line.

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
    """Read the object of a JSON file.

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
