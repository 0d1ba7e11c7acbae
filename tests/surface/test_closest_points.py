"""The nearest points of a mesh: against planes, and against points all over every triangle."""

import numpy as np
import pytest
from analytic import bumpy, grid, sphere
from scipy.spatial import cKDTree

from acnn.shapes.mesh import BarycentricPoints
from acnn.surface.closest_points import ClosestPoints


def test_above_a_plane_the_foot_is_found():
    mesh = grid(6)
    points = np.random.default_rng(0).uniform(0.1, 4.9, (200, 3))
    found = ClosestPoints(mesh.vertices, mesh.faces)(points)
    foot = found.interpolate(mesh.vertices[mesh.faces])
    np.testing.assert_allclose(foot, points * [1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)


def _all_over(corners, rows=24):
    """(many, 3) points of all triangles, their corners and sides among them."""
    first, second = np.divmod(np.arange((rows + 1) ** 2), rows + 1)
    first, second = first[first + second <= rows] / rows, second[first + second <= rows] / rows
    weights = np.stack([1 - first - second, first, second], axis=1)
    return np.einsum("sk,mkd->msd", weights, corners).reshape(-1, 3)


def _long_beside_small(rng):
    """A large triangle across hundreds of small ones of another sheet."""
    small = rng.uniform(0, 1, (300, 1, 3)) * [1, 1, 0.02] + rng.normal(scale=0.005, size=(300, 3, 3))
    return np.concatenate([small, [[[-1, -1, 0.05], [3, -1, 0.05], [-1, 3, 0.05]]]])


def _flat(rng):
    """Triangles without area: points and lines."""
    start, way = rng.normal(size=(40, 1, 3)), rng.normal(size=(40, 1, 3))
    return start + way * np.array([0.0, 1.0, 0.3])[:, None] * rng.integers(0, 2, (40, 1, 1))


@pytest.mark.parametrize("kind", ["bumpy", "long beside small", "flat", "single"])
def test_no_point_of_any_triangle_is_nearer(kind):
    rng = np.random.default_rng(1)
    mesh = bumpy(2)
    corners = {
        "bumpy": mesh.vertices[mesh.faces],
        "long beside small": _long_beside_small(rng),
        "flat": _flat(rng),
        "single": rng.normal(size=(1, 3, 3)),
    }[kind]
    points = rng.uniform(-0.2, 1.2, (300, 3))
    found = ClosestPoints(corners.reshape(-1, 3), np.arange(len(corners) * 3).reshape(-1, 3))(points)
    assert (found.weights >= 0).all()
    np.testing.assert_allclose(found.weights.sum(axis=1), 1)
    distance = np.linalg.norm(found.interpolate(corners) - points, axis=1)
    nearest, _ = cKDTree(_all_over(corners)).query(points)
    assert (distance <= nearest + 1e-12).all()


def test_of_equally_near_triangles_the_first_is_taken():
    mesh = sphere(1)
    found = ClosestPoints(mesh.vertices, np.vstack([mesh.faces, mesh.faces]))(mesh.vertices[:5])
    every = np.array([np.flatnonzero((mesh.faces == v).any(axis=1))[0] for v in range(5)])
    np.testing.assert_array_equal(found.faces, every)


def test_points_that_are_not_finite_are_refused():
    mesh = sphere(1)
    with pytest.raises(ValueError, match="finite"):
        ClosestPoints(mesh.vertices, mesh.faces)([[0.0, np.nan, 0.0]])


def test_vertices_as_points():
    mesh = sphere(1)
    chosen = np.array([5, 0, 41])
    points = BarycentricPoints.at_vertices(mesh.faces, chosen)
    np.testing.assert_array_equal(points.interpolate(mesh.vertices[mesh.faces]), mesh.vertices[chosen])
    np.testing.assert_array_equal(points.largest_corner(mesh.faces), chosen)
