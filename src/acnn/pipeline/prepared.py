"""One prepared shape: its operator and descriptors in the cache, found again by content."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.array_files import map_arrays, read_arrays, write_arrays
from acnn.cache import check_there, entry_path, mark_added, mark_used
from acnn.datasets.collection import BarycentricTruth, Sample
from acnn.descriptors.settings import DescriptorSettings, describe_surface, own_descriptors
from acnn.errors import InputError
from acnn.patches.build import build_patches
from acnn.patches.cache import cached_unit, content_key, patches_path, read_patches, sound_patches, write_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings
from acnn.pipeline.matchable import check_matchable
from acnn.shapes.shape import Shape, content_hash
from acnn.surface.surface import Surface, surface_of

VERSION = 3
"""To be raised whenever the same settings give other descriptors than before."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """What learning and matching need of one shape; the large arrays stay in files until asked for.

    - name: of the sample
    - n: vertices
    - labels, truth: as in `Example`
    - unit: length of one run unit in the shape's coordinates
    - content: hash of the shape's points, see `acnn.shapes.shape.content_hash`
    - patches_path, descriptors_path: files in the cache
    - from_cache: both were there already
    """

    name: str
    n: int
    labels: NDArray[np.int32]
    unit: float
    content: str
    patches_path: Path
    descriptors_path: Path
    from_cache: bool
    truth: BarycentricTruth | None = None

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

    - folder: the cache
    - unit: length of one run unit in the shape's coordinates; None is its own geodesic diameter / 200

    Raises InputError where the shape cannot be read or used, OSError where the cache cannot be written.
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
        write_descriptors(path, describe_surface(surface, descriptors, shape=shape, threads=threads))
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
        write_descriptors(path, describe_surface(surface, settings, shape=shape))
        mark_added(path)
    return read_descriptors(path)


def descriptors_path(shape: Shape, settings: DescriptorSettings, unit: float, folder: Path | None = None) -> Path:
    """The file of a shape's descriptors in a cache (None: `acnn.cache.cache_folder()`); the user's own array counts."""
    own = own_descriptors(shape) if "file" in settings.kinds else None
    key = content_key(shape, {"descriptors": VERSION, "settings": settings.as_dict(), "unit": unit}, own)
    return entry_path("descriptors", key, folder)


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
