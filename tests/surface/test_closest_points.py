"""The nearest points of a mesh: against planes and spheres, and against trying every triangle."""

import numpy as np
from analytic import bumpy, grid, sphere

from acnn.surface.closest_points import ClosestPoints, nearest_in_triangles, points_at_vertices


def test_above_a_plane_the_foot_is_found():
    mesh = grid(6)
    points = np.random.default_rng(0).uniform(0.1, 4.9, (200, 3))
    found = ClosestPoints(mesh.vertices, mesh.faces)(points)
    foot = found.of_corners(mesh.vertices[mesh.faces])
    np.testing.assert_allclose(foot, points * [1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)


def test_long_triangles_are_found_too():
    vertices = np.array([[0, 0, 0], [50, 0, 0], [0, 50, 0], [0, 0, 1], [0.1, 0, 1], [0, 0.1, 1]], float)
    small = np.array([[3, 4, 5]] * 20)  # so that the median side is short
    faces = np.vstack([[[0, 1, 2]], small])
    found = ClosestPoints(vertices, faces)(np.array([[20.0, 20.0, 0.5]]))
    assert found.faces[0] == 0
    np.testing.assert_allclose(found.of_corners(vertices[faces])[0], [20, 20, 0], atol=1e-12)


def test_as_near_as_trying_every_triangle():
    mesh = bumpy(2)
    points = np.random.default_rng(1).normal(size=(150, 3))
    corners = mesh.vertices[mesh.faces]
    found = ClosestPoints(mesh.vertices, mesh.faces)(points).of_corners(corners)
    for point, place in zip(points, found, strict=True):
        weights = nearest_in_triangles(np.tile(point, (len(corners), 1)), corners)
        every = np.einsum("nk,nkd->nd", weights, corners)
        assert np.linalg.norm(place - point) <= np.linalg.norm(every - point, axis=1).min() + 1e-9


def test_vertices_as_points():
    mesh = sphere(1)
    chosen = np.array([5, 0, 41])
    points = points_at_vertices(mesh.faces, chosen)
    np.testing.assert_array_equal(points.of_corners(mesh.vertices[mesh.faces]), mesh.vertices[chosen])
    np.testing.assert_array_equal(points.nearest_vertex(mesh.faces), chosen)
