"""Writing a shape to a file, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.files import write_whole
from acnn.shapes.formats.raw import encode_png
from acnn.shapes.load import NAMES, format_by_name
from acnn.shapes.mesh import Mesh, PointCloud

MESH_FORMATS = ("ply", "off", "obj", "stl", "gltf")
CLOUD_FORMATS = ("ply", "xyz", "npy")
HOLDS = {
    "ply": ("colours", "texture", "picture", "normals"),
    "off": ("colours",),
    "obj": ("colours", "texture", "picture"),
    "stl": (),
    "gltf": ("colours", "texture", "picture"),
    "xyz": ("normals", "colours"),
    "npy": ("normals",),
}


@check_arguments
def save(shape: Mesh | PointCloud, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write a shape in the format its name asks for.

    PLY is written binary with float64 coordinates; OFF, OBJ and XYZ with all digits; STL and GLB hold float32. A
    picture goes into GLB itself; beside PLY and OBJ it becomes NAME.png, and OBJ also gets NAME.mtl. No file beside the
    shape is ever overwritten: where another file has that name, it becomes NAME-1.png and so on.

    Parameters
    ----------
    shape : Mesh or PointCloud
        A Mesh (PLY, OFF, OBJ, STL, GLB) or a PointCloud (PLY, XYZ, NPY).
    path : path
        The file to write.

    Returns
    -------
    tuple[str, ...]
        What the format cannot hold and was therefore left out, e.g. ('texture',).

    Raises
    ------
    InputError
        Where the format does not fit the shape or the file cannot be written.
    """
    path = Path(path)
    form = format_to_write(shape, path)
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {path.parent} does not exist. Make it first.")
    if not np.isfinite(shape.vertices).all():
        raise InputError(f"{path.name}: not written, for some coordinates are not finite. Load the shape with repair.")
    for beside, data in _files(shape, path, form):
        write_whole(beside, data)
    return tuple(thing for thing in _has(shape) if thing not in HOLDS[form])


def format_to_write(shape: Mesh | PointCloud, path: Path, needed: str | None = None) -> str:
    """The format that a file's name asks for.

    Parameters
    ----------
    needed : str or None
        What the format must be able to hold: `colours`, `texture` or `normals`; None is the bare shape.

    Raises
    ------
    InputError
        Where the shape, or what is needed, cannot be written in that format.
    """
    form = format_by_name(path)
    formats = MESH_FORMATS if isinstance(shape, Mesh) else CLOUD_FORMATS
    if form is None or form not in formats or path.suffix.lower() == ".gltf":
        what = "mesh" if isinstance(shape, Mesh) else "point cloud"
        raise InputError(f"{path.name}: a {what} cannot be written as '{path.suffix}'. Use one of {_listed(formats)}.")
    if needed is not None and needed not in HOLDS[form]:
        able = tuple(f for f in formats if needed in HOLDS[f])
        raise InputError(f"{path.name}: {NAMES[form]} cannot hold {needed}. Use one of {_listed(able)}.")
    return form


def _listed(formats: tuple[str, ...]) -> str:
    return ", ".join("GLB" if form == "gltf" else NAMES[form] for form in formats)


def _files(shape: Mesh | PointCloud, path: Path, form: str) -> list[tuple[Path, bytes]]:
    """Every file to write, the shape itself last, so that it never names a picture that is not there."""
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
    """The first of NAME, NAME-1, NAME-2, ... that is free or a file with just that content, and the content."""
    candidate, number = path, 0
    while os.path.lexists(candidate) and not _holds(candidate, data):
        number += 1
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return candidate, data


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _has(shape: Mesh | PointCloud) -> list[str]:
    """What the shape carries besides its points and faces."""
    if isinstance(shape, PointCloud):
        carried: dict[str, object] = {"normals": shape.normals, "colours": shape.colors}
    else:
        picture = None if shape.texture is None else shape.texture.image
        carried = {"colours": shape.colors, "texture": shape.texture, "picture": picture}
    return [name for name, value in carried.items() if value is not None]
