"""Guided ZoomOut: as smooth as a functional map, and as accurate as the soft map where that is right.

ZoomOut alone forgets its start: its map is smooth but blurred, and follows an isometry where there is none. Here the
soft map guides every size k. Its matches that fit the current functional map C replace those of ZoomOut before the
next, larger functional map is fitted; matches that do not fit (outliers, the other side of the body) are ignored.

How far a candidate y lies from ZoomOut's own match z(x) on the reference is measured in edges there,

    e(x, y)^2 = (|Phi(x) - Psi(y) C^T|^2 - |Phi(x) - Psi(z) C^T|^2) / g(y)

with g(y) the mean of |Psi(y) C^T - Psi(y') C^T|^2 over the edges (y, y') at y. Where they differ, either the network is
wrong or the functional map is blurred. Neighbours decide: a match is supported if most neighbours of x are matched at
about the right distance from it, and errors of a network seldom are. So

- a supported best match is kept if it is within the resolution of the functional map of z(x): half of sqrt(area / k),
  or less where the network's matches are mostly nearer;
- elsewhere the candidate of least cost is taken, with z(x) itself at the cost -log(outlier):

      cost(x, y) = -log(outlier) e(x, y)^2 / limit^2 - log f(x, y).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.correspondence.functional_map import (
    SpectralBasis,
    functional_map_from_pairs,
    functional_map_from_point_map,
    nearest_points,
)
from acnn.correspondence.soft_map import SoftMap
from acnn.errors import InputError
from acnn.shapes.topology import mesh_edges
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

LIMIT = 0.5
"""How far from ZoomOut's match, in edges of the reference, an unsupported match of probability 1 is still taken."""

WIDEST = 4.0
"""How far, in edges, a supported match may be from ZoomOut's in the spectral space: limbs that touch stay separate."""

OUTLIER = 0.01
"""Probability of ZoomOut's own match against those of the soft map."""

SUPPORTED = 0.75
"""Fraction of neighbours that must agree with a match."""


@dataclass(frozen=True, eq=False)
class GuidedMap:
    """Result of `guided_zoomout`.

    Attributes
    ----------
    query_to_reference : (n,) array
        Reference vertices.
    functional_map : (k, k) array
        Of the last size.
    from_network : (n,) array
        True where the match is one of the soft map's.
    """

    query_to_reference: IntArray
    functional_map: FloatArray
    from_network: NDArray[np.bool_]


def guided_zoomout(
    soft_map: SoftMap,
    query: Surface,
    reference: Surface,
    query_basis: SpectralBasis,
    reference_basis: SpectralBasis,
    *,
    sizes: Sequence[int],
    limit: float = LIMIT,
    outlier: float = OUTLIER,
) -> GuidedMap:
    """Refine a soft map of query to reference.

    Parameters
    ----------
    soft_map : SoftMap
        Of the network; all its listed matches are candidates.
    query, reference : Surface
        Mesh or cloud, in the same unit of length or each normalised by its own diameter.
    query_basis, reference_basis : SpectralBasis
        With at least sizes[-1] functions.
    sizes : Sequence[int]
        Numbers of eigenfunctions, ascending; the first should be small (10 to 30), as it is fitted to raw matches.
    limit : float
        Distance from ZoomOut's match, in edges of the reference, see `LIMIT`.
    outlier : float
        Probability of ZoomOut's own match, see `OUTLIER`.

    Returns
    -------
    GuidedMap
        The refined map.

    Raises
    ------
    InputError
        Where sizes do not ascend or the soft map belongs to other shapes.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.correspondence.functional_map import basis_of
    >>> from acnn.correspondence.soft_map import soft_map_from_point_map
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> from scipy.spatial import ConvexHull
    >>> points = np.random.default_rng(0).standard_normal((200, 3))
    >>> points /= np.linalg.norm(points, axis=1, keepdims=True)
    >>> faces = ConvexHull(points).simplices.astype(np.int32)
    >>> outward = np.linalg.det(points[faces]) > 0
    >>> faces[~outward] = faces[~outward][:, ::-1]
    >>> surface = surface_of(Mesh(points * [1.0, 1.4, 2.0], faces))
    >>> basis, matches = basis_of(surface, 30), np.arange(200)
    >>> matches[::10] = 0
    >>> soft_map = soft_map_from_point_map(matches, 200)
    >>> guided = guided_zoomout(soft_map, surface, surface, basis, basis, sizes=[10, 20, 30])
    >>> bool((guided.query_to_reference == np.arange(200)).all())
    True
    """
    if soft_map.vertices.shape[0] != len(query_basis) or soft_map.reference_size != len(reference_basis):
        raise InputError(
            f"{soft_map!r} does not belong to a query of {len(query_basis)} and a reference of "
            f"{len(reference_basis)} vertices."
        )
    if not len(sizes) or any(b <= a for a, b in pairwise(sizes)):
        raise InputError(f"The sizes of ZoomOut must ascend; they are {list(sizes)}.")
    query_basis.first(sizes[-1]), reference_basis.first(sizes[-1])  # raises at once where a basis is too small
    edges = mesh_edges(reference.faces).vertices
    support = local_support(soft_map.query_to_reference, query, reference)
    current = robust_functional_map(soft_map, query_basis, reference_basis, sizes[0])

    def match(functional_map: FloatArray) -> tuple[IntArray, NDArray[np.bool_]]:
        k = len(functional_map)
        query_embedding = query_basis.first(k).astype(np.float32)
        reference_embedding = (reference_basis.first(k) @ functional_map.T).astype(np.float32)
        return match_vertices(query_embedding, reference_embedding, soft_map, support, reference, edges, limit, outlier)

    matched, from_network = match(current)
    for k in sizes[1:]:
        current = functional_map_from_point_map(query_basis, reference_basis, matched, k)
        matched, from_network = match(current)
    return GuidedMap(matched, current, from_network)


def local_support(query_to_reference: IntArray, query: Surface, reference: Surface) -> FloatArray:
    """Fraction of the neighbours of each query vertex whose match lies at about the right distance from its own.

    Right is between half and twice the length of the edge on the query. Matches that coincide count as wrong.

    Parameters
    ----------
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.
    query, reference : Surface
        Mesh or cloud in the same unit of length.

    Returns
    -------
    (n,) array
        In 0..1.
    """
    edges = mesh_edges(query.faces).vertices
    length = np.linalg.norm(query.vertices[edges[:, 0]] - query.vertices[edges[:, 1]], axis=1)
    ends = reference.vertices[query_to_reference[edges]]
    image = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    right = (image >= 0.5 * length) & (image <= 2.0 * length)
    n = len(query_to_reference)
    agreeing = np.bincount(edges.ravel(), weights=np.repeat(right, 2), minlength=n)
    return agreeing / np.maximum(np.bincount(edges.ravel(), minlength=n), 1)


def robust_functional_map(
    soft_map: SoftMap, query: SpectralBasis, reference: SpectralBasis, k: int, rounds: int = 6
) -> FloatArray:
    """(k, k) functional map of the best matches, weighted by area and confidence; outliers lose their weight.

    Least squares is repeated with the weights w / (1 + r^2 / s^2)^2 (Geman and McClure), where r is the residual of a
    match and s the median residual of the more confident half.
    """
    vertices = np.arange(len(query), dtype=np.int32)
    phi, psi = query.first(k), reference.first(k)[soft_map.query_to_reference]
    trust = query.mass * np.maximum(soft_map.confidence, 1e-6)
    confident = soft_map.confidence >= np.median(soft_map.confidence)
    weights = trust
    for _ in range(rounds):
        current = functional_map_from_pairs(query, reference, vertices, soft_map.query_to_reference, k, weights)
        residual = ((phi @ current - psi) ** 2).sum(axis=1)
        scale = max(float(np.median(residual[confident])), 1e-12)
        weights = trust / (1.0 + residual / scale) ** 2
    return current


def match_vertices(
    query_embedding: NDArray[np.float32],
    reference_embedding: NDArray[np.float32],
    soft_map: SoftMap,
    support: FloatArray,
    reference: Surface,
    edges: IntArray,
    limit: float,
    outlier: float,
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Match every query vertex, to a candidate of the soft map or to ZoomOut's own match.

    Parameters
    ----------
    query_embedding, reference_embedding : (n, k) and (m, k) array
        Phi and Psi C^T.
    soft_map : SoftMap
        The candidates.
    support : (n,) array
        `local_support` of its best matches.
    reference : Surface
        Mesh or cloud of m vertices.
    edges : (e, 2) int array
        Of the reference.
    limit, outlier : float
        As for `guided_zoomout`.

    Returns
    -------
    query_to_reference : (n,) int32 array
        Reference vertex of each query vertex.
    from_network : (n,) bool array
        True where the match is one of the soft map's.
    """
    k = query_embedding.shape[1]
    own = nearest_points(query_embedding, reference_embedding)
    spacing = _squared_spacing(reference_embedding, edges)
    first = soft_map.query_to_reference
    price = float(-np.log(outlier))
    best, cheapest, excess = own.copy(), np.full(len(own), price), np.empty(len(own))
    _take_cheapest(
        *(query_embedding, reference_embedding, spacing, soft_map.vertices, soft_map.probabilities),
        *(price / limit**2, outlier, best, cheapest, excess),
    )
    kept = (support >= SUPPORTED) & (excess <= WIDEST**2) & _within_blur(first, own, support, reference, k)
    best[kept] = first[kept]
    return best, kept | (cheapest < price)


@compiled(nogil=True)
def _take_cheapest(  # type: ignore[no-untyped-def]
    query, reference, spacing, vertices, probabilities, weight, outlier, best, cheapest, first_excess
):
    """Replace matches by the candidate of least cost, where that is less than the cost so far.

    Candidates no more probable than `outlier` cost more than ZoomOut's own match, wherever they are.

    Parameters
    ----------
    query, reference : (n, k) and (m, k) float32 array
        Spectral embeddings.
    spacing : (m,) array
        Squared length of edges there.
    vertices, probabilities : (n, c) array
        Candidates, most probable first.
    weight : float
        Cost of one squared edge.
    outlier : float
        Least probability.
    best, cheapest : (n,) array
        Matches and their costs; ZoomOut's own at first, changed in place.
    first_excess : (n,) array
        Output: e(x, y)^2 of the most probable candidate.
    """
    for i in range(len(query)):
        base = _squared_distance(query[i], reference[best[i]])
        for j in range(vertices.shape[1]):
            chance = probabilities[i, j]
            if j > 0 and not chance > outlier:
                break
            candidate = vertices[i, j]
            # rounding may leave it below zero where the candidate is ZoomOut's own match
            excess = max(_squared_distance(query[i], reference[candidate]) - base, 0.0) / spacing[candidate]
            if j == 0:
                first_excess[i] = excess
            cost = weight * excess - math.log(max(chance, 1e-30))
            if cost < cheapest[i]:
                best[i], cheapest[i] = candidate, cost


@compiled(nogil=True, fastmath=True)
def _squared_distance(p, q):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for k in range(len(p)):
        gap = p[k] - q[k]
        total += gap * gap
    return total


def _within_blur(
    candidate: IntArray, own: IntArray, support: FloatArray, reference: Surface, k: int
) -> NDArray[np.bool_]:
    """(n,) whether a candidate is as near to ZoomOut's match as k eigenfunctions resolve.

    They resolve lengths of about sqrt(area / k); half of that is the most. The spectral distance does not grow
    beyond that length, so it cannot separate a small error from a large one; the Euclidean distance can.
    """
    apart = np.linalg.norm(reference.vertices[candidate] - reference.vertices[own], axis=1)
    blur = 0.5 * np.sqrt(reference.vertex_areas.sum() / k)
    # Among neighbours that are right with probability p, p^2 of the edges are: the root is the fraction of those.
    usual = np.quantile(apart, np.sqrt(support.mean()))
    return apart <= min(float(usual), float(blur))


def _squared_spacing(embedding: NDArray[np.float32], edges: IntArray) -> FloatArray:
    """(m,) mean squared length of the edges at each vertex, in the spectral space."""
    squared = ((embedding[edges[:, 0]] - embedding[edges[:, 1]]) ** 2).sum(axis=1)
    both = edges.T.ravel()
    total = np.bincount(both, weights=np.tile(squared, 2), minlength=len(embedding))
    degree = np.bincount(both, minlength=len(embedding))
    return np.maximum(total / np.maximum(degree, 1), np.finfo(np.float32).tiny)
