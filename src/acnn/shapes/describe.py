"""Summary of a shape: size, topology, quality of its triangles, and findings."""

from __future__ import annotations

from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.shapes.mesh import Mesh, PointCloud
from acnn.shapes.topology import (
    Edges,
    boundary_loops,
    corner_columns,
    cross,
    dot,
    face_components,
    fans,
    mesh_edges,
    minus,
    next_corner,
    orientations_agree,
    vertex_components,
)
from acnn.types import FloatArray

MAX_LOOPS_LISTED = 100
"""Boundary loops whose lengths are listed, so that a scan with thousands of holes stays readable."""


@check_arguments
def describe(shape: Mesh | PointCloud) -> dict[str, Any]:
    """Summarise a shape.

    Parameters
    ----------
    shape : Mesh or PointCloud

    Returns
    -------
    dict[str, Any]
        Ready for JSON; what is not defined is None.

        - of every shape: `kind`, `vertices`, `bounding_box` (two corners) and `extent` of the finite vertices (of a
          mesh: those with a face), `has_colors`, `path`, `vertices_in_file`, `findings`
        - of a point cloud: `has_normals`
        - of a mesh: `has_uv`, `has_texture`, `faces`, `components`, `manifold`, `nonmanifold_edges` (with more than two
          faces), `nonmanifold_vertices` (with several fans of faces), `oriented`, `closed`, `boundary_loops`,
          `boundary_edges`, `boundary_lengths` (the 100 longest), `euler_characteristic` chi = V - E + F, `genus`
          sum_c (2 - chi_c - loops_c) / 2 of an oriented manifold, `area`, `volume` of a closed and oriented one,
          `mean_edge` (length), `smallest_angle` in degrees, `obtuse_share` (fraction of obtuse triangles)

    Examples
    --------
    >>> from acnn import from_arrays
    >>> vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> summary = describe(from_arrays(vertices, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))
    >>> summary["closed"], summary["genus"], round(summary["volume"], 4)
    (True, 0, 0.1667)
    """
    points = _points_in_use(shape)
    box = np.stack([points.min(axis=0), points.max(axis=0)]) if len(points) else None
    summary: dict[str, Any] = {
        "kind": "mesh" if isinstance(shape, Mesh) else "cloud",
        "vertices": len(shape.vertices),
        "bounding_box": None if box is None else box.tolist(),
        "extent": None if box is None else (box[1] - box[0]).tolist(),
        "has_colors": shape.colors is not None,
    }
    if isinstance(shape, Mesh):
        summary["has_uv"] = shape.texture is not None
        summary["has_texture"] = shape.texture is not None and shape.texture.image is not None
        edges = mesh_edges(shape.faces)
        summary |= _topology(shape, edges) | _measures(shape, edges, points)
        summary["volume"] = _volume(shape, points) if summary["closed"] and summary["oriented"] else None
    else:
        summary["has_normals"] = shape.normals is not None
    source = shape.source
    summary["path"] = None if source is None else source.path or None
    summary["vertices_in_file"] = None if source is None else len(source.from_file)
    summary["findings"] = [] if source is None else [dict(vars(finding)) for finding in source.findings]
    return summary


def _points_in_use(shape: Mesh | PointCloud) -> FloatArray:
    """The finite vertices, of a mesh only those with a face; all vertices where none is finite."""
    in_use = np.asarray(np.isfinite(shape.vertices).all(axis=1))
    if isinstance(shape, Mesh):
        has_face = np.zeros(len(in_use), bool)
        has_face[shape.faces] = True
        in_use &= has_face
    return shape.vertices[in_use] if in_use.any() else shape.vertices


def _topology(mesh: Mesh, edges: Edges) -> dict[str, Any]:
    m = len(mesh.faces)
    first, second = edges.pairs()
    used = np.unique(mesh.faces)
    fan_count, fan = fans(mesh.faces, first, second)
    vertex_of_fan = np.zeros(fan_count, np.int64)
    vertex_of_fan[fan] = edges.corners
    nonmanifold_edges = int((edges.counts > 2).sum())
    nonmanifold_vertices = int((np.bincount(vertex_of_fan) > 1).sum())
    degenerate = bool((edges.vertices[:, 0] == edges.vertices[:, 1]).any())
    manifold = not (nonmanifold_edges or nonmanifold_vertices or degenerate)
    oriented = bool(orientations_agree(mesh.faces, first, second).all()) and not degenerate
    half_edges = edges.boundary()
    loops, loop = boundary_loops(mesh.faces, half_edges)
    components = face_components(first, second, m)[0] if manifold else _vertex_components(mesh, used)
    begin, end = (mesh.vertices[edges.corners[corner]] for corner in (half_edges, next_corner(half_edges)))
    lengths = np.bincount(loop, np.linalg.norm(end - begin, axis=1), loops) if loops else np.zeros(0)
    euler = len(used) - len(edges.starts) + m
    return {
        "faces": m,
        "components": components,
        "manifold": manifold,
        "nonmanifold_edges": nonmanifold_edges,
        "nonmanifold_vertices": nonmanifold_vertices,
        "oriented": oriented,
        "closed": loops == 0 and manifold and m > 0,
        "boundary_loops": loops,
        "boundary_edges": len(half_edges),
        "boundary_lengths": np.sort(lengths)[::-1][:MAX_LOOPS_LISTED].tolist(),
        "euler_characteristic": euler,
        "genus": (2 * components - euler - loops) // 2 if manifold and oriented else None,
    }


def _vertex_components(mesh: Mesh, used: np.ndarray) -> int:
    """Components of a non-manifold mesh: of vertices connected by faces, without those that have no face."""
    count, _ = vertex_components(mesh.faces, len(mesh.vertices))
    return count - (len(mesh.vertices) - len(used))


def _measures(mesh: Mesh, edges: Edges, points: FloatArray) -> dict[str, Any]:
    if not len(mesh.faces):
        return {"area": 0.0, "mean_edge": None, "smallest_angle": None, "obtuse_share": None}
    scale = float(np.ptp(points, axis=0).max()) or 1.0
    p = corner_columns((mesh.vertices - points.mean(axis=0)) / scale, mesh.faces)
    sides = [minus(p[(i + 1) % 3], p[i]) for i in range(3)]  # side i runs from corner i to corner i + 1
    length = np.column_stack([np.sqrt(dot(side, side)) for side in sides])
    normal = cross(sides[0], sides[1])
    double_area = np.sqrt(dot(normal, normal))
    # At corner i, the angle's cosine is proportional to -side(i-1) . side(i) and its sine to twice the area, with the
    # same factor. The largest cosine term of a face belongs to its smallest angle.
    cosine = np.column_stack([-dot(sides[i - 1], sides[i]) for i in range(3)])
    degenerate, largest = double_area.min() == 0, cosine.max(axis=1)
    return {
        "area": float(double_area.sum() / 2 * scale**2),
        "mean_edge": float(length.reshape(-1)[edges.order[edges.starts]].mean() * scale),
        "smallest_angle": 0.0 if degenerate else float(np.degrees(np.arctan2(double_area, largest).min())),
        "obtuse_share": float((cosine < 0).any(axis=1).mean()),
    }


def _volume(mesh: Mesh, points: FloatArray) -> float:
    p = corner_columns(mesh.vertices - points.mean(axis=0), mesh.faces)
    return float(dot(p[0], cross(minus(p[1], p[0]), minus(p[2], p[0]))).sum() / 6)
