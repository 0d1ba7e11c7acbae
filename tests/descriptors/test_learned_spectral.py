"""Learned spectral descriptors: splines, geometry vectors and their symmetries, the closed form, and a real fit."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from acnn.datasets.builtin import builtin_humans
from acnn.descriptors.learned_spectral import (
    PairStatistics,
    SplineBasis,
    anisotropic_geometry_vectors,
    fit_projection,
    geometry_vectors,
    normalised_vectors,
)
from acnn.descriptors.spectral import wks
from acnn.errors import InputError
from acnn.evaluation.descriptors import evaluate_descriptors, mean_evaluation
from acnn.shapes.mesh import Mesh
from acnn.surface.curvature import principal_frames
from acnn.surface.laplacian import stiffness_parts
from acnn.surface.spectra import eigenpairs, surface_eigenpairs
from acnn.surface.surface import surface_of


@pytest.mark.parametrize("shift", [0.0, 1.5, 2.0, 3.0])
def test_splines_sum_to_one_within_their_range_and_vanish_outside_their_support(shift):
    basis = SplineBasis(12, 3.0, shift)
    inside = np.linspace((3.0 - shift) * basis.spacing, 3.0, 301)
    np.testing.assert_allclose(basis.evaluate(inside).sum(axis=1), 1.0, atol=1e-12)
    everywhere = np.linspace(0.0, 5.0, 2001)
    values = basis.evaluate(everywhere)
    assert values.min() >= 0
    for m in range(12):
        start = (m - shift) * basis.spacing
        within = (everywhere > start + 1e-9) & (everywhere < start + 4 * basis.spacing - 1e-9)
        assert (values[within, m] > 0).all()
        assert not values[~within, m].round(20).any()


def test_the_pieces_of_a_spline():
    basis = SplineBasis(4, 4.0, 0.0)  # spacing 1, the first spline is B itself
    u = np.linspace(0, 0.999, 50)
    pieces = [u**3, 1 + 3 * u + 3 * u**2 - 3 * u**3, 4 - 6 * u**2 + 3 * u**3, (1 - u) ** 3]
    for k, piece in enumerate(pieces):
        np.testing.assert_allclose(basis.evaluate(u + k)[:, 0], piece / 6, atol=1e-14)


def test_a_shift_gives_the_constant_function_its_weight():
    assert SplineBasis(10, 1.0, 0.0).evaluate([0.0]).sum() == 0
    assert SplineBasis(10, 1.0, 2.0).evaluate([0.0])[0, 0] == pytest.approx(2 / 3)
    assert SplineBasis(10, 1.0, 3.0).evaluate([0.0]).sum() == pytest.approx(1)


def test_a_basis_covers_a_percentile_of_all_eigenvalues():
    basis = SplineBasis.covering([np.arange(100.0), np.arange(100.0).reshape(4, 25)], 20, percentile=50)
    assert basis == SplineBasis(20, 49.5, 2.0)


@pytest.fixture(scope="module")
def bodies():
    """A bumpy body without any symmetry, and its mirror image."""
    k = np.arange(700) + 0.5
    height, angle = 1 - 2 * k / 700, np.pi * (1 + 5**0.5) * k
    points = np.stack([*(np.sqrt(1 - height**2) * (np.cos(angle), np.sin(angle))), height], axis=1)
    faces = ConvexHull(points).simplices.astype(np.int32)
    outward = np.einsum(
        "ij,ij->i", np.cross(*(points[faces[:, i]] - points[faces[:, 0]] for i in (1, 2))), points[faces[:, 0]]
    )
    faces = np.where(outward[:, None] < 0, faces[:, ::-1], faces)
    x, y, z = points.T
    points = points * [1.0, 1.5, 2.2] * (1 + 0.25 * np.sin(3 * x + 1) * np.sin(2 * y + 2 * z + 0.5))[:, None]
    return surface_of(Mesh(points, faces)), surface_of(Mesh(points * [-1.0, 1.0, 1.0], faces[:, ::-1].copy()))


def anisotropic_pairs(surface, thetas, k=40):
    parts = stiffness_parts(surface, principal_frames(surface))
    found = [eigenpairs(parts.matrix(100.0, theta), surface.vertex_areas, k) for theta in thetas]
    return np.stack([values for values, _ in found]), np.stack([functions for _, functions in found])


def test_geometry_vectors_are_the_sum_over_eigenpairs_and_free_of_signs(bodies):
    values, functions = surface_eigenpairs(bodies[0], 40)
    basis = SplineBasis.covering([values], 15)
    result = geometry_vectors(values, functions, basis)
    weights = basis.evaluate(values)
    for x, m in ((0, 0), (17, 3), (600, 14)):
        assert result[x, m] == pytest.approx(sum(weights[k, m] * functions[x, k] ** 2 for k in range(40)), rel=1e-12)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], 40)
    np.testing.assert_array_equal(geometry_vectors(values, functions * signs, basis), result)
    # splines sum to 1 above the first spacing, and eigenfunctions have norm 1
    whole = bodies[0].vertex_areas @ result
    np.testing.assert_allclose(whole, weights.sum(axis=0), rtol=1e-8)


def test_isotropic_vectors_of_a_mirror_image_are_the_same(bodies):
    pairs = [surface_eigenpairs(surface, 40) for surface in bodies]
    basis = SplineBasis.covering([values for values, _ in pairs], 15)
    own, mirrored = (geometry_vectors(*pair, basis) for pair in pairs)
    np.testing.assert_allclose(mirrored, own, atol=1e-6 * own.max())


def test_a_mirror_image_exchanges_the_angles_theta_and_pi_minus_theta(bodies):
    thetas = np.arange(4) * np.pi / 4
    own, mirrored = (anisotropic_pairs(surface, thetas) for surface in bodies)
    basis = SplineBasis.covering([own[0]], 15)
    own, mirrored = (anisotropic_geometry_vectors(*pairs, basis).reshape(-1, 4, 15) for pairs in (own, mirrored))
    np.testing.assert_allclose(mirrored[:, [0, 3, 2, 1]], own, atol=1e-6 * own.max())
    assert np.abs(mirrored[:, 1] - own[:, 1]).max() > 0.1 * own.max()


def test_statistics_are_means_over_pairs(monkeypatch):
    monkeypatch.setattr("acnn.descriptors.learned_spectral.ROWS", 7)
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((30, 4)), rng.standard_normal((25, 4))
    pairs = np.stack([rng.permutation(30)[:20], rng.permutation(25)[:20]], axis=1)
    statistics = PairStatistics(4)
    for _ in range(1000):
        statistics.add(a, b, pairs, rng)
    apart = a[pairs[:, 0]] - b[pairs[:, 1]]
    np.testing.assert_allclose(statistics.positive, apart.T @ apart / 20, rtol=1e-12)
    across = [a[x] - b[j] for x, y in pairs for j in range(25) if j != y]
    within = [a[x] - a[j] for x, _ in pairs for j in range(30) if j != x]
    # each pair meets one random point of the other shape, its own match left out, and one of the same shape
    share = 24 / 25 / (1 + 24 / 25)
    expected = share * np.cov(np.transpose(across), bias=True) + (1 - share) * np.cov(np.transpose(within), bias=True)
    means = np.mean(across, axis=0), np.mean(within, axis=0)
    expected += share * np.outer(means[0], means[0]) + (1 - share) * np.outer(means[1], means[1])
    np.testing.assert_allclose(statistics.negative, expected, atol=0.05)
    assert statistics.matching == 20000


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1.0])
def test_the_projection_whitens_matching_pairs(ridge):
    rng = np.random.default_rng(1)
    half, other = rng.standard_normal((2, 30, 50))
    positive, negative = half @ half.T / 50, other @ other.T / 50 + np.diag(np.arange(30.0))
    projection = fit_projection(positive, negative, 8, ridge)
    assert projection.shape == (8, 30)
    np.testing.assert_allclose(projection @ positive @ projection.T, np.eye(8), atol=1e-9)
    gains = projection @ negative @ projection.T
    np.testing.assert_allclose(gains, np.diag(np.diag(gains)), atol=1e-8 * gains.max())
    assert (np.diff(np.diag(gains)) < 0).all()


def test_without_a_ridge_no_other_projection_separates_better():
    rng = np.random.default_rng(2)
    half, other = rng.standard_normal((2, 12, 40))
    positive, negative = half @ half.T, other @ other.T
    best = fit_projection(positive, negative, 3, 0.0)
    root = np.linalg.inv(np.linalg.cholesky(positive))
    for _ in range(200):
        rows = np.linalg.qr(rng.standard_normal((12, 3)))[0].T @ root
        np.testing.assert_allclose(rows @ positive @ rows.T, np.eye(3), atol=1e-9)
        assert np.trace(rows @ negative @ rows.T) <= np.trace(best @ negative @ best.T)


def test_normalisations():
    vectors = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 5.0]])
    np.testing.assert_array_equal(normalised_vectors(vectors, "none"), vectors)
    np.testing.assert_allclose(normalised_vectors(vectors, "unit"), [[0.6, 0.8], [0.0, 0.0], [0.0, 1.0]])
    logarithms = normalised_vectors(vectors, "log")
    np.testing.assert_allclose(np.exp(logarithms), vectors + 0.02)
    # another unit of area moves all of them alike, so that distances stay
    np.testing.assert_allclose(normalised_vectors(7.0 * vectors, "log"), logarithms + np.log(7.0))
    with pytest.raises(InputError, match="use one of none, unit, log"):
        normalised_vectors(vectors, "length")
    with pytest.raises(InputError, match="without negative numbers"):
        normalised_vectors(-vectors, "log")


def fitted(vectors, pairs, dimension):
    """Projection of training shapes, two after another."""
    statistics = PairStatistics(vectors[0].shape[1])
    rng = np.random.default_rng(0)
    for i in range(len(vectors)):
        statistics.add(vectors[i], vectors[(i + 1) % len(vectors)], pairs, rng)
    return fit_projection(statistics.positive, statistics.negative, dimension)


@pytest.mark.slow
def test_a_fitted_descriptor_is_better_than_wks_of_the_same_size_on_unseen_humans():
    humans = builtin_humans()
    train = [np.flatnonzero(humans.subjects == s)[p] for s, p in ((0, 1), (2, 3), (4, 5), (6, 7), (8, 2), (10, 4))]
    test = [np.flatnonzero(humans.subjects == s)[p] for s, p in ((17, 0), (18, 3), (19, 6))]
    spectra = {i: surface_eigenpairs(surface_of(humans.mesh(i)), 100) for i in train + test}
    basis = SplineBasis.covering([spectra[i][0] for i in train], 50)
    vectors = {i: normalised_vectors(geometry_vectors(*pairs, basis), "log") for i, pairs in spectra.items()}
    own = np.arange(humans.vertices.shape[1])
    projection = fitted([vectors[i] for i in train], np.stack([own, own], axis=1), 16)

    def hit(descriptors):
        query, *others = (descriptors(i) for i in test)
        found = [evaluate_descriptors(query, other, own, mirrored_truth=humans.mirror) for other in others]
        return mean_evaluation(found).symmetric.hit(10)

    learned, fixed = hit(lambda i: vectors[i] @ projection.T), hit(lambda i: wks(*spectra[i], 16))
    assert learned > 1.1 * fixed


def test_bad_input_is_named():
    with pytest.raises(InputError, match="shifted by 4"):
        SplineBasis(10, 1.0, 4.0)
    with pytest.raises(InputError, match="give more of them"):
        SplineBasis(2, 1.0)
    with pytest.raises(InputError, match="positive number, not nan"):
        SplineBasis(9, np.nan)
    with pytest.raises(InputError, match="no eigenvalues"):
        SplineBasis.covering([], 9)
    basis = SplineBasis(9, 1.0)
    with pytest.raises(InputError, match=r"3 eigenvalues and eigenfunctions of shape \(5, 4\)"):
        geometry_vectors([0.0, 0.1, 0.2], np.ones((5, 4)), basis)
    with pytest.raises(InputError, match=r"\(angles, k\) and \(angles, n, k\)"):
        anisotropic_geometry_vectors(np.ones((2, 4)), np.ones((3, 5, 4)), basis)
    statistics, rng = PairStatistics(3), np.random.default_rng(0)
    with pytest.raises(InputError, match="No matching points"):
        _ = statistics.positive
    with pytest.raises(InputError, match=r"shape b are an array of \(5, 2\); \(n, 3\)"):
        statistics.add(np.ones((5, 3)), np.ones((5, 2)), np.zeros((1, 2), int), rng)
    with pytest.raises(InputError, match=r"up to \[0, 5\], but the shapes have 5 and 5"):
        statistics.add(np.ones((5, 3)), np.ones((5, 3)), np.array([[0, 5]]), rng)
    with pytest.raises(InputError, match="shape a are not all finite"):
        statistics.add(np.full((5, 3), np.nan), np.ones((5, 3)), np.array([[0, 1]]), rng)
    with pytest.raises(InputError, match="17 numbers cannot be taken from 3"):
        fit_projection(np.eye(3), np.eye(3), 17)
    with pytest.raises(InputError, match="do not differ at all"):
        fit_projection(np.zeros((3, 3)), np.eye(3), 2)
    with pytest.raises(InputError, match="fewer than 2 independent directions"):
        fit_projection(np.diag([1.0, 0.0, 0.0]), np.eye(3), 2, 0.0)
