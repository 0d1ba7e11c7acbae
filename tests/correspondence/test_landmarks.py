"""Landmarks: files, guidance of a soft map, moving a map to them, contradictions."""

import numpy as np
import pytest
from analytic import bumpy

from acnn.correspondence.landmarks import guide_by_landmarks, honour_landmarks, landmarks_of, read_landmarks
from acnn.correspondence.refine import refine
from acnn.correspondence.soft_map import soft_map_from_point_map
from acnn.errors import InputError
from acnn.shapes import Mesh
from acnn.shapes.mesh import Source
from acnn.surface import surface_of


@pytest.fixture(scope="module")
def ellipsoid():
    """A surface that a half turn around z maps to itself, and that map between its vertices."""
    sphere = bumpy(3)
    points = sphere.vertices / np.linalg.norm(sphere.vertices, axis=1, keepdims=True)
    surface = surface_of(Mesh(points * [1.0, 1.4, 2.0], sphere.faces))
    turned = surface.vertices * [-1, -1, 1]
    return surface, np.linalg.norm(surface.vertices[None] - turned[:, None], axis=2).argmin(axis=1)


def far_apart(surface, count):
    """Vertices spread over the surface."""
    found = [0]
    for _ in range(count - 1):
        gaps = np.linalg.norm(surface.vertices[:, None] - surface.vertices[found], axis=2).min(axis=1)
        found.append(int(gaps.argmax()))
    return found


def test_four_pairs_turn_a_half_turn_back(ellipsoid):
    surface, half_turn = ellipsoid
    n = len(half_turn)
    start = soft_map_from_point_map(half_turn, n, np.full(n, 0.9))
    landmarks = landmarks_of([[v, v] for v in far_apart(surface, 4)], (n, n))
    guided = guide_by_landmarks(start, surface, surface, landmarks)
    np.testing.assert_allclose(guided.probabilities.sum(axis=1), 1.0, atol=1e-5)
    assert (guided.query_to_reference[landmarks.a] == landmarks.b).all()
    refined = refine(guided, surface, surface, "zoomout").query_to_reference
    gaps = np.linalg.norm(surface.vertices[refined] - surface.vertices, axis=1)
    wrong = np.linalg.norm(surface.vertices[half_turn] - surface.vertices, axis=1)
    assert gaps.mean() < 0.02 * wrong.mean()


def test_a_good_map_is_hardly_changed_by_landmarks_that_agree(ellipsoid):
    surface, _ = ellipsoid
    n = len(surface.vertices)
    start = soft_map_from_point_map(np.arange(n), n, np.full(n, 0.9))
    landmarks = landmarks_of([[v, v] for v in far_apart(surface, 3)], (n, n))
    assert (guide_by_landmarks(start, surface, surface, landmarks).query_to_reference == np.arange(n)).all()
    matched, report = honour_landmarks(np.arange(n), surface, surface, landmarks)
    assert (matched == np.arange(n)).all()
    assert report.contradictions == ()
    assert set(report.distances.values()) == {0.0}


def test_matches_around_a_landmark_are_moved_along(ellipsoid):
    surface, _ = ellipsoid
    n = len(surface.vertices)
    beside = np.linalg.norm(surface.vertices - surface.vertices[10], axis=1).argsort()
    target = int(beside[8])  # a few edges away
    matched, report = honour_landmarks(np.arange(n), surface, surface, landmarks_of([[10, target]], (n, n)))
    assert matched[10] == target
    assert 0 < report.distances["0"] <= report.tolerance
    assert (matched[beside[1:7]] != beside[1:7]).mean() > 0.5
    far = beside[n // 4 :]
    assert (matched[far] == far).all()


def test_contradictions_are_reported(ellipsoid):
    surface, half_turn = ellipsoid
    n = len(half_turn)
    tips = surface.vertices[:, 2].argmax(), surface.vertices[:, 2].argmin()
    swapped = landmarks_of([[tips[0], tips[1]], [tips[1], tips[1]]], (n, n))
    matched, report = honour_landmarks(np.arange(n), surface, surface, swapped)
    assert matched[tips[0]] == tips[1]
    assert any("Landmark 0 contradicts the surface" in text for text in report.contradictions)
    assert any("Landmarks 0 and 1 contradict each other" in text for text in report.contradictions)


def test_files(tmp_path):
    mesh = bumpy(1)
    n = len(mesh.vertices)
    numbers = np.arange(n, dtype=np.int32)
    a = Mesh(mesh.vertices, mesh.faces, source=Source("a.ply", np.append(-1, numbers), numbers + 1))
    path = tmp_path / "pairs.txt"
    path.write_text("# paws\nleft paw 3 7\n\n4 8  # tail\n")
    found = read_landmarks(path, a, mesh)
    assert found.names == ("left paw", "1")
    assert found.a.tolist() == [2, 3]
    assert found.b.tolist() == [7, 8]
    for text, message in (
        ("3\n", r"line 1: '3' is not '\[name\] vertex-of-A"),
        ("x 3 y\n", "line 1: 'x 3 y' is not"),
        (f"3 {n}\n", f"there is no vertex {n}; B has vertices 0 to {n - 1}"),
        ("0 3\n", "vertex 0 of A was removed on loading"),
        ("3 3\n3 4\n", "vertex 2 of A is named twice"),
        ("# none\n", "there are no landmarks"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_landmarks(path, a, mesh)


@pytest.mark.parametrize("pairs", [[], [[1, 2, 3]], [[0.5, 1.0]], [1, 2]])
def test_what_is_no_pair_is_refused(pairs):
    with pytest.raises(InputError, match="Landmarks are"):
        landmarks_of(pairs, (5, 5))
