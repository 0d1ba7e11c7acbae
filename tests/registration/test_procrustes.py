"""Generalised Procrustes alignment: motions are undone, whatever the frame, with and without missing data."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from acnn.registration.procrustes import align_shapes, fit_motions


def moved(shapes, seed=0, scales=None):
    random = np.random.default_rng(seed)
    turns = Rotation.random(len(shapes), random_state=seed).as_matrix()
    shifts = random.normal(size=(len(shapes), 1, 3))
    factors = np.ones(len(shapes)) if scales is None else scales
    return factors[:, None, None] * shapes @ turns.transpose(0, 2, 1) + shifts


@pytest.fixture
def shape():
    return np.random.default_rng(1).normal(size=(60, 3)) * [3, 2, 1]


def test_moved_copies_become_equal(shape):
    result = align_shapes(moved(np.repeat(shape[None], 5, axis=0)))
    assert np.ptp(result.shapes, axis=0).max() < 1e-9
    assert np.allclose(np.linalg.det(result.rotations), 1)
    assert np.abs(result.mean.mean(axis=0)).max() < 1e-9


def test_frame_is_that_of_the_first_shape_and_size_is_kept(shape):
    shapes = moved(np.repeat(shape[None], 4, axis=0), scales=np.array([1.0, 2.0, 0.5, 3.0]))
    rigid = align_shapes(shapes)
    assert np.allclose(rigid.shapes[0], shapes[0] - shapes[0].mean(axis=0) + rigid.shapes[0].mean(axis=0))
    similar = align_shapes(shapes, scale=True)
    assert np.ptp(similar.shapes, axis=0).max() < 1e-9
    assert np.prod(similar.scales) == pytest.approx(1)  # the geometric mean of the sizes stays


def test_each_shape_is_at_the_least_squares_motion(shape):
    random = np.random.default_rng(3)
    shapes = moved(shape + 0.2 * random.normal(size=(6, 60, 3)))
    result = align_shapes(shapes)
    mean = result.shapes.mean(axis=0)
    assert np.allclose(mean, result.mean, atol=1e-8)
    for aligned in result.shapes:  # SciPy's solution finds nothing left to do
        turn, _ = Rotation.align_vectors(mean, aligned - aligned.mean(axis=0))
        assert turn.magnitude() < 1e-7


def test_mirrored_shapes_are_not_turned_inside_out(shape):
    rotations, _, _ = fit_motions((shape * [1, 1, -1])[None], shape, np.ones((1, 60)))
    assert np.linalg.det(rotations[0]) == pytest.approx(1)


def test_vertices_without_data_have_no_influence(shape):
    shapes = moved(np.repeat(shape[None], 5, axis=0))
    weights = np.ones((5, 60))
    for number in range(5):
        weights[number, 10 * number : 10 * number + 12] = 0
        shapes[number, 10 * number : 10 * number + 12] = 100.0
    for scale in (False, True):
        result = align_shapes(shapes, weights, scale=scale)
        known = np.where(weights[:, :, None] > 0, result.shapes, np.nan)
        assert (np.nanmax(known, axis=0) - np.nanmin(known, axis=0)).max() < 1e-8
