"""Soft maps: the dense softmax, ties, blocks, maps through a reference, values along a map."""

import numpy as np
import pytest
import torch

from acnn.correspondence import (
    SoftMap,
    invert_through_reference,
    pull_back,
    push_forward,
    soft_map_from_features,
    soft_map_from_logits,
    soft_map_from_point_map,
)
from acnn.errors import InputError
from acnn.shapes import Mesh
from acnn.surface.surface import surface_of


def dense_softmax(logits):
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def strip(n=9):
    """Two rows of n vertices, unit cells."""
    vertices = np.array([[i, j, 0.0] for i in range(n) for j in range(2)])
    faces = [[2 * i, 2 * i + 2, 2 * i + 3] for i in range(n - 1)] + [
        [2 * i, 2 * i + 3, 2 * i + 1] for i in range(n - 1)
    ]
    return surface_of(Mesh(vertices, np.array(faces, dtype=np.int32)), unit=1.0)


@pytest.mark.parametrize("k", [1, 5, 40, 100])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_top_k_equals_the_dense_softmax(k, kind):
    logits = (4 * np.random.default_rng(0).standard_normal((70, 40))).astype(np.float32)
    dense = dense_softmax(logits.astype(float))
    order = np.argsort(-dense, axis=1, kind="stable")[:, :k]
    pieces = [logits[:30], logits[30:31], logits[31:]]
    soft = soft_map_from_logits(pieces if kind == "numpy" else [torch.from_numpy(p) for p in pieces], k)
    np.testing.assert_array_equal(soft.vertices, order)
    np.testing.assert_allclose(soft.probabilities, np.take_along_axis(dense, order, 1), rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(soft.query_to_reference, dense.argmax(axis=1))
    np.testing.assert_allclose(soft.confidence, dense.max(axis=1), rtol=1e-5)
    assert soft.vertices.dtype == np.int32
    assert soft.probabilities.dtype == np.float32


def test_equal_logits_go_to_the_lower_index():
    logits = np.array([[1, 3, 3, 0, 3, 1], [2, 2, 2, 2, 2, 2]], dtype=np.float32)
    soft = soft_map_from_logits([logits], 4)
    np.testing.assert_array_equal(soft.vertices, [[1, 2, 4, 0], [0, 1, 2, 3]])


def test_features_and_classifier_give_the_map_of_their_logits_whatever_the_block():
    random = np.random.default_rng(1)
    features, weight, bias = (random.standard_normal(s).astype(np.float32) for s in ((50, 6), (33, 6), (33,)))
    whole = soft_map_from_logits([features @ weight.T + bias], 5)
    for block in (7, 50, 1000):
        blocked = soft_map_from_features(features, weight, bias, 5, block)
        np.testing.assert_array_equal(blocked.vertices, whole.vertices)
        np.testing.assert_allclose(blocked.probabilities, whole.probabilities, rtol=1e-4)
    tensors = [torch.from_numpy(a).requires_grad_() for a in (features, weight, bias)]
    np.testing.assert_array_equal(soft_map_from_features(*tensors, k=5, block=7).vertices, whole.vertices)


def test_huge_logits_stay_finite():
    soft = soft_map_from_logits([np.array([[1e4, -1e4, 0.0], [-np.inf, 5.0, 5.0]], dtype=np.float32)], 3)
    np.testing.assert_allclose(soft.probabilities, [[1, 0, 0], [0.5, 0.5, 0]])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_logit_that_is_not_finite_is_named(bad):
    logits = np.zeros((4, 3), dtype=np.float32)
    logits[2, 1] = bad
    with pytest.raises(InputError, match="vertex 6"):
        soft_map_from_logits([np.zeros((4, 3)), logits], 2)


def test_through_adds_probabilities_that_meet_in_one_vertex():
    soft = SoftMap(
        np.array([[0, 1, 2, 3]], dtype=np.int32), np.array([[0.4, 0.3, 0.2, 0.05]], dtype=np.float32), reference_size=5
    )
    onward = soft.compose([7, 3, 3, 7, 0], 9)
    np.testing.assert_array_equal(onward.vertices[0, :2], [3, 7])
    np.testing.assert_allclose(onward.probabilities, [[0.5, 0.45, 0, 0]], rtol=1e-6)
    assert onward.reference_size == 9


def test_through_equals_the_dense_product():
    random = np.random.default_rng(2)
    logits = random.standard_normal((30, 20)).astype(np.float32)
    onward = random.integers(0, 6, 20)
    dense = dense_softmax(logits) @ np.eye(6)[onward]
    result = soft_map_from_logits([logits], 20).compose(onward, 6)
    back = np.zeros((30, 6))
    np.add.at(back, (np.arange(30)[:, None], result.vertices), result.probabilities)
    np.testing.assert_allclose(back, dense, atol=1e-6)
    np.testing.assert_array_equal(result.query_to_reference, dense.argmax(axis=1))


def test_a_map_turned_round_takes_the_most_confident_and_fills_gaps_along_the_surface():
    surface = strip()  # vertex 2 i + j at (i, j)
    target_to_reference = np.array([0, 0, 16, 6])
    onward = invert_through_reference(target_to_reference, surface, [0.2, 0.9, 0.5, 0.5])
    assert onward[0] == 1
    assert onward[16] == 2
    assert onward[6] == 3
    assert onward[4] == 3  # at x = 2, nearer to x = 3 than to x = 0
    assert onward[2] == 1
    assert onward[14] == 2


def test_the_way_through_a_reference_undoes_permutations():
    random = np.random.default_rng(3)
    query, target = random.permutation(18), random.permutation(18)
    onward = invert_through_reference(target, strip())
    result = soft_map_from_point_map(query, 18).compose(onward, 18).query_to_reference
    np.testing.assert_array_equal(target[result], query)


def test_pull_back_and_push_forward():
    query_to_reference = np.array([2, 2, 0, 1])
    np.testing.assert_array_equal(pull_back(["a", "b", "c"], query_to_reference), ["c", "c", "a", "b"])
    pushed = push_forward([[1.0], [3.0], [5.0], [7.0]], query_to_reference, 4, weights=[3, 1, 1, 1], missing=-1)
    np.testing.assert_allclose(pushed, [[5], [7], [1.5], [-1]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: soft_map_from_logits([], 3), "no logits"),
        (lambda: soft_map_from_logits([np.zeros((2, 3)), np.zeros((2, 4))], 1), "row 2"),
        (lambda: soft_map_from_logits([np.zeros((2, 3))], 0), "at least one"),
        (lambda: soft_map_from_point_map([0, 5], 5), "maps vertex 1 to 5"),
        (lambda: soft_map_from_point_map([0, 1], 5, [0.5, 1.5]), "between 0 and 1"),
        (lambda: pull_back([1, 2], [0.0, 1.0]), "whole number"),
    ],
)
def test_bad_input_says_what_is_wrong(call, words):
    with pytest.raises(InputError, match=words):
        call()
