"""PLY: reading ASCII and both binary byte orders, and writing binary little-endian.

The format is read here because trimesh fails on binary files that mix triangles with other polygons, puts triangles
before quads, splits vertices at texture seams and takes ten times as long for ASCII.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.formats.raw import FormatError, RawShape, TextTable, colors_from, decode_image, read_beside
from acnn.shapes.mesh import Mesh, PointCloud

TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"},
    **{"int64": "i8", "uint64": "u8", "float": "f4", "double": "f8", "float32": "f4", "float64": "f8"},
}

ROUNDING = 1e-6
"""Distance over the diagonal by which float32 may move a vertex."""

MAX_HEADER = 1 << 16
"""Bytes within which the header must end."""

# A column is (n,) for a scalar; (values, sizes) for a list, values one row after another.
Column = NDArray[np.generic] | tuple[NDArray[np.generic], NDArray[np.int64]]

Columns = dict[str, Column]


@dataclass
class Property:
    """One property of an element; `count_type` is set for lists."""

    name: str
    type: str
    count_type: str | None = None


@dataclass
class Element:
    """One element of the header: its name, number of rows, and properties of each row."""

    name: str
    count: int
    properties: list[Property] = field(default_factory=list)


def read_ply(data: bytes, path: Path) -> RawShape:
    """Read a PLY file.

    Supported are vertices (x y z, nx ny nz, red green blue alpha, u v or s t), faces (vertex_indices, texcoord) and the
    comment `TextureFile`. Other properties are ignored; triangle strips are rejected.
    """
    order, elements, texture_file, begin = read_header(data)
    columns = read_ascii(data[begin:], elements) if order == "" else read_binary(data, begin, order, elements)
    if "vertex" not in columns or not all(k in columns["vertex"] for k in "xyz"):
        raise FormatError("the header declares no vertices with x, y and z")
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
        content = read_beside(path, texture_file)
        shape.image = decode_image(content) if content is not None else None
        if shape.image is None:
            shape.note("texture-missing", 1, f"the image '{texture_file}' is not beside the file or cannot be read")
    return shape


def write_ply(shape: Mesh | PointCloud, image_name: str | None = None) -> bytes:
    """Bytes of a PLY file: coordinates, normals, RGBA colours, faces and a texture coordinate per corner.

    Numbers are float32, which all viewers read. Coordinates are float64 where rounding would move a vertex by more than
    `ROUNDING` of the diagonal, or would make vertices coincide or faces degenerate.

    Parameters
    ----------
    shape : Mesh or PointCloud
    image_name : str or None
        Name of the texture image beside the file.
    """
    header = ["ply", "format binary_little_endian 1.0"]
    if image_name:
        header.append(f"comment TextureFile {image_name}")
    single = _fits_single(shape)
    vertex = [("position", "<f4" if single else "<f8", (3,))]
    kind = "float" if single else "double"
    header += [f"element vertex {len(shape.vertices)}", *(f"property {kind} {axis}" for axis in "xyz")]
    normals = shape.normals if isinstance(shape, PointCloud) else None
    if normals is not None:
        vertex.append(("normals", "<f4", (3,)))
        header += [f"property float {axis}" for axis in ("nx", "ny", "nz")]
    if shape.colors is not None:
        vertex.append(("colors", "u1", (4,)))
        header += [f"property uchar {channel}" for channel in ("red", "green", "blue", "alpha")]
    rows = np.zeros(len(shape.vertices), vertex)
    rows["position"] = shape.vertices
    if normals is not None:
        rows["normals"] = normals
    if shape.colors is not None:
        rows["colors"] = shape.colors
    body = [rows.tobytes()]
    if isinstance(shape, Mesh):
        face: list[tuple[str, str] | tuple[str, str, tuple[int]]] = [("n", "u1"), ("faces", "<i4", (3,))]
        header += [f"element face {len(shape.faces)}", "property list uchar int vertex_indices"]
        if shape.texture is not None:
            face += [("k", "u1"), ("uv", "<f4", (6,))]
            header.append("property list uchar float texcoord")
        table = np.zeros(len(shape.faces), face)
        table["n"], table["faces"] = 3, shape.faces
        if shape.texture is not None:
            table["k"], table["uv"] = 6, shape.texture.uv[shape.texture.uv_faces].reshape(-1, 6)
        body.append(table.tobytes())
    return "\n".join([*header, "end_header\n"]).encode("utf-8") + b"".join(body)


def _fits_single(shape: Mesh | PointCloud) -> bool:
    """Whether float32 coordinates describe the same shape."""
    exact = np.asarray(shape.vertices, np.float64)
    if not len(exact):
        return True
    with np.errstate(over="ignore"):  # beyond the range of float32
        rounded = exact.astype(np.float32).astype(np.float64)
    diagonal = float(np.linalg.norm(np.ptp(exact, axis=0)))
    if not np.abs(rounded - exact).max() <= ROUNDING * diagonal:
        return False
    if len(np.unique(rounded, axis=0)) < len(np.unique(exact, axis=0)):
        return False
    return not isinstance(shape, Mesh) or not np.any(_degenerate(rounded, shape) & ~_degenerate(exact, shape))


def _degenerate(vertices: NDArray[np.float64], mesh: Mesh) -> NDArray[np.bool_]:
    """(m,) which faces have no area."""
    a, b, c = (vertices[mesh.faces[:, k]] for k in range(3))
    return np.asarray(~np.cross(b - a, c - a).any(axis=1), bool)


def _stack(columns: Columns, names: tuple[str, ...]) -> NDArray[np.float64]:
    parts = [columns[name] for name in names]
    if any(isinstance(part, tuple) for part in parts):
        raise FormatError(f"'{names[0]}' is a list, but one number per row is needed")
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
                # Alpha may have another type, and with it another range.
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
        shape.note("face-colors", len(indices[1]), "colours of faces: ignored")
    shape.corners, shape.sizes = indices[0].astype(np.int64), indices[1]
    coordinates = face.get("texcoord")
    if isinstance(coordinates, tuple) and len(shape.corners):
        if (coordinates[1] == 2 * shape.sizes).all():
            pairs = coordinates[0].astype(np.float64).reshape(-1, 2)
            shape.uv, inverse = np.unique(pairs, axis=0, return_inverse=True)
            shape.uv_corners = inverse.reshape(-1).astype(np.int64)
        else:
            shape.note("texture-incomplete", 1, "not every face corner has a texture coordinate: all are ignored")


def read_header(data: bytes) -> tuple[str, list[Element], str, int]:
    """Byte order ('' for ASCII), elements, name of the texture image, and offset of the data."""
    end = data.find(b"end_header", 0, MAX_HEADER)
    if end < 0:
        raise FormatError("the header does not end: no line 'end_header'")
    begin = data.find(b"\n", end, end + 64)
    begin = begin + 1 if begin >= 0 else len(data)
    lines = _header_text(data[:end]).replace("\r", "\n").split("\n")
    order: str | None = None
    elements: list[Element] = []
    texture_file = ""
    for number, line in enumerate(lines[1:], start=2):
        words = line.split()
        if not words or words[0] == "obj_info":
            continue
        try:
            if words[0] == "comment":
                if len(words) > 2 and words[1].lower() == "texturefile":
                    texture_file = line.split(None, 2)[2].strip()
            elif words[0] == "format":
                order = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}[words[1]]
            elif words[0] == "element":
                elements.append(Element(words[1], int(words[2])))
                if elements[-1].count < 0:
                    raise ValueError
            elif words[0] == "property" and words[1] == "list":
                elements[-1].properties.append(Property(words[4], TYPES[words[3]], TYPES[words[2]]))
            elif words[0] == "property":
                elements[-1].properties.append(Property(words[2], TYPES[words[1]]))
            else:
                raise ValueError
        except (KeyError, IndexError, ValueError):
            raise FormatError(f"line {number} of the header is not valid: '{line.strip()[:60]}'") from None
    if order is None:
        raise FormatError("the header declares no format (ascii or binary)")
    return order, elements, texture_file, begin


def _header_text(header: bytes) -> str:
    try:
        return header.decode("utf-8")
    except UnicodeDecodeError:
        return header.decode("latin-1")


def _short(element: Element) -> FormatError:
    return FormatError(
        f"the header promises {element.count} of '{element.name}', but the file ends before them: "
        "it is truncated or its header is damaged"
    )


def read_ascii(body: bytes, elements: list[Element]) -> dict[str, Columns]:
    """The columns of every element of an ASCII file, one row per line."""
    table = TextTable(body, "data line")
    result: dict[str, Columns] = {}
    at = 0
    for element in elements:
        if not element.properties:
            continue
        if at + element.count > table.rows:
            raise _short(element)
        lists = any(p.count_type for p in element.properties)
        if not lists:
            values = table.table(at, at + element.count, len(element.properties), element.name)
            result[element.name] = {p.name: _typed(values[:, i], p.type) for i, p in enumerate(element.properties)}
        else:
            result[element.name] = _ascii_lists(table, at, element)
        at += element.count
    return result


def _ascii_lists(table: TextTable, at: int, element: Element) -> Columns:
    words = table.words[at : at + element.count]
    integers = all(p.type[0] != "f" for p in element.properties)
    values = table.numbers(at, at + element.count, np.int64 if integers else np.float64)
    cursor = np.cumsum(words) - words
    ends = cursor + words
    columns: Columns = {}
    for prop in element.properties:
        if len(cursor) and (cursor >= ends).any():
            raise FormatError(
                f"'{element.name}' {int(np.flatnonzero(cursor >= ends)[0])} has too few numbers on its line"
            )
        if prop.count_type is None:
            columns[prop.name] = _typed(values[cursor], prop.type)
            cursor = cursor + 1
            continue
        sizes = values[cursor].astype(np.int64)
        bad = np.flatnonzero((sizes < 0) | (sizes > ends - cursor - 1))
        if len(bad):
            raise FormatError(
                f"'{element.name}' {int(bad[0])} ({table.location(at + int(bad[0]))}) claims a list of "
                f"{int(sizes[bad[0]])} entries, but fewer follow"
            )
        columns[prop.name] = (_gather(values, cursor + 1, sizes), sizes)
        cursor = cursor + 1 + sizes
    return columns


def read_binary(data: bytes, at: int, order: str, elements: list[Element]) -> dict[str, Columns]:
    """The columns of every element of a binary file whose data begin at byte `at`, in byte order '<' or '>'."""
    result: dict[str, Columns] = {}
    for element in elements:
        if not element.properties or element.count == 0:
            result[element.name] = {p.name: _empty(p) for p in element.properties}
            continue
        least = sum(np.dtype(p.count_type or p.type).itemsize for p in element.properties)
        if element.count * least > len(data) - at:
            raise _short(element)
        uniform = _binary_uniform(data, at, order, element)
        result[element.name], at = uniform if uniform is not None else _binary_walk(data, at, order, element)
    return result


def _binary_uniform(data: bytes, at: int, order: str, element: Element) -> tuple[Columns, int] | None:
    """The element as one array where the lists of all rows are as long as those of the first; otherwise None."""
    fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = []
    cursor = at
    for i, prop in enumerate(element.properties):
        if prop.count_type is None:
            fields.append((f"p{i}", order + prop.type))
            cursor += np.dtype(prop.type).itemsize
            continue
        count = np.dtype(order + prop.count_type)
        if cursor + count.itemsize > len(data) or count.kind == "f":
            return None
        size = int(np.frombuffer(data, count, 1, cursor)[0])
        if not 0 <= size <= 1 << 20:
            return None
        fields += [(f"n{i}", order + prop.count_type), (f"p{i}", order + prop.type, (size,))]
        cursor += count.itemsize + size * np.dtype(prop.type).itemsize
    dtype = np.dtype(fields)
    if dtype.itemsize * element.count > len(data) - at:
        return None
    rows = np.frombuffer(data, dtype, element.count, at)
    columns: Columns = {}
    for i, prop in enumerate(element.properties):
        if prop.count_type is None:
            columns[prop.name] = rows[f"p{i}"]
            continue
        sizes = rows[f"n{i}"].astype(np.int64)
        if (sizes != sizes[0]).any():
            return None
        columns[prop.name] = (rows[f"p{i}"].reshape(-1), sizes)
    return columns, at + dtype.itemsize * element.count


def _binary_walk(data: bytes, at: int, order: str, element: Element) -> tuple[Columns, int]:
    """The element row by row: the offset of each row depends on the lists of the rows before it."""
    kinds = [
        (np.dtype(order + p.count_type) if p.count_type else None, np.dtype(order + p.type)) for p in element.properties
    ]
    starts = np.zeros((len(kinds), element.count), np.int64)
    sizes = np.ones((len(kinds), element.count), np.int64)
    steps = [(i, 0 if c is None else c.itemsize, c, t.itemsize) for i, (c, t) in enumerate(kinds)]
    byteorder: Literal["big", "little"] = "big" if order == ">" else "little"
    for row in range(element.count):
        for i, count_bytes, count_type, item_bytes in steps:
            size = 1
            if count_type is not None:
                if at + count_bytes > len(data):
                    raise _short(element)
                if count_type.kind == "f":
                    raise FormatError(f"the list lengths of '{element.name}' are not integers")
                size = int.from_bytes(data[at : at + count_bytes], byteorder, signed=count_type.kind == "i")
                at += count_bytes
            if size < 0 or at + size * item_bytes > len(data):
                raise FormatError(
                    f"'{element.name}' {row} claims a list of {size} entries, but the file ends before them: "
                    "it is truncated or damaged"
                )
            starts[i, row] = at
            sizes[i, row] = size
            at += size * item_bytes
    raw = np.frombuffer(data, np.uint8)
    columns: Columns = {}
    for i, (prop, (count_type, kind)) in enumerate(zip(element.properties, kinds, strict=True)):
        values = _gather(raw, starts[i], sizes[i] * kind.itemsize).view(kind)
        columns[prop.name] = values if count_type is None else (values, sizes[i])
    return columns, at


def _gather(values: NDArray[np.generic], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.generic]:
    if len(sizes) and (sizes == sizes[0]).all():
        return values[starts[:, None] + np.arange(int(sizes[0]))].reshape(-1)
    before = np.cumsum(sizes) - sizes
    return values[np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))]


def _typed(values: NDArray[np.generic], kind: str) -> NDArray[np.generic]:
    """The column in its own type; integers that do not fit it as int64."""
    if kind[0] == "f":
        return values
    integers = np.nan_to_num(values, posinf=0, neginf=0).astype(np.int64)
    typed = integers.astype(kind)
    return typed if (typed == integers).all() else integers


def _empty(prop: Property) -> Column:
    empty = np.zeros(0, np.dtype(prop.type))
    return empty if prop.count_type is None else (empty, np.zeros(0, np.int64))
