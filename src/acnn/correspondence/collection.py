"""Maps of a collection of shapes to one of them: the most central shape, similar shapes, and cycle consistency.

A map of shape i to the reference r is tested by going another way: to a similar shape j, and from there to r. Where
both agree, the cycle i -> j -> r -> i closes. A wrong map seldom closes any cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acnn.correspondence.functional_map import SpectralBasis
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

EIGENVALUES = 30
"""Eigenvalues by which shapes are compared: pose and triangulation hardly change them."""

TOLERANCE = 0.05
"""Distance on the reference, over the root of its area, at which two matches of a vertex count as different; 6 cm of a
human body, which good maps of different methods stay below."""

INCONSISTENT = 0.1
"""Cycle error from which on a map is dropped: two good maps differ by 0.01 to 0.05, exchanged limbs by 0.2 and more."""

PREFERRED = 1.25
"""The direct map is kept unless its cycle error is this many times that of a map through another shape."""


@dataclass(frozen=True, eq=False)
class ConsistentMap:
    """The one of several maps of a shape to the reference that agrees best with the others.

    Attributes
    ----------
    matches : (n,) array
        Reference vertices.
    index : int
        Which of the maps it is.
    cycle_error : float
        Mean distance on the reference, over the root of its area, to the matches of the other maps.
    agreement : (n,) array
        In 0..1: 1 where another map gives the same match, 1/e at a distance of `TOLERANCE`.
    """

    matches: IntArray
    index: int
    cycle_error: float
    agreement: FloatArray

    @property
    def consistent(self) -> bool:
        """Whether some other way around a cycle confirms most of the map."""
        return float(self.agreement.mean()) > 0.5 and self.cycle_error < INCONSISTENT


def spectral_distances(bases: Sequence[SpectralBasis]) -> FloatArray:
    """Differences between shapes, free of scale, pose and triangulation.

        d_ij = mean_k |log lambda_k(i) - log lambda_k(j)|

    over the first `EIGENVALUES` eigenvalues of the Laplacian but the first, which is 0.

    Parameters
    ----------
    bases : sequence of SpectralBasis
        Of s shapes.

    Returns
    -------
    (s, s) array
    """
    count = min(EIGENVALUES, *(basis.size for basis in bases))
    logs = np.array([np.log(np.maximum(basis.eigenvalues[1:count], 1e-12)) for basis in bases])
    return np.abs(logs[:, None] - logs[None]).mean(axis=2)


def central_shape(distances: FloatArray) -> int:
    """The shape with the smallest sum of distances to the others."""
    return int(distances.sum(axis=1).argmin())


def similar_shapes(distances: FloatArray, shape: int, count: int, without: int) -> list[int]:
    """The shapes nearest to one of them, other than itself and one more.

    Parameters
    ----------
    distances : (s, s) array
        Between shapes.
    shape : int
        Whose neighbours are asked for.
    count : int
        How many, or fewer where there are not as many.
    without : int
        Left out: the reference, which is no detour.
    """
    order = np.argsort(distances[shape], kind="stable")
    return [int(other) for other in order if other not in (shape, without)][:count]


def most_consistent(maps: Sequence[IntArray], query: Surface, reference: Surface) -> ConsistentMap:
    """Of several maps of a shape to the reference, the one that agrees best with the others.

    Parameters
    ----------
    maps : sequence of (n,) int array
        At least one; the first is the direct one, which is preferred (`PREFERRED`).
    query, reference : Surface
        Of n and m vertices.

    Returns
    -------
    ConsistentMap
        Of a single map, with an error of 0: there is nothing to compare it with.
    """
    positions = reference.vertices[np.array(maps)] / np.sqrt(reference.vertex_areas.sum())
    count = len(positions)
    if count == 1:
        return ConsistentMap(maps[0], 0, 0.0, np.ones(len(maps[0])))
    areas = query.vertex_areas / query.vertex_areas.sum()
    apart = np.linalg.norm(positions[:, None] - positions[None], axis=3)  # (maps, maps, n)
    errors = (apart.sum(axis=1) / (count - 1)) @ areas
    best = int(errors.argmin())
    best = 0 if errors[0] <= PREFERRED * errors[best] else best
    nearest = np.delete(apart[best], best, axis=0).min(axis=0)
    return ConsistentMap(maps[best], best, float(errors[best]), np.exp(-((nearest / TOLERANCE) ** 2)))
