"""Faces that a movement has damaged are found, and only those."""

import numpy as np
import pytest
from analytic import bumpy, rotation

from acnn import builtin_human
from acnn.registration import face_damage
from acnn.shapes import Mesh, PointCloud


def test_damaged_faces_are_counted_and_others_are_not():
    b = bumpy(3)
    a = Mesh(b.vertices @ (1000 * rotation(2)).T + 5.0, b.faces)
    found = face_damage(a, b, a.vertices)  # rotated, translated and in millimetres
    assert not found.damaged.any()
    assert found.largest_stretch == pytest.approx(1.0)
    start, end = b.faces[100, :2]
    pinched = b.vertices.copy()
    pinched[start] = pinched[end]
    assert face_damage(b, b, pinched).collapsed_faces == 2  # the two faces at that edge
    for onto in (b, PointCloud(b.vertices)):
        swapped = b.vertices.copy()
        swapped[[start, end]] = swapped[[end, start]]
        damage = face_damage(onto, b, swapped)
        assert (damage.collapsed_faces, damage.inverted_faces) == (0, 2)
    pulled = b.vertices.copy()
    apart = np.linalg.norm(b.vertices - b.vertices[start], axis=1)
    pulled[start] += 10 * (b.vertices[start] - b.vertices[apart.argmax()])
    assert face_damage(b, b, pulled).largest_stretch > 20


def strip(width=0.0):
    """A band along x, and where each of its points goes if from x = 1 to 1 + width it is folded back over itself."""
    x, y = np.meshgrid(np.linspace(0, 3, 61), np.linspace(0, 1, 21), indexing="ij")
    grid = np.arange(61 * 21).reshape(61, 21)
    a, b, c, d = (grid[i : i + 60, j : j + 20].ravel() for i, j in ((0, 0), (1, 0), (1, 1), (0, 1)))
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32)
    folded = np.where(x <= 1, x, np.where(x <= 1 + width, 2 - x, x - 2 * width))
    flat = np.stack([x, y, np.zeros_like(x)], axis=2).reshape(-1, 3)
    return Mesh(flat, faces), np.stack([folded, y, np.zeros_like(x)], axis=2).reshape(-1, 3)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_fold_is_inverted_wherever_it_lies_on_the_surface_upside_down(rows):
    mesh, after = strip(0.05 * rows)
    found = face_damage(mesh, mesh, after)
    x, y, _ = mesh.vertices[mesh.faces].mean(axis=1).T
    inner = np.abs(y - 0.5) < 0.4  # at the border half of the surroundings is missing
    np.testing.assert_array_equal(found.inverted[inner], ((x > 1) & (x < 1 + 0.05 * rows))[inner])
    assert not found.collapsed.any()


@pytest.mark.parametrize("angle", [60, 120, 170])
def test_bending_and_stretching_invert_nothing(angle):
    """A band bent over an edge, as an elbow is, and stretched threefold across."""
    mesh, _ = strip()
    x, y, _ = mesh.vertices.T
    turn = np.radians(np.interp(x, [1.4, 1.6], [0, angle]))
    step = np.diff(x.reshape(61, 21)[:, 0])
    middle = 0.5 * (turn.reshape(61, 21)[1:, 0] + turn.reshape(61, 21)[:-1, 0])
    along = [np.repeat(np.append(0, np.cumsum(step * part)), 21) for part in (np.cos(middle), np.sin(middle))]
    found = face_damage(PointCloud(mesh.vertices), mesh, np.stack([along[0], 3 * y, along[1]], axis=1))
    assert not found.damaged.any()


def test_a_vertex_pulled_beyond_its_neighbours_inverts_the_faces_behind_it():
    mesh, _ = strip()
    centre = 30 * 21 + 10
    pulled = mesh.vertices.copy()
    pulled[centre, 0] += 0.08  # edges are 0.05 long
    behind = signed(mesh, pulled) < 0
    assert 2 <= behind.sum() <= 4
    for onto in (mesh, PointCloud(mesh.vertices)):
        np.testing.assert_array_equal(face_damage(onto, mesh, pulled).inverted, behind)


def signed(mesh, after):
    """Areas of the faces of a mesh in the plane."""
    a, b, c = (after[mesh.faces[:, k]] for k in range(3))
    return np.cross(b - a, c - a)[:, 2] / 2


def test_a_surface_turned_inside_out_is_inverted_everywhere():
    b = bumpy(3)
    outside_in = Mesh(b.vertices, b.faces[:, ::-1].copy())
    assert face_damage(b, outside_in, b.vertices).inverted.all()


def test_a_human_that_another_pose_is_moved_onto_exactly_has_no_damaged_faces():
    a, b = builtin_human(16, 1), builtin_human(18, 2)
    found = face_damage(a, b, a.vertices)
    assert (found.collapsed_faces, found.inverted_faces) == (0, 0)
