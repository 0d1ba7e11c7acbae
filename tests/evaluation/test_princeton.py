"""Princeton protocol: the sphere's great circles, points in triangles, the mirrored truth, coverage, smoothness."""

import json

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from acnn.errors import InputError
from acnn.evaluation import (
    THRESHOLDS,
    BarycentricPoints,
    ReferenceDistances,
    coverage,
    evaluate_map,
    evaluation_report,
    mirrored,
    princeton_curve,
    smoothness,
)
from acnn.shapes import Mesh
from acnn.surface.geodesics import GeodesicSolver
from acnn.surface.surface import Surface, surface_of

RHO = 10.0


def sphere_mesh(n=600):
    k = np.arange(n) + 0.5
    height, angle = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    flat = np.sqrt(1 - height**2)
    points = np.stack([flat * np.cos(angle), flat * np.sin(angle), height], axis=1)
    faces = ConvexHull(points).simplices
    a, b, c = (points[faces[:, i]] for i in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a + b + c) < 0
    return Mesh(RHO * points, np.where(inward[:, None], faces[:, ::-1], faces).astype(np.int32))


def grid_mesh(n=13):
    x, y = np.meshgrid(np.arange(n, dtype=float), np.arange(n, dtype=float), indexing="ij")
    at = np.arange(n * n).reshape(n, n)
    a, b, c, d = (corner.ravel() for corner in (at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32)
    return Mesh(np.stack([x.ravel(), y.ravel(), np.zeros(n * n)], axis=1), faces)


@pytest.fixture(scope="module")
def sphere() -> Surface:
    return surface_of(sphere_mesh(), unit=1.0)


@pytest.fixture(scope="module")
def grid() -> Surface:
    return surface_of(grid_mesh(), unit=1.0)


def test_the_identity_has_no_error_and_a_full_curve(sphere):
    n = len(sphere.vertices)
    result = evaluate_map(np.arange(n), np.arange(n), ReferenceDistances(sphere))
    assert result.exact == 1.0
    assert result.mean_error_x100 == 0.0
    assert result.auc == 1.0
    assert (result.curve == 1.0).all()
    assert result.coverage == pytest.approx(1.0)


def test_errors_on_a_sphere_are_great_circles_over_the_root_of_its_area(sphere):
    random = np.random.default_rng(0)
    n = len(sphere.vertices)
    matched, truth = random.integers(0, n, 400), random.integers(0, n, 400)
    cosine = np.einsum("ij,ij->i", sphere.vertices[matched], sphere.vertices[truth]) / RHO**2
    arc = RHO * np.arccos(np.clip(cosine, -1, 1))
    errors = evaluate_map(matched, truth, ReferenceDistances(sphere)).errors
    np.testing.assert_allclose(errors, arc / np.sqrt(4 * np.pi * RHO**2), rtol=0.06, atol=1e-3)


def test_a_shift_on_a_grid_is_a_step_of_the_curve(grid):
    at = np.arange(169).reshape(13, 13)
    matched, truth = at[3:, :].ravel(), at[:-3, :].ravel()  # every match three cells too far
    distances = ReferenceDistances(grid)
    result = evaluate_map(matched, truth, distances)
    step = 3 / 12  # the square has side 12 and root of area 12
    np.testing.assert_allclose(result.errors, step, rtol=1e-6)
    np.testing.assert_array_equal(result.curve, (step - 1e-9 <= THRESHOLDS).astype(float))
    assert result.exact == 0.0
    assert result.coverage == pytest.approx(9.5 / 12)  # ten of thirteen lines, the last one half as wide


def test_the_diameter_normalises_by_the_diameter(sphere):
    by_area = evaluate_map([0, 5], [300, 7], ReferenceDistances(sphere)).errors
    by_diameter = evaluate_map([0, 5], [300, 7], ReferenceDistances(sphere, "diameter")).errors
    np.testing.assert_allclose(by_area / by_diameter, np.pi * RHO / np.sqrt(4 * np.pi * RHO**2), rtol=0.05)


def test_distances_asked_for_twice_in_any_order_are_those_of_the_solver(sphere):
    random = np.random.default_rng(1)
    full = GeodesicSolver(sphere).distances_from(np.arange(len(sphere.vertices)))
    distances = ReferenceDistances(sphere)
    for seed_size in (50, 500, 50):
        a, b = random.integers(0, len(full), (2, seed_size))
        np.testing.assert_allclose(distances.between(a, b) * distances.length, full[a, b], rtol=1e-6)
        np.testing.assert_array_equal(distances.between(a, b), distances.between(b, a))


def test_points_no_path_joins_are_a_diameter_apart():
    one = sphere_mesh(200)
    both = Mesh(
        np.concatenate([one.vertices, one.vertices + np.array([50.0, 0, 0])]),
        np.concatenate([one.faces, one.faces + 200]).astype(np.int32),
    )
    distances = ReferenceDistances(surface_of(both, unit=1.0), "diameter")
    assert distances.between([0], [300])[0] == pytest.approx(1.0)


def test_truth_inside_a_triangle_of_a_plane_is_a_straight_line(grid):
    random = np.random.default_rng(2)
    faces = random.integers(0, len(grid.faces), 300)
    weights = random.dirichlet([1, 1, 1], 300)
    matched = random.integers(0, len(grid.vertices), 300)
    point = np.einsum("ni,nid->nd", weights, grid.vertices[grid.faces[faces]])
    straight = np.linalg.norm(grid.vertices[matched] - point, axis=1) / 12
    errors = evaluate_map(matched, BarycentricPoints(faces, weights), ReferenceDistances(grid, method="exact")).errors
    assert (errors >= straight - 1e-6).all()
    np.testing.assert_allclose(errors, straight, atol=0.2 / 12)
    assert np.median(errors - straight) < 0.03 / 12


def test_truth_at_a_corner_equals_truth_at_a_vertex(sphere):
    random = np.random.default_rng(3)
    faces, corner = random.integers(0, len(sphere.faces), 100), random.integers(0, 3, 100)
    matched = random.integers(0, len(sphere.vertices), 100)
    matched[:20] = sphere.faces[faces[:20], corner[:20]]
    distances = ReferenceDistances(sphere)
    inside = evaluate_map(matched, BarycentricPoints(faces, np.eye(3)[corner]), distances)
    at = evaluate_map(matched, sphere.faces[faces, corner], distances)
    np.testing.assert_allclose(inside.errors, at.errors, atol=1e-9)
    assert inside.exact == at.exact >= 0.2


def test_exact_is_the_vertex_nearest_to_the_true_point_as_in_labels():
    # a long thin triangle: the first corner is the nearest, though it has the smallest weight
    vertices = np.array([[0.0, 1, 0], [-10, 0, 0], [10, 0, 0], [0, -1, 0]])
    surface = surface_of(Mesh(vertices, np.array([[0, 1, 2], [1, 3, 2]], np.int32)), unit=1.0)
    truth = BarycentricPoints(np.array([0], np.int32), np.array([[0.25, 0.3, 0.45]]))
    distances = ReferenceDistances(surface)
    results = [evaluate_map([vertex], truth, distances) for vertex in range(3)]
    assert [result.exact for result in results] == [1.0, 0.0, 0.0]
    assert results[0].mean_error_x100 < min(result.mean_error_x100 for result in results[1:])


def test_unknown_truth_is_left_out(sphere):
    matched = np.array([4, 9, 9, 100])
    truth = np.array([4, -1, 9, -1])
    result = evaluate_map(matched, truth, ReferenceDistances(sphere))
    assert len(result.errors) == 2
    assert result.exact == 1.0


def test_the_symmetric_protocol_takes_the_nearer_of_truth_and_mirror(grid):
    at = np.arange(169).reshape(13, 13)
    mirror = at[::-1].ravel()  # x -> 12 - x
    truth = np.arange(169)
    swapped = mirror.copy()
    swapped[:26] = truth[:26]  # part on the right side already
    distances = ReferenceDistances(grid)
    strict = evaluate_map(swapped, truth, distances)
    lenient = evaluate_map(swapped, truth, distances, mirrored_truth=mirrored(truth, mirror))
    assert strict.exact == pytest.approx((26 + 13) / 169)  # and the middle line, which is its own mirror image
    assert strict.mean_error_x100 > 10
    assert lenient.exact == 1.0
    assert lenient.mean_error_x100 == 0.0


def test_a_random_mixture_of_left_and_right_has_no_symmetric_error_but_a_large_one_per_map(grid):
    at = np.arange(169).reshape(13, 13)
    mirror, truth = at[::-1].ravel(), np.arange(169)
    mixture = np.where(np.random.default_rng(0).random(169) < 0.5, truth, mirror)
    distances = ReferenceDistances(grid)
    found = {
        name: evaluate_map(matched, truth, distances, mirrored_truth=mirror, name=name)
        for name, matched in (("mixture", mixture), ("mirrored", mirror), ("right", truth))
    }
    assert [result.mean_error_x100 for result in found.values()] == [0, 0, 0]
    mixed = found["mixture"].per_map
    strict = [evaluate_map(mixture, one, distances).mean_error_x100 for one in (truth, mirror)]
    assert mixed.mean_error_x100 == pytest.approx(min(strict))
    assert mixed.mean_error_x100 > 15
    assert mixed.exact < 0.7
    assert [found[name].per_map.mean_error_x100 for name in ("mirrored", "right")] == [0, 0]
    assert [found[name].per_map.flipped for name in ("mirrored", "right")] == [True, False]
    report = evaluation_report([found["right"]], "sqrt_area", symmetric=list(found.values()))["symmetric"]
    assert report["mean_error_x100"] == 0
    assert report["per_map"]["mean_error_x100"] == pytest.approx(mixed.mean_error_x100 / 3)
    assert report["per_map"]["flipped"] == 1 + found["mixture"].per_map.flipped


def test_a_map_is_judged_as_one_where_both_truths_are_known(grid):
    at = np.arange(169).reshape(13, 13)
    mirror, truth = at[::-1].ravel(), np.arange(169)
    unknown = np.where(truth < 100, -1, mirror)
    flipped = evaluate_map(mirror, truth, ReferenceDistances(grid), mirrored_truth=unknown).per_map
    assert flipped.flipped
    assert len(flipped.errors) == 69
    assert flipped.mean_error_x100 == 0
    none = evaluate_map(mirror, truth, ReferenceDistances(grid), mirrored_truth=np.full(169, -1)).per_map
    assert not none.flipped
    assert len(none.errors) == 169


def test_coverage_is_the_share_of_area_hit(grid):
    areas = grid.vertex_areas
    assert coverage(np.zeros(50, dtype=int), grid) == pytest.approx(areas[0] / areas.sum())
    assert coverage(np.arange(169), grid) == pytest.approx(1.0)
    for point_map in ([0, -1], [0, 169]):
        with pytest.raises(InputError, match=f"vertex 1 to {point_map[1]}"):
            coverage(point_map, grid)


def test_smoothness_needs_a_vertex_for_each_vertex(grid):
    for point_map, words in ((np.arange(169) - 1, "vertex 0 to -1"), (np.arange(168), "169 whole numbers")):
        with pytest.raises(InputError, match=words):
            smoothness(point_map, grid, grid)


def test_smoothness_is_one_for_an_isometry_and_grows_with_noise(sphere):
    n = len(sphere.vertices)
    identity = np.arange(n)
    assert smoothness(identity, sphere, sphere) == pytest.approx(1.0, rel=1e-6)
    noisy = identity.copy()
    noisy[::10] = np.random.default_rng(0).integers(0, n, len(noisy[::10]))
    assert smoothness(noisy, sphere, sphere) > 3


def test_the_curve_counts_errors_at_most_the_threshold():
    np.testing.assert_array_equal(
        princeton_curve([0.0, 0.1, 0.1, 0.5], [0.0, 0.05, 0.1, 0.3]), [0.25, 0.25, 0.75, 0.75]
    )


def test_the_report_has_the_keys_of_the_command_line_and_means_over_shapes(sphere):
    distances = ReferenceDistances(sphere)
    truth = np.arange(len(sphere.vertices))
    good = evaluate_map(truth, truth, distances, name="good")
    bad = evaluate_map(np.roll(truth, 7), truth, distances, name="bad")
    report = evaluation_report(
        [good, bad], distances.normalisation, symmetric=[good, good], refined=[good, good], refined_symmetric=[good]
    )
    keys = {"exact", "auc", "mean_error_x100", "normalisation", "thresholds", "curve", "coverage", "shapes"}
    assert set(report) == keys | {"symmetric", "refined"}
    assert set(report["symmetric"]) == keys
    assert set(report["refined"]) == keys | {"symmetric"}
    assert report["exact"] == 0.5
    assert report["mean_error_x100"] == pytest.approx(bad.mean_error_x100 / 2)
    assert report["auc"] == pytest.approx(np.mean(report["curve"]))
    assert report["normalisation"] == "sqrt_area"
    assert [shape["name"] for shape in report["shapes"]] == ["good", "bad"]
    assert len(report["thresholds"]) == len(report["curve"]) == 100
    assert json.loads(json.dumps(report.as_dict(), allow_nan=False)) == report


@pytest.mark.parametrize(
    ("matched", "truth", "words"),
    [
        ([0, 1], [0, 600], "1-based"),
        ([0, 600], [0, 1], "maps vertex 1 to 600"),
        ([0, 1], [0, 1, 2], "2 vertices were matched"),
        ([0, 1], [-1, -1], "not known for any vertex"),
    ],
)
def test_bad_input_says_what_is_wrong(sphere, matched, truth, words):
    with pytest.raises(InputError, match=words):
        evaluate_map(matched, truth, ReferenceDistances(sphere))


def test_an_unknown_normalisation_is_refused(sphere):
    with pytest.raises(InputError, match="sqrt_area"):
        ReferenceDistances(sphere, "volume")


def test_a_list_of_pairs_counts_every_row(grid):
    n = len(grid.vertices)
    matched = np.arange(n)
    rows, truth = np.array([0, 0, 5]), np.array([0, 1, 5])
    result = evaluate_map(matched, truth, ReferenceDistances(grid), rows=rows)
    assert len(result.errors) == 3
    assert result.exact == pytest.approx(2 / 3)
    assert result.coverage == pytest.approx(1.0)
    mirrored_too = evaluate_map(matched, truth, ReferenceDistances(grid), mirrored_truth=np.array([7, 0, 7]), rows=rows)
    assert mirrored_too.exact == 1.0
