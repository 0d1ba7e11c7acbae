"""Carrying values along a point map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.surface import Surface


def pull_back(values_on_reference: ArrayLike, query_to_reference: ArrayLike) -> NDArray[Any]:
    """Values of the reference at the matches of the query: (n, ...) from (m, ...).

    Parameters
    - values_on_reference: (m, ...) of any kind: colours, labels, coordinates
    - query_to_reference: (n,) reference vertices
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
    """Mean over the query vertices that match each reference vertex: (m, ...) from (n, ...).

    Parameters
    - values_on_query: (n, ...) numbers
    - query_to_reference: (n,) reference vertices
    - reference_size: m
    - weights: (n,) such as areas or confidences; None is 1
    - missing: for reference vertices that nothing matches
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
    """(k,) query vertices for landmarks given as reference vertices: the map followed backwards.

    The query vertex whose match is nearest to the landmark along the reference is taken; of several, the one nearest
    to their mean. Where nothing matches the landmark's component, the straight-line nearest is taken.

    Parameters
    - landmarks: (k,) reference vertices
    - query_to_reference: (n,) reference vertices
    - query: (n, 3) the query's points
    - reference: mesh or cloud of m vertices
    """
    from acnn.surface.geodesics import GeodesicSolver

    m = len(reference.vertices)
    wanted = checked_point_map(landmarks, m, "The list of landmarks")
    matched = checked_point_map(query_to_reference, m)
    if not len(matched):
        raise InputError("No vertex of the query has a match, so there is nothing to put landmarks on.")
    solver = GeodesicSolver(reference) if not np.isin(wanted, matched).all() else None
    found = np.full(len(wanted), -1, np.int32)
    for i, landmark in enumerate(wanted):
        at = np.flatnonzero(matched == landmark)
        if not len(at) and solver is not None:
            distance = solver.distances_from([int(landmark)])[0][matched]
            if not np.isfinite(distance.min()):
                distance = np.linalg.norm(reference.vertices[matched] - reference.vertices[landmark], axis=1)
            at = np.flatnonzero(distance <= distance.min())
        middle = query[at].mean(axis=0)
        found[i] = at[np.linalg.norm(query[at] - middle, axis=1).argmin()]
    return found
