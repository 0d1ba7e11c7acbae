"""Classes of vertices: their files, and datasets whose labels are classes.

- classes.txt or classes.npy in a folder of shapes: a class for every vertex of the reference, 0-based, -1 unknown
- NAME.classes.txt or NAME.classes.npy beside NAME.ply: a class for every vertex of that shape; needs no correspondence
- classes.names.txt: the names of the classes, one per line; without it they are `class 0`, `class 1` and so on
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from acnn.datasets.dataset import Classes, Dataset, Example
from acnn.datasets.label_files import check_range
from acnn.errors import InputError
from acnn.input_files import read_lines, read_npy, read_table
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh, Shape
from acnn.types import IntArray

MOST = 1000
"""Largest number of classes: more are labels over a reference."""

HOW_TO_GIVE = (
    "give a file with a class for every vertex of the reference (--classes FILE), or put classes.txt, or "
    "NAME.classes.txt of every shape, beside the shapes"
)


@dataclass(frozen=True, eq=False)
class ByReference:
    """Reads a shape, labelled with the classes of its points on the reference."""

    read: Callable[[], Example]
    classes: IntArray

    def __call__(self) -> Example:
        """The shape with its classes."""
        example = self.read()
        known = np.append(self.classes, np.int32(-1))  # so that -1 stays -1
        return Example(example.shape, known[example.labels].astype(np.int32))


@dataclass(frozen=True, eq=False)
class OwnClasses:
    """Reads a shape and the file of its classes beside it."""

    path: str
    count: int

    def __call__(self) -> Example:
        """The shape with its classes."""
        shape, file = load(self.path), class_file(Path(self.path).with_suffix(".classes.txt"))
        if file is None:
            name = Path(self.path).with_suffix("").name
            raise InputError(f"{self.path}: has no classes: looked for {name}.classes.txt and {name}.classes.npy.")
        return Example(shape, _as_loaded(read_classes(file, _rows(shape), self.count), shape))


def segmented(dataset: Dataset, classes: Classes | None = None) -> Dataset:
    """The dataset with classes as labels.

    Parameters
    ----------
    dataset : Dataset
        With labels over its reference, or with a file of classes for each shape.
    classes : Classes or None
        None takes those of the dataset.

    Returns
    -------
    Dataset
        Whose labels are numbers of `classes`.

    Raises
    ------
    InputError
        Where the dataset has no classes.
    """
    chosen = classes or dataset.classes
    if chosen is None:
        raise InputError(f"{dataset.name}: the classes of its vertices are not known: {HOW_TO_GIVE}.")
    samples = tuple(replace(sample, read=_reader(sample.read, chosen, sample.name)) for sample in dataset.samples)
    return replace(dataset, samples=samples, classes=chosen, mirror=None)


def classes_from_file(path: Path, reference: Mesh) -> Classes:
    """Read the classes of a reference's vertices, and their names beside them (FILE.names.txt).

    Parameters
    ----------
    path : Path
        `.npy`, or text with one number per line; 0-based, -1 unknown.
    reference : Mesh
        As loaded.

    Raises
    ------
    InputError
        Where the file is missing or does not fit.
    """
    names = _names(path)
    found = read_classes(path, _rows(reference), len(names) or MOST)
    return Classes(names or _numbered(found), _as_loaded(found, reference))


def folder_classes(root: Path, shapes: Sequence[Path], reference: Mesh) -> Classes | None:
    """The classes that the files of a folder give; None where there are none."""
    common = class_file(root / "classes.txt")
    if common is not None:
        return classes_from_file(common, reference)
    files = [file for shape in shapes if (file := class_file(shape.with_suffix(".classes.txt"))) is not None]
    if not files:
        return None
    names = _names(root / "classes.txt")
    return Classes(names or _numbered(np.concatenate([_integers(file) for file in files])))


def class_file(path: Path) -> Path | None:
    """A file of classes, as text or as an array; None where there is neither."""
    return next((file for file in (path, path.with_suffix(".npy")) if file.is_file()), None)


def read_classes(path: Path, rows: int, count: int) -> IntArray:
    """Read (rows,) classes from 0 to count - 1, -1 unknown.

    Raises
    ------
    InputError
        Where the file is missing or does not fit.
    """
    classes = _integers(path)
    if len(classes) != rows:
        raise InputError(f"{path}: has {len(classes)} classes, but the shape has {rows} vertices; each needs one.")
    check_range(path, classes, -1, count - 1, "classes (from 0, -1 where unknown)")
    if not (classes >= 0).any():
        raise InputError(f"{path}: no vertex has a class.")
    return classes


def _reader(read: Any, classes: Classes, name: str) -> Any:
    """A reader of classes: those of the shape itself, from which others may be remeshed, sampled or cut."""
    if hasattr(read, "read"):
        return replace(read, read=_reader(read.read, classes, name))
    if classes.of_reference is not None:
        return ByReference(read, classes.of_reference)
    if not hasattr(read, "path"):
        raise InputError(f"{name}: there is no file that it was read from, and so none of its classes: {HOW_TO_GIVE}.")
    return OwnClasses(read.path, len(classes.names))


def _integers(path: Path) -> IntArray:
    if path.suffix.lower() != ".npy":
        table = read_table(path, np.int64)
        if table.shape[1] != 1:
            raise InputError(f"{path}: has {table.shape[1]} numbers per line; one per line is needed.")
        return table[:, 0]
    array = read_npy(path)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"{path}: holds {array.dtype} of shape {array.shape}; (n,) integers are needed.")
    return array.astype(np.int64)


def _names(path: Path) -> tuple[str, ...]:
    file = path.with_suffix(".names.txt")
    if not file.is_file():
        return ()
    names = tuple(line.strip() for line in read_lines(file) if line.strip())
    if len(set(names)) < len(names):
        raise InputError(f"{file}: a name occurs twice. Give every class a name of its own.")
    return names


def _numbered(classes: IntArray) -> tuple[str, ...]:
    return tuple(f"class {k}" for k in range(int(classes.max()) + 1))


def _rows(shape: Shape) -> int:
    return len(shape.vertices) if shape.source is None else len(shape.source.from_file)


def _as_loaded(classes: IntArray, shape: Shape) -> IntArray:
    return (classes if shape.source is None else classes[shape.source.to_file]).astype(np.int32)
