"""Patch operators in files: one safetensors file each, memory-mapped when read, found again by content.

An entry's name is the hash of the shape's arrays, the settings, the unit of length and the version of the operators, so
nothing stale is ever read. The unit is that of the surface, given or measured, so that an operator is found again
whichever way its unit came about; measured units are kept as well. Entries are written to a temporary name and renamed,
so that several processes may share a cache; one that was cut short or altered is noticed by its checksum, and computed
again.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.array_files import map_arrays, read_arrays, write_arrays
from acnn.cache import entry_path, mark_added, mark_used
from acnn.errors import InputError
from acnn.patches.build import DEFAULT, build_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings
from acnn.shapes import Mesh, Shape
from acnn.surface.surface import Surface, surface_of
from acnn.types import Progress

VERSION = 3
"""To be raised whenever the same settings give other operators or units than before."""

CLOUD_VERSION = 3
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
    length, surface = cached_unit(shape, unit, folder)
    path = patches_path(shape, settings, length, folder)
    found = sound_patches(path)
    if found is not None:
        return found
    operator = build_patches(surface or shape, settings, unit=length, threads=threads, progress=progress)
    write_patches(operator, path)
    mark_added(path)
    return read_patches(path)


def cached_unit(shape: Shape, unit: float | None = None, folder: Path | None = None) -> tuple[float, Surface | None]:
    """Length of one run unit in a shape's coordinates: as given, or measured once and then kept in the cache.

    Parameters
    ----------
    shape
        Mesh or cloud.
    unit
        The unit where it is known; None takes the geodesic diameter / 200.
    folder
        The cache; None is `acnn.cache.cache_folder()`.

    Returns
    -------
    unit : float
    surface : Surface or None
        The surface of the shape in this unit where it had to be made to measure it.
    """
    if unit is not None:
        return unit, None
    path = entry_path("unit", content_key(shape, {}), folder)
    try:
        measured = float(read_arrays(path)[0]["unit"][0])
    except (InputError, LookupError):
        surface = surface_of(shape)
        write_arrays(path, {"unit": np.array([surface.unit])})
        mark_added(path)
        return surface.unit, surface
    mark_used(path)
    return measured, None


def patches_path(shape: Shape, settings: PatchSettings, unit: float, folder: Path | None = None) -> Path:
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


def patch_key(shape: Shape, settings: PatchSettings, unit: float) -> str:
    """Hash of all that a patch operator depends on; the unit is that of the surface (`cached_unit`)."""
    return content_key(shape, {"settings": settings.as_dict(), "unit": unit})


def content_key(shape: Shape, about: dict[str, Any], *more: NDArray[Any] | None) -> str:
    """Hash of a shape's arrays, the versions of what is computed from them, and more.

    Parameters
    ----------
    shape
        Mesh or cloud.
    about
        Plain values that an entry depends on besides.
    *more
        Arrays that an entry depends on besides.
    """
    versions = {"version": VERSION} | ({} if isinstance(shape, Mesh) else {"clouds": CLOUD_VERSION})
    digest = hashlib.blake2b(digest_size=20)
    digest.update(json.dumps({"kind": type(shape).__name__, **versions, **about}, sort_keys=True).encode())
    for array in (shape.vertices, shape.faces if isinstance(shape, Mesh) else shape.normals, *more):
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
    try:
        settings, unit = PatchSettings(**about["settings"]), float(about["unit"])
        wide, facts = tuple(map(int, about["wide"])), dict(about["facts"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: its metadata are damaged ({error!r}). Delete it; it will be made again.") from error
    return PatchOperator(**arrays, unit=unit, settings=settings, facts=facts, wide=wide)
