"""Matching a shape to the reference of a network, and two shapes to each other."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from acnn.arguments import check_arguments
from acnn.correspondence.candidates import best_candidate
from acnn.correspondence.judge import judge_map, map_confidence
from acnn.correspondence.landmarks import Landmarks, landmarks_of
from acnn.correspondence.lift import LiftedMap, lift_map, lift_soft_map
from acnn.correspondence.map_measures import MapMeter
from acnn.correspondence.match_checks import check_matchable
from acnn.correspondence.refine import known_method, refine, suitable_method
from acnn.methods.descriptors import DESCRIPTORS, UNJUDGED
from acnn.methods.method import PairMethod
from acnn.methods.registry import AUTO
from acnn.methods.run import Run
from acnn.progress import Progress, begin_stage
from acnn.runs.match_results import PairMatch, ShapeMatch, UnitReport
from acnn.runs.match_routes import (
    HUMANS,
    NEAR,
    best_with_filtered,
    coarse_below,
    map_by_pair_method,
    map_through_network,
    network_output,
    resolve_method,
    thread_beside,
    working_size_of,
)
from acnn.runs.working_pair import (
    CopyMap,
    WorkingPair,
    fit_copy_map,
    guide_copy_map,
    lift_to_reference,
    make_copies,
    pass_through_landmarks,
)
from acnn.shapes.mesh import Shape
from acnn.surface.surface import Surface, surface_of

FITS = 0.6
"""Mean probability near the matches from which the pretrained model is trusted without trying descriptors."""

DISTORTED = 0.5
"""Mean change of lengths above which a map is distorted: correct maps have 0.1 to 0.35, a cat through humans 0.9."""

CLEARLY = 0.85
"""A map by descriptors must change lengths this much less than an unsure but undistorted one of a network: a
mirrored map, which descriptors may give, changes them hardly more than the right one."""

LIKELY = 0.75
"""Fraction of A whose matches are likely to be right, below which descriptors are tried beside the pretrained model."""


@check_arguments
def match_shape(
    shape: Shape,
    run: Run,
    *,
    refinement: str = "auto",
    unit: float | None = None,
    working_size: int | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> ShapeMatch:
    """Match a mesh or a cloud to the reference of a run.

    Parameters
    ----------
    shape : Shape
        As `load` returns it.
    run : Run
        The network, from `open_run`.
    refinement : str
        `none`, `fm`, `zoomout`, `pfm` or `auto`.
    unit : float or None
        Length of one normalised unit in the shape's coordinates; None is that of the run where it has one (it was
        trained on partial shapes, which have the unit of their reference), else the shape's geodesic diameter / 200.
    working_size : int or None
        Largest number of vertices that is matched: a larger shape is replaced by a copy (`working_copy`). 0
        is none; None is that of the run.
    cache : bool
        Whether operators are looked for and kept in the cache.
    progress : Progress or None
        Called with (done, total); stages `working copy` where one is made, `operators`, `network output` and
        `refinement`.

    Raises
    ------
    InputError
        Where the shape cannot be matched (`check_matchable`), or where the network depends on a triangulation
        (descriptors of kind `valences`) that it does not have.
    """
    method = known_method(refinement)
    run.check_matches()
    check_matchable(shape, "The shape", spectral=run.shipped, unit=unit)
    run.check_triangulation(shape)
    copy = make_copies([shape], working_size_of(working_size, run), coarse_below(run), progress)[0]
    surface, reference = surface_of(copy.shape, unit if unit is not None else run.unit), run.reference_surface
    with thread_beside(method, [surface], run, cache):
        soft = network_output(copy, run, surface.unit, cache, progress)
        if method != "none":
            begin_stage(progress, "refinement")
        refined = refine(soft, surface, reference, method)
    matched = refined.query_to_reference
    measures = MapMeter(surface, reference)(matched, soft.mass_near(matched, reference.vertices, NEAR).astype(float))
    confidence = map_confidence(matched, surface, reference, measures)
    advice = ["Use a network that was trained on shapes like this one (acnn train)."]
    names = ("A", "the reference")
    judged = judge_map(matched, surface, reference, confidence, measures=measures, names=names, untried=advice)
    if copy.is_copy:
        matched = lift_to_reference(matched, copy, (surface, reference), run.reference)
        confidence = copy.interpolate(confidence)
        surface = surface_of(shape, surface.unit)
        soft = lift_soft_map(soft, copy)
    return ShapeMatch(shape, surface, soft, matched, confidence, refined.report, judged, copy)


@check_arguments
def match(
    a: Shape,
    b: Shape,
    *,
    method: str = AUTO,
    model: Run | str | os.PathLike[str] | None = None,
    refinement: str = "auto",
    unit: float | None = None,
    working_size: int | None = None,
    landmarks: ArrayLike | Landmarks | None = None,
    candidates: bool = True,
    cache: bool = True,
    progress: Progress | None = None,
) -> PairMatch:
    """Match shape A to shape B: two meshes or clouds of any kind.

    Through a network, both are matched to its reference, and A then to B directly, starting from that. Without one,
    descriptors are compared (`match_by_descriptors`). Several maps are made from the same matches, and judged without
    ground truth (`Candidate`). Where a pretrained model is unsure of either shape, or the best map is likely to
    be wrong, descriptors are tried as well, and used if their map is clearly better; with your own model there is no
    fallback. `report` states which. `judgement` states whether the map is to be trusted.

    Parameters
    ----------
    a, b : Shape
        As `load` returns them.
    model : Run or path or None
        A run, its folder, or the name of a pretrained model; None is the pretrained model `humans` where the method is
        `auto`.
    method : str
        `auto`; the name of the trained method that the run must be of; or a pair method (`acnn.methods`), which takes
        no model.
    refinement : str
        `none`, `fm`, `zoomout`, `pfm` or `auto`.
    unit : float or None
        Length of one normalised unit in A's coordinates; None is that of the run where it has one, else A's
        geodesic diameter / 200, or B's unit where A looks like a part of B in the same coordinates.
    working_size : int or None
        Largest number of vertices that is matched: larger shapes, and coarse ones where no run of your own matches,
        are replaced by copies (`working_copy`), and the map is lifted to their own vertices (`lift_map`). 0 is none;
        None is that of the run, or `WORKING_SIZE`.
    landmarks : (k, 2) int array or Landmarks or None
        Vertices of A and the vertices of B that they correspond to: they guide the map (`guide_by_landmarks`), which
        passes through them (`honour_landmarks`); `report` lists those that contradict it.
    candidates : bool
        Whether several maps are compared; False takes the refined map of the network, or that of the descriptors whose
        map distorts lengths least. Landmarks choose by themselves.
    cache : bool
        Whether operators are looked for and kept in the cache.
    progress : Progress or None
        Called with (done, total); stages `working copies` where some are made, `operators of B` and `network output of
        B`, the same of A, `refinement`, `descriptors` where they are tried, `fit` and `lifting`.

    Raises
    ------
    InputError
        Where one of them cannot be matched (`check_matchable`), or landmarks are no pairs of their vertices.
    """
    refining = known_method(refinement)
    known = None if landmarks is None else landmarks_of(landmarks, (len(a.vertices), len(b.vertices)))
    chosen = resolve_method(model, method)
    run = chosen if isinstance(chosen, Run) else None
    if run is not None:
        run.check_matches()
    spectral = run is None or run.shipped  # another network may have been trained on shapes like these
    remarks = [*check_matchable(a, "A", spectral=spectral, unit=unit), *check_matchable(b, "B", spectral=spectral)]
    if run is not None:
        run.check_triangulation(a)
        run.check_triangulation(b)
    size = working_size_of(working_size, run)
    copy_a, copy_b = make_copies([a, b], size, coarse_below(run), progress)
    pair = WorkingPair(copy_a, copy_b, known)
    learned = run.unit if run is not None else None
    there = surface_of(pair.b.shape, learned)
    if unit is not None:
        why = "given"
    elif learned is not None:
        unit, why = learned, "that of the network, which was trained on partial shapes"
    else:
        unit, why = _unit_of_part(pair.a.shape, there)
    here = surface_of(pair.a.shape, unit)
    known_before: dict[str, Any] = {
        "remarks": remarks,
        "working_copies": {"size": size, "a": pair.a.report, "b": pair.b.report},
        "unit": UnitReport(here.unit, why),
    }
    compare = candidates and known is None and refining != "none"
    meter = MapMeter(here, there)
    fitting = meter if refining != "none" else None
    training = "Train a network on shapes like these (acnn train)."
    with thread_beside(refining, [there, here], run, cache) as beside:
        if isinstance(chosen, PairMethod):
            why = f"the method {chosen.name} was asked for"
            chosen = UNJUDGED if chosen is DESCRIPTORS and not compare else chosen
            alone = map_by_pair_method(chosen, here, there, refining, why, known_before, progress)
            alone = guide_copy_map(alone, pair, refining, meter)
            untried = ["Where both are human bodies, try the pretrained model (--model humans)."]
            return _lifted(alone, pair, fitting, untried, progress)
        found = map_through_network(pair, chosen, refining, (here, there), cache, progress, known_before, beside)
        found = guide_copy_map(found, pair, refining, meter)
        if compare:
            found = best_with_filtered(found, meter)
        assert found.report.network_confidence is not None
        assert found.report.distortion is not None
        sure, change = min(found.report.network_confidence.values()), found.report.distortion
        expected = found.expected
        # Descriptors of partial shapes take long, and gave the better map of none of four generated pairs with holes.
        likely = expected >= LIKELY or not compare or meter.partial
        if (sure >= FITS and change <= DISTORTED and likely) or not chosen.shipped:
            untried = ["Try descriptors instead of the network (--method descriptors).", training]
            return _lifted(found, pair, fitting, untried, progress)
        doubt, factor = f"the network '{chosen.name}' is unsure of these shapes (mean confidence {sure:.0%})", CLEARLY
        if change > DISTORTED:
            factor = 1.0
            doubt = f"the network '{chosen.name}' distorts these shapes (lengths change by {change:.0%})"
        elif sure >= FITS:
            doubt = f"the map of the network '{chosen.name}' is likely to be right in {expected:.0%} of A only"
        better = f"{doubt}, and descriptors give a better map"
        descriptors = DESCRIPTORS if compare else UNJUDGED
        other = map_by_pair_method(descriptors, here, there, refining, better, known_before, progress)
        other = guide_copy_map(replace(other, evidence=found.evidence), pair, refining, meter)
    if compare:
        worse = best_candidate([found.candidate, other.candidate]).name == found.report.route
    else:
        worse = other.report["distortion"] > factor * change
    if worse:
        why = f"{doubt}, but descriptor matching gives no better map"
        other = replace(found, report=replace(found.report, why=why))
    return _lifted(other, pair, fitting, [training], progress)


def match_pair(a: Shape, b: Shape, model: Run | str | os.PathLike[str] | None = HUMANS, **options: Any) -> PairMatch:
    """The older form of `match`, in which `model=None` stands for descriptors."""
    return match(a, b, model="none" if model is None else model, **options)


def _lifted(
    found: CopyMap, pair: WorkingPair, meter: MapMeter | None, untried: list[str], progress: Progress | None
) -> PairMatch:
    """Fit A to B along a map between working copies where there is a meter, judge the map, lift it to the originals."""
    if meter is not None:
        begin_stage(progress, "fit")
        found = fit_copy_map(found, pair, meter)
    confidence = map_confidence(found.a_to_b, found.a, found.b, found.measures)
    off = None if found.fitted is None else ~found.fitted.with_data
    judgement = judge_map(found.a_to_b, found.a, found.b, confidence, measures=found.measures, untried=untried, off=off)
    lifted, through, soft_map = LiftedMap(found.a_to_b, None), found.through, found.soft_map
    mirrored = found.mirrored
    if found.fitted is not None or pair.a.is_copy or pair.b.is_copy:
        begin_stage(progress, "lifting")
        images = None if found.fitted is None else (found.fitted.images, found.fitted.normals)
        lifted = lift_map(found.a_to_b, pair.a, pair.b, (found.a, found.b), images)
    if pair.a.is_copy or pair.b.is_copy:
        confidence = pair.a.interpolate(confidence)
        if mirrored is not None:
            mirrored = lift_map(mirrored, pair.a, pair.b, (found.a, found.b)).a_to_b
        if through is not None:
            through = through[0][pair.a.nearest], through[1][pair.b.nearest]
        soft_map = None if soft_map is None else lift_soft_map(soft_map, pair.a, pair.b)
    report = replace(
        found.report,
        verdict=judgement.verdict,
        judgement=judgement.as_dict(),
        mean_confidence=float(confidence.mean()),
    )
    a = surface_of(pair.a.original, found.a.unit) if pair.a.is_copy else found.a
    b = surface_of(pair.b.original, found.b.unit) if pair.b.is_copy else found.b
    if pair.landmarks is not None:
        lifted, report = pass_through_landmarks(lifted, a, b, pair.landmarks, report)
    return PairMatch(
        a,
        b,
        lifted.a_to_b,
        confidence,
        through,
        report,
        judgement,
        soft_map=soft_map,
        lifted=lifted.points,
        copies=(pair.a, pair.b),
        mirrored=mirrored,
        measures=found.measures,
    )


def _unit_of_part(shape: Shape, whole: Surface) -> tuple[float | None, str]:
    """The whole's unit for a shape that looks like a part of it in the same coordinates; None for any other."""
    there = surface_of(shape, whole.unit)
    method, why = suitable_method(there, whole)
    size = np.linalg.norm(np.ptp(there.vertices, axis=0)) / np.linalg.norm(np.ptp(whole.vertices, axis=0))
    if method == "pfm" and 0.1 < size < 1.1:
        return whole.unit, f"that of B, since A appears to be a partial shape of it: {why}"
    return None, "A's own geodesic diameter / 200"
