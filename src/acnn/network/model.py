"""The network that labels every vertex of a shape with a vertex of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.network.architecture import Architecture, LayerSpec
from acnn.network.layers import FC, IC, BatchNorm, Dropout, Residual, apply_layers, takes_patches
from acnn.network.output import Output
from acnn.network.patch_tensors import Patches


class AcnnModel(nn.Module):
    """An architecture made into a network, from descriptors to logits over the reference's vertices.

    Parameters
    - architecture: or its string, see `Architecture`
    - in_features: length of a descriptor
    - classes: vertices m of the reference
    - angles, scales: of the patch operators that it will be given
    - angular_max: as in `IntrinsicConv`, for all of its layers

    Shapes
    - f: (n, in_features) descriptors, standardised here with the buffers `input_mean` and `input_std`
    - patches: of a shape with n vertices
    - result: (n, classes) logits; softmax over them is the soft correspondence
    """

    input_mean: torch.Tensor
    input_std: torch.Tensor

    @check_arguments
    def __init__(
        self,
        architecture: Architecture | str,
        in_features: int,
        classes: int,
        angles: int,
        scales: int,
        angular_max: bool = False,
    ) -> None:
        super().__init__()
        if in_features < 1 or classes < 1:
            raise InputError(f"A network from {in_features} features to {classes} classes: each must be at least 1.")
        self.architecture = Architecture.parse(architecture) if isinstance(architecture, str) else architecture
        self.in_features = in_features
        self.classes = classes
        self.angles = angles
        self.scales = scales
        self.angular_max = angular_max
        layers, channels = _layers(self.architecture.layers, in_features, angles, scales, angular_max)
        self.layers = nn.ModuleList(layers)
        self.classifier = Output(channels, classes)
        self.register_buffer("input_mean", torch.zeros(in_features))
        self.register_buffer("input_std", torch.ones(in_features))

    @property
    def config(self) -> dict[str, Any]:
        """Arguments with which the same network is made again, as plain values."""
        return {
            "architecture": str(self.architecture),
            "in_features": self.in_features,
            "classes": self.classes,
            "angles": self.angles,
            "scales": self.scales,
            "angular_max": self.angular_max,
        }

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
        state.pop("classifier.coefficients", None)
        return state | {"classifier.weight": self.classifier.whole_weight().detach()}

    @check_arguments
    def forward(self, f: torch.Tensor, patches: Patches, rows: torch.Tensor | None = None) -> torch.Tensor:
        """Logits (n, classes), or (r, classes) of the vertices `rows` (r,) alone.

        All layers after the last IC work on every vertex by itself, so with `rows` they run on these vertices only (a
        BN among them then takes its statistics from these).
        """
        return self.classifier(self.features(f, patches, rows))

    def features(self, f: torch.Tensor, patches: Patches, rows: torch.Tensor | None = None) -> torch.Tensor:
        """What enters the output layer: (n, channels), or (r, channels) of the vertices `rows`."""
        if f.ndim != 2 or f.shape[1] != self.in_features:
            raise InputError(f"The network takes (n, {self.in_features}) descriptors, but was given {tuple(f.shape)}.")
        around = [i for i, layer in enumerate(self.layers) if takes_patches(layer)]
        split = around[-1] + 1 if around else 0
        if split and isinstance(self.layers[0], FC):
            f = apply_layers(self.layers[1:split], self._first(f, self.layers[0]), patches)
        else:
            f = ((f - self.input_mean) / self.input_std).to(f.dtype)
            f = apply_layers(self.layers[:split], f, patches)
        if rows is not None:
            f = f.index_select(0, rows)
        return apply_layers(self.layers[split:], f, patches)

    def _first(self, f: torch.Tensor, layer: FC) -> torch.Tensor:
        """The first layer on standardised descriptors, with the standardising done to its weights: they are fewer."""
        weight = layer.weight / self.input_std
        shift = -(weight @ self.input_mean)
        bias = shift if layer.bias is None else layer.bias + shift
        y = nn.functional.linear(f, weight.to(f.dtype), bias.to(f.dtype))
        return torch.relu(y) if layer.relu else y


def _layers(
    specs: Sequence[LayerSpec], channels: int, angles: int, scales: int, angular_max: bool, inside: bool = False
) -> tuple[list[nn.Module], int]:
    """Modules of some layers and the channels that they end with; those inside a residual block end with its BN."""
    layers: list[nn.Module] = []
    for i, spec in enumerate(specs):
        normalised = specs[i + 1].kind == "BN" if i + 1 < len(specs) else inside
        bias = spec.relu or not normalised
        if spec.kind == "FC":
            layers.append(FC(channels, spec.size, spec.relu, bias))
            channels = spec.size
        elif spec.kind == "IC":
            layers.append(IC(channels, spec.size, angles, scales, spec.relu, bias, angular_max))
            channels = spec.size
        elif spec.kind == "BN":
            layers.append(BatchNorm(channels))
        elif spec.kind == "DO":
            layers.append(Dropout(spec.rate))
        else:
            body, inner = _layers(spec.body, channels, angles, scales, angular_max, inside=True)
            layers.append(Residual(body, channels, inner))
            channels = inner
    return layers, channels
