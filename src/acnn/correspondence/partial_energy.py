"""Energy of a partial functional map: its minimisation, the spectra of both shapes, and its terms and gradients.

    |C A - B(eta(v))|_{2,1}  +  mu1 (area(part) - int eta(v))^2  +  mu2 int xi(v) |grad v|
    +  mu3 |C o W|^2  +  mu4 sum_{i != j} (C^T C)_ij^2  +  mu5 sum_i ((C^T C)_ii - d_i)^2

C (k_full, k_part) maps coefficients of functions on the partial shape to those on the full shape; A and B are
coefficients of corresponding functions; v marks the region of the partial shape on the full shape. Rodola, Cosmo,
Bronstein, Torsello, Cremers, Partial functional correspondence, 2016. Areas are fractions of the full shape's area
and lengths are over its root, so that no weight depends on the unit of length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from acnn.correspondence.functional_map import SpectralBasis
from acnn.errors import InputError
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

STEEPNESS = 6.0
"""Of eta: with the paper's 2 a vertex inside (v = 1) would count 0.88; with the 6 of its public code 0.998."""

WIDTH = 0.2
"""Standard deviation of xi about v = 1/2."""

SMOOTHING = 1e-8
"""Added, squared, under roots, so that norms have a gradient at zero."""


@dataclass(frozen=True, eq=False)
class UnitSurface:
    """The full shape scaled to area 1.

    Attributes
    ----------
    vertex_areas : (m,) array
        Sums to 1.
    faces : (f, 3) array
    face_areas : (f,) array
        Weighted, sums to 1.
    gradients : (f, 3, 3) array
        Of the hat function of each corner.
    """

    vertex_areas: FloatArray
    faces: IntArray
    face_areas: FloatArray
    gradients: FloatArray


def unit_surface(full: Surface) -> UnitSurface:
    """Compute the quantities of the full shape that the energy needs."""
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
    """Closeness to the boundary eta(v) = 1/2 and its derivative: exp(-(v - 1/2)^2 / (2 sigma^2)), sigma = `WIDTH`."""
    value = np.exp(-((v - 0.5) ** 2) / (2.0 * WIDTH**2))
    return value, -(v - 0.5) / WIDTH**2 * value


def data_term(functional_map: FloatArray, a: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
    """|C A - B|_{2,1}, the sum of the lengths of columns, robust to single functions that disagree; gradient in C.

    Parameters
    ----------
    functional_map : (k_full, k_part) array
    a : (k_part, q) array
    b : (k_full, q) array
    """
    residual = functional_map @ a - b
    length = _lengths(residual)
    return float(length.sum()), (residual / length) @ a.T


def data_term_of_region(
    v: FloatArray, mapped: FloatArray, eigenfunctions: FloatArray, functions: FloatArray, areas: FloatArray
) -> tuple[float, FloatArray]:
    """The same with C A fixed and B(eta(v)) = Psi^T diag(areas eta(v)) G; gradient in v.

    Parameters
    ----------
    v : (m,) array
    mapped : (k_full, q) array
        C A.
    eigenfunctions : (m, k_full) array
        Psi.
    functions : (m, q) array
        G.
    areas : (m,) array
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


def boundary_term(v: FloatArray, full: UnitSurface) -> tuple[float, FloatArray]:
    """int xi(v) |grad v|, the length of the region's boundary (Mumford and Shah), gradient in v.

    v is linear on each face; xi is the mean over its corners.
    """
    closeness, slope = xi(v)
    corners = v[full.faces]
    gradient = np.einsum("fk,fka->fa", corners, full.gradients)
    steep = np.sqrt((gradient**2).sum(axis=1) + SMOOTHING**2)
    weight = closeness[full.faces].mean(axis=1)
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


SPREAD = 0.03
"""Decay of the mask of the slanted diagonal towards higher frequencies, as published."""


@dataclass(frozen=True, eq=False)
class PartialBases:
    """Eigenfunctions of the partial and the full shape in ONE unit of area, that of the full shape.

    Attributes
    ----------
    part : SpectralBasis
        Eigenvalues, functions and mass as in `SpectralBasis`, but the mass sums to `share`.
    full : SpectralBasis
        As in `SpectralBasis`.
    share : float
        Area of the partial shape over that of the full shape.
    """

    part: SpectralBasis
    full: SpectralBasis
    share: float

    def rank(self, k: int) -> int:
        """Number of eigenfunctions of the partial shape that correspond to the first k of the full shape."""
        return estimated_rank(self.part.eigenvalues, self.full.eigenvalues[:k])


def partial_bases(part: Surface, full: Surface, part_basis: SpectralBasis, full_basis: SpectralBasis) -> PartialBases:
    """Bring the bases of both shapes into one unit of area.

    Parameters
    ----------
    part, full : Surface
        In the same unit of length.
    part_basis, full_basis : SpectralBasis
        From `basis_of`.

    Returns
    -------
    PartialBases
        In the unit of the full shape.

    Raises
    ------
    InputError
        Where a basis does not belong to its shape, or the shapes are in different units of length.
    """
    for basis, surface, name in ((part_basis, part, "partial shape"), (full_basis, full, "full shape")):
        if len(basis) != len(surface.vertices):
            raise InputError(f"The basis of the {name} has {len(basis)} vertices, the {name} {len(surface.vertices)}.")
    share = float(part.vertex_areas.sum() / full.vertex_areas.sum())
    if not share < 1.5:
        raise InputError(
            f"The partial shape has {share:.2g} times the area of the full shape. Use the same unit of length: "
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


@dataclass(frozen=True)
class PartialWeights:
    """Weights of the terms of the energy, with the data term scaled so that it is 1 where C and v are zero.

    Attributes
    ----------
    area, border : float
        Mu1, mu2.
    mask, off_diagonal, diagonal : float
        Mu3, mu4, mu5.
    """

    area: float = 10.0
    border: float = 0.1
    mask: float = 1e-2
    off_diagonal: float = 1e-2
    diagonal: float = 1e-2


@dataclass(frozen=True, eq=False)
class Alternated:
    """Result of `alternate`.

    Attributes
    ----------
    functional_map : (k_full, k_part) array
        Of the partial to the full shape.
    v : (m,) array
        eta(v) is the membership of each vertex of the full shape in the region.
    energies : tuple[float, ...]
        After each half step, first of C, then of v; never rising.
    """

    functional_map: FloatArray
    v: FloatArray
    energies: tuple[float, ...]


def alternate(
    bases: PartialBases,
    full: UnitSurface,
    part_functions: FloatArray,
    full_functions: FloatArray,
    start: FloatArray | None = None,
    *,
    v: FloatArray | None = None,
    k: int = 100,
    rounds: int = 3,
    steps: tuple[int, int] = (150, 40),
    weights: PartialWeights = PartialWeights(),  # noqa: B008 (frozen)
) -> Alternated:
    """Minimise the energy over the map and the region in alternation, for corresponding functions.

    Parameters
    ----------
    bases : PartialBases
        Of the partial and the full shape.
    full : UnitSurface
        The full shape.
    part_functions, full_functions : (n, q) and (m, q) array
        Column by column the same quantity.
    start : (k, k) array or None
        Map to start from; None takes the slanted diagonal itself, 1 - W / max W.
    v : (m,) array or None
        Region to start from; None takes all of the full shape (v = 1).
    k : int
        Number of eigenfunctions of both shapes, as far as they have so many.
    rounds : int
        Number of alternations, of C, then v.
    steps : tuple[int, int]
        Of L-BFGS for C and for v in each round.
    weights : PartialWeights
        Of the terms.

    Returns
    -------
    Alternated
        The map and the region.

    Raises
    ------
    InputError
        Where functions do not fit the shapes.
    """
    k_full, k_part = min(k, bases.full.size), min(k, bases.part.size)
    if len(part_functions) != len(bases.part) or len(full_functions) != len(bases.full):
        raise InputError(
            f"Functions have {len(part_functions)} and {len(full_functions)} rows; the partial shape has "
            f"{len(bases.part)} vertices, the full shape {len(bases.full)}."
        )
    if part_functions.shape[1] != full_functions.shape[1] or not part_functions.shape[1]:
        raise InputError(
            f"{part_functions.shape[1]} functions on the partial shape cannot correspond to {full_functions.shape[1]}."
        )
    phi, psi = bases.part.first(k_part), bases.full.first(k_full)
    a = phi.T @ (bases.part.mass[:, None] * part_functions)
    scale = 1.0 / max(float(np.linalg.norm(a, axis=0).sum()), 1e-30)
    a, functions = a * scale, full_functions * scale
    rank = min(bases.rank(k_full), k_part)
    mask = slanted_mask(k_full, k_part, rank)
    wanted = (np.arange(k_part) < rank).astype(float)
    if start is None:
        current = 1.0 - mask / mask.max()
    else:
        current = np.zeros((k_full, k_part))
        rows, columns = min(k_full, start.shape[0]), min(k_part, start.shape[1])
        current[:rows, :columns] = start[:rows, :columns]
    part = np.ones(len(bases.full)) if v is None else np.asarray(v, dtype=float).copy()

    def of_map(c: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
        return _sum(
            (1.0, data_term(c, a, b)),
            (weights.mask, mask_term(c, mask)),
            (weights.off_diagonal, off_diagonal_term(c)),
            (weights.diagonal, diagonal_term(c, wanted)),
        )

    def of_part(u: FloatArray, mapped: FloatArray) -> tuple[float, FloatArray]:
        return _sum(
            (1.0, data_term_of_region(u, mapped, psi, functions, full.vertex_areas)),
            (weights.area, area_term(u, full.vertex_areas, bases.share)),
            (weights.border, boundary_term(u, full)),
        )

    energies: list[float] = []
    for _ in range(rounds):
        inside = eta(part)[0]
        b = psi.T @ ((full.vertex_areas * inside)[:, None] * functions)
        current, of_c = _minimise(partial(of_map, b=b), current, steps[0])
        mapped = current @ a
        rest = of_c - data_term(current, a, b)[0]
        energies.append(rest + of_part(part, mapped)[0])
        part, of_v = _minimise(partial(of_part, mapped=mapped), part, steps[1])
        energies.append(rest + of_v)
    return Alternated(current, part, tuple(energies))


def _sum(*terms: tuple[float, tuple[float, FloatArray]]) -> tuple[float, FloatArray]:
    value = sum(weight * term[0] for weight, term in terms)
    gradient = sum((weight * term[1] for weight, term in terms[1:]), start=terms[0][0] * terms[0][1][1])
    return float(value), gradient


def _minimise(
    function: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray, steps: int
) -> tuple[FloatArray, float]:
    """L-BFGS on an array of any shape; the start itself where nothing lower was found."""
    from scipy.optimize import minimize

    def flat(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = function(x.reshape(start.shape))
        return value, gradient.ravel()

    # v has one entry per vertex and gradients as small as its area: they are scaled to the size of v first.
    before, gradient = flat(start.ravel())
    size = max(float(np.abs(gradient).max()), 1e-30)
    found = minimize(
        lambda x: tuple(part / size for part in flat(x)),
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxfun": 2 * steps + 20, "maxcor": 10, "ftol": 1e-7, "gtol": 1e-6},
    )
    after = float(found.fun) * size
    if not after < before:
        return start, before
    return found.x.reshape(start.shape), after
