"""Files of labels and ground truth: .labels.txt and .truth.txt (0-based), .vts (1-based)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.input_files import read_table
from acnn.shapes.mesh import BarycentricPoints, Shape


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
        raise InputError(f"{path}: line {bad[0] + 1} says {values[bad[0]]:.0f}, but {what} run from {low} to {high}.")


def check_weights(path: Path, weights: NDArray[np.float64], used: NDArray[np.bool_]) -> None:
    """Raise InputError naming the first used row of (n, 3) weights that is not barycentric, but for rounding."""
    # Bounded first, so that no sum overflows.
    wrong = (weights.min(axis=1) < -1e-3) | (weights.max(axis=1) > 1.1)
    wrong[~wrong] = np.abs(weights[~wrong].sum(axis=1) - 1) > 1e-3
    off = np.flatnonzero(used & wrong)
    if len(off):
        raise InputError(f"{path}: line {off[0] + 1}: the weights must be at least 0 and sum to 1.")
