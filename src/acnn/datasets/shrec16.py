"""SHREC'16 Partial (Cosmo et al. 2016) and folders of `acnn data parts`: partial shapes with their ground truth.

    ROOT/null/CLASS.off                      the full shape of a class
    ROOT/KIND/KIND_CLASS_shape_NUMBER.off    a partial shape; KIND is `cuts` or `holes`
    ... .baryc_gt        beside it: for each of its vertices `triangle w0 w1 w2` on the full shape, 1-based
    ... .baryc_gt_sym    the same on the other side of the body; may be missing
    ROOT/KIND/KIND_CLASS_parts.json          split and subject of each partial shape, from `acnn data parts`

Triangle -1 stands for a vertex without known ground truth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from acnn.datasets.dataset import Dataset, Example, InMemory, Sample, truth_as_loaded
from acnn.datasets.labels import check_range, check_weights
from acnn.datasets.parts import KINDS, Kind
from acnn.errors import InputError
from acnn.input_files import read_json, read_table
from acnn.shapes.load import load
from acnn.shapes.mesh import BarycentricPoints, Mesh
from acnn.types import IntArray

FOLDER = "shrec16_partial"
HOW_TO_GET = (
    "SHREC'16 Partial is free for research: download it from "
    "https://www.dais.unive.it/~shrec2016/ and unpack it, so that FOLDER/null, FOLDER/cuts and FOLDER/holes exist. "
    f"Then give FOLDER/cuts/CLASS, or set ACNN_DATA to the folder that holds it as '{FOLDER}'."
)


@dataclass(frozen=True)
class Shrec16Part:
    """Reads one partial shape with its ground truth.

    Attributes
    ----------
    path : str
        Its .off file.
    null : str
        The full shape's.
    """

    path: str
    null: str

    def __call__(self) -> Example:
        """The partial shape; labels are the vertices of the full shape nearest to the true points."""
        part, reference = load_mesh(self.path), load_mesh(self.null)
        unrepaired = load_mesh(self.null, repair=False)
        assert part.source is not None
        rows = len(part.source.from_file)
        found: list[tuple[BarycentricPoints, IntArray] | None] = []
        for ending in (".baryc_gt", ".baryc_gt_sym"):
            file = Path(self.path).with_suffix(ending)
            if ending == ".baryc_gt_sym" and not file.is_file():
                found.append(None)
                continue
            in_file = read_baryc(file, rows, len(unrepaired.faces))
            truth = truth_as_loaded(in_file, unrepaired.faces, part, reference)
            found.append((truth, truth.nearest_vertex(reference.vertices, reference.faces)))
        straight, mirrored = found
        assert straight is not None
        return Example(
            part,
            straight[1],
            truth=straight[0],
            mirrored=None if mirrored is None else mirrored[1],
            mirrored_truth=None if mirrored is None else mirrored[0],
        )


def open_shrec16(root: Path, kind: Kind, cls: str) -> Dataset:
    """Partial shapes of one class and kind, numbered as in their names; the reference is the full shape.

    All have the unit of the full shape: its geodesic diameter / 200.

    Parameters
    ----------
    root : Path
        The folder with null/, cuts/ and holes/.
    kind : Kind
        `cuts` or `holes`.
    cls : str
        The class, such as `cat`; `shrec16_classes` lists them.

    Returns
    -------
    Dataset
        Shapes are read when they are needed.

    Raises
    ------
    InputError
        Where the class is missing, with those that there are.
    """
    from acnn.surface.surface import surface_of

    numbers = shrec16_parts(root, kind).get(cls)
    if not numbers:
        there = (
            ", ".join(shrec16_classes(root, kind)) or f"none: looked for {root / kind}/{kind}_CLASS_shape_NUMBER.off"
        )
        raise InputError(f"{root}: there are no {kind} of '{cls}'. Classes: {there}.")
    null = root / "null" / f"{cls}.off"
    reference = load_mesh(str(null))
    known = _listing(root / kind / f"{kind}_{cls}_parts.json")
    samples = []
    for number in sorted(numbers):
        name = f"{kind}_{cls}_shape_{number}"
        about = known.get(name, {})
        split = about.get("split") if about.get("split") in ("train", "test") else None
        reader = Shrec16Part(str(root / kind / f"{name}.off"), str(null))
        samples.append(Sample(name, reader, split, about.get("subject"), number))
    name = f"{root.name or root}/{kind}/{cls}"
    return Dataset(name, reference, tuple(samples), unit=surface_of(reference).unit)


def with_full_shape(dataset: Dataset) -> Dataset:
    """The dataset with its full shape, every vertex matched to itself, as one more sample `null` to train on."""
    itself = Example(dataset.reference, np.arange(len(dataset.reference.vertices), dtype=np.int32))
    return replace(dataset, samples=(*dataset.samples, Sample("null", InMemory(itself))))


def shrec16_classes(root: Path, kind: Kind) -> tuple[str, ...]:
    """Names of the classes with partial shapes of a kind, in alphabetical order."""
    return tuple(sorted(shrec16_parts(root, kind)))


def shrec16_parts(root: Path, kind: str) -> dict[str, list[int]]:
    """Numbers of the partial shapes of a kind, per class."""
    if kind not in KINDS:
        raise InputError(f"Parts of kind '{kind}': use 'cuts' or 'holes'.")
    found: dict[str, list[int]] = {}
    for path in (root / kind).glob(f"{kind}_*_shape_*.off"):
        # Numbers have no leading zeros, so that a file name can be made from its number.
        if named := re.fullmatch(rf"{kind}_(.+)_shape_(0|[1-9]\d*)", path.stem):
            found.setdefault(named.group(1), []).append(int(named.group(2)))
    return found


def locate_shrec16(path: Path) -> tuple[Path, str | None, str | None] | None:
    """(ROOT, kind, class) for a path ROOT, ROOT/KIND or ROOT/KIND/CLASS in this layout, None for any other.

    ROOT may also be the folder that contains it as `shrec16_partial`. The class is not a folder, and not checked here.
    """
    for root in (path, path / FOLDER):
        if _is_root(root):
            return root, None, None
    if path.name in KINDS and _is_root(path.parent):
        return path.parent, path.name, None
    if path.parent.name in KINDS and _is_root(path.parent.parent):
        return path.parent.parent, path.parent.name, path.name
    return None


def open_located_shrec16(root: Path, kind: str | None, cls: str | None) -> Dataset:
    """Open a result of `locate_shrec16`; a kind or class of None must be unique.

    Raises
    ------
    InputError
        With the choices where there are several.
    """
    kinds = [k for k in KINDS if kind in (None, k)]
    choices = [(k, c) for k in kinds for c in shrec16_classes(root, k) if cls in (None, c)]
    if len(choices) == 1 or (choices and cls is not None and kind is not None):
        return open_shrec16(root, *choices[0])
    if not choices:
        if kind is not None and cls is not None:
            return open_shrec16(root, kinds[0], cls)  # raises with the classes that there are
        raise InputError(
            f"{root}: contains no partial shapes: looked for {root / 'KIND'}/KIND_CLASS_shape_NUMBER.off. {HOW_TO_GET}"
        )
    listed = ", ".join(f"{k}/{c}" for k, c in choices)
    raise InputError(
        f"{root}: name one kind and class, such as {root / choices[0][0] / choices[0][1]}: it has {listed}."
    )


def read_baryc(path: Path, rows: int, faces: int) -> BarycentricPoints:
    """Read a .baryc_gt file; triangles are 0-based here and 1-based in the file, -1 is unknown in both.

    Parameters
    ----------
    path : Path
        The file.
    rows : int
        Number of vertices in the partial shape's file.
    faces : int
        Number of triangles in the full shape's file.

    Returns
    -------
    BarycentricPoints
        On the full shape, for each vertex of the file.

    Raises
    ------
    InputError
        Where the file is missing or does not fit.
    """
    table = read_table(path, np.float64)
    if table.shape != (rows, 4):
        found = f"{table.shape[0]} lines of {table.shape[1]} numbers"
        raise InputError(f"{path}: has {found}, but {rows} of 'triangle w0 w1 w2' are needed, one for each vertex.")
    if not np.isfinite(table).all() or (table[:, 0] != np.rint(table[:, 0])).any():
        raise InputError(f"{path}: holds numbers that are not finite, or triangles that are not whole numbers.")
    face = table[:, 0]
    check_range(path, np.where(face == -1, 1, face), 1, faces, "the full shape's triangles (-1 where unknown)")
    check_weights(path, table[:, 1:], face > 0)
    weights = np.maximum(table[:, 1:], 0.0)  # rounding left -1e-16 in the published files
    weights[face > 0] /= weights[face > 0].sum(axis=1, keepdims=True)
    return BarycentricPoints(np.where(face > 0, face - 1, -1).astype(np.int32), weights)


def write_baryc(path: Path, truth: BarycentricPoints) -> None:
    """Write points as a .baryc_gt file, whole or not at all; unknown ones as triangle -1."""
    from acnn.files import write_atomic

    known = truth.faces >= 0
    weights = np.where(known[:, None], truth.weights, 0.0)
    rows = zip(np.where(known, truth.faces + 1, -1).tolist(), weights.tolist(), strict=True)
    write_atomic(path, "".join(f"{f} {a:.17g} {b:.17g} {c:.17g}\n" for f, (a, b, c) in rows).encode())


def load_mesh(path: str, *, repair: bool = True) -> Mesh:
    """Load a mesh file; raises InputError where it contains a point cloud."""
    mesh = load(path, kind="mesh", repair=repair)
    assert isinstance(mesh, Mesh)
    return mesh


def _is_root(path: Path) -> bool:
    return (path / "null").is_dir() and any((path / kind).is_dir() for kind in KINDS)


def _listing(path: Path) -> dict[str, dict[str, Any]]:
    if not path.is_file():
        return {}
    about = read_json(path)
    try:
        return {str(entry["name"]): dict(entry) for entry in about["parts"]}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a list of partial shapes of 'acnn data parts' ({error!r}).") from error
