"""Errors of maps between pairs of shapes, pooled over all vertices of all pairs.

The error of a vertex of A is the geodesic distance on B between its match and its ground truth, over the root of B's
area (`princeton`). It is measured twice: by the distances of this package, and by Dijkstra's algorithm on the edges of
B alone, which published figures use and which gives 4 to 6 % more. A pair has failed where over 20 % of the vertices
have an error beyond 0.2, and is flipped where the map as a whole is nearer to the mirrored ground truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from acnn.datasets.pairs import Pair
from acnn.errors import InputError
from acnn.evaluation.distances import Normalisation, ReferenceDistances
from acnn.evaluation.princeton import THRESHOLDS, ShapeEvaluation, evaluate_map
from acnn.shapes.mesh import Mesh
from acnn.surface.geodesics import Method
from acnn.surface.surface import surface_of

BEYOND = 0.2
"""Errors above this are far off, and a pair with more than this fraction of them has failed."""

WITHIN = 0.05
"""Errors up to this are right, in the calibration of confidences."""

BINS = 100
"""Intervals of confidence in which right and wrong matches are counted."""


@dataclass(frozen=True)
class ErrorFigures:
    """Figures over the errors of a number of vertices.

    Attributes
    ----------
    vertices : int
        How many, in pairs whose ground truth is a list: its rows.
    exact : float
        Fraction of matches equal to the true vertex.
    mean_error_x100 : float
    auc : float
        Mean of the curve.
    beyond_20 : float
        Fraction of errors above 0.2.
    curve : tuple[float, ...]
        Fraction of errors at most each of `THRESHOLDS`.
    """

    vertices: int
    exact: float
    mean_error_x100: float
    auc: float
    beyond_20: float
    curve: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {**asdict(self), "curve": list(self.curve)}


@dataclass(frozen=True)
class ConfidenceCounts:
    """Matches counted by their confidence, in `BINS` equal intervals of 0..1: all of them, and those within 0.05."""

    matches: tuple[int, ...]
    right: tuple[int, ...]

    @classmethod
    def of(cls, confidence: ArrayLike, errors: ArrayLike) -> ConfidenceCounts:
        """Count matches of given confidences and errors, (n,) each."""
        at = np.clip((np.asarray(confidence) * BINS).astype(int), 0, BINS - 1)
        matches = np.bincount(at, minlength=BINS)
        right = np.bincount(at[np.asarray(errors) <= WITHIN], minlength=BINS)
        return cls(tuple(matches.tolist()), tuple(right.tolist()))

    def calibration_error(self, bins: int = 10) -> float:
        """Mean over matches of |confidence - fraction within 0.05| of the interval that they lie in."""
        matches, right = (np.array(c, float).reshape(bins, -1) for c in (self.matches, self.right))
        centres = ((np.arange(BINS) + 0.5) / BINS).reshape(bins, -1)
        return float(np.abs((matches * centres).sum(axis=1) - right.sum(axis=1)).sum() / matches.sum())

    def auc(self) -> float | None:
        """Area under the ROC curve of confidence against 'within 0.05'; None where all or none are."""
        right, wrong = np.array(self.right, float), np.array(self.matches, float) - self.right
        if not right.sum() or not wrong.sum():
            return None
        below = np.cumsum(wrong) - wrong
        return float((right * (below + 0.5 * wrong)).sum() / (right.sum() * wrong.sum()))


@dataclass(frozen=True)
class PairEvaluation:
    """Evaluation of the map of one pair.

    Attributes
    ----------
    a, b : str
        Names of the shapes.
    errors, edge_errors : ErrorFigures
        By the distances of this package, and by Dijkstra's algorithm on edges.
    symmetric : ErrorFigures or None
        The smaller error of each vertex to the ground truth and the mirrored one, where that is known.
    flipped : bool or None
        Whether the mean error to the mirrored ground truth is the smaller one; None where it is unknown.
    coverage : float
        Fraction of B's area whose vertices are matched.
    confidence : ConfidenceCounts or None
        Matches by confidence.
    mean_confidence : float or None
    verdict : str
        Of `match`, empty where unknown.
    route : str
        How it was matched, empty where unknown.
    seconds : float
        Processor time of matching.
    """

    a: str
    b: str
    errors: ErrorFigures
    edge_errors: ErrorFigures
    symmetric: ErrorFigures | None
    flipped: bool | None
    coverage: float
    confidence: ConfidenceCounts | None = None
    mean_confidence: float | None = None
    verdict: str = ""
    route: str = ""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether more than 20 % of the vertices have an error beyond 0.2."""
        return self.errors.beyond_20 > BEYOND

    def summary(self) -> dict[str, Any]:
        """What a report lists of the pair: its figures without curves."""
        return {
            "a": self.a,
            "b": self.b,
            "vertices": self.errors.vertices,
            "exact": self.errors.exact,
            "mean_error_x100": self.errors.mean_error_x100,
            "edge_dijkstra_error_x100": self.edge_errors.mean_error_x100,
            "beyond_20": self.errors.beyond_20,
            "failed": self.failed,
            "flipped": self.flipped,
            "verdict": self.verdict,
            "route": self.route,
            "mean_confidence": self.mean_confidence,
            "seconds": self.seconds,
        }

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain values, from which `from_dict` makes the same evaluation."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PairEvaluation:
        """The evaluation of a dictionary that `as_dict` made; raises TypeError or KeyError for any other."""
        known = {field.name: values[field.name] for field in fields(cls)}
        for name in ("errors", "edge_errors", "symmetric"):
            if known[name] is not None:
                known[name] = ErrorFigures(**{**known[name], "curve": tuple(known[name]["curve"])})
        if known["confidence"] is not None:
            known["confidence"] = ConfidenceCounts(*(tuple(known["confidence"][k]) for k in ("matches", "right")))
        return cls(**known)


@dataclass(frozen=True)
class PairsReport:
    """Evaluations of pairs, and figures over those of two different shapes.

    Attributes
    ----------
    pairs : tuple[PairEvaluation, ...]
        Self-pairs included.
    normalisation : str
        What errors are divided by.
    """

    pairs: tuple[PairEvaluation, ...]
    normalisation: Normalisation = "sqrt_area"

    def as_dict(self) -> dict[str, Any]:
        """What `acnn evaluate --pairs --json` prints; self-pairs are counted under `self_pairs` only.

        Raises
        ------
        InputError
            Where there is no pair of two different shapes.
        """
        different = [pair for pair in self.pairs if pair.a != pair.b]
        if not different:
            raise InputError("There is no evaluated pair of two different shapes to report on.")
        report = pooled([pair.errors for pair in different]).as_dict()
        report |= {
            "normalisation": self.normalisation,
            "thresholds": THRESHOLDS.tolist(),
            "coverage": float(np.mean([pair.coverage for pair in different])),
            "failed_pairs": sum(pair.failed for pair in different),
            "flipped_pairs": None,
            "edge_dijkstra": pooled([pair.edge_errors for pair in different]).as_dict(),
            "verdicts": {},
            "seconds_per_pair": float(np.mean([pair.seconds for pair in different])),
        }
        known = [pair.flipped for pair in different if pair.flipped is not None]
        if known:
            report["flipped_pairs"] = sum(known)
        symmetric = [pair.symmetric for pair in different if pair.symmetric is not None]
        if len(symmetric) == len(different):
            report["symmetric"] = pooled(symmetric).as_dict()
        for verdict in sorted({pair.verdict for pair in different} - {""}):
            judged = [pair for pair in different if pair.verdict == verdict]
            report["verdicts"][verdict] = {"pairs": len(judged), "failed": sum(pair.failed for pair in judged)}
        counts = [pair.confidence for pair in different if pair.confidence is not None]
        if counts:
            total = ConfidenceCounts(
                tuple(np.sum([c.matches for c in counts], axis=0).tolist()),
                tuple(np.sum([c.right for c in counts], axis=0).tolist()),
            )
            report["confidence"] = {"calibration_error": total.calibration_error(), "auc": total.auc()}
        same = [pair for pair in self.pairs if pair.a == pair.b]
        report["self_pairs"] = {"pairs": len(same), "failed_pairs": sum(pair.failed for pair in same)}
        if same:
            together = pooled([pair.errors for pair in same])
            report["self_pairs"] |= {"exact": together.exact, "mean_error_x100": together.mean_error_x100}
        report["pairs"] = [pair.summary() for pair in self.pairs]
        return report


class PairEvaluator:
    """Evaluates maps of pairs; distances on the last B are kept, since consecutive pairs often share it.

    Parameters
    ----------
    method : Method
        Of the distances, `graph` or `exact`; those on edges are measured beside them.
    """

    def __init__(self, method: Method = "graph") -> None:
        self.method = method
        self._last: tuple[Mesh, tuple[ReferenceDistances, ReferenceDistances]] | None = None

    def __call__(
        self, pair: Pair, a_to_b: ArrayLike, confidence: ArrayLike | None = None, **facts: Any
    ) -> PairEvaluation:
        """Compare the map of a pair with its ground truth.

        Parameters
        ----------
        pair : Pair
        a_to_b : (n,) int array
            Vertices of B.
        confidence : (n,) array or None
            In 0..1.
        **facts
            `verdict`, `route` and `seconds` of `PairEvaluation`.

        Returns
        -------
        PairEvaluation

        Raises
        ------
        InputError
            Where the map does not fit, or the ground truth is not known for any vertex.
        """
        distances, on_edges = self._distances(pair.b)
        name = " ".join(pair.names)
        matches = np.asarray(a_to_b)
        found, edges = (
            evaluate_map(matches, pair.truth, by, rows=pair.rows, name=name) for by in (distances, on_edges)
        )
        symmetric, flipped = None, None
        if pair.mirrored is not None:
            both = evaluate_map(matches, pair.truth, distances, mirrored_truth=pair.mirrored, rows=pair.rows, name=name)
            assert both.per_map is not None
            symmetric, flipped = _figures(both), both.per_map.flipped
        counts = None
        if confidence is not None:
            counts = ConfidenceCounts.of(np.asarray(confidence)[self._vertices(pair)], found.errors)
        return PairEvaluation(
            *pair.names,
            _figures(found),
            _figures(edges),
            symmetric,
            flipped,
            found.coverage,
            counts,
            None if confidence is None else float(np.asarray(confidence, float).mean()),
            **facts,
        )

    def _distances(self, b: Mesh) -> tuple[ReferenceDistances, ReferenceDistances]:
        if self._last is None or self._last[0] is not b:
            surface = surface_of(b)
            self._last = (
                b,
                (ReferenceDistances(surface, method=self.method), ReferenceDistances(surface, method="edges")),
            )
        return self._last[1]

    @staticmethod
    def _vertices(pair: Pair) -> Any:
        """The vertices of A whose ground truth is known, in the order of the errors."""
        indices = np.asarray(getattr(pair.truth, "faces", pair.truth))
        rows = np.arange(len(indices)) if pair.rows is None else pair.rows
        return rows[indices >= 0]


def pooled(figures: Sequence[ErrorFigures]) -> ErrorFigures:
    """Figures over all vertices of several maps.

    Parameters
    ----------
    figures : Sequence[ErrorFigures]
        At least one.

    Returns
    -------
    ErrorFigures

    Examples
    --------
    >>> few = ErrorFigures(100, 1.0, 0.0, 1.0, 0.0, (1.0,))
    >>> many = ErrorFigures(300, 0.0, 4.0, 0.5, 0.2, (0.0,))
    >>> pooled([few, many]).mean_error_x100
    3.0
    """
    counts = np.array([one.vertices for one in figures], float)

    def mean(name: str) -> float:
        return float(np.average([getattr(one, name) for one in figures], weights=counts))

    curve = np.average([one.curve for one in figures], axis=0, weights=counts)
    return ErrorFigures(
        int(counts.sum()),
        mean("exact"),
        mean("mean_error_x100"),
        mean("auc"),
        mean("beyond_20"),
        tuple(curve.tolist()),
    )


def _figures(evaluation: ShapeEvaluation) -> ErrorFigures:
    errors = evaluation.errors
    return ErrorFigures(
        len(errors),
        evaluation.exact,
        evaluation.mean_error_x100,
        evaluation.auc,
        float((errors > BEYOND).mean()),
        tuple(evaluation.curve.tolist()),
    )
