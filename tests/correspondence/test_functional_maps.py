"""Functional maps and ZoomOut: permuted copies of a shape without symmetry, noise, direction."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from acnn.correspondence import SoftMap, SpectralBasis, basis_of, soft_map_from_point_map, zoomout, zoomout_sizes
from acnn.correspondence.functional_map import (
    confident_vertices,
    functional_map_from_pairs,
    functional_map_from_point_map,
    nearest_points,
    orthogonality,
    query_to_reference_from_functional_map,
    spectral_icp,
)
from acnn.correspondence.zoomout import spread_vertices
from acnn.errors import InputError
from acnn.shapes import Mesh
from acnn.surface.surface import surface_of


def bumpy(n, seed=0):
    """A ball with smooth bumps: no symmetry, n points spread by the golden angle from a random turn."""
    k = np.arange(n) + 0.5
    height, angle = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k + seed
    flat = np.sqrt(1 - height**2)
    points = np.stack([flat * np.cos(angle), flat * np.sin(angle), height], axis=1)
    faces = ConvexHull(points).simplices
    a, b, c = (points[faces[:, i]] for i in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a + b + c) < 0
    faces = np.where(inward[:, None], faces[:, ::-1], faces).astype(np.int32)
    x, y, z = points.T
    radius = 1 + 0.5 * np.exp(-6 * ((x - 1) ** 2 + y**2)) + 0.35 * y + 0.25 * x * z + 0.2 * np.sin(3 * z + x)
    return Mesh(points * radius[:, None] * [1.0, 1.3, 1.9], faces)


def permuted(mesh, seed):
    """A copy with its vertices in another order; permutation[i] is the old number of new vertex i."""
    permutation = np.random.default_rng(seed).permutation(len(mesh.vertices))
    faces = np.argsort(permutation)[mesh.faces].astype(np.int32)
    return Mesh(mesh.vertices[permutation], faces), permutation


@pytest.fixture(scope="module")
def pair():
    mesh = bumpy(800)
    copy, permutation = permuted(mesh, 1)
    return basis_of(surface_of(copy), 60), basis_of(surface_of(mesh), 60), permutation


def corrupted(point_map, share, size, seed):
    random = np.random.default_rng(seed)
    wrong = random.random(len(point_map)) < share
    return np.where(wrong, random.integers(0, size, len(point_map)), point_map)


def test_a_basis_is_orthonormal_and_free_of_scale():
    mesh = bumpy(400)
    small = basis_of(surface_of(mesh, unit=1.0), 12)
    large = basis_of(surface_of(Mesh(mesh.vertices * 50, mesh.faces), unit=1.0), 12)
    np.testing.assert_allclose(small.functions.T @ (small.mass[:, None] * small.functions), np.eye(12), atol=1e-9)
    np.testing.assert_allclose(small.eigenvalues, large.eigenvalues, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(small.functions, large.functions, atol=1e-6)


@pytest.mark.parametrize("on_one_core", [0, 10**9])
def test_nearest_points_are_those_of_all_distances(on_one_core, monkeypatch):
    monkeypatch.setattr("acnn.correspondence.functional_map.ON_ONE_CORE", on_one_core)
    random = np.random.default_rng(0)
    points, among = random.standard_normal((300, 7)) + 100, random.standard_normal((211, 7)) + 100
    every = ((points[:, None] - among[None]) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest_points(points, among, block=64), every)
    assert nearest_points(np.zeros((1, 2)), np.array([[1.0, 0], [0, 1], [1, 0]]))[0] == 0


@pytest.mark.parametrize("side", ["reference", "query"])
def test_landmarks_with_noise_recover_a_permutation(pair, side):
    query, reference, permutation = pair
    landmarks = spread_vertices(query, 30)
    matched = permutation[landmarks].copy()
    # Off by one edge or so: a near vertex instead of the true one.
    near = ((reference.functions[matched, None, :20] - reference.functions[None, :, :20]) ** 2).sum(axis=2)
    matched[::3] = np.argsort(near, axis=1)[::3, 2]
    fitted = functional_map_from_pairs(query, reference, landmarks, matched, 12)
    start = query_to_reference_from_functional_map(fitted, query, reference, side=side)
    result, _ = zoomout(query, reference, start, sizes=zoomout_sizes(12, 60, 4))
    np.testing.assert_array_equal(result, permutation)


def test_the_functional_map_of_a_permutation_is_exact_and_orthogonal(pair):
    query, reference, permutation = pair
    for fitted in (
        functional_map_from_point_map(query, reference, permutation, 40),
        functional_map_from_pairs(query, reference, np.arange(800), permutation, 40, weights=query.mass),
    ):
        np.testing.assert_allclose(query.first(40) @ fitted, reference.first(40)[permutation], atol=1e-4)
        assert orthogonality(fitted) < 1e-4
        np.testing.assert_array_equal(query_to_reference_from_functional_map(fitted, query, reference), permutation)


def test_a_functional_map_pulls_functions_of_the_reference_back(pair):
    query, reference, permutation = pair
    fitted = functional_map_from_point_map(query, reference, permutation, (50, 30))
    coefficients = np.random.default_rng(0).standard_normal(30)
    on_reference = reference.first(30) @ coefficients
    on_query = query.first(50) @ (fitted @ coefficients)
    np.testing.assert_allclose(on_query, on_reference[permutation], atol=1e-3)


def test_weights_and_thresholds_leave_outliers_out(pair):
    query, reference, permutation = pair
    wrong = np.random.default_rng(5).random(800) < 0.4
    matched = np.where(wrong, np.random.default_rng(6).integers(0, 800, 800), permutation)
    soft = soft_map_from_point_map(matched, 800, np.where(wrong, 0.2, 0.8))
    chosen = confident_vertices(soft, threshold=0.5)
    np.testing.assert_array_equal(chosen, np.flatnonzero(~wrong))
    by_choice = functional_map_from_pairs(query, reference, chosen, matched[chosen], 30)
    by_weight = functional_map_from_pairs(query, reference, np.arange(800), matched, 30, weights=(~wrong).astype(float))
    np.testing.assert_allclose(by_choice, by_weight, atol=1e-6)
    np.testing.assert_array_equal(query_to_reference_from_functional_map(by_choice, query, reference), permutation)


def test_the_most_confident_vertices_do_not_depend_on_order():
    confidence = np.array([0.5, 0.9, 0.5, 0.1, 0.7, 0.5], dtype=np.float32)
    soft = SoftMap(np.zeros((6, 1), dtype=np.int32), confidence[:, None], 3)
    np.testing.assert_array_equal(confident_vertices(soft, count=2), [1, 4])
    np.testing.assert_array_equal(
        confident_vertices(soft, count=3), [0, 1, 2, 4, 5]
    )  # all that tie for the third place
    np.testing.assert_array_equal(confident_vertices(soft, threshold=0.6, count=6), [1, 4])


def test_spectral_icp_mends_a_rough_map(pair):
    query, reference, permutation = pair
    start = functional_map_from_point_map(query, reference, corrupted(permutation, 0.55, 800, 3), 40)
    before = (query_to_reference_from_functional_map(start, query, reference) == permutation).mean()
    fitted, matched = spectral_icp(start, query, reference, rounds=10)
    assert before < 0.9
    assert (matched == permutation).mean() > 0.99
    assert orthogonality(fitted) < 1e-6


@pytest.mark.parametrize("samples", [None, 300])
def test_zoomout_mends_a_map_of_which_three_tenths_are_random(pair, samples):
    query, reference, permutation = pair
    start = corrupted(permutation, 0.3, 800, 4)
    result, fitted = zoomout(query, reference, start, sizes=zoomout_sizes(8, 60, 4), samples=samples)
    assert (result == permutation).mean() > 0.95
    assert fitted.shape == (60, 60)
    from_map, _ = zoomout(
        query,
        reference,
        functional_map=functional_map_from_point_map(query, reference, start, 8),
        sizes=zoomout_sizes(8, 60, 4),
    )
    assert (from_map == permutation).mean() > 0.95


def test_zoomout_between_different_triangulations_lands_within_an_edge():
    query_mesh, reference_mesh = bumpy(900, seed=2), bumpy(700)
    query, reference = surface_of(query_mesh, unit=1.0), surface_of(reference_mesh, unit=1.0)
    # Surfaces agree as sets, up to where the whole was centred: the nearest vertex is the truth.
    truth = nearest_points(query_mesh.vertices, reference_mesh.vertices)
    result, _ = zoomout(
        basis_of(query, 50), basis_of(reference, 50), corrupted(truth, 0.3, 700, 7), sizes=zoomout_sizes(8, 50, 3)
    )
    off = np.linalg.norm(reference_mesh.vertices[result] - reference_mesh.vertices[truth], axis=1)
    assert (off <= 1.5 * reference.mean_edge).mean() > 0.95


def test_spread_vertices_do_not_depend_on_order(pair):
    query, reference, permutation = pair
    np.testing.assert_array_equal(permutation[spread_vertices(query, 25)], spread_vertices(reference, 25))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda q, r: functional_map_from_pairs(q, r, [1, 2, 3], [1, 2, 3], 4), "3 matched points"),
        (lambda q, r: functional_map_from_pairs(q, r, [1, 2], [1], 1), "reference_vertices"),
        (lambda q, r: functional_map_from_pairs(q, r, [1, 2], [1, 2], 1, [1, -1]), "at least 0"),
        (lambda q, r: functional_map_from_point_map(q, r, np.zeros(800, int), 61), "61 of 60"),
        (lambda q, r: zoomout(q, r, sizes=[5]), "give one of them"),
        (lambda q, r: zoomout(q, r, np.zeros(800, int), sizes=[10, 5]), "must ascend"),
        (lambda q, r: zoomout_sizes(20, 10), "cannot go"),
    ],
)
def test_bad_input_says_what_is_wrong(pair, call, words):
    query, reference, _ = pair
    assert isinstance(query, SpectralBasis)
    with pytest.raises(InputError, match=words):
        call(query, reference)
