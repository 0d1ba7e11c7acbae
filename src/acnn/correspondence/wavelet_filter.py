"""Functional maps filtered by wavelets: rounds of ZoomOut in which eigenfunctions of unlike frequency do not mix.

A functional map of nearly isometric shapes is nearly diagonal. In each round, the functional map C of the point map is
multiplied elementwise by the mask

    M_ij = sum_s g_s(lambda_i) g_s(mu_j)

with Meyer's filters g_s, a tight frame (sum_s g_s^2 = 1), on both spectra (Hu, Liu, Liu and others 2021, multiscale
spectral manifold wavelets preservation). The entries that it removes come from wrong matches, so the map recovers
from starts that ZoomOut, which begins with few eigenfunctions, does not.
"""

from __future__ import annotations

import numpy as np

from acnn.correspondence.functional_map import SpectralBasis, functional_map_from_point_map, nearest_points
from acnn.types import FloatArray, IntArray

SIZE, ROUNDS, FILTERS = 120, 5, 6
"""Eigenfunctions, rounds and filters (the authors use 128, 5 and 6)."""

FEWEST = 20
"""Eigenfunctions of a partial query."""


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
    >>> mask.shape, bool(np.allclose(np.diag(mask), 1.0)), bool(np.isclose(mask[0, 2], 0.0))
    ((3, 3), True, True)
    """
    top = max(float(query_values[-1]), float(reference_values[-1]), np.finfo(float).tiny)
    left, right = _meyer_filters(query_values / top, filters), _meyer_filters(reference_values / top, filters)
    return left.T @ right


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
