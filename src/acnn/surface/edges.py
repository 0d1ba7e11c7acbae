"""The edges of a triangulation and the faces at them."""

from __future__ import annotations

import numpy as np

from acnn.shapes.shape import IntArray


def edges_with_faces(faces: IntArray) -> tuple[IntArray, IntArray]:
    """Unique edges, each with the one or two faces at it.

    Returns
    - (e, 2) vertices, in the direction in which the edge's first face runs through them: that face lies to the left
    - (e, 2) faces, the second -1 on a boundary; of more than two faces at an edge the first two are given
    """
    directed = faces[:, [1, 2, 2, 0, 0, 1]].reshape(-1, 2)
    owner = np.repeat(np.arange(len(faces), dtype=np.int32), 3)
    low, high = directed.min(axis=1).astype(np.int64), directed.max(axis=1).astype(np.int64)
    key = low * (int(faces.max(initial=0)) + 1) + high
    order = np.argsort(key, kind="stable")
    start = np.flatnonzero(np.diff(key[order], prepend=-1))
    count = np.diff(np.append(start, len(key)))
    sides = np.full((len(start), 2), -1, dtype=np.int32)
    sides[:, 0] = owner[order[start]]
    sides[count > 1, 1] = owner[order[start[count > 1] + 1]]
    return directed[order[start]].astype(np.int32), sides


def opposite_vertices(faces: IntArray, edges: IntArray, sides: IntArray) -> IntArray:
    """(e, 2) the corner of each of an edge's faces that is not on the edge; -1 where there is no face."""
    third = faces[sides].sum(axis=2) - edges.sum(axis=1, keepdims=True)
    return np.where(sides >= 0, third, -1).astype(np.int32)
