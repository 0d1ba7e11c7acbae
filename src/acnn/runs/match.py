"""Matching a shape to the reference of a network, and two shapes to each other."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from acnn.arguments import check_arguments
from acnn.correspondence.functional_map import basis_of
from acnn.correspondence.judge import Judgement, Verdict, judge_map, map_confidence
from acnn.correspondence.landmarks import Landmarks, guide_by_landmarks, honour_landmarks, landmarks_of
from acnn.correspondence.lift import LiftedMap, lift_map, lift_soft_map
from acnn.correspondence.matchable import check_matchable
from acnn.correspondence.point_maps import barycentric_map, invert_through_reference, vertex_distortions
from acnn.correspondence.refine import EIGENFUNCTIONS, RefineMethod, known_method, refine, suitable_method
from acnn.correspondence.soft_map import SoftMap, soft_map_from_point_map
from acnn.errors import InputError
from acnn.methods.descriptors import DESCRIPTORS
from acnn.methods.method import PairMethod
from acnn.methods.registry import AUTO, METHODS, pair_method
from acnn.methods.run import Run, open_run, shipped_models
from acnn.progress import Progress, begin_stage, named_stages
from acnn.shapes.mesh import BarycentricPoints, Shape
from acnn.surface.surface import Surface, surface_of
from acnn.surface.working_copy import WORKING_SIZE, WorkingCopy, working_copy
from acnn.types import FloatArray, IntArray

HUMANS = "humans"
"""The network of the package that matches two shapes where no other is named."""

NEAR = 10.0
"""Run units (a twentieth of the diameter) around a match within which the network's probability speaks for it."""

FITS = 0.6
"""Mean probability near the matches from which on the package's network is believed without asking descriptors."""

TORN = 0.5
"""Mean change of lengths above which a map tears: right ones give 0.1 to 0.35, one of a cat through people 0.9."""

CLEARLY = 0.85
"""Descriptors' map must change lengths this much less than that of a network which is unsure but tears nothing: a
mirrored map, which descriptors may give, changes them hardly more than the right one."""

CANDIDATES = 32
"""Reference vertices that are kept of the network's distribution."""


@dataclass(frozen=True, eq=False)
class ShapeMatch:
    """A shape matched to the reference.

    Attributes
    ----------
    shape, surface
        As loaded, and in run units.
    soft_map : SoftMap
        What the network says.
    query_to_reference : (n,) array
        The map, refined where asked for.
    confidence : (n,) array
        In 0..1, of that map (`map_confidence`).
    facts : dict[str, Any]
        About the refinement.
    judgement : Judgement
        Of that map, of the working copy where there is one.
    working_copy : WorkingCopy
        The shape, and the copy that was matched.
    """

    shape: Shape
    surface: Surface
    soft_map: SoftMap
    query_to_reference: IntArray
    confidence: FloatArray
    facts: dict[str, Any]
    judgement: Judgement
    working_copy: WorkingCopy

    @property
    def verdict(self) -> Verdict:
        """`good`, `doubtful` or `failed`."""
        return self.judgement.verdict


@dataclass(frozen=True, eq=False)
class PairMatch:
    """Shape A matched to shape B.

    Attributes
    ----------
    a, b : Surface
        In run units.
    a_to_b : (n,) array
        Vertices of B.
    confidence : (n,) array
        In 0..1, of the map as it is, whichever way it was found (`map_confidence`).
    through : tuple[array, array] or None
        (n,) and (m,) reference vertices of A's and B's vertices; None by descriptors.
    facts : dict[str, Any]
        `route` (`network` or `descriptors`), `why`, `model`, `verdict`, `mean_confidence`, `refinement`, `distortion`,
        `judgement` as a dictionary, `working_copies` with the numbers of vertices of `a` and `b`; through a network
        `network_confidence`, its mean probability for points within `NEAR` of the matches, of `a` and of `b`.
    judgement : Judgement
        Of the map, between working copies where there are some.
    soft_map : SoftMap or None
        Of A to B, what the network says before refinement; None by descriptors.
    lifted : BarycentricPoints or None
        Points of triangles of B, where the map was found on working copies and B is a mesh.
    copies : tuple[WorkingCopy, WorkingCopy] or None
        A and B with the copies that were matched.
    """

    a: Surface
    b: Surface
    a_to_b: IntArray
    confidence: FloatArray
    through: tuple[IntArray, IntArray] | None
    facts: dict[str, Any]
    judgement: Judgement
    soft_map: SoftMap | None = None
    lifted: BarycentricPoints | None = None
    copies: tuple[WorkingCopy, WorkingCopy] | None = None

    @property
    def verdict(self) -> Verdict:
        """`good`, `doubtful` or `failed`."""
        return self.judgement.verdict

    @property
    def report(self) -> dict[str, Any]:
        """What `acnn match --json` prints of the map."""
        return self.facts

    @property
    def places(self) -> BarycentricPoints:
        """The older name of `points`."""
        warnings.warn("match.places is deprecated: use match.points.", DeprecationWarning, stacklevel=2)
        return self.points

    @cached_property
    def b_to_a(self) -> IntArray:
        """(m,) vertices of A: of those matched to a vertex of B, or to the nearest one with any, the most confident."""
        return invert_through_reference(self.a_to_b, self.b, self.confidence)

    @cached_property
    def points(self) -> BarycentricPoints:
        """The map between vertices: for each vertex of A a point of a triangle of B (`lift_map`, `barycentric_map`).

        Raises
        ------
        InputError
            Where B is a cloud.
        """
        if self.lifted is not None:
            return self.lifted
        if self.b.is_cloud:
            raise InputError("B is a point cloud, which has no triangles for barycentric points. Use a mesh as B.")
        return barycentric_map(self.a_to_b, self.a, self.b)


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
        Length of one run unit in the shape's coordinates; None is that of the run where it has one (it learned from
        parts, which come in the units of their reference), else the shape's own geodesic diameter / 200.
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
        Where the shape cannot be matched (`check_matchable`), or where the network goes by a triangulation (descriptors
        of kind `valences`) that it has not.
    """
    method = known_method(refinement)
    run.check_matches()
    check_matchable(shape, "The shape", spectral=run.shipped, unit=unit)
    run.check_triangulation(shape)
    copy = _copies([shape], working_size_of(working_size, run), progress)[0]
    surface, soft = _network_output(copy, run, unit, cache, progress)
    reference = run.reference_surface
    with _bases_ahead(method, surface, reference):
        if method != "none":
            begin_stage(progress, "refinement")
        refined = refine(soft, surface, reference, method)
    matched = refined.query_to_reference
    confidence = map_confidence(matched, surface, reference)
    advice = ["Use a network that was trained on shapes like this one (acnn train)."]
    judged = judge_map(matched, surface, reference, confidence, names=("A", "the reference"), untried=advice)
    facts = refined.report.as_dict()
    if copy.is_copy:
        target = WorkingCopy(run.reference, run.reference, "the reference", run.reference)
        matched = lift_map(matched, copy, target, (surface, reference)).a_to_b
        confidence = copy.interpolate(confidence)
        surface = surface_of(shape, surface.unit)
        soft = lift_soft_map(soft, copy)
    return ShapeMatch(shape, surface, soft, matched, confidence, facts, judged, copy)


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
    cache: bool = True,
    progress: Progress | None = None,
) -> PairMatch:
    """Match shape A to shape B: two meshes or clouds of any kind.

    Through a network, both are matched to its reference, and A then to B directly, starting from that. Without one,
    descriptors are compared (`match_by_descriptors`). Where a network of the package is unsure of either shape, or
    distorts them, descriptors are tried as well, and used if their distortion is clearly lower; with your own model
    there is no fallback. `facts` report which. `judgement` says whether the map is to be trusted.

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
        Length of one run unit in A's coordinates; None is that of the run where it has one, else A's own geodesic
        diameter / 200, or B's unit where A looks like a part of B in the same coordinates.
    working_size : int or None
        Largest number of vertices that is matched: larger shapes are replaced by copies (`working_copy`), and
        the map is lifted to their own vertices (`lift_map`). 0 is none; None is that of the run, or `WORKING_SIZE`.
    landmarks : (k, 2) int array or Landmarks or None
        Vertices of A and the vertices of B that they correspond to: they guide the map (`guide_by_landmarks`), which
        passes through them (`honour_landmarks`); `facts` report those that contradict it.
    cache : bool
        Whether operators are looked for and kept in the cache.
    progress : Progress or None
        Called with (done, total); stages `working copies` where some are made, `operators of A` and `network output of
        A`, the same of B, `refinement`, `descriptors` where they are tried, and `lifting`.

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
    copy_a, copy_b = _copies([a, b], size, progress)
    pair = _Pair(copy_a, copy_b, known)
    learned = run.unit if run is not None else None
    there = surface_of(pair.b.shape, learned)
    if unit is not None:
        why = "given"
    elif learned is not None:
        unit, why = learned, "that of the network, which was trained on partial shapes"
    else:
        unit, why = _unit_of_part(pair.a.shape, there)
    here = surface_of(pair.a.shape, unit)
    facts: dict[str, Any] = {"unit": {"length": here.unit, "why": why}, "remarks": remarks}
    facts["working_copies"] = {"size": size, "a": pair.a.report, "b": pair.b.report}
    training = "Train a network on shapes like these (acnn train)."
    with _bases_ahead(refining, here, there, *([] if run is None else [run.reference_surface])):
        if isinstance(chosen, PairMethod):
            why = f"the method {chosen.name} was asked for"
            alone = _guided(_by_pair_method(chosen, here, there, refining, why, facts, progress), pair, refining)
            untried = ["Where both are human bodies, try the pretrained model (--model humans)."]
            return _lifted(alone, pair, untried, progress)
        found = _guided(_through(pair, chosen, refining, (here, there), cache, progress, facts), pair, refining)
        sure, change = min(found.facts["network_confidence"].values()), found.facts["distortion"]
        if (sure >= FITS and change <= TORN) or not chosen.shipped:
            untried = ["Try descriptors instead of the network (--method descriptors).", training]
            return _lifted(found, pair, untried, progress)
        doubt, factor = f"the network '{chosen.name}' is unsure of these shapes (mean confidence {sure:.0%})", CLEARLY
        if change > TORN:
            factor = 1.0
            doubt = f"the network '{chosen.name}' distorts these shapes (lengths change by {change:.0%})"
        better = f"{doubt}, and descriptors keep lengths better"
        other = _guided(_by_pair_method(DESCRIPTORS, here, there, refining, better, facts, progress), pair, refining)
    if other.facts["distortion"] > factor * change:
        found.facts["why"] = f"{doubt}, but descriptor matching has no lower distortion"
        other = found
    return _lifted(other, pair, [training], progress)


def match_pair(a: Shape, b: Shape, model: Run | str | os.PathLike[str] | None = HUMANS, **options: Any) -> PairMatch:
    """The older form of `match`, in which `model=None` stands for descriptors."""
    return match(a, b, model="none" if model is None else model, **options)


@dataclass(frozen=True, eq=False)
class _Pair:
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
        _, first = np.unique(here, return_index=True)
        return Landmarks(here[first], there[first], tuple(self.landmarks.names[i] for i in first))


@dataclass(frozen=True, eq=False)
class _Found:
    """A map between working copies before it is judged; fields as of `PairMatch`."""

    a: Surface
    b: Surface
    a_to_b: IntArray
    through: tuple[IntArray, IntArray] | None
    facts: dict[str, Any]
    soft_map: SoftMap | None = None


def _guided(found: _Found, pair: _Pair, method: RefineMethod) -> _Found:
    """A map found without landmarks, refined again from what agrees with them; the same where there are none."""
    landmarks = pair.landmarks_on_copies
    if landmarks is None:
        return found
    start = found.soft_map
    if start is None:
        trust = map_confidence(found.a_to_b, found.a, found.b)
        start = soft_map_from_point_map(found.a_to_b, len(found.b.vertices), trust)
    start = guide_by_landmarks(start, found.a, found.b, landmarks)
    refined = refine(start, found.a, found.b, method)
    matched = refined.query_to_reference
    facts = found.facts | {
        "distortion": float(vertex_distortions(matched, found.a, found.b).mean()),
        "refinement": refined.report.as_dict(),
    }
    through = None if found.through is None else (found.through[1][matched], found.through[1])
    return replace(found, a_to_b=matched, through=through, facts=facts, soft_map=found.soft_map and start)


def _honoured(
    lifted: LiftedMap, a: Surface, b: Surface, landmarks: Landmarks, facts: dict[str, Any]
) -> tuple[LiftedMap, dict[str, Any]]:
    """A map that passes through its landmarks, and the facts with what they say of it."""
    matched, report = honour_landmarks(lifted.a_to_b, a, b, landmarks)
    facts = facts | {"landmarks": report.as_dict(), "remarks": [*facts["remarks"], *report.contradictions]}
    points = lifted.points
    if points is not None:
        moved = np.flatnonzero(matched != lifted.a_to_b)
        at_vertices = BarycentricPoints.at_vertices(b.faces, matched[moved])
        faces, weights = points.faces.copy(), points.weights.copy()
        faces[moved], weights[moved] = at_vertices.faces, at_vertices.weights
        points = BarycentricPoints(faces, weights)
    return LiftedMap(matched, points), facts


def _lifted(found: _Found, pair: _Pair, untried: list[str], progress: Progress | None) -> PairMatch:
    """Judge a map between working copies, and lift it to the original shapes."""
    confidence = map_confidence(found.a_to_b, found.a, found.b)
    judgement = judge_map(found.a_to_b, found.a, found.b, confidence, untried=untried)
    facts = found.facts | {"verdict": judgement.verdict, "judgement": judgement.as_dict()}
    lifted, through, soft_map = LiftedMap(found.a_to_b, None), found.through, found.soft_map
    if pair.a.is_copy or pair.b.is_copy:
        begin_stage(progress, "lifting")
        lifted = lift_map(found.a_to_b, pair.a, pair.b, (found.a, found.b))
        confidence = pair.a.interpolate(confidence)
        if through is not None:
            through = through[0][pair.a.nearest], through[1][pair.b.nearest]
        soft_map = None if soft_map is None else lift_soft_map(soft_map, pair.a, pair.b)
    facts["mean_confidence"] = float(confidence.mean())
    a = surface_of(pair.a.original, found.a.unit) if pair.a.is_copy else found.a
    b = surface_of(pair.b.original, found.b.unit) if pair.b.is_copy else found.b
    if pair.landmarks is not None:
        lifted, facts = _honoured(lifted, a, b, pair.landmarks, facts)
    return PairMatch(
        a,
        b,
        lifted.a_to_b,
        confidence,
        through,
        facts,
        judgement,
        soft_map=soft_map,
        lifted=lifted.points,
        copies=(pair.a, pair.b),
    )


def _copies(shapes: list[Shape], size: int, progress: Progress | None) -> list[WorkingCopy]:
    """Working copies of shapes, made side by side."""
    if size and max(len(shape.vertices) for shape in shapes) > size:
        begin_stage(progress, "working copies" if len(shapes) > 1 else "working copy")
    with ThreadPoolExecutor(len(shapes)) as pool:
        return list(pool.map(working_copy, shapes, [size] * len(shapes)))


@contextmanager
def _bases_ahead(method: RefineMethod, *surfaces: Surface) -> Iterator[None]:
    """Compute the eigenfunctions that refinement will ask for beside the work within."""
    if method == "none":
        yield
        return
    with ThreadPoolExecutor(1) as pool:
        jobs = [pool.submit(basis_of, surface, EIGENFUNCTIONS[method]) for surface in surfaces]
        try:
            yield
        finally:
            for job in jobs:
                job.cancel()


def _network_output(
    copy: WorkingCopy, run: Run, unit: float | None, cache: bool, progress: Progress | None
) -> tuple[Surface, SoftMap]:
    """Surface of a working copy, and the soft map of it to the reference of a run."""
    inputs = run.prepare(copy.shape, unit=unit, cache=cache, progress=begin_stage(progress, "operators"))
    begin_stage(progress, "network output")
    return surface_of(copy.shape, inputs.unit), run.soft_map(inputs, k=CANDIDATES)


def _through(
    pair: _Pair,
    run: Run,
    method: RefineMethod,
    surfaces: tuple[Surface, Surface],
    cache: bool,
    progress: Progress | None,
    facts: dict[str, Any],
) -> _Found:
    """A to B through the reference of a network."""
    here, there = surfaces
    first, second = (
        _network_output(copy, run, surface.unit, cache, named_stages(progress, name))[1]
        for copy, surface, name in ((pair.a, here, "{} of A"), (pair.b, there, "{} of B"))
    )
    if method != "none":
        begin_stage(progress, "refinement")
    reference = run.reference_surface
    # B is the whole even where A is a part.
    whole = refine(second, there, reference, "auto" if method == "pfm" else method).query_to_reference
    sure = second.mass_near(whole, reference.vertices, NEAR)
    start = first.compose(invert_through_reference(whole, reference, sure), len(whole))
    refined = refine(start, here, there, method)
    matched = refined.query_to_reference
    certain = first.mass_near(whole[matched], reference.vertices, NEAR)
    facts = facts | {
        "route": "network",
        "why": "",
        "model": run.name,
        "network_confidence": {"a": float(certain.mean()), "b": float(sure.mean())},
        "distortion": float(vertex_distortions(matched, here, there).mean()),
        "refinement": refined.report.as_dict(),
    }
    return _Found(here, there, matched, (whole[matched], whole), facts, start)


def _by_pair_method(
    method: PairMethod,
    a: Surface,
    b: Surface,
    refinement: RefineMethod,
    why: str,
    facts: dict[str, Any],
    progress: Progress | None,
) -> _Found:
    found = method.match(a, b, refinement, begin_stage(progress, method.name))
    facts = facts | {
        "route": method.name,
        "why": why,
        "model": None,
        "distortion": found.distortion,
        "refinement": found.report,
    }
    return _Found(a, b, found.a_to_b, None, facts)


def resolve_method(model: Run | str | os.PathLike[str] | None, method: str) -> Run | PairMethod:
    """What a method matches with: a run, or the method itself where it matches two shapes as they are.

    Parameters
    ----------
    model : Run or path or None
        As for `match`; "none" is the older form of the method `descriptors`.
    method : str
        As for `match`.

    Raises
    ------
    InputError
        Where there is no such method, it needs a model or takes none, or the run is of another.
    """
    if model == "none":
        model, method = None, "descriptors" if method == AUTO else method
    if method != AUTO and method not in METHODS:
        pair = pair_method(method)
        if model is not None:
            raise InputError(f"The method '{pair.name}' takes no model: leave out --model.")
        return pair
    if model is None and method != AUTO:
        raise InputError(
            f"The method '{method}' needs a trained model: give the folder of a run with --model, or the name of a "
            f"pretrained one ({', '.join(shipped_models())})."
        )
    run = model if isinstance(model, Run) else open_run(HUMANS if model is None else model)
    if method not in (AUTO, run.config.method):
        raise InputError(f"{run.name}: is a run of the method '{run.config.method}', not of '{method}'.")
    return run


def working_size_of(working_size: int | None, run: Run | None) -> int:
    """Largest number of vertices that is matched.

    Parameters
    ----------
    working_size : int or None
        As for `match`.
    run : Run or None
        What it is matched with; None for a pair method.

    Returns
    -------
    int
        0 for no working copies.
    """
    if working_size is not None:
        return working_size
    return WORKING_SIZE if run is None else run.working_size


def _unit_of_part(shape: Shape, whole: Surface) -> tuple[float | None, str]:
    """The whole's unit for a shape that looks like a part of it in the same coordinates; None for any other."""
    there = surface_of(shape, whole.unit)
    method, why = suitable_method(there, whole)
    size = np.linalg.norm(np.ptp(there.vertices, axis=0)) / np.linalg.norm(np.ptp(whole.vertices, axis=0))
    if method == "pfm" and 0.1 < size < 1.1:
        return whole.unit, f"that of B, since A appears to be a partial shape of it: {why}"
    return None, "A's own geodesic diameter / 200"
