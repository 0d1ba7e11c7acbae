"""The first Laplace-Beltrami eigenfunctions of a shape, and nearest neighbours among points of their space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.surface import Surface


@dataclass(frozen=True, eq=False)
class SpectralBasis:
    """Eigenfunctions in which functions on a shape are expanded, made free of scale.

    - eigenvalues: (k,) ascending, times the area of the shape
    - functions: (n, k) orthonormal: functions^T diag(mass) functions = identity
    - mass: (n,) share of the area that belongs to each vertex; sums to 1
    """

    eigenvalues: FloatArray
    functions: FloatArray
    mass: FloatArray

    def __len__(self) -> int:
        return len(self.mass)

    @property
    def size(self) -> int:
        """How many eigenfunctions there are."""
        return self.functions.shape[1]

    def first(self, k: int) -> FloatArray:
        """(n, k) the first k eigenfunctions.

        Raises InputError where there are fewer.
        """
        if not 0 < k <= self.size:
            raise InputError(f"Asked for {k} of {self.size} eigenfunctions. Compute more with basis_of(surface, {k}).")
        return self.functions[:, :k]


def basis_of(surface: Surface, k: int) -> SpectralBasis:
    """The first k eigenfunctions of the Laplacian of a mesh or cloud; fewer where the shape has too few vertices."""
    from acnn.surface.spectrum import surface_eigenpairs

    area = float(surface.vertex_areas.sum())
    values, functions = surface_eigenpairs(surface, k)
    return SpectralBasis(values * area, functions * np.sqrt(area), surface.vertex_areas / area)


def nearest_points(points: NDArray[np.floating], among: NDArray[np.floating], block: int = 512) -> IntArray:
    """(n,) for each of the points the index of the nearest one among others; equal distances go to the lower index.

        argmin_j |p_i - q_j|^2 = argmin_j (|q_j|^2 / 2 - <p_i, q_j>)

    Products of `block` rows in float32: 0.1 s for 6,890 x 6,890 in 50 dimensions and 0.3 s in 250, on one core.

    Parameters
    - points: (n, k)
    - among: (m, k)
    - block: rows at a time, so that block x m numbers are held
    """
    # Differences are what counts, so the common mean goes first: it would only cost digits of float32.
    centre = among.mean(axis=0)
    right = np.ascontiguousarray((among - centre).T, dtype=np.float32)
    left = np.ascontiguousarray(points - centre, dtype=np.float32)
    half = (0.5 * np.einsum("kj,kj->j", right, right, dtype=np.float64)).astype(np.float32)
    found = np.empty(len(left), dtype=np.int32)
    for first in range(0, len(left), block):
        products = left[first : first + block] @ right
        np.subtract(half, products, out=products)
        found[first : first + block] = products.argmin(axis=1)
    return found
