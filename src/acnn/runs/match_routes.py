"""Routes of a match: through a network or by a pair method, and the map between working copies that each gives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from threadpoolctl import threadpool_limits

from acnn.correspondence.candidates import best_candidate, filtered
from acnn.correspondence.functional_map import basis_of
from acnn.correspondence.judge import map_confidence
from acnn.correspondence.map_measures import MapMeter
from acnn.correspondence.point_maps import invert_through_reference, vertex_distortions
from acnn.correspondence.refine import EIGENFUNCTIONS, RefineMethod, refine
from acnn.correspondence.soft_map import SoftMap
from acnn.errors import InputError
from acnn.methods.method import PairMethod
from acnn.methods.registry import AUTO, METHODS, pair_method
from acnn.methods.run import Run, open_run, shipped_models
from acnn.progress import Progress, begin_stage, named_stages
from acnn.runs.match_results import MatchReport
from acnn.runs.working_pair import CopyMap, WorkingPair
from acnn.surface.surface import Surface
from acnn.surface.working_copy import COARSE, WORKING_SIZE, WorkingCopy
from acnn.types import FloatArray, IntArray

HUMANS = "humans"
"""The pretrained model that matches two shapes where no other is named."""

NEAR = 10.0
"""Radius in normalised units (a twentieth of the diameter) in which the network's probability supports a match."""

CANDIDATES = 32
"""Reference vertices that are kept of the network's distribution."""


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
        pretrained = [name for name in shipped_models() if open_run(name).config.method == method]
        or_named = f", or the name of a pretrained one ({', '.join(pretrained)})" if pretrained else ""
        raise InputError(
            f"The method '{method}' needs a trained model: give the folder of a run of 'acnn train --method {method}' "
            f"with --model{or_named}."
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


def coarse_below(run: Run | None) -> int:
    """Number of vertices below which a mesh is refined before it is matched: none for a network of one's own.

    That may have been trained on shapes as coarse as these.
    """
    return COARSE if run is None or run.shipped else 0


@contextmanager
def thread_beside(
    method: RefineMethod, surfaces: Sequence[Surface], run: Run | None, cache: bool
) -> Iterator[ThreadPoolExecutor]:
    """A thread for jobs beside the work within, which begins with the eigenfunctions that refinement will ask for.

    Kernels use all cores meanwhile, so that linear algebra gets one thread: several would wait for each other.
    """
    pool, count = ThreadPoolExecutor(1), EIGENFUNCTIONS[method]
    limited = threadpool_limits(1, user_api="blas")
    try:
        if method != "none":
            if run is not None:
                pool.submit(run.reference_basis, count, cache=cache)
            for surface in surfaces:
                pool.submit(basis_of, surface, count)
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        limited.restore_original_limits()


def network_output(copy: WorkingCopy, run: Run, unit: float, cache: bool, progress: Progress | None) -> SoftMap:
    """The soft map of a working copy to the reference of a run."""
    inputs = run.prepare(copy.shape, unit=unit, cache=cache, progress=begin_stage(progress, "operators"))
    begin_stage(progress, "network output")
    return run.soft_map(inputs, k=CANDIDATES)


def map_through_network(
    pair: WorkingPair,
    run: Run,
    method: RefineMethod,
    surfaces: tuple[Surface, Surface],
    cache: bool,
    progress: Progress | None,
    known_before: dict[str, Any],
    beside: ThreadPoolExecutor,
) -> CopyMap:
    """A to B through the reference of a network; B is refined beside the operators of A."""
    here, there = surfaces
    reference = run.reference_surface
    second = network_output(pair.b, run, there.unit, cache, named_stages(progress, "{} of B"))
    # B is the full shape even where A is a partial one.
    job = beside.submit(refine, second, there, reference, "auto" if method == "pfm" else method)
    first = network_output(pair.a, run, here.unit, cache, named_stages(progress, "{} of A"))
    if method != "none":
        begin_stage(progress, "refinement")
    whole = job.result().query_to_reference
    back = None if method == "none" else beside.submit(_backward, (first, second), (here, there), run, method)
    sure = second.mass_near(whole, reference.vertices, NEAR)
    start = first.compose(invert_through_reference(whole, reference, sure), len(whole))
    refined = refine(start, here, there, method)
    matched = refined.query_to_reference
    own, backward = (None, None) if back is None else back.result()

    def evidence(a_to_b: IntArray) -> FloatArray:
        near = first.mass_near(whole[a_to_b], reference.vertices, NEAR).astype(float)
        if own is None:
            return near
        # Where the output for one shape is wrong, that for the other mostly is not.
        return 0.5 * (near + second.rows(a_to_b).mass_near(own, reference.vertices, NEAR))

    report = MatchReport(
        route="network",
        why="",
        model=run.name,
        network_confidence={"a": float(evidence(matched).mean()), "b": float(sure.mean())},
        distortion=float(vertex_distortions(matched, here, there).mean()),
        refinement=refined.report.as_dict(),
        **known_before,
    )
    return CopyMap(here, there, matched, (whole[matched], whole), report, start, evidence, backward)


def _backward(
    outputs: tuple[SoftMap, SoftMap], surfaces: tuple[Surface, Surface], run: Run, method: RefineMethod
) -> tuple[IntArray, tuple[IntArray, FloatArray]]:
    """The refined map of A to the reference; vertices of A by the network output for B through it, and confidence."""
    (first, second), (here, there), reference = outputs, surfaces, run.reference_surface
    own = refine(first, here, reference, method).query_to_reference
    sure = first.mass_near(own, reference.vertices, NEAR)
    matched = second.compose(invert_through_reference(own, reference, sure), len(own)).query_to_reference
    evidence = second.mass_near(own[matched], reference.vertices, NEAR).astype(float)
    return own, (matched, map_confidence(matched, there, here, MapMeter(there, here)(matched, evidence)))


def best_with_filtered(found: CopyMap, meter: MapMeter) -> CopyMap:
    """The map of a network, or the one that `filtered` makes of the same matches where that is better."""
    assert found.soft_map is not None
    assert found.through is not None
    assert found.evidence is not None
    assert found.report.network_confidence is not None
    matched = filtered(found.soft_map.query_to_reference, found.a, found.b)
    other = replace(found, a_to_b=matched, through=(found.through[1][matched], found.through[1])).measured(meter)
    costs = {"refined": found.candidate.cost, "filtered": other.candidate.cost}
    if best_candidate([found.candidate, other.candidate]).query_to_reference is found.a_to_b:
        return replace(found, report=replace(found.report, candidates=costs))
    refinement = dict(found.report.refinement) | {
        "used": "zoomout",
        "why": "functional maps filtered by wavelets give a better map from the same matches",
    }
    report = replace(
        found.report,
        candidates=costs,
        refinement=refinement,
        distortion=float(vertex_distortions(matched, found.a, found.b).mean()),
        network_confidence=found.report.network_confidence | {"a": float(found.evidence(matched).mean())},
    )
    return replace(other, report=report)


def map_by_pair_method(
    method: PairMethod,
    a: Surface,
    b: Surface,
    refinement: RefineMethod,
    why: str,
    known_before: dict[str, Any],
    progress: Progress | None,
) -> CopyMap:
    """A to B by a method for two shapes as they are."""
    found = method.match(a, b, refinement, begin_stage(progress, method.name))
    report = MatchReport(
        route=method.name,
        why=why,
        model=None,
        distortion=found.distortion,
        refinement=found.report,
        **known_before,
    )
    costs = found.report.get("candidates") or None
    return CopyMap(a, b, found.a_to_b, None, replace(report, candidates=costs), mirrored=found.mirrored)
