"""The search for the best map of a partial shape to its full shape: all candidates, judged without ground truth."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from acnn.correspondence.functional_map import functional_map_from_pairs
from acnn.correspondence.guided_zoomout import LIMIT, OUTLIER, SUPPORTED, local_support, match_vertices
from acnn.correspondence.partial_energy import PartialBases, alternate, eta, unit_surface
from acnn.correspondence.point_maps import edge_distortions
from acnn.correspondence.soft_map import SoftMap
from acnn.correspondence.zoomout import mass_around, spread_vertices
from acnn.errors import InputError
from acnn.shapes.topology import mesh_edges
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

logger = logging.getLogger("acnn.correspondence")

STARTS = (20, 40, 80)
"""Eigenfunctions of the full shape that ZoomOut starts from: few are robust to outliers, a small partial shape needs
more."""

ALTERNATED = 100
"""Eigenfunctions in the alternating minimisation over the map and the region of the partial shape."""

FEWEST = 3
"""Rank up to which no map is fitted: the partial shape is too small."""

SAMPLES = 3000
"""Vertices that determine a functional map of a few hundred eigenfunctions; more only cost time."""

MARGIN = 1.5
"""Eigenfunctions of the partial shape over the rank. On cuts of SHREC'16 from SHOT matches, mean error x 100 of four
partial shapes with 1 and 1.5: 1.0 and 1.1, 4.5 and 1.3, 3.4 and 2.1, 6.6 and 3.5."""


@dataclass(frozen=True, eq=False)
class PartialMap:
    """A map of a partial shape to its full shape.

    Attributes
    ----------
    part_to_full : (n,) array
        Vertices of the full shape.
    inside : (m,) array
        In 0..1, eta(v): to what degree each vertex of the full shape belongs to the partial shape.
    functional_map : (k_full, k_part) array
        C, from coefficients on the partial shape to those on the full shape, in `partial_bases`.
    rank : int
        Number r of columns of a square C that are not zero.
    report : PartialReport
        What was done, and why.
    """

    part_to_full: IntArray
    inside: FloatArray
    functional_map: FloatArray
    rank: int
    report: PartialReport


@dataclass(frozen=True)
class Change:
    """A figure of a map before and after refinement."""

    before: float
    after: float


@dataclass(frozen=True)
class PartialReport:
    """What the search for a partial map did.

    Attributes
    ----------
    share : float
        Area of the partial shape as a fraction of that of the full shape.
    eigenfunctions : int
        Number of eigenfunctions used of the full shape.
    energies : tuple[float, ...]
        Of the last alternation; empty where there was none.
    distortion : Change
        Mean distortion of edges (see `partial_map`).
    agreement : Change
        Fraction of the trusted matches of the start that the map agrees with (see `partial_map`).
    used : str
        `pfm`, or `none` where the start was kept.
    why : str
        The reason for that.
    """

    share: float
    eigenfunctions: int
    energies: tuple[float, ...]
    distortion: Change
    agreement: Change
    used: Literal["pfm", "none"]
    why: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `acnn match --json` prints them."""
        return asdict(self) | {"energies": list(self.energies)}


@dataclass(frozen=True, eq=False)
class GuidedPart:
    """Result of `partial_zoomout`.

    Attributes
    ----------
    part_to_full : (n,) array
        Vertices of the full shape.
    functional_map : (k_full, k_part) array
        C of the last size, part to full, in the bases it was made with.
    from_start : (n,) array
        True where the match is one of the soft map's.
    """

    part_to_full: IntArray
    functional_map: FloatArray
    from_start: NDArray[np.bool_]


class PartialSearch:
    """The candidate maps of one pair of shapes, and the best so far.

    Parameters
    ----------
    soft_map : SoftMap
        Of the partial to the full shape, the start.
    part, full : Surface
        In the same unit of length.
    bases : PartialBases
        Of both.

    Raises
    ------
    InputError
        Where the soft map belongs to other shapes.
    """

    def __init__(self, soft_map: SoftMap, part: Surface, full: Surface, bases: PartialBases) -> None:
        if soft_map.vertices.shape[0] != len(part.vertices) or soft_map.reference_size != len(full.vertices):
            raise InputError(
                f"{soft_map!r} does not belong to a partial shape of {len(part.vertices)} and a full shape of "
                f"{len(full.vertices)} vertices."
            )
        self.soft_map, self.part, self.full, self.bases = soft_map, part, full, bases
        self.unit = unit_surface(full)
        self.samples = spread_samples(bases)
        self.edges = mesh_edges(part.faces).vertices
        self.start = soft_map.query_to_reference
        self.best, self.distortion, self.from_start = self.start, self._distortion(self.start), True
        self.agreement = 1.0
        self.support = local_support(self.start, part, full)

    def run(self, rounds: int, functions: tuple[FloatArray, FloatArray] | None = None) -> PartialMap:
        """Try all candidates and keep the best map.

        Parameters
        ----------
        rounds : int
            Of alternating minimisation and ZoomOut at most.
        functions : tuple[array, array] or None
            (n, q) and (m, q) corresponding functions for the first round; None takes heat kernels at the best matches.

        Returns
        -------
        PartialMap
            The least distorted map that agrees with the start, or the start.
        """
        before, k = self.distortion, self.bases.full.size
        rank = self.bases.rank(k)
        energies: tuple[float, ...] = ()
        if rank <= FEWEST:
            why = f"only {rank} eigenfunctions of such a small partial shape can be identified on the full shape"
            logger.debug("partial map: the start is kept: %s", why)
            report = self._report(before, energies, "none", why)
            return PartialMap(self.start.copy(), self._spread_of_matches(), np.zeros((k, 0)), rank, report)
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
            energies = found.energies
            self._try(size, found.functional_map[:size, : part_size(self.bases, size)], inside)
            if self.best is best and (i > 0 or functions is None):
                break
        if self.from_start:
            why = "no map was found that distorts less and agrees with the start"
            logger.debug("partial map: the start is kept: %s", why)
            report = self._report(before, energies, "none", why)
        else:
            why = "distorts lengths less, and agrees with the trusted matches"
            report = self._report(before, energies, "pfm", why)
        return PartialMap(self.best.copy(), inside, self._fitted(k), rank, report)

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
        else:
            text = "partial map from %d eigenfunctions rejected: distortion %.3g (best %.3g), agreement %.2f"
            logger.debug(text, size, distortion, self.distortion, agreement)

    def _report(
        self, before: float, energies: tuple[float, ...], used: Literal["pfm", "none"], why: str
    ) -> PartialReport:
        return PartialReport(
            self.bases.share,
            self.bases.full.size,
            energies,
            Change(before, self.distortion),
            Change(1.0, self.agreement),
            used,
            why,
        )

    def _kernels_at_matches(self, count: int = 80) -> tuple[FloatArray, FloatArray]:
        """(n, q) and (m, q) heat kernels at evenly spread matches that are consistent with their neighbours."""
        support = local_support(self.best, self.part, self.full)
        spread = spread_vertices(self.bases.part, 4 * count)
        chosen = spread[np.argsort(-support[spread], kind="stable")[:count]]
        # Wide enough to be resolved by 30 eigenfunctions: about as far as the coarsest map can be wrong.
        time = 1.0 / float(self.bases.full.eigenvalues[min(30, self.bases.full.size - 1)])
        part, full, there = self.bases.part, self.bases.full, self.best[chosen]
        return (
            (part.functions * np.exp(-time * part.eigenvalues)) @ part.functions[chosen].T,
            (full.functions * np.exp(-time * full.eigenvalues)) @ full.functions[there].T,
        )

    def _fitted(self, k: int) -> FloatArray:
        """(k, s) functional map of the best matches, weighted by how consistent they are with their neighbours."""
        weights = self.bases.part.mass * (0.05 + local_support(self.best, self.part, self.full) ** 2)
        vertices = np.arange(len(self.best), dtype=np.int32)
        size = (part_size(self.bases, k), k)
        return functional_map_from_pairs(self.bases.part, self.bases.full, vertices, self.best, size, weights).T

    def _spread_of_matches(self) -> FloatArray:
        """(m,) area transferred along the best matches, smoothed by heat: about 1 inside the region, 0 outside."""
        psi, values = self.bases.full.functions, self.bases.full.eigenvalues
        time = 1.0 / float(values[min(100, len(values) - 1)])
        heat = psi @ (np.exp(-time * values) * (self.bases.part.mass @ psi[self.best]))
        return np.clip(heat, 0.0, 1.0)

    def _distortion(self, matched: IntArray) -> float:
        return float(edge_distortions(self.edges, matched, self.part.vertices, self.full.vertices).mean())

    def _agreement(self, matched: IntArray) -> float:
        trust = self.bases.part.mass * self.soft_map.confidence
        supported = trust * (self.support >= SUPPORTED)
        # A start without any consistent patch has nothing better than its confidence.
        trust = supported if supported.sum() > 0.05 * trust.sum() else trust
        apart = np.linalg.norm(self.full.vertices[matched] - self.full.vertices[self.start], axis=1)
        near = apart < 0.1 * np.sqrt(self.full.vertex_areas.sum())
        return float((trust * near).sum() / max(float(trust.sum()), 1e-30))


def partial_zoomout(
    soft_map: SoftMap,
    part: Surface,
    full: Surface,
    bases: PartialBases,
    *,
    sizes: Sequence[int],
    start: FloatArray | None = None,
    inside: FloatArray | None = None,
    samples: tuple[IntArray, FloatArray] | None = None,
) -> GuidedPart:
    """Refine a soft map of a partial shape to its full shape by ZoomOut along the slanted diagonal.

    Parameters
    ----------
    soft_map : SoftMap
        All its listed matches are candidates.
    part, full : Surface
        In the same unit of length.
    bases : PartialBases
        Of both.
    sizes : Sequence[int]
        Numbers of eigenfunctions of the full shape, ascending; see `partial_sizes`.
    start : (k_full, k_part) array or None
        Functional map to start from; None fits one to the soft map.
    inside : (m,) array or None
        In 0..1, the region of the partial shape on the full shape; None is 1 everywhere.
    samples : tuple[array, array] or None
        Vertices of the partial shape used before the last size and the area that each represents, see `spread_samples`;
        None is all of them.

    Returns
    -------
    GuidedPart
        The refined map.

    Raises
    ------
    InputError
        Where sizes do not ascend or the soft map belongs to other shapes.
    """
    if soft_map.vertices.shape[0] != len(bases.part) or soft_map.reference_size != len(bases.full):
        raise InputError(
            f"{soft_map!r} does not belong to a partial shape of {len(bases.part)} and a full shape of "
            f"{len(bases.full)} vertices."
        )
    if not len(sizes) or any(b <= a for a, b in pairwise(sizes)):
        raise InputError(f"The sizes of ZoomOut must ascend; they are {list(sizes)}.")
    bases.full.first(sizes[-1])  # raises at once where the basis is too small
    edges = mesh_edges(full.faces).vertices
    support = local_support(soft_map.query_to_reference, part, full)
    current = robust_partial_map(soft_map, bases, sizes[0]) if start is None else start
    everything = np.arange(len(bases.part), dtype=np.int32), bases.part.mass
    for k in (*sizes[1:], None):
        rows, mass = everything if k is None or samples is None else samples
        part_embedding = (bases.part.first(current.shape[1])[rows] @ current.T).astype(np.float32)
        full_embedding = bases.full.first(current.shape[0]).astype(np.float32)
        matched, from_start = match_vertices(
            part_embedding, full_embedding, soft_map.rows(rows), support[rows], full, edges, LIMIT, OUTLIER
        )
        if k is not None:
            residual = ((part_embedding - full_embedding[matched]) ** 2).sum(axis=1, dtype=float)
            weights = mass / (1.0 + residual / max(4.0 * float(np.median(residual)), 1e-12))
            if inside is not None:
                weights *= np.maximum(inside[matched], 1e-3)
            size = (part_size(bases, k), k)
            current = functional_map_from_pairs(bases.part, bases.full, rows, matched, size, weights).T
    return GuidedPart(matched, current, from_start)


def robust_partial_map(soft_map: SoftMap, bases: PartialBases, k: int, rounds: int = 6) -> FloatArray:
    """(k, s) functional map of the best matches, weighted by area and confidence; outliers lose their weight.

    Weights are those of `robust_functional_map`: w / (1 + |residual|^2 / median)^2.
    """
    matched = soft_map.query_to_reference
    vertices = np.arange(len(matched), dtype=np.int32)
    size = (part_size(bases, k), k)
    phi, psi = bases.part.first(size[0]), bases.full.first(k)[matched]
    trust = bases.part.mass * np.maximum(soft_map.confidence, 1e-6)
    confident = soft_map.confidence >= np.median(soft_map.confidence)
    weights = trust
    for _ in range(rounds):
        current = functional_map_from_pairs(bases.part, bases.full, vertices, matched, size, weights)
        residual = ((phi @ current - psi) ** 2).sum(axis=1)
        weights = trust / (1.0 + residual / max(float(np.median(residual[confident])), 1e-12)) ** 2
    return current.T


def spread_samples(bases: PartialBases, count: int = SAMPLES) -> tuple[IntArray, FloatArray] | None:
    """(count,) evenly spread vertices of the partial shape and their areas; None where it has few more vertices."""
    if len(bases.part) <= 1.5 * count:
        return None
    rows = spread_vertices(bases.part, count)
    return rows, mass_around(bases.part, rows)


def part_size(bases: PartialBases, k: int) -> int:
    """Number of eigenfunctions of the partial shape that are used with k of the full shape."""
    return min(max(round(MARGIN * bases.rank(k)), FEWEST), bases.part.size)


def partial_sizes(bases: PartialBases, start: int = 20, stop: int | None = None) -> list[int]:
    """Sizes of the full shape's basis from `start` to `stop` (None: all of it), a fifth more each, by 5 to 15."""
    last = bases.full.size if stop is None else min(stop, bases.full.size)
    sizes = [min(start, last)]
    while sizes[-1] < last:
        sizes.append(min(last, sizes[-1] + int(np.clip(sizes[-1] // 5, 5, 15))))
    return sizes
