"""What format a file really has, whatever its name says."""

from __future__ import annotations

import re
from pathlib import Path

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
