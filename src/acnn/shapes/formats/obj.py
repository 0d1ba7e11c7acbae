"""OBJ with MTL: reading and writing.

The format is read here because trimesh renumbers vertices at texture seams.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.formats.raw import (
    NEWLINE,
    FormatError,
    RawShape,
    TextTable,
    colors_from,
    decode_image,
    read_beside,
    word_starts,
)
from acnn.shapes.mesh import Mesh

MATERIAL = "surface"

"""Name of the only material that is written."""


def read_obj(data: bytes, path: Path) -> RawShape:
    """Read vertices (with colours as x y z r g b), texture coordinates, faces and the first image of the materials.

    Indices are 1-based in the file, or negative and relative to the face's own line. Normals are ignored: they
    are computed from the faces.
    """
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\\\n", b"  ")
    named = data
    if b"#" in data:
        # In a name '#' begins a comment only after a blank; in numbers it always does.
        named = re.sub(rb"#(?<!\S#)[^\n]*", b"", data)
        data = re.sub(rb"#[^\n]*", b"", named)
    lines = _Lines(data)
    is_v, is_vt, is_f = (lines.begin_with(word) for word in (b"v", b"vt", b"f"))
    if not is_v.any():
        raise FormatError("it holds no vertex line ('v x y z')")
    shape = _vertices(lines, is_v)
    if is_f.any():
        corners, uv_corners, sizes = _faces(lines, is_f, np.cumsum(is_v), np.cumsum(is_vt))
        shape.corners, shape.sizes = corners, sizes
        if is_vt.any():
            uv = TextTable(lines.rest_of(is_vt, 2), "texture line")
            shape.uv = uv.table(0, uv.rows, 2, "texture coordinate")
            _attach_uv(shape, uv_corners)
            _attach_image(named, path, shape)
    _note_materials(named, shape)
    if not data.endswith(b"\n"):
        shape.note("no-final-newline", 1, "the last line has no line end: if the file is truncated, faces are missing")
    drawn = lines.begin_with(b"l") | lines.begin_with(b"p")
    if drawn.any():
        shape.note("lines-and-points", int(drawn.sum()), f"{int(drawn.sum())} lines or single points: ignored")
    return shape


def write_obj(mesh: Mesh, library: str | None = None) -> bytes:
    """Bytes of an OBJ file: coordinates with all digits, colours as x y z r g b in 0..1, indices 1-based.

    Parameters
    ----------
    mesh : Mesh
    library : str or None
        Name of the MTL file beside it.
    """
    text = []
    if library:
        text.append(f"mtllib {library}\nusemtl {MATERIAL}\n")
    if mesh.colors is None:
        text.append("v %r %r %r\n" * len(mesh.vertices) % tuple(mesh.vertices.ravel().tolist()))
    else:
        # Four digits distinguish 256 levels. Alpha is written only where some vertex is not opaque.
        columns = 3 if (mesh.colors[:, 3] == 255).all() else 4
        rows = zip(mesh.vertices.tolist(), (mesh.colors[:, :columns] / 255).tolist(), strict=True)
        form = "v %r %r %r" + " %.4f" * columns + "\n"
        text.append(form * len(mesh.vertices) % tuple(x for p, c in rows for x in (*p, *c)))
    faces = mesh.faces + 1
    if mesh.texture is None:
        text.append("f %d %d %d\n" * len(faces) % tuple(faces.ravel().tolist()))
    else:
        text.append("vt %r %r\n" * len(mesh.texture.uv) % tuple(mesh.texture.uv.ravel().tolist()))
        rows_of_uv = (mesh.texture.uv_faces + 1).ravel().tolist()
        pairs = zip(faces.ravel().tolist(), rows_of_uv, strict=True)
        text.append("f %d/%d %d/%d %d/%d\n" * len(faces) % tuple(x for pair in pairs for x in pair))
    return "".join(text).encode("utf-8")


def write_mtl(image_name: str) -> bytes:
    """Bytes of the MTL file that assigns an OBJ file its texture image."""
    return f"newmtl {MATERIAL}\nKd 1 1 1\nillum 1\nmap_Kd {image_name}\n".encode()


class _Lines:
    """The lines of a text as an array of bytes, selected by their first word."""

    def __init__(self, data: bytes) -> None:
        if data[:1] in (b" ", b"\t") or b"\n " in data or b"\n\t" in data:
            data = re.sub(rb"(?m)^[ \t]+", b"", data)
        if not data.endswith(b"\n"):
            data += b"\n"
        self.array = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(self.array == NEWLINE) + 1
        self.starts = np.concatenate([[0], ends[:-1]])
        self.lengths = ends - self.starts

    def begin_with(self, word: bytes) -> NDArray[np.bool_]:
        """(lines,) which lines begin with this word and a blank."""
        found = self.lengths > len(word) + 1
        at = self.starts[found]
        same = np.ones(len(at), bool)
        for i, letter in enumerate(word):
            same &= self.array[at + i] == letter
        same &= (self.array[at + len(word)] == 32) | (self.array[at + len(word)] == 9)
        found[found] = same
        return found

    def rest_of(self, selected: NDArray[np.bool_], skip: int) -> bytes:
        """The selected lines one after another, without their first `skip` characters."""
        text = self.array[np.repeat(selected, self.lengths)]
        lengths = self.lengths[selected]
        begins = np.cumsum(lengths) - lengths
        for i in range(skip):
            text[begins + i] = 32
        return text.tobytes()


def _vertices(lines: _Lines, is_v: NDArray[np.bool_]) -> RawShape:
    table = TextTable(lines.rest_of(is_v, 1), "vertex line")
    if table.rows != int(is_v.sum()):
        raise FormatError(f"one of the {int(is_v.sum())} vertex lines is empty")
    width = int(table.words.min())
    shape = RawShape(table.table(0, table.rows, 3, "vertex"))
    if width in (6, 7) and int(table.words.max()) == width:
        shape.colors = colors_from(table.table(0, table.rows, width, "vertex")[:, 3:])
    elif int(table.words.max()) >= 6:
        shape.note("colors-incomplete", int((table.words >= 6).sum()), "not every vertex has a colour: all are ignored")
    return shape


def _faces(
    lines: _Lines,
    is_f: NDArray[np.bool_],
    v_before: NDArray[np.int64],
    vt_before: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """0-based vertex and texture row (-1 for none) of every corner, and the number of corners of every face."""
    text = lines.rest_of(is_f, 1)
    words = TextTable(text, "face line")
    if words.rows != int(is_f.sum()):
        raise FormatError(f"one of the {int(is_f.sum())} face lines is empty")
    sizes = words.words
    pattern = _pattern(text)
    if pattern is not None:
        columns = len(pattern)
        flat = words if pattern == "v" else TextTable(text.replace(b"//", b" ").replace(b"/", b" "), "face line")
        numbers = flat.numbers(0, flat.rows, np.int64)
        if len(numbers) != columns * int(sizes.sum()):
            raise FormatError("a face corner lacks a number, such as '/1/2'")
        values = numbers.reshape(-1, columns)
        vertex = values[:, 0].astype(np.int64)
        texture = values[:, 1].astype(np.int64) if "t" in pattern else np.zeros(len(values), np.int64)
    else:
        vertex, texture = _mixed_corners(text, int(sizes.sum()))
    owner = np.repeat(np.flatnonzero(is_f), sizes)
    return _zero_based(vertex, v_before[owner], sizes, "vertex"), _zero_based_or_none(texture, vt_before[owner]), sizes


def _pattern(text: bytes) -> str | None:
    """'v', 'vt', 'vn' or 'vtn' where all corners are written alike; None where they differ."""
    array = np.frombuffer(text, np.uint8)
    slash = array == ord("/")
    if not slash.any():
        return "v"
    begins, positions = word_starts(array), np.flatnonzero(slash)
    slashes = np.diff(np.append(np.searchsorted(positions, begins), len(positions)))
    if (slashes != slashes[0]).any() or slashes[0] > 2:
        return None
    doubled = int((slash[1:] & slash[:-1]).sum())
    # A corner that ends in a slash ('1/' or '1/2/') lacks a number.
    if slash[-1] or (array[positions + 1] <= 32).any():
        return None
    if doubled == 0:
        return "vt" if slashes[0] == 1 else "vtn"
    return "vn" if doubled == len(slashes) else None


def _mixed_corners(text: bytes, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    vertex, texture = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for i, word in enumerate(text.split()):
        parts = word.split(b"/")
        try:
            vertex[i] = int(parts[0])
            texture[i] = int(parts[1]) if len(parts) > 1 and parts[1] else 0
        except (ValueError, OverflowError):
            raise FormatError(f"a face corner reads '{word[:40].decode('ascii', 'replace')}'") from None
    return vertex, texture


def _zero_based(
    index: NDArray[np.int64], before: NDArray[np.int64], sizes: NDArray[np.int64], what: str
) -> NDArray[np.int64]:
    if len(index) and (index == 0).any():
        face = int(np.repeat(np.arange(len(sizes)), sizes)[np.flatnonzero(index == 0)[0]])
        raise FormatError(f"face {face} uses {what} 0, but OBJ counts from 1")
    return np.where(index > 0, index - 1, before + index)


def _zero_based_or_none(index: NDArray[np.int64], before: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(index > 0, index - 1, np.where(index == 0, -1, before + index))


def _attach_uv(shape: RawShape, uv_corners: NDArray[np.int64]) -> None:
    assert shape.uv is not None
    known = (uv_corners >= 0) & (uv_corners < len(shape.uv))
    if not known.any():
        shape.uv = None
        return
    if not known.all():
        # One more row stands for 'no coordinate', so that the textured faces keep theirs.
        shape.note(
            "texture-incomplete",
            int((~known).sum()),
            f"{int((~known).sum())} face corners have no texture coordinate: set to 0, 0",
        )
        uv_corners = np.where(known, uv_corners, len(shape.uv))
        shape.uv = np.vstack([shape.uv, np.zeros((1, 2))])
    shape.uv_corners = uv_corners


def _note_materials(data: bytes, shape: RawShape) -> None:
    found = re.findall(rb"(?m)^[ \t]*usemtl[ \t]+([^\n]+)", data) if b"usemtl" in data else []
    names = dict.fromkeys(name.decode("utf-8", "replace").strip() for name in found)
    names.pop(MATERIAL, None)  # the name that `save` writes
    if names:
        listed = ", ".join(name[:40] for name in itertools.islice(names, 3)) + (", ..." if len(names) > 3 else "")
        shape.note("materials", len(names), f"named materials ({listed}): the names are ignored")


def _attach_image(data: bytes, path: Path, shape: RawShape) -> None:
    names: list[str] = []
    for library in re.findall(rb"(?m)^\s*mtllib[ \t]+([^\n]+)", data)[:16]:
        text = read_beside(path, library.decode("utf-8", "replace"))
        if text is None:
            shape.note(
                "material-missing",
                1,
                f"the material file '{library.decode('utf-8', 'replace').strip()[:80]}' is not beside the file",
            )
            continue
        for line in re.findall(rb"(?mi)^\s*map_Kd[ \t]+([^\r\n]+)", text)[:1000]:
            name = line.decode("utf-8", "replace").strip()
            names.append(name.split()[-1] if name.startswith("-") else name)
    names = list(dict.fromkeys(names))
    for name in names[:1]:
        content = read_beside(path, name)
        shape.image = decode_image(content) if content is not None else None
        if shape.image is None:
            shape.note("texture-missing", 1, f"the image '{name[:80]}' is not beside the file or cannot be read")
    if len(names) > 1:
        shape.note(
            "several-textures",
            len(names),
            f"{len(names)} texture images: only the first, '{names[0][:80]}', is kept",
        )
