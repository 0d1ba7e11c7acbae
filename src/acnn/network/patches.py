"""Operators of a shape as tensors: `Patches` with differentiable products, `Spectrum`, and both in `Operators`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.autograd.function import once_differentiable

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.network import products
from acnn.network.products import StoredRows
from acnn.patches.operator import PatchOperator
from acnn.types import FloatArray


@dataclass(frozen=True, eq=False, init=False)
class Patches:
    """A patch operator for the network, on the CPU and without copying: `Patches(operator)`.

    Parameters
    ----------
    operator : PatchOperator
        From `acnn.build_patches`.

    Attributes
    ----------
    n, angles, scales : int
        Vertices, number of angles, number of scales.
    narrow, wide : tuple[int, ...]
        Positions of the scales kept as sparse rows and as eigenpairs.
    rows : StoredRows or None
        On the CPU, the operator's own arrays, which may be memory-mapped: nothing is copied.
    matrices : tuple[torch.Tensor, ...] or None
        On another device, one (n, n) CSR matrix for each angle and narrow scale.
    decays : (angles, wide scales, k) tensor
        exp(-t lambda).
    eigenfunctions : (angles, n, k) float32 tensor
    vertex_areas : (n,) float32 tensor

    Raises
    ------
    InputError
        Where the operator's arrays do not fit together.

    Examples
    --------
    >>> import acnn
    >>> acnn.nn.Patches(acnn.build_patches(acnn.builtin_human(), angles=2, scales=(4, 16)))
    Patches(2500 vertices, 2 angles, 2 scales, cpu)
    """

    n: int
    angles: int
    scales: int
    narrow: tuple[int, ...]
    wide: tuple[int, ...]
    rows: StoredRows | None
    matrices: tuple[torch.Tensor, ...] | None
    decays: torch.Tensor
    eigenfunctions: torch.Tensor
    vertex_areas: torch.Tensor

    @check_arguments
    def __init__(self, operator: PatchOperator) -> None:
        s = operator.settings
        blocks = s.angles * len(operator.narrow)
        times = np.array([s.scales[i] for i in operator.wide], dtype=np.float32)
        values = np.asarray(operator.eigenvalues, dtype=np.float32)
        self._set(
            n=operator.n,
            angles=s.angles,
            scales=len(s.scales),
            narrow=operator.narrow,
            wide=operator.wide,
            rows=_checked(operator, blocks) if blocks else None,
            matrices=None,
            decays=torch.from_numpy(np.exp(-times[None, :, None] * values[:, None, :])),
            eigenfunctions=_shared(operator.eigenfunctions),
            vertex_areas=_shared(operator.vertex_areas),
        )

    @classmethod
    @check_arguments
    def of(cls, operator: PatchOperator) -> Patches:
        """The patches of an operator: the same as `Patches(operator)`."""
        return cls(operator)

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # the record is frozen

    @property
    def device(self) -> torch.device:
        """Where the patches are."""
        return self.vertex_areas.device

    def to(self, device: torch.device | str) -> Patches:
        """The same patches on another device, as CSR matrices in float32.

        On the CPU a compiled kernel reads the operator as it is stored. Elsewhere `torch.sparse` does the products.
        That code is tested on the CPU only: it has not been run on CUDA.
        """
        device = torch.device(device)
        return self if device == self.device else self.as_matrices(device)

    def as_matrices(self, device: torch.device | str = "cpu") -> Patches:
        """The same patches with the sparse rows as torch CSR matrices, for any device; twice the memory on the CPU."""
        matrices = self.matrices
        if self.rows is not None:
            matrices = tuple(_matrix(self.rows, block) for block in range(self.rows.blocks))
        moved = copy(self)
        moved._set(
            rows=None,
            matrices=None if matrices is None else tuple(matrix.to(device) for matrix in matrices),
            decays=self.decays.to(device),
            eigenfunctions=self.eigenfunctions.to(device),
            vertex_areas=self.vertex_areas.to(device),
        )
        return moved

    def __repr__(self) -> str:
        return f"Patches({self.n} vertices, {self.angles} angles, {self.scales} scales, {self.device})"


def _checked(operator: PatchOperator, blocks: int) -> StoredRows:
    """The sparse rows, after checks without which a compiled kernel could read beyond an array."""
    start, vertices, values = operator.start, operator.vertices, operator.values
    n = operator.n
    if len(start) != blocks * n + 1 or not len(vertices) == len(values) == start[-1] or start[0] != 0:
        raise InputError(
            f"The patch operator's rows do not fit together: {len(start)} starts for {blocks} x {n} rows, "
            f"{len(vertices)} vertices, {len(values)} values. Compute it again."
        )
    if (np.diff(start) < 0).any() or (len(vertices) and (vertices.max() >= n or vertices.min() < 0)):
        raise InputError(f"The patch operator names vertices that its shape of {n} has not. Compute it again.")
    index = np.uint16 if vertices.dtype == np.uint16 else np.int32
    return StoredRows(
        _read_only(start, np.int64),
        _read_only(vertices, index),
        _read_only(np.asarray(values, dtype=np.float16).view(np.uint16), np.uint16),
        n,
        blocks,
    )


def _read_only(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """The array itself where its memory is in order; never writable, so that kernels are compiled for one kind."""
    result = np.require(array, dtype=dtype, requirements=["C", "A"]).view(np.ndarray)
    result.flags.writeable = False
    return result


def _shared(array: NDArray[Any]) -> torch.Tensor:
    """A tensor on the memory of an array, mapped from a file or not. Nothing writes to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not writable.*")
        return torch.from_numpy(np.require(array, dtype=np.float32, requirements=["C", "A"]))


def _matrix(rows: StoredRows, block: int) -> torch.Tensor:
    """(n, n) CSR matrix of one block, float32."""
    start = rows.start[block * rows.n : (block + 1) * rows.n + 1]
    part = slice(int(start[0]), int(start[-1]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Sparse CSR tensor support is in beta.*")
        return torch.sparse_csr_tensor(
            torch.from_numpy((start - start[0]).astype(np.int64)),
            torch.from_numpy(rows.vertices[part].astype(np.int64)),
            torch.from_numpy(rows.values[part].view(np.float16).astype(np.float32)),
            size=(rows.n, rows.n),
            check_invariants=False,
        )


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
            return torch.from_numpy(products.convolve(patches.rows, f.numpy(), weight.numpy()))
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
            found = products.convolve_adjoint(
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
            return torch.from_numpy(products.patch_values(patches.rows, f.numpy(), begin, end))
        return torch.stack([_times(matrix, f)[begin:end] for matrix in patches.matrices or ()])

    @staticmethod
    @_in_full
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        patches, (begin, end) = ctx.patches, ctx.range
        if patches.rows is not None:
            df = torch.from_numpy(products.patch_values_adjoint(patches.rows, g.numpy(), begin, end))
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
