"""Figures of several methods: errors are saturated, methods are rows, colours come from the full shape."""

import numpy as np
import pytest
from analytic import bumpy

from acnn.viewer.comparison_figures import ComparedMethod, ComparisonData, draw_comparison, draw_partial

SIZE = (60, 80)


def data(*errors):
    """One bumpy shape, matched to itself, with an error everywhere for each method; None: not matched."""
    mesh = bumpy(2)
    n = len(mesh.vertices)
    methods = [
        ComparedMethod(
            f"M{k}",
            [None if value is None else np.arange(n)],
            [None if value is None else np.full(n, float(value))],
        )
        for k, value in enumerate(errors)
    ]
    return ComparisonData(mesh, ["bump_0"], [mesh], methods)


def colored(image):
    """Pixels that are neither grey nor white."""
    return np.ptp(image.astype(int), axis=2) > 40


def test_errors_are_saturated_at_a_tenth_of_the_diameter():
    cells = [draw_comparison(data(value), size=SIZE)[8:88, 51:111] for value in (0.0, 5.0, 10.0, 50.0)]
    np.testing.assert_array_equal(cells[2], cells[3])
    assert not np.array_equal(cells[1], cells[2])
    assert colored(cells[2]).mean() > 0.2 > 0.05 > colored(cells[0]).mean()


def test_every_method_is_a_row_and_what_was_not_matched_is_left_out():
    one, two = draw_comparison(data(10), size=SIZE), draw_comparison(data(10, None), size=SIZE)
    assert two.shape[0] > one.shape[0] + SIZE[1]
    below = two[one.shape[0] - 4 : one.shape[0] + SIZE[1] - 8, 51:111]
    assert not colored(below).any()


@pytest.mark.parametrize("up", ["x", "y", "z"])
def test_partial_shapes_have_the_colours_of_their_matches(up):
    image = draw_partial(data(0.0, 10.0), size=SIZE, up=up)
    reference, shape = image[8:88, 51:111], image[8:88, 119:179]
    assert colored(reference).mean() > 0.2
    np.testing.assert_array_equal(reference, shape)  # matched to itself
    plain = data(0.0)
    plain.methods[0].maps[0][:] = 0
    other = draw_partial(plain, size=SIZE, up=up)[8:88, 119:179]
    assert not np.array_equal(other, shape)
