"""Maps that end between vertices: points inside the reference's triangles."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.surface.closest_points import ClosestPoints, SurfacePoints
from acnn.surface.surface import Surface

SMOOTHING = 0.25
"""Time of the smoothing, in squares of the reference's mean edge."""


def subvertex_map(
    query_to_reference: ArrayLike, query: Surface, reference: Surface, smoothing: float = SMOOTHING
) -> SurfacePoints:
    """Points inside the reference's triangles, from matched vertices.

    A map to vertices goes in steps. The places g(x) of the matched vertices are smoothed over the query,

        (S + tau W) g' = S g

    (one implicit step of heat flow; S areas, W stiffness of the query), and go back to the nearest points of the
    reference. Where neighbours are matched far apart there is nothing to smooth: those vertices keep their match.

    - query_to_reference: (n,) matched vertices
    - query: mesh or cloud; reference: mesh, both in run units
    - smoothing: tau in squares of the reference's mean edge; about the gap between steps squared is best

    Raises InputError where the map does not fit, or the reference has no faces.
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
