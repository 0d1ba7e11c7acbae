"""Refinement: it mends outliers, leaves a good map alone, falls back, and knows nothing but what it is given."""

import os
from pathlib import Path

import numpy as np
import pytest
from analytic import bumpy

from acnn.correspondence import SoftMap, SpectralBasis, basis_of, refine, soft_map_from_point_map
from acnn.correspondence.guided_zoomout import guided_zoomout, local_support, robust_functional_map
from acnn.correspondence.refine import _merit, _objection
from acnn.datasets import builtin_humans
from acnn.errors import InputError
from acnn.evaluation import ReferenceDistances, coverage, evaluate_map
from acnn.shapes import Mesh, PointCloud
from acnn.surface.surface import surface_of

K = 100


def permuted(mesh, seed):
    permutation = np.random.default_rng(seed).permutation(len(mesh.vertices))
    return Mesh(mesh.vertices[permutation], np.argsort(permutation)[mesh.faces].astype(np.int32)), permutation


def noisy_soft_map(truth, reference, near, random, exact=0.6, far=0.1):
    """What a network might give: mostly right, often a few vertices off, sometimes anywhere, unsure all along."""
    luck = random.random(len(truth))
    seen = truth.copy()
    off = luck > exact
    seen[off] = near[truth[off], random.integers(1, 12, off.sum())]
    lost = luck > 1 - far
    seen[lost] = random.integers(0, len(reference.vertices), lost.sum())
    probabilities = np.sort(random.dirichlet(np.full(6, 0.5), len(truth)), axis=1)[:, ::-1] * 0.95
    return SoftMap(near[seen][:, :6].astype(np.int32), probabilities.astype(np.float32), len(reference.vertices))


@pytest.fixture(scope="module")
def scene():
    """A reference; another person in another pose, shuffled; the truth; the vertices near each of the reference."""
    humans = builtin_humans()
    reference = surface_of(humans.mesh(0))
    mesh, truth = permuted(humans.mesh(int(np.flatnonzero(humans.subjects == 3)[2])), 5)
    query = surface_of(mesh)
    gaps = ((reference.vertices[:, None] - reference.vertices[None]) ** 2).sum(axis=2)
    near = np.argsort(gaps, axis=1, kind="stable")[:, :12]
    return reference, query, truth, near, basis_of(reference, K), basis_of(query, K), ReferenceDistances(reference)


@pytest.fixture(scope="module")
def noisy(scene):
    reference, _, truth, near, *_ = scene
    return noisy_soft_map(truth, reference, near, np.random.default_rng(0))


@pytest.mark.parametrize(("method", "share"), [("zoomout", 0.3), ("fm", 0.6)])
def test_a_noisy_map_gets_better_and_covers_more(scene, noisy, method, share):
    reference, query, truth, _, reference_basis, query_basis, distances = scene
    refined = refine(noisy, query, reference, method, query_basis=query_basis, reference_basis=reference_basis)
    before = evaluate_map(noisy.query_to_reference, truth, distances)
    after = evaluate_map(refined.query_to_reference, truth, distances)
    assert refined.report.used == method
    assert after.mean_error_x100 < share * before.mean_error_x100
    assert after.coverage > before.coverage
    if method == "zoomout":
        assert after.exact > before.exact


def test_a_perfect_map_stays_nearly_so(scene):
    reference, query, truth, _, reference_basis, query_basis, distances = scene
    sure = soft_map_from_point_map(truth, len(reference.vertices), np.full(len(truth), 0.95))
    refined = refine(sure, query, reference, query_basis=query_basis, reference_basis=reference_basis)
    assert evaluate_map(refined.query_to_reference, truth, distances).exact > 0.95


def test_the_order_of_vertices_plays_no_part(scene, noisy):
    reference, query, _, _, reference_basis, query_basis, _ = scene
    straight = refine(noisy, query, reference, query_basis=query_basis, reference_basis=reference_basis)
    mesh, order = permuted(Mesh(query.vertices, query.faces), 11)
    shuffled = surface_of(mesh, unit=1.0)
    turned = refine(noisy.rows(order), shuffled, reference, eigenfunctions=K, reference_basis=reference_basis)
    assert (turned.query_to_reference == straight.query_to_reference[order]).mean() > 0.995


def test_a_map_of_noise_is_given_back_as_it_was(scene):
    reference, query, _, _, reference_basis, query_basis, _ = scene
    random = np.random.default_rng(1)
    guess = random.integers(0, len(reference.vertices), len(query.vertices))
    for method in ("zoomout", "fm"):
        result = refine(guess, query, reference, method, query_basis=query_basis, reference_basis=reference_basis)
        assert result.report.used == "none"
        assert "disagrees" in result.report.why or "covers" in result.report.why
        np.testing.assert_array_equal(result.query_to_reference, guess)


def test_reasons_say_what_their_figures_show():
    before = {"coverage": 0.99912, "roughness": 0.0303336953, "agreement": 1.0}
    assert _merit(before, before | {"roughness": 0.02}) == "smoother, and agrees with 100% of the confident matches"
    assert _merit(before, before | {"agreement": 0.7}) == "as smooth, and agrees with 70% of the confident matches"
    worse = _merit(before, before | {"roughness": 0.0303337061})
    assert worse.startswith("hardly rougher (0.03033371 instead of 0.0303337)")
    assert _objection(before, before | {"coverage": 0.99908}).endswith("(0.99908 instead of 0.99912)")
    assert "rougher than" in _objection(before, before | {"roughness": 0.04})
    assert _objection(before, before) is None


def test_a_confident_patch_on_the_wrong_side_is_put_right(scene):
    reference, query, truth, _, reference_basis, query_basis, distances = scene
    mirror = builtin_humans().mirror
    hand = np.argmax(reference.vertices[:, 0])  # outermost on the left
    patch = np.linalg.norm(reference.vertices[truth] - reference.vertices[hand], axis=1) < 18.0
    matched = np.where(patch, mirror[truth], truth)
    soft = soft_map_from_point_map(matched, len(reference.vertices), np.full(len(truth), 0.9))
    assert 0.01 < patch.mean() < 0.15
    refined = refine(soft, query, reference, query_basis=query_basis, reference_basis=reference_basis)
    before = evaluate_map(matched, truth, distances)
    after = evaluate_map(refined.query_to_reference, truth, distances)
    assert after.mean_error_x100 < 0.3 * before.mean_error_x100


def test_none_gives_the_best_matches_and_says_so(scene, noisy):
    reference, query, *_ = scene
    result = refine(noisy, query, reference, "none")
    np.testing.assert_array_equal(result.query_to_reference, noisy.query_to_reference)
    assert result.report.used == "none"


def test_facts_hold_what_was_measured(scene, noisy):
    reference, query, _, _, reference_basis, query_basis, _ = scene
    result = refine(noisy, query, reference, query_basis=query_basis, reference_basis=reference_basis)
    assert result.report.eigenfunctions == K
    assert result.report.coverage.before == pytest.approx(coverage(noisy.query_to_reference, reference))
    assert result.report.coverage.after == pytest.approx(coverage(result.query_to_reference, reference))
    assert result.report.roughness.after < result.report.roughness.before
    assert result.report.agreement.before == 1.0


def test_support_is_full_for_the_truth_and_absent_for_noise(scene):
    reference, query, truth, *_ = scene
    assert local_support(truth, query, reference).mean() > 0.95
    noise = np.random.default_rng(0).integers(0, len(reference.vertices), len(truth))
    assert local_support(noise, query, reference).mean() < 0.1
    collapsed = np.zeros(len(truth), dtype=np.int32)
    assert local_support(collapsed, query, reference).max() == 0.0


def test_the_robust_fit_withstands_a_third_of_outliers(scene):
    reference, _, truth, _, reference_basis, query_basis, _ = scene
    random = np.random.default_rng(2)
    clean = soft_map_from_point_map(truth, len(reference.vertices))
    wrong = random.random(len(truth)) < 0.33
    spoiled = soft_map_from_point_map(
        np.where(wrong, random.integers(0, len(reference.vertices), len(truth)), truth), len(reference.vertices)
    )
    target = robust_functional_map(clean, query_basis, reference_basis, 15)
    fitted = robust_functional_map(spoiled, query_basis, reference_basis, 15)
    plain = robust_functional_map(spoiled, query_basis, reference_basis, 15, rounds=1)
    assert np.linalg.norm(fitted - target) < 0.25 * np.linalg.norm(plain - target)


def test_shapes_of_a_few_vertices_are_left_alone_or_refined_without_fuss():
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1.2, 0], [0, 0, 1.5]], dtype=float)
    tetrahedron = surface_of(Mesh(corners, np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]], dtype=np.int32)))
    result = refine([1, 1, 2, 3], tetrahedron, tetrahedron)
    assert result.report.used == "none"
    assert "too few" in result.report.why
    np.testing.assert_array_equal(result.query_to_reference, [1, 1, 2, 3])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "magic"}, "use none, fm, zoomout, pfm, auto"),
        ({"matches": [0, 1, 2]}, "does not belong"),
        ({"confidence": [0.5]}, "its own confidence"),
        ({"query_basis": SpectralBasis(np.ones(9), np.ones((9, 9)), np.ones(9))}, "query's basis has 9"),
    ],
)
def test_bad_input_says_what_is_wrong(scene, noisy, change, words):
    reference, query, *_ = scene
    arguments = {"matches": noisy, "query": query, "reference": reference, "method": "zoomout"} | change
    with pytest.raises(InputError, match=words):
        refine(**arguments)


def test_sizes_that_do_not_ascend_are_refused(scene, noisy):
    reference, query, _, _, reference_basis, query_basis, _ = scene
    with pytest.raises(InputError, match="ascend"):
        guided_zoomout(noisy, query, reference, query_basis, reference_basis, sizes=[20, 20])


@pytest.mark.slow
@pytest.mark.skipif("ACNN_DATA" not in os.environ, reason="needs research shapes: set ACNN_DATA")
def test_two_faust_people_with_spoiled_truth():
    from acnn.shapes.load import load

    folder = Path(os.environ["ACNN_DATA"]) / "faust/training/registrations"
    if not folder.is_dir():
        pytest.skip("ACNN_DATA holds no FAUST registrations")
    first, second = load(folder / "tr_reg_000.ply"), load(folder / "tr_reg_033.ply")
    assert isinstance(first, Mesh)
    assert isinstance(second, Mesh)
    mesh, truth = permuted(second, 3)
    reference, query = surface_of(first), surface_of(mesh)
    random = np.random.default_rng(0)
    wrong = random.random(len(truth)) < 0.3
    start = np.where(wrong, random.integers(0, len(truth), len(truth)), truth)
    distances = ReferenceDistances(reference)
    refined = refine(start, query, reference, eigenfunctions=K, confidence=np.where(wrong, 0.5, 0.7))
    before, after = evaluate_map(start, truth, distances), evaluate_map(refined.query_to_reference, truth, distances)
    assert after.mean_error_x100 < 0.15 * before.mean_error_x100
    assert after.coverage > before.coverage


def test_auto_takes_the_partial_map_for_parts_only():
    from acnn.correspondence.refine import suitable_method
    from acnn.datasets.builtin import builtin_humans
    from acnn.datasets.parts import cut_part

    whole = builtin_humans().mesh(0)
    surface = surface_of(whole)
    part = surface_of(cut_part(whole, "cuts", 0.4, seed=1)[0], surface.unit)
    nick = surface_of(cut_part(whole, "holes", 0.03, seed=1)[0], surface.unit)
    assert suitable_method(surface, surface)[0] == "zoomout"
    assert suitable_method(nick, surface)[0] == "zoomout"
    method, why = suitable_method(part, surface)
    assert method == "pfm"
    assert "60." in why or "59." in why


def test_a_cloud_has_no_known_border_and_is_taken_for_whole():
    from acnn.correspondence.refine import suitable_method
    from acnn.datasets.parts import cut_part
    from acnn.surface.surface import vertex_normals

    adult = builtin_humans().mesh(0)
    small = 0.6 * adult.vertices
    surface = surface_of(adult)
    child = surface_of(PointCloud(small, vertex_normals(small, adult.faces)), surface.unit)
    cloud = surface_of(PointCloud(adult.vertices, vertex_normals(adult.vertices, adult.faces)), surface.unit)
    method, why = suitable_method(child, surface)
    assert method == "zoomout"
    assert "cloud" in why
    part = surface_of(cut_part(adult, "cuts", 0.4, seed=1)[0], surface.unit)
    assert suitable_method(part, cloud)[0] == "pfm"  # the border of a mesh is known whatever the reference is


def test_meshes_are_refined_like_their_surfaces() -> None:
    mesh = bumpy(3)
    large = Mesh(100 * mesh.vertices, mesh.faces)
    guess = np.where(np.arange(642) % 7, np.arange(642), 3)
    expected = refine(guess, surface_of(large), surface_of(mesh), eigenfunctions=30)
    assert expected.report.used == "zoomout"
    for method in ("zoomout", "auto"):  # the size of a full shape does not count
        found = refine(guess, large, mesh, method, eigenfunctions=30)
        assert found.report.used == "zoomout"
        np.testing.assert_array_equal(found.query_to_reference, expected.query_to_reference)
    cloud = PointCloud(mesh.vertices, surface_of(mesh).normals)
    assert refine(guess, cloud, mesh, eigenfunctions=30).query_to_reference.shape == (642,)
