"""Detached parts of a target are matched to where the template fits them, and only those that a fit does not follow."""

import numpy as np
import pytest

from acnn import builtin_human
from acnn.datasets.builtin import body_parts, builtin_humans
from acnn.datasets.families import make_family
from acnn.registration import fit
from acnn.registration.detached import rematch_detached
from acnn.shapes import Mesh
from acnn.shapes.mesh import BarycentricPoints
from acnn.shapes.topology import vertex_components
from acnn.surface.surface import vertex_normals


def rotated(points, centre, angle, axis):
    """Points turned about a coordinate axis through a centre."""
    cos, sin = np.cos(angle), np.sin(angle)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    turn = np.eye(3)
    turn[[first, first, second, second], [first, second, first, second]] = cos, -sin, sin, cos
    return (points - centre) @ turn.T + centre


@pytest.fixture(scope="module")
def quadruped():
    """Mesh of area 1, its lower ends of legs as vertices, and the points of the same with one of them detached.

    The detached leg is turned by 40 degrees where a part above it is missing, and matched to another leg.
    """
    family = make_family("quadruped", 1, vertices=3000)
    faces = family.faces
    corners = family.template[faces]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()
    mesh = Mesh(family.template / np.sqrt(area), faces)
    height = mesh.vertices[:, 1] - mesh.vertices[:, 1].min()
    low = height < 0.18 * np.ptp(mesh.vertices[:, 1])
    _, label = vertex_components(faces[low[faces].all(axis=1)], len(mesh.vertices))
    legs = [np.flatnonzero(low & (label == k)) for k in np.unique(label[low]) if (low & (label == k)).sum() > 50]
    assert len(legs) == 4
    leg, other = legs[0], legs[1]
    joint = mesh.vertices[leg][height[leg] > 0.8 * height[leg].max()].mean(axis=0)
    truth = mesh.vertices.copy()
    truth[leg] = rotated(truth[leg], joint, np.radians(40), 2)
    missing = (np.linalg.norm(mesh.vertices - joint, axis=1) < 0.15) & ~low
    return mesh, truth, leg, other, np.flatnonzero(~missing & ~(low & (height > 0.9 * height[leg].max())))


def arguments(quadruped, matched):
    """Arguments of `rematch_detached` for a fit that has left the leg where it is in the template."""
    mesh, truth, leg, _, kept = quadruped
    component = np.isin(kept, leg).astype(int)
    residuals = np.linalg.norm(mesh.vertices[matched] - truth[kept], axis=1)
    return mesh, mesh.vertices, truth[kept], vertex_normals(truth, mesh.faces)[kept], component, residuals


def matches(quadruped):
    """The true match of every point, but those of the leg on the other leg."""
    mesh, _, leg, other, kept = quadruped
    matched = kept.copy()
    matched[np.isin(kept, leg)] = other[0]
    return mesh, matched


def test_a_detached_leg_is_found_although_its_matches_are_on_another_leg(quadruped):
    mesh, matched = matches(quadruped)
    (found,) = rematch_detached(*arguments(quadruped, matched))
    _, _, leg, _, kept = quadruped
    np.testing.assert_array_equal(found.points, np.flatnonzero(np.isin(kept, leg)))
    off = mesh.vertices[mesh.faces[found.faces]].mean(axis=1) - mesh.vertices[kept[found.points]]
    assert np.linalg.norm(off, axis=1).mean() < 0.02
    assert found.weights.mean() > 0.8


def test_parts_that_are_followed_or_fit_nowhere_keep_their_matches(quadruped):
    _, _, leg, _, kept = quadruped
    assert rematch_detached(*arguments(quadruped, kept)[:-1], np.zeros(len(kept))) == []
    whole = list(arguments(quadruped, matches(quadruped)[1]))
    ball = np.random.default_rng(0).standard_normal((len(leg), 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    part = whole[4] == 1
    whole[2], whole[3] = whole[2].copy(), whole[3].copy()
    whole[2][part] = whole[2][part].mean(axis=0) + 0.2 * ball[: part.sum()]
    whole[3][part] = ball[: part.sum()]
    assert rematch_detached(*whole) == []
    whole[4] = np.zeros_like(whole[4])
    assert rematch_detached(*whole) == []


def test_a_hand_without_its_forearm_is_fitted_although_it_is_matched_to_the_other_hand():
    template, goal, mirror = builtin_human(0, 0), builtin_human(0, 7), builtin_humans().mirror
    parts = body_parts()
    of_vertex = np.array(parts.names)[parts.of_reference]
    kept = np.flatnonzero(of_vertex != "left forearm")
    new = np.full(len(of_vertex), -1)
    new[kept] = np.arange(len(kept))
    faces = new[goal.faces]
    target = Mesh(goal.vertices[kept], faces[(faces >= 0).all(axis=1)].astype(np.int32))
    hand = of_vertex[kept] == "left hand"
    matched = np.where(hand, mirror[kept], kept)
    points = BarycentricPoints.at_vertices(template.faces, matched)
    errors = []
    for detached in (False, True):
        found = fit(template, target, points, target.vertices, detached=detached)
        errors.append(np.linalg.norm(found.vertices - goal.vertices, axis=1)[kept[hand]].mean())
        assert found.match_weights.shape == (len(kept),)
    assert errors[1] < 0.02 < 0.05 < errors[0]  # metres
