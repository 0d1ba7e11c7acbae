"""Random forests: votes by hand, and files that vote the same."""

import numpy as np
import pytest
from analytic import bumpy

from acnn.errors import InputError
from acnn.files import read_arrays, write_arrays
from acnn.methods.method import TrainingData
from acnn.methods.rf import fit_forest, load_forest, train_forest
from acnn.shapes import Mesh
from acnn.training.config import ForestSettings, RunConfig


class Shape:
    def __init__(self, mesh, noise=0.0, seed=0):
        self.mesh = mesh
        self.labels = np.arange(len(mesh.vertices), dtype=np.int32)
        self.noise = np.random.default_rng(seed).normal(0, noise, mesh.vertices.shape)

    def descriptors(self):
        return (self.mesh.vertices + self.noise).astype(np.float32)


def shapes():
    mesh = bumpy(2)
    return [Shape(Mesh(mesh.vertices * [1, 1 + 0.02 * i, 1], mesh.faces), 0.01, i) for i in range(6)]


def grown(settings=ForestSettings(trees=8, leaf=1, features=3)):  # noqa: B008
    some = shapes()
    values = np.concatenate([shape.descriptors() for shape in some[:5]])
    labels = np.concatenate([shape.labels for shape in some[:5]])
    return fit_forest(values, labels, bumpy(2).vertices, settings), some, values, labels


def test_leaves_and_votes_are_those_of_the_training_samples():
    forest, _, values, labels = grown(ForestSettings(trees=3, leaf=4, features=3, kept=1000))
    leaves = forest.leaves(values)
    votes = forest.votes(values)
    assert np.allclose(votes.sum(axis=1), 1.0, atol=1e-6)
    for i in (0, 100, 500):
        expected = np.zeros(forest.classes)
        for t in range(3):
            inside = labels[leaves[:, t] == leaves[i, t]]
            assert len(inside) >= 4
            expected += np.bincount(inside, minlength=forest.classes) / len(inside) / 3
        assert np.allclose(votes[[i]].toarray()[0], expected, atol=1e-6)


def test_unseen_shapes_are_labelled_nearby_and_the_soft_map_is_sorted():
    forest, some, _, _ = grown()
    soft = forest.soft_map(some[5], some[5], k=5)
    reference = bumpy(2).vertices
    assert np.linalg.norm(reference[soft.query_to_reference] - reference, axis=1).mean() < 0.15
    assert (np.diff(soft.probabilities, axis=1) <= 1e-7).all()
    assert np.allclose(soft.probabilities.sum(axis=1), 1.0, atol=1e-5)


def test_a_saved_forest_votes_the_same_and_a_damaged_one_is_refused(tmp_path):
    some = shapes()
    config = RunConfig(method="rf", forest=ForestSettings(trees=4))
    train_forest(TrainingData(some[:5], (), bumpy(2)), config, tmp_path, False, None, {"data": "x"})
    path = tmp_path / "model.safetensors"
    forest, metadata = load_forest(path)
    assert metadata["data"] == "x"
    again, _ = load_forest(path)
    values = some[5].descriptors()
    assert (forest.votes(values) != again.votes(values)).nnz == 0
    arrays, about = read_arrays(path)
    for name, index, value in (
        ("left", 0, 10**6),
        ("left", 0, 0),
        ("leaf_labels", 0, 9999),
        ("roots", 1, -5),
        ("leaf_start", 1, -1),
    ):
        bad = {key: array.copy() for key, array in arrays.items()}
        bad[name][index] = value
        write_arrays(tmp_path / "bad.safetensors", bad, about)
        with pytest.raises(InputError, match="damaged"):
            load_forest(tmp_path / "bad.safetensors")
