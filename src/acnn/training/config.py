"""Everything that a training run depends on, as one record that round-trips through a readable file."""

from __future__ import annotations

import logging
import tomllib
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from acnn.arguments import check_arguments
from acnn.datasets.augment import AugmentSettings
from acnn.descriptors.settings import DescriptorSettings
from acnn.errors import InputError
from acnn.network.architecture import SpectralSettings
from acnn.patches.settings import GeodesicPatchSettings, PatchSettings, patch_settings_from_dict
from acnn.surface.spectra import SpectraSettings

logger = logging.getLogger(__name__)

CHANGED_PRESETS = {
    "best": "The preset 'best' now knows shape only. The network that uses the triangulation, called so before, "
    "is 'faust-connectivity'."
}
"""What is logged where a preset is used whose name meant something else before."""

Schedule = Literal["constant", "one-cycle"]
Task = Literal["labels", "segmentation", "descriptor"]
TASKS: tuple[Task, ...] = ("labels", "segmentation", "descriptor")

INSTEAD_OF_EPOCHS = ("steps", "minutes", "core_minutes")
"""Settings that set, where not 0, how long a training is, instead of `epochs`."""


@dataclass(frozen=True)
class TrainSettings:
    """The network and how it is trained.

    Attributes
    ----------
    architecture : str
        See `acnn.network.Architecture`.
    angular_max : bool
        The maximum over rotations of the filters, as in the authors' released code.
    epochs : int
        Passes over the training shapes.
    steps : int
        Train for so many steps instead; 0 is off.
    minutes : float
        Train for this long instead; 0 is off. The clock then drives the schedule, so that the result depends on how
        busy the machine is. Validating and saving do not count.
    core_minutes : float
        Train until this much processor time is spent, over all threads, whatever else the machine does meanwhile; 0 is
        off.
    learning_rate : float
        Largest of the schedule.
    schedule : Schedule
        `constant`, or `one-cycle` (up to the largest rate over the first 30 %, then down to nothing).
    weight_decay : float
        Decoupled, as in AdamW; of weights, not of biases and normalisation.
    l2 : float
        Added to the loss, as in the released code.
    shared_outputs : int
        How many of the reference's eigenfunctions the output layer learns through, see `acnn.network.Output`; 0 is
        none. For the task `labels`.
    loss_vertices : int
        How many random vertices of a shape enter the loss at each step; 0 is all.
    label_smoothing : float
        Share of the target spread over all vertices.
    soft_labels : bool
        Where the true point lies inside a face of the reference, its corners share the target.
    shapes_per_step : int
        Gradients are averaged over this many shapes (over all processes together).
    validate_every : int
        Epochs between validations and checkpoints.
    start : str
        Folder of a run, or name of a pretrained model, whose weights training starts from; its architecture may lack
        some of the residual blocks. The output layer is new where the classes are others. Empty starts from random
        weights.
    margin : float
        Distance beyond which points that do not correspond are far enough apart, for the task `descriptor`.
    negative_weight : float
        Weight, in 0..1, of such points in the loss; corresponding points have the rest.
    task : {"labels", "segmentation", "descriptor"}
        What the network is trained for: labels over the vertices of the reference, a class for every vertex, or a
        descriptor in which corresponding points are close.
    rounds : int
        Without labels: how often the shapes are matched again, each time with what was learned so far. The steps are
        divided among the rounds.
    seed : int
        Random seed.
    """

    architecture: str = "FC64+IC64+IC128+IC256+FC1024+FC512+Softmax"
    angular_max: bool = False
    epochs: int = 30
    steps: int = 0
    minutes: float = 0.0
    core_minutes: float = 0.0
    learning_rate: float = 1e-3
    schedule: Schedule = "constant"
    weight_decay: float = 0.0
    l2: float = 0.0
    shared_outputs: int = 0
    loss_vertices: int = 0
    label_smoothing: float = 0.0
    soft_labels: bool = False
    shapes_per_step: int = 1
    validate_every: int = 1
    start: str = ""
    margin: float = 5.0
    negative_weight: float = 0.9
    task: Task = "labels"
    rounds: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.schedule not in ("constant", "one-cycle"):
            raise InputError(f"Unknown schedule '{self.schedule}': use 'constant' or 'one-cycle'.")
        for name in ("epochs", "shapes_per_step", "validate_every", "rounds"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} = {getattr(self, name)}: at least 1 is needed.")
        for name in (
            "steps",
            "minutes",
            "core_minutes",
            "learning_rate",
            "weight_decay",
            "l2",
            "shared_outputs",
            "loss_vertices",
            "label_smoothing",
            "seed",
        ):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} = {getattr(self, name)}: it cannot be negative.")
        if self.task not in TASKS:
            raise InputError(f"Unknown task '{self.task}': use {', '.join(TASKS)}.")
        if not 0 < self.negative_weight < 1 or not self.margin > 0:
            raise InputError("The margin must be positive, and negative_weight between 0 and 1.")
        if self.label_smoothing > 1:
            raise InputError(f"label_smoothing = {self.label_smoothing}: it is a share, at most 1.")
        if sum(getattr(self, name) > 0 for name in INSTEAD_OF_EPOCHS) > 1:
            raise InputError("Give steps, minutes or core_minutes, not more than one: set the others to 0.")


@dataclass(frozen=True)
class LearnedSettings:
    """Learned spectral descriptors (OSD, ADD), see `acnn.descriptors.learned_spectral`.

    Attributes
    ----------
    anisotropy : float
        Of the Laplacians (alpha); 1 is isotropic.
    directions : int
        Number of Laplacians.
    pairs : int
        Number of eigenpairs of each.
    spline_count : int
        Number of B-splines over the eigenvalues.
    shift : float
        By which the splines begin before 0, in spacings.
    normalisation : {"none", "unit", "log"}
        Of the geometry vectors.
    dimension : int
        Length of the descriptor.
    ridge : float
        Regularisation of the fit.
    partners : int
        Number of other shapes that each training shape is paired with.
    """

    anisotropy: float = 1.0
    directions: int = 1
    pairs: int = 300
    spline_count: int = 150
    shift: float = 2.0
    normalisation: Literal["none", "unit", "log"] = "log"
    dimension: int = 16
    ridge: float = 1e-3
    partners: int = 2

    @property
    def spectra(self) -> SpectraSettings:
        """Settings of the eigenproblems."""
        return SpectraSettings(alpha=self.anisotropy, angles=self.directions, count=self.pairs)


@dataclass(frozen=True)
class ForestSettings:
    """A random forest that labels vertices by their descriptors.

    Attributes
    ----------
    trees : int
        Number of trees.
    leaf : int
        Fewest training samples in a leaf.
    features : int
        Number of descriptors that are tried at every node.
    kept : int
        Number of labels that a leaf keeps, those with most votes.
    embedding : int
        Number of eigenfunctions of the reference, over sqrt(lambda), that splits are chosen by; 0 takes positions.
    """

    trees: int = 20
    leaf: int = 4
    features: int = 10
    kept: int = 8
    embedding: int = 0

    def __post_init__(self) -> None:
        if min(self.trees, self.leaf, self.features, self.kept) < 1 or self.embedding < 0:
            raise InputError(f"{self}: trees, leaf, features and kept must be at least 1.")


@dataclass(frozen=True)
class RunConfig:
    """Settings of a run: of the operators, of the descriptors, and of the training.

    Attributes
    ----------
    preset : str
        The name it started from.
    method : str
        Which of `acnn.methods` is trained.
    patches, descriptors, augment, spectral, learned, forest, train
        The sections of the file.
    """

    preset: str = ""
    method: str = "acnn"
    patches: PatchSettings | GeodesicPatchSettings = field(default_factory=PatchSettings)
    descriptors: DescriptorSettings = field(default_factory=DescriptorSettings)
    augment: AugmentSettings = field(default_factory=AugmentSettings)
    spectral: SpectralSettings = field(default_factory=SpectralSettings)
    learned: LearnedSettings = field(default_factory=LearnedSettings)
    forest: ForestSettings = field(default_factory=ForestSettings)
    train: TrainSettings = field(default_factory=TrainSettings)

    def with_changes(self, changes: dict[str, Any]) -> RunConfig:
        """The same with some keys changed, `section.key` or just `key` where only one section has it.

        Values may be text as typed on a command line: `8`, `3,6,24`, `true`. Of `epochs`, `steps`, `minutes` and
        `core_minutes`, the one given takes the place of those that were there.

        Raises
        ------
        InputError
            Where a key is not known, a value does not fit, or more than one of them is given.
        """
        found = {self._find(key): value for key, value in changes.items()}
        if any(("train", name) in found for name in ("epochs", *INSTEAD_OF_EPOCHS)):
            found = {("train", name): type(getattr(self.train, name))() for name in INSTEAD_OF_EPOCHS} | found
        sections: dict[str, dict[str, Any]] = {}
        for (section, name), value in found.items():
            before = getattr(getattr(self, section), name)
            sections.setdefault(section, {})[name] = _parse(value, before, f"Setting '{name}'")
        if ("train", "epochs") in found and (other := [n for n in INSTEAD_OF_EPOCHS if sections["train"][n] > 0]):
            raise InputError(f"Give epochs or {other[0]}, not both: each sets how long the training is.")
        return replace(self, **{section: replace(getattr(self, section), **new) for section, new in sections.items()})

    def _find(self, key: str) -> tuple[str, str]:
        """Section and name of a key."""
        section, _, name = key.rpartition(".")
        section = FORMER_SECTIONS.get(section, section)
        name = FORMER_KEYS.get(name, name)
        names = {s: {f.name for f in fields(getattr(self, s))} for s in _SECTIONS}
        found = [s for s in _SECTIONS if name in names[s] and section in ("", s)]
        if len(found) == 1:
            return found[0], name
        if found:
            raise InputError(
                f"Setting '{key}' is in several sections: write {' or '.join(f'{s}.{name}' for s in found)}."
            )
        known = ", ".join(sorted({f.name for s in _SECTIONS for f in fields(getattr(self, s))}))
        raise InputError(f"There is no setting '{key}'. Known are: {known}.")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, one dictionary a section."""
        return {
            "preset": self.preset,
            "method": self.method,
            "patches": self.patches.as_dict(),
            "descriptors": self.descriptors.as_dict(),
            "augment": asdict(self.augment),
            "spectral": self.spectral.as_dict(),
            "learned": asdict(self.learned),
            "forest": asdict(self.forest),
            "train": asdict(self.train),
        }

    @classmethod
    def from_dict(cls, values: Any, where: str = "the configuration") -> RunConfig:
        """The record that `as_dict` gave. Raises InputError naming a key that is not known or of a wrong kind."""
        if not isinstance(values, dict):
            raise InputError(
                f"{where}: settings are {repr(values)[:60]}, but sections {', '.join(_SECTIONS)} are needed."
            )
        values = current_names(values)
        config = cls(preset=str(values.get("preset", "")), method=str(values.get("method", "acnn")))
        for section, content in values.items():
            if section in _PLAIN:
                continue
            if section not in _SECTIONS or not isinstance(content, dict):
                raise InputError(f"{where}: there is no section '{section}'; known are {', '.join(_SECTIONS)}.")
            part = getattr(config, section)
            if section == "patches" and "kind" in content:
                content = {key: value for key, value in content.items() if key != "kind"}
                part = patch_settings_from_dict({"kind": values[section]["kind"]})
            for key, value in content.items():
                if key not in {f.name for f in fields(part)}:
                    raise InputError(f"{where}: section '{section}' has no key '{key}'.")
                _check_kind(value, getattr(part, key), f"{where}: section '{section}', key '{key}'")
            try:
                config = replace(config, **{section: replace(part, **content)})
            except InputError as error:
                raise InputError(f"{where}: section '{section}': {error}") from error
        return config

    def __str__(self) -> str:
        """The record as TOML, which `read_config` reads."""
        lines = [f'{name} = "{getattr(self, name)}"' for name in _PLAIN if getattr(self, name)]
        for section, content in self.as_dict().items():
            if section not in _PLAIN:
                lines += ["", f"[{section}]"] + [f"{key} = {_toml(value)}" for key, value in content.items()]
        return "\n".join(lines).lstrip("\n") + "\n"


_PLAIN = ("preset", "method")
"""Keys outside all sections."""

_SECTIONS: dict[str, type] = {
    "patches": PatchSettings,
    "descriptors": DescriptorSettings,
    "augment": AugmentSettings,
    "spectral": SpectralSettings,
    "learned": LearnedSettings,
    "forest": ForestSettings,
    "train": TrainSettings,
}


FORMER_SECTIONS = {"copies": "augment"}
"""Earlier names of sections, still read from the files of earlier runs."""

FORMER_KEYS = {"blended": "interpolated", "copies_seed": "augment_seed"}
"""Earlier names of keys, still read from the files of earlier runs."""


def current_names(values: dict[str, Any]) -> dict[str, Any]:
    """Replace the former names of sections and keys in the settings of an earlier run.

    Parameters
    ----------
    values : dict[str, Any]
        One dictionary a section, as from `RunConfig.as_dict`; other entries are kept as they are.

    Returns
    -------
    dict[str, Any]
        The same settings under their current names.

    Raises
    ------
    InputError
        Where a section or a key is given under both names.
    """
    renamed: dict[str, Any] = {}
    for former, content in values.items():
        section = FORMER_SECTIONS.get(former, former)
        if section in renamed or (section != former and section in values):
            raise InputError(f"The sections '{section}' and '{former}' are the same: give only '{section}'.")
        renamed[section] = content
        if section in _SECTIONS and isinstance(content, dict):
            renamed[section] = {FORMER_KEYS.get(key, key): value for key, value in content.items()}
            if len(renamed[section]) < len(content):
                twice = next(key for key in content if FORMER_KEYS.get(key, key) != key)
                raise InputError(f"Keys '{FORMER_KEYS[twice]}' and '{twice}' are the same: give only the first.")
    return renamed


def read_config(path: Path) -> RunConfig:
    """Read a configuration from a TOML file."""
    try:
        return RunConfig.from_dict(tomllib.loads(path.read_text()), str(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: the configuration cannot be read: {error}.") from None


def presets() -> list[str]:
    """Names of the presets."""
    folder = resources.files("acnn.training") / "presets"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


@check_arguments
def preset_config(name: str) -> RunConfig:
    """The preset of a name, or the configuration in a file of that name; a changed meaning is logged as a warning."""
    if name not in presets():
        if name.endswith(".toml") and Path(name).is_file():
            return read_config(Path(name))
        raise InputError(f"There is no preset '{name}'; there are {', '.join(presets())}, or give a .toml file.")
    if name in CHANGED_PRESETS:
        logger.warning(CHANGED_PRESETS[name])
    text = (resources.files("acnn.training") / "presets" / f"{name}.toml").read_text()
    return replace(RunConfig.from_dict(tomllib.loads(text), f"preset {name}"), preset=name)


def _parse(value: Any, before: Any, what: str) -> Any:
    """A value of the type that the setting has, read from text where it is given as such."""
    if not isinstance(value, str):
        _check_kind(value, before, what)
        return value
    try:
        if isinstance(before, bool):
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[value.lower()]
        if isinstance(before, int):
            return int(value)
        if isinstance(before, float):
            return float(value)
        if isinstance(before, tuple):
            return tuple(type(before[0])(part) for part in value.split(","))
        return value
    except (KeyError, ValueError):
        raise InputError(f"{what}: '{value}' is not of the right kind; it is {before!r} now.") from None


def _check_kind(value: Any, before: Any, what: str) -> None:
    """Raise InputError where a value is not of the type that the setting has; whole numbers may stand for others."""
    if isinstance(before, tuple):
        fits = isinstance(value, list | tuple)
        if fits:
            for item in value:
                _check_kind(item, before[0], what)
    elif isinstance(before, bool) or isinstance(value, bool):
        fits = isinstance(before, bool) and isinstance(value, bool)
    elif isinstance(before, float):
        fits = isinstance(value, int | float)
    else:
        fits = isinstance(value, type(before))
    if not fits:
        raise InputError(f"{what}: {value!r} is not of the right kind; it is {before!r} now.")


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return repr(value)
