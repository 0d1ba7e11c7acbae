"""A verdict on a map of query to reference, from the map and the two surfaces alone; ground truth is never seen.

A map can be wrong in ways that show: neighbours are matched far apart, many vertices collapse onto few, triangles are
inverted, or much of the reference is not covered. Each is measured in a way that does not depend on how densely the
shapes are sampled, and all are judged together.

The thresholds were chosen on built-in humans (pairs of different subjects and poses with the same and with different
triangulations, 500 to 2,500 vertices, clouds, partial shapes, noise), where errors are known, and on synthetic shapes
that have no correct map (rods, spheres, tori, grids to humans). Each constant states what was seen there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from acnn.correspondence.map_measures import (
    MapMeasures,
    MapMeter,
    area_ratio,
    edge_length,
    image_orientation,
    room,
    vertex_areas,
)
from acnn.correspondence.refine import has_longer_boundary
from acnn.shapes.topology import mesh_edges
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

Verdict = Literal["good", "doubtful", "failed"]

CROWDED = 0.1
"""Fraction of the query's area without room from which a reference with a boundary is taken for a partial shape: 0.3
where the reference lacks 40 % of the query, below 0.04 in good maps."""

FEW, FEWEST = 0.25, 4
"""A map collapses where it hits less than this fraction of the vertices that it could hit, or fewer than so many. Good
maps hit 0.7 or more of them, most collapsed ones at most 0.08, and thin rods, which lie along lines of edges, 0.2."""

UNLIKE = 0.01
"""Ratio of the two areas, both in the same unit, below which one of the lengths must be wrong: 0.08 for a rod and a
human, 0.005 for a human with a point far away, which makes its diameter, and another."""

WEAK = 0.5
"""Trust (`MapMeasures`) below which a match is weak. Of matches of built-in humans with a trust below 0.4, 13 % are
right (within 0.05 of the root of the area), of those between 0.4 and 0.6 44 %, above 0.6 97 %."""

WEAK_DOUBTFUL, WEAK_FAILED = 0.25, 0.7
"""Fraction of the query's area with weak matches: at most 0.08 in good maps of full and partial humans, 0.30 to 0.66
where a third of the matches is wrong or the reference lacks a region of the query, above 0.9 in meaningless maps."""

PULLED, DISCONTINUOUS = 5.0, 1.5
"""A map is discontinuous where edges become more than `PULLED` times as long, and too much so where the lengths of such
edges add up to more than `DISCONTINUOUS` times the root of the query's area. Good maps have 0 to 0.9 of it (the latter
partial shapes with long boundaries), maps with a wrong limb 2.4 and more: a swapped leg preserves lengths and
orientation except where it ends."""

UPRIGHT_DOUBTFUL, UPRIGHT_FAILED, MIRRORED = 0.8, 0.55, 0.15
"""Fraction of the image's area that keeps its orientation: 0.84 to 1.00 in good maps, 0.6 where limbs are turned back
to front, 0.5 at random, below 0.01 where left and right are exchanged throughout."""

SEEN = 0.05
"""Least fraction of the query's area that the image must have for orientation to be judged: a fine query on a very
coarse reference has hardly any triangles there."""

REACH_DOUBTFUL, REACH_FAILED = 0.7, 0.3
"""Fraction of the reachable area of the reference near a match: above 0.8 in good maps, 0.56 where one half of a body
is matched to the other, below 0.3 in most collapsed maps."""


CONFIDENCE = (-2.32, 3.76, -1.16, -2.56, -1.74, -0.46, -1.55)
CONFIDENCE_WITH_EVIDENCE = (-2.92, 3.26, -1.13, -2.43, -1.16, -0.55, -1.57, 1.49)
"""Weights of `confidence_features`, by logistic regression on maps of 16 generated pairs (four each of noisy, stretched
and perforated humans and of quadrupeds, several maps of each); `benchmarks/verdicts.py --fit` fits anew, to two
maps of each pair."""

EXPECTED_DOUBTFUL, EXPECTED_FAILED = 0.65, 0.3
"""Fraction of the query's area whose matches are likely to be right. On the pairs of `CONFIDENCE` it is below 0.65 in
all of 40 wrong maps (over 20 % of the vertices more than 0.2 off) and in none of 30 right ones (at most 5 %); on those
of mittens, hands, and hands to quadrupeds, in 32 of 33 and in none of 16."""


@dataclass(frozen=True)
class Judgement:
    """A verdict on a map, and the measurements that it is based on.

    Attributes
    ----------
    verdict : Verdict
        `good`, `doubtful` (partly wrong, or not to be trusted without a look) or `failed` (meaningless).
    reasons : tuple[str, ...]
        Sentences: what speaks against the map. Empty for a good one.
    advice : tuple[str, ...]
        Sentences: what to do about it. Empty for a good one.
    weak : float
        Fraction of the query's area whose matches have a trust below `WEAK`.
    crowded : float
        Fraction of the query's area for which there is no room where it goes (`ROOM`).
    discontinuity : float
        Length of the query's edges that become more than `PULLED` times as long, over the root of its area.
    upright : float or None
        Fraction of the image's area that keeps its orientation; None where the image has too few triangles.
    reach : float
        Fraction of the reference's area near a match, relative to what a query of that area can reach; may exceed 1.
    expected : float
        Mean confidence over the query's area: the fraction of it whose matches are likely to be right.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    weak: float
    crowded: float
    discontinuity: float
    upright: float | None
    reach: float
    expected: float

    def as_dict(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return asdict(self)


def map_confidence(
    query_to_reference: IntArray, query: Surface, reference: Surface, measures: MapMeasures | None = None
) -> FloatArray:
    """Probability that each match of a map is right: within 0.05 of the root of the reference's area.

    A logistic function of the measures of the match and of the map as a whole (`CONFIDENCE`), fitted to maps of
    generated shapes: of the matches with a confidence of 0.8, about four in five are right.

    Parameters
    ----------
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.
    query, reference : Surface
        Meshes or clouds in the same unit.
    measures : MapMeasures or None
        Of the map, with the evidence of a network where there is some; None measures it without.

    Returns
    -------
    (n,) array
        In 0..1.
    """
    if measures is None:
        measures = MapMeter(query, reference)(query_to_reference)
    features = confidence_features(measures)
    weights = CONFIDENCE if measures.evidence is None else CONFIDENCE_WITH_EVIDENCE
    return 1.0 / (1.0 + np.exp(-np.clip(features @ np.array(weights), -30.0, 30.0)))


def confidence_features(measures: MapMeasures) -> FloatArray:
    """(n, 7) or, with evidence, (n, 8) numbers that the confidence is a logistic function of.

    1, trust, log(0.02 + stretch), turned, means of trust and turned over the map, whether the query is partial, and the
    evidence.
    """
    means, ones = measures.means, np.ones(len(measures.trust))
    columns = [ones, measures.trust, np.log(0.02 + measures.stretch), measures.turned]
    columns += [means["trust"] * ones, means["turned"] * ones, float(measures.partial) * ones]
    if measures.evidence is not None:
        columns.append(np.asarray(measures.evidence, dtype=float))
    return np.stack(columns, axis=1)


def judge_map(
    query_to_reference: IntArray,
    query: Surface,
    reference: Surface,
    confidence: FloatArray | None = None,
    *,
    measures: MapMeasures | None = None,
    names: tuple[str, str] = ("A", "B"),
    untried: Sequence[str] = (),
    off: NDArray[np.bool_] | None = None,
) -> Judgement:
    """Judge a map of query to reference.

    Parameters
    ----------
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.
    query, reference : Surface
        Meshes or clouds in the same unit.
    confidence : (n,) array or None
        In 0..1; None is `map_confidence`.
    measures : MapMeasures or None
        Of the map; None measures it.
    names : tuple[str, str]
        What query and reference are called in sentences.
    untried : Sequence[str]
        Sentences: options that have not been tried; they become the advice where the map is not good.
    off : (n,) bool array or None
        Vertices that a fit could not bring onto the reference.

    Returns
    -------
    Judgement
        Verdict, reasons, advice and measurements.
    """
    matched = np.asarray(query_to_reference)
    measured = MapMeter(query, reference)(matched) if measures is None else measures
    if confidence is None:
        confidence = map_confidence(matched, query, reference, measured)
    areas = measured.areas
    expected = float(areas @ np.asarray(confidence))
    weak = float(areas[measured.trust < WEAK].sum())
    crowded = max(0.0, 1.0 - float(areas @ room(matched, query, reference)))
    jumps = map_discontinuity(matched, query, reference)
    upright, reach = _upright(matched, query, reference), _reach(matched, query, reference)

    a, b = names
    ratio = area_ratio(query, reference)
    hit, n, m = len(np.unique(matched)), len(matched), len(reference.vertices)
    wrong: list[str] = []  # reasons for `failed`, and for `doubtful`
    doubt: list[str] = []
    if not UNLIKE < ratio < 1 / UNLIKE:
        factor = max(ratio, 1 / ratio)
        wrong.append(
            f"The areas differ {factor:.0f} times at the same length: points lie far away, or the unit is wrong."
        )
    elif hit < max(FEWEST, FEW * min(n, m * min(1.0, ratio))) or (weak > WEAK_FAILED and crowded > 0.5 * weak):
        wrong.append(f"The map collapses: {n:,} vertices of {a} go to {hit:,} of {b}'s {m:,}.")
    elif weak > WEAK_FAILED:
        wrong.append(f"Neighbouring points go far apart in {weak:.0%} of {a}.")
    elif crowded > WEAK_DOUBTFUL:
        doubt.append(f"There is no room on {b} for {crowded:.0%} of {a}: too many vertices share a match.")
    elif weak > WEAK_DOUBTFUL:
        doubt.append(f"Neighbouring points go far apart in {weak:.0%} of {a}.")
    elif jumps > DISCONTINUOUS:
        doubt.append(f"The map is discontinuous: a limb of {a} may be matched to another one.")
    if reach < REACH_DOUBTFUL:
        what = f"Much of {b} is not reached: {reach:.0%} of what {a} could cover."
        (wrong if reach < REACH_FAILED else doubt).append(what)
    # A map that has failed already turns triangles over at random, which explains nothing.
    if not wrong and upright is not None and upright < UPRIGHT_DOUBTFUL:
        if upright < MIRRORED:
            doubt.append(f"Left and right are exchanged, or {a} or {b} is inside out.")
        else:
            what = f"{1 - upright:.0%} of {a} is turned inside out: limbs, or front and back, are exchanged."
            (wrong if upright < UPRIGHT_FAILED else doubt).append(what)
    # Reasons of their own come first; a mirrored map is explained by its orientation.
    mirrored = upright is not None and upright < MIRRORED
    if not wrong and not mirrored and (expected < EXPECTED_FAILED or (expected < EXPECTED_DOUBTFUL and not doubt)):
        what = f"About {expected:.0%} of the matches are likely to be right: distances along the surface change by "
        what += f"{measured.means['stretch']:.0%} of the root of the area on average."
        (wrong if expected < EXPECTED_FAILED else doubt).append(what)

    verdict: Verdict = "failed" if wrong else "doubtful" if doubt else "good"
    advice = () if verdict == "good" else tuple(untried)
    lost = 0.0 if off is None else float(areas[off].sum())
    if not wrong and (doubt or max(crowded, lost) > CROWDED) and has_longer_boundary(reference, query):
        if lost > CROWDED:
            doubt.append(f"{lost:.0%} of {a} finds no surface on {b}.")
        verdict, advice = "doubtful", (f"{b} looks like a part of {a}: match {b} to {a}.",)
    return Judgement(verdict, (*wrong, *doubt), advice, weak, crowded, jumps, upright, reach, expected)


def map_discontinuity(matched: IntArray, query: Surface, reference: Surface) -> float:
    """Length of the edges that the map pulls apart over the root of the query's area; see `PULLED`.

    Edges count as at least two edges of the reference long: a map to vertices cannot keep shorter lengths.
    """
    edges = mesh_edges(query.faces).vertices
    lengths, images = (
        np.linalg.norm(points[ends[:, 0]] - points[ends[:, 1]], axis=1)
        for points, ends in ((query.vertices, edges), (reference.vertices, matched[edges]))
    )
    pulled = images > PULLED * np.maximum(lengths, 2.0 * edge_length(reference))
    return float(lengths[pulled].sum() / np.sqrt(vertex_areas(query).sum()))


def _upright(matched: IntArray, query: Surface, reference: Surface) -> float | None:
    """Fraction of the area of the query's triangles, on the reference, that faces outwards there."""
    weights, outward = image_orientation(matched, query, reference)
    if weights.sum() < SEEN * (query.face_weights * query.face_areas).sum():
        return None
    return float(weights[outward].sum() / weights.sum())


def _reach(matched: IntArray, query: Surface, reference: Surface) -> float:
    """Fraction of the area of the reference (or of the query, if smaller) within two coarse edges of a match."""
    from scipy.spatial import cKDTree

    ratio = area_ratio(query, reference)
    radius = 2.0 * max(edge_length(query) / max(1.0, ratio**0.5), edge_length(reference))
    distances = cKDTree(reference.vertices[np.unique(matched)]).query(reference.vertices)[0]
    areas = vertex_areas(reference)
    return float(areas[distances <= radius].sum() / areas.sum() / min(1.0, ratio))
