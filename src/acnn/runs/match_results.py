"""Results of matching: `ShapeMatch` and `PairMatch` in memory, and what `acnn match --json` prints (`MatchReport`)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from acnn.correspondence.judge import Judgement, Verdict
from acnn.correspondence.map_measures import MapMeasures
from acnn.correspondence.point_maps import barycentric_map, invert_through_reference
from acnn.correspondence.refine import RefinementReport
from acnn.correspondence.soft_map import SoftMap
from acnn.errors import InputError
from acnn.reports import Report
from acnn.shapes.mesh import BarycentricPoints, Shape
from acnn.surface.surface import Surface
from acnn.surface.working_copy import WorkingCopy
from acnn.types import FloatArray, IntArray


class _Judged:
    """What matches of both kinds have."""

    judgement: Judgement
    confidence: FloatArray
    report: Any  # of the class that each kind has

    def __repr__(self) -> str:
        count, sure = len(self.confidence), self.confidence.mean()
        return f"{type(self).__name__}({count:,} vertices, {self.verdict}, mean confidence {sure:.2f})"

    @property
    def verdict(self) -> Verdict:
        """`good`, `doubtful` or `failed`."""
        return self.judgement.verdict

    @property
    def facts(self) -> dict[str, Any]:
        """The older form of `report`."""
        warnings.warn("match.facts is deprecated: use match.report.", DeprecationWarning, stacklevel=2)
        return self.report.as_dict()


@dataclass(frozen=True, eq=False, repr=False)
class ShapeMatch(_Judged):
    """A shape matched to the reference.

    Attributes
    ----------
    shape, surface
        As loaded, and in normalised units.
    soft_map : SoftMap
        Network output.
    query_to_reference : (n,) array
        The map, refined where asked for.
    confidence : (n,) array
        In 0..1, of that map (`map_confidence`).
    report : RefinementReport
        Of the refinement.
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
    report: RefinementReport
    judgement: Judgement
    working_copy: WorkingCopy


@dataclass(frozen=True, eq=False, repr=False)
class PairMatch(_Judged):
    """Shape A matched to shape B.

    Attributes
    ----------
    a, b : Surface
        In normalised units.
    a_to_b : (n,) array
        Vertices of B.
    confidence : (n,) array
        In 0..1, of the map as it is, whichever way it was found (`map_confidence`).
    through : tuple[array, array] or None
        (n,) and (m,) reference vertices of A's and B's vertices; None by descriptors.
    report : MatchReport
        What `acnn match --json` prints of the map.
    judgement : Judgement
        Of the map, between working copies where there are some.
    soft_map : SoftMap or None
        Of A to B, network output before refinement; None by descriptors.
    lifted : BarycentricPoints or None
        Points of triangles of B, where the map was found on working copies and B is a mesh.
    copies : tuple[WorkingCopy, WorkingCopy] or None
        A and B with the copies that were matched.
    mirrored : (n,) array or None
        By descriptors, vertices of B in a second map, with left and right exchanged, where one was found.
    measures : MapMeasures or None
        What the confidence is computed from, of the map between working copies.
    """

    a: Surface
    b: Surface
    a_to_b: IntArray
    confidence: FloatArray
    through: tuple[IntArray, IntArray] | None
    report: MatchReport
    judgement: Judgement
    soft_map: SoftMap | None = None
    lifted: BarycentricPoints | None = None
    copies: tuple[WorkingCopy, WorkingCopy] | None = None
    mirrored: IntArray | None = None
    measures: MapMeasures | None = None

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


@dataclass(frozen=True, eq=False)
class UnitReport(Report):
    """The length of one normalised unit in A's coordinates, and why."""

    length: float
    why: str


@dataclass(frozen=True, eq=False)
class MatchReport(Report):
    """How a shape was matched, and how far that is to be trusted.

    Attributes
    ----------
    route : str
        `network`, or the name of the method for two shapes that was used.
    why : str
        The reason for the route; empty where there was no choice.
    model : str or None
        Name of the network.
    refinement : mapping
        See `RefinementReport`, or the report of the method.
    remarks : list[str]
        What the checks of the shapes found.
    working_copies : mapping
        `size`, and `vertices`, `working` and `why` of `a` and `b`.
    unit : UnitReport or None
        Of A; None for a match to a reference.
    distortion : float or None
        Mean relative change of edge lengths.
    network_confidence : dict[str, float] or None
        Through a network: its mean probability for points near the matches, of `a` and of `b`.
    candidates : dict[str, float] or None
        Costs of the maps that were compared, lower is better (`Candidate`).
    fit : mapping or None
        Of A to B (`fit_copy_map`): `used`, `why`, `costs` of the map and of what fits made of it, and `with_data` and
        `mean_residual` of the one that was used.
    verdict, judgement
        See `Judgement`.
    mean_confidence : float or None
    landmarks : mapping or None
        See `LandmarkReport`.
    vertices, target_vertices, coverage, notices, map, out, page
        Of a match of files: numbers of vertices, fraction of the target's area that is matched to, what a user should
        know before trusting the map, and where the results are.
    """

    route: str
    why: str
    model: str | None
    refinement: Mapping[str, Any]
    remarks: list[str]
    working_copies: Mapping[str, Any]
    unit: UnitReport | None = None
    distortion: float | None = None
    network_confidence: dict[str, float] | None = None
    candidates: dict[str, float] | None = None
    fit: Mapping[str, Any] | None = None
    verdict: Verdict | None = None
    judgement: Mapping[str, Any] | None = None
    mean_confidence: float | None = None
    landmarks: Mapping[str, Any] | None = None
    vertices: int | None = None
    target_vertices: int | None = None
    coverage: float | None = None
    notices: list[str] | None = None
    map: str | None = None
    out: str | None = None
    page: str | None = None


@dataclass(frozen=True, eq=False)
class SegmentReport(Report):
    """How the vertices of a file were labelled.

    Attributes
    ----------
    route : str
        `segmentation`.
    model : str
        Name of the network.
    vertices : int
    mean_confidence : float
    classes : list[dict]
        `name`, `area` (fraction) and `color` of each class.
    notices : list[str]
    labels, image, out : str
        Where the results are.
    """

    route: str
    model: str
    vertices: int
    mean_confidence: float
    classes: list[dict[str, Any]]
    notices: list[str]
    labels: str
    image: str
    out: str
