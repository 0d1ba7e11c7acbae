"""Copies of a dataset's shapes to learn from: other triangulations of the same surfaces, and mixed bodies."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.array_files import full_disk, read_arrays, write_arrays
from acnn.cache import entry_path, mark_added, mark_used
from acnn.datasets.blends import blended
from acnn.datasets.collection import Dataset, Example, Sample
from acnn.datasets.parts import KINDS, Kind, parts_of
from acnn.datasets.remesh import Remeshed, remesh
from acnn.errors import InputError
from acnn.shapes.shape import Mesh

VERSION = 1
"""To be raised whenever `remesh` gives another result than before."""


LACKING = (0.05, 0.6)
"""Shares of the area that parts to learn from lack."""


@dataclass(frozen=True)
class CopySettings:
    """Which copies of the training shapes are learned from as well.

    - blended: mixed copies of every shape, see `acnn.datasets.blends`
    - remeshed: copies in other triangulations for every shape, mixed ones included; 0.5 is one for every second shape.
      Their vertices are 0.6 to 1.1 times as many, spread like the original's, evenly, or in between
    - cut: parts of every shape, mixed ones included, that lack up to 0.6 of its area; 0.5 is one of every second shape
    - cut_kind: `cuts` or `holes`, see `acnn.datasets.parts`
    - copies_seed: of everything random in them
    """

    blended: int = 0
    remeshed: float = 0.0
    cut: float = 0.0
    cut_kind: Kind = "cuts"
    copies_seed: int = 0

    def __post_init__(self) -> None:
        for name in ("blended", "remeshed", "cut"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} = {getattr(self, name)}: it cannot be negative.")
        if self.cut_kind not in KINDS:
            raise InputError(f"cut_kind = '{self.cut_kind}': use 'cuts' or 'holes'.")


@dataclass(frozen=True, eq=False)
class RemeshedCopy:
    """Reads a shape and remeshes it; the result is kept in the cache, since it takes a second and more.

    - read: gives the shape itself
    - reference: on which the labels are
    - seed: of the triangulation
    - varied: draw the number of vertices and how they are spread from wide ranges, not near the original's
    """

    read: Callable[[], Example]
    reference: Mesh
    seed: int
    varied: bool = False

    def __call__(self) -> Example:
        """The copy; with exact truth where the shape has the reference's vertices and faces, else with labels."""
        original = self.read()
        mesh = original.shape
        if not isinstance(mesh, Mesh):
            raise InputError("A cloud cannot be remeshed: remeshed copies are made of meshes.")
        _check_closed(mesh)
        copy = _cached_remesh(mesh, self.seed, self.varied)
        nearest = copy.truth.nearest_vertex(mesh.vertices, mesh.faces)
        labels = original.labels[nearest].astype(np.int32)
        mirrored = None if original.mirrored is None else original.mirrored[nearest]
        identical = np.array_equal(original.labels, np.arange(len(mesh.vertices)))
        truth = None
        if identical and np.array_equal(mesh.faces, self.reference.faces):
            truth = copy.truth
            labels = truth.nearest_vertex(self.reference.vertices, self.reference.faces)
        return Example(copy.mesh, labels, truth=truth, mirrored=mirrored)


def with_copies(dataset: Dataset, settings: CopySettings) -> Dataset:
    """The dataset and the copies of its shapes that the settings ask for."""
    samples = [*dataset.samples]
    if settings.blended:
        samples += blended(dataset, settings.blended, settings.copies_seed)
    count = round(settings.remeshed * len(samples))
    made: Counter[int] = Counter()
    remeshed = []
    for k in range(count):
        i = (k * len(samples)) // count if count < len(samples) else k % len(samples)
        made[i] += 1
        name = f"{samples[i].name}_remeshed" + (str(made[i]) if made[i] > 1 else "")
        drawn = int(np.random.SeedSequence((settings.copies_seed, i, made[i])).generate_state(1)[0])
        reader = RemeshedCopy(samples[i].read, dataset.reference, drawn, varied=True)
        remeshed.append(Sample(name, reader, samples[i].split, samples[i].subject, samples[i].number))
    cut = _cut(replace(dataset, samples=tuple(samples)), settings)
    return replace(dataset, samples=(*samples, *remeshed, *cut))


def _cut(dataset: Dataset, settings: CopySettings) -> tuple[Sample, ...]:
    """Parts of a dataset's shapes."""
    count = round(settings.cut * len(dataset))
    if not count:
        return ()
    if dataset.unit is None:
        raise InputError("Parts need a unit of length that whole shapes have, too: this dataset gives each its own.")
    return parts_of(dataset, settings.cut_kind, LACKING, count=count, seed=settings.copies_seed).samples


def with_remeshed(dataset: Dataset, copies: int = 1, seed: int = 0) -> Dataset:
    """The dataset and remeshed copies of all its samples, named `NAME_remeshed`, `NAME_remeshed2` and so on.

    A copy has the split and subject of its original, and its number plus the next power of ten for each copy: that of
    tr_reg_060 is 160, that of human 7 of 160 is 1007. Copies are made on reading.
    """
    if copies < 1:
        raise InputError(f"{copies} remeshed copies: at least one is needed.")
    highest = max((sample.number or 0 for sample in dataset.samples), default=0)
    step = 10 ** len(str(highest))
    added = [
        Sample(
            f"{sample.name}_remeshed" + (str(copy) if copy > 1 else ""),
            RemeshedCopy(
                sample.read, dataset.reference, int(np.random.SeedSequence((seed, i, copy)).generate_state(1)[0])
            ),
            sample.split,
            sample.subject,
            None if sample.number is None else sample.number + copy * step,
        )
        for copy in range(1, copies + 1)
        for i, sample in enumerate(dataset.samples)
    ]
    return replace(dataset, name=f"{dataset.name}+remeshed", samples=(*dataset.samples, *added))


def _cached_remesh(mesh: Mesh, seed: int, varied: bool) -> Remeshed:
    digest = hashlib.blake2b(f"remesh {VERSION} {seed} {varied} {len(mesh.vertices)} ".encode(), digest_size=20)
    for array in (mesh.vertices, mesh.faces):
        digest.update(np.ascontiguousarray(array).tobytes())
    path = entry_path("remeshed", digest.hexdigest())
    if path.is_file():
        try:
            found, _ = read_arrays(path)
            mark_used(path)
            return Remeshed(Mesh(found["vertices"], found["faces"]), found["face"], found["weights"])
        except (InputError, KeyError):
            path.unlink(missing_ok=True)
    if varied:
        random = np.random.default_rng((seed, 1))
        wanted = round(len(mesh.vertices) * random.uniform(0.6, 1.1))
        made = remesh(mesh, vertices=wanted, density=float(random.uniform(0.0, 1.0)), seed=seed)
    else:
        made = remesh(mesh, seed=seed)
    arrays: dict[str, NDArray[Any]] = {"vertices": made.mesh.vertices, "faces": made.mesh.faces}
    arrays |= {"face": made.face, "weights": made.weights}
    try:
        write_arrays(path, arrays)
        mark_added(path)
    except OSError as error:
        # Without a cache the copy is made each time; a full disk is told, since what follows needs room too.
        if full_disk(error):
            raise
    return made


def _check_closed(mesh: Mesh) -> None:
    half = np.sort(mesh.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2).astype(np.int64), axis=1)
    _, count = np.unique(half[:, 0] * len(mesh.vertices) + half[:, 1], return_counts=True)
    if (count != 2).any():
        raise InputError(f"{int((count != 2).sum())} edges do not have two faces: only closed meshes can be remeshed.")
