"""Refinement of soft maps and point maps, with a check, without ground truth, that the result is not worse."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
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
from acnn.correspondence.partial_search import Change
from acnn.correspondence.soft_map import SoftMap, soft_map_from_point_map
from acnn.errors import InputError
from acnn.shapes.mesh import Shape
from acnn.shapes.topology import mesh_edges
from acnn.surface.surface import Surface, surface_of
from acnn.types import FloatArray, IntArray

logger = logging.getLogger("acnn.correspondence")

RefineMethod = Literal["none", "fm", "zoomout", "pfm", "auto"]

EIGENFUNCTIONS: dict[RefineMethod, int] = {"none": 1, "fm": 250, "zoomout": 200, "pfm": 200, "auto": 200}
"""Number of eigenfunctions of each method, where the shapes have enough vertices."""

FULL = 0.9
"""A query with a boundary and less than this fraction of the reference's area is a partial shape."""

FEWEST = 5
"""Eigenfunctions below which no functional map is fitted."""


@dataclass(frozen=True, eq=False)
class Refined:
    """A refined map of query to reference.

    Attributes
    ----------
    query_to_reference : (n,) array
        Reference vertices.
    report : RefinementReport
        What was done, and why.
    """

    query_to_reference: IntArray
    report: RefinementReport


@dataclass(frozen=True)
class RefinementReport:
    """What a refinement did; None stands for figures that its method does not have.

    Attributes
    ----------
    method : str
        The requested method.
    used : str
        The method of the result, `none` where refinement looked worse than the start.
    why : str
        The reason for that.
    chosen_because : str or None
        With `auto`, the reason for the method.
    share : float or None
        With `pfm`, area of the query as a fraction of that of the reference.
    eigenfunctions : int or None
        Number of eigenfunctions of each shape.
    energies : tuple[float, ...] or None
        With `pfm`, of the last alternation.
    coverage, roughness, agreement : Change or None
        Of the map before and after, see `refine`; for `pfm` see `partial_map`.
    distortion : Change or None
        With `pfm`, see `partial_map`.
    """

    method: RefineMethod
    used: RefineMethod = "none"
    why: str = "not asked for"
    chosen_because: str | None = None
    share: float | None = None
    eigenfunctions: int | None = None
    energies: tuple[float, ...] | None = None
    coverage: Change | None = None
    roughness: Change | None = None
    distortion: Change | None = None
    agreement: Change | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values without those that are None, as `acnn match --json` prints them."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return values if self.energies is None else values | {"energies": list(self.energies)}


@check_arguments
def refine(
    matches: SoftMap | ArrayLike,
    query: Shape | Surface,
    reference: Shape | Surface,
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
    - `pfm`: a partial functional map, for a query that is a partial shape in the unit of the reference (`partial_map`)
    - `auto`: `zoomout` for full shapes, `pfm` for partial shapes (`suitable_method`)
    - `none`: no refinement

    Except with `pfm`, which has its own check, the refined map is kept only if, against the start, it is at most 5 %
    rougher (mean squared distance on the reference between the matches of neighbouring query vertices), covers no less
    of the reference's area, and agrees with most of the confident matches. Distances here are commute-time distances,
    sum_k (psi_k(y) - psi_k(z))^2 / lambda_k over its mean; below a tenth of the mean, matches agree.

    Parameters
    ----------
    matches : SoftMap or array_like
        Soft map, or (n,) reference vertices.
    query, reference : Mesh, PointCloud or Surface
        For `pfm` and `auto` in one unit of length, since a part has less area than its full shape; other methods
        normalise the size of each, unless surfaces are given.
    confidence : (n,) array or None
        In 0..1, for a point map.
    query_basis, reference_basis : SpectralBasis or None
        From `basis_of`, to save computing them; `EIGENFUNCTIONS` lists their sizes.
    eigenfunctions : int or None
        Largest number to use; None is that of the method.

    Returns
    -------
    Refined
        The refined map, or the start where refinement looked worse.

    Raises
    ------
    InputError
        For an unknown method or a map that does not fit the shapes.

    Examples
    --------
    A third of the matches of a bumpy sphere to itself is replaced at random, and recovered:

    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> from scipy.spatial import ConvexHull
    >>> points = np.random.default_rng(0).standard_normal((300, 3))
    >>> points /= np.linalg.norm(points, axis=1, keepdims=True)
    >>> faces = ConvexHull(points).simplices.astype(np.int32)
    >>> outward = np.linalg.det(points[faces]) > 0
    >>> faces[~outward] = faces[~outward][:, ::-1]
    >>> surface = surface_of(Mesh(points * [1.0, 1.4, 2.0], faces))
    >>> matches = np.arange(300)
    >>> matches[::3] = np.random.default_rng(1).integers(0, 300, 100)
    >>> refined = refine(matches, surface, surface, "zoomout")
    >>> refined.report.used
    'zoomout'
    >>> bool((refined.query_to_reference == np.arange(300)).mean() > 0.9)
    True
    """
    method = known_method(method)
    reference = surface_of(reference)
    given = query
    query = surface_of(given, None if isinstance(given, Surface) or method in ("fm", "zoomout") else reference.unit)
    soft_map = _as_soft_map(matches, confidence, query, reference)
    start = soft_map.query_to_reference
    report = RefinementReport(method)
    if method == "none":
        return Refined(start.copy(), report)
    if method == "auto":
        method, reason = suitable_method(query, reference)
        report = replace(report, chosen_because=reason)
        logger.debug("refinement by %s: %s", method, reason)
        query = surface_of(given) if method == "zoomout" else query
    if method == "pfm":
        from acnn.correspondence.partial_map import partial_map

        partial = partial_map(
            soft_map,
            query,
            reference,
            part_basis=query_basis,
            full_basis=reference_basis,
            eigenfunctions=eigenfunctions or EIGENFUNCTIONS["pfm"],
        )
        figures = {field.name: getattr(partial.report, field.name) for field in fields(partial.report)}
        return Refined(partial.part_to_full, replace(report, **figures))
    wanted = EIGENFUNCTIONS[method] if eigenfunctions is None else eigenfunctions
    left = basis_of(query, wanted) if query_basis is None else query_basis
    right = basis_of(reference, wanted) if reference_basis is None else reference_basis
    for basis, surface, name in ((left, query, "query"), (right, reference, "reference")):
        if len(basis) != len(surface.vertices):
            raise InputError(f"The {name}'s basis has {len(basis)} vertices, the {name} {len(surface.vertices)}.")
    k = min(wanted, left.size, right.size)
    report = replace(report, eigenfunctions=k)
    if k < FEWEST:
        why = f"{k} eigenfunctions are too few: {FEWEST} are needed"
        logger.debug("refinement skipped: %s", why)
        return Refined(start.copy(), replace(report, why=why))
    scorer = _Scorer(soft_map, query, reference, right)
    before = scorer.scores(start)
    for candidate in _attempts(method, soft_map, query, reference, left, right, k):
        after = scorer.scores(candidate)
        changes: dict[str, Any] = {name: Change(before[name], after[name]) for name in before}
        objection = _objection(before, after)
        if objection is None:
            return Refined(candidate, replace(report, used=method, why=_merit(before, after), **changes))
        logger.debug("refinement by %s rejected: %s", method, objection)
        report = replace(report, why=objection, **changes)
    logger.info("no refinement by %s was accepted: the map is kept as it was", method)
    return Refined(start.copy(), report)


def known_method(name: str) -> RefineMethod:
    """Check the name of a refinement method.

    Parameters
    ----------
    name : str
        As typed by a user.

    Returns
    -------
    RefineMethod
        The same name.

    Raises
    ------
    InputError
        Where there is no such method.
    """
    for method in EIGENFUNCTIONS:
        if method == name:
            return method
    raise InputError(f"Unknown refinement '{name}': use {', '.join(EIGENFUNCTIONS)}.")


def suitable_method(query: Surface, reference: Surface) -> tuple[RefineMethod, str]:
    """Choose `pfm` for a query that is a partial shape of the reference, else `zoomout`.

    A partial shape has a boundary that the reference lacks, and less area, if both are in the same unit of length. A
    cloud is taken for a full shape, since its boundary is not known: request `pfm` where it is a partial one.

    Parameters
    ----------
    query, reference : Surface
        In the same unit of length.

    Returns
    -------
    method : RefineMethod
        `pfm` or `zoomout`.
    why : str
        The reason.
    """
    if query.is_cloud:
        return "zoomout", "the query is a point cloud, whose boundary is not known"
    fraction = float(query.vertex_areas.sum() / reference.vertex_areas.sum())
    if not has_longer_boundary(query, reference):
        return "zoomout", "the query has no boundary that the reference lacks"
    if fraction >= FULL:
        return "zoomout", f"the query has a boundary, but {fraction:.1%} of the area of the reference"
    return "pfm", f"the query has a boundary, and {fraction:.1%} of the area of the reference"


def has_longer_boundary(surface: Surface, other: Surface) -> bool:
    """Whether the boundary of a mesh is more than twice as long as another's, each over the root of its area."""
    return _boundary_length(surface) > 2.0 * _boundary_length(other)


def _boundary_length(surface: Surface) -> float:
    """Length of the boundary over the root of the area; 0 for a cloud, where it is not known."""
    if surface.is_cloud:
        return 0.0
    edges = mesh_edges(surface.faces)
    ends = surface.vertices[edges.vertices[edges.counts == 1]]
    length = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).sum()
    return float(length / np.sqrt(surface.vertex_areas.sum()))


class _Scorer:
    """Scores of a map that need no ground truth."""

    def __init__(self, soft_map: SoftMap, query: Surface, reference: Surface, basis: SpectralBasis) -> None:
        self.soft_map, self.reference = soft_map, reference
        self.edges = mesh_edges(query.faces).vertices
        values = basis.eigenvalues
        used = values > 1e-9 * values[-1]  # without the constants, one per component
        self.embedding = basis.functions[:, used] / np.sqrt(values[used])
        # Mean 0 and mean square 1 / lambda each, so the mean squared distance of two random points is twice their sum.
        self.embedding /= np.sqrt(2.0 * (1.0 / values[used]).sum())

    def scores(self, query_to_reference: IntArray) -> dict[str, float]:
        areas = self.reference.vertex_areas
        distances = self._squared_distances(query_to_reference, self.soft_map.query_to_reference)
        trust = self.soft_map.confidence.astype(float)
        ends = query_to_reference[self.edges]
        return {
            "coverage": float(areas[np.unique(query_to_reference)].sum() / areas.sum()),
            "roughness": float(self._squared_distances(ends[:, 0], ends[:, 1]).mean()),
            "agreement": float((trust * (distances < 0.1)).sum() / max(trust.sum(), 1e-30)),
        }

    def _squared_distances(self, first: IntArray, second: IntArray) -> FloatArray:
        different = np.flatnonzero(first != second)
        squared = np.zeros(len(first))
        gaps = self.embedding[first[different]] - self.embedding[second[different]]
        squared[different] = np.einsum("nk,nk->n", gaps, gaps)
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
        vertices = confident_vertices(soft_map, count=max(1, round(0.65 * len(query_basis))))
        k = min(k, len(vertices))
        matches = soft_map.query_to_reference[vertices]
        fitted = functional_map_from_pairs(query_basis, reference_basis, vertices, matches, k)
        yield spectral_icp(fitted, query_basis, reference_basis, rounds=10)[1]
        return
    for start in (20, 10, 40):
        sizes = _growing_sizes(min(start, k), k)
        guided = guided_zoomout(soft_map, query, reference, query_basis, reference_basis, sizes=sizes)
        yield guided.query_to_reference


def _growing_sizes(start: int, stop: int) -> list[int]:
    """Numbers of eigenfunctions; steps of a third took half the time and lost maps of very coarse shapes."""
    sizes = [start]
    while sizes[-1] < stop:
        sizes.append(min(stop, sizes[-1] + int(np.clip(sizes[-1] // 5, 5, 15))))
    return sizes


def _objection(before: dict[str, float], after: dict[str, float]) -> str | None:
    """Why a refined map should not be used, or None."""
    if after["agreement"] < 0.5:
        return f"it disagrees with {100 * (1 - after['agreement']):.0f} % of the confident matches"
    if after["roughness"] > 1.05 * before["roughness"]:
        return f"it is rougher than the start ({_change(before, after, 'roughness')})"
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
    """Both figures, with as many digits as it takes to distinguish them, at least three."""
    texts = [(f"{after[name]:.{digits}g}", f"{before[name]:.{digits}g}") for digits in range(3, 18)]
    return "{} instead of {}".format(*next((pair for pair in texts if pair[0] != pair[1]), texts[0]))


def _as_soft_map(
    matches: SoftMap | ArrayLike, confidence: ArrayLike | None, query: Surface, reference: Surface
) -> SoftMap:
    n, m = len(query.vertices), len(reference.vertices)
    if not isinstance(matches, SoftMap):
        matches = soft_map_from_point_map(matches, m, confidence)
    elif confidence is not None:
        raise InputError("A soft map has its own confidence: omit the argument.")
    if matches.vertices.shape[0] != n or matches.reference_size != m:
        raise InputError(f"{matches!r} does not belong to a query of {n} and a reference of {m} vertices.")
    return matches
