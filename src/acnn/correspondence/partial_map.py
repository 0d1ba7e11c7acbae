"""Partial functional maps: from a partial shape to the full shape.

There are two entry points: `partial_map` refines matches (of a network), `partial_map_from_descriptors` starts from
descriptors such as SHOT and needs no training. Both have the same steps:

1. guided ZoomOut along the slanted diagonal (`partial_search.py`), from functional maps of several sizes;
2. corresponding functions (heat kernels at consistent matches), and minimisation of the energy over the map C and the
   region v in alternation (`partial_energy.py`);
3. ZoomOut again, from that C and ignoring matches outside the region;
4. of all maps, including the start, the one that distorts lengths least.
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
"""Number of vertices below which a partial shape cannot be matched by descriptors alone."""


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
    """Refine matches of a partial shape to the full shape; many of them must be right, others may be arbitrary.

    A map is judged without ground truth by its distortion, the mean over edges of min(1, |l' - l| / l) with l the
    length of an edge and l' the distance of its ends' matches. The least distorted one is taken if it agrees with
    at least half of the start's trusted matches (to within a tenth of the root of the full shape's area; trusted are
    those whose neighbours are matched at the right distance, weighted by confidence and area), else the start is kept.

    Parameters
    ----------
    matches : SoftMap or array_like
        Soft map, or (n,) vertices of the full shape.
    part, full : Surface
        The partial and the full shape, in the SAME unit of length: surface_of(part, unit=full.unit).
    confidence : (n,) array or None
        In 0..1, for a point map.
    part_basis, full_basis : SpectralBasis or None
        From `basis_of`, to save computing them.
    eigenfunctions : int
        Largest number to use of each shape.
    rounds : int
        Largest number of repetitions of steps 2 and 3; they end when the map does not improve.

    Returns
    -------
    PartialMap
        The least distorted map, or the start.

    Raises
    ------
    InputError
        Where the matches do not fit the shapes, or the shapes are in different units.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.datasets.parts import cut_part
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> from scipy.spatial import ConvexHull
    >>> points = np.random.default_rng(0).standard_normal((300, 3))
    >>> points /= np.linalg.norm(points, axis=1, keepdims=True)
    >>> faces = ConvexHull(points).simplices.astype(np.int32)
    >>> outward = np.linalg.det(points[faces]) > 0
    >>> faces[~outward] = faces[~outward][:, ::-1]
    >>> mesh = Mesh(points * [1.0, 1.4, 2.0], faces)
    >>> part, truth = cut_part(mesh, "cuts", missing=0.4)
    >>> matches = truth.copy()
    >>> matches[::5] = 0
    >>> full = surface_of(mesh)
    >>> result = partial_map(matches, surface_of(part, unit=full.unit), full)
    >>> result.report.used, result.report.distortion.after < result.report.distortion.before
    ('pfm', True)
    """
    if not isinstance(matches, SoftMap):
        matches = soft_map_from_point_map(matches, len(full.vertices), confidence)
    elif confidence is not None:
        raise InputError("A soft map has its own confidence: omit the argument.")
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
    """Match a partial shape to the full shape by descriptors alone.

    The nearest descriptors give matches to start from, and the principal components of the descriptors the first
    corresponding functions; later rounds use the best matches.

    Parameters
    ----------
    part, full : Surface
        The partial and the full shape, in the SAME unit of length.
    part_descriptors, full_descriptors : (n, p) and (m, p) array or None
        None is SHOT of both.
    part_basis, full_basis : SpectralBasis or None
        From `basis_of`, to save computing them.
    eigenfunctions : int
        Largest number to use of each shape.
    rounds : int
        Largest number of outer rounds, the first with the descriptors.
    functions : int
        Number of principal components.

    Returns
    -------
    PartialMap
        The least distorted map.

    Raises
    ------
    InputError
        For a partial shape of fewer than `SMALLEST` vertices, or shapes in different units.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.datasets.parts import cut_part
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> from scipy.spatial import ConvexHull
    >>> points = np.random.default_rng(0).standard_normal((300, 3))
    >>> points /= np.linalg.norm(points, axis=1, keepdims=True)
    >>> faces = ConvexHull(points).simplices.astype(np.int32)
    >>> outward = np.linalg.det(points[faces]) > 0
    >>> faces[~outward] = faces[~outward][:, ::-1]
    >>> mesh = Mesh(points * [1.0, 1.4, 2.0], faces)
    >>> part, truth = cut_part(mesh, "cuts", missing=0.4)
    >>> full = surface_of(mesh)
    >>> result = partial_map_from_descriptors(surface_of(part, unit=full.unit), full, rounds=1)
    >>> result.report.distortion.after <= result.report.distortion.before
    True
    """
    if len(part.vertices) < SMALLEST:
        raise InputError(
            f"The partial shape has {len(part.vertices)} vertices; at least {SMALLEST} are needed to match it by "
            "descriptors. Give a larger or finer mesh, or start from known matches with partial_map."
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

    Parameters
    ----------
    part_descriptors, full_descriptors : (n, p) and (m, p) array
    k : int
        Number of matches to keep per vertex.

    Returns
    -------
    SoftMap
        Of n vertices to m.

    Raises
    ------
    InputError
        Where the descriptors do not have the same length.
    """
    if part_descriptors.ndim != 2 or part_descriptors.shape[1:] != full_descriptors.shape[1:]:
        raise InputError(
            f"Descriptors of shapes {part_descriptors.shape} and {full_descriptors.shape} cannot be compared."
        )
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
