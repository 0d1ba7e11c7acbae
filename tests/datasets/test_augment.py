"""Blended and remeshed copies of training shapes."""

from dataclasses import replace

import numpy as np
import pytest

from acnn.datasets import open_dataset
from acnn.datasets.augment import AugmentSettings, InterpolatedSample, aligned, augmented, interpolated_samples
from acnn.datasets.dataset import Example, Sample
from acnn.errors import InputError


@pytest.fixture(scope="module")
def people():
    return open_dataset("humans").select("0-23")  # three people


def test_aligning_undoes_a_rotation_and_a_shift_and_never_mirrors():
    random = np.random.default_rng(0)
    points = random.normal(size=(50, 3))
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    np.testing.assert_allclose(aligned(points @ turn.T + [1, 2, 3], points), points, atol=1e-12)
    mirrored = points * [-1, 1, 1]
    assert np.abs(aligned(mirrored, points) - points).max() > 0.1


def test_a_blend_lies_between_two_shapes_of_one_pose(people):
    read = people.samples[0].read
    moved = replace(read().shape, vertices=read().shape.vertices * 1.2 + [5, 0, 0])
    example = InterpolatedSample(read, lambda: Example(moved, read().labels), 0.5)()
    centre = read().shape.vertices.mean(axis=0)
    expected = centre + 1.1 * (read().shape.vertices - centre)
    np.testing.assert_allclose(example.shape.vertices, expected, atol=1e-9)
    np.testing.assert_array_equal(example.labels, read().labels)


def test_partners_are_other_people_of_the_same_dataset(people):
    made = interpolated_samples(people, 2)
    assert made
    assert {s.name.split("_blended")[0] for s in made} <= {s.name for s in people.samples}
    readers = {s.read: s for s in people.samples}
    for sample in made:
        assert readers[sample.read.other].subject != sample.subject
        assert abs(sample.read.weight) <= 0.5
    again = interpolated_samples(people, 2)
    assert [(s.name, s.read.weight) for s in made] == [(s.name, s.read.weight) for s in again]
    fewer = {s.name: s.read.weight for s in interpolated_samples(people.select("0-15"), 1)}
    kept = [fewer.get(s.name) == s.read.weight for s in made if not s.name.endswith("2") and s.subject < 2]
    assert any(kept)
    assert not all(kept)


def test_remeshed_samples_have_exact_ground_truth_on_the_reference(people):
    some = people.select("0,8")
    made = augmented(some, AugmentSettings(interpolated=1, remeshed=0.5))
    blends = [s for s in made.samples if s.name.endswith("_blended")]
    remeshed = [s for s in made.samples if s.name.endswith("_remeshed")]
    assert len(made) == 2 + len(blends) + len(remeshed)
    assert len(remeshed) == round((2 + len(blends)) / 2)
    original, copy = some.samples[0].read().shape, remeshed[0].read()
    assert 0.55 < len(copy.shape.vertices) / len(original.vertices) < 1.15
    corners = original.vertices[original.faces[copy.truth.faces]]
    points = np.einsum("nk,nkd->nd", copy.truth.weights, corners)
    size = np.ptp(original.vertices, axis=0).max()
    assert np.abs(points - copy.shape.vertices).max() < 0.02 * size


def test_shapes_of_other_triangulations_are_not_interpolated(people):
    some = people.select("0,8")
    odd = augmented(some, AugmentSettings(remeshed=1)).samples
    names = {s.name for s in interpolated_samples(replace(some, samples=odd), 1)}
    assert all("remeshed" not in name for name in names)
    unknown = [Sample(s.name, s.read) for s in some.samples]
    assert interpolated_samples(replace(some, samples=tuple(unknown)), 1) == []


def test_bad_numbers_are_refused(people):
    with pytest.raises(InputError, match="negative"):
        AugmentSettings(remeshed=-1)
    with pytest.raises(InputError, match="at least one"):
        interpolated_samples(people, 0)
