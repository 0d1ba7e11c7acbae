"""The pointwise layers of the paper, blocks of layers, and the output layer over the vertices of the reference."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import nn

from acnn.errors import InputError
from acnn.network.conv import IntrinsicConv
from acnn.network.patches import Operators, Patches


class FC(nn.Linear):
    r"""Fully connected layer, the same at every vertex: f_out = eta(W f_in + b), eta a ReLU or nothing.

    Eq. cnn_fc of the paper, plus a bias. The last layer of a network is one without ReLU: softmax belongs to the loss.

    Shapes
    - f: (n, in_features); result: (n, out_features)
    """

    uses: ClassVar[tuple[str, ...]] = ()

    def __init__(self, in_features: int, out_features: int, relu: bool = True, bias: bool = True) -> None:
        self.relu = relu
        super().__init__(in_features, out_features, bias)

    def reset_parameters(self) -> None:
        """Normal weights of variance 2 / in_features with a ReLU, 1 / in_features without; no bias."""
        if self.weight.is_meta:  # to be loaded; numbers drawn here would first import PyTorch's compiler: 5 s
            return
        nn.init.normal_(self.weight, std=math.sqrt((2 if self.relu else 1) / self.in_features))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, f: torch.Tensor) -> torch.Tensor:
        """(n, in_features) to (n, out_features)."""
        y = super().forward(f)
        return torch.relu(y) if self.relu else y

    def extra_repr(self) -> str:
        """What the layer prints of itself."""
        return f"{self.in_features}, {self.out_features}, relu={self.relu}, bias={self.bias is not None}"


class IC(IntrinsicConv):
    """`IntrinsicConv` followed by a ReLU, unless `relu` is False."""

    uses: ClassVar[tuple[str, ...]] = ("patches",)

    def __init__(
        self,
        in_features: int,
        out_features: int,
        angles: int,
        scales: int,
        relu: bool = True,
        bias: bool = True,
        angular_max: bool = False,
    ) -> None:
        super().__init__(in_features, out_features, angles, scales, bias, angular_max)
        self.relu = relu

    def forward(self, f: torch.Tensor, patches: Patches) -> torch.Tensor:
        """(n, in_features) to (n, out_features)."""
        y = super().forward(f, patches)
        return torch.relu(y) if self.relu else y

    def extra_repr(self) -> str:
        """What the layer prints of itself."""
        return f"{super().extra_repr()}, relu={self.relu}"


class Dropout(nn.Dropout):
    """Dropout with probability p: in training f_out = m f_in / (1 - p), m = 0 with probability p and else 1.

    At test nothing is changed: the usual inverted form of the paper's rule.
    """

    uses: ClassVar[tuple[str, ...]] = ()


class BatchNorm(nn.BatchNorm1d):
    r"""Batch normalisation over vertices: f_out = gamma (f_in - mu) / sqrt(sigma^2 + eps) + beta (eq. batch_norm).

    In training mu and sigma^2 are those of the vertices at hand, and moving averages of them are kept. At test the
    averages are used, or again the statistics of the vertices at hand where `reestimate` is set.

    Shapes
    - f: (n, features), n at least 2 where statistics are taken; result: the same
    """

    uses: ClassVar[tuple[str, ...]] = ()

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self.reestimate = False

    def forward(self, f: torch.Tensor) -> torch.Tensor:
        """(n, features) to the same."""
        taken = self.training or self.reestimate
        if taken and len(f) < 2:
            raise InputError(f"Batch normalisation over {len(f)} vertices: at least 2 are needed.")
        if not self.training and taken:
            return nn.functional.batch_norm(f, None, None, self.weight, self.bias, True, 0.0, self.eps)
        return super().forward(f)


def reestimate_statistics(model: nn.Module, on: bool = True) -> None:
    """Let every batch normalisation of a model take its statistics from the query at test, or from training again."""
    for layer in model.modules():
        if isinstance(layer, BatchNorm):
            layer.reestimate = on


class Residual(nn.Module):
    """x + BN(body(x)): layers that learn a correction, so that networks may be deep.

    The sum stays open: no ReLU follows it, and one layer's mistakes cannot shut a channel for good. The normalisation
    comes last in the branch, as in FC and IC layers followed by BN, which makes all corrections of one size. Where
    channels change from p to q, x passes through a (q, p) matrix.

    Shapes
    - f: (n, p); result: (n, q), q the channels of the body's last layer
    """

    def __init__(self, body: Iterable[nn.Module], in_features: int, out_features: int) -> None:
        super().__init__()
        self.body = nn.ModuleList(body)
        self.norm = BatchNorm(out_features)
        same = in_features == out_features
        self.skip = nn.Identity() if same else FC(in_features, out_features, relu=False, bias=False)
        self.uses = operators_used(self.body)

    def forward(self, f: torch.Tensor, *operators: Any) -> torch.Tensor:
        """(n, p) to (n, q), given the operators that `uses` names, in their order."""
        given = Operators(**dict(zip(self.uses, operators, strict=True)))
        return self.skip(f) + self.norm(apply_layers(self.body, f, given))


def apply_layers(layers: Iterable[nn.Module], f: torch.Tensor, operators: Operators) -> torch.Tensor:
    """Apply layers one after the other, each with the operators that it declares in `uses`."""
    for layer in layers:
        f = layer(f, *operators.select(operators_used([layer])))
    return f


def operators_used(layers: Iterable[nn.Module]) -> tuple[str, ...]:
    """Names of the operators that layers declare in `uses`, each once."""
    declared: list[tuple[str, ...]] = [layer.uses for layer in layers]  # type: ignore[misc]
    return tuple(dict.fromkeys(name for names in declared for name in names))


class Output(FC):
    """Linear layer to one logit for each of the m vertices of the reference.

    There are thousands of vertices, each with weights of its own, and a training step shows most of them once or not
    at all. After `share_weights`, neighbouring vertices learn together: the weights are

        W = W_0 + Phi U

    with smooth functions Phi on the reference and learnt coefficients U. Every vertex of a step then teaches something
    about all vertices near it, and W_0 is left with what sets neighbours apart. What can be learnt is the same, and so
    is the layer that is saved (`whole_weight`).

    Shapes
    - weight: (m, in_features), W_0

    Attributes
    ----------
    basis : (m, k) tensor or None
        Phi.
    coefficients : nn.Parameter or None
        (k, in_features), U; None without sharing.
    """

    basis: torch.Tensor | None
    coefficients: nn.Parameter | None

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes, relu=False)
        self.register_buffer("basis", None, persistent=False)
        self.register_parameter("coefficients", None)

    def share_weights(self, basis: torch.Tensor, own: float = 0.3) -> None:
        """Learn through smooth functions (m, k) from here on, with new weights of which `own` times W_0 is a part."""
        if basis.ndim != 2 or len(basis) != self.out_features:
            raise InputError(f"A basis of shape {tuple(basis.shape)} for {self.out_features} vertices: one row each.")
        size = float(basis.pow(2).sum(dim=1).mean().sqrt())
        if not (math.isfinite(size) and size > 0):
            raise InputError("The basis of the output layer holds zeros only, or values that are not finite.")
        self.basis = (basis / size).to(self.weight)
        self.coefficients = nn.Parameter(torch.randn(basis.shape[1], self.in_features).to(self.weight))
        with torch.no_grad():
            self.coefficients.mul_(1 / math.sqrt(self.in_features))
            self.weight.mul_(own)

    def whole_weight(self) -> torch.Tensor:
        """(m, in_features) W_0 + Phi U, or W_0 without sharing."""
        if self.basis is None or self.coefficients is None:
            return self.weight
        return torch.addmm(self.weight, self.basis, self.coefficients)

    def forward(self, f: torch.Tensor) -> torch.Tensor:
        """(n, in_features) to (n, m)."""
        return nn.functional.linear(f, self.whole_weight(), self.bias)
