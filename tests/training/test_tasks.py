"""Tasks: the siamese loss by hand, and a descriptor that learns."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from analytic import bumpy

from acnn.shapes import Mesh
from acnn.surface.spectra import SpectraSettings, compute_spectra
from acnn.surface.surface import surface_of
from acnn.training import RunConfig, TrainSettings
from acnn.training.loop import train
from acnn.training.tasks import LabelTask, PairTask, corresponding_vertices


@dataclass(frozen=True)
class Shape:
    name: str
    features: np.ndarray
    labels: np.ndarray
    eigenpairs: object = None
    truth: object = None
    weights: object = None

    def patches(self):
        raise AssertionError("no layer needs patches")

    def spectra(self):
        return self.eigenpairs

    def descriptors(self):
        return self.features


def shapes(count=3, spectra=0):
    mesh = bumpy(1)
    made = []
    for i in range(count):
        bent = Mesh(mesh.vertices * [1, 1 + 0.1 * i, 1], mesh.faces)
        noise = np.random.default_rng(i).normal(0, 0.05, bent.vertices.shape)
        pairs = compute_spectra(surface_of(bent), SpectraSettings(count=spectra)) if spectra else None
        labels = np.arange(len(mesh.vertices), dtype=np.int32)
        made.append(Shape(f"s{i}", (bent.vertices + noise).astype(np.float32), labels, pairs))
    return made


def test_corresponding_vertices_share_a_label_each_once():
    a, b = corresponding_vertices(np.array([5, -1, 7, 7, 2]), np.array([7, 2, -1, 9]))
    assert sorted(zip(a.tolist(), b.tolist(), strict=True)) == [(2, 0), (4, 1)]


def test_the_siamese_loss_is_its_formula():
    one = Shape("one", np.array([[0.0], [3.0]], np.float32), np.array([0, 1], np.int32))
    config = RunConfig(
        train=TrainSettings(architecture="FC1:linear", task="descriptor", margin=2.0, negative_weight=0.25)
    )
    task = PairTask(config)
    model = task.build([one, one])
    with torch.no_grad():
        model.layers[0].weight.fill_(1.0)
        model.layers[0].bias.fill_(0.0)
    model.standardise_input(torch.zeros(1), torch.ones(1))
    for seed in range(5):
        loss, _ = task.loss(model, [one], 0, np.random.default_rng(seed))
        rng = np.random.default_rng(seed)
        rng.integers(1), rng.choice(2, 2, replace=False)
        wrong = rng.integers(2, size=2)
        far = np.abs(np.array([0.0, 3.0]) - np.array([0.0, 3.0])[wrong])
        expected = 0.25 / 2 * np.mean(np.maximum(0.0, 2.0 - far) ** 2)  # corresponding points are at distance 0
        assert float(loss.detach()) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("architecture", ["FC16+FC4:linear", "FC8+WC4:linear"])
def test_a_descriptor_learns_to_find_corresponding_points(architecture, tmp_path):
    some = shapes(3, spectra=20)
    settings = TrainSettings(architecture=architecture, task="descriptor", learning_rate=2e-2, epochs=40)
    config = RunConfig(train=settings)
    config = replace(config, spectral=replace(config.spectral, eigenpairs=20, splines=6, over="eigenvalue"))
    task = PairTask(config)
    before = float(task.loss(task.build(some), some, 0, np.random.default_rng(0))[0].detach())
    model = train(some, task, config, tmp_path)
    assert model.classifier is None
    assert float(task.loss(model, some, 0, np.random.default_rng(0))[0].detach()) < 0.5 * before
    assert task.score(model, some) > 0.9


def test_labels_are_learned_by_a_spectral_network(tmp_path):
    some = shapes(3, spectra=20)
    config = RunConfig(train=TrainSettings(architecture="FC32+SC32+FC64+Softmax", learning_rate=1e-2, epochs=60))
    config = replace(config, spectral=replace(config.spectral, eigenpairs=20, splines=6, over="eigenvalue", skip=True))
    task = LabelTask(config, len(some[0].labels))
    model = train(some, task, config, tmp_path)
    assert model.spectral.upper > 0  # taken from the training shapes, and kept with the network
    assert task.score(model, some) > 0.5
