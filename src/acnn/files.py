"""Writing files, whole or not at all and never over a file of the user's, and named arrays in safetensors files."""

from __future__ import annotations

import errno
import json
import os
import tempfile
import unicodedata
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError


@contextmanager
def whole_file(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Give a temporary name in the folder of a file, and rename what was written there to the file at the end.

    Readers never see a part of the file. Where the block fails or is interrupted, nothing is left behind: the name is
    chosen before anything is created under it.

    Parameters
    ----------
    path
        The file; its folder is made where it is missing.
    durable
        Wait until the file and its name are on the disk, so that a power failure costs neither the old file nor the
        new one.

    Yields
    ------
    Path
        Where to write; no such file exists yet.

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
    except BaseException:  # a process that is interrupted cleans up, too
        temporary.unlink(missing_ok=True)
        raise
    if durable and os.name == "posix":  # elsewhere a folder cannot be opened, and need not be
        with suppress(OSError):  # the file is there; some network file systems refuse this for folders
            _synchronise(path.parent, os.O_RDONLY)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all; its folder is made where it is missing.

    Raises
    ------
    InputError
        Where it cannot be written.
    """
    try:
        with whole_file(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise InputError(f"{path}: could not be written ({error.strerror}). Nothing was changed.") from error


def make_folder(path: Path) -> None:
    """Make the folder that a file is about to be written to, where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: its folder cannot be made ({error.strerror}). Choose another.") from error


def check_outputs(
    outputs: Collection[Path],
    *,
    inputs: Collection[Path | None] = (),
    earlier: Collection[Path] = (),
    force: bool = False,
) -> None:
    """Refuse files that a command must not or cannot write; to be called before any long work.

    An input is never overwritten, and no other file either that is there already, unless an earlier run of the same
    command wrote it or `force` is given.

    Parameters
    ----------
    outputs
        All files that the command will write.
    inputs
        Files that it reads, and folders of which it reads any file; None stands for an input that was not given.
    earlier
        Files that the same command has written before and may write again.
    force
        Overwrite files that are neither inputs nor from an earlier run.

    Raises
    ------
    InputError
        Which file stands in the way and what to do, or which folder cannot be written.
    """
    given = [path for path in inputs if path is not None]
    ours = {_key(path) for path in earlier}
    for path in outputs:
        if os.path.isdir(path):
            raise InputError(f"{path}: is a folder. Give the name of a file, with its ending.")
        for other in given:
            if _is_input(path, other) and not (os.path.isdir(other) and _key(path) in ours):
                where = f"lies in {other}, one of the inputs" if os.path.isdir(other) else "is one of the inputs"
                raise InputError(
                    f"{path}: {where}, which are never overwritten. Give the output another name or folder."
                )
        if os.path.lexists(path) and not force and _key(path) not in ours:
            raise InputError(
                f"{path}: is there already. Give the output another name or folder, or overwrite it with --force."
            )
        _check_name(path)
    for path in {path.parent: path for path in outputs}.values():
        _check_writable(path)


def can_write(folder: Path) -> bool:
    """Whether a file can be made in a folder or, where it does not exist, in the nearest one above it."""
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
    except OSError as error:  # a name that is too long, or a folder that may not be entered
        raise InputError(f"{path}: cannot be written ({error.strerror}). Give the output another name.") from error


def _check_writable(path: Path) -> None:
    existing = _nearest(path.parent)
    if not os.path.isdir(existing):
        raise InputError(f"{path}: cannot be written, for {existing} is a file. Choose another folder.")
    if not can_write(existing):
        raise InputError(f"{path}: cannot be written, for no file can be made in {existing}. Choose another folder.")


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    while not os.path.exists(folder) and folder != folder.parent:
        folder = folder.parent
    return folder


def _is_input(output: Path, given: Path) -> bool:
    """Whether writing an output would change an input, on file systems that ignore the case of names, too."""
    if os.path.isdir(given):
        return os.path.lexists(output) and Path(_key(output)).is_relative_to(_key(given))
    same = os.path.exists(output) and os.path.exists(given) and os.path.samefile(output, given)
    return same or _key(output) == _key(given)


def _key(path: Path) -> str:
    """The same for all spellings of a path, whatever the case and the Unicode form of its letters."""
    return unicodedata.normalize("NFC", os.path.realpath(path)).casefold()


def _synchronise(path: Path, mode: int) -> None:
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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

    Parameters
    ----------
    path : Path
        In an existing folder or a new one.
    about : Mapping[str, Any] or None
        JSON-able.
    durable : bool
        As for `acnn.files.whole_file`.

    Raises
    ------
    OSError
        Where it cannot be written; with a number of `FULL` where there is no room.
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

    Raises
    ------
    InputError
        Where it is missing, cut short or altered.
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

    Parameters
    ----------
    verify : bool
        Read everything once and compare checksums.
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

    Raises
    ------
    OSError
        Or ValueError where it is damaged.
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
