"""Opening a dataset by its name or its folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acnn.arguments import check_arguments
from acnn.datasets.builtin import body_parts, builtin_humans
from acnn.datasets.dataset import Dataset, Example, Sample, Split
from acnn.errors import InputError

REMESHED, CLOUDS = "+remeshed", "+clouds"
NAMES = "the name 'humans' (built in), or 'faust', 'faust_r' or 'shrec16/KIND/CLASS' (below ACNN_DATA)"


@dataclass(frozen=True)
class BuiltinHuman:
    """Reads one built-in human: vertex i is vertex i of the reference."""

    index: int

    def __call__(self) -> Example:
        """The mesh, labelled with its own vertices."""
        mesh = builtin_humans().mesh(self.index)
        return Example(mesh, np.arange(len(mesh.vertices), dtype=np.int32))


@check_arguments
def open_dataset(where: str | os.PathLike[str]) -> Dataset:
    """Open a dataset.

    Parameters
    ----------
    where : path
        `humans` (built in); `faust`, `faust_r` or `shrec16/KIND/CLASS` such as `shrec16/cuts/cat` (below `ACNN_DATA`);
        or a folder: FAUST in its official layout, or a folder that holds it as `faust`; remeshed FAUST (`off/`,
        `corres/sampleID.vts`); one that `acnn data humans` wrote; any folder of shapes (see `acnn.datasets.folder`); or
        FOLDER/KIND/CLASS where FOLDER is SHREC'16 Partial in its official layout, or one that `acnn data parts` wrote
        (see `acnn.datasets.shrec16`; KIND and CLASS may be omitted where there is only one). The suffix `+remeshed`
        adds a remeshed version of every shape; `+clouds` takes points sampled from every shape instead, `+cuts` or
        `+holes` a partial shape.

    Returns
    -------
    Dataset
        Shapes are read when they are needed.

    Raises
    ------
    InputError
        With what was looked for, and how to get what is missing.

    Examples
    --------
    >>> open_dataset("humans").select("human_03_*").samples[0]
    Sample('human_03_00')
    """
    text = os.fspath(where)
    if not Path(text).exists() and (derived := _open_suffixed(text)):
        return derived
    if text == "humans" and not Path(text).is_dir():
        return humans_dataset()
    if where == "humans":  # a Path is never equal to a string: it means the folder
        raise InputError(
            "'humans' is the built-in dataset, but there is a folder of that name here as well: write ./humans for the "
            "folder, or change to another folder for the built-in one."
        )
    root = Path(text).expanduser()
    if root.is_dir():
        return _open_folder(root)
    if parts := _open_parts(root):
        return parts
    if text in ("faust", "faust_r") or text.split("/")[0] == "shrec16":
        return _open_research(text)
    if root.exists():
        raise InputError(f"{where}: is a file; a dataset is a folder, or {NAMES}.")
    raise InputError(f"{where}: there is no such folder. A dataset is {NAMES}, or a folder of shapes.")


def humans_dataset(remeshed: int = 0, seed: int = 0) -> Dataset:
    """The built-in humans, split by subject, numbered from 0 in order; the reference is the first, standing.

    Parameters
    ----------
    remeshed : int
        Number of remeshed versions of every shape to add.
    seed : int
        Of their triangulations.

    Returns
    -------
    Dataset
        Named `humans`.

    Examples
    --------
    >>> humans = humans_dataset()
    >>> len(humans), len(humans.reference.vertices)
    (160, 2500)
    """
    from acnn.datasets.augment import with_remeshed

    humans = builtin_humans()
    samples = []
    for i, name in enumerate(humans.names):
        split: Split = "train" if humans.split[i] == "train" else "test"
        samples.append(Sample(name, BuiltinHuman(i), split, int(humans.subjects[i]), i))
    mirror = humans.mirror.astype(np.int32)
    dataset = Dataset("humans", humans.mesh(0), tuple(samples), mirror, classes=body_parts())
    return with_remeshed(dataset, remeshed, seed) if remeshed else dataset


def _open_suffixed(text: str) -> Dataset | None:
    """The dataset of a name with a suffix such as `+remeshed`; None where it has no suffix."""
    from acnn.datasets.augment import with_remeshed
    from acnn.datasets.clouds import clouds_of
    from acnn.datasets.parts import KINDS, parts_of

    if text.endswith(CLOUDS):
        return clouds_of(open_dataset(text.removesuffix(CLOUDS)))
    if text.endswith(REMESHED):
        return with_remeshed(open_dataset(text.removesuffix(REMESHED)))
    for kind in KINDS:
        if text.endswith(f"+{kind}"):
            return parts_of(open_dataset(text.removesuffix(f"+{kind}")), kind)
    return None


def _open_parts(path: Path) -> Dataset | None:
    from acnn.datasets.shrec16 import locate_shrec16, open_located_shrec16

    location = locate_shrec16(path)
    return open_located_shrec16(*location) if location else None


def _open_folder(root: Path) -> Dataset:
    from acnn.datasets.faust import find_registrations, open_faust, open_remeshed_faust
    from acnn.datasets.folder import open_folder

    if (root / "dataset.json").is_file():
        return open_folder(root)
    if ((root / "null").is_dir() or root.name in ("cuts", "holes")) and (parts := _open_parts(root)):
        return parts
    if (root / "off").is_dir() and (root / "corres" / "sampleID.vts").is_file():
        return open_remeshed_faust(root)
    if find_registrations(root):
        return open_faust(root)
    if (root / "faust_r" / "off").is_dir():
        return open_remeshed_faust(root)
    if (root / "training").is_dir() or (root / "faust").is_dir() or root.name.lower() in ("faust", "mpi-faust"):
        return open_faust(root)  # raises with what is missing
    return open_folder(root)


def _open_research(name: str) -> Dataset:
    from acnn.datasets import faust, shrec16

    data = os.environ.get("ACNN_DATA")
    parts = name.split("/")[0] == "shrec16"
    how = shrec16.HOW_TO_GET if parts else faust.HOW_TO_GET
    if not data:
        raise InputError(f"'{name}' is looked for below the folder ACNN_DATA, which is not set. {how}")
    if parts:
        folder = Path(data) / shrec16.FOLDER / name.partition("/")[2]
        if found := _open_parts(folder):
            return found
        raise InputError(f"'{name}': {folder} does not exist. Name it as in 'shrec16/cuts/cat'. {how}")
    return faust.open_faust(Path(data)) if name == "faust" else faust.open_remeshed_faust(Path(data))
