"""Remeshing and simplification of meshes with boundaries; closed ones are tested with the humans."""

import numpy as np
from analytic import cylinder, grid

from acnn.shapes import Mesh
from acnn.shapes.topology import mesh_edges
from acnn.surface.simplify import decimate, remesh


def boundary_length(mesh: Mesh) -> float:
    edges = mesh_edges(mesh.faces)
    ends = mesh.vertices[edges.vertices[edges.counts == 1]]
    return float(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).sum())


def euler(mesh: Mesh) -> int:
    edges = mesh_edges(mesh.faces)
    assert edges.counts.max() == 2
    return len(mesh.vertices) - len(edges.counts) + len(mesh.faces)


def test_remeshed_square_keeps_its_sides() -> None:
    square = grid(16, jitter=0.2)
    made = remesh(square, seed=1)
    assert euler(made.mesh) == 1
    assert 59 < boundary_length(made.mesh) <= 60 + 1e-9  # a corner may be cut off
    edges = mesh_edges(made.mesh.faces)
    outer = made.mesh.vertices[np.unique(edges.vertices[edges.counts == 1]), :2]
    assert np.isclose(outer % 15, 0).any(axis=1).all()
    a, b, c = (made.mesh.vertices[made.mesh.faces[:, k]] for k in range(3))
    area = 0.5 * np.cross(b - a, c - a)[:, 2]
    assert area.min() > 0
    assert 224.5 < area.sum() <= 225 + 1e-9
    there = made.truth.interpolate(square.vertices[square.faces])
    np.testing.assert_allclose(there, made.mesh.vertices, atol=1e-9)


def test_decimated_cylinder_stays_open_at_both_ends() -> None:
    tube = cylinder()
    kept, faces = decimate(tube.vertices, tube.faces, 700)
    coarse = Mesh(tube.vertices[kept], faces)
    assert len(kept) == 700
    assert euler(coarse) == 0
    assert abs(boundary_length(coarse) / boundary_length(tube) - 1) < 0.02
    ends = np.unique(mesh_edges(faces).vertices[mesh_edges(faces).counts == 1])
    heights = coarse.vertices[ends, 2]
    assert ((heights == tube.vertices[:, 2].min()) | (heights == tube.vertices[:, 2].max())).all()
