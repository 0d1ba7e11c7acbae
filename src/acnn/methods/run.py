"""A run: the folder that training leaves behind, and all that is needed to use the model in it."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from acnn.arguments import check_arguments
from acnn.correspondence.functional_map import SpectralBasis, basis_of
from acnn.correspondence.soft_map import SoftMap
from acnn.datasets.dataset import Dataset
from acnn.datasets.open import open_dataset
from acnn.descriptors.valences import same_triangulation
from acnn.errors import InputError
from acnn.files import read_arrays, write_arrays, write_atomic
from acnn.input_files import read_json
from acnn.methods.method import Matcher, Method
from acnn.methods.network_methods import NetworkMatcher
from acnn.methods.registry import trained_method
from acnn.network.model import ShapeNetwork
from acnn.progress import Progress
from acnn.reports import Report
from acnn.shapes.mesh import Mesh, Shape
from acnn.surface.spectra import SpectraSettings
from acnn.surface.surface import Surface, surface_of
from acnn.surface.working_copy import WORKING_SIZE
from acnn.training.config import RunConfig
from acnn.training.prepared import ComputedShape, Needs, Prepared, prepare_shape
from acnn.training.tasks import ShapeInputs
from acnn.types import FloatArray, IntArray

MODELS = Path(__file__).parent / "models"
"""Runs that come with the package, a folder each; README.md there describes how they were made."""


UNKNOWN = "unknown"
"""What stands in place of a list of shapes where a run did not record them."""


FILES = (
    *("config.toml", "run.json", "reference.safetensors"),
    *("model.safetensors", "checkpoint.safetensors", "log.jsonl"),
)
"""Names of the files of a run."""


@dataclass(frozen=True, eq=False)
class RunRecord(Report):
    """What a run was trained on and how that went: `run.json`, and what `acnn train --json` prints.

    Attributes
    ----------
    data : str
        Name or folder of the dataset.
    train, validation : list[str]
        Names of the shapes that were used.
    unit : float or None
        Length of one normalised unit in the coordinates of all shapes; None where each has its own.
    method, task : str or None
        None for runs of earlier versions.
    classes : list[str] or None
        Of a segmentation: the names of the classes.
    content : dict[str, list[str]] or None
        `content_hash` of the shapes under `train` and `validation`; in `run.json` only.
    seconds_preparing, seconds_training : float or None
    step, epoch, loss, accuracy, core_seconds, best_step, notice
        Of the last step of training.
    validation_exact : float or None
        Of the model that was kept.
    labels, reference, adapted : str or None
        Of a training without labels: `none`, the name of the shape that is the reference, and the model that it started
        from.
    rounds : list[dict[str, Any]] or None
        Of a training without labels: facts about the maps of each round, see `acnn.runs.unlabelled`.
    """

    data: str
    train: list[str]
    validation: list[str]
    unit: float | None
    method: str | None = None
    task: str | None = None
    classes: list[str] | None = None
    content: dict[str, list[str]] | None = None
    seconds_preparing: float | None = None
    step: int | None = None
    epoch: float | None = None
    loss: float | None = None
    accuracy: float | None = None
    core_seconds: float | None = None
    best_step: int | None = None
    notice: str | None = None
    validation_exact: float | None = None
    seconds_training: float | None = None
    labels: str | None = None
    reference: str | None = None
    adapted: str | None = None
    rounds: list[dict[str, Any]] | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """A trained network with what belongs to it.

    Attributes
    ----------
    folder : Path
        `model.safetensors`, `reference.safetensors`, `config.toml`, `run.json`, `log.jsonl`, ...
    matcher : Matcher
        What was trained.
    config : RunConfig
        The settings it was trained with.
    reference : Mesh
        The mesh whose vertices are the labels.
    mirror : (m,) array or None
        The reference vertex on the other side of each, or None.
    record : RunRecord
        What it was trained on, and how that went.
    reference_classes : (m,) array or None
        Of a segmentation: class of each vertex of the reference, -1 unknown; None where shapes had files of their own.
    """

    folder: Path
    matcher: Matcher
    config: RunConfig
    reference: Mesh
    mirror: IntArray | None
    record: RunRecord
    reference_classes: IntArray | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """The older form of `record`."""
        warnings.warn("run.facts is deprecated: use run.record.", DeprecationWarning, stacklevel=2)
        return self.record.as_dict()

    def open_dataset(self, data: str | os.PathLike[str] | Dataset | None = None) -> Dataset:
        """Open a dataset (see `open_dataset`); None is the one that the run was trained on."""
        if isinstance(data, Dataset):
            return data
        return open_dataset(self.record.data if data is None else data)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes of a segmentation; empty for a run that matches shapes."""
        return tuple(self.record.classes or ())

    def check_matches(self) -> None:
        """Raise InputError where the run gives classes, and no map."""
        if self.class_names:
            raise InputError(
                f"{self.name}: was trained for segmentation, labels {len(self.class_names)} classes and does not match "
                "shapes: use it with 'acnn match A --model RUN' (one shape) or 'acnn evaluate RUN'."
            )

    @property
    def shipped(self) -> bool:
        """Whether it came with the package."""
        return self.folder.parent == MODELS

    @property
    def name(self) -> str:
        """What `open_run` takes: the name of a pretrained model, or the folder."""
        return self.folder.name if self.shipped else str(self.folder)

    def seen(self, shapes: Mapping[str, str], use: Literal["train", "validation"]) -> list[str] | str:
        """Find the shapes that were used in training, by their content.

        Parameters
        ----------
        shapes : mapping
            Names of shapes and their `content_hash`.
        use : {"train", "validation"}
            What for: training, or the choice of the model.

        Returns
        -------
        list of str, or "unknown"
            Names of those that were; `unknown` for runs that did not record it.
        """
        known = (self.record.content or {}).get(use)
        return UNKNOWN if known is None else [name for name, content in shapes.items() if content in set(known)]

    def check_triangulation(self, shape: Shape) -> None:
        """Raise InputError where the network needs its own triangulation (kind `valences`) and a shape has another."""
        if "valences" in self.config.descriptors.kinds and not same_triangulation(shape, self.reference):
            raise InputError(
                f"The network '{self.name}' depends on the triangulation of its reference, and this shape of "
                f"{len(shape.vertices)} vertices has another. Use a network that was trained without descriptors of "
                "kind 'valences', such as one of preset best-remeshed."
            )

    @property
    def method(self) -> Method:
        """The method that was trained."""
        return trained_method(self.config.method)

    @property
    def needs(self) -> Needs:
        """What the method needs of a shape."""
        return self.method.needs(self.config)

    @property
    def unit(self) -> float | None:
        """The unit of length of shapes that come in the units of the reference; None where each has its own."""
        return self.record.unit

    @property
    def model(self) -> ShapeNetwork:
        """The network of the run.

        Raises
        ------
        InputError
            Where the method is no network.
        """
        network = getattr(self.matcher, "network", None)
        if network is None:
            raise InputError(f"The method '{self.config.method}' of {self.name} is not a network.")
        return network

    def reestimated(self) -> Run:
        """The same run with statistics of batch normalisation taken from each query, which the paper mentions.

        Raises
        ------
        InputError
            Where the method is no network.
        """
        return replace(self, matcher=NetworkMatcher(self.model, reestimate=True))

    @cached_property
    def reference_surface(self) -> Surface:
        """Surface of the reference in the unit of length of the run; made once, so that its eigenpairs are, too."""
        return surface_of(self.reference, self.unit)

    def reference_basis(self, k: int, *, cache: bool = True) -> SpectralBasis:
        """The first k eigenfunctions of the reference, which are the same for all shapes: computed once, then cached.

        Parameters
        ----------
        k : int
            As for `basis_of`.
        cache : bool
            Whether they are looked for and kept in the cache.

        Returns
        -------
        SpectralBasis
            That which `basis_of` has of `reference_surface` from then on.
        """
        surface = self.reference_surface

        def solve() -> tuple[FloatArray, FloatArray]:
            wanted = Needs(None, None, SpectraSettings(count=k))
            spectra = prepare_shape(self.reference, wanted, unit=surface.unit, cache=cache).spectra()
            return np.asarray(spectra.eigenvalues[0]), np.asarray(spectra.eigenfunctions[0])

        return basis_of(surface, k, solve)

    @property
    def working_size(self) -> int:
        """Number of vertices at which shapes are matched: about as many as the reference, on which it was trained.

        0, for no working copies, where the method depends on the vertices of the file.
        """
        kinds = set(self.config.descriptors.kinds)
        return 0 if kinds & {"valences", "file"} else max(WORKING_SIZE, len(self.reference.vertices))

    @cached_property
    def reference_inputs(self) -> ShapeInputs:
        """What the method needs of the reference, computed where it is used."""
        return ComputedShape(self.reference, self.needs, unit=self.unit)

    def prepare(
        self, shape: Shape, *, unit: float | None = None, cache: bool = True, progress: Progress | None = None
    ) -> Prepared | ComputedShape:
        """What the method needs of a shape, see `acnn.training.prepared.prepare_shape`."""
        length = unit if unit is not None else self.unit
        return prepare_shape(shape, self.needs, unit=length, cache=cache, progress=progress)

    def soft_map(self, shape: ShapeInputs, k: int = 16) -> SoftMap:
        """The k most probable reference vertices, or classes, of every vertex of a prepared shape."""
        return self.matcher.soft_map(shape, self.reference_inputs, k)


def shipped_models() -> list[str]:
    """Names of the networks that come with the package."""
    return sorted(folder.name for folder in MODELS.glob("*/") if (folder / "model.safetensors").is_file())


def run_folder(folder: Path) -> Path:
    """The folder of a run, given it or the folder of `acnn demo` around it."""
    inner = folder / "run"
    within = not (folder / "model.safetensors").is_file() and (inner / "model.safetensors").is_file()
    return inner if within else folder


def inputs_of_run(folder: Path, data: str | None = None) -> list[Path]:
    """What is read where a run is shown: its files, and the folder of the data, if it is one.

    Parameters
    ----------
    folder : Path
        Of a run, or of `acnn demo`.
    data : str or None
        As for `open_dataset`; None is the data it was trained on.
    """
    inner = run_folder(folder)
    files = [inner / name for name in FILES]
    if data is None:
        with suppress(InputError):  # opening the run reports what is wrong with it
            data = read_json(inner / "run.json").get("data")
    return [*files, Path(data)] if isinstance(data, str) else files


def write_run(folder: Path, dataset: Dataset, config: RunConfig, record: RunRecord) -> None:
    """Write what a run knows before training: its settings, its reference and where its data came from."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"vertices": dataset.reference.vertices, "faces": dataset.reference.faces}
    if dataset.mirror is not None:
        arrays["mirror"] = dataset.mirror
    if record.classes is not None and dataset.classes is not None and dataset.classes.of_reference is not None:
        arrays["classes"] = dataset.classes.of_reference
    write_arrays(folder / "reference.safetensors", arrays)
    write_atomic(folder / "config.toml", str(config).encode())
    write_atomic(folder / "run.json", (json.dumps(record.as_dict(), indent=2) + "\n").encode())


@check_arguments
def open_run(folder: str | os.PathLike[str]) -> Run:
    """Open a run's folder, or a pretrained model by its name (`humans`).

    Raises
    ------
    InputError
        With what is missing.
    """
    folder = _located(Path(folder))
    if not (folder / "model.safetensors").is_file():
        hint = f"Pretrained models: {', '.join(shipped_models())}."
        if (folder / "run.json").exists():
            hint = "It was stopped before the first model was saved."
        elif below := _runs_below(folder):
            hint = f"Did you mean {' or '.join(map(str, below))}?"
        raise InputError(f"{folder}: not a finished run, there is no model.safetensors in it. {hint}")
    path = folder / "model.safetensors"
    record = _read_record(folder / "run.json")
    matcher, metadata = trained_method(str(record.method or "acnn")).load(path)
    config = RunConfig.from_dict(metadata.get("config"), str(path))
    names = record.classes
    if names and len(names) != matcher.classes:
        raise InputError(
            f"{folder / 'run.json'}: names {len(names)} classes, but the network labels {matcher.classes}."
        )
    reference, mirror, classes = _read_reference(folder / "reference.safetensors", 0 if names else matcher.classes)
    return Run(folder, matcher, config, reference, mirror, record, classes if names else None)


def run_digest(folder: str | os.PathLike[str]) -> str:
    """Hash of what a run matches with, by which results of an earlier state of it are known.

    Parameters
    ----------
    folder : path
        As for `open_run`.

    Returns
    -------
    str
        Empty where there is no such run.
    """
    located = _located(Path(folder))
    files = [located / name for name in ("model.safetensors", "reference.safetensors")]
    try:
        return _digest(*((file, (status := file.stat()).st_mtime_ns, status.st_size) for file in files))
    except OSError:
        return ""


@lru_cache(maxsize=8)
def _digest(*files: tuple[Path, int, int]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path, _, _ in files:
        digest.update(hashlib.blake2b(path.read_bytes()).digest())
    return digest.hexdigest()


def _located(folder: Path) -> Path:
    """The folder of a run, given it or the name of a pretrained model."""
    named = not (folder / "model.safetensors").is_file() and str(folder) in shipped_models()
    return MODELS / folder if named else folder


def _runs_below(folder: Path) -> list[Path]:
    """Folders of runs in a folder: `demo/run` in `demo`, say; at most three."""
    return sorted(path.parent for path in folder.glob("*/model.safetensors"))[:3]


def _read_reference(path: Path, classes: int) -> tuple[Mesh, IntArray | None, IntArray | None]:
    """The mesh whose vertices are the labels, its mirror and the classes of its vertices, where it has them."""
    arrays, _ = read_arrays(path)
    missing = [name for name in ("vertices", "faces") if name not in arrays]
    if missing:
        raise InputError(f"{path}: holds no {' and no '.join(missing)}.")
    try:
        reference = Mesh(arrays["vertices"], arrays["faces"])
    except InputError as error:
        raise InputError(f"{path}: the reference is damaged: {error}") from error
    m, mirror, parts = len(reference.vertices), arrays.get("mirror"), arrays.get("classes")
    if classes and m != classes:
        raise InputError(f"{path}: the reference has {m} vertices, but the network labels {classes}.")
    if parts is not None and (parts.shape != (m,) or parts.dtype.kind not in "iu"):
        raise InputError(f"{path}: the classes must be one for each of the {m} vertices, or -1.")
    if mirror is None:
        return reference, None, parts
    if mirror.shape != (m,) or mirror.dtype.kind not in "iu" or mirror.min() < -1 or mirror.max() >= m:
        raise InputError(f"{path}: the mirror must be one of the {m} vertices for each, or -1.")
    return reference, mirror, parts


def _read_record(path: Path) -> RunRecord:
    """The record of a run in `run.json`; entries that this version does not know are left out."""
    facts = read_json(path)
    unit, content = facts.get("unit"), facts.get("content")
    fits = {
        "data": isinstance(facts.get("data"), str),
        "train": _is_names(facts.get("train")),
        "validation": _is_names(facts.get("validation")),
        "classes": _is_names(facts.get("classes", [])),
        "unit": unit is None or (type(unit) in (int, float) and 0 < unit < np.inf),
        # Runs of earlier versions have none.
        "content": content is None or (isinstance(content, dict) and all(map(_is_names, content.values()))),
    }
    bad = next((name for name, fit in fits.items() if not fit), None)
    if bad is not None:
        what = f"is {repr(facts[bad])[:60]}" if bad in facts else "is missing"
        raise InputError(f"{path}: '{bad}' {what}, which no training writes. Copy the file again.")
    known = {field.name for field in fields(RunRecord)}
    entries: dict[str, Any] = {"unit": unit} | {name: value for name, value in facts.items() if name in known}
    return RunRecord(**entries)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
