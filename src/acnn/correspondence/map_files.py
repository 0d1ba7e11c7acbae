"""Maps between two shapes as files: reading what `acnn match` writes, in any of its forms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.input_files import read_npz, read_table
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.types import FloatArray, IntArray

MAPS = ("a_to_b", "query_to_reference")
SWAPPED = "The map runs from A (--to) to B (--from): were the two swapped?"
MARKS = 64
"""Vertices, spread over the numbering, whose places tell a shape from others."""

SAME = 1e-3
"""Share of the shape's size by which these may differ: other formats round, other shapes and poses differ by more."""


@dataclass(frozen=True, eq=False)
class FileMap:
    """A map of shape A to shape B, both as loaded.

    Attributes
    ----------
    vertices : (n,) array
        Vertex of B for each vertex of A, -1 where it has none.
    places : BarycentricPoints or None
        The exact places on B's triangles, or None where only vertices are known.
    notes : tuple[str, ...]
        What is odd about the two shapes.
    """

    vertices: IntArray
    places: BarycentricPoints | None = None
    notes: tuple[str, ...] = ()


def fingerprint(shape: Shape) -> FloatArray:
    """(2 + MARKS,) what tells a shape, as loaded, from others; moving, turning or scaling it changes nothing.

    The numbers of vertices and faces, then distances of some vertices from their mean, over the largest of them.
    """
    chosen = shape.vertices[np.arange(MARKS) * len(shape.vertices) // MARKS]
    distances = np.linalg.norm(chosen - chosen.mean(axis=0), axis=1)
    faces = len(shape.faces) if isinstance(shape, Mesh) else 0
    return np.append([float(len(shape.vertices)), float(faces)], distances / (distances.max() or 1.0))


def read_map(path: Path, a: Shape, b: Shape) -> FileMap:
    """Read a map of A to B.

    - .txt: on line i the vertex of B for vertex i of A, both counted from 0 as in the shapes' files, -1 for none
    - .vts: the same counted from 1, 0 for none
    - .npz: the array `a_to_b` or `query_to_reference`, shapes as loaded; where `NAME_faces` (n,) and `NAME_weights`
      (n, 3) are there too, they give the exact places on B's triangles
    - a folder: its `map.npz`

    Where `map.npz` holds `a_fingerprint` and `b_fingerprint` (or `reference_fingerprint`), A and B must be the shapes
    that the map was made of, if in other poses; this goes for the text files beside it, too.

    Raises
    ------
    InputError
        Where the map does not fit the two shapes.
    """
    if path.is_dir():
        path = path / "map.npz"
    if not path.is_file():
        raise InputError(f"{path}: there is no such file. A map is what 'acnn match' writes: a_to_b.txt or map.npz.")
    if path.suffix.lower() == ".npz":
        return _from_arrays(path, a, b)
    table = read_table(path, np.int64)
    if table.shape[1] != 1:
        raise InputError(f"{path}: has {table.shape[1]} numbers on a line; one vertex on each line is needed.")
    rows = table[:, 0]
    in_file = _file_count(a)
    if len(rows) != in_file:
        raise InputError(f"{path}: has {len(rows)} lines, but A has {in_file} vertices; each needs one line. {SWAPPED}")
    if path.suffix.lower() == ".vts":
        rows = rows - 1
    _check(path, rows, _file_count(b))
    notes = _check_shapes(path.with_name("map.npz"), path.stem, _arrays_beside(path), a, b)
    if a.source is not None:
        rows = rows[a.source.to_file]
    if b.source is not None:
        rows = np.append(b.source.from_file, -1)[rows]
    return replace(_known(path, rows), notes=notes)


def files_of_match(folder: Path) -> list[Path]:
    """Files that `acnn match` has written into a folder, as its `map.npz` lists them; none where it does not."""
    try:
        listed = read_npz(folder / "map.npz").get("files")
    except InputError:
        return []
    return [] if listed is None or listed.dtype.kind != "U" else [folder / str(name) for name in listed.ravel()]


def _arrays_beside(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of the same map beside its text; empty where there are none."""
    beside = path.with_name("map.npz")
    if path.stem not in MAPS or not beside.is_file():
        return {}
    try:
        arrays = read_npz(beside)
    except InputError:  # the text alone will do
        return {}
    return arrays if path.stem in arrays else {}


def _from_arrays(path: Path, a: Shape, b: Shape) -> FileMap:
    arrays = read_npz(path)
    name = next((name for name in MAPS if name in arrays), None)
    if name is None:
        raise InputError(f"{path}: holds {', '.join(arrays) or 'nothing'}; an array {' or '.join(MAPS)} is needed.")
    rows = arrays[name]
    if rows.dtype.kind not in "iu":
        raise InputError(f"{path}: {name} holds {rows.dtype}; numbers of vertices are needed.")
    if rows.shape != (len(a.vertices),):
        raise InputError(
            f"{path}: {name} has shape {rows.shape}, but A has {len(a.vertices)} vertices as loaded. {SWAPPED}"
        )
    _check(path, rows, len(b.vertices))
    rows = rows.astype(np.int64)
    notes = _check_shapes(path, name, arrays, a, b)
    places = None
    if f"{name}_faces" in arrays and f"{name}_weights" in arrays and isinstance(b, Mesh):
        faces, weights = arrays[f"{name}_faces"], arrays[f"{name}_weights"]
        fits = faces.shape == rows.shape and weights.shape == (len(rows), 3)
        fits = fits and faces.dtype.kind in "iu" and weights.dtype.kind == "f"
        if not fits or faces.max() >= len(b.faces) or faces.min() < -1:
            raise InputError(f"{path}: {name}_faces and {name}_weights do not fit A's vertices and B's triangles.")
        # Not above 2 either, so that no sum overflows.
        bounded = np.isfinite(weights).all() and np.abs(weights).max() <= 2.0
        if not (bounded and np.allclose(weights[faces >= 0].sum(axis=1), 1.0, atol=1e-3)):
            raise InputError(f"{path}: {name}_weights must sum to 1 in every row.")
        places = BarycentricPoints(np.maximum(faces, 0).astype(np.int32), weights.astype(float))
        rows = np.where(faces >= 0, rows, -1)
    return replace(_known(path, rows, places), notes=notes)


def _known(path: Path, rows: NDArray[Any], places: BarycentricPoints | None = None) -> FileMap:
    if not (rows >= 0).any():
        raise InputError(f"{path}: no vertex of A has a match.")
    return FileMap(rows.astype(np.int32), places)


def _check(path: Path, rows: NDArray[Any], count: int) -> None:
    bad = np.flatnonzero((rows < -1) | (rows >= count))
    if len(bad):
        raise InputError(
            f"{path}: line {bad[0] + 1} names vertex {rows[bad[0]]}, but B's vertices are 0 to {count - 1}. {SWAPPED}"
        )


def _check_shapes(path: Path, name: str, arrays: dict[str, NDArray[Any]], a: Shape, b: Shape) -> tuple[str, ...]:
    """What is odd about the shapes, where the map says of which it was made.

    Raises
    ------
    InputError
        Where they cannot be those, or those in other poses.
    """
    records = [arrays.get(f"{key}_fingerprint") for key in ("a", "b" if name == "a_to_b" else "reference")]
    if not (_is(a, records[0]) or _is(b, records[1])) and _is(a, records[1]) and _is(b, records[0]):
        raise InputError(f"{path}: was made of these two shapes the other way round. {SWAPPED}")
    notes = []
    for shape, label, record in ((a, "A (--to)", records[0]), (b, "B (--from)", records[1])):
        if record is None or _is(shape, record):
            continue
        what = "a shape" if shape.source is None else shape.source.name
        if not _same_counts(fingerprint(shape), record):
            raise InputError(
                f"{path}: was not made of {what}, which is given as {label} ({_counts(fingerprint(shape))}), but of "
                f"another shape ({_counts(record)}). Name the shape that was matched, or match this one with "
                "'acnn match'."
            )
        notes.append(f"{what}, given as {label}, is not the shape that was matched, unless in another pose")
    return tuple(notes)


def _is(shape: Shape, record: NDArray[Any] | None) -> bool:
    """Whether a record is of this shape, or there is none that can be read."""
    here = fingerprint(shape)
    if record is None or record.shape != here.shape or record.dtype.kind != "f" or not np.isfinite(record).all():
        return True
    return _same_counts(here, record) and bool(np.abs(here[2:] - record[2:]).max() <= SAME)


def _same_counts(here: NDArray[Any], record: NDArray[Any]) -> bool:
    """Whether vertices and faces are as many; the points of a mesh may be given without their faces."""
    return bool(here[0] == record[0] and (here[1] == record[1] or 0 in (here[1], record[1])))


def _counts(record: NDArray[Any]) -> str:
    faces = f", {record[1]:.0f} faces" if record[1] else ""
    return f"{record[0]:.0f} vertices{faces}"


def _file_count(shape: Shape) -> int:
    return len(shape.vertices) if shape.source is None else len(shape.source.from_file)
