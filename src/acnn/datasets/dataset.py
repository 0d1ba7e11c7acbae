"""A dataset: a reference shape, and samples whose vertices are known to correspond to it.

All numbering is that of shapes as loaded: `load` may drop, merge or split vertices of a file, and labels that belong
to the file are carried over (`labels_as_loaded`, `truth_as_loaded`).
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
    """A shape, and what is known of it.

    Attributes
    ----------
    shape : Shape
        Mesh or cloud with n vertices.
    labels : (n,) int32 array
        The reference's vertex nearest to where each vertex belongs; -1 unknown.
    truth : BarycentricPoints or None
        The exact place on the reference's faces, where known.
    pairs : (k, 2) int32 array or None
        Rows (vertex, vertex of the reference) where the truth is a list in which a vertex may occur more than once;
        errors are then averaged over the rows.
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
class Sample:
    """One shape of a dataset, read when needed.

    Attributes
    ----------
    name : str
        Unique in its dataset.
    read : callable
        Gives the shape with its labels; picklable, so that other processes can call it; raises InputError.
    split : Split or None
        `train` or `test`, None where the dataset does not say.
    subject : int or str or None
        Whose shape it is; None where unknown.
    number : int or None
        What ranges such as 000-059 count; by default the digits at the end of the name.
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
    """Reads an example that is at hand already."""

    example: Example

    def __call__(self) -> Example:
        """The example."""
        return self.example


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples and the reference on which their labels live.

    Attributes
    ----------
    reference : Mesh
        M vertices.
    mirror : (m,) int32 array or None
        The reference's vertex on the other side of its plane of symmetry, -1 unknown; or None.
    unit : float or None
        Length of one run unit in the coordinates of every sample; None where each takes its own geodesic diameter.
    """

    name: str
    reference: Mesh
    samples: tuple[Sample, ...]
    mirror: IntArray | None = None
    unit: float | None = None

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
        """The dataset with only some of its samples, in the order asked for, each once.

        Parameters
        ----------
        wanted : str or Sequence[str]
            Names, numbers and ranges of numbers separated by commas, `000-059,065`; also ranges of names
            (`tr_reg_000-tr_reg_059`), patterns (`human_16_*`), and the words `train`, `test` and `all`.

        Raises
        ------
        InputError
            For what is not there, be it one number of a range, and for a range that runs backwards.
        """
        items = wanted.split(",") if isinstance(wanted, str) else list(wanted)
        chosen: dict[str, Sample] = {}
        for item in (item.strip() for item in items):
            if item:
                chosen.update((sample.name, sample) for sample in self._matching(item))
        if not chosen:
            raise InputError(f"{self.name}: '{wanted}' names no shape. {self._holds()}")
        return replace(self, samples=tuple(chosen.values()))

    def named(self, name: str) -> Sample:
        """The sample of a name; raises InputError where there is none."""
        for sample in self.samples:
            if sample.name == name:
                return sample
        raise InputError(f"{self.name}: there is no shape '{name}'. {self._holds()}")

    def _matching(self, item: str) -> list[Sample]:
        names = [sample.name for sample in self.samples]
        if item in names:
            return [self.samples[names.index(item)]]
        if item == "all":
            return list(self.samples)
        if item in ("train", "test") and any(sample.split for sample in self.samples):
            return [sample for sample in self.samples if sample.split == item]
        if item.isdecimal():
            found = [sample for sample in self.samples if sample.number == int(item)]
        elif bounds := re.fullmatch(r"(\d{1,9})-(\d{1,9})", item):
            found = self._numbered(item, *map(int, bounds.groups()))
        elif any(sign in item for sign in "*?["):
            found = [sample for sample in self.samples if fnmatch.fnmatchcase(sample.name, item)]
        else:
            # A name may itself hold a hyphen, so every one of them may be the one between two names.
            ends = [(item[:at], item[at + 1 :]) for at, sign in enumerate(item) if sign == "-"]
            places = [(names.index(a), names.index(b)) for a, b in ends if a in names and b in names]
            if places and places[0][0] > places[0][1]:
                raise InputError(f"{self.name}: the range '{item}' runs backwards: exchange its ends. {self._holds()}")
            found = list(self.samples[places[0][0] : places[0][1] + 1]) if places else []
        if not found:
            raise InputError(f"{self.name}: there is no shape '{item}'. {self._holds()}")
        return found

    def _numbered(self, item: str, first: int, last: int) -> list[Sample]:
        if first > last:
            raise InputError(f"{self.name}: the range '{item}' runs backwards: exchange its ends. {self._holds()}")
        found = sorted(
            (s for s in self.samples if s.number is not None and first <= s.number <= last), key=lambda s: s.number or 0
        )
        present = {sample.number for sample in found}
        if len(present) < last - first + 1:
            lacking = next(k for k in range(first, last + 1) if k not in present)
            more = last - first - len(present)
            others = f" (nor {more} more of '{item}')" if more > 0 else ""
            raise InputError(f"{self.name}: there is no shape number {lacking}{others}. {self._holds()}")
        return found

    def _holds(self) -> str:
        if not self.samples:
            return "It holds no shapes."
        numbers = sorted({sample.number for sample in self.samples if sample.number is not None})
        counted = f", numbers {numbers[0]} to {numbers[-1]}" if numbers else ""
        names = f"{self.samples[0].name}" + (f" to {self.samples[-1].name}" if len(self) > 1 else "")
        return f"It holds {len(self)} shape{'s' if len(self) > 1 else ''}: {names}{counted}."


def labels_as_loaded(labels: NDArray[np.integer], shape: Shape, reference: Shape) -> IntArray:
    """(n,) labels for the vertices of a shape as loaded, from labels that count as the files do.

    Parameters
    ----------
    labels : (vertices in the shape's file,) array
        Vertex in the reference's file, -1 unknown; trusted to be in range.
    """
    mine = labels if shape.source is None else labels[shape.source.to_file]
    if reference.source is None:
        return np.asarray(mine, np.int32)
    there = np.append(reference.source.from_file, np.int32(-1))  # so that -1 stays -1
    return there[mine].astype(np.int32)


def truth_as_loaded(
    truth: BarycentricPoints, file_faces: NDArray[np.integer], shape: Shape, reference: Mesh
) -> BarycentricPoints:
    """Truth for the vertices of a shape as loaded, on the faces of the reference as loaded.

    Reading may have turned or dropped faces: the same three corners are looked for, and a face that is gone leaves -1.

    Parameters
    ----------
    truth : BarycentricPoints
        For the vertices in the shape's file, on the faces in the reference's file.
    file_faces : (m, 3) array
        Those faces, as `load(path, repair=False)` gives them.
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
    """Compare the vertices of two files, of which vertex i is to be the same point in both.

    Both must have as many vertices and, as meshes, share half of their edges: reading may drop faces of one of them,
    and splits polygons by their form.

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
    """A number for each edge, by the vertices of the file that it joins."""
    ends = np.sort(source.to_file[mesh.faces[:, [0, 1, 1, 2, 2, 0]]].reshape(-1, 2).astype(np.int64), axis=1)
    return np.unique(ends[:, 0] * len(source.from_file) + ends[:, 1])


def spread_over(items: Sequence[T], count: int | None) -> list[T]:
    """`count` of the items, spread evenly over them; all where there are no more, or for None."""
    if count is None or count >= len(items):
        return list(items)
    return [items[(i * len(items)) // count] for i in range(count)]
