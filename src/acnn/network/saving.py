"""Models in files: one safetensors file each, with the network's configuration as JSON in its header."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from acnn.errors import InputError
from acnn.files import whole_file
from acnn.network.model import AcnnModel

_FORMAT = "acnn-model-1"


def save_model(model: AcnnModel, path: Path | str, metadata: dict[str, Any] | None = None) -> None:
    """Write a model to a file, whole or not at all.

    Parameters
    - model: its configuration, weights and buffers are kept, whatever device they are on; weights that its output
      layer shares are written out
    - path: of the file; its folder is made where it is missing
    - metadata: anything that JSON can hold, given back by `load_model`

    Raises InputError where the metadata cannot be written as JSON, OSError where the file cannot be written.
    """
    from safetensors.torch import save

    path = Path(path)
    tensors = {name: tensor.cpu().contiguous().clone() for name, tensor in model.plain_state().items()}
    try:
        about = json.dumps({"config": model.config, "metadata": metadata or {}}, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: the model's metadata cannot be written as JSON: {error}.") from error
    header = {"acnn": json.dumps({"format": _FORMAT, "about": about, "checksum": _checksum(about, tensors)})}
    data = save(tensors, metadata=header)
    with whole_file(path, durable=True) as temporary:
        temporary.write_bytes(data)


def load_model(path: Path | str) -> tuple[AcnnModel, dict[str, Any]]:
    """Read a model that `save_model` wrote: the model, in evaluation mode on the CPU, and its metadata.

    Loading runs no code from the file. Raises InputError where the file is missing, damaged or something else.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such model file.")
    try:
        with safe_open(str(path), framework="pt") as file:
            header = (file.metadata() or {}).get("acnn")
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{path}: not a model file, or cut short ({error}). Save or download it again.") from error
    if header is None:
        raise InputError(f"{path}: a safetensors file, but not a model written by acnn.")
    try:
        outer = json.loads(header)
        if outer["format"] != _FORMAT:
            raise InputError(f"{path}: the model's format is '{outer['format']}'; this version reads '{_FORMAT}'.")
        if outer["checksum"] != _checksum(outer["about"], tensors):
            raise InputError(f"{path}: the model's contents have been altered or damaged. Save or download it again.")
        about = json.loads(outer["about"])
        config, metadata = dict(about["config"]), dict(about["metadata"])
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: the model's metadata are damaged ({error!r}). Save or download it again.") from error
    try:
        with torch.device("meta"):  # no memory before it is known that the tensors fit
            model = AcnnModel(**config)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(f"{path}: the model's configuration makes no network ({error}).") from error
    model.load_state_dict(fitting_tensors(path, tensors, model), assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return model.eval(), metadata


def fitting_tensors(path: Path, tensors: dict[str, torch.Tensor], model: AcnnModel) -> dict[str, torch.Tensor]:
    """The tensors of a file as the model's state has them, other types of fractions converted.

    Raises InputError that names the file and the tensor where one is missing, of another shape or kind, or not finite.
    """
    expected = model.state_dict()
    odd = sorted(expected.keys() ^ tensors.keys())
    if odd:
        what = "lacks" if odd[0] in expected else "has"
        raise InputError(f"{path}: {what} '{odd[0]}' ({len(odd)} in total), unlike a network of its configuration.")
    fitting = {}
    for name, wanted in expected.items():
        tensor = tensors[name]
        if tensor.shape == (1,) and wanted.ndim == 0:  # as `write_arrays` keeps a single number
            tensor = tensor.reshape(())
        if tensor.shape != wanted.shape or tensor.is_floating_point() != wanted.is_floating_point():
            raise InputError(
                f"{path}: '{name}' holds {tensor.dtype} of shape {tuple(tensor.shape)}; "
                f"{wanted.dtype} of shape {tuple(wanted.shape)} is needed."
            )
        fitting[name] = tensor.to(wanted.dtype)
        if not torch.isfinite(fitting[name]).all():
            raise InputError(f"{path}: '{name}' holds numbers that are not finite.")
    return fitting


def _checksum(about: str, tensors: dict[str, torch.Tensor]) -> str:
    """Hash of everything in the file."""
    digest = hashlib.blake2b(about.encode(), digest_size=16)
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
