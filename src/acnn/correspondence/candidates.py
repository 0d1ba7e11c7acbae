"""Several candidate maps of one pair of shapes, and the choice between them without ground truth.

A refinement that starts from wrong matches ends in a wrong map that looks smooth. Other starts end elsewhere: each map
is measured (`MapMeter`), and the one of least cost is taken,

    cost = stretch + TURNED turned + DOUBT (1 - trust) + UNSEEN (1 - evidence)

with the means over the query's area. Candidates are the refined map, the start refined by `filtered_zoomout`, and
`sign_alternatives`: the same map with signs of the first eigenfunctions changed, as MapTree does, which contains the
mirrored map and maps with front and back or limbs exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from acnn.correspondence.functional_map import (
    SpectralBasis,
    basis_of,
    functional_map_from_point_map,
    nearest_points,
    orthogonality,
)
from acnn.correspondence.map_measures import MapMeasures, area_ratio
from acnn.correspondence.refine import EIGENFUNCTIONS, suitable_method
from acnn.correspondence.zoomout import filtered_zoomout, mass_around, spread_vertices
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

TURNED, DOUBT, UNSEEN = 0.15, 0.15, 0.05
"""Weights of the other measures beside the stretch."""

MARGIN = 0.1
"""Fraction of its cost by which another map must be better than the first."""

FLIPPED, SIZES, SPREAD = 7, (8, 10, 13, 16, 20, 25, 30, 40), 300
"""Eigenfunctions whose signs are changed, sizes of ZoomOut, and its samples."""

MIRRORED, LONGER = 0.6, 2.0
"""Turned fraction from which a map is a mirrored one, and how many times the stretch of the best map it may have."""

APART = 0.1
"""Mean squared distance in the space of the first eigenfunctions, over that of random points, from which maps are
different ones."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A map, what it was made from, and its measures."""

    name: str
    query_to_reference: IntArray
    measures: MapMeasures

    @property
    def cost(self) -> float:
        """See the module; lower is better."""
        means = self.measures.means
        return (
            means["stretch"]
            + TURNED * means["turned"]
            + DOUBT * (1.0 - means["trust"])
            + UNSEEN * (1.0 - means.get("evidence", 1.0))
        )


def best_candidate(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate of least cost; the first one unless another is better by `MARGIN`."""
    best = min(candidates, key=lambda candidate: candidate.cost)
    return best if best.cost < (1.0 - MARGIN) * candidates[0].cost else candidates[0]


def mirrored_candidate(candidates: Sequence[Candidate], chosen: Candidate) -> Candidate | None:
    """The candidate of least stretch that turns the surface inside out where the chosen one does not; None without."""
    limit = LONGER * chosen.measures.means["stretch"]
    inside_out = [
        candidate
        for candidate in candidates
        if candidate.measures.means["turned"] > MIRRORED > chosen.measures.means["turned"]
        and candidate.measures.means["stretch"] <= limit
    ]
    return min(inside_out, key=lambda candidate: candidate.measures.means["stretch"], default=None)


def filtered(start: IntArray, query: Surface, reference: Surface) -> IntArray:
    """A start refined by `filtered_zoomout`, with the ratio of areas where the query is a partial shape.

    Parameters
    ----------
    start : (n,) int array
        Reference vertex of each query vertex; most may be wrong.
    query, reference : Surface
        In the same unit.

    Returns
    -------
    (n,) int32 array
        Reference vertex of each query vertex.
    """
    method, _ = suitable_method(query, reference)
    ratio = min(1.0, area_ratio(query, reference)) if method == "pfm" else 1.0
    left, right = basis_of(query, EIGENFUNCTIONS["zoomout"]), basis_of(reference, EIGENFUNCTIONS["zoomout"])
    return filtered_zoomout(start, left, right, ratio=ratio)


def sign_alternatives(
    query_to_reference: IntArray, query: SpectralBasis, reference: SpectralBasis, count: int = 4
) -> list[IntArray]:
    """Other maps: signs of the first eigenfunctions are changed in all ways, and each is refined by a small ZoomOut.

    Parameters
    ----------
    query_to_reference : (n,) int array
        A map of query to reference.
    query, reference : SpectralBasis
        Bases; with fewer than `SIZES[-1]` functions there are no alternatives.
    count : int
        Largest number of maps.

    Returns
    -------
    list of (n,) int32 arrays
        The most nearly orthogonal ones that differ from each other, best first; the map itself is mostly among them.
    """
    last = SIZES[-1]
    if min(query.size, reference.size) < last:
        return []
    rows = spread_vertices(query, SPREAD)
    weights = mass_around(query, rows)[:, None]
    left, _, right = np.linalg.svd(functional_map_from_point_map(query, reference, query_to_reference, SIZES[0]))
    leaves: list[FloatArray] = []
    for signs in product((1.0, -1.0), repeat=FLIPPED):
        flip = np.ones((SIZES[0], 1))
        flip[1 : 1 + FLIPPED, 0] = signs
        current = flip * (left @ right)
        for k, following in pairwise(SIZES):
            matched = nearest_points(query.first(k)[rows], reference.first(k) @ current.T)
            current = (weights * query.first(following)[rows]).T @ reference.first(following)[matched]
        leaves.append(current)
    leaves.sort(key=orthogonality)
    points, maps = reference.first(SIZES[0])[:, 1:], list[IntArray]()
    for leaf in leaves:
        matched = nearest_points(query.first(last), reference.first(last) @ leaf.T)
        gaps = (query.mass @ ((points[matched] - points[other]) ** 2).sum(axis=1) for other in maps)
        if all(gap > APART * 2 * points.shape[1] for gap in gaps):  # functions have mean 0 and mean square 1
            maps.append(matched)
        if len(maps) == count:
            break
    return maps
