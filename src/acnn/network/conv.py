"""The intrinsic convolution layer."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils.checkpoint import checkpoint

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.network.patches import (
    Patches,
    convolve_narrow,
    convolve_wide,
    decayed_coefficients,
    narrow_patches,
    wide_patches,
)

_CHUNK = 2**22
"""Numbers in the patches that the angular maximum holds at once."""


class IntrinsicConv(nn.Module):
    """Intrinsic convolution (IC): every vertex's patch of every input channel, weighted by learnt filters and summed.

        f_out_q(x) = b_q + sum_p sum_{theta, t} a_qp(theta, t) (D(x) f_in_p)(theta, t)

    (eqs. intconv and gcnn of the paper, plus a bias), where D(x) gathers a function around x with anisotropic kernels
    of angle theta and scale t. With `angular_max` the filter is turned through all angles and the largest answer taken,

        f_out_q(x) = b_q + max_r sum_p sum_{theta, t} a_qp(theta - r, t) (D(x) f_in_p)(theta, t),

    which does not depend on where theta = 0 lies; the paper has no need of it, its authors' program does it.

    No nonlinearity is applied. Patches of all vertices, n x (angles x scales x in_features) numbers, are never held.

    Shapes
    - weight: (angles, scales, in_features, out_features)
    - f: (n, in_features) float32, bfloat16 or float64
    - patches: `Patches(operator)` of a shape with n vertices
    - result: (n, out_features) in the type of f; sums are in float32, or in float64 where f is

    Parameters
    ----------
    in_features, out_features : int
        Channels p and q.
    angles, scales : int or None
        Of the patch operators that the layer will be given. None takes them from the first operator, or from the
        weights that are loaded: until then `weight` has no size, as in `torch.nn.LazyLinear`, so that an optimiser is
        made after a first call.
    bias : bool
        Learn b, (out_features,); without it b = 0.
    angular_max : bool
        Take the maximum over rotations of the filter.

    Examples
    --------
    >>> import acnn, torch
    >>> patches = acnn.nn.Patches(acnn.build_patches(acnn.builtin_human(), angles=2, scales=(4, 16)))
    >>> layer = acnn.nn.IntrinsicConv(3, 8)
    >>> layer(torch.ones(patches.n, 3), patches).shape
    torch.Size([2500, 8])
    >>> layer
    IntrinsicConv(3, 8, angles=2, scales=2, bias=True, angular_max=False)
    """

    weight: nn.Parameter

    @check_arguments
    def __init__(
        self,
        in_features: int,
        out_features: int,
        angles: int | None = None,
        scales: int | None = None,
        bias: bool = True,
        angular_max: bool = False,
    ) -> None:
        super().__init__()
        if any(size is not None and size < 1 for size in (in_features, out_features, angles, scales)):
            raise InputError(
                f"An intrinsic convolution from {in_features} to {out_features} channels with {angles} angles and "
                f"{scales} scales: each must be at least 1."
            )
        self.in_features = in_features
        self.out_features = out_features
        self.angles = angles
        self.scales = scales
        self.angular_max = angular_max
        if angles is None or scales is None:
            self.weight = nn.UninitializedParameter()  # type: ignore[assignment]  # a Parameter to all but its stub
        else:
            self.weight = nn.Parameter(torch.empty(angles, scales, in_features, out_features))
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal weights of variance 2 / (angles * scales * in_features), which suits a ReLU; no bias."""
        self._draw_weight()
        if self.bias is not None and not self.bias.is_meta:
            nn.init.zeros_(self.bias)

    @check_arguments
    def forward(self, f: torch.Tensor, patches: Patches) -> torch.Tensor:
        """(n, in_features) to (n, out_features). Raises InputError where shapes do not fit."""
        self._check(f, patches)
        if is_lazy(self.weight):
            self._take_sizes(patches.angles, patches.scales)
        dtype = torch.float64 if f.dtype == torch.float64 else torch.float32
        with torch.autocast(f.device.type, enabled=False):
            x, weight = f.to(dtype), self.weight.to(dtype)
            y = self._largest(x, weight, patches) if self.angular_max else _convolved(x, weight, patches)
            if self.bias is not None:
                y = y + self.bias.to(dtype)
            return y.to(f.dtype)

    def extra_repr(self) -> str:
        """What the layer prints of itself."""
        return (
            f"{self.in_features}, {self.out_features}, angles={self.angles}, scales={self.scales}, "
            f"bias={self.bias is not None}, angular_max={self.angular_max}"
        )

    def _largest(self, f: torch.Tensor, weight: torch.Tensor, patches: Patches) -> torch.Tensor:
        """Maximum over rotations of the filter, for some vertices at a time.

        Turning a filter by all angles is a circular correlation: a product in the Fourier domain. Patches are computed
        again on the way back rather than kept.
        """
        angles, scales = weight.shape[:2]
        forward, back = _fourier(angles, f.dtype, f.device)
        re, im = (forward @ weight.flatten(1)).view(2, -1, scales * self.in_features, self.out_features)
        # The product with the conjugate spectrum as one real product: rows re, im of patches; columns re, im of sums.
        spectrum = torch.cat([torch.cat([re, -im], 2), torch.cat([im, re], 2)], 1)  # (frequencies, 2 scales p, 2 q)
        decayed = decayed_coefficients(f, patches) if patches.wide else None
        order = [*patches.narrow, *patches.wide]
        positions = torch.tensor([order.index(scale) for scale in range(scales)], device=f.device)

        def answers(
            f: torch.Tensor, decayed: torch.Tensor | None, spectrum: torch.Tensor, begin: int, end: int
        ) -> torch.Tensor:
            parts = [narrow_patches(f, patches, begin, end)] if patches.narrow else []
            if decayed is not None:
                parts.append(wide_patches(decayed, patches, begin, end))
            values = parts[0] if len(parts) == 1 else torch.cat(parts, 1).index_select(1, positions)
            waves = (forward @ values.flatten(1)).view(2, -1, scales, end - begin, self.in_features)
            turned = waves.permute(1, 3, 0, 2, 4).flatten(2) @ spectrum  # (frequencies, rows, 2 q)
            turned = turned.unflatten(2, (2, self.out_features)).permute(2, 0, 1, 3)
            return (back @ turned.flatten(0, 1).flatten(1)).view(angles, end - begin, -1).max(dim=0).values

        step = max(1, _CHUNK // (angles * scales * self.in_features))
        chunks = []
        for begin in range(0, patches.n, step):
            end = min(begin + step, patches.n)
            found = checkpoint(answers, f, decayed, spectrum, begin, end, use_reentrant=False, preserve_rng_state=False)
            chunks.append(found)
        return torch.cat(chunks)

    def _check(self, f: torch.Tensor, patches: Patches) -> None:
        if f.ndim != 2 or f.shape[1] != self.in_features:
            raise InputError(f"The layer takes (n, {self.in_features}) features, but was given {tuple(f.shape)}.")
        if not f.is_floating_point():
            raise InputError(
                f"The layer takes real numbers, but was given {f.dtype}. Convert the features with .float()."
            )
        if len(f) != patches.n:
            raise InputError(f"{len(f)} rows of features for patches of {patches.n} vertices: one each is needed.")
        wanted = (self.angles or patches.angles, self.scales or patches.scales)
        if (patches.angles, patches.scales) != wanted:
            raise InputError(
                f"The layer was made for {self.angles or 'any number of'} angles x {self.scales or 'any number of'} "
                f"scales, but the patches have {patches.angles} x {patches.scales}. Compute the operator with the "
                "settings of the model."
            )
        if f.device.type != patches.device.type:
            raise InputError(f"Features are on {f.device}, patches on {patches.device}. Move one with .to(device).")

    def _take_sizes(self, angles: int, scales: int) -> None:
        """Fix the sizes that were left open, and draw the weights."""
        self.angles, self.scales = angles, scales
        assert isinstance(self.weight, nn.UninitializedParameter)
        with torch.no_grad():
            self.weight.materialize((angles, scales, self.in_features, self.out_features))
        self._draw_weight()

    def _draw_weight(self) -> None:
        # A layer on the device `meta` is to be loaded; numbers drawn there would import PyTorch's compiler first: 5 s.
        if not (is_lazy(self.weight) or self.weight.is_meta):
            nn.init.normal_(self.weight, std=math.sqrt(2 / math.prod(self.weight.shape[:3])))

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        if not is_lazy(self.weight):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            return
        destination[prefix + "weight"] = self.weight  # has no values to detach
        if self.bias is not None:
            destination[prefix + "bias"] = self.bias if keep_vars else self.bias.detach()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        stored = state_dict.get(prefix + "weight")
        if stored is not None and is_lazy(self.weight) and not is_lazy(stored):
            sizes = tuple(stored.shape)
            wanted = (self.angles, self.scales, self.in_features, self.out_features)
            if len(sizes) == 4 and all(mine in (size, None) for size, mine in zip(sizes, wanted, strict=True)):
                self._take_sizes(*sizes[:2])
        super()._load_from_state_dict(state_dict, prefix, *others)


def _convolved(f: torch.Tensor, weight: torch.Tensor, patches: Patches) -> torch.Tensor:
    """(n, q) sum of narrow and wide scales."""
    parts = []
    if patches.narrow:
        narrow = weight if not patches.wide else weight[:, list(patches.narrow)]
        parts.append(convolve_narrow(f, narrow.flatten(0, 1), patches))
    if patches.wide:
        wide = weight if not patches.narrow else weight[:, list(patches.wide)]
        parts.append(convolve_wide(f, wide, patches))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _fourier(angles: int, dtype: torch.dtype, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Matrices of the discrete Fourier transform over angles of real numbers, and of its inverse.

    The first, (2 * frequencies, angles), gives real parts and then imaginary ones; the second undoes it. As matrices
    because angles are few, and the first axis: a fast transform would spend its time on gathering them.
    """
    frequencies = torch.arange(angles // 2 + 1, dtype=torch.float64)
    phase = frequencies[:, None] * torch.arange(angles, dtype=torch.float64) * (2 * math.pi / angles)
    waves = torch.cat([torch.cos(phase), -torch.sin(phase)])
    twice = torch.where((frequencies == 0) | (2 * frequencies == angles), 1.0, 2.0).repeat(2)
    back = (twice[:, None] * waves).T / angles
    return waves.to(device, dtype), back.contiguous().to(device, dtype)
