import numpy as np
import pytest

import acnn
from acnn.correspondence.class_labels import APART, BORDER, class_borders, label_classes
from acnn.correspondence.soft_map import SoftMap
from acnn.datasets.open import humans_dataset


def soft_map_of(probabilities):
    order = np.argsort(-probabilities, axis=1, kind="stable")
    return SoftMap(
        order.astype(np.int32), np.take_along_axis(probabilities, order, 1).astype(np.float32), probabilities.shape[1]
    )


@pytest.fixture(scope="module")
def body():
    """A human with its classes, their names, and the costs of borders between them."""
    data = humans_dataset()
    classes = data.classes
    assert classes is not None
    costs = class_borders(classes.of_reference, data.reference.faces, len(classes.names))
    return acnn.surface_of(data.reference), np.asarray(classes.of_reference), list(classes.names), costs


def probabilities_of(classes, count, certainty):
    """The class of each vertex with some probability, the rest spread over all others."""
    values = np.full((len(classes), count), (1 - certainty) / (count - 1))
    values[np.arange(len(classes)), classes] = certainty
    return values


def test_borders_of_two_triangles():
    costs = class_borders(np.array([0, 0, 1, 2]), np.array([[0, 1, 2], [1, 3, 2]]), 4)
    assert costs[0, 1] == costs[1, 2] == costs[0, 2] == BORDER
    assert costs[0, 3] == APART
    assert (np.diag(costs) == 0).all()
    assert class_borders(None, np.array([[0, 1, 2]]), 2).tolist() == [[0, BORDER], [BORDER, 0]]


def test_certain_classes_stay(body):
    surface, truth, names, costs = body
    classes, confidence = label_classes(soft_map_of(probabilities_of(truth, len(names), 0.99)), surface, costs)
    assert (classes == truth).mean() > 0.99
    assert np.median(confidence) == pytest.approx(0.99, abs=1e-3)


def test_specks_are_removed(body):
    surface, truth, names, costs = body
    random = np.random.default_rng(0)
    wrong = np.where(random.random(len(truth)) < 0.25, random.integers(len(names), size=len(truth)), truth)
    soft = soft_map_of(probabilities_of(wrong, len(names), 0.6))
    before = (soft.query_to_reference == truth).mean()
    after = (label_classes(soft, surface, costs)[0] == truth).mean()
    assert before < 0.8
    assert after > 0.95


def test_a_limb_of_the_other_side_is_set_right(body):
    """Without knowing which classes touch, the region stays what most of its vertices are."""
    surface, truth, names, costs = body
    left, right = (
        next(i for i, name in enumerate(names) if "upper arm" in name and side in name) for side in ("left", "right")
    )
    probabilities = probabilities_of(truth, len(names), 0.9)
    region = truth == left
    probabilities[region] = 0.01
    probabilities[region, left], probabilities[region, right] = 0.4, 0.5
    soft = soft_map_of(probabilities)
    assert (soft.query_to_reference[region] == right).all()
    assert (label_classes(soft, surface, costs)[0][region] == left).mean() > 0.95
    anywhere = class_borders(None, surface.faces, len(names))
    assert (label_classes(soft, surface, anywhere)[0][region] == right).mean() > 0.9
