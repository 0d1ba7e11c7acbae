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


def test_a_surface_turned_inside_out_is_inverted_everywhere():
    b = bumpy(3)
    outside_in = Mesh(b.vertices, b.faces[:, ::-1].copy())
    assert face_damage(b, outside_in, b.vertices).inverted.all()


def test_a_human_that_another_pose_is_moved_onto_exactly_has_no_damaged_faces():
    a, b = builtin_human(16, 1), builtin_human(18, 2)
    found = face_damage(a, b, a.vertices)
    assert (found.collapsed_faces, found.inverted_faces) == (0, 0)
