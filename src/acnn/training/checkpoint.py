"""Checkpoints: all that a run needs to go on as if it had never stopped, in files that cannot run code."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch

from acnn.arguments import check_fields
from acnn.errors import InputError
from acnn.files import map_arrays, read_arrays, write_arrays
from acnn.network.model import ShapeNetwork, fitting_tensors
from acnn.shapes.mesh import Mesh
from acnn.training.config import INSTEAD_OF_EPOCHS, RunConfig, current_names

BUDGET = ("epochs", *INSTEAD_OF_EPOCHS, "validate_every")
"""Settings of a training that may change when it goes on."""


@dataclass
class Progress:
    """How far a run has come.

    Attributes
    ----------
    step : int
        Steps done.
    seconds : float
        Time spent on steps.
    core_seconds : float
        Processor time spent on steps, over all threads.
    best : float
        Best validation so far (fraction of exact matches), -1 before the first.
    best_step : int
        When.
    """

    step: int = 0
    seconds: float = 0.0
    core_seconds: float = 0.0
    best: float = -1.0
    best_step: int = 0


def run_identity(config: RunConfig, shapes: list[str], reference: Mesh | None) -> dict[str, Any]:
    """What makes two trainings the same one: settings, names of the shapes, and the reference, as a hash."""
    identity = config.as_dict() | {"shapes": shapes}
    if reference is not None:
        identity["reference"] = mesh_hash(reference)
    return identity


def mesh_hash(mesh: Mesh) -> str:
    """Hash of a mesh with the order of its vertices, which labels refer to."""
    parts = (np.ascontiguousarray(mesh.vertices, float), np.ascontiguousarray(mesh.faces, np.int64))
    return blake2b(b"".join(part.tobytes() for part in parts), digest_size=16).hexdigest()


def write_checkpoint(
    path: Path, model: ShapeNetwork, optimiser: torch.optim.Optimizer, progress: Progress, config: dict[str, Any]
) -> None:
    """Write model, optimiser and progress to one file, whole or not at all, even if the power fails.

    The optimiser's state is numbered as the model's parameters are, however the optimiser groups them.
    """
    arrays = {f"model.{name}": tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}
    for index, parameter in enumerate(model.parameters()):
        state = optimiser.state.get(parameter, {})
        arrays |= {f"optimiser.{index}.{key}": torch.as_tensor(value).cpu().numpy() for key, value in state.items()}
    about = {"progress": asdict(progress), "config": config, "model": model.config}
    write_arrays(path, arrays, {"checkpoint": json.dumps(about)}, durable=True)


def check_settings(path: Path, config: dict[str, Any]) -> None:
    """Raise InputError where a checkpoint belongs to a run with other settings; how long it trains may differ.

    Parameters
    ----------
    config : dict[str, Any]
        As from `run_identity`; what only one of the two knows is not compared.
    """
    started = current_names(_about(path, map_arrays(path, verify=False)[1])["config"])
    other = []
    for section, now in config.items():
        before = started.get(section, now)
        if not (isinstance(now, dict) and isinstance(before, dict)):
            counts = f": {len(before)} before, {len(now)} now" if isinstance(now, list) else ""
            other += [section + counts] if now != before and section != "preset" else []
            continue
        changed = [key for key in now if key in before and key not in BUDGET and now[key] != before[key]]
        other += [f"{key} was {before.get(key)} and is {now.get(key)}" for key in changed]
    if other:
        raise InputError(
            f"{path}: belongs to a run with other settings ({'; '.join(other)}). Resume with the settings that it was "
            "started with (how long it trains may differ), or train into another folder."
        )


def read_checkpoint(
    path: Path, model: ShapeNetwork, optimiser: torch.optim.Optimizer, config: dict[str, Any]
) -> Progress:
    """Put model and optimiser into the state of a checkpoint.

    Raises
    ------
    InputError
        Where the file is damaged, or belongs to a run with other settings.
    """
    check_settings(path, config)
    arrays, header = read_arrays(path)
    about = _about(path, header)
    try:
        progress = Progress(**about["progress"])
        check_fields(progress)
    except TypeError as error:
        raise InputError(f"{path}: does not record how far the training has come ({error}).") from error
    if about["model"] != model.config:
        raise InputError(
            f"{path}: belongs to a network {about['model']}, not {model.config}: train into another folder."
        )
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    own = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
    state = _optimiser_state(path, tensors, list(model.parameters()))
    model.load_state_dict(fitting_tensors(path, own, model))
    optimiser.state.update(state)
    return progress


def _about(path: Path, header: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint records besides its arrays: `progress`, `config` and `model`, each a dictionary."""
    try:
        about = json.loads(header["checkpoint"])
        return {name: dict(about[name]) for name in ("progress", "config", "model")}
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: not a checkpoint, or its metadata are damaged ({error!r}). Train into another folder."
        ) from error


def _optimiser_state(
    path: Path, tensors: dict[str, torch.Tensor], parameters: list[torch.nn.Parameter]
) -> dict[torch.Tensor, dict[str, torch.Tensor]]:
    """The state of AdamW: of every parameter its moments and the steps taken, or of none."""
    if not any(name.startswith("optimiser.") for name in tensors):
        return {}
    state: dict[torch.Tensor, dict[str, torch.Tensor]] = {}
    for index, parameter in enumerate(parameters):
        state[parameter] = {}
        for key in ("step", "exp_avg", "exp_avg_sq"):
            tensor = tensors.get(f"optimiser.{index}.{key}")
            shape = (1,) if key == "step" else parameter.shape  # as `write_arrays` keeps a single number
            if tensor is None or tensor.shape != shape or not tensor.is_floating_point():
                raise InputError(f"{path}: 'optimiser.{index}.{key}' is missing or does not fit the network.")
            state[parameter][key] = tensor
    return state
