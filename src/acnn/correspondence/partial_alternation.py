"""Minimise the energy of a partial functional map over the map C and the part v in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from acnn.correspondence import partial_energy as energy
from acnn.correspondence.partial_energy import UnitSurface
from acnn.correspondence.partial_spectrum import PartialBases, slanted_mask
from acnn.errors import InputError
from acnn.shapes.shape import FloatArray


@dataclass(frozen=True)
class PartialWeights:
    """Weights of the terms in `partial_energy`, with the data term scaled so that it is 1 where C and v are zero.

    - area, border: mu1, mu2
    - mask, off_diagonal, diagonal: mu3, mu4, mu5
    """

    area: float = 10.0
    border: float = 0.1
    mask: float = 1e-2
    off_diagonal: float = 1e-2
    diagonal: float = 1e-2


@dataclass(frozen=True, eq=False)
class Alternated:
    """Result of `alternate`.

    - functional_map: (k_full, k_part), part to full
    - v: (m,); eta(v) is the part's share of each vertex of the full shape
    - energies: after each half step, first of C, then of v; never rising
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
    """Find the map and the part for functions that correspond.

    Parameters
    - bases: of part and full shape
    - full: the full shape
    - part_functions, full_functions: (n, q) and (m, q), column by column the same quantity
    - start: (k, k) map to start from; None takes the slanted diagonal itself, 1 - W / max W
    - v: (m,) part to start from; None takes all of the full shape (v = 1)
    - k: eigenfunctions of both shapes, fewer where there are fewer
    - rounds: of C, then v
    - steps: of L-BFGS for C and for v in each round
    - weights: of the terms

    Raises InputError where functions do not fit the shapes.
    """
    k_full, k_part = min(k, bases.full.size), min(k, bases.part.size)
    if len(part_functions) != len(bases.part) or len(full_functions) != len(bases.full):
        raise InputError(
            f"Functions have {len(part_functions)} and {len(full_functions)} rows; the part has {len(bases.part)} "
            f"vertices, the full shape {len(bases.full)}."
        )
    if part_functions.shape[1] != full_functions.shape[1] or not part_functions.shape[1]:
        raise InputError(
            f"{part_functions.shape[1]} functions on the part cannot correspond to {full_functions.shape[1]}."
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
            (1.0, energy.data_term(c, a, b)),
            (weights.mask, energy.mask_term(c, mask)),
            (weights.off_diagonal, energy.off_diagonal_term(c)),
            (weights.diagonal, energy.diagonal_term(c, wanted)),
        )

    def of_part(u: FloatArray, mapped: FloatArray) -> tuple[float, FloatArray]:
        return _sum(
            (1.0, energy.data_term_of_part(u, mapped, psi, functions, full.vertex_areas)),
            (weights.area, energy.area_term(u, full.vertex_areas, bases.share)),
            (weights.border, energy.border_term(u, full)),
        )

    energies: list[float] = []
    for _ in range(rounds):
        inside = energy.eta(part)[0]
        b = psi.T @ ((full.vertex_areas * inside)[:, None] * functions)
        current, of_c = _minimise(partial(of_map, b=b), current, steps[0])
        mapped = current @ a
        rest = of_c - energy.data_term(current, a, b)[0]
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

    # v has one entry per vertex and gradients as small as its area: they are brought to the size of v first.
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
