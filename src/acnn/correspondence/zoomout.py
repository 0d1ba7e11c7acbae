"""ZoomOut: point maps refined by functional maps of growing size, or of one size and filtered by wavelets.

ZoomOut (Melzi, Ren, Rodola and others 2019) alternates between a point map and its functional map, which grows from
round to round. With wavelets, the functional map C keeps its size, and is multiplied elementwise by the mask

    M_ij = sum_s g_s(lambda_i) g_s(mu_j)

with Meyer's filters g_s, a tight frame (sum_s g_s^2 = 1), on both spectra (Hu, Liu, Liu and others 2021, multiscale
spectral manifold wavelets preservation): the map of nearly isometric shapes is nearly diagonal, and eigenfunctions of
unlike frequency do not mix. The entries that the mask removes come from wrong matches, so the map recovers from starts
that ZoomOut, which begins with few eigenfunctions, does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from acnn.correspondence.functional_map import (
    SpectralBasis,
    functional_map_from_pairs,
    functional_map_from_point_map,
    nearest_points,
    query_to_reference_from_functional_map,
)
from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.types import FloatArray, IntArray

SIZE, ROUNDS, FILTERS = 120, 5, 6
"""Eigenfunctions, rounds and filters (the authors use 128, 5 and 6)."""

FEWEST = 20
"""Eigenfunctions of a partial query."""


def zoomout(
    query: SpectralBasis,
    reference: SpectralBasis,
    query_to_reference: ArrayLike | None = None,
    functional_map: FloatArray | None = None,
    *,
    sizes: Sequence[int],
    samples: int | None = None,
) -> tuple[IntArray, FloatArray]:
    """Refine a point map or a functional map of query to reference.

    For every size k in turn:

        C_k = Phi_k^T diag(mass) Psi_k(y),      y(x) = argmin_y |Phi_k(x) - Psi_k(y) C_k^T|

    Parameters
    ----------
    query, reference : SpectralBasis
        Bases with at least sizes[-1] functions.
    query_to_reference : (n,) array or None
        Point map to start from, or
    functional_map : (k, k) array or None
        functional map to start from.
    sizes : Sequence[int]
        Numbers of eigenfunctions, ascending; see `zoomout_sizes`.
    samples : int or None
        Number of evenly spread query vertices used before the last size; None is all of them. Saves time above some
        ten thousand vertices; at least 16 per eigenfunction are needed.

    Returns
    -------
    query_to_reference : (n,) int32 array
        Reference vertex of each query vertex.
    functional_map : (sizes[-1], sizes[-1]) array
        Of the last size.

    Raises
    ------
    InputError
        Where not exactly one start is given, or sizes do not ascend.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.correspondence.functional_map import basis_of
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> from scipy.spatial import ConvexHull
    >>> points = np.random.default_rng(0).standard_normal((200, 3))
    >>> points /= np.linalg.norm(points, axis=1, keepdims=True)
    >>> faces = ConvexHull(points).simplices.astype(np.int32)
    >>> outward = np.linalg.det(points[faces]) > 0
    >>> faces[~outward] = faces[~outward][:, ::-1]
    >>> basis = basis_of(surface_of(Mesh(points * [1.0, 1.4, 2.0], faces)), 30)
    >>> matches = np.arange(200)
    >>> matches[::10] = 0
    >>> query_to_reference, functional_map = zoomout(basis, basis, matches, sizes=[10, 20, 30])
    >>> bool((query_to_reference == np.arange(200)).mean() > 0.95), functional_map.shape
    (True, (30, 30))
    """
    if (query_to_reference is None) == (functional_map is None):
        raise InputError("ZoomOut starts from a point map or from a functional map: give one of them.")
    if not len(sizes) or any(b <= a for a, b in pairwise(sizes)):
        raise InputError(f"The sizes of ZoomOut must ascend; they are {list(sizes)}.")
    query.first(sizes[-1]), reference.first(sizes[-1])  # raises at once where a basis is too small
    if query_to_reference is not None:
        matched = checked_point_map(query_to_reference, len(reference), size=len(query))
    elif functional_map is not None:
        matched = query_to_reference_from_functional_map(functional_map, query, reference, side="query")
    # The start may be rough: all of it is used once, and only later sizes are sampled.
    current = functional_map_from_point_map(query, reference, matched, sizes[0])
    rows, weights = None, None
    if samples is not None and samples < len(query):
        rows = spread_vertices(query, samples)
        weights = mass_around(query, rows)
    for k, following in pairwise(sizes):
        phi = query.first(k) if rows is None else query.first(k)[rows]
        matched = nearest_points(phi, reference.first(k) @ current.T)
        current = _projection(query, reference, rows, weights, matched, following)
    return query_to_reference_from_functional_map(current, query, reference, side="query"), current


def zoomout_sizes(start: int = 20, stop: int = 125, step: int = 5) -> list[int]:
    """Numbers of eigenfunctions for `zoomout`.

    Parameters
    ----------
    start, stop : int
        First and last size.
    step : int
        Difference between sizes.

    Returns
    -------
    list[int]
        Ascending.

    Raises
    ------
    InputError
        Where start, stop and step do not describe such a list.

    Examples
    --------
    >>> zoomout_sizes(20, 32, 5)
    [20, 25, 30, 32]
    """
    if not (0 < start <= stop and step > 0):
        raise InputError(f"ZoomOut cannot go from {start} to {stop} eigenfunctions in steps of {step}.")
    return [*range(start, stop, step), stop]


def filtered_zoomout(
    query_to_reference: IntArray,
    query: SpectralBasis,
    reference: SpectralBasis,
    *,
    ratio: float = 1.0,
    size: int = SIZE,
    rounds: int = ROUNDS,
) -> IntArray:
    """Refine a point map by functional maps of one size, filtered by `wavelet_mask`.

    Parameters
    ----------
    query_to_reference : (n,) int array
        The start; most of its matches may be wrong.
    query, reference : SpectralBasis
        Bases; the smaller one limits the size.
    ratio : float
        Area of a partial query over that of the reference: so much fewer eigenfunctions are its own, and eigenvalues
        are compared in one unit of length. 1 for full shapes, whose areas are made equal.
    size : int
        Number of eigenfunctions of the reference.
    rounds : int
        How often functional map and point map are computed.

    Returns
    -------
    (n,) int32 array
        Reference vertex of each query vertex.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn import builtin_human
    >>> from acnn.correspondence.functional_map import basis_of
    >>> from acnn.surface.surface import surface_of
    >>> basis = basis_of(surface_of(builtin_human()), 120)
    >>> matches = np.arange(2500)
    >>> matches[::2] = np.random.default_rng(0).integers(0, 2500, 1250)
    >>> bool((filtered_zoomout(matches, basis, basis) == np.arange(2500)).mean() > 0.9)
    True
    """
    right = min(size, reference.size)
    left = min(max(FEWEST, round(ratio * right)), right, query.size)
    mask = wavelet_mask(query.eigenvalues[:left], ratio * reference.eigenvalues[:right])
    matched = np.asarray(query_to_reference)
    for _ in range(rounds):
        current = functional_map_from_point_map(query, reference, matched, (left, right)) * mask
        matched = nearest_points(query.first(left), reference.first(right) @ current.T)
    return matched


def wavelet_mask(query_values: FloatArray, reference_values: FloatArray, filters: int = FILTERS) -> FloatArray:
    """Mask of a functional map: 1 for equal eigenvalues, 0 for those that no filter has in common.

    Parameters
    ----------
    query_values, reference_values : (k,) and (l,) array
        Eigenvalues, each times the area of its shape.
    filters : int
        Number of filters, each an octave wide; the first covers all lower frequencies.

    Returns
    -------
    (k, l) array
        In 0..1.

    Examples
    --------
    >>> mask = wavelet_mask(np.array([0.0, 1.0, 30.0]), np.array([0.0, 1.0, 30.0]))
    >>> bool(np.allclose(np.diag(mask), 1.0)), bool(mask[0, 2] < 1e-9)
    (True, True)
    """
    top = max(float(query_values[-1]), float(reference_values[-1]), np.finfo(float).tiny)
    left, right = _meyer_filters(query_values / top, filters), _meyer_filters(reference_values / top, filters)
    return left.T @ right


def spread_vertices(basis: SpectralBasis, count: int, k: int = 20) -> IntArray:
    """(count,) vertices spread evenly by farthest-point sampling in the space of the first k eigenfunctions.

    The first is the vertex farthest from the mean. The result depends neither on the order of vertices nor on the signs
    of eigenfunctions, unless two vertices are equally far.
    """
    points = basis.first(min(k, basis.size))
    samples = np.empty(min(count, len(basis)), dtype=np.int32)
    gap = ((points - basis.mass @ points) ** 2).sum(axis=1)
    samples[0] = int(gap.argmax())
    gap = np.full(len(points), np.inf)
    for i in range(1, len(samples)):
        gap = np.minimum(gap, ((points - points[samples[i - 1]]) ** 2).sum(axis=1))
        samples[i] = int(gap.argmax())
    return samples


def mass_around(basis: SpectralBasis, rows: IntArray, k: int = 20) -> FloatArray:
    """(rows,) mass of the vertices nearest to each sample: thin limbs are sampled more densely."""
    points = basis.first(min(k, basis.size))
    nearest = nearest_points(points, points[rows])
    return np.bincount(nearest, weights=basis.mass, minlength=len(rows)).astype(float)


def _projection(
    query: SpectralBasis,
    reference: SpectralBasis,
    rows: IntArray | None,
    weights: FloatArray | None,
    matched: IntArray,
    k: int,
) -> FloatArray:
    if rows is None:
        return functional_map_from_point_map(query, reference, matched, k)
    return functional_map_from_pairs(query, reference, rows, matched, k, weights)


def _meyer_filters(values: FloatArray, filters: int) -> FloatArray:
    """(filters, k) Meyer's scaling function and wavelets at frequencies in 0..1."""
    rows = []
    for octave in range(filters - 1):
        x = values * 4.0 / 3.0 * 2.0**octave
        rising, falling = 0.5 * np.pi * _ramp(1.5 * x - 1.0), 0.5 * np.pi * _ramp(0.75 * x - 1.0)
        rows.append(np.where(x < 4.0 / 3.0, np.sin(rising), np.cos(falling)))
    return np.array([np.cos(rising), *rows])


def _ramp(x: FloatArray) -> FloatArray:
    """Meyer's smooth step from 0 to 1."""
    x = np.clip(x, 0.0, 1.0)
    return x**4 * (35.0 - 84.0 * x + 70.0 * x**2 - 20.0 * x**3)
