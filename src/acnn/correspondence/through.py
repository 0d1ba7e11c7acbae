"""The way on from a reference to a target that was matched to it; `SoftMap.through` goes it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.shapes.shape import IntArray
from acnn.surface.surface import Surface


def reference_to_target_from(
    target_to_reference: ArrayLike, reference: Surface, confidence: ArrayLike | None = None
) -> IntArray:
    """Turn a map of target to reference round.

    A reference vertex that several target vertices match gets the most confident of them (equal ones: the lowest
    index); one that none matches gets what the reference vertex nearest along the surface got.

    Parameters
    - target_to_reference: (target vertices,) reference vertices
    - reference: mesh or cloud of m vertices
    - confidence: (target vertices,); None is the same for all

    Returns (m,) target vertices.
    """
    from scipy.sparse.csgraph import dijkstra

    from acnn.surface.geodesics import distance_graph

    m = len(reference.vertices)
    matched = checked_point_map(target_to_reference, m, "target_to_reference")
    if not len(matched):
        raise InputError("The target has no vertices.")
    trust = np.zeros(len(matched)) if confidence is None else np.asarray(confidence, dtype=float)
    if trust.shape != matched.shape:
        raise InputError(f"{len(matched)} target vertices were matched, but {trust.shape} confidences are given.")
    order = np.lexsort((np.arange(len(matched)), -trust, matched))
    hit, first = np.unique(matched[order], return_index=True)
    owner = np.full(m, -1, dtype=np.int32)
    owner[hit] = order[first]
    if len(hit) < m:
        _, _, nearest = dijkstra(
            distance_graph(reference), directed=False, indices=hit, min_only=True, return_predecessors=True
        )
        reached = nearest >= 0
        # A component without any match takes the straight-line nearest one, since no path leads there.
        if not reached.all():
            from scipy.spatial import cKDTree

            _, index = cKDTree(reference.vertices[hit]).query(reference.vertices[~reached])
            nearest[~reached] = hit[index]
        owner = owner[nearest]
    return owner
