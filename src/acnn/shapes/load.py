"""Reading shapes, skins and users' own descriptors from files, checked before use."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.input_files import read_bytes, read_npy
from acnn.shapes.formats.raw import FormatError, RawShape
from acnn.shapes.mesh import Finding, Mesh, PointCloud, Shape

if TYPE_CHECKING:
    from acnn.shapes.skin import Skin

SUFFIXES = {
    ".ply": "ply",
    ".off": "off",
    ".obj": "obj",
    ".stl": "stl",
    ".gltf": "gltf",
    ".glb": "gltf",
    ".xyz": "xyz",
    ".txt": "xyz",
    ".pts": "xyz",
    ".npy": "npy",
}
NAMES = {
    "ply": "PLY",
    "off": "OFF",
    "obj": "OBJ",
    "stl": "STL",
    "gltf": "glTF/GLB",
    "xyz": "XYZ text",
    "npy": "NPY",
}
UNSUPPORTED = {
    b"PK\x03\x04": "a ZIP archive; unpack it first",
    b"\x1f\x8b": "gzip-compressed; unpack it first",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"%PDF": "a PDF document",
    b"\x89HDF": "an HDF5 file",
    b"MATLAB 5.0": "a MATLAB file",
    b"BLENDER": "a Blender file; export it as PLY or OBJ",
    b"Kaydara FBX": "an FBX file; export it as glTF or OBJ",
    b"version https://git-lfs": "a Git LFS pointer; fetch the real file with 'git lfs pull'",
    b"# vtk": "a VTK file; export it as PLY",
}
"""First bytes of known files that cannot be read, and what to report about them."""

MARK = b"\xef\xbb\xbf"
"""Byte order mark that some editors write before text in UTF-8."""


@check_arguments
def load(
    path: str | os.PathLike[str], *, kind: Literal["mesh", "cloud"] | None = None, repair: bool = True
) -> Mesh | PointCloud:
    """Read a mesh or a point cloud, check it, and repair its defects.

    Parameters
    ----------
    path : str or path
        PLY, OFF, OBJ, STL, glTF or GLB; XYZ, TXT, PTS or NPY for clouds. The format is recognised by content, not by
        the name.
    kind : {'mesh', 'cloud'} or None
        The kind of shape to return; None returns a mesh where the file has faces.
    repair : bool
        False leaves vertices and faces as they are (polygons are still split into triangles) and lists in the findings
        what repair would do.

    Returns
    -------
    Mesh or PointCloud
        Its `source` maps vertices to the file's and back, and lists every finding.

    Raises
    ------
    InputError
        Where the file cannot be read, with what is wrong, where, and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from acnn import save
    >>> triangle = Mesh(np.vstack([np.eye(3), [[9, 9, 9]]]), np.array([[0, 1, 2]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     omitted = save(triangle, Path(folder) / "triangle.ply")
    ...     mesh = load(Path(folder) / "triangle.ply")
    >>> mesh
    Mesh(3 vertices, 1 faces)
    >>> [finding.kind for finding in mesh.source.findings if finding.repaired]
    ['unreferenced-vertices']
    """
    path = Path(path)
    if kind not in (None, "mesh", "cloud"):
        raise InputError(f"kind is '{kind}'; use 'mesh', 'cloud' or None.")
    data = read_bytes(path)
    if not _is_binary_stl(data):
        data = data.removeprefix(MARK)
    with _errors_of(path):
        from acnn.shapes.check import build_shape

        raw = _read(data, path)
        del data
        return build_shape(raw, str(path), kind, repair)


@check_arguments
def load_skin(path: str | os.PathLike[str], mesh: Mesh) -> Skin:
    """Read the skin of a glTF or GLB file.

    Parameters
    ----------
    path : str or path
    mesh : Mesh
        The mesh of the same file, as `load` returns it.

    Returns
    -------
    Skin
        With weights for the vertices of the mesh.

    Raises
    ------
    InputError
        Where the file has another format, no skin, several of them, or a damaged one.
    """
    path = Path(path)
    data = read_bytes(path)
    if format_by_content(data) != "gltf":
        raise InputError(f"{path.name}: only glTF and GLB files have skins. Export it as GLB, with its skeleton.")
    with _errors_of(path):
        from acnn.shapes.formats.gltf import read_gltf_skin

        skin = read_gltf_skin(data, path)
    return skin if mesh.source is None else replace(skin, weights=skin.weights[mesh.source.to_file])


def own_descriptors(shape: Shape | None) -> NDArray[np.float32]:
    """Read the user's own descriptors NAME.npy beside a shape's file, one row for each vertex in the file.

    Parameters
    ----------
    shape : Shape or None
        As `load` returns it.

    Returns
    -------
    (n, p) float32 array
        Rows of the vertices as loaded.

    Raises
    ------
    InputError
        Where the shape came from no file, or NAME.npy is missing or does not fit.
    """
    if shape is None or shape.source is None or not shape.source.path:
        raise InputError("Descriptors of kind 'file' need shapes that were read from files; this one was not.")
    path = Path(shape.source.path).with_suffix(".npy")
    expected = len(shape.source.from_file)
    if not path.is_file():
        raise InputError(
            f"{path}: there is no such file. Kind 'file' takes descriptors of {Path(shape.source.path).name} from it: "
            f"an array with {expected} rows, one for each vertex."
        )
    array = read_npy(path)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(f"{path}: holds {array.dtype} of shape {array.shape}; ({expected}, p) numbers are needed.")
    if len(array) != expected:
        raise InputError(f"{path}: has {len(array)} rows, but {Path(shape.source.path).name} has {expected} vertices.")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite
        values = array[shape.source.to_file].astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        row = int(shape.source.to_file[bad[0]])
        raise InputError(f"{path}: row {row} (and {len(bad) - 1} more) holds NaN or numbers beyond float32.")
    return values


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Errors of readers as InputErrors that name the file."""
    try:
        # Numbers that overflow in a damaged file become infinite, which is checked later.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except FormatError as error:
        raise InputError(f"{path.name}: {str(error).rstrip('.')}.{_advice(str(error))}") from error
    except MemoryError as error:
        raise InputError(f"{path.name}: it does not fit into memory. Simplify it first.") from error


def format_by_name(path: Path) -> str | None:
    """The format that a file's name stands for, or None."""
    return SUFFIXES.get(path.suffix.lower())


def format_by_content(data: bytes) -> str | None:
    """The format that a file's first bytes identify, or None."""
    head = data[:512]
    stripped = head.lstrip(MARK + b" \t\r\n")
    if re.match(rb"ply\s", head):
        return "ply"
    if head.startswith(b"glTF"):
        return "gltf"
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if _is_binary_stl(data):
        return "stl"
    if re.match(rb"(ST)?C?N?4?n?OFF\b", stripped):
        return "off"
    if re.match(rb"(?i)solid\b", stripped) and re.search(rb"(?i)\bfacet\s+normal\b", data[:4096]):
        return "stl"
    if stripped.startswith(b"{") and b'"asset"' in data:
        return "gltf"
    if b"\0" not in head:
        text = re.sub(rb"#[^\r\n]*", b"", data[:8192])
        if re.search(rb"(?m)^[ \t]*v[ \t]+[-+.\d]\S*[ \t]+[-+.\d]\S*[ \t]+[-+.\d]", text):
            return "obj"
        number = rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
        if re.match(rb"\s*(\d+\s*\n\s*)?(" + number + rb"[ \t,;]+){2}" + number + rb"([ \t,;]|\r?\n|$)", text):
            return "xyz"
    return None


def _is_binary_stl(data: bytes) -> bool:
    """Whether a file is as long as its number of faces says; its first 80 bytes may be anything."""
    return len(data) >= 84 and len(data) == 84 + 50 * int.from_bytes(data[80:84], "little")


def _read(data: bytes, path: Path) -> RawShape:
    named, content = format_by_name(path), format_by_content(data)
    form = content or named
    unsupported = next((what for magic, what in UNSUPPORTED.items() if data.startswith(magic)), None)
    if content is None and unsupported:
        formats = f"Give a file in one of the formats {', '.join(NAMES.values())}"
        advice = "" if ";" in unsupported else f", not a mesh or a point cloud. {formats}"
        raise FormatError(f"it is {unsupported}{advice}")
    if form is None:
        raise FormatError(f"neither its name nor its content is of a known format ({' '.join(SUFFIXES)})")
    if content is None and form in ("ply", "npy"):
        raise FormatError(f"it is not a valid {NAMES[form]} file, although its name ends in '{path.suffix}'")
    # Bare numbers may also be a file of the named format that lost its header.
    if content == "xyz" and named not in ("xyz", None):
        raise FormatError(
            f"it does not begin like {NAMES[str(named)]}, but with bare numbers. "
            "If it is a point cloud, rename it to .xyz"
        )
    try:
        raw = _reader(form)(data, path)
    except FormatError as error:
        raise FormatError(f"as {NAMES[form]}: {error}") from error
    if content is not None and content != named:
        name = f"its name ends in '{path.suffix}'" if path.suffix else "its name has no ending"
        text = f"{name}, but it is {NAMES[content]}: read as that"
        raw.findings.insert(0, Finding("wrong-extension", 1, text, True))
    return raw


def _reader(form: str) -> Callable[[bytes, Path], RawShape]:
    """The function that reads a format; its module is imported when used."""
    module = import_module(f"acnn.shapes.formats.{'points' if form in ('xyz', 'npy') else form}")
    reader: Callable[[bytes, Path], RawShape] = getattr(module, f"read_{form}")
    return reader


def _advice(message: str) -> str:
    """A closing sentence, unless the message already contains advice."""
    advice = ("xport", "emove", "implify", "ename", "Load", "Give a file", "unpack", "fetch", "put it")
    return "" if any(word in message for word in advice) else " Export or copy it again."
