"""Labels of vertices: files of correspondence and of classes, and datasets whose labels are classes.

- NAME.labels.txt and NAME.truth.txt (0-based), NAME.vts (1-based): correspondence to the reference
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
from numpy.typing import NDArray

from acnn.datasets.dataset import Classes, Dataset, Example
from acnn.errors import InputError
from acnn.input_files import read_lines, read_npy, read_table
from acnn.shapes.load import load
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.types import IntArray


def read_labels(path: Path, rows: int, classes: int) -> NDArray[np.int64]:
    """Read a reference vertex for every vertex, 0-based, -1 unknown, one number per line.

    Parameters
    ----------
    path : Path
        The file.
    rows, classes : int
        Numbers of vertices of the shape and of the reference.

    Returns
    -------
    (rows,) int64 array
        Labels.

    Raises
    ------
    InputError
        Where the file is missing, or does not fit a shape of `rows` and a reference of `classes`.
    """
    labels = _whole_numbers(path)
    if len(labels) != rows:
        raise InputError(f"{path}: has {len(labels)} lines, but the shape has {rows} vertices; each needs one line.")
    check_range(path, labels, -1, classes - 1, "the reference's vertices (from 0, -1 where unknown)")
    return labels


def read_vts(path: Path, vertices: int) -> NDArray[np.int64]:
    """Read (k,) vertices of one shape, 0-based here and 1-based in the file; row k of two shapes correspond."""
    listed = _whole_numbers(path)
    check_range(path, listed, 1, vertices, "the shape's vertices (.vts files count from 1)")
    return listed - 1


def truth_text(truth: BarycentricPoints) -> str:
    """Lines `face w0 w1 w2` of a .truth.txt file."""
    rows = (f"{f} {w[0]:.9g} {w[1]:.9g} {w[2]:.9g}" for f, w in zip(truth.faces, truth.weights, strict=True))
    return "\n".join(rows) + "\n"


def read_truth(path: Path, rows: int, faces: int) -> BarycentricPoints:
    """Read barycentric points on the reference: `face w0 w1 w2` on every line, faces 0-based, -1 unknown.

    Parameters
    ----------
    path : Path
        The file.
    rows, faces : int
        Number of vertices of the shape, and of faces of the reference.

    Returns
    -------
    BarycentricPoints
        For every vertex.

    Raises
    ------
    InputError
        Where the file is missing, or does not fit a shape of `rows` vertices and a reference of `faces`.
    """
    table = read_table(path, np.float64)
    if table.shape != (rows, 4):
        found = f"{table.shape[0]} lines of {table.shape[1]} numbers"
        raise InputError(f"{path}: has {found}, but {rows} lines of 'face w0 w1 w2' are needed, one for each vertex.")
    if not np.isfinite(table).all() or (table[:, 0] != np.rint(table[:, 0])).any():
        raise InputError(f"{path}: holds numbers that are not finite, or faces that are not whole numbers.")
    face, weights = table[:, 0], np.ascontiguousarray(table[:, 1:])
    check_range(path, face, -1, faces - 1, "the reference's faces (from 0, -1 where unknown)")
    check_weights(path, weights, face >= 0)
    return BarycentricPoints(face.astype(np.int32), weights)


def pair_labels(
    listed: NDArray[np.integer], reference_listed: NDArray[np.integer], shape: Shape, reference: Shape
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Pairs and labels of a shape as loaded, from two lists of vertices whose rows correspond, 0-based in file order.

    A vertex listed with several vertices of the reference is labelled with the one nearest to their mean.

    Returns
    -------
    pairs : (k, 2) int32 array
        Vertex and reference vertex, without rows whose vertex was dropped on loading.
    labels : (n,) int32 array
        -1 where a vertex is not listed.
    """
    here = listed if shape.source is None else shape.source.from_file[listed]
    there = reference_listed if reference.source is None else reference.source.from_file[reference_listed]
    pairs = np.stack([here, there], axis=1)[(here >= 0) & (there >= 0)].astype(np.int32)
    n = len(shape.vertices)
    points = reference.vertices[pairs[:, 1]]
    count = np.bincount(pairs[:, 0], minlength=n)
    mean = np.stack([np.bincount(pairs[:, 0], weights=points[:, axis], minlength=n) for axis in range(3)], axis=1)
    off = np.linalg.norm(points - (mean / np.maximum(count, 1)[:, None])[pairs[:, 0]], axis=1)
    order = np.lexsort((pairs[:, 1], -off))  # the nearest comes last and overwrites the others
    labels = np.full(n, -1, np.int32)
    labels[pairs[order, 0]] = pairs[order, 1]
    return pairs, labels


def _whole_numbers(path: Path) -> NDArray[np.int64]:
    table = read_table(path, np.int64)
    if table.shape[1] != 1:
        raise InputError(f"{path}: has {table.shape[1]} numbers per line; one per line is needed.")
    return table[:, 0]


def check_range(path: Path, values: NDArray[Any], low: int, high: int, what: str) -> None:
    """Raise InputError naming the first of some whole numbers below `low` or above `high`."""
    bad = np.flatnonzero((values < low) | (values > high))
    if len(bad):
        raise InputError(f"{path}: line {bad[0] + 1} is {values[bad[0]]:.0f}, but {what} run from {low} to {high}.")


def check_weights(path: Path, weights: NDArray[np.float64], used: NDArray[np.bool_]) -> None:
    """Raise InputError naming the first used row of (n, 3) weights that is not barycentric, but for rounding."""
    # Bounded first, so that no sum overflows.
    wrong = (weights.min(axis=1) < -1e-3) | (weights.max(axis=1) > 1.1)
    wrong[~wrong] = np.abs(weights[~wrong].sum(axis=1) - 1) > 1e-3
    off = np.flatnonzero(used & wrong)
    if len(off):
        raise InputError(f"{path}: line {off[0] + 1}: the weights must be at least 0 and sum to 1.")


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
    if names:
        return Classes(names)
    found = [_integers(file) for file in files]
    for file, classes in zip(files, found, strict=True):
        check_range(file, classes, -1, MOST - 1, "classes (from 0, -1 where unknown)")
    return Classes(_numbered(np.concatenate(found)))


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
