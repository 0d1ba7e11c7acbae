"""Reading a shape from a file: its format is recognised by content, and everything is checked before use."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.input_files import read_bytes
from acnn.shapes.formats.raw import FormatError, RawShape
from acnn.shapes.mesh import Finding, Mesh, PointCloud


@check_arguments
def load(
    path: str | os.PathLike[str], *, kind: Literal["mesh", "cloud"] | None = None, repair: bool = True
) -> Mesh | PointCloud:
    """Read a mesh or a point cloud, check it, and mend what can be mended.

    Parameters
    ----------
    path : path
        PLY, OFF, OBJ, STL, glTF or GLB; XYZ, TXT, PTS or NPY for clouds. What the file holds counts, not its name.
    kind : {'mesh', 'cloud'} or None
        'mesh' or 'cloud' to insist; None takes a mesh where the file has faces.
    repair : bool
        False leaves vertices and faces as they are (polygons are still split into triangles) and lists in the findings
        what repair would do.

    Returns
    -------
    Mesh or PointCloud
        The shape; its `source` relates its vertices to the file's and lists every finding.

    Raises
    ------
    InputError
        With what is wrong, where, and what to do.
    """
    path = Path(path)
    if kind not in (None, "mesh", "cloud"):
        raise InputError(f"kind is '{kind}'; use 'mesh', 'cloud' or nothing.")
    data = read_bytes(path)
    try:
        # What overflows in a damaged file ends up infinite and is rejected below.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from acnn.shapes.check import build_shape

            raw = _read(data, path)
            del data
            return build_shape(raw, str(path), kind, repair)
    except FormatError as error:
        raise InputError(f"{path.name}: {str(error).rstrip('.')}.{_advice(str(error))}") from error
    except MemoryError as error:
        raise InputError(f"{path.name}: it does not fit into memory. Simplify it first.") from error


def _read(data: bytes, path: Path) -> RawShape:
    promised, found = format_by_name(path), format_by_content(data)
    form = found or promised
    if form is None:
        what = foreign(data)
        known = " ".join(SUFFIXES)
        raise FormatError(
            f"it is {what}" if what else f"neither its name nor its content is of a known format ({known})"
        )
    if found is None and foreign(data):
        raise FormatError(f"it is {foreign(data)}")
    if found is None and promised in ("ply", "npy"):
        raise FormatError(f"it is no {NAMES[promised]} file, whatever its name says: it does not begin like one")
    # What reads as bare numbers may still be a file of the promised format whose header was lost: say so.
    if found == "xyz" and promised not in ("xyz", None):
        raise FormatError(
            f"it does not begin like {NAMES[str(promised)]}, and reads like bare numbers. "
            "If it is a point cloud, rename it to .xyz"
        )
    try:
        raw = _reader(form)(data, path)
    except FormatError as error:
        raise FormatError(f"as {NAMES[form]}: {error}") from error
    if found is not None and found != promised:
        named = f"its name ends in '{path.suffix}'" if path.suffix else "its name has no ending"
        raw.findings.insert(0, Finding("wrong-extension", 1, f"{named}, but it is {NAMES[found]}: read as that", True))
    return raw


def _reader(form: str) -> Callable[[bytes, Path], RawShape]:
    """The function that reads a format; each lives in its own module, imported when used."""
    if form == "ply":
        from acnn.shapes.formats.ply import read_ply as reader
    elif form == "off":
        from acnn.shapes.formats.off import read_off as reader
    elif form == "obj":
        from acnn.shapes.formats.obj import read_obj as reader
    elif form == "stl":
        from acnn.shapes.formats.stl import read_stl as reader
    elif form == "gltf":
        from acnn.shapes.formats.gltf import read_gltf as reader
    elif form == "npy":
        from acnn.shapes.formats.points import read_npy as reader
    else:
        from acnn.shapes.formats.points import read_xyz as reader
    return reader


def _advice(message: str) -> str:
    """A closing sentence, unless the message already says what to do."""
    told = ("xport", "emove", "implify", "ename", "Load", "unpack", "fetch", "put it")
    return "" if any(word in message for word in told) else " Export or copy it again."


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
OTHER = {
    b"PK\x03\x04": "a ZIP archive; unpack it first",
    b"\x1f\x8b": "gzip-compressed; unpack it first",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"%PDF": "a PDF document",
    b"\x89HDF": "an HDF5 file",
    b"MATLAB 5.0": "a MATLAB file",
    b"BLENDER": "a Blender file; export it as PLY or OBJ",
    b"Kaydara FBX": "an FBX file; export it as glTF or OBJ",
    b"version https://git-lfs": "a Git LFS pointer; fetch the real file with 'git lfs pull'",
    b"# vtk": "a VTK file; export it as PLY",
}


def format_by_name(path: Path) -> str | None:
    """The format a file's name promises, or None."""
    return SUFFIXES.get(path.suffix.lower())


def format_by_content(data: bytes) -> str | None:
    """The format a file's first bytes show beyond doubt, or None."""
    head = data[:512]
    stripped = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if re.match(rb"ply\s", head):
        return "ply"
    if head.startswith(b"glTF"):
        return "gltf"
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if len(data) >= 84 and len(data) == 84 + 50 * int.from_bytes(data[80:84], "little"):
        return "stl"
    if re.match(rb"(ST)?C?N?4?n?OFF\b", stripped):
        return "off"
    if re.match(rb"(?i)solid\b", stripped) and re.search(rb"(?i)\bfacet\s+normal\b", data[:4096]):
        return "stl"
    if stripped.startswith(b"{") and b'"asset"' in data:
        return "gltf"
    if b"\0" not in head:
        text = re.sub(rb"#[^\n]*", b"", data[:8192])
        if re.search(rb"(?m)^[ \t]*v[ \t]+[-+.\d]\S*[ \t]+[-+.\d]\S*[ \t]+[-+.\d]", text):
            return "obj"
        number = rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
        if re.match(rb"\s*(\d+\s*\n\s*)?(" + number + rb"[ \t,;]+){2}" + number + rb"([ \t,;]|\r?\n|$)", text):
            return "xyz"
    return None


def foreign(data: bytes) -> str | None:
    """What a file is that is known and cannot be read, for the error message."""
    return next((name for magic, name in OTHER.items() if data.startswith(magic)), None)
