"""Fractions of the area that are labelled right, by hand."""

import numpy as np
import pytest

from acnn.errors import InputError
from acnn.evaluation.segmentation import evaluate_classes, segmentation_report


def test_accuracy_and_iou_weigh_by_area_and_leave_out_unknown_vertices():
    truth = np.array([0, 0, 1, 1, -1])
    predicted = np.array([0, 1, 1, 1, 0])
    areas = np.array([3.0, 1.0, 2.0, 2.0, 100.0])
    found = evaluate_classes(predicted, truth, areas, 3, "one")
    assert found.accuracy == pytest.approx(7 / 8)
    assert found.iou[:2] == pytest.approx([3 / 4, 4 / 5])
    assert np.isnan(found.iou[2])  # occurs in neither
    assert found.as_dict() == {"name": "one", "accuracy": pytest.approx(7 / 8), "mean_iou": pytest.approx(0.775)}
    assert evaluate_classes(predicted, truth, 5 * areas, 3).accuracy == pytest.approx(found.accuracy)


def test_a_report_averages_over_shapes():
    ones = np.ones(2)
    right = evaluate_classes(np.array([0, 1]), np.array([0, 1]), ones, 3, "right")
    wrong = evaluate_classes(np.array([1, 0]), np.array([0, 1]), 7 * ones, 3, "wrong")
    report = segmentation_report([right, wrong], ["a", "b", "c"])
    assert report["accuracy"] == pytest.approx(0.5)
    assert report["iou"] == {"a": pytest.approx(1 / 3), "b": pytest.approx(1 / 3), "c": None}
    assert report["mean_iou"] == pytest.approx(1 / 3)
    assert [shape["accuracy"] for shape in report["shapes"]] == pytest.approx([1.0, 0.0])
    assert np.sum(report["confusion"]) == pytest.approx(1.0)


def test_without_known_classes_there_is_nothing_to_compare():
    with pytest.raises(InputError, match="shape_3: no vertex has a known class"):
        evaluate_classes(np.zeros(2, int), np.full(2, -1), np.ones(2), 2, "shape_3")


@pytest.mark.parametrize(
    ("predicted", "truth", "words"),
    [
        ([-1, 1, 1], [0, 1, 0], "the class of vertex 0 is -1"),
        ([0, 2, 1], [0, 1, 0], "the class of vertex 1 is 2"),
        ([0, 1, 1], [0, 1, 2], "the true class of vertex 2 is 2"),
        ([0, 1], [0, 1, 1], "do not fit"),
    ],
)
def test_classes_that_there_are_not_are_refused(predicted, truth, words):
    with pytest.raises(InputError, match=words):
        evaluate_classes(np.array(predicted), np.array(truth), np.ones(3), 2)
