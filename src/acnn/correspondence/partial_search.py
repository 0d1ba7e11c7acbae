"""The search for the best map of a part to its full shape: all that is tried for one pair, judged without the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from acnn.correspondence.distortion import edge_distortions
from acnn.correspondence.functional_map import functional_map_from_pairs
from acnn.correspondence.guided_zoomout import SUPPORTED, local_support
from acnn.correspondence.partial_alternation import alternate
from acnn.correspondence.partial_energy import eta, unit_surface
from acnn.correspondence.partial_spectrum import PartialBases
from acnn.correspondence.partial_zoomout import (
    FEWEST,
    part_size,
    partial_sizes,
    partial_zoomout,
    robust_partial_map,
    spread_samples,
)
from acnn.correspondence.soft_map import SoftMap
from acnn.correspondence.zoomout import spread_vertices
from acnn.errors import InputError
from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.edges import edges_with_faces
from acnn.surface.surface import Surface

STARTS = (20, 40, 80)
"""Eigenfunctions of the full shape ZoomOut is started from: few are safe against outliers, a small part needs more."""

ALTERNATED = 100
"""Eigenfunctions of the alternation over map and part."""


@dataclass(frozen=True, eq=False)
class PartialMap:
    """A map of a part to its full shape.

    - part_to_full: (n,) vertices of the full shape
    - inside: (m,) in 0..1, eta(v): how much of each vertex of the full shape belongs to the part
    - functional_map: (k_full, k_part) C, coefficients on the part to those on the full shape, in `partial_bases`
    - rank: r, how many columns of a square C carry anything
    - facts: `used` (`pfm`, or `none` where the start was kept), `why` in words, `share` of the area, `eigenfunctions`,
      and of the map before and after: `distortion`, `agreement` (see `partial_map`); `energies` of the last alternation
    """

    part_to_full: IntArray
    inside: FloatArray
    functional_map: FloatArray
    rank: int
    facts: dict[str, Any]


class PartialSearch:
    """All maps that are tried for one pair, and the best so far."""

    def __init__(self, soft_map: SoftMap, part: Surface, full: Surface, bases: PartialBases) -> None:
        if soft_map.vertices.shape[0] != len(part.vertices) or soft_map.reference_size != len(full.vertices):
            raise InputError(
                f"{soft_map!r} does not belong to a part of {len(part.vertices)} and a full shape of "
                f"{len(full.vertices)} vertices."
            )
        self.soft_map, self.part, self.full, self.bases = soft_map, part, full, bases
        self.unit = unit_surface(full)
        self.samples = spread_samples(bases)
        self.edges = edges_with_faces(part.faces)[0]
        self.start = soft_map.query_to_reference
        self.best, self.distortion, self.from_start = self.start, self._distortion(self.start), True
        self.agreement = 1.0
        self.support = local_support(self.start, part, full)

    def run(self, rounds: int, functions: tuple[FloatArray, FloatArray] | None = None) -> PartialMap:
        """Try all maps.

        - rounds: of alternation and ZoomOut at most
        - functions: (n, q) and (m, q) that correspond, for the first round; None takes the matches found
        """
        before, k = self.distortion, self.bases.full.size
        rank = self.bases.rank(k)
        facts: dict[str, Any] = {"share": self.bases.share, "eigenfunctions": k, "energies": []}
        if rank <= FEWEST:
            why = f"only {rank} eigenfunctions of so small a part can be told apart on the full shape"
            facts |= self._compared(before) | _kept(why)
            return PartialMap(self.start.copy(), self._spread_of_matches(), np.zeros((k, 0)), rank, facts)
        for size in STARTS:
            if size == STARTS[0] or size < k:
                self._try(size)
        inside = self._spread_of_matches()
        for i in range(rounds):
            best, given = self.best, functions if i == 0 else None
            size = min(STARTS[1], k)
            if given is None:
                given, start = self._kernels_at_matches(), self._fitted(min(ALTERNATED, k))
            else:
                start = robust_partial_map(self.soft_map, self.bases, size)
            found = alternate(self.bases, self.unit, *given, start, v=self._spread_of_matches(), k=min(ALTERNATED, k))
            inside = eta(found.v)[0]
            facts["energies"] = list(found.energies)
            self._try(size, found.functional_map[:size, : part_size(self.bases, size)], inside)
            if self.best is best and (i > 0 or functions is None):
                break
        facts |= self._compared(before)
        if self.from_start:
            facts |= _kept("no map was found that distorts less and agrees with the start")
        else:
            facts |= {"used": "pfm", "why": "distorts lengths less, and agrees with the trusted matches"}
        return PartialMap(self.best.copy(), inside, self._fitted(k), rank, facts)

    def _try(self, size: int, start: FloatArray | None = None, inside: FloatArray | None = None) -> None:
        sizes = partial_sizes(self.bases, size)
        guided = partial_zoomout(
            self.soft_map,
            self.part,
            self.full,
            self.bases,
            sizes=sizes,
            start=start,
            inside=inside,
            samples=self.samples,
        )
        distortion, agreement = self._distortion(guided.part_to_full), self._agreement(guided.part_to_full)
        if agreement >= 0.5 and distortion < self.distortion:
            self.best, self.distortion, self.agreement = guided.part_to_full, distortion, agreement
            self.from_start = False

    def _compared(self, before: float) -> dict[str, dict[str, float]]:
        return {
            "distortion": {"before": before, "after": self.distortion},
            "agreement": {"before": 1.0, "after": self.agreement},
        }

    def _kernels_at_matches(self, count: int = 80) -> tuple[FloatArray, FloatArray]:
        """(n, q) and (m, q) heat kernels about spread matches that fit their neighbours best."""
        support = local_support(self.best, self.part, self.full)
        spread = spread_vertices(self.bases.part, 4 * count)
        chosen = spread[np.argsort(-support[spread], kind="stable")[:count]]
        # wide enough for 30 eigenfunctions to tell: about as far as the coarsest map can be wrong
        time = 1.0 / float(self.bases.full.eigenvalues[min(30, self.bases.full.size - 1)])
        part, full, there = self.bases.part, self.bases.full, self.best[chosen]
        return (
            (part.functions * np.exp(-time * part.eigenvalues)) @ part.functions[chosen].T,
            (full.functions * np.exp(-time * full.eigenvalues)) @ full.functions[there].T,
        )

    def _fitted(self, k: int) -> FloatArray:
        """(k, s) functional map of the best matches, those that fit their neighbours counting most."""
        weights = self.bases.part.mass * (0.05 + local_support(self.best, self.part, self.full) ** 2)
        vertices = np.arange(len(self.best), dtype=np.int32)
        size = (part_size(self.bases, k), k)
        return functional_map_from_pairs(self.bases.part, self.bases.full, vertices, self.best, size, weights).T

    def _spread_of_matches(self) -> FloatArray:
        """(m,) the part's area carried along the best matches, spread by heat: about 1 inside the part, 0 outside."""
        psi, values = self.bases.full.functions, self.bases.full.eigenvalues
        time = 1.0 / float(values[min(100, len(values) - 1)])
        heat = psi @ (np.exp(-time * values) * (self.bases.part.mass @ psi[self.best]))
        return np.clip(heat, 0.0, 1.0)

    def _distortion(self, matched: IntArray) -> float:
        return float(edge_distortions(self.edges, matched, self.part.vertices, self.full.vertices).mean())

    def _agreement(self, matched: IntArray) -> float:
        trust = self.bases.part.mass * self.soft_map.confidence
        supported = trust * (self.support >= SUPPORTED)
        # a start without any coherent patch has nothing better than its confidence
        trust = supported if supported.sum() > 0.05 * trust.sum() else trust
        apart = np.linalg.norm(self.full.vertices[matched] - self.full.vertices[self.start], axis=1)
        near = apart < 0.1 * np.sqrt(self.full.vertex_areas.sum())
        return float((trust * near).sum() / max(float(trust.sum()), 1e-30))


def _kept(why: str) -> dict[str, str]:
    return {"used": "none", "why": why}
