"""Verdicts on maps whose quality is known: of humans with ground truth, and of nonsense."""

import numpy as np
import pytest
from analytic import bumpy, permuted, rotation
from scipy.spatial import cKDTree
from scipy.stats import spearmanr

from acnn.correspondence.judge import judge_map, map_confidence
from acnn.datasets import builtin_humans
from acnn.datasets.parts import cut_part
from acnn.shapes import Mesh, PointCloud
from acnn.surface import surface_of
from acnn.surface.simplify import remesh

HUMANS = builtin_humans()


def nearest(points, shape):
    """(n,) vertices of a shape."""
    return cKDTree(shape.vertices).query(points)[1].astype(np.int32)


def pair(i=131, j=148):
    """Two humans in one triangulation, in the unit of the second."""
    return surface_of(HUMANS.mesh(i)), surface_of(HUMANS.mesh(j))


def remeshed(i, j, vertices):
    """Two humans in triangulations of their own, and the vertex of the second nearest to each point of the first."""
    first, second = HUMANS.mesh(i), HUMANS.mesh(j)
    a = remesh(first, vertices=vertices[0], seed=i)
    b = remesh(second, vertices=vertices[1], density=0.5, seed=j).mesh
    places = np.einsum("nk,nkd->nd", a.truth.weights, second.vertices[second.faces[a.truth.faces]])
    return a.mesh, b, nearest(places, b)


@pytest.mark.parametrize(("i", "j"), [(130, 147), (135, 152), (140, 157), (145, 130), (150, 135), (155, 142)])
def test_the_true_map_of_two_humans_is_good(i, j):
    a, b = pair(i, j)
    found = judge_map(np.arange(len(a.vertices), dtype=np.int32), a, b)
    assert (found.verdict, found.reasons, found.advice) == ("good", (), ())


@pytest.mark.parametrize("vertices", [(1500, 2000), (400, 2400), (2400, 400)])
def test_triangulations_of_their_own_are_no_reason_for_doubt(vertices):
    a, b, matched = remeshed(145, 130, vertices)
    assert judge_map(matched, surface_of(a), surface_of(b)).verdict == "good"


@pytest.mark.parametrize(("kind", "missing"), [("cuts", 0.3), ("cuts", 0.7), ("holes", 0.4)])
def test_the_true_map_of_a_part_is_good(kind, missing):
    part, kept = cut_part(HUMANS.mesh(134), kind, missing, seed=1)
    full = surface_of(HUMANS.mesh(149))
    own = surface_of(HUMANS.mesh(134))
    assert judge_map(kept.astype(np.int32), surface_of(part, own.unit), full).verdict == "good"


def test_the_true_map_of_a_cloud_is_good():
    a, b = HUMANS.mesh(133), HUMANS.mesh(150)
    every = np.arange(len(a.vertices), dtype=np.int32)
    assert judge_map(every, surface_of(PointCloud(a.vertices)), surface_of(b)).verdict == "good"
    assert judge_map(every, surface_of(a), surface_of(PointCloud(b.vertices))).verdict == "good"


def test_nonsense_has_failed_and_says_how():
    a, b = pair()
    n = len(a.vertices)
    rng = np.random.default_rng(0)
    few = rng.choice(n, 40, replace=False)
    maps = {
        "collapses": [
            np.zeros(n),
            rng.choice(n, 3)[rng.integers(0, 3, n)],
            few[nearest(b.vertices, PointCloud(b.vertices[few]))],
        ],
        "far apart": [rng.integers(0, n, n)],
    }
    for words, candidates in maps.items():
        for matched in candidates:
            found = judge_map(matched.astype(np.int32), a, b, untried=["Try something else."])
            assert found.verdict == "failed"
            assert words in found.reasons[0]
            assert found.advice == ("Try something else.",)


def test_exchanged_sides_and_limbs_are_doubtful():
    a, b = pair()
    n = len(a.vertices)
    upright = HUMANS.mesh(0).vertices
    mirrored = judge_map(HUMANS.mirror.astype(np.int32), a, b)
    assert mirrored.verdict == "doubtful"
    assert "Left and right" in mirrored.reasons[0]
    legs = np.where(upright[:, 1] < 0.8, HUMANS.mirror, np.arange(n)).astype(np.int32)
    assert judge_map(legs, a, b).verdict == "doubtful"
    half = np.where(upright[:, 0] > 0, HUMANS.mirror, np.arange(n)).astype(np.int32)
    assert judge_map(half, a, b).verdict == "failed"


def test_a_target_that_lacks_a_part_is_named():
    part, _ = cut_part(HUMANS.mesh(134), "cuts", 0.4, seed=1)
    full = HUMANS.mesh(134)
    found = judge_map(nearest(full.vertices, part), surface_of(full), surface_of(part, surface_of(full).unit))
    assert found.verdict == "doubtful"
    assert found.advice == ("B looks like a part of A: match B to A.",)
    named = judge_map(
        nearest(full.vertices, part),
        surface_of(full),
        surface_of(part, surface_of(full).unit),
        names=("the scan", "the reference"),
    )
    assert named.advice == ("the reference looks like a part of the scan: match the reference to the scan.",)


def test_a_point_far_away_is_noticed():
    mesh = HUMANS.mesh(130)
    cloud = PointCloud(np.vstack([mesh.vertices, [[50.0, 0.0, 0.0]]]))
    matched = np.append(np.arange(len(mesh.vertices)), 0).astype(np.int32)
    found = judge_map(matched, surface_of(cloud), surface_of(mesh))
    assert found.verdict == "failed"
    assert "far away" in found.reasons[0]


def test_a_judgement_depends_neither_on_motion_nor_on_the_order_of_vertices():
    mesh = bumpy(2)
    a, place = permuted(Mesh(7 * mesh.vertices @ rotation(1).T + 3.0, mesh.faces), 2)
    wrong = np.random.default_rng(0).permutation(len(mesh.vertices)).astype(np.int32)
    matched = np.where(mesh.vertices[:, 0] > 0.5, wrong, np.arange(len(mesh.vertices))).astype(np.int32)
    first = judge_map(matched, surface_of(mesh), surface_of(mesh))
    second = judge_map(matched[np.argsort(place)], surface_of(a), surface_of(mesh))
    assert (first.verdict, first.reasons) == (second.verdict, second.reasons)
    for name in ("weak", "crowded", "discontinuity", "upright", "reach"):
        assert getattr(first, name) == pytest.approx(getattr(second, name), rel=1e-6)


def test_confidence_is_low_where_a_map_is_wrong():
    a, b = pair()
    n = len(a.vertices)
    truth = np.arange(n, dtype=np.int32)
    assert map_confidence(truth, a, b).mean() > 0.9
    rng = np.random.default_rng(1)
    arm = HUMANS.mesh(0).vertices[:, 0] > 0.3
    scattered = np.where(arm, rng.integers(0, n, n), truth).astype(np.int32)
    collapsed = np.where(arm, 5, truth).astype(np.int32)
    for matched in (scattered, collapsed):
        confidence = map_confidence(matched, a, b)
        assert ((confidence >= 0) & (confidence <= 1)).all()
        assert confidence[arm].mean() < 0.3
        assert confidence[~arm].mean() > 0.85
        error = np.linalg.norm(b.vertices[matched] - b.vertices, axis=1)
        assert spearmanr(confidence, -error)[0] > 0.4
