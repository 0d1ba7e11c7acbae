"""Maps along a fit of A to B, on humans whose correspondence is known."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from acnn.datasets import builtin_humans
from acnn.registration.fitted_map import fit_map
from acnn.shapes import Mesh, PointCloud
from acnn.surface import surface_of

HUMANS = builtin_humans()
TRUTH = np.arange(2500)


@pytest.fixture(scope="module")
def pair():
    return HUMANS.mesh(131), HUMANS.mesh(148)


@pytest.fixture(scope="module")
def smooth(pair):
    """A smooth map with an error of some edges, as refinement leaves it."""
    points = pair[1].vertices
    return cKDTree(points).query(points + 0.03 * np.sin(25.0 * points[:, [1, 2, 0]]))[1]


def error(images, b):
    """Mean distance to the truth over the root of the area."""
    return np.linalg.norm(images - b.vertices, axis=1).mean() / np.sqrt(surface_of(b, 1.0).vertex_areas.sum())


@pytest.mark.parametrize("cloud", [(False, False), (True, False), (False, True), (True, True)])
def test_the_map_becomes_more_accurate(pair, smooth, cloud):
    a, b = (PointCloud(x.vertices) if is_cloud else x for x, is_cloud in zip(pair, cloud, strict=True))
    found = fit_map(a, b, (surface_of(a), surface_of(b)), smooth, np.ones(2500))
    before = error(b.vertices[smooth], pair[1])
    assert found.with_data.mean() > 0.9
    assert error(found.images, pair[1]) < 0.8 * before
    assert error(b.vertices[found.a_to_b], pair[1]) < before


def test_wrong_matches_are_not_followed(pair):
    a, b = pair
    rng = np.random.default_rng(0)
    given = np.where(rng.random(2500) < 0.2, rng.integers(0, 2500, 2500), TRUTH)
    found = fit_map(a, b, (surface_of(a), surface_of(b)), given, np.ones(2500))
    assert error(found.images, b) < 0.02 < error(b.vertices[given], b)


def test_matches_of_the_other_direction_correct_a_region(pair):
    a, b = pair
    leg = a.vertices[:, 1] < np.quantile(a.vertices[:, 1], 0.2)
    given = np.where(leg, HUMANS.mirror, TRUTH)  # both legs exchanged: smooth except where they end
    surfaces = surface_of(a), surface_of(b)
    alone = fit_map(a, b, surfaces, given, np.ones(2500))
    both = fit_map(a, b, surfaces, given, np.where(leg, 0.5, 1.0), (TRUTH, np.ones(2500)))
    assert error(both.images, b) < 0.02 < error(alone.images, b)


def test_a_shape_that_cannot_be_deformed_has_no_fit(pair):
    b = pair[1]
    square = Mesh(np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]]))
    surfaces = surface_of(square, 1.0), surface_of(b, 1.0)
    assert fit_map(square, b, surfaces, np.arange(4), np.zeros(4)) is None  # no match counts
