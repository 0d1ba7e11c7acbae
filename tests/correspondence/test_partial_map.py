"""Partial functional maps end to end: cuts of the built-in humans with a known answer, and parts of SHREC'16."""

import os
from pathlib import Path

import numpy as np
import pytest

from acnn.correspondence.functional_map import basis_of
from acnn.correspondence.partial_energy import partial_bases
from acnn.correspondence.partial_map import partial_map, partial_map_from_descriptors, soft_map_from_descriptors
from acnn.correspondence.partial_search import partial_sizes, partial_zoomout, spread_samples
from acnn.correspondence.soft_map import soft_map_from_point_map
from acnn.datasets import builtin_humans
from acnn.errors import InputError
from acnn.evaluation import ReferenceDistances, evaluate_map
from acnn.shapes import Mesh, load
from acnn.surface.surface import surface_of

OTHER_POSE = 3
K = 120


def cut(mesh, keep, seed=0):
    """The faces of a mesh all of whose corners are kept, in shuffled order, and where its vertices were."""
    faces = mesh.faces[keep[mesh.faces].all(axis=1)]
    used = np.random.default_rng(seed).permutation(np.unique(faces))
    number = np.full(len(keep), -1)
    number[used] = np.arange(len(used))
    return Mesh(mesh.vertices[used], number[faces].astype(np.int32)), used


def some_wrong(truth, size, share=0.3, seed=1):
    random = np.random.default_rng(seed)
    wrong = random.random(len(truth)) < share
    return np.where(wrong, random.integers(0, size, len(truth)), truth)


@pytest.fixture(scope="module")
def full():
    surface = surface_of(builtin_humans().mesh(0))
    return surface, basis_of(surface, K), ReferenceDistances(surface)


def part_of(keep):
    """A part of the same person in another pose, and the vertices of the full shape that it consists of."""
    humans = builtin_humans()
    mesh, truth = cut(humans.mesh(OTHER_POSE), keep)
    return surface_of(mesh, unit=surface_of(humans.mesh(OTHER_POSE)).unit), truth


@pytest.fixture(scope="module")
def upper():
    return part_of(builtin_humans().vertices[0][:, 1] > 0.8)


def error(matched, truth, full):
    return evaluate_map(matched, truth, full[2]).mean_error_x100


def test_outliers_are_put_right_and_the_part_is_found(full, upper):
    surface, basis, distances = full
    part, truth = upper
    start = some_wrong(truth, len(surface.vertices))
    found = partial_map(start, part, surface, full_basis=basis, eigenfunctions=K)
    edge = 100.0 * surface.mean_edge / distances.length
    assert error(start, truth, full) > 15.0
    assert error(found.part_to_full, truth, full) < 0.25 * edge
    assert found.report.used == "pfm"
    truly = np.zeros(len(surface.vertices))
    truly[truth] = 1.0
    assert basis.mass @ np.abs(found.inside - truly) < 0.1
    assert 0.6 * K < found.rank < 0.9 * K  # 71 % of the area
    assert found.functional_map.shape[0] == K
    assert found.report.share == pytest.approx(basis.mass[truth].sum(), abs=0.05)


def test_a_perfect_start_is_not_made_worse(full, upper):
    surface, basis, _ = full
    part, truth = upper
    found = partial_map(truth, part, surface, full_basis=basis, eigenfunctions=K, rounds=1)
    assert error(found.part_to_full, truth, full) < 0.05
    assert found.report.distortion.after <= found.report.distortion.before


def test_noise_is_given_back_as_it_was(full, upper):
    surface, basis, _ = full
    part, truth = upper
    guess = np.random.default_rng(4).integers(0, len(surface.vertices), len(truth))
    found = partial_map(guess, part, surface, full_basis=basis, eigenfunctions=60, rounds=1)
    assert found.report.used == "none"
    np.testing.assert_array_equal(found.part_to_full, guess)


def test_the_whole_shape_is_a_part(full):
    surface, basis, _ = full
    part, truth = part_of(np.ones(len(surface.vertices), dtype=bool))
    start = some_wrong(truth, len(surface.vertices))
    found = partial_map(start, part, surface, full_basis=basis, eigenfunctions=K, rounds=1)
    assert error(found.part_to_full, truth, full) < 0.5
    assert basis.mass @ found.inside > 0.9


def test_a_part_of_two_pieces(full):
    surface, basis, _ = full
    height = builtin_humans().vertices[0][:, 1]
    part, truth = part_of((height > 1.2) | (height < 0.5))
    start = some_wrong(truth, len(surface.vertices))
    found = partial_map(start, part, surface, full_basis=basis, eigenfunctions=K)
    assert error(found.part_to_full, truth, full) < 1.5 < error(start, truth, full)


def test_a_sliver_keeps_its_start_or_is_refused(full):
    surface, basis, _ = full
    height = builtin_humans().vertices[0][:, 1]
    part, truth = part_of(height > np.sort(height)[-12])
    assert 4 <= len(truth) <= 12
    found = partial_map(truth, part, surface, full_basis=basis)
    np.testing.assert_array_equal(found.part_to_full, truth)
    assert found.report.used == "none"
    assert found.report.why
    with pytest.raises(InputError, match="at least 50"):
        partial_map_from_descriptors(part, surface)


def test_descriptors_alone_match_a_part(full, upper):
    surface, basis, _ = full
    part, truth = upper
    found = partial_map_from_descriptors(part, surface, full_basis=basis, eigenfunctions=K, rounds=2)
    assert error(found.part_to_full, truth, full) < 3.0
    assert found.report.energies


def test_nearest_descriptors_are_the_most_probable():
    full = np.random.default_rng(5).standard_normal((40, 6))
    chosen = np.array([7, 0, 33])
    soft = soft_map_from_descriptors(full[chosen] + 0.01, full)
    np.testing.assert_array_equal(soft.query_to_reference, chosen)
    assert (soft.confidence > 0.9).all()
    with pytest.raises(InputError, match="cannot be compared"):
        soft_map_from_descriptors(full, full[:, :5])


def test_sizes_follow_the_share_of_the_area(full, upper):
    surface, basis, _ = full
    part, truth = upper
    bases = partial_bases(part, surface, basis_of(part, K), basis)
    assert bases.rank(100) / 100 == pytest.approx(bases.share, abs=0.1)
    sizes = partial_sizes(bases, 20)
    assert sizes[0] == 20
    assert sizes[-1] == K
    assert (np.diff(sizes) > 0).all()
    soft = soft_map_from_point_map(truth, len(surface.vertices))
    with pytest.raises(InputError, match="ascend"):
        partial_zoomout(soft, part, surface, bases, sizes=[30, 20])
    with pytest.raises(InputError, match="does not belong"):
        partial_zoomout(soft.rows(np.arange(5)), part, surface, bases, sizes=[20])


def test_samples_determine_the_map_as_all_vertices_do(full, upper):
    surface, basis, _ = full
    part, truth = upper
    bases = partial_bases(part, surface, basis_of(part, 60), basis)
    samples = spread_samples(bases, 800)
    assert samples[1].sum() == pytest.approx(bases.share)
    assert spread_samples(bases, 1500) is None
    soft = soft_map_from_point_map(some_wrong(truth, len(surface.vertices)), len(surface.vertices))
    guided = partial_zoomout(soft, part, surface, bases, sizes=partial_sizes(bases, 40, 70), samples=samples)
    assert len(guided.part_to_full) == len(truth)
    assert error(guided.part_to_full, truth, full) < 1.0
    assert 0.4 < guided.from_start.mean() < 0.75  # 70 % of the start are right


def test_what_does_not_fit_is_said(full, upper):
    surface, basis, _ = full
    part, truth = upper
    with pytest.raises(InputError, match="does not belong"):
        partial_map(truth[:-1], part, surface, full_basis=basis, eigenfunctions=20)
    soft = soft_map_from_point_map(truth, len(surface.vertices))
    with pytest.raises(InputError, match="own confidence"):
        partial_map(soft, part, surface, confidence=np.ones(len(truth)))
    large = surface_of(Mesh(part.vertices, part.faces), unit=0.2)
    with pytest.raises(InputError, match="same unit"):
        partial_map(truth, large, surface, full_basis=basis, eigenfunctions=20)


@pytest.mark.skipif("ACNN_DATA" not in os.environ, reason="needs research data: set ACNN_DATA")
def test_a_cut_of_shrec16_by_shot_alone():
    folder = Path(os.environ["ACNN_DATA"]) / "shrec16_partial"
    if not folder.is_dir():
        pytest.skip("ACNN_DATA holds no shrec16_partial")
    full = surface_of(load(folder / "null" / "wolf.off"))
    part = surface_of(load(folder / "cuts" / "cuts_wolf_shape_2.off"), unit=full.unit)
    truth = np.loadtxt(folder / "cuts" / "cuts_wolf_shape_2.baryc_gt")
    vertices = full.faces[truth[:, 0].astype(int) - 1, truth[:, 1:].argmax(axis=1)]
    found = partial_map_from_descriptors(part, full, eigenfunctions=K)
    assert evaluate_map(found.part_to_full, vertices, ReferenceDistances(full)).mean_error_x100 < 1.0
