"""Opening a dataset by a word or a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acnn.datasets.builtin import builtin_humans
from acnn.datasets.collection import Dataset, Example, Sample, Split
from acnn.errors import InputError

REMESHED = "+remeshed"


@dataclass(frozen=True)
class BuiltinHuman:
    """Reads one built-in human: vertex i is vertex i of the reference."""

    index: int

    def __call__(self) -> Example:
        """The mesh, labelled with its own vertex numbers."""
        mesh = builtin_humans().mesh(self.index)
        return Example(mesh, np.arange(len(mesh.vertices), dtype=np.int32))


def open_dataset(where: str | os.PathLike[str]) -> Dataset:
    """Open a dataset.

    - where: `humans` (built in); `faust` or `faust_r` (below `ACNN_DATA`); or a folder: FAUST in its official layout,
      or a folder that holds it as `faust`; remeshed FAUST (`off/`, `corres/sampleID.vts`); one that `acnn data humans`
      wrote; or one's own shapes (see `acnn.datasets.folder`). `+remeshed` after it adds a remeshed copy of every shape

    Raises InputError with what was looked for, and how to get what is missing.
    """
    from acnn.datasets.copies import with_remeshed

    text = os.fspath(where)
    if text.endswith(REMESHED) and not Path(text).exists():
        return with_remeshed(open_dataset(text.removesuffix(REMESHED)))
    if text == "humans":
        return humans_dataset()
    root = Path(text).expanduser()
    if root.is_dir():
        return _open_folder(root)
    if text in ("faust", "faust_r"):
        return _open_research(text)
    if root.exists():
        raise InputError(f"{where}: is a file; a dataset is a folder, or the word 'humans', 'faust' or 'faust_r'.")
    raise InputError(
        f"{where}: there is no such folder. A dataset is the word 'humans' (built in), 'faust' or 'faust_r' (below "
        "ACNN_DATA), or a folder of shapes."
    )


def humans_dataset(copies: int = 0, seed: int = 0) -> Dataset:
    """The built-in humans, split by subject, numbered from 0 in order; the reference is the first, standing.

    - copies: how many remeshed copies of every shape to add; seed: of their triangulations
    """
    from acnn.datasets.copies import with_remeshed

    humans = builtin_humans()
    samples = []
    for i, name in enumerate(humans.names):
        split: Split = "train" if humans.split[i] == "train" else "test"
        samples.append(Sample(name, BuiltinHuman(i), split, int(humans.subjects[i]), i))
    dataset = Dataset("humans", humans.mesh(0), tuple(samples), humans.mirror.astype(np.int32))
    return with_remeshed(dataset, copies, seed) if copies else dataset


def _open_folder(root: Path) -> Dataset:
    from acnn.datasets.faust import find_registrations, open_faust, open_remeshed_faust
    from acnn.datasets.folder import open_folder

    if (root / "dataset.json").is_file():
        return open_folder(root)
    if (root / "off").is_dir() and (root / "corres" / "sampleID.vts").is_file():
        return open_remeshed_faust(root)
    if find_registrations(root):
        return open_faust(root)
    if (root / "faust_r" / "off").is_dir():
        return open_remeshed_faust(root)
    if (root / "training").is_dir() or (root / "faust").is_dir() or root.name.lower() in ("faust", "mpi-faust"):
        return open_faust(root)  # says what is missing
    return open_folder(root)


def _open_research(word: str) -> Dataset:
    from acnn.datasets.faust import HOW_TO_GET, open_faust, open_remeshed_faust

    data = os.environ.get("ACNN_DATA")
    if not data:
        raise InputError(f"'{word}' is looked for below the folder ACNN_DATA, which is not set. {HOW_TO_GET}")
    return open_faust(Path(data)) if word == "faust" else open_remeshed_faust(Path(data))
