"""What OSD and ADD share: spectral descriptors learned in closed form, compared by nearest neighbours."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acnn.correspondence.partial_map import soft_map_from_descriptors
from acnn.correspondence.soft_map import SoftMap
from acnn.descriptors.learned_spectral import (
    PairStatistics,
    SplineBasis,
    anisotropic_geometry_vectors,
    fit_projection,
    normalised_vectors,
)
from acnn.errors import InputError
from acnn.files import read_arrays, write_arrays
from acnn.methods.method import TrainingData
from acnn.training.config import LearnedSettings, RunConfig
from acnn.training.loop import StepReport
from acnn.training.prepared import Needs
from acnn.training.tasks import ShapeInputs, corresponding_vertices
from acnn.types import FloatArray

FORMAT = "acnn-learned-descriptor-1"


@dataclass(frozen=True, eq=False)
class LearnedDescriptor:
    """A learned spectral descriptor f = A g of every vertex.

    Attributes
    ----------
    projection : (Q, M) array
        A.
    basis : SplineBasis
        Of the geometry vectors g.
    settings : LearnedSettings
        Of the Laplacians and the normalisation.
    """

    projection: FloatArray
    basis: SplineBasis
    settings: LearnedSettings

    @property
    def classes(self) -> int:
        """0: a descriptor fits any reference."""
        return 0

    @property
    def parameter_count(self) -> int:
        """Learned numbers."""
        return int(self.projection.size)

    def describe(self, shape: ShapeInputs) -> FloatArray:
        """(n, Q) descriptors of a shape."""
        return vectors_of(shape, self.basis, self.settings) @ self.projection.T

    def soft_map(self, shape: ShapeInputs, reference: ShapeInputs, k: int = 16) -> SoftMap:
        """The k nearest reference vertices of every vertex of a shape, in descriptor space."""
        return soft_map_from_descriptors(self.describe(shape), self.describe(reference), k)


def vectors_of(shape: ShapeInputs, basis: SplineBasis, settings: LearnedSettings) -> FloatArray:
    """(n, M) geometry vectors of a shape, normalised."""
    spectra = shape.spectra()
    vectors = anisotropic_geometry_vectors(
        np.asarray(spectra.eigenvalues, float), np.asarray(spectra.eigenfunctions), basis
    )
    return normalised_vectors(vectors, settings.normalisation)


def learned_needs(config: RunConfig) -> Needs:
    """Spectra alone: the input is geometry."""
    return Needs(None, None, config.learned.spectra)


def fit_descriptor(
    data: TrainingData,
    config: RunConfig,
    folder: Path,
    resume: bool,
    report: StepReport | None,
    metadata: dict[str, Any],
) -> None:
    """Fit the projection to all training shapes, each paired with some others, and save it."""
    began = time.perf_counter()
    settings, shapes = config.learned, data.shapes
    basis = SplineBasis.covering(
        [np.asarray(shape.spectra().eigenvalues) for shape in shapes], settings.spline_count, settings.shift
    )
    rng = np.random.default_rng(config.train.seed)
    statistics = PairStatistics(settings.directions * settings.spline_count)
    for step, first in enumerate(shapes):
        here = vectors_of(first, basis, settings)
        for _ in range(settings.partners):
            second = shapes[int(rng.integers(len(shapes)))]
            pairs = np.stack(corresponding_vertices(first.labels, second.labels), axis=1)
            statistics.add(here, vectors_of(second, basis, settings), pairs, rng)
        if report:
            seconds = time.perf_counter() - began
            left = seconds / (step + 1) * (len(shapes) - step - 1)
            report({"step": step + 1, "steps": len(shapes), "seconds": seconds, "seconds_left": left})
    projection = fit_projection(statistics.positive, statistics.negative, settings.dimension, settings.ridge)
    about = {
        "format": FORMAT,
        "basis": {"count": basis.count, "upper": basis.upper, "shift": basis.shift},
        "metadata": {"config": config.as_dict(), **metadata},
    }
    write_arrays(folder / "model.safetensors", {"projection": projection}, about, durable=True)


def load_descriptor(path: Path) -> tuple[LearnedDescriptor, dict[str, Any]]:
    """A learned descriptor of a file, and its metadata.

    Raises
    ------
    InputError
        Where the file is damaged or something else.
    """
    arrays, about = read_arrays(path)
    try:
        if about["format"] != FORMAT:
            raise InputError(f"{path}: holds '{about['format']}', not a learned descriptor.")
        metadata = dict(about["metadata"])
        config = RunConfig.from_dict(metadata["config"], str(path))
        basis = SplineBasis(**about["basis"])
        projection = arrays["projection"]
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: its metadata are damaged ({error!r}). Train it again.") from error
    if projection.ndim != 2 or projection.shape[1] != config.learned.directions * basis.count:
        raise InputError(f"{path}: the projection has shape {projection.shape}, which does not fit its settings.")
    return LearnedDescriptor(projection, basis, config.learned), metadata
