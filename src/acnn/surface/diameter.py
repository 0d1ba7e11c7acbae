"""The geodesic diameter, which sets the unit of length."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from acnn.surface.geodesics import GeodesicSolver
from acnn.surface.surface import Surface


def geodesic_diameter(surface: Surface, sources: int = 10) -> float:
    """Largest geodesic distance on the largest component (by area), independent of the order of vertices.

    Starts from the point farthest from the centroid, adds the farthest remaining point `sources` times, and measures
    the longest of all distances seen. On a mesh that one path is then pulled straight over the faces (edge flips,
    potpourri3d), which removes what the triangulation adds to it.
    """
    solver = GeodesicSolver(surface)
    _, label = connected_components(solver._graph, directed=False)
    area = np.bincount(label, weights=surface.vertex_areas)
    member = label == int(np.argmax(area))
    weight = np.where(member, surface.vertex_areas, 0.0)
    centroid = weight @ surface.vertices / weight.sum()
    far = np.where(member, np.linalg.norm(surface.vertices - centroid, axis=1), -1.0)

    nearest = np.full(len(member), np.inf)
    source = int(np.argmax(far))
    longest, ends = 0.0, (source, source)
    for _ in range(sources):
        row = solver.distances_from([source])[0]
        row[~member] = 0.0
        reached = int(np.argmax(row))
        if row[reached] > longest:
            longest, ends = float(row[reached]), (source, reached)
        nearest = np.minimum(nearest, row)
        source = int(np.argmax(nearest))
    return longest if surface.is_cloud else min(longest, _straightened_length(surface, ends) or longest)


def _straightened_length(surface: Surface, ends: tuple[int, int]) -> float | None:
    """Length of the geodesic between two vertices near the shortest edge path, None where flipping edges fails."""
    import potpourri3d as pp3d

    try:
        path = pp3d.EdgeFlipGeodesicSolver(surface.vertices, surface.faces).find_geodesic_path(*ends)
    except RuntimeError:  # not an oriented manifold: the graph distance has to do
        return None
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
