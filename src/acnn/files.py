"""Writing files: whole or not at all, and never over a file that the user did not mean to give up."""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import Collection, Iterator
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
