"""Atomic writing of files, checks that no file of the user is overwritten, and named arrays in safetensors files."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
import unicodedata
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError


@contextmanager
def atomic_file(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Write a file under a temporary name in its folder, and rename it at the end of the block.

    Readers never see a partial file. Where the block fails or is interrupted, the temporary file is removed.

    Parameters
    ----------
    path : Path
        The file; its folder is created where it is missing.
    durable : bool
        Wait until the file and its name are on the disk, so that a power failure loses neither the old file nor the
        new one.

    Yields
    ------
    Path
        Temporary path to write to; no such file exists yet.

    Raises
    ------
    OSError
        Where the file cannot be written.
    """
    temporary = path.with_name(f".{path.stem[:50]}-{uuid4().hex}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield temporary
        if durable:
            _synchronise(temporary, os.O_RDWR)
        os.replace(temporary, path)
    except BaseException:  # also where the process is interrupted
        temporary.unlink(missing_ok=True)
        raise
    if durable and os.name == "posix":  # elsewhere folders cannot be opened, and need not be
        with suppress(OSError):  # the file is written; some network file systems do not support this for folders
            _synchronise(path.parent, os.O_RDONLY)


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file atomically; its folder is created where it is missing.

    Parameters
    ----------
    path : Path
    data : bytes

    Raises
    ------
    InputError
        Where it cannot be written; the old file is unchanged.
    """
    try:
        with atomic_file(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise InputError(f"{path}: could not be written ({error.strerror}). Nothing was changed.") from error


def make_folder(path: Path) -> None:
    """Create the folder of a file where it is missing; raises InputError where that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: its folder cannot be created ({error.strerror}). Choose another.") from error


def check_outputs(
    outputs: Collection[Path],
    *,
    inputs: Collection[Path | None] = (),
    earlier: Collection[Path] = (),
    force: bool = False,
) -> None:
    """Check that a command may write its output files; to be called before any long work.

    An input is never overwritten. Any other existing file is overwritten only where an earlier run of the same command
    wrote it, or with `force`.

    Parameters
    ----------
    outputs : collection of Path
        All files that the command will write.
    inputs : collection of Path or None
        Files that it reads, and folders that it reads any file of; None stands for an input that was not given.
    earlier : collection of Path
        Files that an earlier run of the command has written.
    force : bool
        Overwrite files that are neither inputs nor from an earlier run.

    Raises
    ------
    InputError
        Where a file exists or cannot be written, with what to do.
    """
    given = [path for path in inputs if path is not None]
    own = {_key(path) for path in earlier}
    for path in outputs:
        if os.path.isdir(path):
            raise InputError(f"{path}: is a folder. Give the name of a file, with its suffix.")
        for other in given:
            if _is_input(path, other) and not (os.path.isdir(other) and _key(path) in own):
                where = f"is in {other}, one of the inputs" if os.path.isdir(other) else "is one of the inputs"
                raise InputError(
                    f"{path}: {where}, which are never overwritten. Give the output another name or folder."
                )
        if os.path.lexists(path) and not force and _key(path) not in own:
            raise InputError(
                f"{path}: already exists. Give the output another name or folder, or overwrite it with --force."
            )
        _check_name(path)
    for path in {path.parent: path for path in outputs}.values():
        _check_writable(path)


def can_write(folder: Path) -> bool:
    """Whether a file can be created in a folder or, where that does not exist, in its nearest existing parent."""
    try:
        with tempfile.TemporaryFile(dir=_nearest(folder)):
            return True
    except OSError:
        return False


def _check_name(path: Path) -> None:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # the name is too long, or the folder may not be entered
        raise InputError(f"{path}: cannot be written ({error.strerror}). Give the output another name.") from error


def _check_writable(path: Path) -> None:
    existing = _nearest(path.parent)
    if not os.path.isdir(existing):
        raise InputError(f"{path}: cannot be written, since {existing} is a file. Choose another folder.")
    if not can_write(existing):
        raise InputError(
            f"{path}: cannot be written, since no file can be created in {existing}. Choose another folder."
        )


def _nearest(folder: Path) -> Path:
    """The folder, or its nearest existing parent."""
    while not os.path.exists(folder) and folder != folder.parent:
        folder = folder.parent
    return folder


def _is_input(output: Path, given: Path) -> bool:
    """Whether writing an output would change an input, also on file systems that ignore the case of names."""
    if os.path.isdir(given):
        return os.path.lexists(output) and Path(_key(output)).is_relative_to(_key(given))
    same = os.path.exists(output) and os.path.exists(given) and os.path.samefile(output, given)
    return same or _key(output) == _key(given)


def _key(path: Path) -> str:
    """The same string for all spellings of a path, whatever their case and Unicode normal form."""
    return unicodedata.normalize("NFC", os.path.realpath(path)).casefold()


def _synchronise(path: Path, mode: int) -> None:
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_TYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "U16": np.uint16,
    "I16": np.int16,
    "U32": np.uint32,
    "I32": np.int32,
    "U64": np.uint64,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
}

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a full disk, an exceeded quota and a file that is too large."""


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any] | None = None, *, durable: bool = False
) -> None:
    """Write named arrays and metadata to a safetensors file, atomically and with a checksum.

    Parameters
    ----------
    path : Path
        The file; its folder is created where it is missing.
    arrays : mapping of str to array
    about : mapping of str to Any, or None
        Metadata that JSON can represent.
    durable : bool
        As in `atomic_file`.

    Raises
    ------
    OSError
        Where it cannot be written; with a number of `FULL` where the disk is full.
    """
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps(dict(about or {}))
    metadata = {"about": text, "checksum": _checksum(text, contiguous)}
    header: dict[str, Any] = {"__metadata__": {"acnn": json.dumps(metadata)}}
    names = {np.dtype(kind): name for name, kind in _TYPES.items()}
    order = sorted(contiguous, key=lambda name: (-contiguous[name].itemsize, name))  # so that all are aligned
    offset = 0
    for name in order:
        array = contiguous[name]
        end = offset + array.nbytes
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    # Not by safetensors itself, which copies all arrays into memory first.
    with atomic_file(path, durable=durable) as temporary, temporary.open("wb") as stream:
        stream.write(len(head).to_bytes(8, "little") + head)
        for name in order:
            flat = contiguous[name].reshape(-1).view(np.uint8)
            for begin in range(0, len(flat), _CHUNK):
                stream.write(flat[begin : begin + _CHUNK].data)


_CHUNK = 1 << 24
"""Bytes written at a time: arrays may be larger than memory, on disk themselves."""


def read_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read the arrays and the metadata of a file that `write_arrays` wrote, or of a model file of format 1.

    Parameters
    ----------
    path : Path

    Returns
    -------
    dict[str, array]
        Arrays by name.
    dict[str, Any]
        Metadata.

    Raises
    ------
    InputError
        Where it is missing, truncated or altered.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            about, is_intact = _parse_metadata(file.metadata())
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    # The library raises TypeError for types of numbers that NumPy lacks.
    except (OSError, ValueError, TypeError, SafetensorError) as error:
        raise _damaged(path, error) from error
    if not is_intact(arrays):
        raise _damaged(path, "its checksum does not match")
    return arrays, about


def map_arrays(path: Path, *, verify: bool = True) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """As `read_arrays`, but with memory-mapped arrays.

    Parameters
    ----------
    path : Path
    verify : bool
        Read everything once and compare checksums.

    Returns
    -------
    dict[str, array]
        Read-only arrays by name.
    dict[str, Any]
        Metadata.

    Raises
    ------
    InputError
        Where it is missing, truncated or, with `verify`, altered.
    """
    try:
        arrays, metadata = _mapped(path)
        about, is_intact = _parse_metadata(metadata)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error
    if verify and not is_intact(arrays):
        raise _damaged(path, "its checksum does not match")
    return arrays, about


def _damaged(path: Path, why: object) -> InputError:
    return InputError(f"{path}: not a valid file ({why}). Copy it or create it again.")


def _parse_metadata(metadata: Any) -> tuple[dict[str, Any], Callable[[Mapping[str, NDArray[Any]]], bool]]:
    """The metadata that `write_arrays` wrote, and whether given arrays are those of their checksum.

    Two older forms are read as well: metadata that are no text and outside the checksum; and those of model files of
    format 1, with a checksum of their own.

    Raises ValueError where they are of none of these forms.
    """
    text = metadata.get("acnn") if isinstance(metadata, dict) else None
    content = _json(text) if isinstance(text, str) else None
    content = content if isinstance(content, dict) else {}
    about, checksum = content.get("about"), content.get("checksum")
    covered, function = "", _checksum
    if isinstance(about, str):
        covered, about = about, _json(about)
        function = _checksum_1 if content.get("format") == "acnn-model-1" else _checksum
    if not isinstance(about, dict) or checksum is None:
        raise ValueError("acnn did not write it, or its metadata are damaged")
    return about, lambda arrays: bool(checksum == function(covered, arrays))


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error


def _mapped(path: Path) -> tuple[dict[str, NDArray[Any]], Any]:
    """Arrays of a safetensors file (header length, JSON header, data) as views of a memory map, and its metadata.

    Raises OSError where it cannot be read, and ValueError where it is damaged.
    """
    size = path.stat().st_size
    if size < 8:
        raise ValueError("it is truncated")
    data = np.memmap(path, dtype=np.uint8, mode="r")
    length = int(np.frombuffer(data[:8].tobytes(), dtype="<u8")[0])
    if not 2 <= length <= size - 8:
        raise ValueError("its header is damaged")
    header = _json(data[8 : 8 + length].tobytes())
    if not isinstance(header, dict):
        raise ValueError("its header is damaged")
    metadata = header.pop("__metadata__", None)
    arrays: dict[str, NDArray[Any]] = {}
    for name, about in header.items():
        try:
            begin, end = (8 + length + int(offset) for offset in about["data_offsets"])
            kind, shape = _TYPES[about["dtype"]], tuple(int(side) for side in about["shape"])
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"the header of '{name}' is damaged") from error
        if not 8 + length <= begin <= end <= size:
            raise ValueError("it is truncated")
        arrays[name] = data[begin:end].view(kind).reshape(shape)
    return arrays, metadata


def full_disk(error: BaseException) -> int:
    """The error number (one of `FULL`) where an exception means that the disk is full; else 0."""
    if isinstance(error, OSError) and error.errno in FULL:
        return error.errno
    # The safetensors library gives the number in its message only.
    return next((number for number in FULL if f"(os error {number})" in str(error)), 0)


def _checksum(about: str, arrays: Mapping[str, NDArray[Any]]) -> int | str:
    """CRC-32 of metadata and arrays, which detects damage, not manipulation."""
    total = zlib.crc32(about.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total = zlib.crc32(f"{name}{array.dtype.str}{array.shape}".encode(), total)
        total = zlib.crc32(array.reshape(-1).view(np.uint8).data, total)
    return total


def _checksum_1(about: str, arrays: Mapping[str, NDArray[Any]]) -> int | str:
    """The checksum of model files of format 1."""
    digest = hashlib.blake2b(about.encode(), digest_size=16)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} torch.{array.dtype} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
