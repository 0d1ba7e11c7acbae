"""Matching a shape to the reference of a network, and two shapes to each other."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.correspondence.functional_map import basis_of
from acnn.correspondence.judge import Judgement, Verdict, judge_map, map_confidence
from acnn.correspondence.matchable import check_matchable
from acnn.correspondence.point_maps import barycentric_map, invert_through_reference, vertex_distortions
from acnn.correspondence.refine import EIGENFUNCTIONS, RefineMethod, known_method, refine, suitable_method
from acnn.correspondence.soft_map import SoftMap
from acnn.errors import InputError
from acnn.methods.descriptors import DESCRIPTORS
from acnn.methods.method import PairMethod
from acnn.methods.registry import AUTO, METHODS, pair_method
from acnn.methods.run import Run, open_run, shipped_models
from acnn.progress import Progress, begin_stage, named_stages
from acnn.shapes.mesh import BarycentricPoints, Shape
from acnn.surface.surface import Surface, surface_of
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
        Of that map.
    """

    shape: Shape
    surface: Surface
    soft_map: SoftMap
    query_to_reference: IntArray
    confidence: FloatArray
    facts: dict[str, Any]
    judgement: Judgement

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
        `judgement` as a dictionary; through a network `network_confidence`, its mean probability for points within
        `NEAR` of the matches, of `a` and of `b`.
    judgement : Judgement
        Of the map.
    soft_map : SoftMap or None
        Of A to B, what the network says before refinement; None by descriptors.
    """

    a: Surface
    b: Surface
    a_to_b: IntArray
    confidence: FloatArray
    through: tuple[IntArray, IntArray] | None
    facts: dict[str, Any]
    judgement: Judgement
    soft_map: SoftMap | None = None

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
        """The map between vertices: for each vertex of A a point of a triangle of B (`barycentric_map`).

        Raises
        ------
        InputError
            Where B is a cloud.
        """
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
    cache : bool
        Whether operators are looked for and kept in the cache.
    progress : Progress or None
        Called with (done, in all); stages `operators`, `network output` and `refinement`.

    Raises
    ------
    InputError
        Where the shape cannot be matched (`check_matchable`), or where the network goes by a triangulation (descriptors
        of kind `valences`) that it has not.
    """
    method = known_method(refinement)
    check_matchable(shape, "The shape", spectral=run.shipped)
    run.check_triangulation(shape)
    inputs = run.prepare(shape, unit=unit, cache=cache, progress=begin_stage(progress, "operators"))
    surface = surface_of(shape, inputs.unit)
    begin_stage(progress, "network output")
    soft = run.soft_map(inputs, k=CANDIDATES)
    reference = surface_of(run.reference, run.unit)
    if method != "none":
        begin_stage(progress, "refinement")
    refined = refine(soft, surface, reference, method)
    matched = refined.query_to_reference
    confidence = map_confidence(matched, surface, reference)
    advice = ["Use a network that was trained on shapes like this one (acnn train)."]
    judged = judge_map(matched, surface, reference, confidence, names=("A", "the reference"), untried=advice)
    return ShapeMatch(shape, surface, soft, matched, confidence, refined.report.as_dict(), judged)


@check_arguments
def match(
    a: Shape,
    b: Shape,
    *,
    method: str = AUTO,
    model: Run | str | os.PathLike[str] | None = None,
    refinement: str = "auto",
    unit: float | None = None,
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
    cache : bool
        Whether operators are looked for and kept in the cache.
    progress : Progress or None
        Called with (done, in all); stages `operators of A` and `network output of A`, the same of B, `refinement`, and
        `descriptors` where they are tried.

    Raises
    ------
    InputError
        Where one of them cannot be matched (`check_matchable`).
    """
    refining = known_method(refinement)
    chosen = resolve_method(model, method)
    trained = chosen if isinstance(chosen, Run) else None
    spectral = trained is None or trained.shipped  # another network may have been trained on shapes like these
    remarks = [*check_matchable(a, "A", spectral=spectral), *check_matchable(b, "B", spectral=spectral)]
    learned = trained.unit if trained is not None else None
    there = surface_of(b, learned)
    if unit is not None:
        why = "given"
    elif learned is not None:
        unit, why = learned, "that of the network, which was trained on partial shapes"
    else:
        unit, why = _unit_of_part(a, there)
    here = surface_of(a, unit)
    facts: dict[str, Any] = {"unit": {"length": here.unit, "why": why}, "remarks": remarks}
    if isinstance(chosen, PairMethod):
        why = f"the method {chosen.name} was asked for"
        alone = _by_pair_method(chosen, here, there, refining, why, facts, progress)
        return _judged(alone, ["Where both are human bodies, try the pretrained model (--model humans)."])
    run = chosen
    training = "Train a network on shapes like these (acnn train)."
    found = _through(a, b, run, refining, (here.unit, there.unit), cache, progress, facts)
    sure, change = min(found.facts["network_confidence"].values()), found.facts["distortion"]
    if (sure >= FITS and change <= TORN) or not run.shipped:
        return _judged(found, ["Try descriptors instead of the network (--method descriptors).", training])
    doubt, factor = f"the network '{run.name}' is unsure of these shapes (mean confidence {sure:.0%})", CLEARLY
    if change > TORN:
        factor = 1.0
        doubt = f"the network '{run.name}' distorts these shapes (lengths change by {change:.0%})"
    other = _by_pair_method(
        DESCRIPTORS, found.a, found.b, refining, f"{doubt}, and descriptors keep lengths better", facts, progress
    )
    if other.facts["distortion"] > factor * change:
        found.facts["why"] = f"{doubt}, but descriptor matching has no lower distortion"
        other = found
    return _judged(other, [training])


def match_pair(a: Shape, b: Shape, model: Run | str | os.PathLike[str] | None = HUMANS, **options: Any) -> PairMatch:
    """The older form of `match`, in which `model=None` stands for descriptors."""
    return match(a, b, model="none" if model is None else model, **options)


@dataclass(frozen=True, eq=False)
class _Found:
    """A map of A to B before it is judged; fields as of `PairMatch`."""

    a: Surface
    b: Surface
    a_to_b: IntArray
    through: tuple[IntArray, IntArray] | None
    facts: dict[str, Any]
    soft_map: SoftMap | None = None


def _judged(found: _Found, untried: list[str]) -> PairMatch:
    confidence = map_confidence(found.a_to_b, found.a, found.b)
    judgement = judge_map(found.a_to_b, found.a, found.b, confidence, untried=untried)
    facts = found.facts | {
        "verdict": judgement.verdict,
        "mean_confidence": float(confidence.mean()),
        "judgement": judgement.as_dict(),
    }
    return PairMatch(
        found.a, found.b, found.a_to_b, confidence, found.through, facts, judgement, soft_map=found.soft_map
    )


def _through(
    a: Shape,
    b: Shape,
    run: Run,
    method: RefineMethod,
    units: tuple[float, float],
    cache: bool,
    progress: Progress | None,
    facts: dict[str, Any],
) -> _Found:
    """A to B through the reference of a network."""
    first, second = (
        match_shape(shape, run, refinement="none", unit=unit, cache=cache, progress=named_stages(progress, name))
        for shape, unit, name in ((a, units[0], "{} of A"), (b, units[1], "{} of B"))
    )
    if method != "none":
        begin_stage(progress, "refinement")
    reference = surface_of(run.reference, run.unit)
    bases = [None if method == "none" else basis_of(s, EIGENFUNCTIONS[method]) for s in (first.surface, second.surface)]
    # B is the whole even where A is a part.
    whole = refine(
        second.soft_map, second.surface, reference, "auto" if method == "pfm" else method, query_basis=bases[1]
    ).query_to_reference
    sure = second.soft_map.mass_near(whole, reference.vertices, NEAR)
    start = first.soft_map.compose(invert_through_reference(whole, reference, sure), len(whole))
    refined = refine(start, first.surface, second.surface, method, query_basis=bases[0], reference_basis=bases[1])
    matched = refined.query_to_reference
    certain = first.soft_map.mass_near(whole[matched], reference.vertices, NEAR)
    facts = facts | {
        "route": "network",
        "why": "",
        "model": run.name,
        "network_confidence": {"a": float(certain.mean()), "b": float(sure.mean())},
        "distortion": float(vertex_distortions(matched, first.surface, second.surface).mean()),
        "refinement": refined.report.as_dict(),
    }
    return _Found(first.surface, second.surface, matched, (whole[matched], whole), facts, start)


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


def _unit_of_part(shape: Shape, whole: Surface) -> tuple[float | None, str]:
    """The whole's unit for a shape that looks like a part of it in the same coordinates; None for any other."""
    there = surface_of(shape, whole.unit)
    method, why = suitable_method(there, whole)
    size = np.linalg.norm(np.ptp(there.vertices, axis=0)) / np.linalg.norm(np.ptp(whole.vertices, axis=0))
    if method == "pfm" and 0.1 < size < 1.1:
        return whole.unit, f"that of B, since A appears to be a partial shape of it: {why}"
    return None, "A's own geodesic diameter / 200"
