"""Partial functional maps: from a part to the full shape that it was cut from.

Two entrances: `partial_map` refines matches (of a network), `partial_map_from_descriptors` starts from descriptors such
as SHOT and needs nothing learned. Both go the same way:

1. guided ZoomOut along the slanted diagonal (`partial_zoomout.py`), from functional maps of several sizes;
2. functions that correspond, heat kernels at matches that fit well, and the energy minimised over the map C and the
   part v in turn (`partial_energy.py`, `partial_alternation.py`);
3. ZoomOut again, from that C and with matches outside the part left aside;
4. of all maps, the start among them, the one that distorts lengths least.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from acnn.correspondence.functional_map import SpectralBasis, basis_of, nearest_points
from acnn.correspondence.partial_energy import PartialBases, partial_bases
from acnn.correspondence.partial_search import PartialMap, PartialSearch
from acnn.correspondence.soft_map import SoftMap, soft_map_from_features, soft_map_from_point_map
from acnn.errors import InputError
from acnn.surface.surface import Surface
from acnn.types import FloatArray

EIGENFUNCTIONS = 200
"""Of each shape, where it has enough vertices."""

SMALLEST = 50
"""Vertices below which a part cannot be matched by descriptors alone."""


def partial_map(
    matches: SoftMap | ArrayLike,
    part: Surface,
    full: Surface,
    *,
    confidence: ArrayLike | None = None,
    part_basis: SpectralBasis | None = None,
    full_basis: SpectralBasis | None = None,
    eigenfunctions: int = EIGENFUNCTIONS,
    rounds: int = 3,
) -> PartialMap:
    """Refine matches of a part to its full shape; many of them must be right, others may be anywhere.

    A map is judged without the truth by its distortion, the mean over edges of the part of min(1, |l' - l| / l) with l
    the length of the edge and l' the distance of its ends' matches. The least distorted one is taken if it agrees with
    at least half of the start's trusted matches (to within a tenth of the root of the full shape's area; trusted are
    those whose neighbours are matched at the right distance, weighted by confidence and area), else the start is kept.

    Parameters
    ----------
    matches : SoftMap or array_like
        Soft map, or (n,) vertices of the full shape.
    part, full : Surface
        Mesh or cloud in the SAME run unit: surface_of(part, unit=full.unit).
    confidence : (n,) array or None
        In 0..1, for a point map.
    part_basis, full_basis : SpectralBasis or None
        From `basis_of`, where they are known already.
    eigenfunctions : int
        How many to use of each shape at most.
    rounds : int
        Of steps 2 and 3 at most; they end where nothing gets better.

    Raises
    ------
    InputError
        Where the matches do not fit the shapes, or the shapes are in different units.
    """
    if not isinstance(matches, SoftMap):
        matches = soft_map_from_point_map(matches, len(full.vertices), confidence)
    elif confidence is not None:
        raise InputError("A soft map brings its own confidence: leave the argument out.")
    bases = _bases(part, full, part_basis, full_basis, eigenfunctions)
    return PartialSearch(matches, part, full, bases).run(rounds)


def partial_map_from_descriptors(
    part: Surface,
    full: Surface,
    part_descriptors: FloatArray | None = None,
    full_descriptors: FloatArray | None = None,
    *,
    part_basis: SpectralBasis | None = None,
    full_basis: SpectralBasis | None = None,
    eigenfunctions: int = EIGENFUNCTIONS,
    rounds: int = 4,
    functions: int = 80,
) -> PartialMap:
    """Match a part to its full shape by descriptors alone.

    The nearest descriptors give matches to start from, and the descriptors themselves the first functions that
    correspond (their principal components); later rounds take the matches found.

    Other parameters and errors as in `partial_map`; InputError for a part of fewer than `SMALLEST` vertices.

    Parameters
    ----------
    part, full : Surface
        Mesh or cloud in the SAME run unit.
    part_descriptors, full_descriptors : (n, p) and (m, p) array or None
        None is SHOT of both.
    rounds : int
        Outer rounds at most, the first with the descriptors.
    functions : int
        How many principal components.
    """
    if len(part.vertices) < SMALLEST:
        raise InputError(
            f"The part has {len(part.vertices)} vertices; at least {SMALLEST} are needed to match it by descriptors. "
            "Give a larger part or a finer mesh, or start from known matches with partial_map."
        )
    bases = _bases(part, full, part_basis, full_basis, eigenfunctions)
    if part_descriptors is None or full_descriptors is None:
        from acnn.descriptors.shot import shot

        part_descriptors, full_descriptors = shot(part), shot(full)
    soft_map = soft_map_from_descriptors(part_descriptors, full_descriptors)
    weighted = full_descriptors * np.sqrt(bases.full.mass)[:, None].astype(full_descriptors.dtype)
    _, directions = np.linalg.eigh((weighted.T @ weighted).astype(float))
    main = directions[:, ::-1][:, :functions]
    return PartialSearch(soft_map, part, full, bases).run(rounds, (part_descriptors @ main, full_descriptors @ main))


def soft_map_from_descriptors(part_descriptors: FloatArray, full_descriptors: FloatArray, k: int = 5) -> SoftMap:
    """Soft map of the nearest descriptors: f(x, y) ~ exp(-|p(x) - q(y)|^2 / s), s a fifth of the median least distance.

    Raises
    ------
    InputError
        Where the descriptors do not have the same length.
    """
    if part_descriptors.ndim != 2 or part_descriptors.shape[1:] != full_descriptors.shape[1:]:
        raise InputError(f"Descriptors of shapes {part_descriptors.shape} and {full_descriptors.shape} do not compare.")
    p, q = part_descriptors.astype(np.float32), full_descriptors.astype(np.float32)
    nearest = ((p - q[nearest_points(p, q)]) ** 2).sum(axis=1)
    scale = np.float32(max(float(np.median(nearest)) / 5.0, 1e-6))
    return soft_map_from_features(2.0 * p / scale, q, -(q**2).sum(axis=1) / scale, k)


def _bases(
    part: Surface,
    full: Surface,
    part_basis: SpectralBasis | None,
    full_basis: SpectralBasis | None,
    eigenfunctions: int,
) -> PartialBases:
    left = basis_of(part, eigenfunctions) if part_basis is None else part_basis
    right = basis_of(full, eigenfunctions) if full_basis is None else full_basis
    return partial_bases(part, full, *(_shortened(basis, eigenfunctions) for basis in (left, right)))


def _shortened(basis: SpectralBasis, k: int) -> SpectralBasis:
    return SpectralBasis(basis.eigenvalues[:k], basis.functions[:, :k], basis.mass)
