"""Closest points of targets: on the side that faces the same way."""

import numpy as np
import pytest

from acnn.registration.target import Target
from acnn.shapes import Mesh, PointCloud


def plate(count=9):
    """Vertices and faces of a thin plate: the square [0, 1]^2 at height 0, facing down, and at 0.1, facing up."""
    x, y = (a.ravel() for a in np.meshgrid(*2 * [np.linspace(0, 1, count)], indexing="ij"))
    i, j = (a.ravel() for a in np.mgrid[: count - 1, : count - 1])
    a, b, c, d = i * count + j, (i + 1) * count + j, (i + 1) * count + j + 1, i * count + j + 1
    up = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    vertices = np.concatenate([np.stack([x, y, 0 * x + z], axis=1) for z in (0.0, 0.1)])
    return vertices, np.concatenate([up[:, ::-1], up + count**2])


@pytest.mark.parametrize("kind", ["mesh", "cloud"])
def test_the_closest_point_of_a_thin_part_lies_on_the_side_that_faces_the_same_way(kind):
    vertices, faces = plate()
    normals = np.repeat([[0.0, 0, -1], [0, 0, 1]], len(vertices) // 2, axis=0)
    target = Target(Mesh(vertices, faces) if kind == "mesh" else PointCloud(vertices, normals=normals))
    points = np.array([[0.5, 0.5, 0.04], [0.5, 0.5, 0.06]])
    assert target(points).positions[:, 2] == pytest.approx([0, 0.1])
    up, down = np.tile([0.0, 0, 1], (2, 1)), np.tile([0.0, 0, -1], (2, 1))
    for directions, height, facing in ((up, 0.1, 1), (down, 0.0, -1)):
        found = target(points, directions, 0.2)
        assert found.positions[:, 2] == pytest.approx(height)
        assert found.normals[:, 2] == pytest.approx(facing)
        assert found.inside.all()
    # what is farther than the reach is not preferred
    assert target(points, up, 0.05).positions[:, 2] == pytest.approx([0, 0.1])
