"""Maps between working copies: making and lifting them, and landmarks that guide a map between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from acnn.correspondence.candidates import MARGIN, Candidate
from acnn.correspondence.judge import map_confidence, map_discontinuity
from acnn.correspondence.landmarks import (
    TOLERANCE,
    Landmarks,
    guide_by_landmarks,
    honour_landmarks,
    likely_exchanges,
)
from acnn.correspondence.lift import LiftedMap, copy_images, lift_map
from acnn.correspondence.map_measures import MapMeasures, MapMeter
from acnn.correspondence.point_maps import vertex_distortions
from acnn.correspondence.refine import RefineMethod, refine
from acnn.correspondence.soft_map import SoftMap, soft_map_from_point_map
from acnn.progress import Progress, begin_stage
from acnn.registration.fitted_map import FittedMap, fit_map
from acnn.runs.match_results import MatchReport
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.surface.geodesics import GeodesicSolver
from acnn.surface.surface import Surface
from acnn.surface.working_copy import WorkingCopy, working_copy
from acnn.types import FloatArray, IntArray

FAR = 0.1
"""Distance, in square roots of the area, from which two matches of a vertex are different ones."""

CUT = 0.2
"""Length over the root of the area that a map is cut by landmarks, above which they contradict the surface unless the
map is clearly better for it: around an ankle. Two right landmarks of built-in humans add nothing to it, exchanged hands
or feet 1.1 to 1.6."""

DIFFERENT, BETTER = 0.01, 0.7
"""Landmarks are taken for exchanged where their exchange moves the matches of more than this fraction of A's area far
away, and where the map costs less than this fraction there. On generated quadrupeds, right landmarks of paws cost 0.08
to 0.21 of what two exchanged ones do, and 0.45 to 0.99 over the full shape: paws are small."""

EXCHANGES = 6
"""Pairs of landmarks that are exchanged to see whether the map becomes better: all those of four paws."""


@dataclass(frozen=True, eq=False)
class WorkingPair:
    """Both shapes with their working copies, and known pairs of their vertices."""

    a: WorkingCopy
    b: WorkingCopy
    landmarks: Landmarks | None = None

    @property
    def landmarks_on_copies(self) -> Landmarks | None:
        """The landmarks as vertices of the copies; one that falls on the same vertex of A's as another is left out."""
        if self.landmarks is None:
            return None
        here, there = self.a.nearest[self.landmarks.a], self.b.nearest[self.landmarks.b]
        first = np.sort(np.unique(here, return_index=True)[1])  # in the order of the user
        return Landmarks(here[first], there[first], tuple(self.landmarks.names[i] for i in first))


@dataclass(frozen=True, eq=False)
class CopyMap:
    """A map between working copies before it is judged; fields as of `PairMatch`.

    `evidence` is the probability of a network near the matches of any map, `backward` the vertices of A that its output
    for B gives and their confidence, `measures` are those of this map, and `fitted` is the same map in points on B.
    """

    a: Surface
    b: Surface
    a_to_b: IntArray
    through: tuple[IntArray, IntArray] | None
    report: MatchReport
    soft_map: SoftMap | None = None
    evidence: Callable[[IntArray], FloatArray] | None = None
    backward: tuple[IntArray, FloatArray] | None = None
    measures: MapMeasures | None = None
    mirrored: IntArray | None = None
    fitted: FittedMap | None = None

    def measured(self, meter: MapMeter) -> CopyMap:
        """The same map with its measures."""
        evidence = None if self.evidence is None else self.evidence(self.a_to_b)
        return replace(self, measures=meter(self.a_to_b, evidence))

    @property
    def candidate(self) -> Candidate:
        """The measured map as a candidate."""
        assert self.measures is not None
        return Candidate(self.report.route, self.a_to_b, self.measures)

    @property
    def expected(self) -> float:
        """Fraction of A whose matches are likely to be right."""
        assert self.measures is not None
        return float(self.measures.areas @ map_confidence(self.a_to_b, self.a, self.b, self.measures))


def make_copies(shapes: Sequence[Shape], size: int, coarse: int, progress: Progress | None) -> list[WorkingCopy]:
    """Working copies of shapes (`working_copy`), made side by side."""
    if size and max(len(shape.vertices) for shape in shapes) > size:
        begin_stage(progress, "working copies" if len(shapes) > 1 else "working copy")
    with ThreadPoolExecutor(len(shapes)) as pool:
        return list(pool.map(working_copy, shapes, repeat(size), repeat(coarse)))


def lift_to_reference(
    matched: IntArray, copy: WorkingCopy, surfaces: tuple[Surface, Surface], reference: Mesh
) -> IntArray:
    """Vertices of a reference for all vertices of a shape, from those of its copy; surfaces are those of both."""
    if not copy.is_copy:
        return matched
    return lift_map(matched, copy, WorkingCopy(reference, reference, "the reference", reference), surfaces).a_to_b


def guide_copy_map(found: CopyMap, pair: WorkingPair, method: RefineMethod, meter: MapMeter) -> CopyMap:
    """A map found without landmarks, refined again from what agrees with them and measured; the same without any."""
    landmarks = pair.landmarks_on_copies
    found = found.measured(meter)
    if landmarks is None:
        return found
    guided = _guided(found, landmarks, method).measured(meter)
    contradictions = _contradictions(landmarks, found, guided, method, meter)
    return replace(guided, report=replace(guided.report, landmarks={"contradictions": contradictions}))


def _guided(found: CopyMap, landmarks: Landmarks, method: RefineMethod) -> CopyMap:
    """A map refined again from what agrees with landmarks."""
    start = found.soft_map
    if start is None:
        trust = map_confidence(found.a_to_b, found.a, found.b)
        start = soft_map_from_point_map(found.a_to_b, len(found.b.vertices), trust)
    start = guide_by_landmarks(start, found.a, found.b, landmarks)
    refined = refine(start, found.a, found.b, method)
    matched = refined.query_to_reference
    report = replace(
        found.report,
        distortion=float(vertex_distortions(matched, found.a, found.b).mean()),
        refinement=refined.report.as_dict(),
    )
    through = None if found.through is None else (found.through[1][matched], found.through[1])
    return replace(
        found, a_to_b=matched, through=through, report=report, soft_map=found.soft_map and start, backward=None
    )


def _contradictions(
    landmarks: Landmarks, found: CopyMap, guided: CopyMap, method: RefineMethod, meter: MapMeter
) -> list[str]:
    """Sentences on landmarks that cut the map, or without which or with two exchanged there is a clearly better one.

    Distances between landmarks do not show this: the paws of an animal are about as far from one as from the other.
    The map found without landmarks does not suffice either: it may have exchanged the same limbs.
    """
    cost = (1.0 - MARGIN) * guided.candidate.cost
    exchanges = [] if method == "pfm" or meter.partial else likely_exchanges(landmarks, found.a, found.b, EXCHANGES)
    others = [_guided(found, landmarks.exchanged(*two), method).measured(meter) for two in exchanges]
    gains = [_local_gain(guided, other) for other in others]
    best = int(np.argmin(gains)) if gains else 0
    if gains and gains[best] < BETTER and found.candidate.cost >= (1.0 - MARGIN) * others[best].candidate.cost:
        first, second = (landmarks.names[i] for i in exchanges[best])
        return [
            f"Landmarks {first} and {second} contradict the surface: exchanged, they give a clearly better map. "
            "Are they exchanged?"
        ]
    cuts = [map_discontinuity(one.a_to_b, one.a, one.b) for one in (found, guided)]
    better = guided.candidate.cost < (1.0 - MARGIN) * found.candidate.cost
    if found.candidate.cost >= cost and (cuts[1] - cuts[0] <= CUT or better):
        return []
    distances = GeodesicSolver(found.b).distances_from(landmarks.b)
    away = distances[np.arange(len(landmarks)), found.a_to_b[landmarks.a]] / np.sqrt(found.b.vertex_areas.sum())
    names = [name for name, far in zip(landmarks.names, ~(away <= TOLERANCE), strict=True) if far]
    which = f"Landmarks {', '.join(names)} contradict" if len(names) > 1 else "Landmarks contradict"
    worse = "the map without them is clearly better" if found.candidate.cost < cost else "they cut the map"
    return [f"{which} the surface: {worse}. Are two of them exchanged?"]


def _local_gain(found: CopyMap, other: CopyMap) -> float:
    """Cost of another measured map over that of one, where their matches lie far apart; 1 if they hardly do."""
    assert found.measures is not None
    assert other.measures is not None
    gaps = np.linalg.norm(found.b.vertices[found.a_to_b] - found.b.vertices[other.a_to_b], axis=1)
    apart = gaps > FAR * np.sqrt(found.b.vertex_areas.sum())
    if found.measures.areas[apart].sum() < DIFFERENT:
        return 1.0
    before, after = (
        Candidate("", one.a_to_b, one.measures.within(apart)).cost for one in (found, other) if one.measures is not None
    )
    return after / max(before, np.finfo(float).tiny)


def fit_copy_map(found: CopyMap, pair: WorkingPair, meter: MapMeter) -> CopyMap:
    """A measured map, or the one that a fit of A to B makes where that is no worse (`Candidate`).

    The fit goes along the network output for both shapes where there is one; else, or if that leads to a worse map,
    along the map.
    """
    costs = {"map": found.candidate.cost}
    starts = {"the map": (replace(found, backward=None), found.candidate.cost)}
    if found.soft_map is not None:
        matched = found.soft_map.query_to_reference
        output = replace(found, a_to_b=matched).measured(meter)
        # Refined maps are smoother than a fit along matches that scatter, and no better for that.
        starts = {"the network output": (output, (1.0 + MARGIN) * found.candidate.cost)} | starts
    for name, (start, limit) in starts.items():
        assert start.measures is not None
        trust = map_confidence(start.a_to_b, start.a, start.b, start.measures)
        fitted = fit_map(pair.a.shape, pair.b.shape, (start.a, start.b), start.a_to_b, trust, start.backward)
        if fitted is None:
            continue
        other = _along_fit(found, fitted).measured(meter)
        worse = _less_likely(other, found, meter)
        if worse.any():
            images, normals = copy_images(found.a_to_b, pair.b.shape, (found.a, found.b))
            fitted = fitted.replaced(worse, found.a_to_b, images, normals)
            other = _along_fit(found, fitted).measured(meter)
        costs[f"fit along {name}"] = cost = other.candidate.cost
        if cost <= limit:
            facts = {"with_data": float(fitted.with_data.mean()), "mean_residual": fitted.residual}
            distortion = float(vertex_distortions(fitted.a_to_b, found.a, found.b).mean())
            report = {"used": True, "why": f"A was fitted to B along {name}", "costs": costs} | facts
            return replace(other, report=replace(found.report, fit=report, distortion=distortion))
    why = "a fit of A to B gives no better map" if len(costs) > 1 else "A cannot be deformed"
    return replace(found, report=replace(found.report, fit={"used": False, "why": why, "costs": costs}))


def _along_fit(found: CopyMap, fitted: FittedMap) -> CopyMap:
    """A map with the matches of a fit instead of its own."""
    through = None if found.through is None else (found.through[1][fitted.a_to_b], found.through[1])
    return replace(found, a_to_b=fitted.a_to_b, through=through, fitted=fitted)


def _less_likely(other: CopyMap, found: CopyMap, meter: MapMeter) -> NDArray[np.bool_]:
    """Vertices whose matches in two maps lie far apart, those of the first in places less likely to the network."""
    assert found.measures is not None
    assert other.measures is not None
    if found.measures.evidence is None or other.measures.evidence is None:
        return np.zeros(len(found.a_to_b), bool)
    points = found.b.vertices
    gaps = np.linalg.norm(points[found.a_to_b] - points[other.a_to_b], axis=1)
    lead = meter.smoothed(found.measures.evidence - other.measures.evidence, 3)
    return (gaps > FAR * np.sqrt(found.b.vertex_areas.sum())) & (lead > 0)


def pass_through_landmarks(
    lifted: LiftedMap, a: Surface, b: Surface, landmarks: Landmarks, report: MatchReport
) -> tuple[LiftedMap, MatchReport]:
    """A map that passes through its landmarks, and the report with what contradicts them."""
    matched, found = honour_landmarks(lifted.a_to_b, a, b, landmarks)
    contradictions = [*(report.landmarks or {}).get("contradictions", ()), *found.contradictions]
    facts = found.as_dict() | {"contradictions": contradictions}
    report = replace(report, landmarks=facts, remarks=[*report.remarks, *contradictions])
    points = lifted.points
    if points is not None:
        moved = np.flatnonzero(matched != lifted.a_to_b)
        at_vertices = BarycentricPoints.at_vertices(b.faces, matched[moved])
        faces, weights = points.faces.copy(), points.weights.copy()
        faces[moved], weights[moved] = at_vertices.faces, at_vertices.weights
        points = BarycentricPoints(faces, weights)
    return LiftedMap(matched, points), report
