"""What layers take of a shape besides a function on it: its patch operator and its spectrum, as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from acnn.errors import InputError
from acnn.network.patches import Patches
from acnn.types import FloatArray


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The first eigenpairs of the Laplacian of a shape, W phi_k = lambda_k S phi_k, as tensors.

    Attributes
    ----------
    eigenvalues : (k,) tensor
        Ascending, in normalised units.
    eigenfunctions : (n, k) tensor
        Orthonormal with respect to the areas.
    areas : (n,) tensor
        Vertex areas S.
    """

    eigenvalues: torch.Tensor
    eigenfunctions: torch.Tensor
    areas: torch.Tensor

    @classmethod
    def of(cls, eigenvalues: FloatArray, eigenfunctions: FloatArray, areas: FloatArray) -> Spectrum:
        """Tensors of arrays, in single precision."""
        return cls(*(torch.from_numpy(np.array(x, np.float32)) for x in (eigenvalues, eigenfunctions, areas)))

    def analysis(self, f: torch.Tensor) -> torch.Tensor:
        """(k, p) coefficients Phi^T S f of functions (n, p)."""
        return self.eigenfunctions.T @ (self.areas[:, None] * f)


@dataclass(frozen=True, eq=False)
class Operators:
    """Operators of one shape, by the names under which layers declare them in `uses`.

    Attributes
    ----------
    patches : Patches or None
        For intrinsic convolutions.
    spectrum : Spectrum or None
        For spectral layers.
    """

    patches: Patches | None = None
    spectrum: Spectrum | None = None

    def select(self, uses: Sequence[str]) -> tuple[Any, ...]:
        """The operators of some names, in their order.

        Raises
        ------
        InputError
            Where the shape was prepared without one of them.
        """
        chosen = tuple(getattr(self, name) for name in uses)
        for name, operator in zip(uses, chosen, strict=True):
            if operator is None:
                raise InputError(f"A layer of this network needs the {name} of the shape, which was not given.")
        return chosen
