"""Tasks: what a network is trained for. Each builds its network, computes the loss of a step and scores a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from acnn.errors import InputError
from acnn.network.architecture import SpectralSettings
from acnn.network.model import ShapeNetwork
from acnn.network.patches import Operators, Patches, Spectrum
from acnn.patches.operator import PatchOperator
from acnn.shapes.mesh import BarycentricPoints, Mesh
from acnn.training.config import RunConfig
from acnn.types import FloatArray, IntArray

if TYPE_CHECKING:
    from acnn.surface.spectra import Spectra


class ShapeInputs(Protocol):
    """What a method takes of a shape; each is computed or read when it is asked for."""

    def patches(self) -> PatchOperator:
        """Its patch operator."""

    def spectra(self) -> Spectra:
        """Its eigenpairs."""

    def descriptors(self) -> FloatArray:
        """(n, p) descriptors."""


class TrainingShape(ShapeInputs, Protocol):
    """What training needs of a shape."""

    @property
    def name(self) -> str:
        """Unique among the shapes."""

    @property
    def labels(self) -> IntArray:
        """(n,) reference vertices, or classes; -1 where unknown."""

    @property
    def truth(self) -> BarycentricPoints | None:
        """The exact points on the reference's faces, where known."""

    @property
    def weights(self) -> FloatArray | None:
        """(n,) weights of the labels in the loss; None where all are 1."""


class Task(Protocol):
    """What a network is trained for."""

    @property
    def chance(self) -> float:
        """The loss of guessing at random; infinite where there is no such figure."""

    def build(self, shapes: Sequence[TrainingShape], validation: Sequence[TrainingShape] = ()) -> ShapeNetwork:
        """A new network for these shapes."""

    def loss(
        self, model: ShapeNetwork, shapes: Sequence[TrainingShape], index: int, rng: np.random.Generator
    ) -> tuple[torch.Tensor, float]:
        """The loss of one shape of a step, and its accuracy in 0..1."""

    def score(self, model: ShapeNetwork, shapes: Sequence[TrainingShape]) -> float:
        """How good a model is on validation shapes, in 0..1."""


def network_inputs(model: ShapeNetwork, shape: ShapeInputs) -> tuple[torch.Tensor, Operators]:
    """Descriptors of a shape as a tensor, and of its operators those that a network uses."""
    operators: dict[str, Any] = {}
    if "patches" in model.uses:
        operators["patches"] = Patches.of(shape.patches())
    if "spectrum" in model.uses:
        spectra = shape.spectra()
        operators["spectrum"] = Spectrum.of(spectra.eigenvalues[0], spectra.eigenfunctions[0], spectra.areas)
    return torch.from_numpy(np.array(shape.descriptors(), np.float32)), Operators(**operators)


def new_network(
    config: RunConfig, classes: int, shapes: Sequence[TrainingShape], validation: Sequence[TrainingShape] = ()
) -> ShapeNetwork:
    """A network of the configured architecture, its input standardised by the descriptors of the training shapes."""
    spectral = config.spectral
    if spectral.over == "eigenvalue" and not spectral.upper:
        some = [shapes[i] for i in range(0, len(shapes), -(-len(shapes) // 8))]
        spectral = replace(spectral, upper=float(np.percentile([s.spectra().eigenvalues[0] for s in some], 99)))
    model = ShapeNetwork(
        config.train.architecture,
        _width([*shapes, *validation]),
        classes,
        config.patches.angles,
        len(config.patches.scales),
        config.train.angular_max,
        spectral if spectral != SpectralSettings() or _is_spectral(config) else None,
    )
    model.standardise_input(*_statistics(shapes))
    return model


@dataclass(frozen=True, eq=False)
class LabelTask:
    """Labels by cross-entropy: vertices of a reference, or classes of a segmentation.

    Attributes
    ----------
    config : RunConfig
        All settings.
    classes : int
        Vertices m of the reference, or classes.
    reference : Mesh or None
        Whose vertices the labels are; None for classes, which have neither soft labels nor shared outputs.
    """

    config: RunConfig
    classes: int
    reference: Mesh | None = None

    @property
    def chance(self) -> float:
        """The cross-entropy of a uniform distribution."""
        return math.log(self.classes)

    def build(self, shapes: Sequence[TrainingShape], validation: Sequence[TrainingShape] = ()) -> ShapeNetwork:
        """A new network with one logit for each label."""
        model = new_network(self.config, self.classes, shapes, validation)
        count = self.config.train.shared_outputs if self.config.train.task == "labels" else 0
        if count and self.reference is None:
            raise InputError("Shared outputs need the reference.")
        if count and self.reference is not None:
            assert model.classifier is not None
            model.classifier.share_weights(_smooth_functions(self.reference, count))
        return model

    def loss(
        self, model: ShapeNetwork, shapes: Sequence[TrainingShape], index: int, rng: np.random.Generator
    ) -> tuple[torch.Tensor, float]:
        """Cross-entropy over some of the labelled vertices, and the fraction of them that is labelled right."""
        settings, shape = self.config.train, shapes[index]
        known = np.flatnonzero(shape.labels >= 0)
        if settings.loss_vertices and settings.loss_vertices < len(known):
            known = np.sort(rng.choice(known, settings.loss_vertices, replace=False))
        labels = torch.from_numpy(np.array(shape.labels[known], dtype=np.int64))
        logits = model(*network_inputs(model, shape), torch.from_numpy(known))
        if settings.soft_labels and shape.truth is not None and self.reference is not None:
            losses = soft_cross_entropy(logits, shape.truth, self.reference.faces, known, settings.label_smoothing)
        else:
            losses = torch.nn.functional.cross_entropy(
                logits, labels, label_smoothing=settings.label_smoothing, reduction="none"
            )
        right = logits.detach().argmax(dim=1) == labels
        if shape.weights is None:
            return losses.mean(), float(right.float().mean())
        weights = torch.from_numpy(np.asarray(shape.weights[known], np.float32))
        weights = weights / weights.sum().clamp_min(1e-12)
        return (weights * losses).sum(), float((weights * right).sum())

    @torch.no_grad()
    def score(self, model: ShapeNetwork, shapes: Sequence[TrainingShape]) -> float:
        """Fraction of labelled vertices whose most probable label is the right one, averaged over shapes."""
        model.eval()
        fractions = []
        for shape in shapes:
            features = model.features(*network_inputs(model, shape))
            labels = torch.from_numpy(np.array(shape.labels, dtype=np.int64))
            right = 0
            assert model.classifier is not None
            for block in torch.arange(len(labels)).split(2048):
                right += int((model.classifier(features[block]).argmax(dim=1) == labels[block]).sum())
            fractions.append(right / max(1, int((labels >= 0).sum())))
        return float(np.mean(fractions))


@dataclass(frozen=True, eq=False)
class PseudoLabelTask(LabelTask):
    """Labels that were found by matching, and may be wrong: weighted by confidence, shapes without any left out.

    Attributes
    ----------
    start : ShapeNetwork or None
        Network to go on from; None begins with a new one.
    """

    start: ShapeNetwork | None = None

    def build(self, shapes: Sequence[TrainingShape], validation: Sequence[TrainingShape] = ()) -> ShapeNetwork:
        """A new network, or a copy of the one to go on from."""
        return super().build(shapes, validation) if self.start is None else deepcopy(self.start).train()

    def loss(
        self, model: ShapeNetwork, shapes: Sequence[TrainingShape], index: int, rng: np.random.Generator
    ) -> tuple[torch.Tensor, float]:
        """The loss of a shape, or of a random other one where its map was dropped."""
        if not np.any(shapes[index].labels >= 0):
            index = int(rng.choice([i for i, shape in enumerate(shapes) if np.any(shape.labels >= 0)]))
        return super().loss(model, shapes, index, rng)


@dataclass(frozen=True, eq=False)
class PairTask:
    """A descriptor in which corresponding points of two shapes are close and others are not (siamese loss).

        (1 - gamma) / 2 mean |f - f+|^2  +  gamma / 2 mean max(0, mu - |f - f-|)^2

    over corresponding points f, f+ of two shapes and points f, f- drawn at random; gamma is `negative_weight`, mu
    `margin` (Boscaini et al. 2015).

    Attributes
    ----------
    config : RunConfig
        All settings.
    """

    config: RunConfig

    @property
    def chance(self) -> float:
        """Infinite: a siamese loss has none."""
        return math.inf

    def build(self, shapes: Sequence[TrainingShape], validation: Sequence[TrainingShape] = ()) -> ShapeNetwork:
        """A new network without a head, whose last channels are the descriptor."""
        return new_network(self.config, 0, shapes, validation)

    def loss(
        self, model: ShapeNetwork, shapes: Sequence[TrainingShape], index: int, rng: np.random.Generator
    ) -> tuple[torch.Tensor, float]:
        """The loss of a shape and a random other one; the accuracy is the fraction of pairs in the right order."""
        settings, first = self.config.train, shapes[index]
        second = shapes[int(rng.integers(len(shapes)))]
        a, b = corresponding_vertices(first.labels, second.labels)
        if not len(a):
            raise InputError(f"{first.name} and {second.name} have no label in common.")
        count = min(len(a), settings.loss_vertices or len(a))
        chosen = np.sort(rng.choice(len(a), count, replace=False))
        wrong = b[rng.integers(len(b), size=count)]
        rows = [torch.from_numpy(x.astype(np.int64)) for x in (a[chosen], np.concatenate([b[chosen], wrong]))]
        f = model(*network_inputs(model, first), rows[0])
        other = model(*network_inputs(model, second), rows[1])
        near = (f - other[:count]).pow(2).sum(dim=1)
        far = ((f - other[count:]).pow(2).sum(dim=1) + 1e-12).sqrt()
        gamma = settings.negative_weight
        loss = (1 - gamma) / 2 * near.mean() + gamma / 2 * (settings.margin - far).clamp_min(0.0).pow(2).mean()
        return loss, float((near.detach().sqrt() < far.detach()).float().mean())

    @torch.no_grad()
    def score(self, model: ShapeNetwork, shapes: Sequence[TrainingShape]) -> float:
        """Fraction of vertices whose counterpart on the next shape is among the ten nearest in descriptor space."""
        model.eval()
        described = [model(*network_inputs(model, shape)) for shape in shapes]
        hits = []
        for k, (shape, f) in enumerate(zip(shapes, described, strict=True)):
            other = (k + 1) % len(shapes)
            a, b = corresponding_vertices(shape.labels, shapes[other].labels)
            some = np.linspace(0, len(a) - 1, min(1000, len(a))).astype(int)
            distances = torch.cdist(f[a[some]], described[other])
            own = distances.gather(1, torch.from_numpy(b[some].astype(np.int64))[:, None])
            hits.append(float(((distances < own).sum(dim=1) < 10).float().mean()))
        return float(np.mean(hits))


def corresponding_vertices(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Vertices of two shapes with the same label, one pair for each label that both have."""
    labels_a, a = np.unique(first, return_index=True)
    labels_b, b = np.unique(second, return_index=True)
    common, at_a, at_b = np.intersect1d(labels_a, labels_b, assume_unique=True, return_indices=True)
    known = common >= 0
    return a[at_a[known]], b[at_b[known]]


def soft_cross_entropy(
    logits: torch.Tensor,
    truth: BarycentricPoints,
    faces: IntArray,
    rows: IntArray,
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """Cross-entropies with targets distributed over the corners of the true point's face, by its weights.

    Parameters
    ----------
    logits : (r, classes) tensor
        Of the vertices `rows`.
    truth : BarycentricPoints
        True points of all vertices.
    faces : (m, 3) array
        Of the reference.
    rows : (r,) array
        Vertices that the logits belong to.
    label_smoothing : float
        Fraction of the target that is spread over all classes.

    Returns
    -------
    (r,) tensor
        Of each vertex.
    """
    corners = torch.from_numpy(np.asarray(faces)[truth.faces[rows]].astype(np.int64))
    weights = torch.from_numpy(truth.weights[rows]).to(logits.dtype)
    logs = torch.log_softmax(logits, dim=1)
    placed = (weights * logs.gather(1, corners)).sum(dim=1)
    return -(1 - label_smoothing) * placed - label_smoothing * logs.mean(dim=1)


def _is_spectral(config: RunConfig) -> bool:
    return any(kind in config.train.architecture.upper() for kind in ("SC", "WC"))


def _smooth_functions(reference: Mesh, count: int) -> torch.Tensor:
    """(m, count) the first eigenfunctions of the reference's Laplacian."""
    from acnn.surface.laplacian import stiffness
    from acnn.surface.spectra import eigenpairs
    from acnn.surface.surface import surface_of

    surface = surface_of(reference)
    _, functions = eigenpairs(stiffness(surface), surface.vertex_areas, min(count, len(surface.vertices) - 1))
    return torch.from_numpy(functions.astype(np.float32))


def _width(shapes: Sequence[TrainingShape]) -> int:
    """How many descriptors a vertex has."""
    width = shapes[0].descriptors().shape[1]
    for shape in shapes:
        if (other := shape.descriptors().shape[1]) != width:
            raise InputError(f"{shape.name} has {other} descriptors a vertex, {shapes[0].name} has {width}.")
    return int(width)


def _statistics(shapes: Sequence[TrainingShape]) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and standard deviation of the descriptors over (up to 32 of) the shapes."""
    some = [np.asarray(shapes[i].descriptors(), dtype=np.float64) for i in range(0, len(shapes), -(-len(shapes) // 32))]
    count = sum(len(d) for d in some)
    mean = sum(d.sum(axis=0) for d in some) / count
    variance = sum(((d - mean) ** 2).sum(axis=0) for d in some) / count
    # Bins that are nearly always empty must not be blown up to the size of the others.
    deviation = np.sqrt(np.maximum(variance, 0.1 * variance.mean()))
    return torch.from_numpy(mean.astype(np.float32)), torch.from_numpy(deviation.astype(np.float32))
