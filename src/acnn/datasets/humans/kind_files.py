"""Folders of disturbed bodies, as `acnn data humans --kinds` writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from acnn.datasets.builtin import builtin_humans
from acnn.datasets.humans.body import load_body
from acnn.datasets.humans.generate import human_names, write_reference, write_shape
from acnn.datasets.humans.kinds import BodyMaker, draw_kinds, kind_of
from acnn.files import write_atomic


def disturbed_names(kinds: Sequence[str], subjects: int, poses: int, seed: int, combine: float) -> list[str]:
    """Names of the shapes that `write_disturbed` writes, subject after subject: `human_00_03_shoes+voxels`."""
    drawn = draw_kinds(kinds, subjects * poses, seed, combine)
    return [f"{name}_{kind}" for name, kind in zip(human_names(subjects, poses), drawn, strict=True)]


def write_disturbed(
    folder: Path,
    kinds: Sequence[str],
    subjects: int = 20,
    poses: int = 8,
    vertices: int = 2500,
    seed: int = 0,
    *,
    combine: float = 0.0,
    workers: int = 1,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Generate disturbed bodies and write them into a folder, in the layout of `write_humans`.

    The reference is the first of the built-in humans. Every shape has ground truth, -1 where there is none. Shapes of
    held-out kinds are of the split `test`, all others of the split `train`; `dataset.json` names the kind of each.

    Parameters
    ----------
    folder : Path
        Output folder, created if missing.
    kinds : Sequence[str]
        As from `kind_names`; bodies are of these kinds in turn.
    subjects, poses : int
        Number of subjects, and of bodies of each.
    vertices : int
        Largest number of vertices.
    seed : int
        Random seed.
    combine : float
        Fraction of the bodies that are of two kinds.
    workers : int
        Number of processes; the bodies do not depend on it.
    progress : callable or None
        Called with a line of text for every shape.

    Returns
    -------
    Path
        The folder.
    """
    write_reference(folder, builtin_humans())
    names = disturbed_names(kinds, subjects, poses, seed, combine)
    settings = (folder, subjects, poses, vertices, seed)
    entries: list[dict[str, Any]] = []
    for entry, line in _written(settings, list(enumerate(names)), workers):
        entries.append(entry)
        if progress:
            progress(line)
    about = {"kind": "humans", "seed": seed, "vertices": vertices, "combine": combine, "reference": "reference.ply"}
    write_atomic(folder / "dataset.json", (json.dumps({**about, "shapes": entries}, indent=1) + "\n").encode())
    return folder


_Entry = tuple[dict[str, Any], str]
"""What `dataset.json` lists of a shape, and a line for the progress."""

_Settings = tuple[Path, int, int, int, int]
"""Folder, subjects, poses, vertices, seed."""

_writer: list[_Writer] = []
"""That of this process, where there are several."""


class _Writer:
    """Makes bodies and writes them."""

    def __init__(self, folder: Path, subjects: int, poses: int, vertices: int, seed: int) -> None:
        self.folder, self.poses = folder, poses
        self.maker = BodyMaker(load_body(), subjects, vertices, seed)

    def write(self, number: int, name: str) -> _Entry:
        subject, which = divmod(number, self.poses)
        kind = name.split("_", 3)[3]
        made = self.maker.make(subject, which, kind)
        write_shape(self.folder, name, made.shape, made.truth, builtin_humans().mesh(0))
        split = "test" if kind_of(kind).held_out else "train"
        known = float(np.mean(made.truth.faces >= 0))
        entry = {"name": name, "subject": subject, "pose": made.pose, "split": split, "kind": kind}
        return entry, f"{name} {made.pose}: {made.shape}, ground truth of {known:.0%}"


def _written(settings: _Settings, bodies: list[tuple[int, str]], workers: int) -> Iterator[_Entry]:
    if workers == 1:
        writer = _Writer(*settings)
        yield from (writer.write(*body) for body in bodies)
        return
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin, settings) as pool:
        yield from pool.map(_write, bodies)


def _begin(*settings: Any) -> None:
    _writer[:] = [_Writer(*settings)]


def _write(body: tuple[int, str]) -> _Entry:
    return _writer[0].write(*body)
