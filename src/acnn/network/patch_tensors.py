"""What an intrinsic convolution layer takes of a shape: its patch operator, ready for products with tensors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.network.narrow_products import StoredRows
from acnn.patches.operator import PatchOperator


@dataclass(frozen=True, eq=False)
class Patches:
    """A patch operator for the network. Made by `Patches.of(operator)`.

    - n, angles, scales: vertices, number of angles, number of scales
    - narrow, wide: positions of the scales kept as sparse rows and as eigenpairs
    - rows: on the CPU, the operator's own arrays, which may be memory-mapped: nothing is copied
    - matrices: on another device, one (n, n) CSR matrix for each angle and narrow scale
    - decays: (angles, wide scales, k) exp(-t lambda)
    - eigenfunctions: (angles, n, k) float32
    - vertex_areas: (n,) float32
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

    @classmethod
    @check_arguments
    def of(cls, operator: PatchOperator) -> Patches:
        """The patches of an operator, on the CPU and without copying.

        Raises InputError where the operator's arrays do not fit together.
        """
        s = operator.settings
        blocks = s.angles * len(operator.narrow)
        rows = _checked(operator, blocks) if blocks else None
        times = np.array([s.scales[i] for i in operator.wide], dtype=np.float32)
        values = np.asarray(operator.eigenvalues, dtype=np.float32)
        decays = np.exp(-times[None, :, None] * values[:, None, :])
        return cls(
            operator.n,
            s.angles,
            len(s.scales),
            operator.narrow,
            operator.wide,
            rows,
            None,
            torch.from_numpy(decays),
            _shared(operator.eigenfunctions),
            _shared(operator.vertex_areas),
        )

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
        return replace(
            self,
            rows=None,
            matrices=None if matrices is None else tuple(matrix.to(device) for matrix in matrices),
            decays=self.decays.to(device),
            eigenfunctions=self.eigenfunctions.to(device),
            vertex_areas=self.vertex_areas.to(device),
        )

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
