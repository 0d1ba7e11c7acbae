"""Transfer along a map: values and landmarks."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

logger = logging.getLogger("acnn.correspondence")


def pull_back(values_on_reference: ArrayLike, query_to_reference: ArrayLike) -> NDArray[Any]:
    """Values of the reference at the matches of the query.

    Parameters
    ----------
    values_on_reference : (m, ...) array
        Of any kind: colours, labels, coordinates.
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.

    Returns
    -------
    (n, ...) array
        Values on the query.

    Raises
    ------
    InputError
        Where an entry of the map is not a reference vertex.

    Examples
    --------
    >>> pull_back([10, 20, 30], [2, 2, 0, 1])
    array([30, 30, 10, 20])
    """
    values = np.asarray(values_on_reference)
    return values[checked_point_map(query_to_reference, len(values))]


def push_forward(
    values_on_query: ArrayLike,
    query_to_reference: ArrayLike,
    reference_size: int,
    *,
    weights: ArrayLike | None = None,
    missing: float = np.nan,
) -> FloatArray:
    """Mean of values of the query over the vertices that are matched to each reference vertex.

    Parameters
    ----------
    values_on_query : (n, ...) array
        Numbers.
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.
    reference_size : int
        Number m of reference vertices.
    weights : (n,) array or None
        Such as areas or confidences; None is 1.
    missing : float
        Value of reference vertices that no query vertex is matched to.

    Returns
    -------
    (m, ...) array
        Values on the reference.

    Raises
    ------
    InputError
        Where the map does not fit the values, or a weight is negative.

    Examples
    --------
    >>> push_forward([1.0, 3.0, 5.0], [0, 0, 2], reference_size=3)
    array([ 2., nan,  5.])
    """
    values = np.asarray(values_on_query, dtype=float)
    matched = checked_point_map(query_to_reference, reference_size, size=len(values))
    weight = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=float)
    if weight.shape != matched.shape or not (weight >= 0).all():
        raise InputError(f"Weights must be at least 0, one for each of the {len(matched)} query vertices.")
    flat = values.reshape(len(values), -1)
    total = np.bincount(matched, weights=weight, minlength=reference_size)
    sums = np.stack([np.bincount(matched, weights=weight * column, minlength=reference_size) for column in flat.T], 1)
    mean = np.where(total[:, None] > 0, sums / np.where(total > 0, total, 1.0)[:, None], missing)
    return mean.reshape(reference_size, *values.shape[1:])


def landmarks_on_query(
    landmarks: ArrayLike, query_to_reference: ArrayLike, query: FloatArray, reference: Surface
) -> IntArray:
    """Transfer landmarks from the reference to the query, against the direction of the map.

    The query vertex whose match is geodesically nearest to the landmark is taken; of several, the one nearest to their
    mean. Where no vertex is matched to the landmark's component, the Euclidean nearest match is taken.

    Parameters
    ----------
    landmarks : (k,) array
        Reference vertices.
    query_to_reference : (n,) array
        Reference vertices.
    query : (n, 3) array
        Vertices of the query.
    reference : Surface
        Mesh or cloud of m vertices.

    Returns
    -------
    (k,) int32 array
        Query vertices.

    Raises
    ------
    InputError
        Where a landmark or a match is not a reference vertex, or the query has no vertices.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    >>> faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
    >>> landmarks_on_query([3, 0], [0, 3, 2, 1], tetrahedron, surface_of(Mesh(tetrahedron, faces)))
    array([1, 0], dtype=int32)
    """
    from acnn.surface.geodesics import GeodesicSolver

    m = len(reference.vertices)
    reference_vertices = checked_point_map(landmarks, m, "The list of landmarks")
    matches = checked_point_map(query_to_reference, m)
    if not len(matches):
        raise InputError("No vertex of the query has a match, so no landmark can be transferred.")
    solver = GeodesicSolver(reference) if not np.isin(reference_vertices, matches).all() else None
    query_vertices = np.full(len(reference_vertices), -1, np.int32)
    for i, landmark in enumerate(reference_vertices):
        candidates = np.flatnonzero(matches == landmark)
        if not len(candidates) and solver is not None:
            distance = solver.distances_from([int(landmark)])[0][matches]
            if not np.isfinite(distance.min()):
                logger.debug("landmark %d: no match on its component, the Euclidean nearest is taken", landmark)
                distance = np.linalg.norm(reference.vertices[matches] - reference.vertices[landmark], axis=1)
            candidates = np.flatnonzero(distance <= distance.min())
        centre = query[candidates].mean(axis=0)
        query_vertices[i] = candidates[np.linalg.norm(query[candidates] - centre, axis=1).argmin()]
    return query_vertices
