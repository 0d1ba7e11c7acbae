"""Carrying values along a point map."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.shapes.shape import FloatArray


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
