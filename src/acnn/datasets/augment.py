"""Augmentation of training shapes: remeshed, interpolated between bodies, and cut."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.cache import entry_path, mark_added, mark_used
from acnn.datasets.dataset import Dataset, Example, Sample
from acnn.datasets.parts import KINDS, Kind, parts_of
from acnn.errors import InputError
from acnn.files import full_disk, read_arrays, write_arrays
from acnn.shapes.mesh import BarycentricPoints, Mesh
from acnn.surface.simplify import Remeshed, remesh
from acnn.types import FloatArray, IntArray

VERSION = 1
"""To be raised whenever `remesh` gives another result than before."""


LACKING = (0.05, 0.6)
"""Shares of the area that parts to learn from lack."""


@dataclass(frozen=True)
class AugmentSettings:
    """Which copies of the training shapes are learned from as well.

    Attributes
    ----------
    interpolated : int
        Mixed copies of every shape, see `acnn.datasets.augment`.
    remeshed : float
        Copies in other triangulations for every shape, mixed ones included; 0.5 is one for every second shape. Their
        vertices are 0.6 to 1.1 times as many, spread like the original's, evenly, or in between.
    cut : float
        Parts of every shape, mixed ones included, that lack up to 0.6 of its area; 0.5 is one of every second shape.
    cut_kind : Kind
        `cuts` or `holes`, see `acnn.datasets.parts`.
    augment_seed : int
        Of everything random in them.
    """

    interpolated: int = 0
    remeshed: float = 0.0
    cut: float = 0.0
    cut_kind: Kind = "cuts"
    augment_seed: int = 0

    def __post_init__(self) -> None:
        for name in ("interpolated", "remeshed", "cut"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} = {getattr(self, name)}: it cannot be negative.")
        if self.cut_kind not in KINDS:
            raise InputError(f"cut_kind = '{self.cut_kind}': use 'cuts' or 'holes'.")


@dataclass(frozen=True, eq=False)
class RemeshedSample:
    """Reads a shape and remeshes it; the result is kept in the cache, since it takes a second and more.

    Attributes
    ----------
    read : callable
        Gives the shape itself.
    reference : Mesh
        On which the labels are.
    seed : int
        Of the triangulation.
    varied : bool
        Draw the number of vertices and how they are spread from wide ranges, not near the original's.
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
        labels: IntArray = original.labels[nearest].astype(np.int32)
        mirrored = None if original.mirrored is None else original.mirrored[nearest]
        identical = np.array_equal(original.labels, np.arange(len(mesh.vertices)))
        truth = None
        if identical and np.array_equal(mesh.faces, self.reference.faces):
            truth = copy.truth
            labels = truth.nearest_vertex(self.reference.vertices, self.reference.faces)
        return Example(copy.mesh, labels, truth=truth, mirrored=mirrored)


def augmented(dataset: Dataset, settings: AugmentSettings) -> Dataset:
    """The dataset and the copies of its shapes that the settings ask for."""
    samples = [*dataset.samples]
    if settings.interpolated:
        samples += blended(dataset, settings.interpolated, settings.augment_seed)
    count = round(settings.remeshed * len(samples))
    made: Counter[int] = Counter()
    remeshed = []
    for k in range(count):
        i = (k * len(samples)) // count if count < len(samples) else k % len(samples)
        made[i] += 1
        name = f"{samples[i].name}_remeshed" + (str(made[i]) if made[i] > 1 else "")
        drawn = int(np.random.SeedSequence((settings.augment_seed, i, made[i])).generate_state(1)[0])
        reader = RemeshedSample(samples[i].read, dataset.reference, drawn, varied=True)
        remeshed.append(Sample(name, reader, samples[i].split, samples[i].subject, samples[i].number))
    cut = _cut(replace(dataset, samples=tuple(samples)), settings)
    return replace(dataset, samples=(*samples, *remeshed, *cut))


def _cut(dataset: Dataset, settings: AugmentSettings) -> tuple[Sample, ...]:
    """Parts of a dataset's shapes."""
    count = round(settings.cut * len(dataset))
    if not count:
        return ()
    if dataset.unit is None:
        raise InputError("Parts need a unit of length that whole shapes have, too: this dataset gives each its own.")
    return parts_of(dataset, settings.cut_kind, LACKING, count=count, seed=settings.augment_seed).samples


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
            RemeshedSample(
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
            return Remeshed(Mesh(found["vertices"], found["faces"]), BarycentricPoints(found["face"], found["weights"]))
        except (InputError, KeyError):
            path.unlink(missing_ok=True)
    if varied:
        random = np.random.default_rng((seed, 1))
        wanted = round(len(mesh.vertices) * random.uniform(0.6, 1.1))
        made = remesh(mesh, vertices=wanted, density=float(random.uniform(0.0, 1.0)), seed=seed)
    else:
        made = remesh(mesh, seed=seed)
    arrays: dict[str, NDArray[Any]] = {"vertices": made.mesh.vertices, "faces": made.mesh.faces}
    arrays |= {"face": made.truth.faces, "weights": made.truth.weights}
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


ALIKE = 0.1
"""Poses are alike where two shapes, moved rigidly, are on average this near, in diagonals of a bounding box."""

STRONGEST = 0.5
"""A copy is between this far towards the other shape and this far away from it."""

_LOOKED_AT = 400
"""Vertices that poses are compared at."""


@dataclass(frozen=True, eq=False)
class InterpolatedSample:
    """Reads two shapes of one triangulation and moves the first along the difference between them.

    Attributes
    ----------
    read : callable
        Gives the shape.
    other : callable
        The one to mix in.
    share : float
        Of the other, below 0 to go away from it.
    """

    read: Callable[[], Example]
    other: Callable[[], Example]
    share: float

    def __call__(self) -> Example:
        """The mixed shape, with all that is known of the first."""
        first, second = self.read(), self.other()
        a, b = first.shape, second.shape
        if not (isinstance(a, Mesh) and isinstance(b, Mesh) and np.array_equal(a.faces, b.faces)):
            raise InputError("Only meshes with the same faces can be mixed.")
        moved = aligned(b.vertices, a.vertices)
        mixed = Mesh(a.vertices + self.share * (moved - a.vertices), a.faces)
        return Example(mixed, first.labels, first.truth, first.pairs, first.mirrored, first.mirrored_truth)


def blended(dataset: Dataset, copies: int, seed: int = 0) -> list[Sample]:
    """Mixed copies of a dataset's shapes, named `NAME_blended`, `NAME_blended2` and so on.

    Each is a shape with a share of another subject's in the pose most like its own; shapes that have no such partner,
    or no subject, get no copy. Nothing but the dataset's own shapes enters, so select those for training first. Reads
    every shape.
    """
    if copies < 1:
        raise InputError(f"{copies} blended copies: at least one is needed.")
    places = _places(dataset.samples)
    made = []
    for i, sample in enumerate(dataset.samples):
        partners = _partners(i, dataset.samples, places)
        if not partners:
            continue
        for copy in range(1, copies + 1):
            # By lot, and drawn from names: other shapes in the dataset change few of the pairs.
            lots = {j: _draws(f"{seed} {copy} {sample.name} {dataset.samples[j].name}") for j in partners}
            chosen = max(lots, key=lambda j: lots[j][0])
            reader = InterpolatedSample(
                sample.read, dataset.samples[chosen].read, STRONGEST * (2 * lots[chosen][1] - 1)
            )
            name = f"{sample.name}_blended" + (str(copy) if copy > 1 else "")
            made.append(Sample(name, reader, sample.split, sample.subject, sample.number))
    return made


def aligned(points: FloatArray, target: FloatArray) -> FloatArray:
    """(n, 3) points turned and moved to lie nearest to the target (n, 3), row by row (Kabsch)."""
    centre, there = points.mean(axis=0), target.mean(axis=0)
    u, _, vt = np.linalg.svd((points - centre).T @ (target - there))
    turn = np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))])
    return (points - centre) @ (u @ turn @ vt) + there


def _draws(text: str) -> tuple[float, float]:
    """Two numbers in [0, 1) that depend on a text alone."""
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    first, second = (int.from_bytes(part, "little") / 2**64 for part in (digest[:8], digest[8:]))
    return first, second


def _places(samples: Sequence[Sample]) -> list[FloatArray | None]:
    """Some vertices of every shape; None of one that has another triangulation than the first, or cannot be read."""
    places: list[FloatArray | None] = []
    faces: NDArray[np.integer] | None = None
    for sample in samples:
        try:
            shape = sample.read().shape
        except InputError:
            places.append(None)
            continue
        if faces is None and isinstance(shape, Mesh):
            faces = shape.faces
        same = isinstance(shape, Mesh) and faces is not None and np.array_equal(shape.faces, faces)
        places.append(shape.vertices[:: max(1, len(shape.vertices) // _LOOKED_AT)] if same else None)
    return places


def _partners(i: int, samples: Sequence[Sample], places: Sequence[FloatArray | None]) -> list[int]:
    """Of every other subject the shape in the pose most like that of shape i, where there is a like one."""
    here, subject = places[i], samples[i].subject
    if here is None or subject is None:
        return []
    limit = ALIKE * float(np.linalg.norm(np.ptp(here, axis=0)))
    nearest: dict[int | str, tuple[float, int]] = {}
    for j, there in enumerate(places):
        whose = samples[j].subject
        if there is not None and whose is not None and whose != subject:
            distance = float(np.linalg.norm(aligned(there, here) - here, axis=1).mean())
            if distance < limit:
                nearest[whose] = min((distance, j), nearest.get(whose, (distance, j)))
    return [j for _, j in nearest.values()]
