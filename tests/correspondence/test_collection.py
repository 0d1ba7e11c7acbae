"""Maps of a collection: the central shape, and which of several maps cycles confirm."""

import numpy as np
import pytest
from analytic import bumpy

from acnn.correspondence.collection import central_shape, most_consistent, similar_shapes, spectral_distances
from acnn.correspondence.functional_map import basis_of
from acnn.shapes import Mesh
from acnn.surface.surface import surface_of


def test_the_central_shape_is_the_one_in_the_middle():
    mesh = bumpy(2)
    stretched = [Mesh(mesh.vertices * [1, 1 + 0.1 * k, 1] * (1 + k), mesh.faces) for k in (2, 0, 1, 4, 3)]
    distances = spectral_distances([basis_of(surface_of(shape), 40) for shape in stretched])
    np.testing.assert_allclose(distances, distances.T)
    assert central_shape(distances) == 0
    assert similar_shapes(distances, 1, 2, without=0) == [2, 4]
    assert similar_shapes(distances, 3, 9, without=0) == [4, 2, 1]
    assert distances.diagonal().max() == 0


def test_two_maps_that_agree_outvote_one_that_does_not():
    surface = surface_of(bumpy(2))
    right = np.arange(len(surface.vertices))
    opposite = np.array([np.argmin(surface.vertices @ x) for x in surface.vertices])
    found = most_consistent([opposite, right, right], surface, surface)
    assert found.index in (1, 2)
    assert found.agreement.min() == pytest.approx(1)
    assert most_consistent([right, opposite, right], surface, surface).index == 0
    alone = most_consistent([right, opposite], surface, surface)
    assert alone.index == 0
    assert not alone.consistent
    assert alone.agreement.max() < 0.01
    assert most_consistent([right], surface, surface).cycle_error == 0


def test_a_vertex_that_goes_astray_is_seen():
    surface = surface_of(bumpy(2))
    right = np.arange(len(surface.vertices))
    astray = right.copy()
    astray[7] = np.argmin(surface.vertices @ surface.vertices[7])
    found = most_consistent([astray, right], surface, surface)
    assert found.consistent
    assert found.agreement[7] < 0.01
    assert np.delete(found.agreement, 7).min() == pytest.approx(1)
