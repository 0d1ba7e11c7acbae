"""PLY in ASCII and both binary orders.

trimesh fails on binary files that mix triangles with other polygons, puts triangles before quads, splits vertices at
texture seams and takes ten times as long over ASCII, so the format is read here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.formats.files import decode_image, read_beside
from acnn.shapes.formats.ply_elements import Columns, read_ascii, read_binary, read_header
from acnn.shapes.formats.raw import FormatError, RawShape, colors_from


def read_ply(data: bytes, path: Path) -> RawShape:
    """Read a PLY file.

    Known are vertices (x y z, nx ny nz, red green blue alpha, u v or s t), faces (vertex_indices, texcoord) and the
    comment `TextureFile`. Properties of other names are passed over; triangle strips are refused.
    """
    order, elements, texture_file, begin = read_header(data)
    columns = read_ascii(data[begin:], elements) if order == "" else read_binary(data, begin, order, elements)
    if "vertex" not in columns or not all(k in columns["vertex"] for k in "xyz"):
        raise FormatError("the header names no vertices with x, y and z")
    if "tristrips" in columns and "face" not in columns:
        raise FormatError("triangle strips cannot be read; export plain faces")
    vertex = columns["vertex"]
    shape = RawShape(_stack(vertex, ("x", "y", "z")))
    if all(k in vertex for k in ("nx", "ny", "nz")):
        shape.normals = _stack(vertex, ("nx", "ny", "nz"))
    shape.colors = _colors(vertex)
    _faces(columns.get("face", {}), shape)
    if shape.uv_corners is None and len(shape.corners):
        for pair in (("texture_u", "texture_v"), ("u", "v"), ("s", "t")):
            if pair[0] in vertex and pair[1] in vertex:
                shape.uv, shape.uv_corners = _stack(vertex, pair), shape.corners
                break
    if shape.uv_corners is not None and texture_file:
        picture = read_beside(path, texture_file)
        shape.image = decode_image(picture) if picture is not None else None
        if shape.image is None:
            shape.note("texture-missing", 1, f"the picture '{texture_file}' is not beside the file or cannot be read")
    return shape


def _stack(columns: Columns, names: tuple[str, ...]) -> NDArray[np.float64]:
    parts = [columns[name] for name in names]
    if any(isinstance(part, tuple) for part in parts):
        raise FormatError(f"'{names[0]}' is a list, but one number a row is needed")
    return np.column_stack([np.asarray(part, np.float64) for part in parts])


def _colors(vertex: Columns) -> NDArray[np.uint8] | None:
    for names in (
        ("red", "green", "blue", "alpha"),
        ("r", "g", "b", "a"),
        ("diffuse_red", "diffuse_green", "diffuse_blue"),
    ):
        parts = [vertex[name] for name in names if name in vertex]
        if len(parts) >= 3 and not any(isinstance(part, tuple) for part in parts):
            colors = colors_from(np.column_stack([np.asarray(part) for part in parts[:3]]))
            if len(parts) == 4:
                # Alpha may have a type of its own, and with it another range.
                colors[:, 3] = colors_from(np.asarray(parts[3])[:, None])[:, 0]
            return colors
    return None


def _faces(face: Columns, shape: RawShape) -> None:
    indices = face.get("vertex_indices", face.get("vertex_index"))
    if indices is None:
        if face:
            raise FormatError("the faces have no list 'vertex_indices'")
        return
    if not isinstance(indices, tuple):
        raise FormatError("'vertex_indices' is not a list")
    if any(name in face for name in ("red", "r")) and len(indices[1]):
        shape.note("face-colors", len(indices[1]), "faces carry colours of their own: left out")
    shape.corners, shape.sizes = indices[0].astype(np.int64), indices[1]
    coordinates = face.get("texcoord")
    if isinstance(coordinates, tuple) and len(shape.corners):
        if (coordinates[1] == 2 * shape.sizes).all():
            pairs = coordinates[0].astype(np.float64).reshape(-1, 2)
            shape.uv, inverse = np.unique(pairs, axis=0, return_inverse=True)
            shape.uv_corners = inverse.reshape(-1).astype(np.int64)
        else:
            shape.note("texture-incomplete", 1, "not every face corner has a texture coordinate: all are left out")
