"""Parts of shapes: cuts, which planes take off, and holes, many small discs; and datasets of such parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.dataset import Dataset, Example, Sample
from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints, Mesh
from acnn.shapes.topology import face_components, fans, mesh_edges
from acnn.types import FloatArray, IntArray

Kind = Literal["cuts", "holes"]
KINDS: tuple[Kind, ...] = ("cuts", "holes")

MOST = 0.95
"""Largest share of the area that may be asked to be missing."""

TOLERANCE = 0.02
"""A part lacks the share of the area that was asked for, to within this share of the whole."""

FEWEST_FACES, SMALLEST_SHARE = 10, 0.005
"""Pieces of fewer faces, or of a smaller share of the whole's area, are dropped unless they are the largest."""

_AIM, _DRAWS, _ROUNDS = 0.002, 20, 8


@dataclass(frozen=True, eq=False)
class PartOf:
    """Reads a shape and takes a part of it.

    Attributes
    ----------
    read : callable
        Gives the whole shape.
    kind, missing, seed
        As for `cut_part`.
    unit : float or None
        Length that is a run unit of the result: the whole shape is scaled until its geodesic diameter is 200 of them,
        so that parts of all shapes come in the units of one reference; None leaves coordinates as they are.
    """

    read: Callable[[], Example]
    kind: Kind
    missing: float
    seed: int
    unit: float | None = None

    def __call__(self) -> Example:
        """The part, with what is known of its vertices on the whole shape."""
        return self.with_share()[0]

    def with_share(self) -> tuple[Example, float]:
        """The part, and the share of the whole's area that it lacks."""
        from acnn.surface.surface import surface_of

        whole = self.read()
        mesh = whole.shape
        if not isinstance(mesh, Mesh):
            raise InputError("A cloud has no faces to cut: parts are made of meshes.")
        if self.unit is not None:
            mesh = replace(mesh, vertices=mesh.vertices * (self.unit / surface_of(mesh).unit))
        part, kept = cut_part(mesh, self.kind, self.missing, self.seed)
        example = Example(
            part,
            whole.labels[kept],
            truth=_rows(whole.truth, kept),
            pairs=None if whole.pairs is None else _kept_pairs(whole.pairs, kept, len(mesh.vertices)),
            mirrored=None if whole.mirrored is None else whole.mirrored[kept],
            mirrored_truth=_rows(whole.mirrored_truth, kept),
        )
        return example, 1.0 - _face_areas(part).sum() / _face_areas(mesh).sum()


def cut_part(mesh: Mesh, kind: Kind = "cuts", missing: float = 0.3, seed: int = 0) -> tuple[Mesh, NDArray[np.int64]]:
    """Take a random part of a mesh: a subset of its vertices, with the faces all of whose corners are kept.

    Each vertex v has a level, and those above a common threshold go:

        cuts     level(v) = max_p <n_p, v> - b_p        1 to 3 planes with random normals n_p and places b_p
        holes    level(v) = max_c -d(c, v) / f_c        10 to 30 geodesic discs about random c, of random sizes f_c

    The threshold is the one at which the faces that go have the wanted area. Faces that hang on by one vertex, and
    small pieces (see `FEWEST_FACES`), go as well; several large pieces may stay.

    Parameters
    ----------
    kind : Kind
        `cuts` or `holes`.
    missing : float
        Share of the area to take away, 0 (the whole shape) to 0.95.
    seed : int
        Same seed, same part.

    Returns
    -------
    tuple[Mesh, array]
        The part, and (k,) which vertex of the mesh each of its vertices is, ascending.

    Raises
    ------
    InputError
        For numbers out of range, or where the mesh is too coarse to reach the share within 0.02.
    """
    _check(kind, missing, seed)
    n, faces = len(mesh.vertices), np.asarray(mesh.faces, np.int64)
    if missing == 0:
        return replace(mesh, source=None), np.arange(n, dtype=np.int64)
    random = np.random.default_rng((seed, KINDS.index(kind)))
    areas = _face_areas(mesh)
    areas = areas / areas.sum()
    best, off = np.zeros(0, np.int64), np.inf
    for _ in range(_DRAWS):
        level = _plane_levels(mesh, missing, random) if kind == "cuts" else _disc_levels(mesh, random)
        found, reached = _remaining(faces, areas, level[faces].max(axis=1), n, missing)
        if abs(reached - missing) < off:
            best, off = found, abs(reached - missing)
        if off <= TOLERANCE:
            break
    if off > TOLERANCE:
        raise InputError(
            f"No part lacks {missing:g} of the area: with {len(faces)} faces the nearest is {off:.2g} off. Use a finer "
            "mesh or another share."
        )
    kept, corners = np.unique(faces[best], return_inverse=True)
    colors = None if mesh.colors is None else mesh.colors[kept]
    return Mesh(mesh.vertices[kept], corners.reshape(-1, 3).astype(np.int32), colors), kept


def parts_of(
    dataset: Dataset,
    kind: Kind = "cuts",
    missing: float | tuple[float, float] = 0.3,
    *,
    count: int | None = None,
    seed: int = 0,
) -> Dataset:
    """A dataset of parts of another one's shapes, with the same reference, splits and subjects; made on reading.

    Parts of `NAME` are named `NAME_cuts`, `NAME_cuts2` and so on, and numbered from 1. All are in the unit of the
    reference: where the dataset has none, each whole shape is first scaled to the reference's geodesic diameter.

    Parameters
    ----------
    kind : Kind
        `cuts` or `holes`.
    missing : float or tuple[float, float]
        Share of the area that a part lacks, or the range to draw it from.
    count : int or None
        Of parts in all, taken of the shapes in turn; None is one of each.
    seed : int
        Of everything random.
    """
    low, high = missing if isinstance(missing, tuple) else (missing, missing)
    wanted, shapes = len(dataset) if count is None else count, dataset.samples
    for share in (low, high):
        _check(kind, share, seed)
    if low > high:
        raise InputError(f"Missing area from {low:g} to {high:g}: give the smaller share first.")
    if wanted < 1 or not shapes:
        raise InputError(f"{wanted} parts of {len(shapes)} shapes: at least one of each is needed.")
    from acnn.surface.surface import surface_of

    unit = dataset.unit or surface_of(dataset.reference).unit
    made: Counter[int] = Counter()
    parts = []
    for k in range(wanted):
        i = k * len(shapes) // wanted if wanted < len(shapes) else k % len(shapes)
        made[i] += 1
        drawn, fraction = np.random.SeedSequence((seed, i, made[i])).generate_state(2)
        share = low + (high - low) * float(fraction) / 2**32
        reader = PartOf(shapes[i].read, kind, share, int(drawn), None if dataset.unit else unit)
        name = f"{shapes[i].name}_{kind}" + (str(made[i]) if made[i] > 1 else "")
        parts.append(Sample(name, reader, shapes[i].split, shapes[i].subject, k + 1))
    # A name that opens again is given only to what opening gives.
    own = "" if (missing, count, seed) == (0.3, None, 0) else f" ({missing} missing, {wanted} parts, seed {seed})"
    return replace(dataset, name=f"{dataset.name}+{kind}{own}", samples=tuple(parts), unit=unit)


def _check(kind: str, missing: float, seed: int) -> None:
    if kind not in KINDS:
        raise InputError(f"Parts of kind '{kind}': use 'cuts' or 'holes'.")
    if not 0 <= missing <= MOST:
        raise InputError(f"Missing area {missing}: give a share from 0 to {MOST}.")
    if seed < 0:
        raise InputError(f"Seed {seed}: give a whole number from 0 on.")


def _plane_levels(mesh: Mesh, missing: float, random: np.random.Generator) -> FloatArray:
    """(n,) height above the highest of a few planes, each with a share of the wanted area above it."""
    planes = int(random.integers(1, 4))
    normals = random.standard_normal((planes, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    shares = missing * random.dirichlet(np.full(planes, 2.0))
    areas = _face_areas(mesh)
    levels = []
    for normal, share in zip(normals, shares, strict=True):
        height = mesh.vertices @ normal
        of_face = height[mesh.faces].mean(axis=1)
        order = np.argsort(-of_face)
        at = int(np.searchsorted(np.cumsum(areas[order]), share * areas.sum()))
        levels.append(height - of_face[order[min(at, len(order) - 1)]])
    return np.max(levels, axis=0)


def _disc_levels(mesh: Mesh, random: np.random.Generator) -> FloatArray:
    """(n,) minus the distance from the nearest of many random centres, over the relative size of its disc."""
    from acnn.surface.geodesics import geodesics_from
    from acnn.surface.surface import surface_of

    surface = surface_of(mesh, unit=1.0)
    discs = min(int(random.integers(10, 31)), len(mesh.vertices))
    share = surface.vertex_areas / surface.vertex_areas.sum()
    centres = random.choice(len(share), discs, replace=False, p=share)
    sizes = random.uniform(0.5, 1.5, discs)
    return -(geodesics_from(surface, centres) / sizes[:, None]).min(axis=0)


def _remaining(
    faces: NDArray[np.int64], areas: FloatArray, level: FloatArray, n: int, missing: float
) -> tuple[NDArray[np.int64], float]:
    """Faces that stay when those of highest level go, and the share that is then missing, near the wanted one.

    Parameters
    ----------
    areas : (m,) array
        Shares of the whole.
    level : (m,) array
        Of the faces' highest corners.
    """
    order = np.argsort(-level, kind="stable")
    gone = np.cumsum(areas[order])
    aim, best, reached = missing, np.zeros(0, np.int64), np.inf
    for _ in range(_ROUNDS):
        at = int(np.searchsorted(gone, max(aim, 0.0)))
        threshold = level[order[min(at, len(order) - 1)]]
        found = _tidied(faces, areas, np.flatnonzero(level <= threshold), n)
        share = 1.0 - float(areas[found].sum())
        if abs(share - missing) < abs(reached - missing):
            best, reached = found, share
        if abs(share - missing) < _AIM:
            break
        # What tidying took is taken less elsewhere.
        aim -= share - missing
    return best, reached


def _tidied(faces: NDArray[np.int64], areas: FloatArray, kept: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The faces `kept` without small pieces, and without those that hang on the rest by one vertex only."""
    while len(kept):
        before = len(kept)
        first, second = mesh_edges(faces[kept]).pairs()
        count, fan = fans(faces[kept], first, second)
        vertex = np.empty(count, np.int64)
        vertex[fan] = faces[kept].reshape(-1)
        size = np.bincount(fan, minlength=count)
        order = np.lexsort((size, vertex))
        lesser = np.zeros(count, bool)
        lesser[order[:-1]] = vertex[order[:-1]] == vertex[order[1:]]
        kept = kept[~lesser[fan].reshape(-1, 3).any(axis=1)]
        if len(kept) == before:
            pieces, piece = face_components(first, second, len(kept))
            area = np.bincount(piece, weights=areas[kept], minlength=pieces)
            large = (np.bincount(piece, minlength=pieces) >= FEWEST_FACES) & (area >= SMALLEST_SHARE)
            large[np.argmax(area)] = True
            kept = kept[large[piece]]
        if len(kept) == before:
            break
    return kept


def _face_areas(mesh: Mesh) -> FloatArray:
    a, b, c = (mesh.vertices[mesh.faces[:, i]] for i in range(3))
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


def _rows(truth: BarycentricPoints | None, kept: NDArray[np.int64]) -> BarycentricPoints | None:
    return None if truth is None else truth[kept]


def _kept_pairs(pairs: IntArray, kept: NDArray[np.int64], n: int) -> NDArray[np.int32]:
    number = np.full(n, -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    moved = np.stack([number[pairs[:, 0]], pairs[:, 1]], axis=1)
    return moved[moved[:, 0] >= 0].astype(np.int32)
