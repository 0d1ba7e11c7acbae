"""The energy of a partial functional map, term by term: each returns its value and its gradient.

    |C A - B(eta(v))|_{2,1}  +  mu1 (area(part) - int eta(v))^2  +  mu2 int xi(v) |grad v|
    +  mu3 |C o W|^2  +  mu4 sum_{i != j} (C^T C)_ij^2  +  mu5 sum_i ((C^T C)_ii - d_i)^2

C (k_full, k_part) carries coefficients of functions on the part to those on the full shape; A and B are coefficients of
functions that correspond; v tells where on the full shape the part lies. Rodola, Cosmo, Bronstein, Torsello, Cremers,
Partial functional correspondence, 2016. Areas are shares of the full shape's area and lengths are over its root, so
that no weight depends on the unit of length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.surface import Surface

STEEPNESS = 6.0
"""Of eta: with the paper's 2 a vertex inside the part (v = 1) would count 0.88; with the 6 of its public code 0.998."""

WIDTH = 0.2
"""Standard deviation of xi about v = 1/2."""

SMOOTHING = 1e-8
"""Added, squared, under roots: norms have a gradient at zero, too."""


@dataclass(frozen=True, eq=False)
class UnitSurface:
    """The full shape scaled to area 1.

    - vertex_areas: (m,) sums to 1
    - faces: (f, 3); face_areas: (f,) weighted, sums to 1
    - gradients: (f, 3, 3) of the hat function of each corner
    """

    vertex_areas: FloatArray
    faces: IntArray
    face_areas: FloatArray
    gradients: FloatArray


def unit_surface(full: Surface) -> UnitSurface:
    """The quantities of the full shape that the energy needs."""
    from acnn.surface.laplacian import hat_gradients

    area = float(full.vertex_areas.sum())
    return UnitSurface(
        full.vertex_areas / area,
        full.faces,
        full.face_weights * full.face_areas / area,
        hat_gradients(full) * np.sqrt(area),
    )


def eta(v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Membership in 0..1 and its derivative: eta(v) = (tanh(s (v - 1/2)) + 1) / 2 with s = `STEEPNESS`."""
    t = np.tanh(STEEPNESS * (v - 0.5))
    return 0.5 * (t + 1.0), 0.5 * STEEPNESS * (1.0 - t * t)


def xi(v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Closeness to the border eta(v) = 1/2 and its derivative: exp(-(v - 1/2)^2 / (2 sigma^2)), sigma = `WIDTH`."""
    value = np.exp(-((v - 0.5) ** 2) / (2.0 * WIDTH**2))
    return value, -(v - 0.5) / WIDTH**2 * value


def data_term(functional_map: FloatArray, a: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
    """|C A - B|_{2,1}, the sum of the lengths of columns, which lets single functions disagree; gradient in C.

    - functional_map: (k_full, k_part); a: (k_part, q); b: (k_full, q)
    """
    residual = functional_map @ a - b
    length = _lengths(residual)
    return float(length.sum()), (residual / length) @ a.T


def data_term_of_part(
    v: FloatArray, mapped: FloatArray, eigenfunctions: FloatArray, functions: FloatArray, areas: FloatArray
) -> tuple[float, FloatArray]:
    """The same with C A held and B(eta(v)) = Psi^T diag(areas eta(v)) G; gradient in v.

    - v: (m,); mapped: (k_full, q), C A; eigenfunctions: (m, k_full), Psi; functions: (m, q), G; areas: (m,)
    """
    inside, slope = eta(v)
    residual = mapped - eigenfunctions.T @ ((areas * inside)[:, None] * functions)
    length = _lengths(residual)
    along = np.einsum("mq,mq->m", eigenfunctions @ (residual / length), functions)
    return float(length.sum()), -areas * slope * along


def area_term(v: FloatArray, areas: FloatArray, part_area: float) -> tuple[float, FloatArray]:
    """(area(part) - int eta(v))^2, gradient in v."""
    inside, slope = eta(v)
    missing = part_area - float(areas @ inside)
    return missing**2, -2.0 * missing * areas * slope


def border_term(v: FloatArray, full: UnitSurface) -> tuple[float, FloatArray]:
    """int xi(v) |grad v|, the length of the part's border (Mumford and Shah), gradient in v.

    v is linear on each face; xi is the mean over its corners.
    """
    near, slope = xi(v)
    corners = v[full.faces]
    gradient = np.einsum("fk,fka->fa", corners, full.gradients)
    steep = np.sqrt((gradient**2).sum(axis=1) + SMOOTHING**2)
    weight = near[full.faces].mean(axis=1)
    by_corner = slope[full.faces] / 3.0 * steep[:, None] + np.einsum(
        "fka,fa->fk", full.gradients, gradient * (weight / steep)[:, None]
    )
    by_corner *= full.face_areas[:, None]
    total = np.bincount(full.faces.ravel(), weights=by_corner.ravel(), minlength=len(v)).astype(float)
    return float(full.face_areas @ (weight * steep)), total


def mask_term(functional_map: FloatArray, mask: FloatArray) -> tuple[float, FloatArray]:
    """|C o W|^2, small where C follows the slanted diagonal; gradient in C."""
    masked = functional_map * mask
    return float((masked**2).sum()), 2.0 * masked * mask


def off_diagonal_term(functional_map: FloatArray) -> tuple[float, FloatArray]:
    """sum_{i != j} (C^T C)_ij^2, small where columns are orthogonal; gradient in C."""
    gram = functional_map.T @ functional_map
    np.fill_diagonal(gram, 0.0)
    return float((gram**2).sum()), 4.0 * functional_map @ gram


def diagonal_term(functional_map: FloatArray, wanted: FloatArray) -> tuple[float, FloatArray]:
    """sum_i ((C^T C)_ii - d_i)^2, small where the first r columns have length 1 and the others 0; gradient in C."""
    excess = (functional_map**2).sum(axis=0) - wanted
    return float((excess**2).sum()), 4.0 * functional_map * excess


def _lengths(columns: FloatArray) -> FloatArray:
    return np.sqrt((columns**2).sum(axis=0) + SMOOTHING**2)
