"""Augmentation of training shapes: remeshed, interpolated between bodies, and cut into partial shapes."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acnn.cache import entry_path, mark_added, mark_used
from acnn.datasets.dataset import Dataset, Example, Sample
from acnn.datasets.parts import KINDS, Kind, parts_of
from acnn.errors import InputError
from acnn.files import full_disk, read_arrays, write_arrays
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.shapes.topology import mesh_edges
from acnn.surface.simplify import Remeshed, remesh
from acnn.types import FloatArray

logger = logging.getLogger("acnn.datasets")

VERSION = 1
"""Part of the cache key: to be increased whenever the result of `remesh` changes."""

MISSING = (0.05, 0.6)
"""Range of the fraction of the area that partial shapes for training lack."""

ALIKE = 0.1
"""Poses are alike where the mean distance of two aligned shapes is below this fraction of the bounding box diagonal."""

STRONGEST = 0.5
"""Interpolated bodies lie between this far towards the other shape and this far away from it."""

COMPARED = 400
"""Approximate number of vertices at which poses are compared."""


@dataclass(frozen=True)
class AugmentSettings:
    """Augmentation of the training shapes; the section `augment` of a configuration.

    Attributes
    ----------
    interpolated : int
        Interpolated bodies per shape, see `interpolated_samples`.
    remeshed : float
        Remeshed shapes per shape, interpolated ones included; 0.5 is one for every second shape. They have 0.6 to 1.1
        times as many vertices, distributed like the original's, evenly, or in between.
    cut : float
        Partial shapes per shape, interpolated ones included, that lack up to 0.6 of its area; 0.5 is one for every
        second shape.
    cut_kind : Kind
        `cuts` or `holes`, see `acnn.datasets.parts`.
    augment_seed : int
        Random seed of the augmentation.
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
    """Reads a shape and remeshes it; the result is cached, since it takes a second or more.

    Attributes
    ----------
    read : callable
        Returns the shape itself.
    reference : Mesh
        Whose vertices the labels are.
    seed : int
        Of the triangulation.
    varied : bool
        Whether the number of vertices and their distribution are drawn from wide ranges, not near the original's.
    """

    read: Callable[[], Example]
    reference: Mesh
    seed: int
    varied: bool = False

    def __call__(self) -> Example:
        """Remesh the shape.

        Returns
        -------
        Example
            With exact ground truth where the shape has the reference's vertices and faces, else with labels.

        Raises
        ------
        InputError
            Where the shape is a cloud, or not manifold.
        """
        original = self.read()
        mesh = original.shape
        if not isinstance(mesh, Mesh):
            raise InputError("A point cloud cannot be remeshed: use meshes.")
        remeshed = cached_remesh(mesh, self.seed, self.varied)
        return resampled(original, remeshed.mesh, remeshed.truth, self.reference)


@dataclass(frozen=True, eq=False)
class InterpolatedSample:
    """Reads two shapes of one connectivity and interpolates or extrapolates between them.

    Attributes
    ----------
    read : callable
        Returns the shape.
    other : callable
        Returns the shape to interpolate to.
    weight : float
        Of the other shape; negative values extrapolate away from it.
    """

    read: Callable[[], Example]
    other: Callable[[], Example]
    weight: float

    def __call__(self) -> Example:
        """The interpolated shape, with the labels of the first."""
        first, second = self.read(), self.other()
        a, b = first.shape, second.shape
        if not (isinstance(a, Mesh) and isinstance(b, Mesh) and np.array_equal(a.faces, b.faces)):
            raise InputError("Only meshes with the same faces can be interpolated.")
        other = aligned(b.vertices, a.vertices)
        interpolated = Mesh(a.vertices + self.weight * (other - a.vertices), a.faces)
        return Example(interpolated, first.labels, first.truth, first.pairs, first.mirrored, first.mirrored_truth)


def resampled(original: Example, shape: Shape, points: BarycentricPoints, reference: Mesh) -> Example:
    """A shape whose vertices are points of another, with the labels of that one.

    Parameters
    ----------
    original : Example
        Of a mesh.
    shape : Shape
        Of n vertices.
    points : BarycentricPoints
        Where its vertices lie on the original's faces.
    reference : Mesh
        Whose vertices the labels are.

    Returns
    -------
    Example
        With exact ground truth where the original has the reference's vertices and faces, else with labels.
    """
    mesh = original.shape
    assert isinstance(mesh, Mesh)
    nearest = points.nearest_vertex(mesh.vertices, mesh.faces)
    mirrored = None if original.mirrored is None else original.mirrored[nearest]
    identical = np.array_equal(original.labels, np.arange(len(mesh.vertices)))
    if identical and np.array_equal(mesh.faces, reference.faces):
        return Example(shape, points.nearest_vertex(reference.vertices, reference.faces), points, mirrored=mirrored)
    return Example(shape, original.labels[nearest].astype(np.int32), mirrored=mirrored)


def augmented(dataset: Dataset, settings: AugmentSettings) -> Dataset:
    """Augment a dataset.

    Parameters
    ----------
    dataset : Dataset
        Training shapes.
    settings : AugmentSettings
        What to add.

    Returns
    -------
    Dataset
        The same samples, then the added ones; those are made when they are read.

    Raises
    ------
    InputError
        Where partial shapes are requested of a dataset without a common unit of length.
    """
    samples = [*dataset.samples]
    if settings.interpolated:
        samples += interpolated_samples(dataset, settings.interpolated, settings.augment_seed)
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


def with_remeshed(dataset: Dataset, count: int = 1, seed: int = 0) -> Dataset:
    """Add remeshed versions of all samples, named `NAME_remeshed`, `NAME_remeshed2` and so on; made when read.

    Each has the split and subject of its original, and its number plus a multiple of the next power of ten: that of
    tr_reg_060 is 160, that of human 7 of 160 is 1007.

    Parameters
    ----------
    dataset : Dataset
        Of meshes.
    count : int
        Number of remeshed versions per sample.
    seed : int
        Of the triangulations.

    Returns
    -------
    Dataset
        The same samples, then the remeshed ones.

    Raises
    ------
    InputError
        Where the count is less than 1.
    """
    if count < 1:
        raise InputError(f"{count} remeshed shapes per sample: at least one is needed.")
    highest = max((sample.number or 0 for sample in dataset.samples), default=0)
    step = 10 ** len(str(highest))
    added = [
        Sample(
            f"{sample.name}_remeshed" + (str(k) if k > 1 else ""),
            RemeshedSample(
                sample.read, dataset.reference, int(np.random.SeedSequence((seed, i, k)).generate_state(1)[0])
            ),
            sample.split,
            sample.subject,
            None if sample.number is None else sample.number + k * step,
        )
        for k in range(1, count + 1)
        for i, sample in enumerate(dataset.samples)
    ]
    return replace(dataset, name=f"{dataset.name}+remeshed", samples=(*dataset.samples, *added))


def interpolated_samples(dataset: Dataset, count: int, seed: int = 0) -> list[Sample]:
    """Interpolate between the shapes of different subjects in similar poses; reads every shape.

    Only the dataset's own shapes are used, so select those for training first. Shapes without a subject, or without
    another subject in a similar pose, are left out. Samples are named `NAME_blended`, `NAME_blended2` and so on: names
    identify a training that is resumed, and stay as they were.

    Parameters
    ----------
    dataset : Dataset
        Whose shapes have one connectivity.
    count : int
        Number of interpolated bodies per shape.
    seed : int
        Random seed.

    Returns
    -------
    list[Sample]
        Made when they are read.

    Raises
    ------
    InputError
        Where the count is less than 1.
    """
    if count < 1:
        raise InputError(f"{count} interpolated bodies per shape: at least one is needed.")
    points = _compared_points(dataset.samples)
    samples = []
    for i, sample in enumerate(dataset.samples):
        partners = _partners(i, dataset.samples, points)
        if not partners:
            logger.debug("%s: no other subject in a similar pose, so nothing to interpolate with", sample.name)
            continue
        for k in range(1, count + 1):
            # At random, but seeded by names: other shapes in the dataset change few of the pairs.
            draws = {j: _draws(f"{seed} {k} {sample.name} {dataset.samples[j].name}") for j in partners}
            partner = max(draws, key=lambda j: draws[j][0])
            reader = InterpolatedSample(
                sample.read, dataset.samples[partner].read, STRONGEST * (2 * draws[partner][1] - 1)
            )
            name = f"{sample.name}_blended" + (str(k) if k > 1 else "")
            samples.append(Sample(name, reader, sample.split, sample.subject, sample.number))
    return samples


def aligned(points: FloatArray, target: FloatArray) -> FloatArray:
    """Align points rigidly to a target, row by row, in the least-squares sense (Kabsch).

    Parameters
    ----------
    points, target : (n, 3) array

    Returns
    -------
    (n, 3) array
        The rotated and translated points.
    """
    centre, target_centre = points.mean(axis=0), target.mean(axis=0)
    u, _, vt = np.linalg.svd((points - centre).T @ (target - target_centre))
    reflection = np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))])
    return (points - centre) @ (u @ reflection @ vt) + target_centre


def cached_remesh(mesh: Mesh, seed: int, varied: bool = False) -> Remeshed:
    """Remesh a mesh, or take the result from the cache.

    Parameters
    ----------
    mesh : Mesh
        Manifold.
    seed : int
        Of the triangulation.
    varied : bool
        As of `RemeshedSample`.

    Returns
    -------
    Remeshed

    Raises
    ------
    InputError
        Where an edge has more than two faces.
    """
    if crowded := int((mesh_edges(mesh.faces).counts > 2).sum()):
        raise InputError(f"{crowded} edges have more than two faces: only manifold meshes can be remeshed.")
    digest = hashlib.blake2b(f"remesh {VERSION} {seed} {varied} {len(mesh.vertices)} ".encode(), digest_size=20)
    for array in (mesh.vertices, mesh.faces):
        digest.update(np.ascontiguousarray(array).tobytes())
    path = entry_path("remeshed", digest.hexdigest())
    if path.is_file():
        try:
            arrays, _ = read_arrays(path)
            mark_used(path)
            return Remeshed(
                Mesh(arrays["vertices"], arrays["faces"]), BarycentricPoints(arrays["face"], arrays["weights"])
            )
        except (InputError, KeyError) as error:
            logger.info("%s: a damaged cache entry is computed again (%s)", path, error)
            path.unlink(missing_ok=True)
    if varied:
        random = np.random.default_rng((seed, 1))
        wanted = round(len(mesh.vertices) * random.uniform(0.6, 1.1))
        made = remesh(mesh, vertices=wanted, density=float(random.uniform(0.0, 1.0)), seed=seed)
    else:
        made = remesh(mesh, seed=seed)
    arrays = {"vertices": made.mesh.vertices, "faces": made.mesh.faces}
    arrays |= {"face": made.truth.faces, "weights": made.truth.weights}
    try:
        write_arrays(path, arrays)
        mark_added(path)
    except OSError as error:
        # Without a cache the shape is remeshed each time; a full disk is reported, since later steps need space too.
        if full_disk(error):
            raise
        logger.info("%s: not cached (%s)", path, error)
    return made


def _cut(dataset: Dataset, settings: AugmentSettings) -> tuple[Sample, ...]:
    """Partial shapes of a dataset's shapes."""
    count = round(settings.cut * len(dataset))
    if not count:
        return ()
    if dataset.unit is None:
        raise InputError(
            "Partial shapes need a unit of length in common with full shapes: in this dataset each shape has its own."
        )
    return parts_of(dataset, settings.cut_kind, MISSING, count=count, seed=settings.augment_seed).samples


def _draws(text: str) -> tuple[float, float]:
    """Two numbers in [0, 1) that depend on a text alone."""
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    first, second = (int.from_bytes(part, "little") / 2**64 for part in (digest[:8], digest[8:]))
    return first, second


def _compared_points(samples: Sequence[Sample]) -> list[FloatArray | None]:
    """Some vertices of every shape; None for one with another connectivity than the first, or that cannot be read."""
    points: list[FloatArray | None] = []
    faces: NDArray[np.integer] | None = None
    for sample in samples:
        try:
            shape = sample.read().shape
        except InputError as error:
            logger.info("%s is not interpolated: %s", sample.name, error)
            points.append(None)
            continue
        if faces is None and isinstance(shape, Mesh):
            faces = shape.faces
        same = isinstance(shape, Mesh) and faces is not None and np.array_equal(shape.faces, faces)
        points.append(shape.vertices[:: max(1, len(shape.vertices) // COMPARED)] if same else None)
    return points


def _partners(i: int, samples: Sequence[Sample], points: Sequence[FloatArray | None]) -> list[int]:
    """Of every other subject the shape in the pose most similar to that of shape i, where there is a similar one."""
    here, subject = points[i], samples[i].subject
    if here is None or subject is None:
        return []
    limit = ALIKE * float(np.linalg.norm(np.ptp(here, axis=0)))
    nearest: dict[int | str, tuple[float, int]] = {}
    for j, there in enumerate(points):
        other = samples[j].subject
        if there is not None and other is not None and other != subject:
            distance = float(np.linalg.norm(aligned(there, here) - here, axis=1).mean())
            if distance < limit:
                nearest[other] = min((distance, j), nearest.get(other, (distance, j)))
    return [j for _, j in nearest.values()]
