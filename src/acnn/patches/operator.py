"""`PatchOperator`: for every vertex, angle and scale, the weights of a local average of a function."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.patches.settings import GeodesicPatchSettings, PatchSettings
from acnn.reports import Report
from acnn.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class PatchReport(Report):
    """Figures of the construction of a patch operator, as `acnn patches --json` prints them.

    Attributes
    ----------
    vertices, angles : int
    scales : list[float]
    kernel : str
        Of the construction; several are joined by `+`.
    seconds : float
    nnz_per_row : float
        Mean number of stored entries of a row.
    kernels_by_scale : dict[str, str] or None
        The kernel that serves each scale.
    mass_kept : float or None
        Mean fraction of a kernel that is stored.
    mass_kept_per_scale : dict[str, float] or None
        The same of each narrow scale.
    chart_vertices : float or None
        Of geodesic patches: median number of vertices of a chart.
    """

    vertices: int
    angles: int
    scales: list[float]
    kernel: str
    seconds: float
    nnz_per_row: float
    kernels_by_scale: dict[str, str] | None = None
    mass_kept: float | None = None
    mass_kept_per_scale: dict[str, float] | None = None
    chart_vertices: float | None = None


@dataclass(frozen=True, eq=False)
class PatchOperator:
    """Weights of all patches of one shape: sparse rows for narrow scales, eigenpairs for wide ones.

    Narrow scales: (D(x_i) f)(theta, t) = sum of values f[vertices] over one row; rows are ordered by angle, then narrow
    scale, then vertex, and each sums to 1 (`start`, `vertices`, `values`).

    Wide scales: (D f)(theta, t) = Phi exp(-t Lambda) Phi^T S f with the eigenpairs of the angle (`eigenvalues`,
    `eigenfunctions`, `vertex_areas`).

    Attributes
    ----------
    start : (angles * narrow * n + 1,) int64 array
        Start of each row.
    vertices : (entries,) uint16 array
        Ascending within a row; int32 above 65,536 vertices.
    values : (entries,) float16 array
    eigenvalues : (angles, k) float32 array
    eigenfunctions : (angles, n, k) float32 array
    vertex_areas : (n,) float32 array
        The diagonal of S.
    unit : float
        Length of one normalised unit in the shape's coordinates.
    settings : PatchSettings or GeodesicPatchSettings
        The settings that it was built with. Geodesic patches have rays as angles and rings as scales.
    report : PatchReport
        Figures of its construction.
    wide : tuple[int, ...]
        Positions of the wide scales among all scales.
    """

    start: NDArray[np.int64]
    vertices: IntArray
    values: NDArray[np.float16]
    eigenvalues: NDArray[np.float32]
    eigenfunctions: NDArray[np.float32]
    vertex_areas: NDArray[np.float32]
    unit: float
    settings: PatchSettings | GeodesicPatchSettings
    report: PatchReport
    wide: tuple[int, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """The older form of `report`."""
        warnings.warn("operator.facts is deprecated: use operator.report.", DeprecationWarning, stacklevel=2)
        return self.report.as_dict()

    @property
    def narrow(self) -> tuple[int, ...]:
        """Positions of the narrow scales among all scales."""
        return tuple(i for i in range(len(self.settings.scales)) if i not in self.wide)

    @property
    def n(self) -> int:
        """Number of vertices of the shape."""
        return len(self.vertex_areas)

    def __repr__(self) -> str:
        s = self.settings
        return f"PatchOperator({self.n} vertices, {s.angles} angles, scales {s.scales}, {len(self.values)} entries)"

    @check_arguments
    def matrix(self, angle: int, scale: int) -> sp.csr_array:
        """Sparse matrix of one angle and one narrow scale.

        Parameters
        ----------
        angle : int
        scale : int
            Position of the scale among all scales.

        Returns
        -------
        (n, n) float32 sparse array

        Raises
        ------
        InputError
            Where the scale is wide.
        """
        if scale not in self.narrow:
            raise InputError(f"Scale {self.settings.scales[scale]:g} is stored as eigenpairs, not as a sparse matrix.")
        first = (angle * len(self.narrow) + self.narrow.index(scale)) * self.n
        start = self.start[first : first + self.n + 1]
        part = slice(start[0], start[-1])
        entries = self.values[part].astype(np.float32), self.vertices[part].astype(np.int32)
        return sp.csr_array((*entries, start - start[0]), shape=(self.n, self.n))

    def apply(self, function: FloatArray) -> NDArray[np.float32]:
        """Patches (D(x) f)(theta, t) of functions on the surface, with the full result in memory.

        Parameters
        ----------
        function : (n, p) array

        Returns
        -------
        (n, angles, scales, p) float32 array

        Raises
        ------
        InputError
            Where the function does not have one row for each vertex.
        """
        values = np.asarray(function, dtype=np.float32)
        if values.ndim != 2 or len(values) != self.n:
            raise InputError(f"The function has shape {values.shape}; it needs one row for each of {self.n} vertices.")
        s = self.settings
        patches = np.empty((self.n, s.angles, len(s.scales), values.shape[1]), dtype=np.float32)
        for angle in range(s.angles):
            for scale in self.narrow:
                patches[:, angle, scale] = self.matrix(angle, scale) @ values
            if self.wide:
                coefficients = self.eigenfunctions[angle].T @ (self.vertex_areas[:, None] * values)
                for scale in self.wide:
                    decay = np.exp(-s.scales[scale] * self.eigenvalues[angle])
                    patches[:, angle, scale] = self.eigenfunctions[angle] @ (decay[:, None] * coefficients)
        return patches
