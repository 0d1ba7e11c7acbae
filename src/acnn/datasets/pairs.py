"""Pairs of shapes with the ground truth of one on the other: SCAPE, TOSCA, SHREC'19, FAUST, SHREC'16, any folder.

    scape/meshNNN.ply                one connectivity: vertex i is vertex i
    tosca/CLASSN.ply                 one connectivity within a class, the name without its number
    faust/training/registrations/    one connectivity
    faust_r/off, corres/NAME.vts     row k of A corresponds to row k of B, 1-based; NAME.sym.vts mirrored
    shrec19/truth/A_B.txt            for each vertex of A a vertex of B, 1-based
    shrec16_partial/                 partial shapes to the full shape of their class
    FOLDER/pairs.txt                 lines `A B [TRUTH [MIRRORED]]`; the files as NAME.labels.txt or NAME.truth.txt

A shared triangulation would help a method that sees it, so shapes whose truth comes through a common reference are
remeshed first, each with its own seed. Truth is then found in the pose of the reference: the vertices of A and the
triangles of B are moved there by what they were before remeshing, and each vertex of A corresponds to the closest point
of B's triangles.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from acnn.arguments import check_arguments
from acnn.datasets.augment import cached_remesh
from acnn.datasets.dataset import Dataset, Example, Sample, labels_as_loaded, select_samples, truth_as_loaded
from acnn.datasets.faust import find_registrations, open_faust
from acnn.datasets.folder import FolderShape, label_paths, shapes_in
from acnn.datasets.labels import read_labels, read_truth, read_vts
from acnn.datasets.open import open_dataset
from acnn.datasets.parts import KINDS
from acnn.datasets.shrec16 import Shrec16Part, load_mesh, locate_shrec16, shrec16_parts
from acnn.errors import InputError
from acnn.input_files import read_lines, read_table
from acnn.shapes.load import load
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.surface.closest_points import ClosestPoints
from acnn.types import FloatArray, IntArray

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
            raise InputError(f"{path}: line {number} has {len(words)} entries; the names of A and B are needed.")
        if words:
            lines.append(words)
    if not lines:
        raise InputError(f"{path}: lists no pairs; each line has the names of A and B.")
    return lines


def _unread() -> Example:
    raise AssertionError("only names are selected")


FOLDERS = {name: name for name in ("scape", "tosca", "shrec19", "faust", "faust_r")} | {"shrec16": "shrec16_partial"}
"""Names of sets, and their folders below `ACNN_DATA`."""

LIST = "pairs.txt"

__all__ = ["FOLDERS", "Pair", "PairSet", "Truth", "open_pairs", "read_pair_list"]


@check_arguments
def open_pairs(where: str | os.PathLike[str], *, remesh: bool = True, seed: int = 0) -> PairSet:
    """Open a set of pairs.

    Parameters
    ----------
    where : path
        `scape`, `tosca`, `shrec19`, `faust`, `faust_r`, `shrec16` or part of it such as `shrec16/cuts/cat` (below
        `ACNN_DATA`); a folder laid out as one of these or with `pairs.txt` (see the module docstring); or any dataset
        of `open_dataset`.
    remesh : bool
        Whether shapes whose truth comes through a common reference (SCAPE, TOSCA, FAUST registrations and datasets) are
        remeshed.
    seed : int
        Of the triangulations, together with the name of each shape.

    Returns
    -------
    PairSet
        All ordered pairs with ground truth, or those of `pairs.txt`.

    Raises
    ------
    InputError
        With what was looked for.
    """
    root = Path(where).expanduser()
    name, _, below = os.fspath(where).partition("/")
    if name in FOLDERS and not root.is_dir():
        root = _research_folder(name) / below
    own = seed if remesh else None
    if (root / LIST).is_file():
        return _open_listed(root, own)
    if (root / "truth").is_dir():
        return _open_truth_files(root)
    if (root / "off").is_dir() and (root / "corres").is_dir():
        return _open_rows(root)
    if parts := locate_shrec16(root):
        return _open_parts(*parts)
    if not root.is_dir():
        return _within([open_dataset(where)], own)
    if find_registrations(root):
        return _within([open_faust(root)], own)
    return _within(_classes(root), own, root.name)


def _research_folder(name: str) -> Path:
    data = os.environ.get("ACNN_DATA")
    if not data:
        raise InputError(f"'{name}' is looked for below the folder ACNN_DATA, which is not set.")
    root = Path(data) / FOLDERS[name]
    if not root.is_dir():
        raise InputError(f"'{name}': there is no folder {root}.")
    return root


@dataclass(frozen=True, eq=False)
class _InFrame:
    """A shape, and its vertices in the pose of the reference.

    - points: (n, 3), nan where unknown
    - mirrored: (n, 3) of the mirror images of the vertices, or None
    """

    shape: Shape
    points: FloatArray
    mirrored: FloatArray | None

    def remeshed(self, seed: int) -> _InFrame:
        if not isinstance(self.shape, Mesh):
            raise InputError("A point cloud cannot be remeshed: open the pairs without remeshing.")
        made, faces = cached_remesh(self.shape, seed), self.shape.faces
        mirrored = None if self.mirrored is None else made.truth.interpolate(self.mirrored[faces])
        return _InFrame(made.mesh, made.truth.interpolate(self.points[faces]), mirrored)

    def closest(self, points: FloatArray) -> BarycentricPoints:
        """The closest points of the triangles, in the pose of the reference; -1 where a point is unknown."""
        if not isinstance(self.shape, Mesh):
            raise InputError("B is a point cloud, which has no triangles for barycentric points. Use a mesh as B.")
        usable = np.flatnonzero(np.isfinite(self.points[self.shape.faces]).all(axis=(1, 2)))
        if not len(usable):
            raise InputError("B has no triangle with known ground truth.")
        known = np.isfinite(points).all(axis=1)
        found = ClosestPoints(np.nan_to_num(self.points), self.shape.faces[usable])(points[known])
        faces, weights = np.full(len(points), -1, np.int32), np.zeros((len(points), 3))
        faces[known], weights[known] = usable[found.faces], found.weights
        return BarycentricPoints(faces, weights)


class _Through:
    """Pairs of shapes within datasets, with truth through the reference; remeshed where there is a seed."""

    def __init__(self, datasets: Sequence[Dataset], seed: int | None) -> None:
        self.seed = seed
        self.of = {sample.name: dataset for dataset in datasets for sample in dataset}
        self.shape = lru_cache(maxsize=32)(self._shape)

    def read(self, a: str, b: str) -> Pair:
        first, second = self.shape(a), self.shape(b)
        if not isinstance(second.shape, Mesh):
            raise InputError(f"{b}: is a point cloud; ground truth needs the triangles of a mesh as B.")
        mirrored = None if first.mirrored is None else second.closest(first.mirrored)
        return Pair((a, b), first.shape, second.shape, second.closest(first.points), mirrored)

    def _shape(self, name: str) -> _InFrame:
        dataset = self.of[name]
        example, reference = dataset.named(name).read(), dataset.reference
        points, mirrored = _points(example.labels, example.truth, reference), None
        if example.mirrored is not None:
            mirrored = _points(example.mirrored, example.mirrored_truth, reference)
        elif dataset.mirror is not None:
            image = np.append(dataset.mirror, -1)  # so that -1 stays -1
            mirrored = _points(image[example.labels], None, reference)
        found = _InFrame(example.shape, points, mirrored)
        return found if self.seed is None else found.remeshed(_own_seed(self.seed, name))


@dataclass(frozen=True)
class _Rows:
    """Pairs of remeshed FAUST: rows of .vts files correspond."""

    root: Path

    def read(self, a: str, b: str) -> Pair:
        first, second = (load_mesh(str(self.root / "off" / f"{name}.off")) for name in (a, b))
        rows, truth = self._rows(a, ".vts", first), self._rows(b, ".vts", second)
        mirrored = None
        if (self.root / "corres" / f"{b}.sym.vts").is_file():
            mirrored = self._rows(b, ".sym.vts", second)
        for listed in (truth, mirrored):
            if listed is not None and len(listed) != len(rows):
                raise InputError(f"{self.root / 'corres'}: {a} has {len(rows)} rows, but {b} has {len(listed)}.")
        here = rows >= 0  # loading may have removed a vertex
        other = None if mirrored is None else mirrored[here]
        return Pair((a, b), first, second, truth[here], other, rows[here])

    def _rows(self, name: str, ending: str, mesh: Mesh) -> IntArray:
        assert mesh.source is not None
        return mesh.source.from_file[read_vts(self.root / "corres" / f"{name}{ending}", len(mesh.source.from_file))]


@dataclass(frozen=True)
class _TruthFiles:
    """Pairs of SHREC'19: truth/A_B.txt, 1-based."""

    root: Path
    files: dict[str, Path]

    def read(self, a: str, b: str) -> Pair:
        first, second = load(self.files[a]), load_mesh(str(self.files[b]))
        assert first.source is not None
        assert second.source is not None
        path = self.root / "truth" / f"{a}_{b}.txt"
        listed = read_vts(path, len(second.source.from_file))
        if len(listed) != len(first.source.from_file):
            raise InputError(f"{path}: has {len(listed)} lines, but {a} has {len(first.source.from_file)} vertices.")
        return Pair((a, b), first, second, labels_as_loaded(listed, first, second))


@dataclass(frozen=True)
class _Parts:
    """Partial shapes of SHREC'16 to the full shape of their class."""

    root: Path

    def read(self, a: str, b: str) -> Pair:
        null = str(self.root / "null" / f"{b}.off")
        example = Shrec16Part(str(self.root / a.split("_")[0] / f"{a}.off"), null)()
        assert example.truth is not None
        return Pair((a, b), example.shape, load_mesh(null), example.truth, example.mirrored_truth)


@dataclass(frozen=True)
class _Listed:
    """Pairs of a folder with files of ground truth."""

    files: dict[str, Path]
    truth: dict[tuple[str, str], list[Path]]

    def read(self, a: str, b: str) -> Pair:
        first, second = load(self.files[a]), load_mesh(str(self.files[b]))
        truth, mirrored, *_ = *(_read_truth(path, first, second, self.files[b]) for path in self.truth[a, b]), None
        return Pair((a, b), first, second, truth, mirrored)


def _within(datasets: Sequence[Dataset], seed: int | None, name: str | None = None) -> PairSet:
    """All ordered pairs within each of some datasets."""
    samples = tuple(sample for dataset in datasets for sample in dataset)
    pairs = tuple((a.name, b.name) for dataset in datasets for a in dataset for b in dataset)
    return PairSet(name or datasets[0].name, pairs, _Through(datasets, seed).read, samples)


def _open_rows(root: Path) -> PairSet:
    names = sorted(path.stem for path in (root / "off").glob("*.off"))
    listed = [name for name in names if (root / "corres" / f"{name}.vts").is_file()]
    if not listed:
        raise InputError(f"{root}: no pairs: looked for off/NAME.off with corres/NAME.vts.")
    return PairSet(root.name, tuple((a, b) for a in listed for b in listed), _Rows(root).read)


def _open_truth_files(root: Path) -> PairSet:
    files = {path.stem: path for path in shapes_in(root)}
    stems = sorted(path.stem for path in (root / "truth").glob("*.txt"))
    pairs = [(a, b) for stem in stems for a, _, b in [stem.partition("_")] if a in files and b in files]
    if not pairs:
        raise InputError(f"{root}: no pairs: looked for truth/A_B.txt with shapes A and B.")
    return PairSet(root.name, tuple(pairs), _TruthFiles(root, files).read)


def _open_parts(root: Path, kind: str | None, cls: str | None) -> PairSet:
    pairs = [
        (f"{k}_{c}_shape_{number}", c)
        for k in KINDS
        if kind in (None, k)
        for c, numbers in sorted(shrec16_parts(root, k).items())
        if cls in (None, c)
        for number in sorted(numbers)
    ]
    if not pairs:
        raise InputError(f"{root}: has no partial shapes: looked for KIND/KIND_CLASS_shape_NUMBER.off.")
    return PairSet(root.name, tuple(pairs), _Parts(root).read)


def _open_listed(root: Path, seed: int | None) -> PairSet:
    lines = read_words(root / LIST, (2, 3, 4))
    files = {path.stem: path for path in shapes_in(root)}
    stems = {path.name: stem for stem, path in files.items()}
    lines = [[stems.get(a, a), stems.get(b, b), *names] for a, b, *names in lines]
    pairs = [(a, b) for a, b, *_ in lines]
    if missing := next((name for pair in pairs for name in pair if name not in files), None):
        raise InputError(f"{root / LIST}: there is no shape '{missing}' in {root}.")
    if all(len(line) == 2 for line in lines):
        return replace(_within([open_dataset(root)], seed).select(pairs), name=root.name)
    if alone := next((line for line in lines if len(line) == 2), None):
        raise InputError(f"{root / LIST}: '{' '.join(alone)}' names no file of ground truth, unlike other lines.")
    truth = {(a, b): [root / name for name in names] for a, b, *names in lines}
    return PairSet(root.name, tuple(pairs), _Listed(files, truth).read)


def _classes(root: Path) -> list[Dataset]:
    """Datasets of the shapes whose names differ in the number at their end only; one dataset where there are labels."""
    shapes = shapes_in(root)
    labelled = any(file.is_file() for path in shapes for file in label_paths(path))
    if not shapes or labelled or (root / "dataset.json").is_file():
        return [open_dataset(root)]
    classes: dict[str, list[Path]] = {}
    for path in shapes:
        named = re.fullmatch(r"(.*?)\d+", path.stem)
        classes.setdefault(named.group(1) if named else "", []).append(path)
    found = []
    for cls, members in classes.items():
        samples = tuple(Sample(path.stem, FolderShape(str(path), str(members[0]), True)) for path in members)
        found.append(Dataset(f"{root.name}/{cls}", load_mesh(str(members[0])), samples))
    return found


def _points(labels: IntArray, truth: BarycentricPoints | None, reference: Mesh) -> FloatArray:
    """(n, 3) points of the reference, nan where unknown."""
    if truth is not None:
        found = truth.interpolate(reference.vertices[reference.faces])
        return np.where((truth.faces >= 0)[:, None], found, np.nan)
    return np.where((labels >= 0)[:, None], reference.vertices[labels], np.nan)


def _read_truth(path: Path, shape: Shape, target: Mesh, target_file: Path) -> Truth:
    """Ground truth as vertices (one number a line) or as points (four), both 0-based, -1 unknown."""
    assert shape.source is not None
    assert target.source is not None
    rows = len(shape.source.from_file)
    if read_table(path, np.float64).shape[1] == 1:
        return labels_as_loaded(read_labels(path, rows, len(target.source.from_file)), shape, target)
    faces = load_mesh(str(target_file), repair=False).faces
    return truth_as_loaded(read_truth(path, rows, len(faces)), faces, shape, target)


def _own_seed(seed: int, name: str) -> int:
    """A seed that depends on the name, so that the other shapes of a set do not matter."""
    return int.from_bytes(hashlib.blake2b(f"{seed} {name}".encode(), digest_size=4).digest(), "little")
