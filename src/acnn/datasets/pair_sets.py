"""Pairs of shapes with ground truth, sets of them, and lists of their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from acnn.datasets.dataset import Example, Sample, select_samples
from acnn.errors import InputError
from acnn.input_files import read_lines
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.types import IntArray

Truth = IntArray | BarycentricPoints
"""Vertices of B (-1 unknown), or points on its triangles (face -1 unknown)."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two shapes and the ground truth of A on B.

    Attributes
    ----------
    names : tuple[str, str]
        Of A and B.
    a : Shape
        Mesh or cloud with n vertices.
    b : Mesh
        The target.
    truth : (k,) int array or BarycentricPoints
        Vertices or points of B, -1 where unknown.
    mirrored : like truth, or None
        The ground truth of the left-right mirrored map; None where there is none.
    rows : (k,) int array or None
        The vertices of A that the rows of the ground truth belong to; None where row i belongs to vertex i.
    """

    names: tuple[str, str]
    a: Shape
    b: Mesh
    truth: Truth
    mirrored: Truth | None = None
    rows: IntArray | None = None


@dataclass(frozen=True, eq=False)
class PairSet:
    """Pairs of one set of shapes, read when needed.

    Attributes
    ----------
    name : str
        Of the set.
    names : tuple[tuple[str, str], ...]
        Names of A and B of every ordered pair, self-pairs included where the set has them.
    read : callable
        Reads the pair of two names; raises InputError.
    samples : tuple[Sample, ...]
        The shapes with their numbers and splits, where they are known.

    Examples
    --------
    >>> from acnn.datasets.pairs import open_pairs
    >>> humans = open_pairs("humans")
    >>> len(humans), humans.drawn(1).names
    (25600, (('human_13_05', 'human_11_07'),))
    """

    name: str
    names: tuple[tuple[str, str], ...]
    read: Callable[[str, str], Pair]
    samples: tuple[Sample, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.names)

    def __repr__(self) -> str:
        return f"PairSet({self.name!r}, {len(self)} pairs)"

    def select(self, wanted: Iterable[tuple[str, str]]) -> PairSet:
        """Select pairs by the names of A and B, in the order given.

        Raises
        ------
        InputError
            Where there is no such pair.
        """
        known, selected = set(self.names), tuple(wanted)
        for a, b in selected:
            if (a, b) not in known:
                example = f", such as '{' '.join(self.names[0])}'" if self.names else ""
                raise InputError(f"{self.name}: there is no pair '{a} {b}'. It holds {len(self)} pairs{example}.")
        return replace(self, names=selected)

    def among(self, shapes: str) -> PairSet:
        """The pairs between shapes of a list such as `060-079`, see `Dataset.select`.

        Raises
        ------
        InputError
            Where the list names a shape that is not there.
        """
        present = dict.fromkeys(name for pair in self.names for name in pair)
        samples = self.samples or [Sample(name, _unread) for name in present]
        listed = select_samples(samples, shapes, self.name)
        kept = {sample.name for sample in listed}
        return replace(self, names=tuple(pair for pair in self.names if kept.issuperset(pair)))

    def drawn(self, count: int, seed: int = 0) -> PairSet:
        """Pairs of two different shapes, drawn at random without replacement; all of them where there are fewer."""
        different = [pair for pair in self.names if pair[0] != pair[1]]
        order = np.random.default_rng(seed).permutation(len(different))[:count]
        return replace(self, names=tuple(different[i] for i in order))


def read_pair_list(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Read a list of pairs: on each line the names of A and B; `#` begins a comment.

    Raises
    ------
    InputError
        Where a line has other than two names, or there is none.
    """
    return [(a, b) for a, b in read_words(Path(path), (2,))]


def read_words(path: Path, allowed: tuple[int, ...]) -> list[list[str]]:
    """The words of each line of a list of pairs, without comments; raises InputError where their number is another."""
    lines = []
    for number, line in enumerate(read_lines(path), start=1):
        words = line.partition("#")[0].split()
        if words and len(words) not in allowed:
            raise InputError(f"{path}: line {number} has {len(words)} words; the names of A and B are needed.")
        if words:
            lines.append(words)
    if not lines:
        raise InputError(f"{path}: lists no pairs; each line has the names of A and B.")
    return lines


def _unread() -> Example:
    raise AssertionError("only names are selected")
