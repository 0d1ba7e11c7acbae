"""A prepared shape: its patch operator and descriptors, computed once and cached on disk by content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.cache import cache_folder, check_there, entry_path, mark_added, mark_used
from acnn.correspondence.matchable import check_matchable
from acnn.datasets.dataset import Sample
from acnn.descriptors.settings import DescriptorSettings, describe_surface
from acnn.errors import InputError
from acnn.files import full_disk, map_arrays, read_arrays, write_arrays
from acnn.input_files import read_npy
from acnn.patches.anisotropic import DEFAULT, build_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings
from acnn.progress import Progress
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape, content_hash
from acnn.surface.surface import Surface, surface_of
from acnn.types import IntArray

DESCRIPTOR_VERSION = 3
"""To be raised whenever the same settings give other descriptors than before."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """What learning and matching need of one shape; the large arrays stay in files until asked for.

    Attributes
    ----------
    name : str
        Of the sample.
    n : int
        Vertices.
    labels, truth
        As in `Example`.
    unit : float
        Length of one run unit in the shape's coordinates.
    content : str
        Hash of the shape's points, see `acnn.shapes.mesh.content_hash`.
    patches_path, descriptors_path : Path
        Files in the cache.
    from_cache : bool
        Both were there already.
    """

    name: str
    n: int
    labels: IntArray
    unit: float
    content: str
    patches_path: Path
    descriptors_path: Path
    from_cache: bool
    truth: BarycentricPoints | None = None

    def patches(self) -> PatchOperator:
        """The patch operator, memory-mapped; checked when it was prepared, so not again."""
        check_there(self.patches_path)
        mark_used(self.patches_path)
        return read_patches(self.patches_path, verify=False)

    def descriptors(self) -> NDArray[np.float32]:
        """(n, p) float32, memory-mapped; checked when they were prepared, so not again."""
        check_there(self.descriptors_path)
        mark_used(self.descriptors_path)
        arrays, _ = map_arrays(self.descriptors_path, verify=False)
        return arrays["descriptors"]

    def __repr__(self) -> str:
        return f"Prepared({self.name!r}, {self.n} vertices)"


def prepare_sample(
    sample: Sample,
    descriptors: DescriptorSettings,
    patches: PatchSettings,
    folder: Path,
    *,
    unit: float | None = None,
    threads: int | None = None,
) -> Prepared:
    """Read a sample, and compute what of its operator and descriptors is not in the cache.

    Parameters
    ----------
    folder : Path
        The cache.
    unit : float or None
        Length of one run unit in the shape's coordinates; None is its own geodesic diameter / 200.

    Raises
    ------
    InputError
        Where the shape cannot be read or used.
    OSError
        Where the cache cannot be written.
    """
    example = sample.read()
    shape = example.shape
    check_matchable(shape, sample.name, spectral=not {"hks", "wks"}.isdisjoint(descriptors.kinds))
    length, surface = cached_unit(shape, unit, folder)
    operator_path = patches_path(shape, patches, length, folder)
    path = descriptors_path(shape, descriptors, length, folder)
    known = True
    if sound_patches(operator_path) is None:
        known = False
        surface = surface or surface_of(shape, length)
        write_patches(build_patches(surface, patches, threads=threads), operator_path)
        mark_added(operator_path)
    if not _sound_descriptors(path):
        known = False
        surface = surface or surface_of(shape, length)
        write_descriptors(path, describe_shape(shape, surface, descriptors, threads=threads))
        mark_added(path)
    return Prepared(
        name=sample.name,
        n=len(shape.vertices),
        labels=example.labels,
        unit=length,
        content=content_hash(shape),
        patches_path=operator_path,
        descriptors_path=path,
        from_cache=known,
        truth=example.truth,
    )


def cached_descriptors(
    shape: Shape, surface: Surface, settings: DescriptorSettings, folder: Path | None = None
) -> NDArray[np.float32]:
    """Descriptors of a shape, from the cache where they are there and sound, else computed and put there.

    Parameters
    ----------
    shape
        Mesh or cloud.
    surface
        The surface of the shape, in the unit in which the settings state lengths.
    settings
        Kinds of descriptors and their sizes.
    folder
        The cache; None is `acnn.cache.cache_folder()`.

    Returns
    -------
    (n, p) array
    """
    path = descriptors_path(shape, settings, surface.unit, folder)
    if not _sound_descriptors(path):
        write_descriptors(path, describe_shape(shape, surface, settings))
        mark_added(path)
    return read_descriptors(path)


def descriptors_path(shape: Shape, settings: DescriptorSettings, unit: float, folder: Path | None = None) -> Path:
    """The file of a shape's descriptors in a cache (None: `acnn.cache.cache_folder()`); the user's own array counts."""
    own = own_descriptors(shape) if "file" in settings.kinds else None
    key = content_key(shape, {"descriptors": DESCRIPTOR_VERSION, "settings": settings.as_dict(), "unit": unit}, own)
    return entry_path("descriptors", key, folder)


def describe_shape(
    shape: Shape, surface: Surface, settings: DescriptorSettings, threads: int | None = None
) -> NDArray[np.float32]:
    """Compute the descriptors of a shape; for kind `file`, read the user's own array beside its file.

    Parameters
    ----------
    shape : Shape
        Mesh or cloud.
    surface : Surface
        The surface of the shape, in the unit in which the settings state lengths.
    settings : DescriptorSettings
        Kinds of descriptors and their sizes.
    threads : int or None
        None is one per core.

    Returns
    -------
    (n, p) float32 array

    Raises
    ------
    InputError
        Where the user's own array is missing or does not fit, or a value is not finite.
    """
    own = own_descriptors(shape) if "file" in settings.kinds else None
    return describe_surface(surface, settings, own=own, threads=threads)


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


def write_descriptors(path: Path, values: NDArray[np.float32]) -> None:
    """Write (n, p) descriptors to a file, whole or not at all."""
    write_arrays(path, {"descriptors": np.asarray(values, np.float32)})


def read_descriptors(path: Path) -> NDArray[np.float32]:
    """(n, p) descriptors of a file; raises InputError where it is missing, cut short or altered."""
    arrays, _ = read_arrays(path)
    if "descriptors" not in arrays or arrays["descriptors"].ndim != 2:
        raise InputError(f"{path}: holds no descriptors.")
    return arrays["descriptors"]


def _sound_descriptors(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        read_descriptors(path)
    except InputError:
        return False
    mark_used(path)
    return True


PATCH_VERSION = 3
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

    Parameters
    ----------
    folder : Path or None
        The cache; None is `acnn.cache.cache_folder()`.
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
    versions = {"version": PATCH_VERSION} | ({} if isinstance(shape, Mesh) else {"clouds": CLOUD_VERSION})
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
        "version": PATCH_VERSION,
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
        settings, unit = PatchSettings(**about["settings"]), float(about["unit"])
        wide, facts = tuple(map(int, about["wide"])), dict(about["facts"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: its metadata are damaged ({error!r}). Delete it; it will be made again.") from error
    return PatchOperator(**arrays, unit=unit, settings=settings, facts=facts, wide=wide)


def make_patches(
    shape: Shape, settings: PatchSettings, *, unit: float | None, cache: bool, progress: Progress | None = None
) -> PatchOperator:
    """The patch operator of a shape, through the cache (`cached_patches`) or not (`build_patches`).

    Raises
    ------
    InputError
        Where the cache's folder cannot be used.
    """
    if not cache:
        return build_patches(shape, settings, unit=unit, progress=progress)
    with usable_cache():
        return cached_patches(shape, settings, unit=unit, progress=progress)


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
