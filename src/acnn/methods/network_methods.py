"""What ACNN, GCNN, SCNN and LSCNN share: networks trained by gradient descent, loaded and used to match."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from acnn.correspondence.partial_map import soft_map_from_descriptors
from acnn.correspondence.soft_map import SoftMap, soft_map_from_features
from acnn.errors import InputError
from acnn.methods.method import TrainingData
from acnn.network.architecture import Architecture
from acnn.network.layers import reestimate_statistics
from acnn.network.model import ShapeNetwork, load_model
from acnn.shapes.mesh import Mesh
from acnn.surface.spectra import SpectraSettings
from acnn.training.config import RunConfig
from acnn.training.loop import StepReport, train
from acnn.training.prepared import Needs
from acnn.training.tasks import LabelTask, PairTask, ShapeInputs, Task, network_inputs
from acnn.types import FloatArray


@dataclass(frozen=True, eq=False)
class NetworkMatcher:
    """A trained network: labels over the reference, or a descriptor that is compared with that of the reference.

    Attributes
    ----------
    network : ShapeNetwork
        In evaluation mode.
    reestimate : bool
        Take the statistics of batch normalisation from the query instead of the training shapes.
    """

    network: ShapeNetwork
    reestimate: bool = False

    @property
    def classes(self) -> int:
        """Vertices m of the reference, or classes of a segmentation; 0 for descriptors."""
        return self.network.classes

    @property
    def parameter_count(self) -> int:
        """Learned numbers."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    @torch.no_grad()
    def soft_map(self, shape: ShapeInputs, reference: ShapeInputs, k: int = 16) -> SoftMap:
        """The k most probable reference vertices, or classes, of every vertex of a shape."""
        features, classifier = self._features(shape), self.network.classifier
        if classifier is not None:
            return soft_map_from_features(features, classifier.weight, classifier.bias, k)
        return soft_map_from_descriptors(features.numpy(), self._features(reference).numpy(), k)

    @torch.no_grad()
    def describe(self, shape: ShapeInputs) -> FloatArray | None:
        """(n, q) learned descriptors of a shape; None where labels were learned."""
        return None if self.network.classifier is not None else self._features(shape).numpy()

    def _features(self, shape: ShapeInputs) -> torch.Tensor:
        reestimate_statistics(self.network.eval(), self.reestimate)
        return self.network.features(*network_inputs(self.network, shape))


def network_needs(config: RunConfig) -> Needs:
    """Descriptors, and of patches and spectra what the layers of the architecture use.

    Raises
    ------
    InputError
        Where the architecture cannot be read, or does not end as the task needs.
    """
    Architecture.parse(config.train.architecture, softmax=config.train.task != "descriptor")
    letters = config.train.architecture.upper()
    patches = config.patches if any(kind in letters for kind in ("IC", "GC")) else None
    spectral = any(kind in letters for kind in ("SC", "WC"))
    return Needs(config.descriptors, patches, SpectraSettings(count=config.spectral.eigenpairs) if spectral else None)


def task_of(config: RunConfig, reference: Mesh, classes: int = 0) -> Task:
    """What a configuration trains a network for."""
    if config.train.task == "descriptor":
        return PairTask(config)
    if config.train.task == "segmentation":
        return LabelTask(config, classes)
    return LabelTask(config, len(reference.vertices), reference)


def train_network(
    data: TrainingData,
    config: RunConfig,
    folder: Path,
    resume: bool,
    report: StepReport | None,
    metadata: dict[str, Any],
) -> None:
    """Train a network for the configured task, from random weights or from those of `config.train.start`."""
    from acnn.methods.run import open_run  # which opens networks through this module

    start = None
    if config.train.start:
        run = open_run(config.train.start)
        if not isinstance(run.matcher, NetworkMatcher):
            raise InputError(f"{config.train.start}: is no run of a network, so that no training can start from it.")
        if config.train.task == "labels" and not np.array_equal(run.reference.faces, data.reference.faces):
            raise InputError(f"{config.train.start}: has another reference than the data, so that labels differ.")
        start = run.matcher.network
    train(
        data.shapes,
        task_of(config, data.reference, data.classes),
        config,
        folder,
        validation=data.validation,
        reference=data.reference,
        resume=resume,
        start=start,
        report=report,
        metadata=metadata,
    )


def load_network(path: Path) -> tuple[NetworkMatcher, dict[str, Any]]:
    """A trained network of a file, and its metadata."""
    network, metadata = load_model(path)
    patches = RunConfig.from_dict(metadata.get("config"), str(path)).patches
    if "patches" in network.uses and (network.angles, network.scales) != (patches.angles, len(patches.scales)):
        raise InputError(
            f"{path}: the network takes {network.angles} angles and {network.scales} scales, but its settings are "
            f"{patches.angles} angles and scales {patches.scales}."
        )
    return NetworkMatcher(network), metadata
