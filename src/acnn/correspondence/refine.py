"""Refinement of what the network gave, with a check that it did no harm; the truth is never seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from acnn.arguments import check_arguments
from acnn.correspondence.functional_map import (
    SpectralBasis,
    basis_of,
    confident_vertices,
    functional_map_from_pairs,
    spectral_icp,
)
from acnn.correspondence.guided_zoomout import guided_zoomout
from acnn.correspondence.soft_map import SoftMap, soft_map_from_point_map
from acnn.errors import InputError
from acnn.shapes.topology import mesh_edges
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

RefineMethod = Literal["none", "fm", "zoomout", "pfm", "auto"]

EIGENFUNCTIONS: dict[RefineMethod, int] = {"none": 1, "fm": 250, "zoomout": 200, "pfm": 200, "auto": 200}
"""How many eigenfunctions each method takes, where the shapes have enough vertices."""

WHOLE = 0.9
"""A query with a border and less than this share of the reference's area is a part of it."""

FEWEST = 5
"""Eigenfunctions below which no map is worth fitting."""


@dataclass(frozen=True, eq=False)
class Refined:
    """A refined map of query to reference.

    Attributes
    ----------
    query_to_reference : (n,) array
        Reference vertices.
    facts : dict[str, Any]
        `method` asked for; `used`, which is `none` where refinement looked worse than the start; `why`, in words;
        `chosen_because` with `auto`; `eigenfunctions`; and of the map before and after: `coverage`, `roughness`,
        `agreement` (see `refine`), or for `pfm` `distortion` and `agreement` (see `partial_map`).
    """

    query_to_reference: IntArray
    facts: dict[str, Any]


@check_arguments
def refine(
    matches: SoftMap | ArrayLike,
    query: Surface,
    reference: Surface,
    method: RefineMethod = "zoomout",
    *,
    confidence: ArrayLike | None = None,
    query_basis: SpectralBasis | None = None,
    reference_basis: SpectralBasis | None = None,
    eigenfunctions: int | None = None,
) -> Refined:
    """Refine a soft map or a point map of query to reference; works the same for query to target.

    - `fm`, the paper's (section 4.3): functional map of the most confident 65 % of the matches (4,500 on FAUST), then
      at most 10 rounds of spectral ICP
    - `zoomout`: `guided_zoomout` from 20 eigenfunctions upwards in steps of a fifth, by at least 5 and at most 15
    - `pfm`: a partial functional map, for a query that is a part of the reference in the same unit (`partial_map`)
    - `auto`: `zoomout` for whole shapes, `pfm` for parts (`suitable_method`)
    - `none`: the network's map

    Except by `pfm`, which judges for itself, the refined map is kept only if, against the start, it is at most 5 %
    rougher (mean squared distance on the reference between the matches of neighbouring query vertices), covers no less
    of the reference's area, and agrees with most of the confident matches. Distances here are commute-time distances,
    sum_k (psi_k(y) - psi_k(z))^2 / lambda_k over its mean; below a tenth of the mean, matches agree.

    Parameters
    ----------
    matches : SoftMap or array_like
        Soft map, or (n,) reference vertices.
    query, reference : Surface
        Mesh or cloud.
    confidence : (n,) array or None
        In 0..1, for a point map.
    query_basis, reference_basis : SpectralBasis or None
        From `basis_of`, where they are known already; `EIGENFUNCTIONS` says how large.
    eigenfunctions : int or None
        How many to use at most; None is the method's own number.

    Raises
    ------
    InputError
        For an unknown method or a map that does not fit the shapes.
    """
    method = known_method(method)
    soft_map = _as_soft_map(matches, confidence, query, reference)
    start = soft_map.query_to_reference
    facts: dict[str, Any] = {"method": method, "used": "none", "why": "not asked for"}
    if method == "none":
        return Refined(start.copy(), facts)
    if method == "auto":
        method, facts["chosen_because"] = suitable_method(query, reference)
    if method == "pfm":
        from acnn.correspondence.partial_map import partial_map

        found = partial_map(
            soft_map,
            query,
            reference,
            part_basis=query_basis,
            full_basis=reference_basis,
            eigenfunctions=eigenfunctions or EIGENFUNCTIONS["pfm"],
        )
        return Refined(found.part_to_full, facts | found.facts)
    wanted = EIGENFUNCTIONS[method] if eigenfunctions is None else eigenfunctions
    left = basis_of(query, wanted) if query_basis is None else query_basis
    right = basis_of(reference, wanted) if reference_basis is None else reference_basis
    for basis, surface, name in ((left, query, "query"), (right, reference, "reference")):
        if len(basis) != len(surface.vertices):
            raise InputError(f"The {name}'s basis has {len(basis)} vertices, the {name} {len(surface.vertices)}.")
    k = min(wanted, left.size, right.size)
    facts["eigenfunctions"] = k
    if k < FEWEST:
        return Refined(start.copy(), facts | {"why": f"{k} eigenfunctions are too few: {FEWEST} are needed"})
    judge = _Judge(soft_map, query, reference, right)
    before = judge.facts(start)
    for candidate in _attempts(method, soft_map, query, reference, left, right, k):
        after = judge.facts(candidate)
        facts |= {name: {"before": before[name], "after": after[name]} for name in before}
        objection = _objection(before, after)
        if objection is None:
            return Refined(candidate, facts | {"used": method, "why": _merit(before, after)})
        facts["why"] = objection
    return Refined(start.copy(), facts)


def known_method(name: str) -> RefineMethod:
    """The method of a name; raises InputError where there is none."""
    for method in EIGENFUNCTIONS:
        if method == name:
            return method
    raise InputError(f"Unknown refinement '{name}': use {', '.join(EIGENFUNCTIONS)}.")


def suitable_method(query: Surface, reference: Surface) -> tuple[RefineMethod, str]:
    """`pfm` for a query that is a part of the reference, else `zoomout`; and why, in words.

    A part has a border that the reference has not, and less area; both must be in the same unit for that to show.
    A cloud is taken for whole, since its borders are not known: ask for `pfm` where it is a part.
    """
    if query.is_cloud:
        return "zoomout", "the query is a cloud, whose borders are not known"
    share = float(query.vertex_areas.sum() / reference.vertex_areas.sum())
    if not has_more_border(query, reference):
        return "zoomout", "the query has no border that the reference has not"
    if share >= WHOLE:
        return "zoomout", f"the query has a border, but {share:.1%} of the reference's area"
    return "pfm", f"the query has a border, and {share:.1%} of the reference's area"


def has_more_border(surface: Surface, other: Surface) -> bool:
    """Whether a mesh has borders that another has not: more than twice their length, each over the root of its area."""
    return _border_length(surface) > 2.0 * _border_length(other)


def _border_length(surface: Surface) -> float:
    """Length of all borders over the root of the area; 0 for a cloud, where they are not known."""
    if surface.is_cloud:
        return 0.0
    edges = mesh_edges(surface.faces)
    ends = surface.vertices[edges.vertices[edges.counts == 1]]
    length = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).sum()
    return float(length / np.sqrt(surface.vertex_areas.sum()))


class _Judge:
    """Scores of a map that need no truth."""

    def __init__(self, soft_map: SoftMap, query: Surface, reference: Surface, basis: SpectralBasis) -> None:
        self.soft_map, self.reference = soft_map, reference
        self.edges = mesh_edges(query.faces).vertices
        values = basis.eigenvalues
        used = values > 1e-9 * values[-1]  # constants, one per component, carry no distance
        self.places = basis.functions[:, used] / np.sqrt(values[used])
        # Mean 0 and mean square 1 / lambda each, so the mean squared distance of two random points is twice their sum.
        self.places /= np.sqrt(2.0 * (1.0 / values[used]).sum())

    def facts(self, query_to_reference: IntArray) -> dict[str, float]:
        areas = self.reference.vertex_areas
        apart = self._squared(query_to_reference, self.soft_map.query_to_reference)
        trust = self.soft_map.confidence.astype(float)
        ends = query_to_reference[self.edges]
        return {
            "coverage": float(areas[np.unique(query_to_reference)].sum() / areas.sum()),
            "roughness": float(self._squared(ends[:, 0], ends[:, 1]).mean()),
            "agreement": float((trust * (apart < 0.1)).sum() / max(trust.sum(), 1e-30)),
        }

    def _squared(self, first: IntArray, second: IntArray) -> FloatArray:
        different = np.flatnonzero(first != second)
        squared = np.zeros(len(first))
        gap = self.places[first[different]] - self.places[second[different]]
        squared[different] = np.einsum("nk,nk->n", gap, gap)
        return squared


def _attempts(
    method: RefineMethod,
    soft_map: SoftMap,
    query: Surface,
    reference: Surface,
    query_basis: SpectralBasis,
    reference_basis: SpectralBasis,
    k: int,
) -> Iterator[IntArray]:
    """Candidate maps, one after another until one is accepted."""
    if method == "fm":
        chosen = confident_vertices(soft_map, count=max(1, round(0.65 * len(query_basis))))
        k = min(k, len(chosen))
        matched = soft_map.query_to_reference[chosen]
        fitted = functional_map_from_pairs(query_basis, reference_basis, chosen, matched, k)
        yield spectral_icp(fitted, query_basis, reference_basis, rounds=10)[1]
        return
    for start in (20, 10, 40):
        sizes = _growing_sizes(min(start, k), k)
        guided = guided_zoomout(soft_map, query, reference, query_basis, reference_basis, sizes=sizes)
        yield guided.query_to_reference


def _growing_sizes(start: int, stop: int) -> list[int]:
    sizes = [start]
    while sizes[-1] < stop:
        sizes.append(min(stop, sizes[-1] + int(np.clip(sizes[-1] // 5, 5, 15))))
    return sizes


def _objection(before: dict[str, float], after: dict[str, float]) -> str | None:
    """Why a refined map should not be used, or None."""
    if after["agreement"] < 0.5:
        return f"it disagrees with {100 * (1 - after['agreement']):.0f} % of what the network was confident of"
    if after["roughness"] > 1.05 * before["roughness"]:
        return f"it is rougher than the network's map ({_change(before, after, 'roughness')})"
    if after["coverage"] < before["coverage"]:
        return f"it covers less of the reference ({_change(before, after, 'coverage')})"
    return None


def _merit(before: dict[str, float], after: dict[str, float]) -> str:
    """Why a refined map is used."""
    if after["roughness"] < before["roughness"]:
        smooth = "smoother"
    elif after["roughness"] == before["roughness"]:
        smooth = "as smooth"
    else:
        smooth = f"hardly rougher ({_change(before, after, 'roughness')})"
    return f"{smooth}, and agrees with {after['agreement']:.0%} of the confident matches"


def _change(before: dict[str, float], after: dict[str, float], name: str) -> str:
    """Both figures, with as many digits as it takes to tell them apart, three at least."""
    texts = [(f"{after[name]:.{digits}g}", f"{before[name]:.{digits}g}") for digits in range(3, 18)]
    return "{} instead of {}".format(*next((pair for pair in texts if pair[0] != pair[1]), texts[0]))


def _as_soft_map(
    matches: SoftMap | ArrayLike, confidence: ArrayLike | None, query: Surface, reference: Surface
) -> SoftMap:
    n, m = len(query.vertices), len(reference.vertices)
    if not isinstance(matches, SoftMap):
        matches = soft_map_from_point_map(matches, m, confidence)
    elif confidence is not None:
        raise InputError("A soft map brings its own confidence: leave the argument out.")
    if matches.vertices.shape[0] != n or matches.reference_size != m:
        raise InputError(f"{matches!r} does not belong to a query of {n} and a reference of {m} vertices.")
    return matches
