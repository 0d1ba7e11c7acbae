"""Maps between two shapes as files: reading what `acnn match` writes, in any of its forms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.shapes import Mesh
from acnn.shapes.shape import IntArray, Shape
from acnn.surface.closest_points import SurfacePoints

MAPS = ("a_to_b", "query_to_reference")
SWAPPED = "The map runs from A (--to) to B (--from): were the two swapped?"


@dataclass(frozen=True, eq=False)
class FileMap:
    """A map of shape A to shape B, both as loaded.

    - vertices: (n,) vertex of B for each vertex of A, -1 where it has none
    - places: the exact places on B's triangles, or None where only vertices are known
    """

    vertices: IntArray
    places: SurfacePoints | None = None


def read_map(path: Path, a: Shape, b: Shape) -> FileMap:
    """Read a map of A to B.

    - .txt: on line i the vertex of B for vertex i of A, both counted from 0 as in the shapes' files, -1 for none
    - .vts: the same counted from 1, 0 for none
    - .npz: the array `a_to_b` or `query_to_reference`, shapes as loaded; where `NAME_faces` (n,) and `NAME_weights`
      (n, 3) are there too, they give the exact places on B's triangles
    - a folder: its `map.npz`

    Raises InputError where the map does not fit the two shapes.
    """
    if path.is_dir():
        path = path / "map.npz"
    if not path.is_file():
        raise InputError(f"{path}: there is no such file. A map is what 'acnn match' writes: a_to_b.txt or map.npz.")
    if path.suffix.lower() == ".npz":
        return _from_arrays(path, a, b)
    try:
        rows = np.loadtxt(path, dtype=np.int64, ndmin=1, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a list of vertex numbers ({error}).") from error
    if path.suffix.lower() == ".vts":
        rows = rows - 1
    in_file = _file_count(a)
    if rows.ndim != 1 or len(rows) != in_file:
        raise InputError(f"{path}: has {len(rows)} lines, but A has {in_file} vertices; each needs one line. {SWAPPED}")
    _check(path, rows, _file_count(b))
    if a.source is not None:
        rows = rows[a.source.to_file]
    if b.source is not None:
        rows = np.append(b.source.from_file, -1)[rows]
    return _known(path, rows)


def _from_arrays(path: Path, a: Shape, b: Shape) -> FileMap:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays: dict[str, NDArray[Any]] = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: cannot be read as an .npz archive ({error}).") from error
    name = next((name for name in MAPS if name in arrays), None)
    if name is None:
        raise InputError(f"{path}: holds {', '.join(arrays) or 'nothing'}; an array {' or '.join(MAPS)} is needed.")
    rows = arrays[name]
    if rows.shape != (len(a.vertices),) or rows.dtype.kind not in "iu":
        raise InputError(
            f"{path}: {name} is {rows.dtype} of shape {rows.shape}, but A has {len(a.vertices)} vertices as loaded. "
            f"{SWAPPED}"
        )
    _check(path, rows, len(b.vertices))
    places = None
    if f"{name}_faces" in arrays and f"{name}_weights" in arrays and isinstance(b, Mesh):
        faces, weights = arrays[f"{name}_faces"], np.array(arrays[f"{name}_weights"], float)
        fits = faces.shape == rows.shape and weights.shape == (len(rows), 3) and faces.dtype.kind in "iu"
        if not fits or (len(faces) and (faces.max() >= len(b.faces) or faces.min() < -1)):
            raise InputError(f"{path}: {name}_faces and {name}_weights do not fit A's vertices and B's triangles.")
        if not (np.isfinite(weights).all() and np.allclose(weights[faces >= 0].sum(axis=1), 1.0, atol=1e-3)):
            raise InputError(f"{path}: {name}_weights must sum to 1 in every row.")
        places = SurfacePoints(np.maximum(faces, 0).astype(np.int32), weights)
        rows = np.where(faces >= 0, rows, -1)
    return _known(path, rows, places)


def _known(path: Path, rows: NDArray[Any], places: SurfacePoints | None = None) -> FileMap:
    if not (rows >= 0).any():
        raise InputError(f"{path}: no vertex of A has a match.")
    return FileMap(rows.astype(np.int32), places)


def _check(path: Path, rows: NDArray[Any], count: int) -> None:
    bad = np.flatnonzero((rows < -1) | (rows >= count))
    if len(bad):
        raise InputError(
            f"{path}: line {bad[0] + 1} names vertex {rows[bad[0]]}, but B's vertices are 0 to {count - 1}. {SWAPPED}"
        )


def _file_count(shape: Shape) -> int:
    return len(shape.vertices) if shape.source is None else len(shape.source.from_file)
