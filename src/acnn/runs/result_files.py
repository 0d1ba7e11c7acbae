"""Files of results: one line per vertex of a shape's file, and shapes in colours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.files import write_atomic
from acnn.shapes.mesh import Mesh, Shape
from acnn.shapes.save import save
from acnn.types import IntArray


def save_colored(shape: Shape, rgb: NDArray[np.uint8], path: Path) -> None:
    """The shape in colours, for mesh programs and, a mesh, for browsers."""
    colors = np.concatenate([rgb, np.full((len(rgb), 1), 255, np.uint8)], axis=1)
    plain = replace(shape, texture=None) if isinstance(shape, Mesh) else shape
    for file in colored_files(shape, path):
        save(replace(plain, colors=colors), file)


def colored_files(shape: Shape, path: Path) -> list[Path]:
    """The files of a shape in colours: GLB holds meshes only."""
    return [path.with_suffix(suffix) for suffix in ((".ply", ".glb") if isinstance(shape, Mesh) else (".ply",))]


def rows_of_file(values: Any, shape: Shape, missing: float) -> Any:
    """One value for each vertex of the shape's file."""
    if shape.source is None:
        return values
    place = shape.source.from_file
    return np.where(place >= 0, np.asarray(values)[place], missing)


def numbered_as_file(vertices: IntArray, shape: Shape) -> IntArray:
    """Vertices of a shape as they are numbered in its file."""
    return vertices if shape.source is None else shape.source.to_file[vertices]


def write_lines(path: Path, values: Any, form: str) -> None:
    """Write one value per line."""
    rows = np.asarray(values)
    # one operation for many lines: a million of them in a loop take seconds
    write_atomic(path, (f"{form}\n" * len(rows) % tuple(rows.tolist())).encode())
