"""Point clouds as plain text (XYZ, TXT, PTS) and as NPY arrays."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.input_files import ArrayError, parse_npy
from acnn.shapes.formats.raw import FormatError, RawShape, TextTable, colors_from
from acnn.shapes.mesh import PointCloud


def read_xyz(data: bytes, path: Path) -> RawShape:
    """Read one point per line: x y z, then nothing, a normal, a colour, or both in either order.

    Or, as is common in PTS, x y z, an intensity, which is ignored, and a colour of three integers.

    Numbers are separated by blanks, commas or semicolons; # and // begin comments; a first line of one number (PTS) is
    the number of points. Three numbers that have length 1 on every line are normals; three integers in 0..255, or
    fractions in 0..1 that are not normals, are colours.
    """
    data = re.sub(rb"(#|//)[^\r\n]*", b"", data).replace(b",", b" ").replace(b";", b" ")
    table = TextTable(data)
    first = 0
    if table.rows and table.words[0] == 1:
        promised = float(table.numbers(0, 1)[0])
        first = 1
        if promised != table.rows - 1:
            raise FormatError(f"the first line promises {promised:.15g} points, but {table.rows - 1} lines follow")
    if table.rows == first:
        raise FormatError("it holds no points")
    columns = int(table.words[first:].min())
    if columns != int(table.words[first:].max()) and columns >= 3:
        row = first + int(np.flatnonzero(table.words[first:] != table.words[first])[0])
        raise FormatError(
            f"{table.location(row)} has {int(table.words[row])} numbers, but the first one {int(table.words[first])}"
        )
    shape = _from_columns(table.table(first, table.rows, max(columns, 3), "point"))
    if not data.endswith(b"\n"):
        shape.note("no-final-newline", 1, "the last line has no line end: if the file is truncated, points are missing")
    return shape


def read_npy(data: bytes, path: Path) -> RawShape:
    """Read an (n, 3), (n, 6) or (n, 9) array of real numbers; columns as in XYZ. Pickled objects are rejected."""
    try:
        array = parse_npy(data)
    except ArrayError as error:
        raise FormatError(str(error)) from error
    if array.dtype.kind not in "fiu":
        raise FormatError(f"the array holds {array.dtype}, but real numbers are needed")
    if array.ndim != 2 or array.shape[1] not in (3, 4, 6, 7, 9, 10):
        raise FormatError(f"the array is {array.shape}, but (points, 3), (points, 6) or (points, 9) is needed")
    return _from_columns(array.astype(np.float64))


def write_xyz(cloud: PointCloud) -> bytes:
    """Bytes of a text file, one point per line with all digits: x y z, then normal and colour where there are any."""
    columns = [cloud.vertices] if cloud.normals is None else [cloud.vertices, cloud.normals]
    width = 3 * len(columns)
    form = " ".join(["%r"] * width)
    values = np.hstack(columns).tolist()
    if cloud.colors is not None:
        form += " %d %d %d"
        values = [row + color[:3] for row, color in zip(values, cloud.colors.tolist(), strict=True)]
    return ((form + "\n") * len(values) % tuple(x for row in values for x in row)).encode("ascii")


def write_npy(cloud: PointCloud) -> bytes:
    """Bytes of an NPY file: an (n, 3) float64 array, or (n, 6) with normals."""
    stream = io.BytesIO()
    array = cloud.vertices if cloud.normals is None else np.hstack([cloud.vertices, cloud.normals])
    np.lib.format.write_array(stream, np.ascontiguousarray(array, dtype=np.float64), allow_pickle=False)
    return stream.getvalue()


def _from_columns(columns: NDArray[np.float64]) -> RawShape:
    shape = RawShape(columns[:, :3])
    at = 3
    if _has_intensity(columns):
        shape.note("unknown-columns", 1, "column 4: assumed to be an intensity, ignored")
        at = 4
    while at + 3 <= columns.shape[1]:
        three = columns[:, at : at + 3]
        if shape.normals is None and _are_normals(three):
            shape.normals = three
        elif shape.colors is None and _are_colors(three):
            shape.colors = colors_from(three.astype(np.int64) if (three == np.rint(three)).all() else three)
        else:
            break
        at += 3
    if at < columns.shape[1]:
        shape.note(
            "unknown-columns",
            columns.shape[1] - at,
            f"columns {at + 1} to {columns.shape[1]}: meaning unknown, ignored",
        )
    return shape


def _has_intensity(columns: NDArray[np.float64]) -> bool:
    """Whether the columns are x y z intensity r g b, rather than a normal and one more, or r g b 255."""
    if columns.shape[1] != 7 or _are_normals(columns[:, 3:6]) or not _are_byte_colors(columns[:, 4:]):
        return False
    opaque = bool((columns[:, 6] == 255).all()) and not (columns[:, 4:] == 255).all()
    return not (opaque and _are_byte_colors(columns[:, 3:6]))


def _are_normals(three: NDArray[np.float64]) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(three, axis=1)
    return bool(((np.abs(length - 1) < 1e-2) | (length == 0) | ~np.isfinite(length)).all() and (length > 0).any())


def _are_colors(three: NDArray[np.float64]) -> bool:
    return _are_byte_colors(three) or bool(np.isfinite(three).all() and three.min() >= 0 and three.max() <= 1)


def _are_byte_colors(three: NDArray[np.float64]) -> bool:
    return bool((three == np.rint(three)).all() and three.min() >= 0 and three.max() <= 255)
