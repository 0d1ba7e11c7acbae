"""Carrying what one file holds to another along a map: texture, colours, labels, landmarks, or the shape itself."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from acnn.correspondence.map_files import FileMap, read_map
from acnn.correspondence.transfer import landmarks_on_query, pull_back
from acnn.errors import InputError
from acnn.files import check_outputs, make_folder, write_atomic
from acnn.input_files import parse_numbers, read_lines, read_npy
from acnn.shapes.load import load
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.shapes.save import format_to_write, save

What = Literal["texture", "colors", "labels", "landmarks", "shape"]
GREY = (128, 128, 128, 255)


@dataclass(frozen=True, eq=False)
class _Pair:
    a: Shape
    b: Shape
    map: FileMap

    def places(self) -> BarycentricPoints:
        """Matches on the triangles of B; a vertex of A without one takes that of the nearest with one."""
        assert isinstance(self.b, Mesh)
        places = self.map.places or BarycentricPoints.at_vertices(self.b.faces, np.maximum(self.map.vertices, 0))
        missing = self.map.vertices < 0
        if missing.any():
            from scipy.spatial import cKDTree

            known = np.flatnonzero(~missing)
            nearest = known[cKDTree(self.a.vertices[known]).query(self.a.vertices[missing])[1]]
            places.faces[missing], places.weights[missing] = places.faces[nearest], places.weights[nearest]
        return places


def transfer_files(
    map_file: Path, b: Path, a: Path, out: Path, what: What, values: Path | None = None, *, force: bool = False
) -> dict[str, Any]:
    """Carry something of shape B to shape A and write it.

    - `texture`: A with B's picture (OBJ, PLY or GLB)
    - `colors`: A with B's vertex colours, or those of its picture
    - `labels`: numbers or words of B's vertices, one a line of `values` (or .npy), for A's vertices
    - `landmarks`: vertices of B, `[name] number` on each line of `values`, as vertices of A
    - `shape`: B's triangles, with its texture and colours, moved onto A's surface

    Vertices in text files are counted from 0 as they stand in the shapes' files.

    The folder of `out` is made where it is missing.

    Parameters
    ----------
    map_file : Path
        What `acnn match A B` wrote: `a_to_b.txt`, `map.npz` or their folder; see `read_map`.
    b, a : Path
        The shapes the map runs to and from.
    out : Path
        The file to write.
    values : Path or None
        The file of labels or landmarks.
    force : bool
        Overwrite a file that is there already, unless it is an input.

    Returns
    -------
    dict[str, Any]
        Facts: `what, out, vertices` (of the shape that is written, else of A), `unmatched` vertices of A, `seam_faces`
        for a texture, `rows` of labels, `landmarks`, `left_out` by the format, `collapsed_faces`, `inverted_faces` and
        `largest_stretch` of a shape (`MovedFaces`), and `notes` on what is odd about the shapes.

    Raises
    ------
    InputError
        Where the map was made of other shapes, the format of `out` cannot hold what is carried, or `out` must not be
        overwritten.
    """
    if what not in get_args(What):
        raise InputError(f"Unknown thing to carry '{what}': use one of {', '.join(get_args(What))}.")
    if what in ("labels", "landmarks") and values is None:
        raise InputError(f"A file of {what} of B's vertices is needed.")
    arrays = map_file / "map.npz" if map_file.is_dir() else map_file.with_name("map.npz")
    check_outputs([out], inputs=(a, b, values, None if map_file.is_dir() else map_file, arrays), force=force)
    source, target = load(b), load(a)
    if what in ("texture", "colors"):
        format_to_write(target, out, "texture" if what == "texture" else "colours")
    pair = _Pair(target, source, read_map(map_file, target, source))
    facts: dict[str, Any] = {
        "what": what,
        "out": str(out),
        "vertices": len(target.vertices),
        "unmatched": int((pair.map.vertices < 0).sum()),
        "notes": list(pair.map.notes),
    }
    if values is not None and what == "labels":
        carried = _labels(pair, read_values(values, source), values)
        _write_values(out, carried)
        return facts | {"rows": len(carried)}
    if values is not None and what == "landmarks":
        return facts | _landmarks(pair, values, out)
    shape, more = _shape(pair, what, b, a)
    format_to_write(shape, out)
    make_folder(out)
    left_out = save(shape, out)
    return facts | more | {"vertices": len(shape.vertices), "left_out": list(left_out)}


def read_values(path: Path, shape: Shape) -> NDArray[Any]:
    """(vertices of the shape's file, ...) numbers, or words, from a text file with one a line or from .npy.

    Raises
    ------
    InputError
        Where there are not as many rows as the file or the shape has vertices.
    """
    if path.suffix.lower() == ".npy":
        values: NDArray[Any] = read_npy(path)
        if values.dtype.kind not in "biufU":
            raise InputError(f"{path}: holds {values.dtype}; whole numbers, fractions or words are needed.")
        if values.ndim not in (1, 2):
            raise InputError(f"{path}: has shape {values.shape}; one row for each vertex is needed: (n,) or (n, p).")
    else:
        values = _numbers_or_words(read_lines(path))
    rows, n = len(values), len(shape.vertices)
    in_file = n if shape.source is None else len(shape.source.from_file)
    if rows == in_file:
        return values
    if rows == n and shape.source is not None:
        place = shape.source.from_file
        return values[np.maximum(place, 0)]
    raise InputError(f"{path}: has {rows} rows, but the shape has {in_file} vertices; each needs one row.")


def _shape(pair: _Pair, what: What, b: Path, a: Path) -> tuple[Shape, dict[str, Any]]:
    """The shape to write, and facts about it."""
    if what == "colors" and not isinstance(pair.b, Mesh):
        if pair.b.colors is None:
            raise InputError(f"{b}: the cloud has no colours.")
        colors = np.where((pair.map.vertices >= 0)[:, None], pair.b.colors[np.maximum(pair.map.vertices, 0)], GREY)
        return replace(pair.a, colors=colors.astype(np.uint8)), {}
    if not isinstance(pair.b, Mesh):
        raise InputError(f"{b}: a point cloud has no {'texture' if what == 'texture' else 'triangles'}. Use a mesh.")
    if what == "colors":
        from acnn.correspondence.texture import colors_at

        colors = colors_at(pair.b, pair.places())
        colors[pair.map.vertices < 0] = GREY
        return _without_texture(replace(pair.a, colors=colors)), {}
    if what == "shape":
        from acnn.correspondence.transfer import carry_shape, check_moved_faces

        moved = carry_shape(pair.a, pair.b, pair.places())
        return replace(pair.b, vertices=moved, source=None), check_moved_faces(pair.a, pair.b, moved).as_dict()
    if not isinstance(pair.a, Mesh):
        raise InputError(f"{a}: a point cloud cannot wear a texture. Carry the colours instead, with --colors.")
    from acnn.correspondence.texture import carry_texture

    if pair.b.texture is None:
        raise InputError(f"{b}: has no texture coordinates. Use an OBJ, PLY or GLB with them, or --colors.")
    texture, crossing = carry_texture(pair.a, pair.b, pair.places())
    return replace(pair.a, texture=texture, colors=None), {"seam_faces": crossing}


def _without_texture(shape: Shape) -> Shape:
    return replace(shape, texture=None) if isinstance(shape, Mesh) else shape


def _labels(pair: _Pair, values: NDArray[Any], path: Path) -> NDArray[Any]:
    """Rows for the vertices of A's file; between vertices of B, fractions are mixed and whole numbers are not."""
    if values.dtype.kind in "ub":
        if len(values) and values.max() > np.iinfo(np.int64).max:
            raise InputError(f"{path}: holds {values.max()}; whole numbers must be below 2^63.")
        values = values.astype(np.int64)
    here = values if pair.b.source is None else values[pair.b.source.to_file]
    unmatched = pair.map.vertices < 0
    if pair.map.places is not None and values.dtype.kind == "f" and isinstance(pair.b, Mesh):
        carried = pair.places().interpolate(here[pair.b.faces])
    else:
        carried = pull_back(here, np.maximum(pair.map.vertices, 0))
    lacking: Any = {"f": np.nan, "i": -1, "U": ""}[values.dtype.kind]
    carried[unmatched] = lacking
    if pair.a.source is None:
        return carried
    place = pair.a.source.from_file
    rows = carried[np.maximum(place, 0)]
    rows[place < 0] = lacking
    return rows


def _landmarks(pair: _Pair, path: Path, out: Path) -> dict[str, Any]:
    from acnn.surface.surface import surface_of

    names, numbers = _read_landmarks(path)
    count = len(pair.b.vertices) if pair.b.source is None else len(pair.b.source.from_file)
    outside = np.flatnonzero((numbers < 0) | (numbers >= count))
    if len(outside):
        raise InputError(
            f"{path}: line {outside[0] + 1} names vertex {numbers[outside[0]]}, but B's vertices are 0 to {count - 1}."
        )
    here = numbers if pair.b.source is None else pair.b.source.from_file[numbers]
    known = np.flatnonzero(pair.map.vertices >= 0)
    found = np.full(len(numbers), -1, np.int64)
    there = here >= 0
    if there.any():
        on_a = landmarks_on_query(here[there], pair.map.vertices[known], pair.a.vertices[known], surface_of(pair.b))
        found[there] = known[on_a]
        if pair.a.source is not None:
            found[there] = pair.a.source.to_file[found[there]]
    text = "".join(f"{name} {k}\n" if name else f"{k}\n" for name, k in zip(names, found.tolist(), strict=True))
    write_atomic(out, text.encode())
    return {"landmarks": found.tolist(), "lost": int((found < 0).sum())}


def _read_landmarks(path: Path) -> tuple[list[str], NDArray[np.int64]]:
    names, numbers = [], []
    for i, line in enumerate(read_lines(path)):
        *words, last = line.split() or [""]
        if not last.isdecimal():
            raise InputError(
                f"{path}: line {i + 1} is '{line[:60]}'; a vertex number is needed, after a name or alone."
            )
        if len(last.lstrip("0")) > 18:
            raise InputError(f"{path}: line {i + 1} names vertex {last[:30]}, a number that no vertex of B has.")
        names.append(" ".join(words))
        numbers.append(int(last))
    return names, np.array(numbers, np.int64)


def _numbers_or_words(lines: list[str]) -> NDArray[Any]:
    for kind in (np.int64, np.float64):
        try:
            table = parse_numbers(lines, kind)
            return table[:, 0] if table.shape[1] == 1 else table
        except ValueError:
            continue
    return np.array([line.strip() for line in lines])


def _write_values(out: Path, values: NDArray[Any]) -> None:
    buffer = io.BytesIO()
    if out.suffix.lower() == ".npy":
        np.save(buffer, values, allow_pickle=False)
    else:
        form = {"i": "%d", "f": "%.9g"}.get(values.dtype.kind, "%s")
        np.savetxt(buffer, values, fmt=form, encoding="utf-8")
    write_atomic(out, buffer.getvalue())
