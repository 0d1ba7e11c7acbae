"""The facts about a shape that a person asks for first."""

from __future__ import annotations

from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.shapes.mesh import Mesh, PointCloud
from acnn.shapes.topology import (
    Edges,
    agree,
    boundary_loops,
    corner_columns,
    cross,
    dot,
    face_components,
    fans,
    mesh_edges,
    minus,
    next_corner,
    vertex_components,
)

LOOPS_SHOWN = 100


@check_arguments
def describe(shape: Mesh | PointCloud) -> dict[str, Any]:
    """Facts about a shape, ready for JSON.

    For every shape: kind, vertices, bounding_box (two corners) and extent of the finite vertices (of a mesh: those with
    a face), what it carries, findings. For a mesh also faces, components, manifold, the numbers of edges with more than
    two faces and of vertices where several fans of faces meet, oriented, closed, boundary loops (number, edges, the 100
    longest lengths), Euler characteristic chi = V - E + F, genus sum_c (2 - chi_c - loops_c) / 2 where the surface is
    an oriented manifold, area, volume where closed, mean edge, smallest angle in degrees, share of obtuse triangles.
    What is not defined is None.
    """
    points = _in_use(shape)
    low, high = points.min(axis=0), points.max(axis=0)
    facts: dict[str, Any] = {
        "kind": "mesh" if isinstance(shape, Mesh) else "cloud",
        "vertices": len(shape.vertices),
        "bounding_box": [low.tolist(), high.tolist()],
        "extent": (high - low).tolist(),
        "has_colors": shape.colors is not None,
    }
    if isinstance(shape, Mesh):
        facts |= {
            "has_uv": shape.texture is not None,
            "has_texture": shape.texture is not None and shape.texture.image is not None,
        }
        edges = mesh_edges(shape.faces)
        facts |= _topology(shape, edges) | _measures(shape, edges, points)
        facts["volume"] = _volume(shape, points) if facts["closed"] and facts["oriented"] else None
    else:
        facts["has_normals"] = shape.normals is not None
    source = shape.source
    facts["path"] = None if source is None else source.path or None
    facts["vertices_in_file"] = None if source is None else len(source.from_file)
    facts["findings"] = (
        []
        if source is None
        else [{"kind": f.kind, "count": f.count, "text": f.text, "repaired": f.repaired} for f in source.findings]
    )
    return facts


def _in_use(shape: Mesh | PointCloud) -> np.ndarray:
    """The finite vertices, of a mesh only those with a face; all vertices where none is finite."""
    chosen = np.asarray(np.isfinite(shape.vertices).all(axis=1))
    if isinstance(shape, Mesh):
        used = np.zeros(len(chosen), bool)
        used[shape.faces] = True
        chosen = chosen & used
    return shape.vertices[chosen] if chosen.any() else shape.vertices


def _topology(mesh: Mesh, edges: Edges) -> dict[str, Any]:
    m = len(mesh.faces)
    first, second = edges.pairs()
    used = np.unique(mesh.faces)
    fan_count, fan = fans(mesh.faces, first, second)
    vertex_of_fan = np.zeros(fan_count, np.int64)
    vertex_of_fan[fan] = mesh.faces.reshape(-1)
    crowded_edges = int((edges.counts > 2).sum())
    crowded_vertices = int((np.bincount(vertex_of_fan) > 1).sum())
    degenerate = bool((edges.vertices[:, 0] == edges.vertices[:, 1]).any())
    manifold = not (crowded_edges or crowded_vertices or degenerate)
    oriented = bool(agree(mesh.faces, first, second).all()) and not degenerate
    half_edges = edges.boundary()
    loops, loop = boundary_loops(mesh.faces, half_edges)
    components, _ = face_components(first, second, m) if manifold else (_touching(mesh, used), None)
    begin = mesh.vertices[mesh.faces.reshape(-1)[half_edges]]
    end = mesh.vertices[mesh.faces.reshape(-1)[next_corner(half_edges)]]
    lengths = np.bincount(loop, np.linalg.norm(end - begin, axis=1), loops) if loops else np.zeros(0)
    euler = len(used) - len(edges.starts) + m
    return {
        "faces": m,
        "components": components,
        "manifold": manifold,
        "nonmanifold_edges": crowded_edges,
        "nonmanifold_vertices": crowded_vertices,
        "oriented": oriented,
        "closed": loops == 0 and manifold,
        "boundary_loops": loops,
        "boundary_edges": len(half_edges),
        "boundary_lengths": np.sort(lengths)[::-1][:LOOPS_SHOWN].tolist(),
        "euler_characteristic": euler,
        "genus": (2 * components - euler - loops) // 2 if manifold and oriented else None,
    }


def _touching(mesh: Mesh, used: np.ndarray) -> int:
    """Components of a mesh that is no manifold: vertices joined by faces, those without a face not counted."""
    count, _ = vertex_components(mesh.faces, len(mesh.vertices))
    return count - (len(mesh.vertices) - len(used))


def _measures(mesh: Mesh, edges: Edges, points: np.ndarray) -> dict[str, Any]:
    scale = float(np.ptp(points, axis=0).max()) or 1.0
    p = corner_columns((mesh.vertices - points.mean(axis=0)) / scale, mesh.faces)
    sides = [minus(p[(i + 1) % 3], p[i]) for i in range(3)]  # side i runs from corner i to corner i + 1
    length = np.column_stack([np.sqrt(dot(side, side)) for side in sides])
    normal = cross(sides[0], sides[1])
    double_area = np.sqrt(dot(normal, normal))
    # At corner i: cosine part -side(i-1) . side(i), sine part twice the area. The largest cosine part of a face is
    # at its smallest angle.
    cosine = np.column_stack([-dot(sides[i - 1], sides[i]) for i in range(3)])
    flat, largest = double_area.min() == 0, cosine.max(axis=1)
    smallest = 0.0 if flat else float(np.degrees(np.arctan2(double_area, largest).min()))
    return {
        "area": float(double_area.sum() / 2 * scale**2),
        "mean_edge": float(length.reshape(-1)[edges.order[edges.starts]].mean() * scale),
        "smallest_angle": smallest,
        "obtuse_share": float((cosine < 0).any(axis=1).mean()),
    }


def _volume(mesh: Mesh, points: np.ndarray) -> float:
    p = corner_columns(mesh.vertices - points.mean(axis=0), mesh.faces)
    return float(dot(p[0], cross(minus(p[1], p[0]), minus(p[2], p[0]))).sum() / 6)
