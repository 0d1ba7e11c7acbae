"""Descriptor matching: nearest descriptors as a rough start, refined by guided ZoomOut; no network is needed."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from acnn.correspondence.candidates import (
    Candidate,
    best_candidate,
    filtered,
    mirrored_candidate,
    sign_alternatives,
)
from acnn.correspondence.functional_map import SpectralBasis, basis_of
from acnn.correspondence.map_measures import MapMeter
from acnn.correspondence.partial_map import soft_map_from_descriptors
from acnn.correspondence.point_maps import vertex_distortions
from acnn.correspondence.refine import Refined, RefineMethod, refine, suitable_method
from acnn.progress import Progress
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

logger = logging.getLogger("acnn.correspondence")

EIGENFUNCTIONS = 200
"""Of each shape, where it has enough vertices."""

WKS_PAIRS = 100
"""Eigenpairs, and energies, of the wave kernel signature."""

WKS_WEIGHT = 1.5
"""Length of a WKS vector beside SHOT vectors of length 1."""

STARTS: dict[str, tuple[tuple[float, ...], bool]] = {
    "SHOT and WKS": ((12.0, 30.0), True),
    "SHOT": ((12.0,), False),
    "SHOT of two radii": ((12.0, 30.0), False),
}
"""Descriptors to start from: radii of SHOT in normalised units, and whether WKS is added."""


@dataclass(frozen=True, eq=False)
class DescriptorMatch:
    """A map found by descriptor matching.

    Attributes
    ----------
    query_to_reference : (n,) array
    confidence : (n,) array
        In 0..1, how well lengths around each vertex are preserved: 1 minus `vertex_distortions`.
    report : DescriptorReport
        What was done, and why.
    mirrored : (n,) array or None
        A second map that preserves lengths and exchanges left and right; None where none was found.
    """

    query_to_reference: IntArray
    confidence: FloatArray
    report: DescriptorReport
    mirrored: IntArray | None = None


@dataclass(frozen=True)
class DescriptorReport:
    """What descriptor matching did.

    Attributes
    ----------
    start : str
        The descriptors, one of `STARTS`, or the candidate whose map was taken.
    method : str
        Of refinement.
    used : str
        The same, or `none` where no refinement was better than its start.
    chosen_because : str
        The reason for the method.
    distortion : dict[str, float]
        Mean distortion of the map of every start.
    candidates : dict[str, float]
        Costs of all maps that were compared (`Candidate`); empty where none were.
    """

    start: str
    method: RefineMethod
    used: RefineMethod
    chosen_because: str
    distortion: dict[str, float]
    candidates: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `acnn match --json` prints them."""
        return asdict(self)


def match_by_descriptors(
    query: Surface,
    reference: Surface,
    refinement: RefineMethod = "auto",
    *,
    query_basis: SpectralBasis | None = None,
    reference_basis: SpectralBasis | None = None,
    candidates: bool = True,
    progress: Progress | None = None,
) -> DescriptorMatch:
    """Match two shapes of any kind by descriptors alone.

    Nearest descriptors are correct for some vertices only. Guided ZoomOut, or a partial functional map where the query
    is a partial shape (`suitable_method`), finds the smooth map that most of them agree with. This is done for several
    descriptors, from the same starts by `filtered_zoomout`, and from the best of these maps with signs of the first
    eigenfunctions changed; the map of least cost is taken (`Candidate`). Among the last is the mirrored map, which is
    returned as well. Only SHOT distinguishes left from right, since it depends on the orientation of the surface.

    Parameters
    ----------
    query, reference : Surface
        Mesh or cloud in normalised units; a partial shape in the unit of the full shape.
    refinement : RefineMethod
        As for `refine`; `auto` is as above, `none` keeps the nearest descriptors.
    query_basis, reference_basis : SpectralBasis or None
        From `basis_of`, to save computing them.
    candidates : bool
        Whether further maps are compared; False takes the start whose refined map distorts lengths least.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    DescriptorMatch
        The best map.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> from scipy.spatial import ConvexHull
    >>> points = np.random.default_rng(0).standard_normal((200, 3))
    >>> points /= np.linalg.norm(points, axis=1, keepdims=True)
    >>> faces = ConvexHull(points).simplices.astype(np.int32)
    >>> outward = np.linalg.det(points[faces]) > 0
    >>> faces[~outward] = faces[~outward][:, ::-1]
    >>> surface = surface_of(Mesh(points * [1.0, 1.4, 2.0], faces))
    >>> match = match_by_descriptors(surface, surface, "none")
    >>> bool((match.query_to_reference == np.arange(200)).all())
    True
    """
    left = query_basis if query_basis is not None else basis_of(query, _size(query))
    right = reference_basis if reference_basis is not None else basis_of(reference, _size(reference))
    method: RefineMethod = refinement
    why = "no refinement was asked for" if method == "none" else f"{method} was asked for"
    if method == "auto":
        method, why = suitable_method(query, reference)
    results: dict[str, tuple[FloatArray, Refined]] = {}
    starts: dict[str, IntArray] = {}
    known: tuple[dict[float, FloatArray], dict[float, FloatArray]] = {}, {}
    for done, (name, (radii, with_wks)) in enumerate(STARTS.items()):
        if progress:
            progress(done, len(STARTS))
        here = _described(query, left, radii, with_wks, known[0])
        soft = soft_map_from_descriptors(here, _described(reference, right, radii, with_wks, known[1]))
        refined = refine(soft, query, reference, method, query_basis=left, reference_basis=right)
        results[name] = (vertex_distortions(refined.query_to_reference, query, reference), refined)
        starts[name] = soft.query_to_reference
    start = min(results, key=lambda name: results[name][0].mean())
    distortions, best = results[start]
    mean_distortions = {name: float(values.mean()) for name, (values, _) in results.items()}
    logger.debug("descriptor matching takes %s of %s", start, mean_distortions)
    report = DescriptorReport(start, method, best.report.used, why, mean_distortions)
    if not candidates or method == "none":
        return DescriptorMatch(best.query_to_reference, 1.0 - distortions, report)
    meter = MapMeter(query, reference)
    maps = {start: best.query_to_reference}
    maps |= {name: refined.query_to_reference for name, (_, refined) in results.items()}
    maps |= {f"{name}, filtered": filtered(matched, query, reference) for name, matched in starts.items()}
    compared = [Candidate(name, matched, meter(matched)) for name, matched in maps.items()]
    for i, matched in enumerate(sign_alternatives(best_candidate(compared).query_to_reference, left, right)):
        other = filtered(matched, query, reference)
        compared.append(Candidate(f"other signs {i + 1}", other, meter(other)))
    taken = best_candidate(compared)
    report = replace(
        report,
        start=taken.name,
        used=report.used if taken.name in results else "zoomout",
        candidates={candidate.name: candidate.cost for candidate in compared},
    )
    distortions = vertex_distortions(taken.query_to_reference, query, reference)
    mirrored = mirrored_candidate(compared, taken)
    return DescriptorMatch(
        taken.query_to_reference, 1.0 - distortions, report, None if mirrored is None else mirrored.query_to_reference
    )


def _size(surface: Surface) -> int:
    return min(EIGENFUNCTIONS, len(surface.vertices) - 1)


def _described(
    surface: Surface,
    basis: SpectralBasis,
    radii: tuple[float, ...],
    with_wks: bool,
    known: dict[float, FloatArray],
) -> FloatArray:
    """(n, p) concatenated descriptors; SHOT of every radius is computed once and kept in `known`."""
    from acnn.descriptors.shot import shot
    from acnn.descriptors.spectral import wks

    for radius in radii:
        if radius not in known:
            known[radius] = shot(surface, radius, upright=True)
    columns: list[FloatArray] = [known[radius] for radius in radii]
    if with_wks:
        pairs = min(WKS_PAIRS, basis.size)
        values = wks(basis.eigenvalues[:pairs], basis.functions[:, :pairs], WKS_PAIRS)
        lengths = np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-300)
        columns.append(WKS_WEIGHT * values / lengths)
    return np.concatenate(columns, axis=1).astype(np.float32)
