"""Points inside triangles from a map to vertices."""

import numpy as np
import pytest

from acnn.correspondence.point_maps import barycentric_map
from acnn.datasets import builtin_humans
from acnn.errors import InputError
from acnn.surface import surface_of
from acnn.surface.simplify import remesh


def test_a_remeshed_person_is_matched_more_finely_than_to_vertices():
    people = builtin_humans()
    mesh, reference = people.mesh(3), surface_of(people.mesh(40))
    copy = remesh(mesh, seed=1)
    corners = reference.vertices[reference.faces]
    truth = np.einsum("nk,nkd->nd", copy.truth.weights, corners[copy.truth.faces])
    matched = copy.truth.nearest_vertex(mesh.vertices, mesh.faces)
    points = barycentric_map(matched, surface_of(copy.mesh), reference)
    np.testing.assert_allclose(points.weights.sum(axis=1), 1.0)
    before = np.linalg.norm(reference.vertices[matched] - truth, axis=1).mean()
    after = np.linalg.norm(points.interpolate(corners) - truth, axis=1).mean()
    assert after < 0.75 * before


def test_a_torn_map_keeps_its_far_matches():
    surface = surface_of(builtin_humans().mesh(0))
    matched = np.arange(len(surface.vertices))
    far = int(np.argmax(np.linalg.norm(surface.vertices - surface.vertices[10], axis=1)))
    matched[10] = far
    points = barycentric_map(matched, surface, surface)
    place = points.interpolate(surface.vertices[surface.faces])[10]
    np.testing.assert_allclose(place, surface.vertices[far], atol=1e-6)
    with pytest.raises(InputError):
        barycentric_map(matched[:5], surface, surface)
