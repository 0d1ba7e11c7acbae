"""Point clouds sampled from meshes."""

import numpy as np
import pytest
from analytic import sphere
from scipy.spatial import cKDTree

from acnn.datasets.clouds import clouds_of, sample_points
from acnn.datasets.dataset import Dataset, Example, InMemory, Sample
from acnn.errors import InputError
from acnn.shapes import PointCloud


def test_points_lie_evenly_on_the_surface():
    mesh = sphere(3)
    points = sample_points(mesh, 500, seed=1).interpolate(mesh.vertices[mesh.faces])
    assert np.abs(np.linalg.norm(points, axis=1) - 1).max() < 0.02
    assert np.abs(points.mean(axis=0)).max() < 0.05
    spacing = cKDTree(points).query(points, k=2)[0][:, 1]
    assert spacing.min() > 0.5 * np.sqrt(4 * np.pi / 500)  # random points would come close to each other
    assert np.array_equal(points, sample_points(mesh, 500, seed=1).interpolate(mesh.vertices[mesh.faces]))
    assert not np.array_equal(points, sample_points(mesh, 500, seed=2).interpolate(mesh.vertices[mesh.faces]))
    with pytest.raises(InputError, match="0 points"):
        sample_points(mesh, 0)


def test_clouds_know_their_points_on_the_reference():
    mesh = sphere(2)
    whole = Sample("ball_7", InMemory(Example(mesh, np.arange(len(mesh.vertices)))), "test")
    clouds = clouds_of(Dataset("balls", mesh, (whole,)), density=2.0)
    sample = clouds.samples[0]
    assert (sample.name, sample.number, sample.split) == ("ball_7_cloud", 7, "test")
    example = sample.read()
    assert isinstance(example.shape, PointCloud)
    assert len(example.shape.vertices) == 2 * len(mesh.vertices)
    assert np.allclose(example.truth.interpolate(mesh.vertices[mesh.faces]), example.shape.vertices)
    away = np.linalg.norm(mesh.vertices[example.labels] - example.shape.vertices, axis=1)
    assert np.allclose(away, cKDTree(mesh.vertices).query(example.shape.vertices)[0])
    with pytest.raises(InputError, match="point cloud has no surface"):
        clouds_of(clouds).samples[0].read()
