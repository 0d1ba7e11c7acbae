"""Making humans into a folder, and what to tell of it."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acnn.errors import InputError
from acnn.files import check_outputs

INSTALL = (
    "Making humans needs the anny body model: pip install 'acnn[humans]'. On a machine without a GPU install torch's "
    "CPU build first, or several GB are fetched: pip install torch --index-url https://download.pytorch.org/whl/cpu"
)


def humans_into(
    folder: Path,
    *,
    subjects: int = 20,
    poses: int = 8,
    vertices: int = 2500,
    remeshed: bool = False,
    seed: int = 0,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Make humans with `write_humans` and return the facts that `acnn data humans --json` prints.

    Humans that were written into the folder before are overwritten, other files only with `force`.

    Raises InputError for numbers out of range, where the folder cannot be used, or where anny is not installed.
    """
    if subjects < 1 or poses < 1:
        raise InputError(f"{subjects} subjects and {poses} poses: both must be at least 1.")
    if vertices < 12:
        raise InputError(f"{vertices} vertices: a body needs at least 12, and 2,000 to look like one.")
    if seed < 0:
        raise InputError(f"Seed {seed}: give a whole number from 0 on.")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; name a folder.")
    if importlib.util.find_spec("anny") is None:
        raise InputError(INSTALL)
    from acnn.datasets.humans import human_files, human_names, write_humans, written_humans

    files = human_files(folder, human_names(subjects, poses))
    check_outputs(files, earlier=human_files(folder, written_humans(folder)), force=force)
    began = time.perf_counter()
    written = write_humans(folder, subjects, poses, vertices, seed, remeshed=remeshed, progress=progress)
    return {
        "out": str(written),
        "shapes": subjects * poses,
        "subjects": subjects,
        "poses": poses,
        "vertices": vertices,
        "remeshed": remeshed,
        "seed": seed,
        "seconds": time.perf_counter() - began,
    }
