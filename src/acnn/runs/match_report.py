"""`MatchReport` and `SegmentReport`: what `acnn match --json` prints of a map, and of a segmentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acnn.correspondence.judge import Verdict
from acnn.reports import Report


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
