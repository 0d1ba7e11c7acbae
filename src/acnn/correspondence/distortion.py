"""How much a map changes lengths: a judgement that needs no truth."""

from __future__ import annotations

import numpy as np

from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.edges import edges_with_faces
from acnn.surface.surface import Surface


def edge_distortions(
    edges: IntArray, matched: IntArray, here: FloatArray, there: FloatArray, shortest: float = 1e-300
) -> FloatArray:
    """(e,) min(1, |l' - l| / l), with l the length of an edge and l' the straight distance of its ends' matches.

    - edges: (e, 2) vertices of the query
    - matched: (n,) vertices of the reference
    - here, there: (n, 3) and (m, 3) vertices of query and reference
    - shortest: what changes of shorter edges are divided by
    """
    length = np.linalg.norm(here[edges[:, 0]] - here[edges[:, 1]], axis=1)
    mapped = np.linalg.norm(there[matched[edges[:, 0]]] - there[matched[edges[:, 1]]], axis=1)
    return np.minimum(1.0, np.abs(mapped - length) / np.maximum(length, shortest))


def vertex_distortions(matched: IntArray, query: Surface, reference: Surface) -> FloatArray:
    """(n,) mean of `edge_distortions` over the edges at each vertex of the query.

    Edges shorter than two mean edges of the reference count as that long: a map to vertices cannot keep lengths better
    than these allow.
    """
    edges = edges_with_faces(query.faces)[0]
    ends = reference.vertices[edges_with_faces(reference.faces)[0]]
    shortest = 2.0 * float(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).mean())
    change = edge_distortions(edges, matched, query.vertices, reference.vertices, shortest)
    both, n = edges.ravel(), len(matched)
    total = np.bincount(both, weights=np.repeat(change, 2), minlength=n)
    return total / np.maximum(np.bincount(both, minlength=n), 1)
