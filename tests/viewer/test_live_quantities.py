"""What the live viewer shows of a vertex, and what a click meets."""

import numpy as np
import pytest
from analytic import bumpy, torus

from acnn.correspondence import SoftMap
from acnn.patches import PatchSettings, build_patches
from acnn.surface import principal_frames, surface_of
from acnn.viewer.live_scene import (
    direction_ribbons,
    filter_row,
    kernel_row,
    normalised,
    spread_on_query,
    spread_on_reference,
    spread_onward,
    vertex_on_ray,
)


@pytest.fixture(scope="module")
def patches():
    return build_patches(bumpy(2), PatchSettings(angles=2, scales=(60.0, 400.0), eigenpairs=160))


def test_a_kernel_is_a_row_of_the_operator_per_area_and_integrates_to_one(patches):
    assert patches.wide == (1,)  # one scale of each kind
    row = kernel_row(patches, 7, 1, 0)
    np.testing.assert_allclose(row * patches.vertex_areas, patches.matrix(1, 0).toarray()[7], rtol=1e-5, atol=1e-9)
    for scale in (0, 1):
        assert kernel_row(patches, 7, 1, scale) @ patches.vertex_areas == pytest.approx(1.0, abs=2e-3)
    assert not np.allclose(kernel_row(patches, 7, 0, 0), row)


def test_a_filter_on_the_surface_answers_as_its_layer_does(patches):
    weights = np.array([[1.0, -2.0], [0.5, 0.25]])
    function = np.random.default_rng(0).normal(size=(patches.n, 1))
    answer = np.einsum("ats,at->s", patches.apply(function)[11], weights)[0]
    row = filter_row(patches, 11, weights)
    assert (row * patches.vertex_areas) @ function[:, 0] == pytest.approx(answer, rel=1e-4)


def test_spreads_follow_the_soft_map():
    soft = SoftMap(
        np.array([[2, 0], [2, 1], [0, 2]], np.int32), np.array([[0.7, 0.2], [0.9, 0.1], [0.6, 0.4]], np.float32), 4
    )
    np.testing.assert_allclose(spread_on_reference(soft, 0), [0.2, 0, 0.7, 0], atol=1e-6)
    np.testing.assert_allclose(spread_on_query(soft, 2), [0.7, 0.9, 0.4], atol=1e-6)
    onward = spread_onward(spread_on_reference(soft, 0), np.array([1, 0, 1, 0]), 3)
    np.testing.assert_allclose(onward, [0, 0.9, 0], atol=1e-6)  # both fall on vertex 1
    np.testing.assert_allclose(normalised(np.array([0.0, 1.0, 4.0])), [0, 0.25, 1])
    assert normalised(np.zeros(3)).tolist() == [0, 0, 0]


def test_a_ray_meets_the_nearest_side_only():
    mesh = bumpy(2)
    for vertex in (0, 40, 111):
        outside = mesh.vertices[vertex] * 3
        found, distance = vertex_on_ray(mesh.vertices, mesh.faces, outside, -outside)
        assert found == vertex
        assert distance == pytest.approx(2 / 3, abs=0.02)
    assert vertex_on_ray(mesh.vertices, mesh.faces, [9, 9, 9], [1, 0, 0]) is None
    assert vertex_on_ray(mesh.vertices, mesh.faces, [9, 0, 0], [1, 0, 0]) is None  # behind it


def test_direction_lines_run_along_the_curvature():
    mesh, meridians = torus()
    surface = surface_of(mesh)
    larger, smaller = direction_ribbons(surface, principal_frames(surface), count=400)
    assert len(larger) == len(smaller) <= 400
    assert larger.shape[1:] == (4, 3)
    along = larger[:, 1] - larger[:, 0]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    nearest = np.linalg.norm(surface.vertices[None] - larger.mean(axis=1)[:, None], axis=2).argmin(axis=1)
    assert np.median(np.abs(np.einsum("ij,ij->i", along, meridians[nearest]))) > 0.98
