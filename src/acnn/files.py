"""Writing files: whole or not at all, and never over a file that the user did not mean to give up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

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
    """Make the folder that a file is to be written to, where it is missing; a folder in the file's place is refused."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder. Give the name of a file, with its ending.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: its folder cannot be made ({error.strerror}). Choose another.") from error


def _synchronise(path: Path, mode: int) -> None:
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
