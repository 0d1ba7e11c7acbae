"""A template fitted to shapes: exact where the truth is rigid, near the surface, without damaged faces."""

import numpy as np
import pytest
from analytic import bumpy, rotation, sphere, subdivided
from scipy.spatial import cKDTree

from acnn import InputError, builtin_human
from acnn.registration import fit, transfer_shape
from acnn.registration.fit import MAP_DETAIL
from acnn.shapes import Mesh, PointCloud
from acnn.shapes.mesh import BarycentricPoints
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.simplify import remesh


def at_all_vertices(mesh):
    return BarycentricPoints.at_vertices(mesh.faces, np.arange(len(mesh.vertices)))


def edge_of(mesh):
    return np.linalg.norm(mesh.vertices[mesh.faces[:, 0]] - mesh.vertices[mesh.faces[:, 1]], axis=1).mean()


def test_a_similarity_is_found_exactly_in_spite_of_wrong_matches():
    template = bumpy(3)
    positions = template.vertices @ (40 * rotation(1)).T + 9.0
    target = Mesh(positions, template.faces)
    found = fit(template, target, at_all_vertices(template), positions)
    np.testing.assert_allclose(found.vertices, positions, atol=1e-6 * 40)
    assert found.scale == pytest.approx(40)
    random = np.random.default_rng(0)
    wrong = random.random(len(positions)) < 0.2
    mixed = np.where(wrong[:, None], random.permutation(positions), positions)
    found = fit(template, target, at_all_vertices(template), mixed)
    assert np.linalg.norm(found.vertices - positions, axis=1).max() < 0.2 * edge_of(target)
    assert found.match_weights[~wrong].mean() > 0.95
    assert found.match_weights[wrong].mean() < 0.15


def test_a_shape_in_another_connectivity_keeps_its_surface():
    b = bumpy(3)
    fine = subdivided(b)
    motion = rotation(4) * 2.5
    a = Mesh(fine.vertices @ motion.T + 7.0, fine.faces)
    moved = transfer_shape(a, b, ClosestPoints(b.vertices, b.faces)(fine.vertices))
    off = np.linalg.norm((moved - 7.0) @ np.linalg.inv(motion.T) - b.vertices, axis=1)
    assert off.max() < 0.1 * edge_of(b)
    # and with a third of the vertices without any match, they are put between the others
    few = np.flatnonzero(np.random.default_rng(0).random(len(b.vertices)) < 0.67)
    sparse = transfer_shape(Mesh(b.vertices, b.faces), b, BarycentricPoints.at_vertices(b.faces, nearest(few, b)))
    assert np.linalg.norm(sparse - b.vertices, axis=1).max() < edge_of(b)


def nearest(few, mesh):
    """Every vertex matched to the nearest of a few."""
    return few[np.linalg.norm(mesh.vertices[:, None] - mesh.vertices[few], axis=2).argmin(axis=1)]


def test_a_human_is_fitted_to_another_subject_and_pose_in_another_triangulation():
    template, goal = builtin_human(0, 0), builtin_human(7, 3)
    target = remesh(goal, vertices=2000, seed=1)
    points = BarycentricPoints.at_vertices(template.faces, target.truth.nearest_vertex(goal.vertices, goal.faces))
    found = fit(template, target.mesh, points, target.mesh.vertices)
    off = np.linalg.norm(found.vertices - goal.vertices, axis=1)  # metres
    assert off.mean() < 0.008
    assert found.residuals.mean() < 0.0015
    assert found.has_data.mean() > 0.97
    assert (found.damage.collapsed_faces, found.damage.inverted_faces) == (0, 0)
    assert found.damage.largest_stretch < 5


def matches_with_errors(mesh, matched, seed):
    """A tenth of the matches wrong, half of them in patches, and the others pushed along the surface by waves."""
    random = np.random.default_rng(seed)
    pushed = mesh.vertices + 0.02 * np.sin(9 * mesh.vertices[:, [1, 2, 0]])
    matched = cKDTree(mesh.vertices).query(pushed)[1][matched]
    wrong = random.random(len(matched)) < 0.05
    matched[wrong] = random.integers(len(mesh.vertices), size=wrong.sum())
    for centre in random.integers(len(mesh.vertices), size=4):
        patch = np.linalg.norm(mesh.vertices[matched] - mesh.vertices[centre], axis=1) < 0.06
        matched[patch] = cKDTree(mesh.vertices).query(mesh.vertices[matched[patch]] + random.normal(0, 0.1, 3))[1]
    return matched


def test_a_fit_along_wrong_matches_ends_on_the_surface_and_is_nearer_to_the_truth_than_they_are():
    template, goal = builtin_human(0, 0), builtin_human(7, 3)
    target = remesh(goal, vertices=2000, seed=1)
    exact = target.truth.nearest_vertex(goal.vertices, goal.faces)
    matched = matches_with_errors(template, exact, 2)
    points = BarycentricPoints.at_vertices(template.faces, matched)
    off = {}
    for detail in (0.0, MAP_DETAIL):
        found = fit(template, target.mesh, points, target.mesh.vertices, detail=detail)
        assert found.residuals.mean() < 0.0003  # metres
        assert (found.residuals < 0.003).mean() > 0.99
        assert (found.damage.collapsed_faces, found.damage.inverted_faces) == (0, 0)
        off[detail] = np.linalg.norm(found.vertices - goal.vertices, axis=1).mean()
    given = np.linalg.norm(goal.vertices[matched] - goal.vertices[exact], axis=1).mean()
    assert off[MAP_DETAIL] < off[0.0] < given


def animal(turns, rings=80, sectors=10):
    """A round body with a long thin tail, which is curled up by some turns in the plane."""
    s = np.linspace(0, 1.9, rings)
    body = 0.28 * np.sqrt(np.clip(1 - ((s - 0.42) / 0.42) ** 2, 0, 1))
    radius = np.maximum(body, np.where(s > 0.5, 0.03, 0))[1:-1]
    angle = 2 * np.pi * turns * np.clip(s - 0.9, 0, 1) ** 1.5
    steps = np.diff(s)[:, None] * np.stack([np.cos(angle), np.sin(angle), 0 * s], axis=1)[1:]
    axis = np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
    around = np.linspace(0, 2 * np.pi, sectors, endpoint=False)[:, None]
    across = np.stack([-np.sin(angle), np.cos(angle), 0 * s], axis=1)[1:-1, None]
    circles = axis[1:-1, None] + radius[:, None, None] * (np.cos(around) * across + np.sin(around) * [0, 0, 1])
    i, j = (x.ravel() for x in np.mgrid[: rings - 3, :sectors])
    a, b, c, d = (r * sectors + k % sectors for r, k in ((i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1)))
    ends, k = (rings - 2) * sectors, np.arange(sectors)
    last = ends - sectors
    faces = [
        [a, c, b],
        [b, c, d],
        [k, (k + 1) % sectors, 0 * k + ends],
        [last + (k + 1) % sectors, last + k, 0 * k + ends + 1],
    ]
    return Mesh(np.concatenate([circles.reshape(-1, 3), axis[[0, -1]]]), np.hstack(faces).T.astype(np.int32))


def test_a_curled_tail_is_straightened():
    template, target = animal(2.2), animal(0)
    found = fit(template, target, at_all_vertices(template), target.vertices)
    assert found.scale == pytest.approx(1, abs=0.05)
    assert np.linalg.norm(found.vertices - target.vertices, axis=1).max() < 0.05
    assert (found.damage.collapsed_faces, found.damage.inverted_faces) == (0, 0)


def test_what_a_noisy_partial_cloud_lacks_follows_the_template():
    template, goal = builtin_human(0, 0), builtin_human(5, 0)
    random = np.random.default_rng(3)
    height = goal.vertices[:, np.ptp(goal.vertices, axis=0).argmax()]
    far = height > height.max() - 0.2  # the head
    seen = np.flatnonzero(~far)
    points = goal.vertices[seen] + random.normal(0, 0.002, (len(seen), 3))
    found = fit(template, PointCloud(points), BarycentricPoints.at_vertices(template.faces, seen), points)
    off = np.linalg.norm(found.vertices - goal.vertices, axis=1)
    assert off[~far].mean() < 0.006
    assert off[far].mean() < 0.04  # turned by noise at the border, but a head where a head belongs
    assert found.has_data[~far].mean() > 0.88
    assert found.has_data[far].mean() < 0.25
    assert (found.damage.collapsed_faces, found.damage.inverted_faces) == (0, 0)


def test_a_map_that_folds_the_surface_gives_no_folded_faces():
    mesh = sphere(3)
    # a band of the right half is matched to its mirror image in the left one
    band = (mesh.vertices[:, 0] > 0) & (np.abs(mesh.vertices[:, 2]) < 0.3)
    flipped = mesh.vertices * np.where(band[:, None], [-1, 1, 1], 1)
    found = fit(mesh, mesh, at_all_vertices(mesh), flipped)
    assert (found.damage.collapsed_faces, found.damage.inverted_faces) == (0, 0)
    assert found.damage.largest_stretch < 5


def test_a_template_with_a_component_that_nothing_matches_is_refused():
    ball = sphere(1)
    both = Mesh(np.vstack([ball.vertices, ball.vertices + [3.0, 0, 0]]), np.vstack([ball.faces, ball.faces + 42]))
    with pytest.raises(InputError, match="42 vertices, the first as loaded is 42"):
        transfer_shape(ball, both, BarycentricPoints.at_vertices(both.faces, np.arange(42)))
    moved = transfer_shape(both, both, at_all_vertices(both))
    np.testing.assert_allclose(moved, both.vertices, atol=0.02)


def test_arrays_that_do_not_fit_are_refused():
    mesh = sphere(1)
    points = at_all_vertices(mesh)
    with pytest.raises(InputError, match="42 points"):
        fit(mesh, mesh, points, mesh.vertices[1:])
    with pytest.raises(InputError, match="at least 0"):
        fit(mesh, mesh, points, mesh.vertices, -np.ones(42))
    with pytest.raises(InputError, match="detail -1"):
        fit(mesh, mesh, points, mesh.vertices, detail=-1.0)
    with pytest.raises(InputError, match="single point"):
        fit(mesh, mesh, points, np.zeros((42, 3)))
