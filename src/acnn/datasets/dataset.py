"""Datasets: a reference shape, and samples with known correspondence to it.

All numbering is that of shapes as loaded: `load` may drop, merge or split vertices of a file, and labels in file order
are converted (`labels_as_loaded`, `truth_as_loaded`).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape, Source
from acnn.types import IntArray

Split = Literal["train", "test"]
T = TypeVar("T")


class UnrelatedError(InputError):
    """A shape that can be read, but whose correspondence to the reference is not known."""


@dataclass(frozen=True, eq=False)
class Example:
    """A shape with its labels and ground truth.

    Attributes
    ----------
    shape : Shape
        Mesh or cloud with n vertices.
    labels : (n,) int32 array
        The reference vertex nearest to the true point of each vertex; -1 unknown.
    truth : BarycentricPoints or None
        The exact points on the reference's faces, where known.
    pairs : (k, 2) int32 array or None
        Rows (vertex, vertex of the reference) where the ground truth is a list in which a vertex may occur more than
        once; errors are then averaged over the rows.
    mirrored : (n,) int32 array or None
        As `labels`, on the other side of the reference; None where unknown or where the mirror of the dataset gives it.
    mirrored_truth : BarycentricPoints or None
        As `truth`, likewise.
    """

    shape: Shape
    labels: IntArray
    truth: BarycentricPoints | None = None
    pairs: IntArray | None = None
    mirrored: IntArray | None = None
    mirrored_truth: BarycentricPoints | None = None


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of vertices, for segmentation.

    Attributes
    ----------
    names : tuple[str, ...]
        Of the classes.
    of_reference : (m,) int32 array or None
        Class of each vertex of the reference, -1 unknown; None where every shape has a file of its own.
    """

    names: tuple[str, ...]
    of_reference: IntArray | None = None

    def __repr__(self) -> str:
        return f"Classes({len(self.names)}: {', '.join(self.names[:3])}{', ...' if len(self.names) > 3 else ''})"


@dataclass(frozen=True, eq=False)
class Sample:
    """One shape of a dataset, read when needed.

    Attributes
    ----------
    name : str
        Unique in its dataset.
    read : callable
        Returns the shape with its labels; picklable, so that other processes can call it; raises InputError.
    split : Split or None
        `train` or `test`, None where unknown.
    subject : int or str or None
        The subject; None where unknown.
    number : int or None
        The number for ranges such as 000-059; by default the digits at the end of the name.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> triangle = Mesh(np.eye(3), np.array([[0, 1, 2]], np.int32))
    >>> Sample("triangle_07", InMemory(Example(triangle, np.arange(3)))).number
    7
    """

    name: str
    read: Callable[[], Example]
    split: Split | None = None
    subject: int | str | None = None
    number: int | None = None

    def __post_init__(self) -> None:
        if self.number is None and (digits := re.search(r"\d{1,9}$", self.name)):
            object.__setattr__(self, "number", int(digits.group()))

    def __repr__(self) -> str:
        return f"Sample({self.name!r})"


@dataclass(frozen=True, eq=False)
class InMemory:
    """Reads an example that is in memory already."""

    example: Example

    def __call__(self) -> Example:
        """The example."""
        return self.example


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples, and the reference whose vertices their labels are.

    Attributes
    ----------
    name : str
        Of the dataset.
    reference : Mesh
        Of m vertices.
    samples : tuple[Sample, ...]
        With different names.
    mirror : (m,) int32 array or None
        The mirror image of each reference vertex, -1 unknown; None where the reference has no known symmetry.
    unit : float or None
        Unit of length of the run, in the coordinates of every sample; None where each sample is normalised by its own
        geodesic diameter.
    classes : Classes or None
        Of the vertices, where known; see `acnn.datasets.labels`.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> triangle = Mesh(np.eye(3), np.array([[0, 1, 2]], np.int32))
    >>> read = InMemory(Example(triangle, np.arange(3)))
    >>> dataset = Dataset("triangles", triangle, tuple(Sample(f"triangle_{i}", read) for i in range(9)))
    >>> [sample.name for sample in dataset.select("2-3,7")]
    ['triangle_2', 'triangle_3', 'triangle_7']
    """

    name: str
    reference: Mesh
    samples: tuple[Sample, ...]
    mirror: IntArray | None = None
    unit: float | None = None
    classes: Classes | None = None

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for sample in self.samples:
            if sample.name in seen:
                raise InputError(f"{self.name}: two shapes are named '{sample.name}'. Rename one of them.")
            seen.add(sample.name)

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} samples, reference {self.reference!r})"

    def select(self, wanted: str | Sequence[str]) -> Dataset:
        """Select samples, in the order given, each once.

        Parameters
        ----------
        wanted : str or Sequence[str]
            Names, numbers and ranges of numbers separated by commas, `000-059,065`; also ranges of names
            (`tr_reg_000-tr_reg_059`), patterns (`human_16_*`), and the keywords `train`, `test` and `all`.

        Returns
        -------
        Dataset
            With only these samples.

        Raises
        ------
        InputError
            Where a name or a number of a range does not exist, or a range runs backwards.
        """
        return replace(self, samples=tuple(select_samples(self.samples, wanted, self.name)))

    def named(self, name: str) -> Sample:
        """Return the sample of a name; raises InputError where there is none."""
        for sample in self.samples:
            if sample.name == name:
                return sample
        raise InputError(f"{self.name}: there is no shape '{name}'. {_holds(self.samples)}")


def select_samples(samples: Sequence[Sample], wanted: str | Sequence[str], where: str) -> list[Sample]:
    """Select samples of a list as `Dataset.select` does; raises InputError with `where` they are looked for."""
    items = wanted.split(",") if isinstance(wanted, str) else list(wanted)
    selection: dict[str, Sample] = {}
    for item in (item.strip() for item in items):
        if item:
            selection.update((sample.name, sample) for sample in _matching(samples, item, where))
    if not selection:
        raise InputError(f"{where}: '{wanted}' names no shape. {_holds(samples)}")
    return list(selection.values())


def _matching(samples: Sequence[Sample], item: str, where: str) -> list[Sample]:
    names = [sample.name for sample in samples]
    if item in names:
        return [samples[names.index(item)]]
    if item == "all":
        return list(samples)
    if item in ("train", "test") and any(sample.split for sample in samples):
        return [sample for sample in samples if sample.split == item]
    if item.isdecimal():
        found = [sample for sample in samples if sample.number == int(item)]
    elif bounds := re.fullmatch(r"(\d{1,9})-(\d{1,9})", item):
        found = _numbered(samples, item, where, *map(int, bounds.groups()))
    elif any(sign in item for sign in "*?["):
        found = [sample for sample in samples if fnmatch.fnmatchcase(sample.name, item)]
    else:
        # A name may itself contain hyphens, so each of them may be the one between two names.
        ends = [(item[:at], item[at + 1 :]) for at, sign in enumerate(item) if sign == "-"]
        ranges = [(names.index(a), names.index(b)) for a, b in ends if a in names and b in names]
        if ranges and ranges[0][0] > ranges[0][1]:
            raise InputError(f"{where}: the range '{item}' runs backwards: exchange its ends. {_holds(samples)}")
        found = list(samples[ranges[0][0] : ranges[0][1] + 1]) if ranges else []
    if not found:
        raise InputError(f"{where}: there is no shape '{item}'. {_holds(samples)}")
    return found


def _numbered(samples: Sequence[Sample], item: str, where: str, first: int, last: int) -> list[Sample]:
    if first > last:
        raise InputError(f"{where}: the range '{item}' runs backwards: exchange its ends. {_holds(samples)}")
    found = sorted(
        (s for s in samples if s.number is not None and first <= s.number <= last), key=lambda s: s.number or 0
    )
    present = {sample.number for sample in found}
    if len(present) < last - first + 1:
        lacking = next(k for k in range(first, last + 1) if k not in present)
        more = last - first - len(present)
        others = f" (nor {more} more of '{item}')" if more > 0 else ""
        raise InputError(f"{where}: there is no shape number {lacking}{others}. {_holds(samples)}")
    return found


def _holds(samples: Sequence[Sample]) -> str:
    if not samples:
        return "It holds no shapes."
    numbers = sorted({sample.number for sample in samples if sample.number is not None})
    counted = f", numbers {numbers[0]} to {numbers[-1]}" if numbers else ""
    names = f"{samples[0].name}" + (f" to {samples[-1].name}" if len(samples) > 1 else "")
    return f"It holds {len(samples)} shape{'s' if len(samples) > 1 else ''}: {names}{counted}."


def labels_as_loaded(labels: NDArray[np.integer], shape: Shape, reference: Shape) -> IntArray:
    """Convert labels from the numbering of files to that of shapes as loaded.

    Parameters
    ----------
    labels : (vertices in the shape's file,) array
        Vertex in the reference's file, -1 unknown; assumed to be in range.
    shape, reference : Shape
        As loaded.

    Returns
    -------
    (n,) int32 array
        Reference vertex of each vertex of the shape, -1 unknown.
    """
    mine = labels if shape.source is None else labels[shape.source.to_file]
    if reference.source is None:
        return np.asarray(mine, np.int32)
    there = np.append(reference.source.from_file, np.int32(-1))  # so that -1 stays -1
    return there[mine].astype(np.int32)


def truth_as_loaded(
    truth: BarycentricPoints, file_faces: NDArray[np.integer], shape: Shape, reference: Mesh
) -> BarycentricPoints:
    """Convert ground truth from the numbering of files to that of shapes as loaded.

    Loading may have flipped or dropped faces: faces are found by their three corners, and a dropped face gives -1.

    Parameters
    ----------
    truth : BarycentricPoints
        For the vertices in the shape's file, on the faces in the reference's file.
    file_faces : (m, 3) array
        Those faces, as `load(path, repair=False)` returns them.
    shape : Shape
        As loaded.
    reference : Mesh
        As loaded.

    Returns
    -------
    BarycentricPoints
        For the vertices of the shape, on the faces of the reference.
    """
    if shape.source is not None:
        truth = truth[shape.source.to_file]
    if np.array_equal(file_faces, reference.faces):
        return truth
    moved = np.asarray(file_faces) if reference.source is None else reference.source.from_file[file_faces]
    order, there_order = np.argsort(moved, axis=1), np.argsort(reference.faces, axis=1)
    there = np.take_along_axis(reference.faces, there_order, axis=1)
    number = {tuple(corners): k for k, corners in enumerate(there.tolist())}
    here = np.take_along_axis(moved, order, axis=1).tolist()
    target = np.array([number.get(tuple(corners), -1) for corners in here], np.int32)
    face = np.where(truth.faces >= 0, target[truth.faces], -1).astype(np.int32)
    weights = np.zeros_like(truth.weights)
    ascending = np.take_along_axis(truth.weights, order[truth.faces], axis=1)
    np.put_along_axis(weights, there_order[face], ascending, axis=1)
    return BarycentricPoints(face, weights)


def vertex_difference(shape: Shape, reference: Shape) -> str:
    """Check whether vertex i of two files can be the same point.

    Both must have the same number of vertices and, as meshes, at least half of their edges in common: loading may drop
    faces of one of them, and splits polygons depending on their shape.

    Parameters
    ----------
    shape, reference : Shape
        As loaded from files.

    Returns
    -------
    str
        What differs, such as `49 vertices, not 36`; empty where vertex i can be vertex i.
    """
    assert shape.source is not None
    assert reference.source is not None
    count, wanted = len(shape.source.from_file), len(reference.source.from_file)
    if count != wanted:
        return f"{count} vertices, not {wanted}"
    if isinstance(shape, Mesh) and isinstance(reference, Mesh):
        mine, theirs = _edges_in_file(shape, shape.source), _edges_in_file(reference, reference.source)
        if 2 * len(np.intersect1d(mine, theirs, assume_unique=True)) < min(len(mine), len(theirs)):
            return "other edges"
    return ""


def _edges_in_file(mesh: Mesh, source: Source) -> NDArray[np.int64]:
    """A number for each edge, from its two vertices in the file."""
    ends = np.sort(source.to_file[mesh.faces[:, [0, 1, 1, 2, 2, 0]]].reshape(-1, 2).astype(np.int64), axis=1)
    return np.unique(ends[:, 0] * len(source.from_file) + ends[:, 1])


def spread_over(items: Sequence[T], count: int | None) -> list[T]:
    """Select evenly spread items.

    Parameters
    ----------
    items : Sequence[T]
    count : int or None
        None, or more than there are, selects all.

    Returns
    -------
    list[T]
        In the same order.
    """
    if count is None or count >= len(items):
        return list(items)
    return [items[(i * len(items)) // count] for i in range(count)]
