"""Files of maps between two shapes: reading and writing the formats of `acnn match`, and .map files."""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.files import write_atomic
from acnn.input_files import read_npz, read_table
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.shapes.save import numbered_as_file, rows_of_file, write_lines
from acnn.types import FloatArray, IntArray

logger = logging.getLogger("acnn.correspondence")

MAPS = ("a_to_b", "query_to_reference", "b_to_a")
SWAPPED = "The map goes from A (--to) to B (--from): were the two swapped?"
ONE_BASED = (".vts", ".map")
"""Text formats that count vertices from 1, with 0 for none."""

MARKS = 64
"""Number of vertices, spread over the numbering, whose coordinates identify a shape."""

SAME = 1e-3
"""Fraction of the shape's size by which these may differ: file formats round, other shapes and poses differ by more."""


@dataclass(frozen=True, eq=False)
class FileMap:
    """A map of shape A to shape B, both as loaded.

    Attributes
    ----------
    vertices : (n,) array
        Vertex of B for each vertex of A, -1 where there is none.
    points : BarycentricPoints or None
        The matches on B's triangles, or None where only vertices are known.
    notes : tuple[str, ...]
        Sentences about doubts that these are the shapes that were matched.
    confidence : (n,) array or None
        Of the matches, where the map records it.
    """

    vertices: IntArray
    points: BarycentricPoints | None = None
    notes: tuple[str, ...] = ()
    confidence: FloatArray | None = None


def fingerprint(shape: Shape) -> FloatArray:
    """Numbers that identify a shape as loaded, invariant under similarity transformations.

    Parameters
    ----------
    shape : Shape
        As `load` returns it.

    Returns
    -------
    (2 + MARKS,) array
        The numbers of vertices and faces, then the distances of some vertices from their mean, divided by the largest.
    """
    marks = shape.vertices[np.arange(MARKS) * len(shape.vertices) // MARKS]
    distances = np.linalg.norm(marks - marks.mean(axis=0), axis=1)
    faces = len(shape.faces) if isinstance(shape, Mesh) else 0
    return np.append([float(len(shape.vertices)), float(faces)], distances / (distances.max() or 1.0))


def read_map(path: Path, a: Shape, b: Shape) -> FileMap:
    """Read a map of A to B.

    - .txt: on line i the vertex of B for vertex i of A, both 0-based in file order, -1 for none
    - .vts, .map: the same, 1-based, 0 for none
    - .npz: the array `a_to_b` or `query_to_reference`, for shapes as loaded; with `NAME_faces` (n,) and `NAME_weights`
      (n, 3), also the barycentric points on B's triangles
    - a folder: its `map.npz`

    A `map.npz` that contains `b_to_a` as well is read in the direction of the shapes that are given.

    Where `map.npz` contains `a_fingerprint` and `b_fingerprint` (or `reference_fingerprint`), A and B must be the
    shapes that were matched, possibly in other poses; this also holds for text files in the same folder.

    Parameters
    ----------
    path : Path
        The file or folder.
    a, b : Shape
        As `load` returns them.

    Returns
    -------
    FileMap
        For the vertices of A as loaded.

    Raises
    ------
    InputError
        Where the map does not fit the two shapes.
    """
    if path.is_dir():
        path = path / "map.npz"
    if not path.is_file():
        raise InputError(f"{path}: there is no such file. 'acnn match' writes maps: a_to_b.txt or map.npz.")
    if path.suffix.lower() == ".npz":
        return _from_arrays(path, a, b)
    table = read_table(path, np.int64)
    if table.shape[1] != 1:
        raise InputError(f"{path}: has {table.shape[1]} numbers per line; one vertex per line is needed.")
    rows = table[:, 0]
    in_file = _file_count(a)
    if len(rows) != in_file:
        raise InputError(f"{path}: has {len(rows)} lines, but A has {in_file} vertices; each needs one line. {SWAPPED}")
    base = 1 if path.suffix.lower() in ONE_BASED else 0
    rows = rows - base
    _check(path, rows, _file_count(b), base)
    notes = _check_shapes(path.with_name("map.npz"), path.stem, _arrays_beside(path), a, b)
    if a.source is not None:
        rows = rows[a.source.to_file]
    if b.source is not None:
        rows = np.append(b.source.from_file, -1)[rows]
    return replace(_checked_matches(path, rows), notes=notes)


def write_map(path: Path, matches: FileMap, a: Shape, b: Shape) -> int:
    """Write a map of A to B in one of the formats that `read_map` reads, given by the suffix.

    Text files have a line for each vertex of the file of A and number vertices as in the files, 0-based, or 1-based for
    .vts and .map. An .npz file has the arrays of the shapes as loaded, and their fingerprints.

    Parameters
    ----------
    path : Path
        A .txt, .vts, .map or .npz file.
    matches : FileMap
        The map.
    a, b : Shape
        As `load` returns them.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    InputError
        For another suffix.
    """
    check_map_suffix(path)
    if path.suffix.lower() != ".npz":
        rows = matches.vertices.astype(np.int64)
        rows = rows_of_file(np.where(rows >= 0, numbered_as_file(rows, b), -1), a, -1)
        write_lines(path, rows + (path.suffix.lower() in ONE_BASED), "%d")
        return len(rows)
    arrays: dict[str, Any] = {"a_to_b": matches.vertices}
    if matches.points is not None:
        faces = np.where(matches.vertices >= 0, matches.points.faces, -1)
        arrays |= {"a_to_b_faces": faces, "a_to_b_weights": matches.points.weights}
    if matches.confidence is not None:
        arrays["confidence"] = matches.confidence
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays, a_fingerprint=fingerprint(a), b_fingerprint=fingerprint(b))
    write_atomic(path, buffer.getvalue())
    return len(matches.vertices)


def check_map_suffix(path: Path) -> None:
    """Raise InputError where a file's suffix is not that of a map that can be written."""
    if path.suffix.lower() not in (".txt", ".npz", *ONE_BASED):
        known = ", ".join((".txt (0-based)", *(f"{suffix} (1-based)" for suffix in ONE_BASED), ".npz"))
        raise InputError(f"{path.name}: a map cannot be written as '{path.suffix}'. Use one of {known}.")


def files_of_match(folder: Path) -> list[Path]:
    """List the files that `acnn match` wrote into a folder, as recorded in its `map.npz`.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    list[Path]
        Empty where nothing is recorded.
    """
    try:
        listed = read_npz(folder / "map.npz").get("files")
    except InputError:
        return []
    return [] if listed is None or listed.dtype.kind != "U" else [folder / str(name) for name in listed.ravel()]


def _arrays_beside(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of the same map in the folder of its text file; empty where there are none."""
    beside = path.with_name("map.npz")
    if path.stem not in MAPS or not beside.is_file():
        return {}
    try:
        arrays = read_npz(beside)
    except InputError as error:
        logger.debug("%s is ignored, the text file is enough: %s", beside, error)
        return {}
    return arrays if path.stem in arrays else {}


def _from_arrays(path: Path, a: Shape, b: Shape) -> FileMap:
    arrays = read_npz(path)
    name = next((name for name in MAPS if name in arrays), None)
    if name is None:
        raise InputError(f"{path}: contains {', '.join(arrays) or 'nothing'}; an array {' or '.join(MAPS)} is needed.")
    if name == "a_to_b" and "b_to_a" in arrays and _is_reversed(arrays, a, b):
        name = "b_to_a"
    rows = arrays[name]
    if rows.dtype.kind not in "iu":
        raise InputError(f"{path}: {name} has type {rows.dtype}; vertex indices are needed.")
    if rows.shape != (len(a.vertices),):
        raise InputError(
            f"{path}: {name} has shape {rows.shape}, but A has {len(a.vertices)} vertices as loaded. {SWAPPED}"
        )
    _check(path, rows, len(b.vertices))
    rows = rows.astype(np.int64)
    notes = _check_shapes(path, name, arrays, a, b)
    points = None
    if f"{name}_faces" in arrays and f"{name}_weights" in arrays and isinstance(b, Mesh):
        faces, weights = arrays[f"{name}_faces"], arrays[f"{name}_weights"]
        fits = faces.shape == rows.shape and weights.shape == (len(rows), 3)
        fits = fits and faces.dtype.kind in "iu" and weights.dtype.kind == "f"
        if not fits or faces.max() >= len(b.faces) or faces.min() < -1:
            raise InputError(f"{path}: {name}_faces and {name}_weights do not fit A's vertices and B's triangles.")
        # Bounded by 2, so that no sum overflows.
        bounded = np.isfinite(weights).all() and np.abs(weights).max() <= 2.0
        if not (bounded and np.allclose(weights[faces >= 0].sum(axis=1), 1.0, atol=1e-3)):
            raise InputError(f"{path}: {name}_weights must sum to 1 in every row.")
        weights = np.maximum(weights.astype(float), 0.0)
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 0.5)
        points = BarycentricPoints(np.maximum(faces, 0).astype(np.int32), weights)
        rows = np.where(faces >= 0, rows, -1)
    confidence = arrays.get("confidence") if name != "b_to_a" else None
    if confidence is not None and (confidence.shape != rows.shape or confidence.dtype.kind != "f"):
        confidence = None
    return replace(_checked_matches(path, rows, points), notes=notes, confidence=confidence)


def _checked_matches(path: Path, rows: NDArray[Any], points: BarycentricPoints | None = None) -> FileMap:
    if not (rows >= 0).any():
        raise InputError(f"{path}: no vertex of A has a match.")
    return FileMap(rows.astype(np.int32), points)


def _check(path: Path, rows: NDArray[Any], count: int, base: int = 0) -> None:
    bad = np.flatnonzero((rows < -1) | (rows >= count))
    if len(bad):
        raise InputError(
            f"{path}: line {bad[0] + 1} names vertex {rows[bad[0]] + base}, but B's vertices are {base} to "
            f"{count - 1 + base} in this format. {SWAPPED}"
        )


def _check_shapes(path: Path, name: str, arrays: dict[str, NDArray[Any]], a: Shape, b: Shape) -> tuple[str, ...]:
    """Compare A and B with the fingerprints of the shapes that were matched, where the map records them.

    Returns
    -------
    tuple[str, ...]
        A note for each shape that matches its fingerprint only in its numbers of vertices and faces.

    Raises
    ------
    InputError
        Where A or B cannot be the shape that was matched, not even in another pose.
    """
    keys = {"a_to_b": ("a", "b"), "b_to_a": ("b", "a")}.get(name, ("a", "reference"))
    records = [arrays.get(f"{key}_fingerprint") for key in keys]
    as_given = _is_shape(a, records[0]) or _is_shape(b, records[1])
    if not as_given and _is_shape(a, records[1]) and _is_shape(b, records[0]):
        raise InputError(f"{path}: is a map of these two shapes in the other direction. {SWAPPED}")
    notes = []
    for shape, label, record in ((a, "A (--to)", records[0]), (b, "B (--from)", records[1])):
        if record is None or _is_shape(shape, record):
            continue
        what = "a shape" if shape.source is None else shape.source.name
        if not _same_counts(fingerprint(shape), record):
            raise InputError(
                f"{path}: {what}, given as {label} ({_counts(fingerprint(shape))}), is not the shape that was matched "
                f"({_counts(record)}). Give the shape that was matched, or match this one with 'acnn match'."
            )
        notes.append(f"{what}, given as {label}, is not the shape that was matched, unless in another pose")
    return tuple(notes)


def _is_reversed(arrays: dict[str, NDArray[Any]], a: Shape, b: Shape) -> bool:
    """Whether the shapes are those of the map, the other way round."""
    first, second = arrays.get("a_fingerprint"), arrays.get("b_fingerprint")
    if first is None or second is None:
        sizes = len(arrays["a_to_b"]), len(arrays["b_to_a"])
        return sizes[0] != sizes[1] and sizes == (len(b.vertices), len(a.vertices))
    as_given = _is_shape(a, first) or _is_shape(b, second)
    return not as_given and _is_shape(a, second) and _is_shape(b, first)


def _is_shape(shape: Shape, record: NDArray[Any] | None) -> bool:
    """Whether a recorded fingerprint is that of this shape, or is missing or unreadable."""
    here = fingerprint(shape)
    if record is None or record.shape != here.shape or record.dtype.kind != "f" or not np.isfinite(record).all():
        return True
    return _same_counts(here, record) and bool(np.abs(here[2:] - record[2:]).max() <= SAME)


def _same_counts(here: NDArray[Any], record: NDArray[Any]) -> bool:
    """Whether the numbers of vertices and faces agree; a mesh may be given as a point cloud."""
    return bool(here[0] == record[0] and (here[1] == record[1] or 0 in (here[1], record[1])))


def _counts(record: NDArray[Any]) -> str:
    faces = f", {record[1]:.0f} faces" if record[1] else ""
    return f"{record[0]:.0f} vertices{faces}"


def _file_count(shape: Shape) -> int:
    return len(shape.vertices) if shape.source is None else len(shape.source.from_file)
