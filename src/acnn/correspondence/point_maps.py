"""Point maps: their distortion, their extension to points inside triangles, and composition through a reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints
from acnn.shapes.topology import mesh_edges
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray


def edge_distortions(
    edges: IntArray, matched: IntArray, here: FloatArray, there: FloatArray, shortest: float = 1e-300
) -> FloatArray:
    """(e,) min(1, |l' - l| / l), with l the length of an edge and l' the straight distance of its ends' matches.

    Parameters
    ----------
    edges : (e, 2) array
        Vertices of the query.
    matched : (n,) array
        Vertices of the reference.
    here, there : (n, 3) and (m, 3) array
        Vertices of query and reference.
    shortest : float
        What changes of shorter edges are divided by.
    """
    length = np.linalg.norm(here[edges[:, 0]] - here[edges[:, 1]], axis=1)
    mapped = np.linalg.norm(there[matched[edges[:, 0]]] - there[matched[edges[:, 1]]], axis=1)
    return np.minimum(1.0, np.abs(mapped - length) / np.maximum(length, shortest))


def vertex_distortions(matched: IntArray, query: Surface, reference: Surface) -> FloatArray:
    """(n,) mean of `edge_distortions` over the edges at each vertex of the query.

    Edges shorter than two mean edges of the reference count as that long: a map to vertices cannot keep lengths better
    than these allow.
    """
    edges = mesh_edges(query.faces).vertices
    ends = reference.vertices[mesh_edges(reference.faces).vertices]
    shortest = 2.0 * float(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).mean())
    change = edge_distortions(edges, matched, query.vertices, reference.vertices, shortest)
    both, n = edges.ravel(), len(matched)
    total = np.bincount(both, weights=np.repeat(change, 2), minlength=n)
    return total / np.maximum(np.bincount(both, minlength=n), 1)


SMOOTHING = 0.25
"""Time of the smoothing, in squares of the reference's mean edge."""


def subvertex_map(
    query_to_reference: ArrayLike, query: Surface, reference: Surface, smoothing: float = SMOOTHING
) -> BarycentricPoints:
    """Points inside the reference's triangles, from matched vertices.

    A map to vertices goes in steps. The places g(x) of the matched vertices are smoothed over the query,

        (S + tau W) g' = S g

    (one implicit step of heat flow; S areas, W stiffness of the query), and go back to the nearest points of the
    reference. Where neighbours are matched far apart there is nothing to smooth: those vertices keep their match.

    Parameters
    ----------
    query_to_reference : (n,) array
        Matched vertices.
    query : Surface
        Mesh or cloud.
    reference : Surface
        Mesh, both in run units.
    smoothing : float
        Tau in squares of the reference's mean edge; about the gap between steps squared is best.

    Raises
    ------
    InputError
        Where the map does not fit, or the reference has no faces.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import splu

    from acnn.surface.laplacian import stiffness

    matched = checked_point_map(query_to_reference, len(reference.vertices), size=len(query.vertices))
    if not len(reference.faces):
        raise InputError("The reference has no triangles, so that no point can lie inside one.")
    places = reference.vertices[matched]
    corners = reference.vertices[reference.faces]
    edge = float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean())
    mass = diags_array(query.vertex_areas)
    system = (mass + smoothing * edge**2 * stiffness(query)).tocsc()
    smooth = splu(system).solve(query.vertex_areas[:, None] * places)
    # A vertex that would leave the surroundings of its match lies at a tear of the map.
    torn = np.linalg.norm(smooth - places, axis=1) > 1.5 * edge
    return ClosestPoints(reference.vertices, reference.faces)(np.where(torn[:, None], places, smooth))


def reference_to_target_from(
    target_to_reference: ArrayLike, reference: Surface, confidence: ArrayLike | None = None
) -> IntArray:
    """Turn a map of target to reference round.

    A reference vertex that several target vertices match gets the most confident of them (equal ones: the lowest
    index); one that none matches gets what the reference vertex nearest along the surface got.

    Parameters
    ----------
    target_to_reference : (target vertices,) array
        Reference vertices.
    reference : Surface
        Mesh or cloud of m vertices.
    confidence : (target vertices,) array or None
        None is the same for all.

    Returns
    -------
    array
        (m,) target vertices.
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
