"""Spectral layers: learned filters of the spectrum (SC, SCNN) and windowed Fourier transforms (WC, LSCNN)."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import nn

from acnn.errors import InputError
from acnn.network.architecture import SpectralSettings
from acnn.network.patches import Spectrum


class SpectralConv(nn.Module):
    r"""Spectral convolution (SC): every pair of channels has a learned response over the spectrum.

        f_out_q = b_q + sum_p Phi diag(w_qp) Phi^T S f_in_p  (+ sum_p A_qp f_in_p with a skip)

    followed by a ReLU unless `relu` is False; w_qp = B c_qp with the basis B of `SpectralSettings`.

    Parameters
    ----------
    in_features, out_features : int
        Channels p and q.
    settings : SpectralSettings
        Of the responses.
    relu, bias : bool
        Apply a ReLU; learn b.
    """

    uses: ClassVar[tuple[str, ...]] = ("spectrum",)

    def __init__(
        self, in_features: int, out_features: int, settings: SpectralSettings, relu: bool = True, bias: bool = True
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.relu, self.settings = in_features, out_features, relu, settings
        self.weight = nn.Parameter(torch.empty(settings.size, in_features, out_features))
        self.skip = nn.Parameter(torch.empty(in_features, out_features)) if settings.skip else None
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal weights of variance 2 / in_features, shared by filter and skip; no bias."""
        if self.weight.is_meta:
            return
        parts = 1 + (self.skip is not None)
        for weight in (self.weight, self.skip):
            if weight is not None:
                nn.init.normal_(weight, std=math.sqrt(2 / (parts * self.in_features)))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, f: torch.Tensor, spectrum: Spectrum) -> torch.Tensor:
        """(n, in_features) to (n, out_features)."""
        response = torch.einsum("km,mpq->kpq", response_basis(self.settings, spectrum.eigenvalues), self.weight)
        y = spectrum.eigenfunctions @ torch.einsum("kp,kpq->kq", spectrum.analysis(f), response)
        if self.skip is not None:
            y = y + f @ self.skip
        if self.bias is not None:
            y = y + self.bias
        return torch.relu(y) if self.relu else y

    def extra_repr(self) -> str:
        """What the layer prints of itself."""
        return f"{self.in_features}, {self.out_features}, {self.settings}, relu={self.relu}"


class WindowedConv(nn.Module):
    r"""Windowed Fourier transform (WC): a learned sum over the magnitudes of local frequencies.

        (S f_p)_k(x) = sum_l g_p(lambda_l) phi_l(x) <f_p, phi_l phi_k>_S
        f_out_q(x) = b_q + sum_p sum_k W_qpk |(S f_p)_k(x)|

    followed by a ReLU unless `relu` is False. The window g_p = B c_p and, where responses are splines, W over k are
    learned in the basis B of `SpectralSettings`. With C_p = Phi^T diag(S f_p) Phi the transform is Phi diag(g_p) C_p:
    the translated windows (n x n) are never formed. Magnitudes do not depend on the signs of eigenfunctions.

    Parameters
    ----------
    in_features, out_features : int
        Channels p and q.
    settings : SpectralSettings
        Of windows and responses.
    relu, bias : bool
        Apply a ReLU; learn b.
    """

    uses: ClassVar[tuple[str, ...]] = ("spectrum",)

    def __init__(
        self, in_features: int, out_features: int, settings: SpectralSettings, relu: bool = True, bias: bool = True
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.relu, self.settings = in_features, out_features, relu, settings
        self.window = nn.Parameter(torch.empty(in_features, settings.size))
        self.weight = nn.Parameter(torch.empty(settings.size, in_features, out_features))
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Windows of 1 at all frequencies; normal weights of variance 2 / (in_features x eigenpairs); no bias."""
        if self.weight.is_meta:
            return
        nn.init.ones_(self.window)
        nn.init.normal_(self.weight, std=math.sqrt(2 / (self.in_features * self.settings.eigenpairs)))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, f: torch.Tensor, spectrum: Spectrum) -> torch.Tensor:
        """(n, in_features) to (n, out_features)."""
        basis = response_basis(self.settings, spectrum.eigenvalues)
        windows = self.window @ basis.T  # (p, k)
        response = torch.einsum("km,mpq->pkq", basis, self.weight)
        y = f.new_zeros(len(f), self.out_features)
        for p in range(self.in_features):
            y = y + windowed_transform(f[:, p], windows[p], spectrum).abs() @ response[p]
        if self.bias is not None:
            y = y + self.bias
        return torch.relu(y) if self.relu else y

    def extra_repr(self) -> str:
        """What the layer prints of itself."""
        return f"{self.in_features}, {self.out_features}, {self.settings}, relu={self.relu}"


def windowed_transform(f: torch.Tensor, window: torch.Tensor, spectrum: Spectrum) -> torch.Tensor:
    """(n, k) windowed Fourier transform of a function (n,) with a window (k,) given at the eigenvalues.

    Scaled by sqrt(total area), so that its size does not depend on the unit of length.
    """
    phi = spectrum.eigenfunctions
    products = phi.T @ ((spectrum.areas * f)[:, None] * phi)  # (k, k): <f, phi_l phi_k>
    return (phi * window) @ products * spectrum.areas.sum().sqrt()


def response_basis(settings: SpectralSettings, eigenvalues: torch.Tensor) -> torch.Tensor:
    """(k, size) the functions that responses are made of, at every eigenpair of a shape.

    Parameters
    ----------
    settings : SpectralSettings
        Of the responses.
    eigenvalues : (k,) tensor
        Of the shape.

    Raises
    ------
    InputError
        Where the shape has another number of eigenpairs than the layers take.
    """
    k = len(eigenvalues)
    if k != settings.eigenpairs:
        raise InputError(f"The spectral layers take {settings.eigenpairs} eigenpairs, but were given {k}.")
    if not settings.splines:
        return torch.eye(k, dtype=eigenvalues.dtype)
    if settings.over == "index":
        position = torch.arange(k, dtype=eigenvalues.dtype) / (k - 1)
    else:
        position = (eigenvalues / settings.upper).clamp(0.0, 1.0)
    return cubic_splines(position, settings.splines)


def cubic_splines(position: torch.Tensor, count: int) -> torch.Tensor:
    """(k, count) uniform cubic B-splines that sum to 1 on [0, 1], at positions (k,)."""
    spans = max(1, count - 3)
    u = position[:, None] * spans - torch.arange(-3, count - 3, dtype=position.dtype)[None] - 2.0
    distance = u.abs()
    near = (4 - 6 * distance**2 + 3 * distance**3) / 6
    far = (2 - distance).clamp_min(0.0) ** 3 / 6
    values = torch.where(distance < 1, near, far)
    return values / values.sum(dim=1, keepdim=True)
