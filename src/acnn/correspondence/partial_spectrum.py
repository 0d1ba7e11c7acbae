"""What the spectra of a part and of its full shape tell about the map between them: bases, rank, slanted diagonal.

A part with a share a of the area has, by Weyl's law, about a k eigenvalues below the k-th of the full shape. So its
functional map C (k_full, k_part) runs along a diagonal of that slope, and only its first r columns carry anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acnn.correspondence.basis import SpectralBasis
from acnn.errors import InputError
from acnn.shapes.shape import FloatArray
from acnn.surface.surface import Surface

SPREAD = 0.03
"""How quickly the mask of the slanted diagonal gives way to higher frequencies, as published."""


@dataclass(frozen=True, eq=False)
class PartialBases:
    """Eigenfunctions of part and full shape in ONE unit of area, that of the full shape.

    - part: eigenvalues, functions and mass as in `SpectralBasis`, but the mass sums to `share`
    - full: as in `SpectralBasis`
    - share: area of the part over that of the full shape
    """

    part: SpectralBasis
    full: SpectralBasis
    share: float

    def rank(self, k: int) -> int:
        """Eigenfunctions of the part that belong to the first k of the full shape."""
        return estimated_rank(self.part.eigenvalues, self.full.eigenvalues[:k])

    def size_of_rank(self, rank: int) -> int:
        """Smallest k whose rank is at least this; all eigenfunctions of the full shape where none is."""
        for k in range(1, self.full.size):
            if self.rank(k) >= rank:
                return k
        return self.full.size


def partial_bases(part: Surface, full: Surface, part_basis: SpectralBasis, full_basis: SpectralBasis) -> PartialBases:
    """Bring the bases of part and full shape, both of `basis_of`, into one unit of area.

    Raises InputError where a basis does not belong to its shape, or the shapes are in different run units.
    """
    for basis, surface, name in ((part_basis, part, "part"), (full_basis, full, "full shape")):
        if len(basis) != len(surface.vertices):
            raise InputError(f"The basis of the {name} has {len(basis)} vertices, the {name} {len(surface.vertices)}.")
    share = float(part.vertex_areas.sum() / full.vertex_areas.sum())
    if not share < 1.5:
        raise InputError(
            f"The part has {share:.2g} times the area of the full shape. Give both the same unit of length: "
            "surface_of(part, unit=full.unit)."
        )
    scaled = SpectralBasis(
        part_basis.eigenvalues / share, part_basis.functions / np.sqrt(share), part_basis.mass * share
    )
    return PartialBases(scaled, full_basis, share)


def estimated_rank(part_eigenvalues: FloatArray, full_eigenvalues: FloatArray) -> int:
    """r = max {i : lambda_i(part) < max_j lambda_j(full)}, at least 1; eigenvalues in one unit, ascending."""
    return max(1, int(np.searchsorted(part_eigenvalues, full_eigenvalues[-1], side="left")))


def slanted_mask(k_full: int, k_part: int, rank: int) -> FloatArray:
    """(k_full, k_part) W, zero along the slanted diagonal of C and growing away from it.

        W_ij = exp(-sigma sqrt(i^2 + j^2)) |n x (i - 1, j - 1)|,    n = (1, r / k_full) / |(1, r / k_full)|

    with i, j counted from 1 and sigma = `SPREAD`: rows belong to the full shape.
    """
    i, j = np.arange(1, k_full + 1)[:, None], np.arange(1, k_part + 1)[None, :]
    slope = rank / k_full
    away = np.abs((j - 1) - slope * (i - 1)) / np.hypot(1.0, slope)
    return np.exp(-SPREAD * np.hypot(i, j)) * away
