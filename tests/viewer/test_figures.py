"""Figures: patterns, finer meshes, colour bars, filters in polar coordinates, and the whole pictures."""

from types import SimpleNamespace

import numpy as np
import pytest
from analytic import bumpy, rotation, sphere

from acnn.errors import InputError
from acnn.network import ShapeNetwork
from acnn.viewer.colors import value_colors
from acnn.viewer.figure_parts import chequered, color_bar, refined_mesh
from acnn.viewer.figures import (
    draw_errors,
    draw_filters,
    draw_transfer,
    first_filters,
    known_kind,
    polar_image,
    strongest_filters,
    strongest_input,
)


def test_squares_alternate_and_colours_belong_to_places():
    low, high = np.array([-1.0, 0.0, -0.2]), np.array([1.0, 2.0, 0.2])
    edge = 2.0 / 10
    row, column = np.mgrid[0:10, -5:5]
    middles = np.stack([(column + 0.5) * edge, (row + 0.5) * edge, np.zeros(row.shape)], axis=-1).reshape(-1, 3)
    lightness = chequered(middles, low, high, across=10).mean(axis=1).reshape(10, 10)
    dark = lightness < 0.6
    assert (dark[:, 1:] != dark[:, :-1]).all()
    assert (dark[1:] != dark[:-1]).all()
    some = chequered(middles[:7], low, high, across=10)
    np.testing.assert_allclose(some, chequered(middles, low, high, across=10)[:7])  # whatever else is asked for
    turned = chequered(middles[:, [0, 2, 1]], low[[0, 2, 1]], high[[0, 2, 1]], up="z", across=10)
    np.testing.assert_allclose(turned, chequered(middles, low, high, across=10))


def test_a_finer_mesh_is_the_same_surface():
    mesh = sphere(1)
    fine, points = refined_mesh(mesh, mesh.vertices, times=2)
    assert len(fine.faces) == 16 * len(mesh.faces)
    np.testing.assert_allclose(fine.vertices, points)
    assert len(np.unique(fine.vertices.round(9), axis=0)) == len(fine.vertices)
    area = lambda m: np.linalg.norm(  # noqa: E731
        np.cross(
            m.vertices[m.faces[:, 1]] - m.vertices[m.faces[:, 0]], m.vertices[m.faces[:, 2]] - m.vertices[m.faces[:, 0]]
        ),
        axis=1,
    ).sum()
    assert area(fine) == pytest.approx(area(mesh))
    euler = len(fine.vertices) - 1.5 * len(fine.faces) + len(fine.faces)
    assert euler == 2


def test_the_bar_runs_from_the_largest_down():
    bar = color_bar("heat", 0.0, 0.1, "error", height=300)
    ends = np.rint(255 * value_colors([0.1, 0.0], "heat", 0.0, 0.1))
    np.testing.assert_allclose(bar[20, 15], ends[0], atol=8)
    np.testing.assert_allclose(bar[-21, 15], ends[1], atol=8)


def test_a_filter_points_where_its_kernel_lies():
    weights = np.zeros((4, 3))
    weights[1, 2] = 1.0  # 45 degrees, the widest scale
    disc = polar_image(weights, 100).astype(int)
    red = disc[..., 0] - disc[..., 2]
    at = lambda degrees, r: red[  # noqa: E731
        round(50 - 50 * r * np.sin(np.radians(degrees))), round(50 + 50 * r * np.cos(np.radians(degrees)))
    ]
    assert at(45, 0.85) > 80
    assert at(225, 0.85) > 80  # the same line
    assert abs(at(135, 0.85)) < 20
    assert abs(at(45, 0.3)) < 20
    assert (polar_image(-weights, 100)[..., 2].astype(int) - polar_image(-weights, 100)[..., 0]).max() > 80


def test_the_strongest_filters_come_first():
    model = ShapeNetwork("FC3+RES(IC5)+IC2+Softmax", 4, 10, 2, 2)
    filters = first_filters(model)
    assert filters.shape == (2, 2, 3, 5)
    table = np.zeros((2, 2, 3, 5), np.float32)
    table[0, 0, 2, 4], table[1, 1, 1, 0] = -3.0, 2.0
    assert strongest_filters(table, 2) == [(2, 4), (1, 0)]
    assert strongest_input(table, 4) == 2
    assert draw_filters(model, columns=3, rows=2, size=40).ndim == 3
    with pytest.raises(InputError, match="no intrinsic convolution"):
        first_filters(ShapeNetwork("FC3+Softmax", 4, 10, 2, 2))


def report(refined):
    reference = bumpy(2)
    n = len(reference.vertices)
    error = np.linspace(0, 0.2, n)
    error[3] = np.nan
    same = np.arange(n, dtype=np.int32)
    shape = SimpleNamespace(
        name="bump_1",
        vertices=reference.vertices @ rotation(1).T,
        faces=reference.faces,
        network=same[::-1].copy(),
        refined=same if refined else None,
        network_errors=error,
        refined_errors=0 * error if refined else None,
    )
    return SimpleNamespace(
        run=SimpleNamespace(reference=reference), shapes=(shape,), figures={"normalisation": "sqrt_area"}
    )


def test_whole_pictures():
    both, one = draw_errors(report(True), size=(60, 80)), draw_errors(report(False), size=(60, 80))
    assert both.shape[0] > one.shape[0] + 80  # a row for each map
    reddish = lambda image: (image[:, :150, 0].astype(int) - image[:, :150, 1] > 60).sum()  # noqa: E731
    assert reddish(one) > 100
    right, wrong = draw_transfer(report(True), size=(60, 80)), draw_transfer(report(False), size=(60, 80))
    assert right.shape == wrong.shape
    assert not np.array_equal(right, wrong)
    np.testing.assert_array_equal(right[:80, :68], wrong[:80, :68])  # the reference


def test_unknown_kinds_are_refused():
    with pytest.raises(InputError, match="transfer, errors, filters, curve, comparison, partial"):
        known_kind("pie")
