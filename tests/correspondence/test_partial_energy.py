"""Partial functional maps: each term against analytic values and finite differences; ranks, masks, alternation."""

from math import erf

import numpy as np
import pytest

from acnn.correspondence import partial_energy as energy
from acnn.correspondence.functional_map import basis_of, functional_map_from_point_map
from acnn.correspondence.partial_energy import (
    alternate,
    estimated_rank,
    eta,
    partial_bases,
    slanted_mask,
    unit_surface,
    xi,
)
from acnn.errors import InputError
from acnn.shapes import Mesh
from acnn.surface.surface import surface_of


def rectangle(columns, rows, width):
    """A flat grid of width x 1; vertex number i + (columns + 1) j."""
    x, y = np.meshgrid(np.linspace(0, width, columns + 1), np.linspace(0, 1, rows + 1))
    vertices = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    i, j = np.meshgrid(np.arange(columns), np.arange(rows))
    a = (i + (columns + 1) * j).ravel()
    b, c, d = a + 1, a + columns + 2, a + columns + 1
    return Mesh(vertices, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32))


def check_gradient(function, x, random, rtol=1e-6):
    """Compare the slope along random directions with central differences."""
    _, gradient = function(x)
    assert gradient.shape == x.shape
    for _ in range(3):
        direction = random.standard_normal(x.shape)
        step = 1e-5
        slope = (function(x + step * direction)[0] - function(x - step * direction)[0]) / (2 * step)
        assert (gradient * direction).sum() == pytest.approx(slope, rel=rtol, abs=1e-9)


@pytest.fixture(scope="module")
def pair():
    """A rectangle 1.3 wide; its left part 0.65 wide, on the same grid; their bases; the part's vertices on it."""
    full = surface_of(rectangle(26, 20, 1.3), unit=0.01)
    part = surface_of(rectangle(13, 20, 0.65), unit=0.01)
    there = (np.arange(14)[None, :] + 27 * np.arange(21)[:, None]).ravel()
    return part, full, partial_bases(part, full, basis_of(part, 60), basis_of(full, 60)), there


def test_eta_and_xi_have_their_values_and_slopes():
    v = np.linspace(-0.3, 1.3, 33)
    for function in (eta, xi):
        slope = (function(v + 1e-6)[0] - function(v - 1e-6)[0]) / 2e-6
        np.testing.assert_allclose(function(v)[1], slope, rtol=1e-6, atol=1e-8)
    assert eta(np.array([0.5]))[0][0] == pytest.approx(0.5)
    assert eta(np.array([0.0, 1.0]))[0] == pytest.approx([0.0025, 0.9975], abs=1e-4)
    assert xi(np.array([0.5]))[0][0] == pytest.approx(1.0)
    assert xi(np.array([0.1, 0.9]))[0] == pytest.approx(np.exp(-2.0))


def test_gradients_of_the_terms_of_the_map():
    random = np.random.default_rng(0)
    c, a, b = random.standard_normal((7, 5)), random.standard_normal((5, 9)), random.standard_normal((7, 9))
    mask, wanted = slanted_mask(7, 5, 3), (np.arange(5) < 3).astype(float)
    check_gradient(lambda x: energy.data_term(x, a, b), c, random)
    check_gradient(lambda x: energy.mask_term(x, mask), c, random)
    check_gradient(energy.off_diagonal_term, c, random)
    check_gradient(lambda x: energy.diagonal_term(x, wanted), c, random)


def test_gradients_of_the_terms_of_the_part(pair):
    _, full, bases, _ = pair
    random = np.random.default_rng(1)
    unit = unit_surface(full)
    v = random.uniform(-0.2, 1.2, len(full.vertices))
    functions, mapped = random.standard_normal((len(v), 6)), random.standard_normal((10, 6))
    areas, psi = unit.vertex_areas, bases.full.first(10)
    check_gradient(lambda x: energy.data_term_of_region(x, mapped, psi, functions, areas), v, random)
    check_gradient(lambda x: energy.area_term(x, areas, 0.4), v, random)
    check_gradient(lambda x: energy.boundary_term(x, unit), v, random)


def test_terms_have_their_analytic_values(pair):
    _, full, _, _ = pair
    unit = unit_surface(full)
    rotation = np.linalg.qr(np.random.default_rng(2).standard_normal((6, 6)))[0]
    assert energy.off_diagonal_term(rotation)[0] == pytest.approx(0.0, abs=1e-20)
    assert energy.diagonal_term(rotation, np.ones(6))[0] == pytest.approx(0.0, abs=1e-20)
    assert energy.diagonal_term(rotation, np.zeros(6))[0] == pytest.approx(6.0)
    assert energy.data_term(np.eye(2), np.array([[3.0, 0.0], [4.0, 2.0]]), np.zeros((2, 2)))[0] == pytest.approx(7.0)
    # v rises from 0 to 1 across the width: the border is 1 / sqrt(1.3) long and crossed by all of xi
    ramp = (full.vertices[:, 0] - full.vertices[:, 0].min()) / np.ptp(full.vertices[:, 0])
    crossed = energy.WIDTH * np.sqrt(2 * np.pi) * erf(0.5 / (energy.WIDTH * np.sqrt(2)))
    assert energy.boundary_term(ramp, unit)[0] == pytest.approx(crossed / np.sqrt(1.3), rel=0.01)
    assert energy.area_term(ramp, unit.vertex_areas, 0.5)[0] == pytest.approx(0.0, abs=1e-6)
    assert energy.area_term(ramp, unit.vertex_areas, 0.8)[0] == pytest.approx(0.09, rel=1e-3)


def test_the_rank_is_that_of_rectangles():
    p, q = np.meshgrid(np.arange(40), np.arange(40))
    full = np.sort((p**2 + q**2).ravel())[:100].astype(float)
    part = np.sort((4 * p**2 + q**2).ravel())[:100].astype(float)
    rank = estimated_rank(part, full)
    assert part[rank - 1] < full[-1] <= part[rank]
    assert 50 <= rank <= 62  # Weyl: half of the area, and a little more for the boundary
    assert estimated_rank(full, full) >= 90
    assert estimated_rank(np.array([0.0, 9.0]), np.array([0.0])) == 1


def test_the_mask_is_zero_along_the_slant_and_the_true_map_lies_there(pair):
    mask = slanted_mask(40, 40, 20)
    np.testing.assert_allclose(mask[np.arange(0, 40, 2), np.arange(20)], 0.0, atol=1e-15)
    assert mask[30, 30] > 0
    assert mask[0, 10] > 0
    _, _, bases, there = pair
    true = functional_map_from_point_map(bases.part, bases.full, there, 40).T
    rank = bases.rank(40)
    assert 18 <= rank <= 26
    kept = (true**2).sum(axis=0)
    assert kept[: rank // 2].min() > 0.85
    assert kept[rank + 8 :].max() < 0.5
    slanted = energy.mask_term(true, slanted_mask(40, 40, rank))[0]
    assert slanted < 0.5 * energy.mask_term(true, slanted_mask(40, 40, 40))[0]


def test_alternation_finds_the_part_and_its_map(pair):
    _, full, bases, there = pair
    random = np.random.default_rng(3)
    # functions on the whole; the part knows them only where it is, and starts from the bare slanted diagonal
    functions = bases.full.first(30) @ random.standard_normal((30, 40))
    found = alternate(bases, unit_surface(full), functions[there], functions, k=40, rounds=8)
    assert all(after <= before + 1e-12 for before, after in zip(found.energies, found.energies[1:], strict=False))
    truly = np.zeros(len(full.vertices))
    truly[there] = 1.0
    inside = eta(found.v)[0]
    assert bases.full.mass @ np.abs(inside - truly) < 0.1
    # low columns of C are those of the true map
    true = functional_map_from_point_map(bases.part, bases.full, there, 40).T
    assert np.linalg.norm(found.functional_map[:, :8] - true[:, :8]) < 0.2 * np.linalg.norm(true[:, :8])
    again = alternate(bases, unit_surface(full), functions[there], functions, k=40, rounds=8)
    np.testing.assert_array_equal(found.v, again.v)


def test_what_does_not_fit_is_said(pair):
    part, full, bases, there = pair
    functions = np.ones((len(full.vertices), 2))
    with pytest.raises(InputError, match="rows"):
        alternate(bases, unit_surface(full), functions, functions)
    with pytest.raises(InputError, match="cannot correspond"):
        alternate(bases, unit_surface(full), functions[there, :1], functions)
    with pytest.raises(InputError, match="same unit of length"):
        partial_bases(full, part, basis_of(full, 5), basis_of(part, 5))
    with pytest.raises(InputError, match="basis of the part"):
        partial_bases(part, full, basis_of(full, 5), basis_of(full, 5))
