"""Patch operators in files: one safetensors file each, memory-mapped when read, found again by content.

An entry's name is the hash of the shape's arrays, the settings, the unit and the version of the operators, so nothing
stale is ever read. Entries are written to a temporary name and renamed, so that several processes may share a cache;
one that was cut short or altered is noticed by its checksum, and computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.patches.build import DEFAULT, build_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings
from acnn.shapes import Mesh, Shape
from acnn.surface.rows import Progress

VERSION = 1
"""To be raised whenever the same settings give other operators than before."""

_ARRAYS = ("start", "vertices", "values", "eigenvalues", "eigenfunctions", "vertex_areas")
_TYPES = {
    "U16": np.uint16,
    "I32": np.int32,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
}


def cache_folder() -> Path:
    """Where cached operators live: `ACNN_CACHE`, else `acnn` in the user's cache folder."""
    if os.environ.get("ACNN_CACHE"):
        return Path(os.environ["ACNN_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "acnn"


def cached_patches(
    shape: Shape,
    settings: PatchSettings = DEFAULT,
    *,
    unit: float | None = None,
    folder: Path | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PatchOperator:
    """The patch operator of a shape, from the cache where it is there and sound, else computed and put there.

    Parameters as for `build_patches`, and
    - folder: the cache; None is `cache_folder()`
    """
    path = (folder or cache_folder()) / f"patches-{patch_key(shape, settings, unit)}.safetensors"
    if path.exists():
        try:
            return read_patches(path)
        except InputError:
            path.unlink(missing_ok=True)
    operator = build_patches(shape, settings, unit=unit, threads=threads, progress=progress)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_patches(operator, path)
    return read_patches(path)


def patch_key(shape: Shape, settings: PatchSettings, unit: float | None) -> str:
    """Hash of all that a patch operator depends on."""
    digest = hashlib.blake2b(digest_size=20)
    about = {"version": VERSION, "settings": settings.as_dict(), "unit": unit, "kind": type(shape).__name__}
    digest.update(json.dumps(about, sort_keys=True).encode())
    second = shape.faces if isinstance(shape, Mesh) else shape.normals
    for array in (shape.vertices, second):
        if array is not None:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_patches(operator: PatchOperator, path: Path) -> None:
    """Write an operator to a file, whole or not at all."""
    from safetensors.numpy import save_file

    arrays = {name: np.ascontiguousarray(getattr(operator, name)) for name in _ARRAYS}
    about = {
        "version": VERSION,
        "settings": operator.settings.as_dict(),
        "unit": operator.unit,
        "facts": operator.facts,
        "checksum": _checksum(arrays),
    }
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=".part", dir=path.parent)
    os.close(handle)
    try:
        save_file(arrays, temporary, metadata={"acnn": json.dumps(about)})
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_patches(path: Path, *, verify: bool = True) -> PatchOperator:
    """Open an operator's file; its arrays stay on disk and are read as they are used.

    Parameters
    - path: a file that `write_patches` wrote
    - verify: read everything once and compare checksums

    Raises InputError where the file is missing, cut short, altered or of another version.
    """
    try:
        arrays, metadata = _mapped(path)
        about = json.loads(metadata["acnn"])
        if about["version"] != VERSION or sorted(arrays) != sorted(_ARRAYS):
            raise ValueError("it was written by another version")
        if verify and about["checksum"] != _checksum(arrays):
            raise ValueError("its checksum does not match")
        settings = PatchSettings(**about["settings"])
        return PatchOperator(
            **{name: arrays[name] for name in _ARRAYS},
            unit=float(about["unit"]),
            settings=settings,
            facts=about["facts"],
        )
    except (OSError, ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: not a sound patch operator ({error}). Delete it; it will be computed again when needed."
        ) from error


def _mapped(path: Path) -> tuple[dict[str, NDArray[Any]], Mapping[str, str]]:
    """Arrays of a safetensors file as views of a memory map (the format: header length, JSON header, data)."""
    size = path.stat().st_size
    if size < 8:
        raise ValueError("it is cut short")
    data = np.memmap(path, dtype=np.uint8, mode="r")
    length = int(np.frombuffer(data[:8].tobytes(), dtype="<u8")[0])
    if not 2 <= length <= size - 8:
        raise ValueError("its header is damaged")
    header = json.loads(data[8 : 8 + length].tobytes())
    metadata = header.pop("__metadata__")
    arrays = {}
    for name, about in header.items():
        begin, end = (8 + length + int(offset) for offset in about["data_offsets"])
        if not 8 + length <= begin <= end <= size:
            raise ValueError("it is cut short")
        arrays[name] = data[begin:end].view(_TYPES[about["dtype"]]).reshape(about["shape"])
    return arrays, metadata


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> int:
    """CRC-32 over all arrays: meant for damage, not for malice."""
    total = 0
    for name in _ARRAYS:
        array = arrays[name]
        total = zlib.crc32(f"{name}{array.dtype.str}{array.shape}".encode(), total)
        flat = array.reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)
        for begin in range(0, len(flat), 1 << 24):
            total = zlib.crc32(flat[begin : begin + (1 << 24)].data, total)
    return total
