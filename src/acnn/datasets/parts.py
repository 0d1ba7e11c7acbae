"""Partial shapes: cuts by planes, and holes by many small discs; and datasets of such shapes."""

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
"""Largest fraction of the area that may be missing."""

TOLERANCE = 0.02
"""Tolerance of the missing fraction of the area."""

FEWEST_FACES, SMALLEST_FRACTION = 10, 0.005
"""Components of fewer faces, or of a smaller fraction of the full area, are dropped unless they are the largest."""

_AIM, _DRAWS, _ROUNDS = 0.002, 20, 8


@dataclass(frozen=True, eq=False)
class PartOf:
    """Reads a shape and cuts a partial shape from it.

    Attributes
    ----------
    read : callable
        Returns the full shape.
    kind, missing, seed
        As for `cut_part`.
    unit : float or None
        Unit of length of the result: the full shape is scaled so that its geodesic diameter is 200 of these, and all
        partial shapes have the unit of one reference; None leaves coordinates as they are.
    """

    read: Callable[[], Example]
    kind: Kind
    missing: float
    seed: int
    unit: float | None = None

    def __call__(self) -> Example:
        """The partial shape, with the labels of its vertices."""
        return self.with_missing()[0]

    def with_missing(self) -> tuple[Example, float]:
        """The partial shape, and the fraction of the full area that it lacks."""
        from acnn.surface.surface import surface_of

        whole = self.read()
        mesh = whole.shape
        if not isinstance(mesh, Mesh):
            raise InputError("A point cloud has no faces to cut: use meshes.")
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
    """Cut a random partial shape: a subset of the vertices, with the faces all of whose corners are kept.

    Each vertex v has a level, and those above a common threshold are removed:

        cuts     level(v) = max_p <n_p, v> - b_p        1 to 3 planes with random normals n_p and offsets b_p
        holes    level(v) = max_c -d(c, v) / f_c        10 to 30 geodesic discs about random c, of random sizes f_c

    The threshold is the one at which the removed faces have the requested area. Faces that are connected by one vertex
    only, and small components (see `FEWEST_FACES`), are removed as well; several large components may remain.

    Parameters
    ----------
    mesh : Mesh
        The full shape.
    kind : Kind
        `cuts` or `holes`.
    missing : float
        Fraction of the area to remove, 0 (the full shape) to 0.95.
    seed : int
        Random seed.

    Returns
    -------
    part : Mesh
        The partial shape, of k vertices.
    vertices : (k,) int64 array
        The vertex of the full shape of each of its vertices, ascending.

    Raises
    ------
    InputError
        For numbers out of range, or where the mesh is too coarse to reach the fraction within 0.02.
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
            f"No partial shape lacks {missing:g} of the area: with {len(faces)} faces the nearest is {off:.2g} off. "
            "Use a finer mesh or another fraction."
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
    """Cut partial shapes from the shapes of a dataset; made when they are read.

    Those of `NAME` are named `NAME_cuts`, `NAME_cuts2` and so on, and numbered from 1. All are in the unit of the
    reference: where the dataset has none, each full shape is first scaled to the reference's geodesic diameter.

    Parameters
    ----------
    dataset : Dataset
        Of meshes.
    kind : Kind
        `cuts` or `holes`.
    missing : float or tuple[float, float]
        Fraction of the area that a partial shape lacks, or the range to draw it from.
    count : int or None
        Total number, cut from the shapes in turn; None is one of each.
    seed : int
        Random seed.

    Returns
    -------
    Dataset
        With the same reference, splits and subjects.

    Raises
    ------
    InputError
        For numbers out of range, or a dataset without shapes.
    """
    low, high = missing if isinstance(missing, tuple) else (missing, missing)
    wanted, shapes = len(dataset) if count is None else count, dataset.samples
    for fraction in (low, high):
        _check(kind, fraction, seed)
    if low > high:
        raise InputError(f"Missing area from {low:g} to {high:g}: give the smaller fraction first.")
    if wanted < 1 or not shapes:
        raise InputError(f"{wanted} parts of {len(shapes)} shapes: at least one of each is needed.")
    from acnn.surface.surface import surface_of

    unit = dataset.unit or surface_of(dataset.reference).unit
    made: Counter[int] = Counter()
    parts = []
    for k in range(wanted):
        i = k * len(shapes) // wanted if wanted < len(shapes) else k % len(shapes)
        made[i] += 1
        drawn, position = np.random.SeedSequence((seed, i, made[i])).generate_state(2)
        fraction = low + (high - low) * float(position) / 2**32
        reader = PartOf(shapes[i].read, kind, fraction, int(drawn), None if dataset.unit else unit)
        name = f"{shapes[i].name}_{kind}" + (str(made[i]) if made[i] > 1 else "")
        parts.append(Sample(name, reader, shapes[i].split, shapes[i].subject, k + 1))
    # Only the default arguments give a name that `open_dataset` opens as the same dataset.
    own = "" if (missing, count, seed) == (0.3, None, 0) else f" ({missing} missing, {wanted} parts, seed {seed})"
    return replace(dataset, name=f"{dataset.name}+{kind}{own}", samples=tuple(parts), unit=unit)


def _check(kind: str, missing: float, seed: int) -> None:
    if kind not in KINDS:
        raise InputError(f"Parts of kind '{kind}': use 'cuts' or 'holes'.")
    if not 0 <= missing <= MOST:
        raise InputError(f"Missing area {missing}: give a fraction from 0 to {MOST}.")
    if seed < 0:
        raise InputError(f"Seed {seed}: give a whole number from 0 on.")


def _plane_levels(mesh: Mesh, missing: float, random: np.random.Generator) -> FloatArray:
    """(n,) height above the highest of a few planes, each with a fraction of the requested area above it."""
    planes = int(random.integers(1, 4))
    normals = random.standard_normal((planes, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    fractions = missing * random.dirichlet(np.full(planes, 2.0))
    areas = _face_areas(mesh)
    levels = []
    for normal, fraction in zip(normals, fractions, strict=True):
        height = mesh.vertices @ normal
        of_face = height[mesh.faces].mean(axis=1)
        order = np.argsort(-of_face)
        at = int(np.searchsorted(np.cumsum(areas[order]), fraction * areas.sum()))
        levels.append(height - of_face[order[min(at, len(order) - 1)]])
    return np.max(levels, axis=0)


def _disc_levels(mesh: Mesh, random: np.random.Generator) -> FloatArray:
    """(n,) minus the distance from the nearest of many random centres, over the relative size of its disc."""
    from acnn.surface.geodesics import geodesics_from
    from acnn.surface.surface import surface_of

    surface = surface_of(mesh, unit=1.0)
    discs = min(int(random.integers(10, 31)), len(mesh.vertices))
    probabilities = surface.vertex_areas / surface.vertex_areas.sum()
    centres = random.choice(len(probabilities), discs, replace=False, p=probabilities)
    sizes = random.uniform(0.5, 1.5, discs)
    return -(geodesics_from(surface, centres) / sizes[:, None]).min(axis=0)


def _remaining(
    faces: NDArray[np.int64], areas: FloatArray, level: FloatArray, n: int, missing: float
) -> tuple[NDArray[np.int64], float]:
    """Faces that remain when those of highest level are removed, and the missing fraction, near the requested one.

    Parameters
    ----------
    areas : (m,) array
        Fractions of the full area.
    level : (m,) array
        Of the faces' highest corners.
    """
    order = np.argsort(-level, kind="stable")
    gone = np.cumsum(areas[order])
    aim, best, reached = missing, np.zeros(0, np.int64), np.inf
    for _ in range(_ROUNDS):
        at = int(np.searchsorted(gone, max(aim, 0.0)))
        threshold = level[order[min(at, len(order) - 1)]]
        remaining = _cleaned(faces, areas, np.flatnonzero(level <= threshold), n)
        fraction = 1.0 - float(areas[remaining].sum())
        if abs(fraction - missing) < abs(reached - missing):
            best, reached = remaining, fraction
        if abs(fraction - missing) < _AIM:
            break
        # What clean-up removes is removed less elsewhere.
        aim -= fraction - missing
    return best, reached


def _cleaned(faces: NDArray[np.int64], areas: FloatArray, kept: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The faces `kept` without small components, and without those connected to the rest by one vertex only."""
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
            large = (np.bincount(piece, minlength=pieces) >= FEWEST_FACES) & (area >= SMALLEST_FRACTION)
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
