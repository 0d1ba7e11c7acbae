"""OFF and its variants (COFF, NOFF, STOFF): reading ASCII files, and writing OFF and COFF.

The format is read here because trimesh ignores colours and reorders faces.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from acnn.shapes.formats.raw import FormatError, RawShape, TextTable, colors_from
from acnn.shapes.mesh import Mesh

HEADER = re.compile(rb"\s*(ST)?(C)?(N)?(4)?(n)?OFF\b[ \t]*(BINARY)?", re.IGNORECASE)


def read_off(data: bytes, path: Path) -> RawShape:
    """Read an ASCII OFF file.

    The prefix of OFF lists what follows x, y, z on each vertex line: N a normal, C a colour (3 or 4 numbers), ST a
    texture coordinate. Plain OFF with 6 or 7 numbers per line is read as COFF, as many programs write it.
    """
    if b"#" in data:
        data = re.sub(rb"#[^\r\n]*", b"", data)
    match = HEADER.match(data)
    if match is None:
        raise FormatError("the first word is not OFF")
    if match.group(6) is not None:
        raise FormatError("binary OFF cannot be read")
    if match.group(4) or match.group(5):
        raise FormatError("OFF with other than three coordinates per vertex cannot be read")
    table = TextTable(data[match.end() :], "data line")
    if table.rows == 0 or table.words[0] < 2:
        raise FormatError("the line with the vertex and face counts is missing")
    counts = table.numbers(0, 1, np.int64)
    n, m = int(counts[0]), int(counts[1])
    if n < 0 or m < 0 or 1 + n + m > table.rows:
        raise FormatError(
            f"the header promises {n} vertices and {m} faces, but only {table.rows - 1} lines of data follow: "
            "the file is truncated or its header is damaged"
        )
    shape = _vertices(table, n, match)
    _faces(table, 1 + n, 1 + n + m, shape)
    if table.rows > 1 + n + m:
        shape.note(
            "surplus-lines", table.rows - 1 - n - m, f"{table.rows - 1 - n - m} lines after the last face: ignored"
        )
    return shape


def write_off(mesh: Mesh) -> bytes:
    """Bytes of an OFF file, COFF where the mesh has colours; coordinates with all digits."""
    header = f"{'COFF' if mesh.colors is not None else 'OFF'}\n{len(mesh.vertices)} {len(mesh.faces)} 0\n"
    if mesh.colors is None:
        rows = "%r %r %r\n" * len(mesh.vertices) % tuple(mesh.vertices.ravel().tolist())
    else:
        values = [x for p, c in zip(mesh.vertices.tolist(), mesh.colors.tolist(), strict=True) for x in (*p, *c)]
        rows = "%r %r %r %d %d %d %d\n" * len(mesh.vertices) % tuple(values)
    faces = "3 %d %d %d\n" * len(mesh.faces) % tuple(mesh.faces.ravel().tolist())
    return (header + rows + faces).encode("ascii")


def _vertices(table: TextTable, n: int, header: re.Match[bytes]) -> RawShape:
    least = int(table.words[1 : 1 + n].min()) if n else 3
    columns = table.table(1, 1 + n, max(least, 3), "vertex")
    shape = RawShape(columns[:, :3])
    at = 3
    if header.group(3) and least >= at + 3:
        shape.normals = columns[:, at : at + 3]
        at += 3
    texture = 2 if header.group(1) else 0
    remaining = least - at - texture
    if (header.group(2) or not (header.group(1) or header.group(3))) and remaining in (3, 4):
        colors = columns[:, at : at + remaining]
        integers = bool((colors == np.rint(colors)).all()) and float(colors.max(initial=0)) > 1
        shape.colors = colors_from(np.clip(np.nan_to_num(colors), 0, 255).astype(np.int64) if integers else colors)
        at += remaining
    if texture and least >= at + 2:
        shape.uv = columns[:, at : at + 2]
    return shape


def _faces(table: TextTable, first: int, last: int, shape: RawShape) -> None:
    words = table.words[first:last]
    if len(words) == 0:
        return
    try:
        values = table.numbers(first, last, np.int64)
    except FormatError:  # face colours may be fractions
        values = table.numbers(first, last)
    begins = np.cumsum(words) - words
    sizes = values[begins].astype(np.int64)
    bad = np.flatnonzero((sizes < 0) | (sizes > words - 1))
    if len(bad):
        face = int(bad[0])
        raise FormatError(
            f"face {face} ({table.location(first + face)}) claims {int(sizes[face])} corners, "
            f"but {int(words[face]) - 1} numbers follow"
        )
    if (words == 4).all() and (sizes == 3).all():
        corners = values.reshape(-1, 4)[:, 1:].ravel()
    else:
        starts = np.cumsum(sizes) - sizes
        corners = values[np.repeat(begins + 1 - starts, sizes) + np.arange(int(sizes.sum()))]
    shape.corners = corners.astype(np.int64)
    shape.sizes = sizes
    if shape.uv is not None:
        shape.uv_corners = shape.corners
    if (words > sizes + 1).any():
        shape.note("face-colors", int((words > sizes + 1).sum()), "colours of faces: ignored")
