"""Statistics of shapes: known modes are recovered, and curves equal an independent computation."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation

import acnn
from acnn.datasets.families import make_family
from acnn.errors import InputError
from acnn.registration.statistics import generalisation, specificity


@pytest.fixture(scope="module")
def bones():
    return make_family("bone", 30, vertices=700, seed=5)


def moved(shapes, seed=0):
    turns = Rotation.random(len(shapes), random_state=seed).as_matrix()
    return shapes @ turns.transpose(0, 2, 1) + np.random.default_rng(seed).normal(size=(len(shapes), 1, 3))


def angle(statistics, family):
    """Largest angle in degrees between the recovered and the known subspace, in the frame of the known one."""
    found, known = statistics.modes.reshape(5, -1, 3), family.modes.reshape(5, -1)
    turn, _ = Rotation.align_vectors(family.template - family.template.mean(axis=0), statistics.mean)
    return np.degrees(subspace_angles(turn.apply(found.reshape(-1, 3)).reshape(5, -1).T, known.T)[0])


@pytest.mark.parametrize("scale", [False, True])
def test_known_modes_are_recovered(bones, scale):
    factors = np.exp(0.2 * np.random.default_rng(0).normal(size=(30, 1, 1))) if scale else 1.0
    statistics = acnn.shape_statistics(factors * moved(bones.vertices), modes=5, scale=scale)
    assert angle(statistics, bones) < 1
    assert statistics.compactness[-1] > 0.999
    assert np.allclose(statistics.scores.std(axis=0, ddof=1), 1)
    assert np.allclose(statistics.scores.mean(axis=0), 0, atol=1e-9)
    gram = np.einsum("kni,lni->kl", statistics.modes, statistics.modes)
    assert np.allclose(gram, np.eye(5), atol=1e-9)
    assert np.abs(statistics.shape(statistics.scores[3]) - statistics.aligned[3]).max() < 0.002


def test_known_variances_are_recovered(bones):
    statistics = acnn.shape_statistics(bones.vertices, modes=5)
    known = np.cov(bones.parameters.T) * np.outer(*2 * [np.linalg.norm(bones.modes.reshape(5, -1), axis=1)])
    assert np.allclose(statistics.standard_deviations**2, np.linalg.eigvalsh(known)[::-1], rtol=0.02)
    assert statistics.total_variance == pytest.approx(np.trace(known) / 700, rel=0.01)


def test_curves_equal_an_independent_computation():
    random = np.random.default_rng(2)
    shapes = np.einsum("sk,kni->sni", random.normal(size=(9, 4)), random.normal(size=(4, 20, 3))) + 5 * random.normal(
        size=(20, 3)
    )
    statistics = acnn.shape_statistics(shapes, modes=6, samples=50, seed=3)
    rows = statistics.aligned.reshape(9, 60)
    # eigenvectors of the covariance matrix, and projections as matrices
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    order = np.argsort(values)[::-1]
    values, vectors = values[order], vectors[:, order]
    assert np.allclose(statistics.compactness, [values[: m + 1].sum() / values.sum() for m in range(6)])

    for m in range(6):
        errors = []
        for left in range(9):
            others = rows[[i for i in range(9) if i != left]]
            _, w = np.linalg.eigh(np.cov(others.T))
            projector = w[:, -(m + 1) :] @ w[:, -(m + 1) :].T
            rest = (np.eye(60) - projector) @ (rows[left] - others.mean(axis=0))
            errors.append(np.sqrt(np.mean(np.sum(rest.reshape(20, 3) ** 2, axis=1))))
        assert statistics.generalisation[m] == pytest.approx(np.mean(errors), rel=1e-6)

    drawn = np.random.default_rng(3).standard_normal((50, 6))
    for m in range(6):
        signs = np.sign(np.einsum("nk,kn->k", vectors[:, : m + 1], statistics.modes.reshape(6, -1)[: m + 1]))
        samples = rows.mean(axis=0) + (drawn[:, : m + 1] * np.sqrt(values[: m + 1]) * signs) @ vectors[:, : m + 1].T
        nearest = cdist(samples, rows).min(axis=1) / np.sqrt(20)
        assert statistics.specificity[m] == pytest.approx(nearest.mean(), rel=1e-6)


def test_results_do_not_depend_on_frame_order_and_unit(bones):
    first = acnn.shape_statistics(bones.vertices[:12], modes=3)
    other = acnn.shape_statistics(1000 * moved(bones.vertices[:12])[::-1], modes=3)
    assert np.allclose(other.standard_deviations, 1000 * first.standard_deviations, rtol=1e-6)
    assert np.allclose(np.abs(other.scores[::-1]), np.abs(first.scores), atol=1e-5)
    assert np.allclose(other.generalisation, 1000 * first.generalisation, rtol=1e-5)


def test_missing_data_are_completed(bones):
    shapes = moved(bones.vertices)
    weights = np.ones(shapes.shape[:2])
    random = np.random.default_rng(8)
    for number in range(0, 30, 2):  # every other bone lacks a region of about a fifth
        centre = bones.template[random.integers(700)]
        weights[number, np.argsort(np.linalg.norm(bones.template - centre, axis=1))[:140]] = 0
    damaged = np.where(weights[:, :, None] > 0, shapes, np.nan)
    full = acnn.shape_statistics(shapes, modes=5)
    statistics = acnn.shape_statistics(damaged, weights=weights, modes=5)
    assert angle(statistics, bones) < 1.5
    missing = weights == 0
    turn, _ = Rotation.align_vectors(full.mean, statistics.mean)
    completed = turn.apply(statistics.aligned.reshape(-1, 3)).reshape(shapes.shape)
    error = np.linalg.norm(completed - full.aligned, axis=2)[missing].mean()
    naive = np.linalg.norm(full.mean - full.aligned, axis=2)[missing].mean()
    assert error < 0.01 * naive
    assert np.allclose(statistics.generalisation, full.generalisation, rtol=0.3, atol=1e-3)
    assert statistics.as_dict()["missing"] == pytest.approx(0.1)


def test_full_weights_change_nothing(bones):
    plain = acnn.shape_statistics(bones.vertices[:8], modes=2)
    weighted = acnn.shape_statistics(bones.vertices[:8], weights=np.ones((8, 700)), modes=2)
    assert np.array_equal(plain.modes, weighted.modes)
    assert np.allclose(generalisation(plain.aligned, 2), generalisation(plain.aligned, 2, np.ones((8, 700))), rtol=1e-8)
    assert np.array_equal(plain.specificity, specificity(plain.aligned, 2))


def test_meshes_and_default_modes(bones):
    statistics = acnn.shape_statistics([bones.mesh(i) for i in range(10)])
    assert statistics.compactness[-1] >= 0.95
    assert len(statistics.modes) == 1 or statistics.compactness[-2] < 0.95
    assert statistics.as_dict()["shapes"] == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: {"shapes": v[:2]}, "at least 3"),
        (lambda v: {"shapes": [v[0], v[1], v[2][:-1]]}, "Shape 2 has 699 vertices"),
        (lambda v: {"shapes": np.where(np.arange(700)[:, None] == 7, np.nan, v)}, "vertex 7 is"),
        (lambda v: {"shapes": [v[0], v[0], v[0]]}, "no variation"),
        (lambda v: {"shapes": v[:4], "modes": 4}, "1 to 3"),
        (lambda v: {"shapes": v[:4], "weights": np.ones((4, 2))}, "Weights have shape"),
        (lambda v: {"shapes": v[:4], "weights": np.full((4, 700), 2.0)}, r"0\.\.1"),
        (lambda v: {"shapes": v[:4], "weights": np.tile(np.arange(700) > 4, (4, 1))}, "5 vertices, such as 0"),
        (lambda v: {"shapes": v[:4], "groups": ["a", "b", "c", "a"]}, "3 groups"),
        (lambda v: {"shapes": v[:4], "groups": ["a", "b", "a", "a"]}, "Group 'b' has 1"),
        (lambda v: {"shapes": v[:4], "groups": ["a", "b"]}, "2 group labels for 4"),
    ],
)
def test_invalid_input(bones, change, message):
    with pytest.raises(InputError, match=message):
        acnn.shape_statistics(**change(bones.vertices))


def test_meshes_of_different_topology_are_refused(bones):
    turned = acnn.Mesh(bones.vertices[2], bones.faces[::-1].copy())
    with pytest.raises(InputError, match="Shape 2 has other faces"):
        acnn.shape_statistics([bones.mesh(0), bones.mesh(1), turned])
