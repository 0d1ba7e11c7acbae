"""Point maps: their distortion, their extension to barycentric points, and their inversion."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import ArrayLike

from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints
from acnn.shapes.topology import mesh_edges
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

logger = logging.getLogger("acnn.correspondence")

SMOOTHING = 0.25
"""Time of the smoothing, in squares of the reference's mean edge length."""


def edge_distortions(
    edges: IntArray,
    matches: IntArray,
    query_vertices: FloatArray,
    reference_vertices: FloatArray,
    shortest: float = 1e-300,
) -> FloatArray:
    """Relative change of the length of edges under a point map.

        min(1, |l' - l| / l)

    with l the length of an edge of the query and l' the Euclidean distance between the matches of its ends.

    Parameters
    ----------
    edges : (e, 2) int array
        Query vertices.
    matches : (n,) int array
        Reference vertex of each query vertex.
    query_vertices, reference_vertices : (n, 3) and (m, 3) array
    shortest : float
        Least l to divide by.

    Returns
    -------
    (e,) array
        In 0..1.
    """
    length = np.linalg.norm(query_vertices[edges[:, 0]] - query_vertices[edges[:, 1]], axis=1)
    ends = reference_vertices[matches[edges[:, 0]]], reference_vertices[matches[edges[:, 1]]]
    mapped = np.linalg.norm(ends[0] - ends[1], axis=1)
    return np.minimum(1.0, np.abs(mapped - length) / np.maximum(length, shortest))


def vertex_distortions(query_to_reference: IntArray, query: Surface, reference: Surface) -> FloatArray:
    """Mean of `edge_distortions` over the edges at each vertex of the query.

    Changes are relative to at least twice the mean edge length of the reference: a map to vertices cannot preserve
    lengths more accurately.

    Parameters
    ----------
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.
    query, reference : Surface
        Mesh or cloud in the same unit of length.

    Returns
    -------
    (n,) array
        In 0..1, 0 where lengths are preserved.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    >>> surface = surface_of(Mesh(tetrahedron, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)))
    >>> vertex_distortions(np.arange(4), surface, surface)
    array([0., 0., 0., 0.])
    """
    edges = mesh_edges(query.faces).vertices
    ends = reference.vertices[mesh_edges(reference.faces).vertices]
    shortest = 2.0 * float(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).mean())
    change = edge_distortions(edges, query_to_reference, query.vertices, reference.vertices, shortest)
    both, n = edges.ravel(), len(query_to_reference)
    total = np.bincount(both, weights=np.repeat(change, 2), minlength=n)
    return total / np.maximum(np.bincount(both, minlength=n), 1)


def barycentric_map(
    query_to_reference: ArrayLike, query: Surface, reference: Surface, smoothing: float = SMOOTHING
) -> BarycentricPoints:
    """Extend a map to vertices to points inside the reference's triangles.

    A map to vertices is a step function. The positions g(x) of the matched vertices are smoothed over the query,

        (S + tau W) g' = S g

    (one implicit step of heat flow; S areas, W stiffness of the query), and projected to the nearest points of
    the reference. Where the map is discontinuous, vertices keep their match.

    Parameters
    ----------
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.
    query : Surface
        Mesh or cloud.
    reference : Surface
        Mesh in the same unit of length.
    smoothing : float
        Tau in squares of the reference's mean edge length.

    Returns
    -------
    BarycentricPoints
        The n matches on the reference.

    Raises
    ------
    InputError
        Where the map does not fit, or the reference has no faces.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    >>> surface = surface_of(Mesh(tetrahedron, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)))
    >>> points = barycentric_map(np.arange(4), surface, surface, smoothing=0.0)
    >>> np.allclose(points.interpolate(surface.vertices[surface.faces]), surface.vertices)
    True
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import splu

    from acnn.surface.laplacian import stiffness

    matches = checked_point_map(query_to_reference, len(reference.vertices), size=len(query.vertices))
    if not len(reference.faces):
        raise InputError("The reference has no triangles, so no point can lie inside one. Use a mesh.")
    positions = reference.vertices[matches]
    corners = reference.vertices[reference.faces]
    edge = float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean())
    mass = diags_array(query.vertex_areas)
    system = (mass + smoothing * edge**2 * stiffness(query)).tocsc()
    smooth = splu(system).solve(query.vertex_areas[:, None] * positions)
    # A vertex that would leave the neighbourhood of its match lies at a discontinuity of the map.
    discontinuous = np.linalg.norm(smooth - positions, axis=1) > 1.5 * edge
    return ClosestPoints(reference.vertices, reference.faces)(np.where(discontinuous[:, None], positions, smooth))


def invert_through_reference(
    target_to_reference: ArrayLike, reference: Surface, confidence: ArrayLike | None = None
) -> IntArray:
    """Invert a map of target to reference, for composing query to reference to target.

    A reference vertex that several target vertices are matched to gets the most confident of them (ties: the lowest
    index); one without any gets the target vertex of the geodesically nearest reference vertex that has one.

    Parameters
    ----------
    target_to_reference : (t,) int array
        Reference vertex of each target vertex.
    reference : Surface
        Mesh or cloud of m vertices.
    confidence : (t,) array or None
        Of these matches; None is the same for all.

    Returns
    -------
    (m,) int32 array
        Target vertex of each reference vertex.

    Raises
    ------
    InputError
        Where the map does not fit, or the target has no vertices.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    >>> surface = surface_of(Mesh(tetrahedron, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)))
    >>> invert_through_reference([3, 2, 1, 0, 0], surface, [0.5, 0.5, 0.5, 0.2, 0.9])
    array([4, 2, 1, 0], dtype=int32)
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
        # No path leads to a component without matches: its vertices take the Euclidean nearest one.
        if not reached.all():
            logger.debug("%d reference vertices are on components without matches", int((~reached).sum()))
            from scipy.spatial import cKDTree

            _, index = cKDTree(reference.vertices[hit]).query(reference.vertices[~reached])
            nearest[~reached] = hit[index]
        owner = owner[nearest]
    return owner
