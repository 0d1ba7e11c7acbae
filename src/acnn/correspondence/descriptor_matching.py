"""Matching without a network: descriptors give a rough start, guided ZoomOut does the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from acnn.correspondence.functional_map import SpectralBasis, basis_of
from acnn.correspondence.partial_map import soft_map_from_descriptors
from acnn.correspondence.point_maps import vertex_distortions
from acnn.correspondence.refine import Refined, RefineMethod, refine, suitable_method
from acnn.progress import Progress
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

EIGENFUNCTIONS = 200
WKS_PAIRS = 100
WKS_WEIGHT = 1.5

STARTS: dict[str, tuple[tuple[float, ...], bool]] = {
    "SHOT and WKS": ((12.0, 30.0), True),
    "SHOT": ((12.0,), False),
    "SHOT of two radii": ((12.0, 30.0), False),
}
"""Descriptors to start from: radii of SHOT in run units, and whether WKS joins in."""


@dataclass(frozen=True, eq=False)
class DescriptorMatch:
    """A map found without a network.

    Attributes
    ----------
    query_to_reference : (n,) array
    confidence : (n,) array
        In 0..1, how well lengths around each vertex are kept: 1 minus `vertex_distortions`.
    facts : dict[str, Any]
        `start`, whose map was taken; `method` of refinement and `chosen_because`; `used`, `none` where no refinement
        was better than its start; `distortion` of every start's map, 1 minus its mean confidence.
    """

    query_to_reference: IntArray
    confidence: FloatArray
    facts: dict[str, Any]


def match_by_descriptors(
    query: Surface,
    reference: Surface,
    refinement: RefineMethod = "auto",
    *,
    query_basis: SpectralBasis | None = None,
    reference_basis: SpectralBasis | None = None,
    progress: Progress | None = None,
) -> DescriptorMatch:
    """Match two shapes of any kind by descriptors alone.

    Nearest descriptors are right for some vertices only; guided ZoomOut finds the smooth map that most of these agree
    with, or a partial functional map does where the query is a part (`suitable_method`). That is done from several
    descriptors, and the map that distorts lengths least is taken: in a wrong one limbs are torn or swapped. Left and
    right are told apart by SHOT alone, which knows on which side of a surface it is.

    Parameters
    ----------
    query, reference : Surface
        Mesh or cloud, in run units, a part in the unit of the whole.
    refinement : RefineMethod
        As for `refine`; `auto` is as above, `none` leaves the nearest descriptors.
    query_basis, reference_basis : SpectralBasis or None
        From `basis_of`, where they are known already.
    progress : Progress or None
        Called with (done, in all).
    """
    left = query_basis if query_basis is not None else basis_of(query, _size(query))
    right = reference_basis if reference_basis is not None else basis_of(reference, _size(reference))
    method: RefineMethod = refinement
    why = "no refinement was asked for" if method == "none" else f"{method} was asked for"
    if method == "auto":
        method, why = suitable_method(query, reference)
    found: dict[str, tuple[FloatArray, Refined]] = {}
    for done, (name, (radii, with_wks)) in enumerate(STARTS.items()):
        if progress:
            progress(done, len(STARTS))
        here = _described(query, left, radii, with_wks)
        soft = soft_map_from_descriptors(here, _described(reference, right, radii, with_wks))
        refined = refine(soft, query, reference, method, query_basis=left, reference_basis=right)
        found[name] = (vertex_distortions(refined.query_to_reference, query, reference), refined)
    start = min(found, key=lambda name: found[name][0].mean())
    changes, best = found[start]
    facts = {
        "start": start,
        "method": method,
        "used": best.facts["used"],
        "chosen_because": why,
        "distortion": {name: float(values.mean()) for name, (values, _) in found.items()},
    }
    return DescriptorMatch(best.query_to_reference, 1.0 - changes, facts)


def _size(surface: Surface) -> int:
    return min(EIGENFUNCTIONS, len(surface.vertices) - 1)


def _described(surface: Surface, basis: SpectralBasis, radii: tuple[float, ...], with_wks: bool) -> FloatArray:
    """(n, p) descriptors side by side."""
    from acnn.descriptors.shot import shot
    from acnn.descriptors.spectral import wks

    columns: list[FloatArray] = [shot(surface, radius, upright=True) for radius in radii]
    if with_wks:
        pairs = min(WKS_PAIRS, basis.size)
        values = wks(basis.eigenvalues[:pairs], basis.functions[:, :pairs], WKS_PAIRS)
        lengths = np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-300)
        columns.append(WKS_WEIGHT * values / lengths)
    return np.concatenate(columns, axis=1).astype(np.float32)
