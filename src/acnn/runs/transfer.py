"""Transfer along a map between two shape files: texture, colours, labels, landmarks, skin, the mesh, or the map."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from acnn.correspondence.map_files import FileMap, check_map_suffix, read_map, write_map
from acnn.correspondence.transfer import landmarks_on_query, pull_back
from acnn.errors import InputError
from acnn.files import check_outputs, make_folder, write_atomic
from acnn.input_files import parse_numbers, read_lines, read_npy
from acnn.reports import Report
from acnn.shapes.load import load, load_skin
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.shapes.save import format_to_write, save

What = Literal["texture", "colors", "labels", "landmarks", "skin", "shape", "map"]
GREY = (128, 128, 128, 255)


@dataclass(frozen=True, eq=False, kw_only=True)
class TransferReport(Report):
    """What `acnn transfer --json` prints.

    Attributes
    ----------
    what, out : str
        What was transferred, and the file.
    vertices : int
        Of the written shape, else of A.
    unmatched : int
        Vertices of A without a match.
    notes : list[str]
        About the map and the shapes.
    rows : int or None
        Of labels or of a map.
    landmarks : list[int] or None
        Vertices of A, -1 for those that are `lost`: their vertices of B were removed on loading.
    joints : int or None
        Of a skin.
    seam_faces : int or None
        Faces that cross a seam of a texture.
    left_out : list[str] or None
        Of a shape: what the format of the file does not support.
    """

    what: What
    out: str
    vertices: int
    unmatched: int
    notes: list[str]
    rows: int | None = None
    landmarks: list[int] | None = None
    lost: int | None = None
    joints: int | None = None
    seam_faces: int | None = None
    left_out: list[str] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class FitFigures(Report):
    """The figures of `Fit.as_dict`, in reports of fitted meshes."""

    scale: float
    mean_residual: float | None
    with_data: float
    repaired_vertices: int
    collapsed_faces: int
    inverted_faces: int
    largest_stretch: float


@dataclass(frozen=True, eq=False, kw_only=True)
class ShapeTransferReport(TransferReport, FitFigures):
    """What `acnn transfer --shape --json` prints: the same, and the figures of the fit."""


def transfer_files(
    map_file: Path, b: Path, a: Path, out: Path, what: What, values: Path | None = None, *, force: bool = False
) -> TransferReport:
    """Transfer an attribute of shape B to shape A and write it.

    - `texture`: A with the texture of B (OBJ, PLY or GLB)
    - `colors`: A with the vertex colours of B, or those of its texture
    - `labels`: values at the vertices of B, one per line of `values` (or .npy), at the vertices of A
    - `landmarks`: vertices of B, `[name] index` per line of `values`, as vertices of A
    - `skin`: A with the joints and the skin weights of B, a GLB file, as GLB (`acnn.registration.skin`)
    - `map`: the map itself, as text or .npz (`write_map`)
    - `shape`: the mesh of B, with its texture and colours, fitted to the surface of A (`acnn.registration.fit`)

    Vertex indices in text files are 0-based, in file order. The folder of `out` is created if missing.

    Parameters
    ----------
    map_file : Path
        Result of `acnn match A B`: `a_to_b.txt`, `map.npz` or their folder; see `read_map`.
    b, a : Path
        Files of the target and the source of the map.
    out : Path
        Output file.
    what : What
        The attribute, as above.
    values : Path or None
        File of labels or landmarks.
    force : bool
        Overwrite an existing file, unless it is an input.

    Returns
    -------
    TransferReport
        For a mesh a `ShapeTransferReport`.

    Raises
    ------
    InputError
        If the map belongs to other shapes, the format of `out` does not support the attribute, or `out` must not be
        overwritten.
    """
    if what not in get_args(What):
        raise InputError(f"Cannot transfer '{what}': use one of {', '.join(get_args(What))}.")
    if what in ("labels", "landmarks") and values is None:
        raise InputError(f"A file with {what} at the vertices of B is needed.")
    arrays = map_file / "map.npz" if map_file.is_dir() else map_file.with_name("map.npz")
    check_outputs([out], inputs=(a, b, values, None if map_file.is_dir() else map_file, arrays), force=force)
    source, target = load(b), load(a)
    if what in ("texture", "colors"):
        format_to_write(target, out, "texture" if what == "texture" else "colours")
    if what == "shape" and isinstance(source, Mesh):
        format_to_write(source, out)
    if what == "skin":
        format_to_write(target, out, "skins")
    if what == "map":
        check_map_suffix(out)
    pair = _Pair(target, source, read_map(map_file, target, source))
    report = TransferReport(
        what=what,
        out=str(out),
        vertices=len(target.vertices),
        unmatched=int((pair.map.vertices < 0).sum()),
        notes=list(pair.map.notes),
    )
    if what == "map":
        make_folder(out)
        return replace(report, rows=write_map(out, pair.map, target, source))
    if what == "skin":
        return replace(report, joints=_skin(pair, b, a, out))
    if values is not None and what == "labels":
        rows = _labels(pair, read_values(values, source), values)
        _write_values(out, rows)
        return replace(report, rows=len(rows))
    if values is not None and what == "landmarks":
        landmarks = _landmarks(pair, values, out)
        return replace(report, landmarks=landmarks, lost=landmarks.count(-1))
    shape, seam_faces, figures = _shape(pair, what, b, a)
    format_to_write(shape, out)
    make_folder(out)
    left_out = list(save(shape, out))
    report = replace(report, vertices=len(shape.vertices), left_out=left_out, seam_faces=seam_faces)
    return report if figures is None else ShapeTransferReport(**report, **figures)


def read_values(path: Path, shape: Shape) -> NDArray[Any]:
    """Read values at the vertices of a shape from a text file or an `.npy` array.

    Parameters
    ----------
    path : Path
        Text with one row per vertex, numbers or words, or an `.npy` array.
    shape : Shape
        As loaded; rows may follow its vertices or those of its file.

    Returns
    -------
    (n,) or (n, p) array
        One row per vertex of the shape file: integers, floats or text.

    Raises
    ------
    InputError
        If the number of rows is neither that of the file nor that of the shape.
    """
    if path.suffix.lower() == ".npy":
        values: NDArray[Any] = read_npy(path)
        if values.dtype.kind not in "biufU":
            raise InputError(f"{path}: contains {values.dtype}; integers, floats or text are needed.")
        if values.ndim not in (1, 2):
            raise InputError(f"{path}: has shape {values.shape}; one row per vertex is needed: (n,) or (n, p).")
    else:
        values = _numbers_or_words(read_lines(path))
    rows, n = len(values), len(shape.vertices)
    in_file = n if shape.source is None else len(shape.source.from_file)
    if rows == in_file:
        return values
    if rows == n and shape.source is not None:
        return values[np.maximum(shape.source.from_file, 0)]
    raise InputError(f"{path}: has {rows} rows, but the shape has {in_file} vertices; each needs one row.")


def read_landmarks(path: Path) -> tuple[list[str], NDArray[np.int64]]:
    """Read landmarks from a text file, `[name] index` per line.

    Parameters
    ----------
    path : Path
        Text file.

    Returns
    -------
    list[str]
        Names, empty where there is none.
    (k,) int64 array
        Vertices, 0-based in file order.

    Raises
    ------
    InputError
        Where a line does not end in an index.
    """
    names, numbers = [], []
    for i, line in enumerate(read_lines(path)):
        *words, last = line.split() or [""]
        if not last.isdecimal():
            raise InputError(f"{path}: line {i + 1} is '{line[:60]}'; expected a vertex index, alone or after a name.")
        if len(last.lstrip("0")) > 18:
            raise InputError(f"{path}: line {i + 1} names vertex {last[:30]}, which B does not have.")
        names.append(" ".join(words))
        numbers.append(int(last))
    return names, np.array(numbers, np.int64)


@dataclass(frozen=True, eq=False)
class _Pair:
    a: Shape
    b: Shape
    map: FileMap

    def points(self) -> BarycentricPoints:
        """Matches as barycentric points of B; a vertex of A without one takes that of the nearest matched vertex."""
        assert isinstance(self.b, Mesh)
        points = self.map.points or BarycentricPoints.at_vertices(self.b.faces, np.maximum(self.map.vertices, 0))
        missing = self.map.vertices < 0
        if missing.any():
            from scipy.spatial import cKDTree

            known = np.flatnonzero(~missing)
            nearest = known[cKDTree(self.a.vertices[known]).query(self.a.vertices[missing])[1]]
            points.faces[missing], points.weights[missing] = points.faces[nearest], points.weights[nearest]
        return points


def _shape(pair: _Pair, what: What, b: Path, a: Path) -> tuple[Shape, int | None, FitFigures | None]:
    """The shape to write, the faces that cross a seam of its texture, and the figures of a fit."""
    if what == "colors" and not isinstance(pair.b, Mesh):
        if pair.b.colors is None:
            raise InputError(f"{b}: the point cloud has no colours.")
        colors = np.where((pair.map.vertices >= 0)[:, None], pair.b.colors[np.maximum(pair.map.vertices, 0)], GREY)
        return replace(pair.a, colors=colors.astype(np.uint8)), None, None
    if not isinstance(pair.b, Mesh):
        raise InputError(f"{b}: a point cloud has no {'texture' if what == 'texture' else 'triangles'}. Use a mesh.")
    if what == "colors":
        from acnn.correspondence.texture import colors_at

        colors = colors_at(pair.b, pair.points())
        colors[pair.map.vertices < 0] = GREY
        return _without_texture(replace(pair.a, colors=colors)), None, None
    if what == "shape":
        from acnn.registration.fit import fit

        at = pair.map.points or BarycentricPoints.at_vertices(pair.b.faces, pair.map.vertices)
        trust = np.where(pair.map.vertices >= 0, 1.0 if pair.map.confidence is None else pair.map.confidence, 0.0)
        fitted = fit(pair.b, pair.a, at, pair.a.vertices, trust)
        return fitted.mesh, None, FitFigures(**fitted.as_dict())
    if not isinstance(pair.a, Mesh):
        raise InputError(f"{a}: point clouds support vertex colours only. Use --colors instead of --texture.")
    from acnn.correspondence.texture import transfer_texture

    if pair.b.texture is None:
        raise InputError(f"{b}: has no texture coordinates. Use an OBJ, PLY or GLB with them, or --colors.")
    texture, crossing = transfer_texture(pair.a, pair.b, pair.points())
    return replace(pair.a, texture=texture, colors=None), crossing, None


def _skin(pair: _Pair, b: Path, a: Path, out: Path) -> int:
    """Write A with the skin of B; the number of its joints."""
    from acnn.registration.skin import transfer_skin
    from acnn.shapes.formats.gltf import write_glb

    for shape, path in ((pair.b, b), (pair.a, a)):
        if not isinstance(shape, Mesh):
            raise InputError(f"{path}: is a point cloud. Skins belong to meshes.")
    assert isinstance(pair.a, Mesh)
    assert isinstance(pair.b, Mesh)
    skin = transfer_skin(load_skin(b, pair.b), pair.b, pair.a, pair.points())
    make_folder(out)
    write_atomic(out, write_glb(pair.a, skin))
    return len(skin.names)


def _without_texture(shape: Shape) -> Shape:
    return replace(shape, texture=None) if isinstance(shape, Mesh) else shape


def _labels(pair: _Pair, values: NDArray[Any], path: Path) -> NDArray[Any]:
    """(n, ...) rows for the vertices of the file of A; only floats are interpolated between vertices of B."""
    if values.dtype.kind in "ub":
        if len(values) and values.max() > np.iinfo(np.int64).max:
            raise InputError(f"{path}: contains {values.max()}; integers must be below 2^63.")
        values = values.astype(np.int64)
    here = values if pair.b.source is None else values[pair.b.source.to_file]
    unmatched = pair.map.vertices < 0
    if pair.map.points is not None and values.dtype.kind == "f" and isinstance(pair.b, Mesh):
        transferred = pair.points().interpolate(here[pair.b.faces])
    else:
        transferred = pull_back(here, np.maximum(pair.map.vertices, 0))
    missing: Any = {"f": np.nan, "i": -1, "U": ""}[values.dtype.kind]
    transferred[unmatched] = missing
    if pair.a.source is None:
        return transferred
    from_file = pair.a.source.from_file
    rows = transferred[np.maximum(from_file, 0)]
    rows[from_file < 0] = missing
    return rows


def _landmarks(pair: _Pair, path: Path, out: Path) -> list[int]:
    """Write landmarks as vertices of the file of A, -1 where there is none."""
    from acnn.surface.surface import surface_of

    names, numbers = read_landmarks(path)
    count = len(pair.b.vertices) if pair.b.source is None else len(pair.b.source.from_file)
    outside = np.flatnonzero((numbers < 0) | (numbers >= count))
    if len(outside):
        raise InputError(
            f"{path}: line {outside[0] + 1} names vertex {numbers[outside[0]]}, but B has vertices 0 to {count - 1}."
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
    vertices: list[int] = found.tolist()
    text = "".join(f"{name} {k}\n" if name else f"{k}\n" for name, k in zip(names, vertices, strict=True))
    write_atomic(out, text.encode())
    return vertices


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
