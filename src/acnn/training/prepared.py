"""A prepared shape: its patch operator, spectra and descriptors, computed once and cached on disk by content.

What is computed is what a method needs (`Needs`). A prepared shape offers `patches()`, `spectra()` and `descriptors()`,
from files in the cache (`Prepared`) or computed when first asked for (`ComputedShape`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.cache import Kind, cache_folder, check_exists, mark_added, mark_used
from acnn.correspondence.match_checks import check_matchable
from acnn.datasets.dataset import Sample
from acnn.descriptors.settings import DescriptorSettings, describe_surface
from acnn.errors import InputError
from acnn.files import map_arrays
from acnn.patches.anisotropic import DEFAULT, build_patches
from acnn.patches.geodesic import build_geodesic_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import GeodesicPatchSettings, PatchSettings
from acnn.progress import Progress
from acnn.shapes.load import own_descriptors
from acnn.shapes.mesh import BarycentricPoints, Shape, content_hash
from acnn.surface.spectra import Spectra, SpectraSettings, compute_spectra
from acnn.surface.surface import Surface, surface_of
from acnn.training.cache_entries import (
    cached_unit,
    descriptors_path,
    is_valid_entry,
    patches_path,
    read_descriptors,
    read_patches,
    read_spectra,
    spectra_path,
    usable_cache,
    valid_patches,
    write_descriptors,
    write_patches,
    write_spectra,
)
from acnn.types import FloatArray, IntArray

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
    found = valid_patches(path)
    if found is not None:
        return found
    operator = build_patches(surface or shape, settings, unit=length, threads=threads, progress=progress)
    write_patches(operator, path)
    mark_added(path)
    return read_patches(path)


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
        fill("patches", path, valid_patches(path) is not None, build)
    if (spectral := needs.spectra) is not None:
        spectra_file = spectra_path(shape, spectral, length, folder)
        solve = lambda s: write_spectra(compute_spectra(s, spectral, threads=threads), spectra_file)  # noqa: E731
        fill("spectra", spectra_file, is_valid_entry(spectra_file, read_spectra), solve)
    if (described := needs.descriptors) is not None:
        target = descriptors_path(shape, described, length, folder)
        describe = lambda s: write_descriptors(  # noqa: E731
            target, compute_descriptors(shape, s, described, threads=threads)
        )
        fill("descriptors", target, is_valid_entry(target, read_descriptors), describe)
    return length, files, known
