"""Functional maps: a point map as a small matrix between eigenfunctions, and back.

With eigenfunctions Phi (n, k) of the query and Psi (m, l) of the reference, a point map y of query to reference gives a
matrix C (k, l) with

    Phi(x) C = Psi(y(x))        at the matched points x (eq. fm of the paper).

C carries points of the query's spectral space to the reference's. As an operator it runs the other way: it takes the
coefficients b of a function g on the reference to those of its pull-back g(y(x)) on the query, a = C b. Ovsjanikov et
al., Functional maps: a flexible representation of maps between shapes, 2012.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from acnn.correspondence.basis import SpectralBasis, nearest_points
from acnn.correspondence.soft_map import SoftMap, checked_point_map
from acnn.errors import InputError
from acnn.shapes.shape import FloatArray, IntArray

Side = Literal["reference", "query"]


def functional_map_from_pairs(
    query: SpectralBasis,
    reference: SpectralBasis,
    query_vertices: ArrayLike,
    reference_vertices: ArrayLike,
    k: int | tuple[int, int],
    weights: ArrayLike | None = None,
) -> FloatArray:
    """Least-squares functional map of matched points.

        C = argmin sum_{x in I} w(x) |Phi(x) C - Psi(y(x))|^2

    Parameters
    - query, reference: bases with at least k functions
    - query_vertices, reference_vertices: (pairs,) matched vertices x and y(x)
    - k: eigenfunctions of both, or (of the query, of the reference)
    - weights: (pairs,) not negative; None is 1

    Returns (k, k) or (k of the query, k of the reference).
    Raises InputError where there are fewer pairs of positive weight than eigenfunctions of the query.
    """
    k_query, k_reference = (k, k) if isinstance(k, int) else k
    x = checked_point_map(query_vertices, len(query), "query_vertices")
    y = checked_point_map(reference_vertices, len(reference), "reference_vertices", len(x))
    weight = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=float)
    if weight.shape != x.shape or not (np.isfinite(weight) & (weight >= 0)).all():
        raise InputError(f"Weights must be finite, at least 0, one for each of the {len(x)} pairs.")
    if np.count_nonzero(weight) < k_query:
        raise InputError(
            f"{np.count_nonzero(weight)} matched points cannot determine a functional map of {k_query} eigenfunctions. "
            "Use fewer eigenfunctions, a lower threshold or more points."
        )
    return _least_squares(query.first(k_query)[x], reference.first(k_reference)[y], weight)


def functional_map_from_point_map(
    query: SpectralBasis, reference: SpectralBasis, query_to_reference: ArrayLike, k: int | tuple[int, int]
) -> FloatArray:
    """Functional map of a dense point map, by projection: C = Phi^T diag(mass) Psi(y)."""
    k_query, k_reference = (k, k) if isinstance(k, int) else k
    matched = checked_point_map(query_to_reference, len(reference), size=len(query))
    return (query.first(k_query) * query.mass[:, None]).T @ reference.first(k_reference)[matched]


def query_to_reference_from_functional_map(
    functional_map: FloatArray, query: SpectralBasis, reference: SpectralBasis, side: Side = "reference"
) -> IntArray:
    """Point map of a functional map: the nearest point in the spectral space.

        reference: y(x) = argmin_y |Phi(x) C - Psi(y)|          (the paper's)
        query:     y(x) = argmin_y |Phi(x) - Psi(y) C^T|        (ZoomOut's; the same where C is orthogonal)

    Parameters
    - functional_map: (k of the query, k of the reference)
    - side: in whose spectral space distances are measured

    Returns (n,) reference vertices.
    """
    phi, psi = query.first(functional_map.shape[0]), reference.first(functional_map.shape[1])
    if side == "reference":
        return nearest_points(phi @ functional_map, psi)
    return nearest_points(phi, psi @ functional_map.T)


def spectral_icp(
    functional_map: FloatArray, query: SpectralBasis, reference: SpectralBasis, rounds: int = 10
) -> tuple[FloatArray, IntArray]:
    """Alternate between the nearest points and the nearest orthogonal functional map, until points stay.

        y(x) = argmin_y |Phi(x) C - Psi(y)|,    C = U V^T  with  U Sigma V^T = Phi^T diag(mass) Psi(y)

    Parameters
    - functional_map: (k, k) the start
    - rounds: at most so many

    Returns the last functional map and its point map (n,) of query to reference.
    """
    matched = query_to_reference_from_functional_map(functional_map, query, reference)
    for _ in range(rounds):
        left, _, right = np.linalg.svd(
            functional_map_from_point_map(query, reference, matched, functional_map.shape), full_matrices=False
        )
        functional_map = left @ right
        previous, matched = matched, query_to_reference_from_functional_map(functional_map, query, reference)
        if np.array_equal(previous, matched):
            break
    return functional_map, matched


def confident_vertices(soft_map: SoftMap, threshold: float | None = None, count: int | None = None) -> IntArray:
    """Query vertices whose match is trusted: I = {x : c(x) > threshold}, or the `count` most confident ones.

    Vertices as confident as the last one counted are taken too, so that nothing depends on the order of vertices.

    Parameters
    - threshold: of the confidence, in 0..1
    - count: at most n; both may be given and then both must hold

    Returns ascending vertex numbers.
    """
    confidence = soft_map.confidence
    chosen = np.ones(len(confidence), dtype=bool) if threshold is None else confidence > threshold
    if count is not None and count < len(confidence):
        if count < 1:
            raise InputError(f"At least one confident vertex is needed, not {count}.")
        chosen &= confidence >= np.partition(confidence, len(confidence) - count)[len(confidence) - count]
    return np.flatnonzero(chosen).astype(np.int32)


def orthogonality(functional_map: FloatArray) -> float:
    """How far a map is from preserving area: |C^T C - I|_F / sqrt(k); 0 for an area-preserving map."""
    k = functional_map.shape[1]
    return float(np.linalg.norm(functional_map.T @ functional_map - np.eye(k)) / np.sqrt(k))


def _least_squares(left: FloatArray, right: FloatArray, weight: FloatArray) -> FloatArray:
    """argmin_C sum_i w_i |left_i C - right_i|^2 through the normal equations, with a floor on small eigenvalues."""
    weighted = left * weight[:, None]
    gram = weighted.T @ left
    # Few or clustered points leave directions undetermined; there the smallest C is taken instead of a wild one.
    floor = 1e-9 * np.trace(gram) / len(gram)
    return np.linalg.solve(gram + floor * np.eye(len(gram)), weighted.T @ right)
