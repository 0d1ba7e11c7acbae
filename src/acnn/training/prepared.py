"""A prepared shape: its patch operator, spectra and descriptors, computed once and cached on disk by content.

What is computed is what a method needs (`Needs`). A prepared shape offers `patches()`, `spectra()` and `descriptors()`,
from files in the cache (`Prepared`) or computed when first asked for (`ComputedShape`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.cache import Kind, cache_folder, check_exists, entry_path, mark_added, mark_used
from acnn.correspondence.match_checks import check_matchable
from acnn.datasets.dataset import Sample
from acnn.descriptors.settings import DescriptorSettings, describe_surface
from acnn.errors import InputError
from acnn.files import full_disk, map_arrays, read_arrays, write_arrays
from acnn.input_files import read_npy
from acnn.patches.anisotropic import DEFAULT, build_patches
from acnn.patches.geodesic import build_geodesic_patches
from acnn.patches.operator import PatchOperator, PatchReport
from acnn.patches.settings import GeodesicPatchSettings, PatchSettings, patch_settings_from_dict
from acnn.progress import Progress
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape, content_hash
from acnn.surface.spectra import Spectra, SpectraSettings, compute_spectra
from acnn.surface.surface import Surface, surface_of
from acnn.types import FloatArray, IntArray

PATCH_VERSION = 5
"""To be raised whenever the same settings give other operators, spectra or units than before."""

CLOUD_VERSION = 4
"""The same for what changes with point clouds only, descriptors included."""

DESCRIPTOR_VERSION = 3
"""To be raised whenever the same settings give other descriptors than before."""

_ARRAYS = ("start", "vertices", "values", "eigenvalues", "eigenfunctions", "vertex_areas")

_log = logging.getLogger("acnn.training")


@dataclass(frozen=True)
class Needs:
    """What a method needs of a shape; None is not computed.

    Attributes
    ----------
    descriptors : DescriptorSettings or None
        Input of the method.
    patches : PatchSettings, GeodesicPatchSettings or None
        Patch operator, of the kind that the settings are of.
    spectra : SpectraSettings or None
        Eigenpairs.
    """

    descriptors: DescriptorSettings | None = field(default_factory=DescriptorSettings)
    patches: PatchSettings | GeodesicPatchSettings | None = field(default_factory=PatchSettings)
    spectra: SpectraSettings | None = None

    @property
    def spectral(self) -> bool:
        """Whether eigenpairs of the shape are needed, which shapes of many components do not have."""
        kinds = () if self.descriptors is None else self.descriptors.kinds
        return self.spectra is not None or not {"hks", "wks", "geometry"}.isdisjoint(kinds)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What training and matching need of one shape; the large arrays stay in files until asked for.

    Attributes
    ----------
    name : str
        Of the sample.
    n : int
        Number of vertices.
    labels, truth
        As in `Example`.
    unit : float
        Unit of length of the run in the shape's coordinates.
    content : str
        Hash of the shape's points, see `acnn.shapes.mesh.content_hash`.
    files : dict
        Files in the cache by their kind.
    from_cache : bool
        All of them were there already.
    weights : (n,) array or None
        Of the labels in the loss; None where all are 1.
    """

    name: str
    n: int
    labels: IntArray
    unit: float
    content: str
    files: dict[Kind, Path]
    from_cache: bool
    truth: BarycentricPoints | None = None
    weights: FloatArray | None = None

    def patches(self) -> PatchOperator:
        """The patch operator, memory-mapped; checked when it was prepared, so not again."""
        return read_patches(self._file("patches"), verify=False)

    def spectra(self) -> Spectra:
        """Eigenpairs, memory-mapped; checked when they were prepared, so not again."""
        return read_spectra(self._file("spectra"), verify=False)

    def descriptors(self) -> NDArray[np.float32]:
        """(n, p) float32, memory-mapped; checked when they were prepared, so not again."""
        return map_arrays(self._file("descriptors"), verify=False)[0]["descriptors"]

    def _file(self, kind: Kind) -> Path:
        if kind not in self.files:
            raise InputError(f"{self.name} was prepared without {kind}, which this method needs.")
        check_exists(self.files[kind])
        mark_used(self.files[kind])
        return self.files[kind]

    def __repr__(self) -> str:
        return f"Prepared({self.name!r}, {self.n} vertices)"


class ComputedShape:
    """What a method needs of one shape, computed when first asked for and kept in memory.

    Parameters
    ----------
    shape : Mesh or PointCloud
        The shape.
    needs : Needs
        Settings of what is computed.
    unit : float or None
        Unit of length of the run in the shape's coordinates; None takes its own geodesic diameter / 200.
    progress : Progress or None
        Called with (done, total) while operators are computed.
    """

    def __init__(
        self, shape: Shape, needs: Needs, *, unit: float | None = None, progress: Progress | None = None
    ) -> None:
        self.shape, self.needs, self.progress = shape, needs, progress
        self.surface = surface_of(shape, unit)
        self.unit = self.surface.unit

    def patches(self) -> PatchOperator:
        """The patch operator."""
        return self._patches

    def spectra(self) -> Spectra:
        """Eigenpairs."""
        return self._spectra

    def descriptors(self) -> NDArray[np.float32]:
        """(n, p) descriptors."""
        return self._descriptors

    @cached_property
    def _patches(self) -> PatchOperator:
        return make_operator(self.surface, _needed(self.needs.patches, "patches"), progress=self.progress)

    @cached_property
    def _spectra(self) -> Spectra:
        return compute_spectra(self.surface, _needed(self.needs.spectra, "spectra"), progress=self.progress)

    @cached_property
    def _descriptors(self) -> NDArray[np.float32]:
        return compute_descriptors(self.shape, self.surface, _needed(self.needs.descriptors, "descriptors"))


def prepare_sample(
    sample: Sample, needs: Needs, folder: Path, *, unit: float | None = None, threads: int | None = None
) -> Prepared:
    """Read a sample, and compute what of its operators and descriptors is not in the cache.

    Parameters
    ----------
    sample : Sample
        Of a dataset.
    needs : Needs
        What is computed.
    folder : Path
        The cache.
    unit : float or None
        Unit of length of the run in the shape's coordinates; None takes its own geodesic diameter / 200.
    threads : int or None
        Threads of compiled code; None takes all.

    Raises
    ------
    InputError
        Where the shape cannot be read or used.
    OSError
        Where the cache cannot be written.
    """
    example = sample.read()
    check_matchable(example.shape, sample.name, spectral=needs.spectral)
    length, files, known = _fill_cache(example.shape, needs, folder, unit=unit, threads=threads)
    return Prepared(
        name=sample.name,
        n=len(example.shape.vertices),
        labels=example.labels,
        unit=length,
        content=content_hash(example.shape),
        files=files,
        from_cache=known,
        truth=example.truth,
    )


def prepare_shape(
    shape: Shape,
    needs: Needs,
    *,
    unit: float | None = None,
    cache: bool = True,
    name: str = "",
    progress: Progress | None = None,
) -> Prepared | ComputedShape:
    """What a method needs of one shape, from the cache or without it.

    Parameters
    ----------
    shape : Mesh or PointCloud
        The shape.
    needs : Needs
        What is computed.
    unit : float or None
        Unit of length of the run in the shape's coordinates; None takes its own geodesic diameter / 200.
    cache : bool
        Whether to look in the cache and put there what is computed.
    name : str
        For messages.
    progress : Progress or None
        Called with (done, total) while operators are computed.

    Raises
    ------
    InputError
        Where the folder of the cache cannot be used.
    """
    if not cache:
        return ComputedShape(shape, needs, unit=unit, progress=progress)
    with usable_cache():
        length, files, known = _fill_cache(shape, needs, cache_folder(), unit=unit, progress=progress)
    n = len(shape.vertices)
    return Prepared(name or "the shape", n, np.full(n, -1, np.int32), length, content_hash(shape), files, known)


def make_operator(
    surface: Surface,
    settings: PatchSettings | GeodesicPatchSettings,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PatchOperator:
    """The patch operator of a surface, of the kind that the settings are of."""
    if isinstance(settings, GeodesicPatchSettings):
        return build_geodesic_patches(surface, settings, threads=threads)
    return build_patches(surface, settings, threads=threads, progress=progress)


def _needed(settings: Any, kind: str) -> Any:
    if settings is None:
        raise InputError(f"The method does not need {kind}, so that they are not computed.")
    return settings


def _fill_cache(
    shape: Shape,
    needs: Needs,
    folder: Path,
    *,
    unit: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[float, dict[Kind, Path], bool]:
    """Compute what a shape lacks in the cache: its unit, the files by kind, and whether all were there already."""
    length, made = cached_unit(shape, unit, folder)
    surface = made
    files: dict[Kind, Path] = {}
    known = True

    def fill(kind: Kind, path: Path, valid: bool, compute: Callable[[Surface], None]) -> None:
        nonlocal surface, known
        files[kind] = path
        if not valid:
            known = False
            _log.debug("%s: computing %s", path.name, kind)
            surface = surface if surface is not None else surface_of(shape, length)
            compute(surface)
            mark_added(path)

    if (settings := needs.patches) is not None:
        path = patches_path(shape, settings, length, folder)
        build = lambda s: write_patches(make_operator(s, settings, threads=threads, progress=progress), path)  # noqa: E731
        fill("patches", path, sound_patches(path) is not None, build)
    if (spectral := needs.spectra) is not None:
        spectra_file = spectra_path(shape, spectral, length, folder)
        solve = lambda s: write_spectra(compute_spectra(s, spectral, threads=threads), spectra_file)  # noqa: E731
        fill("spectra", spectra_file, _is_valid(spectra_file, read_spectra), solve)
    if (described := needs.descriptors) is not None:
        target = descriptors_path(shape, described, length, folder)
        describe = lambda s: write_descriptors(  # noqa: E731
            target, compute_descriptors(shape, s, described, threads=threads)
        )
        fill("descriptors", target, _is_valid(target, read_descriptors), describe)
    return length, files, known


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


def compute_descriptors(
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


def _is_valid(path: Path, read: Callable[[Path], object]) -> bool:
    if not path.is_file():
        return False
    try:
        read(path)
    except InputError:
        return False
    mark_used(path)
    return True


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
    """The patch operator of a shape, from the cache where it is there and valid, else computed and put there.

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


def sound_patches(path: Path) -> PatchOperator | None:
    """The operator of an entry; None where there is none or it is damaged, so that one made instead takes its place."""
    try:
        operator = read_patches(path)
    except InputError:
        return None
    mark_used(path)
    return operator


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


def make_patches(
    shape: Shape,
    settings: PatchSettings | GeodesicPatchSettings,
    *,
    unit: float | None,
    cache: bool,
    progress: Progress | None = None,
) -> PatchOperator:
    """The patch operator of a shape, through the cache (`cached_patches`) or not (`build_patches`).

    Raises
    ------
    InputError
        Where the cache's folder cannot be used.
    """
    return prepare_shape(shape, Needs(None, settings), unit=unit, cache=cache, progress=progress).patches()


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
