"""The network that labels every vertex of a shape with a vertex of the reference, and its safetensors file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.files import read_arrays, write_arrays
from acnn.network.architecture import Architecture, LayerSpec, SpectralSettings
from acnn.network.layers import FC, IC, BatchNorm, Dropout, Output, Residual, apply_layers, operators_used
from acnn.network.patches import Operators, Patches
from acnn.network.spectral import SpectralConv, WindowedConv


class ShapeNetwork(nn.Module):
    """An architecture made into a network on shapes, from descriptors to logits or to a learned descriptor.

    Layers are given the operators that they declare in `uses`; the head is the output layer (`classifier`) of an
    architecture that ends with Softmax, and nothing of one that does not.

    Shapes
    - f: (n, in_features) descriptors, standardised here with the buffers `input_mean` and `input_std`
    - operators: of a shape with n vertices
    - result: (n, classes) logits, softmax over them is the soft correspondence; (n, channels) without a head

    Parameters
    ----------
    architecture : Architecture or str
        Or its string, see `Architecture`.
    in_features : int
        Length of a descriptor.
    classes : int
        Vertices m of the reference, or classes of a segmentation; 0 for a network without a head.
    angles, scales : int
        Of the patch operators that it will be given; 0 for a network without intrinsic convolutions.
    angular_max : bool
        As in `IntrinsicConv`, for all IC layers; GC layers always take the maximum.
    spectral : SpectralSettings or dict or None
        Of SC and WC layers.
    """

    input_mean: torch.Tensor
    input_std: torch.Tensor

    @check_arguments
    def __init__(
        self,
        architecture: Architecture | str,
        in_features: int,
        classes: int,
        angles: int = 0,
        scales: int = 0,
        angular_max: bool = False,
        spectral: SpectralSettings | dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if in_features < 1 or classes < 0:
            raise InputError(f"A network from {in_features} features to {classes} classes: each must be at least 1.")
        if isinstance(architecture, str):
            architecture = Architecture.parse(architecture, softmax=classes > 0)
        self.architecture = architecture
        self.in_features = in_features
        self.classes = classes
        self.angles = angles
        self.scales = scales
        self.angular_max = angular_max
        self.spectral = SpectralSettings(**spectral) if isinstance(spectral, dict) else spectral
        layers, self.channels = _layers(self.architecture.layers, in_features, self)
        self.layers = nn.ModuleList(layers)
        self.uses = operators_used(layers)
        self.classifier = Output(self.channels, classes) if classes else None
        self.register_buffer("input_mean", torch.zeros(in_features))
        self.register_buffer("input_std", torch.ones(in_features))

    @property
    def config(self) -> dict[str, Any]:
        """Arguments with which the same network is made again, as plain values."""
        config = {
            "architecture": str(self.architecture),
            "in_features": self.in_features,
            "classes": self.classes,
            "angles": self.angles,
            "scales": self.scales,
            "angular_max": self.angular_max,
        }
        return config if self.spectral is None else config | {"spectral": self.spectral.as_dict()}

    def standardise_input(self, mean: torch.Tensor, std: torch.Tensor) -> None:
        """Subtract a mean (in_features,) from all descriptors and divide by std (in_features,), where that is not 0."""
        if mean.shape != (self.in_features,) or std.shape != (self.in_features,):
            raise InputError(
                f"Mean {tuple(mean.shape)} and deviation {tuple(std.shape)} for {self.in_features} features."
            )
        with torch.no_grad():
            self.input_mean.copy_(mean)
            self.input_std.copy_(torch.where(std > 0, std, torch.ones_like(std)))

    def plain_state(self) -> dict[str, torch.Tensor]:
        """The state of a network whose output layer shares no weights and gives the same results."""
        state = {name: tensor.detach() for name, tensor in self.state_dict().items()}
        if self.classifier is None:
            return state
        state.pop("classifier.coefficients", None)
        return state | {"classifier.weight": self.classifier.whole_weight().detach()}

    @check_arguments
    def forward(
        self, f: torch.Tensor, operators: Operators | Patches, rows: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Logits (n, classes), or (r, classes) of the vertices `rows` (r,) alone.

        All layers after the last one that looks around a vertex work on every vertex by itself, so with `rows` they
        run on these vertices only (a BN among them then takes its statistics from these).

        Parameters
        ----------
        f : (n, in_features) tensor
            Descriptors.
        operators : Operators or Patches
            Of the shape; patches alone where no layer needs more.
        rows : (r,) tensor or None
            Vertices to compute; None computes all.
        """
        features = self.features(f, operators, rows)
        return features if self.classifier is None else self.classifier(features)

    def features(
        self, f: torch.Tensor, operators: Operators | Patches, rows: torch.Tensor | None = None
    ) -> torch.Tensor:
        """What enters the output layer: (n, channels), or (r, channels) of the vertices `rows`."""
        if f.ndim != 2 or f.shape[1] != self.in_features:
            raise InputError(f"The network takes (n, {self.in_features}) descriptors, but was given {tuple(f.shape)}.")
        given = Operators(patches=operators) if isinstance(operators, Patches) else operators
        around = [i for i, layer in enumerate(self.layers) if operators_used([layer])]
        split = around[-1] + 1 if around else 0
        if split and isinstance(self.layers[0], FC):
            f = apply_layers(self.layers[1:split], self._first(f, self.layers[0]), given)
        else:
            f = ((f - self.input_mean) / self.input_std).to(f.dtype)
            f = apply_layers(self.layers[:split], f, given)
        if rows is not None:
            f = f.index_select(0, rows)
        return apply_layers(self.layers[split:], f, given)

    def _first(self, f: torch.Tensor, layer: FC) -> torch.Tensor:
        """The first layer on standardised descriptors, with the standardising done to its weights: they are fewer."""
        weight = layer.weight / self.input_std
        shift = -(weight @ self.input_mean)
        bias = shift if layer.bias is None else layer.bias + shift
        y = nn.functional.linear(f, weight.to(f.dtype), bias.to(f.dtype))
        return torch.relu(y) if layer.relu else y


@torch.no_grad()
def start_from(model: ShapeNetwork, other: ShapeNetwork) -> None:
    """Give a network the weights of another, so that it computes the same before it is trained.

    Layers that both architectures begin and end with are copied. What the model has between them must be residual
    blocks: they begin as the identity, their normalisation scaled by 0. Where the number of classes differs, the output
    layer stays as it is.

    Parameters
    ----------
    model : ShapeNetwork
        The network to be trained.
    other : ShapeNetwork
        A trained network for the same descriptors and operators.

    Raises
    ------
    InputError
        Where the networks differ in anything else.
    """
    mine, theirs = model.architecture.layers, other.architecture.layers
    last = len(theirs)
    first = next((i for i in range(last) if i >= len(mine) or mine[i] != theirs[i]), last)
    more = len(mine) - last
    added = mine[first : first + more] if more > 0 else ()
    fits = mine[:first] + added + theirs[first:] == mine and all(spec.kind == "RES" for spec in added)
    compared = model.config.keys() - {"architecture", "classes"}
    same = all(model.config[key] == other.config.get(key) for key in compared)
    blocks = [layer for layer in model.layers[first : first + len(added)] if isinstance(layer, Residual)]
    if not (fits and same and all(isinstance(block.skip, nn.Identity) for block in blocks)):
        raise InputError(
            f"A network {model.config} cannot start from the weights of {other.config}: it must be the same, but for "
            "residual blocks in between that do not change the number of channels."
        )
    state = {}
    for name, tensor in other.plain_state().items():
        parts = name.split(".")
        if parts[0] == "classifier" and model.classes != other.classes:
            continue
        if parts[0] == "layers" and int(parts[1]) >= first:
            parts[1] = str(int(parts[1]) + len(added))
        state[".".join(parts)] = tensor
    model.load_state_dict(state, strict=False)
    for block in blocks:
        block.norm.weight.zero_()
    if model.classes == other.classes and model.classifier is not None and model.classifier.coefficients is not None:
        model.classifier.coefficients.zero_()


def _layers(
    specs: Sequence[LayerSpec], channels: int, network: ShapeNetwork, inside: bool = False
) -> tuple[list[nn.Module], int]:
    """Modules of some layers and the channels that they end with; those inside a residual block end with its BN."""
    layers: list[nn.Module] = []
    for i, spec in enumerate(specs):
        normalised = specs[i + 1].kind == "BN" if i + 1 < len(specs) else inside
        bias = spec.relu or not normalised
        if spec.kind == "BN":
            layers.append(BatchNorm(channels))
        elif spec.kind == "DO":
            layers.append(Dropout(spec.rate))
        elif spec.kind == "RES":
            body, inner = _layers(spec.body, channels, network, inside=True)
            layers.append(Residual(body, channels, inner))
            channels = inner
        else:
            layers.append(_layer_with_channels(spec, channels, bias, network))
            channels = spec.size
    return layers, channels


def _layer_with_channels(spec: LayerSpec, channels: int, bias: bool, network: ShapeNetwork) -> nn.Module:
    if spec.kind == "FC":
        return FC(channels, spec.size, spec.relu, bias)
    if spec.kind in ("IC", "GC"):
        largest = network.angular_max or spec.kind == "GC"
        return IC(channels, spec.size, network.angles, network.scales, spec.relu, bias, largest)
    if network.spectral is None:
        raise InputError(f"The layer {spec} needs settings of the spectrum (section [spectral]).")
    layer = SpectralConv if spec.kind == "SC" else WindowedConv
    return layer(channels, spec.size, network.spectral, spec.relu, bias)


_FORMAT = "acnn-model-2"


def save_model(model: ShapeNetwork, path: Path | str, metadata: dict[str, Any] | None = None) -> None:
    """Write a model to a file, whole or not at all.

    Parameters
    ----------
    model : ShapeNetwork
        Its configuration, weights and buffers are kept, whatever device they are on; weights that its output layer
        shares are written out.
    path : Path or str
        Of the file; its folder is made where it is missing.
    metadata : dict[str, Any] or None
        Anything that JSON can hold, given back by `load_model`.

    Raises
    ------
    InputError
        Where the metadata cannot be written as JSON.
    OSError
        Where the file cannot be written.
    """
    about = {"format": _FORMAT, "config": model.config, "metadata": metadata or {}}
    try:
        json.dumps(about, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: the model's metadata cannot be written as JSON: {error}.") from error
    # NumPy has no bfloat16.
    state = {
        name: (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).cpu().numpy()
        for name, tensor in model.plain_state().items()
    }
    write_arrays(Path(path), state, about, durable=True)


def load_model(path: Path | str) -> tuple[ShapeNetwork, dict[str, Any]]:
    """Read a model that `save_model` wrote, in this format or the first: in evaluation mode on the CPU; its metadata.

    Loading runs no code from the file. Raises InputError where the file is missing, damaged or something else.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such model file.")
    arrays, about = read_arrays(path)
    found = about.get("format", _FORMAT)
    if found != _FORMAT:
        raise InputError(f"{path}: holds '{found}'; this version reads models of the format '{_FORMAT}'.")
    try:
        config, metadata = dict(about["config"]), dict(about["metadata"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a model, or its metadata are damaged ({error!r}). Save it again.") from error
    try:
        with torch.device("meta"):  # no memory before it is known that the tensors fit
            model = ShapeNetwork(**config)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(f"{path}: the model's configuration makes no network ({error}).") from error
    tensors = {name: torch.tensor(array) for name, array in arrays.items()}
    model.load_state_dict(fitting_tensors(path, tensors, model), assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return model.eval(), metadata


def fitting_tensors(path: Path, tensors: dict[str, torch.Tensor], model: ShapeNetwork) -> dict[str, torch.Tensor]:
    """The tensors of a file as the model's state has them, other types of fractions converted.

    Raises
    ------
    InputError
        That names the file and the tensor where one is missing, of another shape or kind, or not finite.
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
