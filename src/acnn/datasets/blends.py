"""New bodies between and beyond those of a dataset: shapes of one triangulation, mixed where their poses are alike."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.collection import Dataset, Example, Sample
from acnn.errors import InputError
from acnn.shapes.shape import FloatArray, Mesh

ALIKE = 0.1
"""Poses are alike where two shapes, moved rigidly, are on average this near, in diagonals of a bounding box."""

STRONGEST = 0.5
"""A copy is between this far towards the other shape and this far away from it."""

_LOOKED_AT = 400
"""Vertices that poses are compared at."""


@dataclass(frozen=True, eq=False)
class BlendedCopy:
    """Reads two shapes of one triangulation and moves the first along the difference between them.

    - read: gives the shape; other: the one to mix in
    - share: of the other, below 0 to go away from it
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
            reader = BlendedCopy(sample.read, dataset.samples[chosen].read, STRONGEST * (2 * lots[chosen][1] - 1))
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
