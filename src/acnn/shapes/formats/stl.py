"""STL: reading and writing with trimesh, with the length checks that it lacks."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from acnn.shapes.formats.raw import FormatError, RawShape
from acnn.shapes.mesh import Mesh


def read_stl(data: bytes, path: Path) -> RawShape:
    """Read a binary or ASCII STL file: three separate vertices for every face, in file order."""
    from trimesh.exchange.stl import load_stl_ascii, load_stl_binary

    promised = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    binary = promised >= 0 and len(data) == 84 + 50 * promised
    text = data[:512].lstrip().lower().startswith(b"solid") and b"\0" not in data[:512]
    if not binary and not text:
        if promised >= 0:
            raise FormatError(
                f"the header promises {promised} faces ({84 + 50 * promised} bytes), but the file has {len(data)}: "
                "it is truncated or its header is damaged"
            )
        raise FormatError("it is too short for an STL file")
    if binary:
        kwargs = load_stl_binary(io.BytesIO(data))
    else:
        lower = data.lower()
        if lower.count(b"endsolid") == 0:
            raise FormatError("the text does not end with 'endsolid': it is truncated")
        try:
            # Characters beyond ASCII only occur in names or from damage; trimesh would guess their encoding.
            with _trimesh_silent():
                kwargs = load_stl_ascii(io.BytesIO(data.decode("ascii", "replace").encode("utf-8")))
        except ValueError as error:
            raise FormatError("a facet does not have three corners of three numbers: it is damaged") from error
        found = sum(len(part["vertices"]) for part in _solids(kwargs))
        expected = 3 * lower.count(b"endfacet")
        if found != expected:
            raise FormatError(f"{expected // 3} facets need {expected} vertices, but {found} were found: it is damaged")
    vertices = [np.asarray(part["vertices"], np.float64) for part in _solids(kwargs)]
    if not vertices:
        raise FormatError("it holds no faces")
    all_vertices = np.concatenate(vertices)
    count = len(all_vertices)
    return RawShape(all_vertices, np.arange(count), np.full(count // 3, 3, np.int64), soup=True)


def write_stl(mesh: Mesh) -> bytes:
    """Bytes of a binary STL file: coordinates as float32, vertices repeated for every face."""
    from trimesh import Trimesh
    from trimesh.exchange.stl import export_stl

    return export_stl(Trimesh(mesh.vertices, mesh.faces, process=False))


@contextmanager
def _trimesh_silent() -> Iterator[None]:
    """Suppress tracebacks that trimesh logs about normals, which are not used here."""
    from trimesh.util import log

    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _solids(kwargs: dict[str, Any]) -> list[dict[str, Any]]:
    """The meshes that trimesh read: one, or one for each solid of a text file."""
    if "vertices" in kwargs:
        return [kwargs]
    return [part for part in kwargs.get("geometry", {}).values() if len(part["vertices"])]
