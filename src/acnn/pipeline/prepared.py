"""One prepared shape: its operator and descriptors in the cache, found again by content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.array_files import map_arrays, read_arrays, write_arrays
from acnn.cache import check_there, entry_path, mark_added, mark_used
from acnn.datasets.collection import BarycentricTruth, Sample
from acnn.descriptors.settings import DescriptorSettings, describe_surface, own_descriptors
from acnn.errors import InputError
from acnn.patches.build import build_patches
from acnn.patches.cache import CLOUD_VERSION, patches_path, read_patches, sound_patches, write_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings
from acnn.shapes.shape import Mesh, Shape, content_hash
from acnn.surface.surface import Surface, surface_of

VERSION = 2
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
    surface: Surface | None = None
    operator_path = patches_path(shape, patches, unit, folder)
    descriptors_path = entry_path("descriptors", descriptor_key(shape, descriptors, unit), folder)
    operator = sound_patches(operator_path)
    known = operator is not None
    if operator is None:
        surface = surface_of(shape, unit)
        operator = build_patches(surface, patches, threads=threads)
        write_patches(operator, operator_path)
        mark_added(operator_path)
    if not _sound_descriptors(descriptors_path):
        known = False
        # The operator knows the unit, which spares measuring the shape again.
        surface = surface or surface_of(shape, unit or operator.unit)
        write_descriptors(descriptors_path, describe_surface(surface, descriptors, shape=shape, threads=threads))
        mark_added(descriptors_path)
    return Prepared(
        name=sample.name,
        n=len(shape.vertices),
        labels=example.labels,
        unit=operator.unit,
        content=content_hash(shape),
        patches_path=operator_path,
        descriptors_path=descriptors_path,
        from_cache=known,
        truth=example.truth,
    )


def descriptor_key(shape: Shape, settings: DescriptorSettings, unit: float | None) -> str:
    """Hash of all that the descriptors of a shape depend on, the user's own array included."""
    digest = hashlib.blake2b(digest_size=20)
    about = {"version": VERSION, "settings": settings.as_dict(), "unit": unit, "kind": type(shape).__name__}
    about |= {} if isinstance(shape, Mesh) else {"clouds": CLOUD_VERSION}
    digest.update(json.dumps(about, sort_keys=True).encode())
    arrays: list[NDArray[Any] | None] = [shape.vertices, shape.faces if isinstance(shape, Mesh) else shape.normals]
    if "file" in settings.kinds:
        arrays.append(own_descriptors(shape))
    for array in arrays:
        if array is not None:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


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
