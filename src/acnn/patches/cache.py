"""Patch operators in files: one safetensors file each, memory-mapped when read, found again by content.

An entry's name is the hash of the shape's arrays, the settings, the unit and the version of the operators, so nothing
stale is ever read. Entries are written to a temporary name and renamed, so that several processes may share a cache;
one that was cut short or altered is noticed by its checksum, and computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from acnn.arguments import check_arguments
from acnn.array_files import map_arrays, write_arrays
from acnn.cache import entry_path, mark_added, mark_used
from acnn.errors import InputError
from acnn.patches.build import DEFAULT, build_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings
from acnn.shapes import Mesh, Shape
from acnn.types import Progress

VERSION = 3
"""To be raised whenever the same settings give other operators than before."""

CLOUD_VERSION = 2
"""The same for what changes with point clouds only, descriptors included."""

_ARRAYS = ("start", "vertices", "values", "eigenvalues", "eigenfunctions", "vertex_areas")


@check_arguments
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
    - folder: the cache; None is `acnn.cache.cache_folder()`
    """
    path = patches_path(shape, settings, unit, folder)
    found = sound_patches(path)
    if found is not None:
        return found
    operator = build_patches(shape, settings, unit=unit, threads=threads, progress=progress)
    write_patches(operator, path)
    mark_added(path)
    return read_patches(path)


def patches_path(shape: Shape, settings: PatchSettings, unit: float | None, folder: Path | None = None) -> Path:
    """The file of a shape's operator in a cache; None is `acnn.cache.cache_folder()`."""
    return entry_path("patches", patch_key(shape, settings, unit), folder)


def sound_patches(path: Path) -> PatchOperator | None:
    """The operator of an entry; None where there is none or it is damaged, so that one made instead takes its place."""
    try:
        operator = read_patches(path)
    except InputError:
        return None
    mark_used(path)
    return operator


def patch_key(shape: Shape, settings: PatchSettings, unit: float | None) -> str:
    """Hash of all that a patch operator depends on."""
    digest = hashlib.blake2b(digest_size=20)
    about = {"version": VERSION, "settings": settings.as_dict(), "unit": unit, "kind": type(shape).__name__}
    about |= {} if isinstance(shape, Mesh) else {"clouds": CLOUD_VERSION}
    digest.update(json.dumps(about, sort_keys=True).encode())
    second = shape.faces if isinstance(shape, Mesh) else shape.normals
    for array in (shape.vertices, second):
        if array is not None:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write_patches(operator: PatchOperator, path: Path) -> None:
    """Write an operator to a file, whole or not at all."""
    about = {
        "version": VERSION,
        "settings": operator.settings.as_dict(),
        "unit": operator.unit,
        "wide": operator.wide,
        "facts": operator.facts,
    }
    write_arrays(path, {name: getattr(operator, name) for name in _ARRAYS}, about)


@check_arguments
def read_patches(path: str | os.PathLike[str], *, verify: bool = True) -> PatchOperator:
    """Open an operator's file; its arrays stay on disk and are read as they are used.

    Parameters
    - path: a file that `write_patches` wrote
    - verify: read everything once and compare checksums

    Raises InputError where the file is missing, cut short, altered or of another version.
    """
    path = Path(path)
    arrays, about = map_arrays(path, verify=verify)
    if about.get("version") != VERSION or sorted(arrays) != sorted(_ARRAYS):
        raise InputError(f"{path}: not a patch operator of this version. Delete it; it will be made again when needed.")
    settings = PatchSettings(**about["settings"])
    wide = tuple(about["wide"])
    return PatchOperator(**arrays, unit=float(about["unit"]), settings=settings, facts=about["facts"], wide=wide)
