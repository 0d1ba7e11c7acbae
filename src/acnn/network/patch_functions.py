"""Differentiable products of patch operators with tensors: the linear maps that layers are built from."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from acnn.network import narrow_products
from acnn.network.patch_tensors import Patches

Tensor = torch.Tensor


def convolve_narrow(f: Tensor, weight: Tensor, patches: Patches) -> Tensor:
    """sum over angles and narrow scales of D f A: f (n, p), weight (angles * narrow scales, p, q), result (n, q)."""
    return _NarrowConvolution.apply(f, weight, patches)


def convolve_wide(f: Tensor, weight: Tensor, patches: Patches) -> Tensor:
    """sum over angles of Phi (sum over wide scales t of exp(-t Lambda) Phi^T S f A_t).

    Shapes: f (n, p), weight (angles, wide scales, p, q), result (n, q).
    """
    decayed = decayed_coefficients(f, patches)  # (angles, k, wide, p)
    filtered = decayed.flatten(2) @ weight.flatten(1, 2)  # (angles, k, q)
    return _Synthesis.apply(filtered, patches)


def decayed_coefficients(f: Tensor, patches: Patches) -> Tensor:
    """exp(-t Lambda) Phi^T S f: f (n, p), result (angles, k, wide scales, p)."""
    coefficients = _Analysis.apply(f, patches)
    decays = patches.decays.to(f.dtype).transpose(1, 2)  # (angles, k, wide)
    return decays[..., None] * coefficients[:, :, None, :]


def narrow_patches(f: Tensor, patches: Patches, begin: int, end: int) -> Tensor:
    """(angles, narrow scales, end - begin, p) patches of the vertices begin to end, over all narrow scales."""
    flat = _NarrowPatches.apply(f, patches, begin, end)
    return flat.view(patches.angles, len(patches.narrow), end - begin, f.shape[1])


def wide_patches(decayed: Tensor, patches: Patches, begin: int, end: int) -> Tensor:
    """(angles, wide scales, end - begin, p) patches of some vertices, from their `decayed_coefficients`."""
    functions = patches.eigenfunctions[:, begin:end].to(decayed.dtype)
    values = functions @ decayed.flatten(2)  # (angles, rows, wide * p)
    return values.unflatten(2, decayed.shape[2:]).transpose(1, 2)


def _in_full(backward: Callable[[Any, Tensor], tuple[Tensor | None, ...]]) -> Any:
    """Differentiable once, and with sums in the type of the gradient even where autocast is on."""

    @once_differentiable
    @wraps(backward)
    def wrapped(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(g.device.type, enabled=False):
            return backward(ctx, g)

    return wrapped


class _NarrowConvolution(torch.autograd.Function):
    """y = sum_b D_b f A_b. Keeps f and the weights alone for the way back."""

    @staticmethod
    def forward(ctx: Any, f: Tensor, weight: Tensor, patches: Patches) -> Tensor:
        ctx.save_for_backward(f, weight)
        ctx.patches = patches
        if patches.rows is not None:
            return torch.from_numpy(narrow_products.convolve(patches.rows, f.numpy(), weight.numpy()))
        y = f.new_zeros(len(f), weight.shape[2])
        for matrix, bank in zip(patches.matrices or (), weight, strict=True):
            y += _times(matrix, f @ bank)
        return y

    @staticmethod
    @_in_full
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        f, weight = ctx.saved_tensors
        wants_f, wants_weights = ctx.needs_input_grad[:2]
        if ctx.patches.rows is not None:
            found = narrow_products.convolve_adjoint(
                ctx.patches.rows, f.numpy(), weight.numpy(), g.numpy(), wants_f=wants_f, wants_weights=wants_weights
            )
            return *(None if array is None else torch.from_numpy(array) for array in found), None
        df, dw = torch.zeros_like(f), torch.zeros_like(weight)
        for block, matrix in enumerate(ctx.patches.matrices):
            back = _times(matrix, g, transposed=True)
            if wants_f:
                df += back @ weight[block].T
            if wants_weights:
                dw[block] = f.T @ back
        return df if wants_f else None, dw if wants_weights else None, None


class _NarrowPatches(torch.autograd.Function):
    """Rows begin to end of all D_b f."""

    @staticmethod
    def forward(ctx: Any, f: Tensor, patches: Patches, begin: int, end: int) -> Tensor:
        ctx.patches, ctx.range = patches, (begin, end)
        if patches.rows is not None:
            return torch.from_numpy(narrow_products.patch_values(patches.rows, f.numpy(), begin, end))
        return torch.stack([_times(matrix, f)[begin:end] for matrix in patches.matrices or ()])

    @staticmethod
    @_in_full
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        patches, (begin, end) = ctx.patches, ctx.range
        if patches.rows is not None:
            df = torch.from_numpy(narrow_products.patch_values_adjoint(patches.rows, g.numpy(), begin, end))
            return df, None, None, None
        df = g.new_zeros(patches.n, g.shape[2])
        for block, matrix in enumerate(patches.matrices):
            whole = g.new_zeros(patches.n, g.shape[2])
            whole[begin:end] = g[block]
            df += _times(matrix, whole, transposed=True)
        return df, None, None, None


class _Analysis(torch.autograd.Function):
    """Coefficients (angles, k, p) of f (n, p) in the eigenfunctions of every angle: Phi^T S f.

    Angle by angle, because autograd would hold a copy of f for each of them.
    """

    @staticmethod
    def forward(ctx: Any, f: Tensor, patches: Patches) -> Tensor:
        ctx.patches = patches
        weighted = patches.vertex_areas.to(f.dtype)[:, None] * f
        return torch.stack([functions.to(f.dtype).T @ weighted for functions in patches.eigenfunctions])

    @staticmethod
    @_in_full
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        total = _summed(ctx.patches, g)
        return ctx.patches.vertex_areas.to(g.dtype)[:, None] * total, None


class _Synthesis(torch.autograd.Function):
    """Sum over angles of Phi z: coefficients (angles, k, q) to a function (n, q)."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, patches: Patches) -> Tensor:
        ctx.patches = patches
        return _summed(patches, z)

    @staticmethod
    @_in_full
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        return torch.stack([functions.to(g.dtype).T @ g for functions in ctx.patches.eigenfunctions]), None


def _summed(patches: Patches, z: Tensor) -> Tensor:
    """Sum over angles of Phi z."""
    total = z.new_zeros(patches.n, z.shape[2])
    for functions, part in zip(patches.eigenfunctions, z, strict=True):
        total.addmm_(functions.to(z.dtype), part)
    return total


def _times(matrix: Tensor, x: Tensor, *, transposed: bool = False) -> Tensor:
    """Product of a CSR matrix, or of its transpose, with (n, c)."""
    matrix = matrix.to(x.dtype)
    return (matrix.t() if transposed else matrix) @ x
