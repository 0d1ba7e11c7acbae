"""How well descriptors of two shapes tell points apart: CMC and ROC curves.

For query descriptors f(x), target descriptors h(y), true matches y*(x) and squared distances d(x, y) = |f(x) - h(y)|^2,

    CMC(k) = fraction of x with y*(x) among the k nearest                           (cumulative match characteristic)
    ROC    = fraction of pairs (x, y*(x)) against fraction of all other pairs (x, y) that are nearer than a threshold

In the symmetric setting the mirrored match y'(x) counts as well: the better of the two ranks and of the two distances
is taken, and neither of them is among the other pairs. The n x m distances are computed in blocks and never held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.types import FloatArray, IntArray

NEIGHBOURS = 100
"""Where CMC curves end."""

FALSE_POSITIVES: FloatArray = np.geomspace(1e-4, 1.0, 81)
"""Where ROC curves are sampled: the axis is logarithmic, as nearly all pairs do not match."""

BLOCK = 1000
"""Query rows whose distances are held at a time."""

# Distances are counted by the leading 16 bits of float32: 128 steps per factor of two, in order of size.
_SHIFT, _BINS = 16, 1 << 15


@dataclass(frozen=True, eq=False)
class Discrimination:
    """Curves of one pair of shapes, or the mean of several.

    Attributes
    ----------
    cmc : (neighbours,) array
        Fraction of points whose match is among the first 1, 2, ... neighbours.
    roc : (81,) array
        True positives at `FALSE_POSITIVES`.
    auc : float
        Area under the whole ROC curve, on linear axes; 0.5 is chance.
    """

    cmc: FloatArray
    roc: FloatArray
    auc: float

    def hit(self, k: int) -> float:
        """Fraction of points whose match is among the k nearest.

        Raises
        ------
        InputError
            Where k is beyond the curve.
        """
        if not 1 <= k <= len(self.cmc):
            raise InputError(f"hit@{k}: the curve is known for 1 to {len(self.cmc)} neighbours.")
        return float(self.cmc[k - 1])

    def as_dict(self) -> dict[str, Any]:
        """`hits` at 1, 10 and 100 neighbours as far as known, `auc`, and both curves."""
        return {
            "hits": {str(k): self.hit(k) for k in (1, 10, 100) if k <= len(self.cmc)},
            "auc": self.auc,
            "cmc": self.cmc.tolist(),
            "roc": self.roc.tolist(),
        }


@dataclass(frozen=True, eq=False)
class DescriptorEvaluation:
    """How well descriptors tell points apart.

    Attributes
    ----------
    asymmetric : Discrimination
        Only the true match counts.
    symmetric : Discrimination or None
        The mirrored one counts as well; None where it is not known.
    points : int
        How many points with a known match there were.
    """

    asymmetric: Discrimination
    symmetric: Discrimination | None
    points: int

    def as_dict(self) -> dict[str, Any]:
        """The curves under `asymmetric` and `symmetric`, with `false_positives` and `points`."""
        return {
            "asymmetric": self.asymmetric.as_dict(),
            "symmetric": None if self.symmetric is None else self.symmetric.as_dict(),
            "false_positives": FALSE_POSITIVES.tolist(),
            "points": self.points,
        }


def evaluate_descriptors(
    query: NDArray[np.floating],
    target: NDArray[np.floating],
    truth: ArrayLike,
    *,
    mirrored_truth: ArrayLike | None = None,
    neighbours: int = NEIGHBOURS,
) -> DescriptorEvaluation:
    """Compare the descriptors of two shapes whose correspondence is known.

    Parameters
    ----------
    query, target : (n, q) and (m, q) array
        Descriptors.
    truth : (n,) array
        Vertex of the target that matches each of the query, -1 where unknown.
    mirrored_truth : (n,) array or None
        The same on the other side of the body; -1 where unknown. None: no symmetric evaluation.
    neighbours : int
        Where the CMC curve ends.

    Raises
    ------
    InputError
        Where sizes do not fit, numbers are not finite, or no match is known.
    """
    left, right = np.asarray(query, float), np.asarray(target, float)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise InputError(f"Descriptors of shapes {left.shape} and {right.shape}: (n, q) and (m, q) are needed.")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise InputError("Descriptors must be finite to be compared.")
    if neighbours < 1:
        raise InputError(f"A curve up to {neighbours} neighbours is empty: at least 1 is needed.")
    matches = _known_matches(truth, len(left), len(right))
    known = np.flatnonzero(matches >= 0)
    if not len(known):
        raise InputError("No true match is known, so descriptors cannot be evaluated.")
    columns = [matches[known]]
    if mirrored_truth is not None:
        other = _known_matches(mirrored_truth, len(left), len(right))[known]
        columns.append(np.where(other >= 0, other, columns[0]))
    # Differences are what counts: without the common mean fewer digits are lost in the products.
    centre = right.mean(axis=0)
    counts = [_Counts(len(right), neighbours) for _ in columns]
    right = right - centre
    squares = np.einsum("jq,jq->j", right, right)
    for begin in range(0, len(known), BLOCK):
        rows = left[known[begin : begin + BLOCK]] - centre
        distances = rows @ (-2.0 * right.T)
        distances += np.einsum("iq,iq->i", rows, rows)[:, None]
        distances += squares
        np.maximum(distances, 0.0, out=distances)
        here = [column[begin : begin + BLOCK] for column in columns]
        bins = _bins(distances)
        total = np.bincount(bins.ravel(), minlength=_BINS)
        for number, count in enumerate(counts):
            count.add(distances, bins, total, here[: number + 1])
    results = [count.result() for count in counts]
    return DescriptorEvaluation(results[0], results[1] if len(results) > 1 else None, len(known))


def mean_evaluation(evaluations: Sequence[DescriptorEvaluation]) -> DescriptorEvaluation:
    """Mean curves over pairs of shapes, each pair counting the same; symmetric where all have it."""
    if not evaluations:
        raise InputError("There are no evaluated descriptors to average.")
    symmetric = [e.symmetric for e in evaluations if e.symmetric is not None]
    return DescriptorEvaluation(
        _mean([e.asymmetric for e in evaluations]),
        _mean(symmetric) if len(symmetric) == len(evaluations) else None,
        sum(e.points for e in evaluations),
    )


class _Counts:
    """Ranks and histograms of distances, filled block by block."""

    def __init__(self, targets: int, neighbours: int) -> None:
        self.ranks = np.zeros(min(neighbours, targets) + 1, dtype=np.int64)  # the last is for all ranks beyond
        self.neighbours = neighbours
        self.matching = np.zeros(_BINS, dtype=np.int64)
        self.others = np.zeros(_BINS, dtype=np.int64)

    def add(
        self,
        distances: FloatArray,
        bins: NDArray[np.uint32],
        total: NDArray[np.int64],
        matches: Sequence[IntArray],
    ) -> None:
        """Count a block of (rows, m) distances with their bins; every row has one or two right matches (rows,)."""
        rows = np.arange(len(distances))
        at = np.stack([distances[rows, match] for match in matches])  # (right matches, rows)
        nearest = at.min(axis=0)
        # Points that are as near as the match come before it: descriptors that are all the same find nothing. The other
        # right match never comes before the better one.
        before = np.count_nonzero(distances <= nearest[:, None], axis=1) - 1
        if len(matches) > 1:
            before -= (at[0] == at[1]) & (matches[0] != matches[1])
        self.ranks += np.bincount(np.minimum(before, len(self.ranks) - 1), minlength=len(self.ranks))
        self.matching += np.bincount(_bins(nearest), minlength=_BINS)
        self.others += total
        right = np.stack([bins[rows, match] for match in matches])
        self.others -= np.bincount(right[0], minlength=_BINS)
        if len(matches) > 1:
            self.others -= np.bincount(right[1][matches[0] != matches[1]], minlength=_BINS)

    def result(self) -> Discrimination:
        cmc = np.cumsum(self.ranks[:-1]) / self.ranks.sum()
        cmc = np.concatenate([cmc, np.ones(self.neighbours - len(cmc))])  # more neighbours than points: all are found
        true, false = (
            np.concatenate([[0.0], np.cumsum(counts) / max(counts.sum(), 1)]) for counts in (self.matching, self.others)
        )
        roc = np.interp(FALSE_POSITIVES, false, true) if self.others.any() else np.ones(len(FALSE_POSITIVES))
        area = float(np.trapezoid(true, false)) if self.others.any() else 1.0
        return Discrimination(cmc, roc, area)


def _bins(distances: FloatArray) -> NDArray[np.uint32]:
    """Histogram bin of each distance; that of a larger distance is never smaller."""
    return np.ascontiguousarray(distances, dtype=np.float32).view(np.uint32) >> np.uint32(_SHIFT)


def _known_matches(truth: ArrayLike, n: int, m: int) -> IntArray:
    """(n,) target vertices, -1 where unknown, checked."""
    matches = np.asarray(truth)
    known = matches >= 0
    checked_point_map(np.where(known, matches, 0), m, "truth", n)
    return np.where(known, matches, -1)


def _mean(parts: Sequence[Discrimination]) -> Discrimination:
    if len({len(part.cmc) for part in parts}) > 1:
        raise InputError("CMC curves of different lengths cannot be averaged: evaluate all with the same neighbours.")
    return Discrimination(
        np.mean([part.cmc for part in parts], axis=0),
        np.mean([part.roc for part in parts], axis=0),
        float(np.mean([part.auc for part in parts])),
    )
