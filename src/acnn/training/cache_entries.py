"""Cache entries of a shape: its unit of length, patch operator, spectra and descriptors, with keys by content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.cache import cache_folder, entry_path, mark_added, mark_used
from acnn.descriptors.settings import DescriptorSettings
from acnn.errors import InputError
from acnn.files import full_disk, map_arrays, read_arrays, write_arrays
from acnn.patches.operator import PatchOperator, PatchReport
from acnn.patches.settings import GeodesicPatchSettings, PatchSettings, patch_settings_from_dict
from acnn.shapes.load import own_descriptors
from acnn.shapes.mesh import Mesh, Shape
from acnn.surface.spectra import Spectra, SpectraSettings
from acnn.surface.surface import Surface, surface_of
from acnn.types import FloatArray

PATCH_VERSION = 5
"""To be raised whenever the same settings give other operators, spectra or units than before."""

CLOUD_VERSION = 4
"""The same for what changes with point clouds only, descriptors included."""

DESCRIPTOR_VERSION = 3
"""To be raised whenever the same settings give other descriptors than before."""

_ARRAYS = ("start", "vertices", "values", "eigenvalues", "eigenfunctions", "vertex_areas")


@contextmanager
def usable_cache() -> Iterator[None]:
    """Raise InputError with the name of the cache's folder where it cannot be used."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        if full_disk(error):
            raise
        raise InputError(
            f"{folder}: this cache folder cannot be used ({error.strerror}). Name another in the environment variable "
            "ACNN_CACHE, or use --no-cache."
        ) from error


def cached_unit(shape: Shape, unit: float | None = None, folder: Path | None = None) -> tuple[float, Surface | None]:
    """Length of one normalised unit in a shape's coordinates: as given, or measured once and then kept in the cache.

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


def patches_path(
    shape: Shape, settings: PatchSettings | GeodesicPatchSettings, unit: float, folder: Path | None = None
) -> Path:
    """The file of a shape's operator in a cache; None is `acnn.cache.cache_folder()`."""
    return entry_path("patches", patch_key(shape, settings, unit), folder)


def write_patches(operator: PatchOperator, path: Path) -> None:
    """Write an operator to a file, whole or not at all."""
    about = {
        "version": PATCH_VERSION,
        "settings": operator.settings.as_dict(),
        "unit": operator.unit,
        "wide": operator.wide,
        "facts": operator.report.as_dict(),
    }
    write_arrays(path, {name: getattr(operator, name) for name in _ARRAYS}, about)


@check_arguments
def read_patches(path: str | os.PathLike[str], *, verify: bool = True) -> PatchOperator:
    """Open an operator's file; its arrays stay on disk and are read as they are used.

    Parameters
    ----------
    path : path
        A file that `write_patches` wrote.
    verify : bool
        Read everything once and compare checksums.

    Raises
    ------
    InputError
        Where the file is missing, cut short, altered or of another version.
    """
    path = Path(path)
    arrays, about = map_arrays(path, verify=verify)
    if about.get("version") != PATCH_VERSION or sorted(arrays) != sorted(_ARRAYS):
        raise InputError(f"{path}: not a patch operator of this version. Delete it; it will be made again when needed.")
    try:
        settings, unit = patch_settings_from_dict(about["settings"]), float(about["unit"])
        wide, report = tuple(map(int, about["wide"])), PatchReport(**about["facts"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: its metadata are damaged ({error!r}). Delete it; it will be made again.") from error
    return PatchOperator(**arrays, unit=unit, settings=settings, report=report, wide=wide)


def valid_patches(path: Path) -> PatchOperator | None:
    """The operator of an entry; None where there is none or it is damaged, so that one made instead takes its place."""
    try:
        operator = read_patches(path)
    except InputError:
        return None
    mark_used(path)
    return operator


def spectra_path(shape: Shape, settings: SpectraSettings, unit: float, folder: Path | None = None) -> Path:
    """The file of a shape's eigenpairs in a cache; None is `acnn.cache.cache_folder()`."""
    key = content_key(shape, {"spectra": settings.as_dict(), "unit": unit})
    return entry_path("spectra", key, folder)


def write_spectra(spectra: Spectra, path: Path) -> None:
    """Write eigenpairs to a file, whole or not at all."""
    arrays = {name: getattr(spectra, name) for name in ("eigenvalues", "eigenfunctions", "areas")}
    write_arrays(path, arrays, {"settings": spectra.settings.as_dict()})


def read_spectra(path: Path, *, verify: bool = True) -> Spectra:
    """Eigenpairs of a file, memory-mapped.

    Raises
    ------
    InputError
        Where it is missing, cut short or altered.
    """
    arrays, about = map_arrays(path, verify=verify)
    try:
        settings = SpectraSettings(**about["settings"])
        return Spectra(arrays["eigenvalues"], arrays["eigenfunctions"], arrays["areas"], settings)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: holds no eigenpairs ({error!r}).") from error


def descriptors_path(shape: Shape, settings: DescriptorSettings, unit: float, folder: Path | None = None) -> Path:
    """The file of a shape's descriptors in a cache (None: `acnn.cache.cache_folder()`); the user's own array counts."""
    own = own_descriptors(shape) if "file" in settings.kinds else None
    key = content_key(shape, {"descriptors": DESCRIPTOR_VERSION, "settings": settings.as_dict(), "unit": unit}, own)
    return entry_path("descriptors", key, folder)


def write_descriptors(path: Path, values: FloatArray) -> None:
    """Write (n, p) descriptors to a file, whole or not at all."""
    write_arrays(path, {"descriptors": np.asarray(values, np.float32)})


def read_descriptors(path: Path) -> NDArray[np.float32]:
    """(n, p) descriptors of a file.

    Raises
    ------
    InputError
        Where it is missing, cut short or altered.
    """
    arrays, _ = read_arrays(path)
    if "descriptors" not in arrays or arrays["descriptors"].ndim != 2:
        raise InputError(f"{path}: holds no descriptors.")
    return arrays["descriptors"]


def is_valid_entry(path: Path, read: Callable[[Path], object]) -> bool:
    """Whether an entry is there and can be read, which counts as a use of it."""
    if not path.is_file():
        return False
    try:
        read(path)
    except InputError:
        return False
    mark_used(path)
    return True


def patch_key(shape: Shape, settings: PatchSettings | GeodesicPatchSettings, unit: float) -> str:
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
    versions = {"version": PATCH_VERSION} | ({} if isinstance(shape, Mesh) else {"clouds": CLOUD_VERSION})
    digest = hashlib.blake2b(digest_size=20)
    digest.update(json.dumps({"kind": type(shape).__name__, **versions, **about}, sort_keys=True).encode())
    for array in (shape.vertices, shape.faces if isinstance(shape, Mesh) else shape.normals, *more):
        if array is not None:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
