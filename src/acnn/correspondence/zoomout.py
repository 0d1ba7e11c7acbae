"""ZoomOut: a point map refined by going up the spectrum, a few eigenfunctions at a time.

Melzi, Ren, Rodola, Sharma, Wonka, Ovsjanikov, ZoomOut: spectral upsampling for efficient shape correspondence, 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from acnn.correspondence.basis import SpectralBasis, nearest_points
from acnn.correspondence.functional_map import (
    functional_map_from_pairs,
    functional_map_from_point_map,
    query_to_reference_from_functional_map,
)
from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.shapes.shape import FloatArray, IntArray


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
    - query, reference: bases with at least sizes[-1] functions
    - query_to_reference: (n,) the start; or
    - functional_map: (k, k) the start, as in `functional_map.py`
    - sizes: numbers of eigenfunctions, ascending; see `zoomout_sizes`
    - samples: query vertices used before the last size, spread evenly; None is all of them. Worth it above some ten
      thousand vertices, with at least 16 per eigenfunction: fewer lose the map

    Returns (n,) reference vertices and the last functional map (sizes[-1], sizes[-1]).
    Raises InputError where not exactly one start is given, or sizes do not ascend.
    """
    if (query_to_reference is None) == (functional_map is None):
        raise InputError("ZoomOut starts from a point map or from a functional map: give one of them.")
    if not len(sizes) or any(b <= a for a, b in pairwise(sizes)):
        raise InputError(f"The sizes of ZoomOut must ascend; they are {list(sizes)}.")
    query.first(sizes[-1]), reference.first(sizes[-1])  # say at once where a basis is too small
    if query_to_reference is not None:
        matched = checked_point_map(query_to_reference, len(reference), size=len(query))
    elif functional_map is not None:
        matched = query_to_reference_from_functional_map(functional_map, query, reference, side="query")
    # The start may be rough: all of it counts once, and only what follows is sampled.
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
    """Sizes from start to stop, both included, `step` apart."""
    if not (0 < start <= stop and step > 0):
        raise InputError(f"ZoomOut cannot go from {start} to {stop} eigenfunctions in steps of {step}.")
    return [*range(start, stop, step), stop]


def spread_vertices(basis: SpectralBasis, count: int, k: int = 20) -> IntArray:
    """(count,) vertices spread evenly by farthest-point sampling in the space of the first k eigenfunctions.

    The first is the vertex farthest from the mean. Neither the order of vertices nor the signs of eigenfunctions play a
    part, unless two vertices are equally far.
    """
    points = basis.first(min(k, basis.size))
    chosen = np.empty(min(count, len(basis)), dtype=np.int32)
    gap = ((points - basis.mass @ points) ** 2).sum(axis=1)
    chosen[0] = int(gap.argmax())
    gap = np.full(len(points), np.inf)
    for i in range(1, len(chosen)):
        gap = np.minimum(gap, ((points - points[chosen[i - 1]]) ** 2).sum(axis=1))
        chosen[i] = int(gap.argmax())
    return chosen


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


def mass_around(basis: SpectralBasis, rows: IntArray, k: int = 20) -> FloatArray:
    """(rows,) mass of the vertices nearest to each sample: thin limbs hold more samples than their share of area."""
    points = basis.first(min(k, basis.size))
    nearest = nearest_points(points, points[rows])
    return np.bincount(nearest, weights=basis.mass, minlength=len(rows)).astype(float)
