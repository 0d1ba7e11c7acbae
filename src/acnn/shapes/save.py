"""Writing shapes to files, completely or not at all; in colours; and values with one line per vertex of their file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.files import write_atomic
from acnn.shapes.formats.raw import encode_png
from acnn.shapes.load import NAMES, format_by_name
from acnn.shapes.mesh import Mesh, PointCloud, Shape
from acnn.types import IntArray

MESH_FORMATS = ("ply", "off", "obj", "stl", "gltf")
CLOUD_FORMATS = ("ply", "xyz", "npy")
SUPPORTED = {
    "ply": ("colours", "texture", "image", "normals"),
    "off": ("colours",),
    "obj": ("colours", "texture", "image"),
    "stl": (),
    "gltf": ("colours", "texture", "image", "skins"),
    "xyz": ("normals", "colours"),
    "npy": ("normals",),
}
"""What each format can store besides points and faces."""


@check_arguments
def save(shape: Mesh | PointCloud, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a shape in the format given by the file's suffix.

    PLY is binary with float32 coordinates, or float64 where that would move a vertex by more than 1e-6 of the diagonal;
    OFF, OBJ and XYZ have all digits; STL and GLB have float32. The texture
    image is embedded in GLB; beside PLY and OBJ it becomes NAME.png, and OBJ also gets NAME.mtl. No file beside the
    shape is ever overwritten: where another file has that name, it becomes NAME-1.png and so on.

    Parameters
    ----------
    shape : Mesh or PointCloud
        A Mesh (PLY, OFF, OBJ, STL, GLB) or a PointCloud (PLY, XYZ, NPY).
    path : str or path
        The file to write, in an existing folder.

    Returns
    -------
    tuple[str, ...]
        What the format cannot store and was therefore omitted, e.g. ('texture',).

    Raises
    ------
    InputError
        Where the format does not fit the shape or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> mesh = Mesh(np.eye(3), np.array([[0, 1, 2]]), colors=np.full((3, 4), 255, np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(mesh, Path(folder) / "triangle.stl")
    ('colours',)
    """
    path = Path(path)
    form = format_to_write(shape, path)
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist. Create it first.")
    if not len(shape.vertices):
        raise InputError(f"{path.name}: not written, since the shape has no vertices.")
    if not np.isfinite(shape.vertices).all():
        raise InputError(
            f"{path.name}: not written, since some coordinates are not finite. Load the shape with repair."
        )
    for file, data in _files(shape, path, form):
        write_atomic(file, data)
    return tuple(name for name in _attributes(shape) if name not in SUPPORTED[form])


def format_to_write(shape: Mesh | PointCloud, path: Path, needed: str | None = None) -> str:
    """The format given by a file's suffix.

    Parameters
    ----------
    shape : Mesh or PointCloud
        The shape to write.
    path : Path
        The file to write.
    needed : str or None
        What the format must be able to store: `colours`, `texture`, `normals` or `skins`; None is the bare shape.

    Returns
    -------
    str
        A key of `SUPPORTED`.

    Raises
    ------
    InputError
        Where the shape, or what is needed, cannot be written in that format.
    """
    form = format_by_name(path)
    formats = MESH_FORMATS if isinstance(shape, Mesh) else CLOUD_FORMATS
    if form is None or form not in formats or path.suffix.lower() == ".gltf":
        what = "mesh" if isinstance(shape, Mesh) else "point cloud"
        raise InputError(f"{path.name}: a {what} cannot be written as '{path.suffix}'. Use one of {_names(formats)}.")
    if needed is not None and needed not in SUPPORTED[form]:
        able = tuple(other for other in formats if needed in SUPPORTED[other])
        raise InputError(f"{path.name}: {NAMES[form]} cannot store {needed}. Use one of {_names(able)}.")
    return form


def _names(formats: tuple[str, ...]) -> str:
    return ", ".join("GLB" if form == "gltf" else NAMES[form] for form in formats)


def _files(shape: Mesh | PointCloud, path: Path, form: str) -> list[tuple[Path, bytes]]:
    """All files to write with their contents, the shape itself last, so that it never names a missing image."""
    texture = shape.texture if isinstance(shape, Mesh) else None
    image = None if texture is None else texture.image
    beside: list[tuple[Path, bytes]] = []
    if image is not None and form in ("ply", "obj"):
        beside.append(_side_file(path.with_suffix(".png"), encode_png(image)))
    if form == "ply":
        from acnn.shapes.formats.ply import write_ply

        return [*beside, (path, write_ply(shape, beside[0][0].name if beside else None))]
    if isinstance(shape, PointCloud):
        from acnn.shapes.formats.points import write_npy, write_xyz

        return [(path, write_npy(shape) if form == "npy" else write_xyz(shape))]
    if form == "obj":
        from acnn.shapes.formats.obj import write_mtl, write_obj

        if beside:
            beside.append(_side_file(path.with_suffix(".mtl"), write_mtl(beside[0][0].name)))
        return [*beside, (path, write_obj(shape, beside[1][0].name if beside else None))]
    if form == "off":
        from acnn.shapes.formats.off import write_off

        return [(path, write_off(shape))]
    if form == "stl":
        from acnn.shapes.formats.stl import write_stl

        return [(path, write_stl(shape))]
    from acnn.shapes.formats.gltf import write_glb

    return [(path, write_glb(shape))]


def _side_file(path: Path, data: bytes) -> tuple[Path, bytes]:
    """The first of NAME, NAME-1, NAME-2, ... that is free or already has this content, and the content."""
    candidate, number = path, 0
    while os.path.lexists(candidate) and not _has_content(candidate, data):
        number += 1
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return candidate, data


def _has_content(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _attributes(shape: Mesh | PointCloud) -> list[str]:
    """What the shape has besides its points and faces."""
    if isinstance(shape, PointCloud):
        attributes: dict[str, object] = {"normals": shape.normals, "colours": shape.colors}
    else:
        image = None if shape.texture is None else shape.texture.image
        attributes = {"colours": shape.colors, "texture": shape.texture, "image": image}
    return [name for name, value in attributes.items() if value is not None]


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
