"""The last layer of a network: logits over the vertices of the reference."""

from __future__ import annotations

import math

import torch
from torch import nn

from acnn.errors import InputError
from acnn.network.layers import FC


class Output(FC):
    """Linear layer to one logit for each of the m vertices of the reference.

    There are thousands of vertices, each with weights of its own, and a training step shows most of them once or not
    at all. After `share_weights`, neighbouring vertices learn together: the weights are

        W = W_0 + Phi U

    with smooth functions Phi on the reference and learnt coefficients U. Every vertex of a step then says something
    about all vertices near it, and W_0 is left with what sets neighbours apart. What can be learnt is the same, and so
    is the layer that is saved (`whole_weight`).

    Shapes
    - weight: (m, in_features), W_0
    - basis: (m, k), Phi; coefficients: (k, in_features), U; None without sharing
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
