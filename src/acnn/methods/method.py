"""What a method is: the paper's properties, what it needs of a shape, and how it is trained, loaded and used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from acnn.correspondence.refine import RefineMethod
from acnn.correspondence.soft_map import SoftMap
from acnn.progress import Progress
from acnn.shapes.mesh import Mesh
from acnn.surface.surface import Surface
from acnn.training.config import RunConfig
from acnn.training.loop import StepReport
from acnn.training.prepared import Needs, Prepared
from acnn.training.tasks import ShapeInputs
from acnn.types import FloatArray, IntArray


@dataclass(frozen=True)
class Properties:
    """The properties by which the paper's first table compares methods.

    Attributes
    ----------
    representation : str
        Shapes that the method takes: any, or meshes alone.
    input : str
        What is given at every vertex: any function, or geometry alone.
    generalisable : bool
        Whether filters learned on one shape apply to another.
    filters : str
        Spatial or spectral.
    context : bool
        Whether a vertex sees what lies around it.
    directional : bool
        Whether directions around a vertex are told apart.
    task : str
        What it can be trained for.
    """

    representation: str
    input: str
    generalisable: bool
    filters: str
    context: bool
    directional: bool
    task: str


class Matcher(Protocol):
    """What a trained method leaves behind: it gives a soft map of a prepared shape to the reference."""

    @property
    def classes(self) -> int:
        """Vertices m of the reference, or classes of a segmentation; 0 for descriptors."""

    @property
    def parameter_count(self) -> int:
        """Learned numbers."""

    def soft_map(self, shape: ShapeInputs, reference: ShapeInputs, k: int = 16) -> SoftMap:
        """The k most probable reference vertices, or classes, of every vertex of a shape."""

    def describe(self, shape: ShapeInputs) -> FloatArray | None:
        """(n, q) learned descriptors of a shape; None where labels were learned."""


@dataclass(frozen=True)
class TrainingData:
    """What a method is trained on.

    Attributes
    ----------
    shapes, validation : sequence of Prepared
        Shapes to train on, and to choose the best model by.
    reference : Mesh
        The mesh whose vertices are the labels.
    classes : int
        Number of classes, where the labels are classes; 0 where they are vertices of the reference.
    """

    shapes: Sequence[Prepared]
    validation: Sequence[Prepared]
    reference: Mesh
    classes: int = 0


Train = Callable[[TrainingData, RunConfig, Path, bool, StepReport | None, dict[str, Any]], None]
"""Called with the data, the configuration, the folder of the run, whether to resume, a function that is called after
each step, and metadata to keep; writes `model.safetensors` into the folder."""


@dataclass(frozen=True)
class Method:
    """A method that is trained on a dataset.

    Attributes
    ----------
    name : str
        As in `--method`.
    title : str
        What the letters stand for, and where it was published.
    properties : Properties
        Of the paper's table.
    presets : dict
        What it can be trained for, and the settings that `acnn train --method --task` starts from; the first is the
        default.
    needs : callable
        What it needs of every shape, given the configuration.
    train : callable
        Trains and saves it, see `Train`.
    load : callable
        Reads what `train` saved: the matcher and its metadata.
    """

    name: str
    title: str
    properties: Properties
    presets: dict[str, str]
    needs: Callable[[RunConfig], Needs]
    train: Train
    load: Callable[[Path], tuple[Matcher, dict[str, Any]]]

    @property
    def preset(self) -> str:
        """Settings that `acnn train --method` starts from."""
        return next(iter(self.presets.values()))


@dataclass(frozen=True, eq=False)
class PairMap:
    """A map of shape A to shape B, as a pair method gives it.

    Attributes
    ----------
    a_to_b : (n,) array
        Vertices of B.
    distortion : float
        Mean change of lengths.
    report : dict
        How the map was found, for `acnn match --json`.
    mirrored : (n,) array or None
        A second map, with left and right exchanged.
    """

    a_to_b: IntArray
    distortion: float
    report: dict[str, Any]
    confidence: FloatArray | None = None
    mirrored: IntArray | None = None


@dataclass(frozen=True)
class PairMethod:
    """A method that matches two shapes without being trained.

    Attributes
    ----------
    name : str
        As in `--method`.
    title : str
        What it is, and where it was published.
    match : callable
        Called with the surfaces of A and B in one unit, the method of refinement and a progress function.
    """

    name: str
    title: str
    match: Callable[[Surface, Surface, RefineMethod, Progress | None], PairMap]
