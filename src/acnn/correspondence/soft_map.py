"""A soft map: for every vertex of the query the few most probable vertices of the reference.

The network gives a distribution f(x, .) over the m reference vertices for each of n query vertices. All n x m of it is
never held: logits come in blocks of rows, and the k largest probabilities of each row are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
from numba import prange
from numpy.typing import ArrayLike, NDArray

from acnn.arguments import check_arguments
from acnn.compilation import compiled
from acnn.errors import InputError
from acnn.types import IntArray


@dataclass(frozen=True, eq=False)
class SoftMap:
    """The most probable matches of every query vertex, the best first; equal ones by the lower index.

    Attributes
    ----------
    vertices : (n, k) int32 array
        Reference vertices.
    probabilities : (n, k) float32 array
        Descending along a row; a row sums to at most 1, what is missing belongs to vertices that are not listed.
    reference_size : int
        M.
    """

    vertices: IntArray
    probabilities: NDArray[np.float32]
    reference_size: int

    def __repr__(self) -> str:
        n, k = self.vertices.shape
        return f"SoftMap({n} vertices to {self.reference_size}, top {k}, mean confidence {self.confidence.mean():.3f})"

    @property
    def query_to_reference(self) -> IntArray:
        """(n,) the most probable reference vertex of each query vertex: y(x) = argmax_y f(x, y)."""
        return self.vertices[:, 0]

    @property
    def confidence(self) -> NDArray[np.float32]:
        """(n,) probability of that vertex: c(x) = max_y f(x, y)."""
        return self.probabilities[:, 0]

    def compose(self, reference_to_target: ArrayLike, target_size: int) -> SoftMap:
        """The soft map of query to target through the reference.

        Probabilities of reference vertices that fall on the same target vertex are added.

        Parameters
        ----------
        reference_to_target : (m,) array
            A target vertex for each reference vertex.
        target_size : int
            Vertices of the target.
        """
        onward = checked_point_map(reference_to_target, target_size, "reference_to_target", self.reference_size)
        return _merged(onward[self.vertices], self.probabilities, target_size)

    def mass_near(self, matched: ArrayLike, places: ArrayLike, radius: float) -> NDArray[np.float32]:
        """(n,) probability of all listed vertices near a match: how sure the place is, if not the vertex.

        Parameters
        ----------
        matched : (n,) array
            Reference vertices, of this map or a refined one.
        places : (m, 3) array
            Of the reference's vertices.
        radius : float
            Straight distance that counts as near.
        """
        where = np.asarray(places)
        apart = np.linalg.norm(where[self.vertices] - where[np.asarray(matched)][:, None], axis=2)
        return np.where(apart <= radius, self.probabilities, 0).sum(axis=1, dtype=np.float32)

    def rows(self, chosen: ArrayLike) -> SoftMap:
        """The soft map of some query vertices, or of all of them in another order."""
        index = np.asarray(chosen)
        return SoftMap(self.vertices[index], self.probabilities[index], self.reference_size)


def soft_map_from_logits(blocks: Iterable[Any], k: int = 16) -> SoftMap:
    """Keep the k most probable reference vertices of each row of logits.

        f(x, y) = exp(l(x, y)) / sum_z exp(l(x, z))

    Parameters
    ----------
    blocks : Iterable[Any]
        Arrays or tensors (rows, m) one after another, together n rows; each may be freed after its turn.
    k : int
        How many to keep, at most m.

    Raises
    ------
    InputError
        Where there are no rows, blocks differ in width, or a logit is NaN or +infinite.
    """
    vertices, probabilities, m, done = [], [], -1, 0
    for block in blocks:
        logits = _as_float32(block)
        if logits.ndim != 2 or not logits.shape[1] or (m >= 0 and logits.shape[1] != m):
            raise InputError(
                f"Logits must come as (rows, reference vertices), all of the same width; row {done} starts a block "
                f"of shape {logits.shape}."
            )
        m = logits.shape[1]
        best, share = _top(logits, k, done)
        vertices.append(best)
        probabilities.append(share)
        done += len(logits)
    if not done:
        raise InputError("There are no logits to make a soft map of.")
    return SoftMap(np.concatenate(vertices), np.concatenate(probabilities), m)


def soft_map_from_features(features: Any, weight: Any, bias: Any = None, k: int = 16, block: int = 512) -> SoftMap:
    """Soft map of the linear classifier l = F W^T + b, computed `block` rows at a time.

    Parameters
    ----------
    features : Any
        (n, d) array or tensor, activations before the classifier.
    weight : Any
        (m, d).
    bias : Any
        (m,) or None; of the same kind as `features`.
    k : int
        How many matches to keep per vertex.
    block : int
        Rows at a time, so that block x m numbers are held.
    """

    def blocks() -> Iterator[Any]:
        for first in range(0, len(features), block):
            logits = features[first : first + block] @ weight.T
            if bias is not None:
                logits += bias
            yield logits

    return soft_map_from_logits(blocks(), k)


@check_arguments
def soft_map_from_point_map(
    query_to_reference: ArrayLike, reference_size: int, confidence: ArrayLike | None = None
) -> SoftMap:
    """A point map as a soft map with one match per vertex.

    Parameters
    ----------
    query_to_reference : (n,) array
        Reference vertices.
    reference_size : int
        M.
    confidence : (n,) array or None
        In 0..1; None is 0.9 everywhere: most matches are trusted, none blindly.
    """
    matched = checked_point_map(query_to_reference, reference_size)
    share = np.full(len(matched), 0.9) if confidence is None else np.asarray(confidence, dtype=float)
    if share.shape != matched.shape or not ((share >= 0) & (share <= 1)).all():
        raise InputError(f"A confidence between 0 and 1 is needed for each of the {len(matched)} vertices.")
    return SoftMap(matched[:, None], share.astype(np.float32)[:, None], int(reference_size))


def checked_point_map(
    point_map: ArrayLike, target_size: int, name: str = "query_to_reference", size: int | None = None
) -> IntArray:
    """A point map as (n,) int32 with every entry in 0..target_size-1.

    Raises
    ------
    InputError
        Naming the first vertex that is not.
    """
    array = np.asarray(point_map)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer) or (size is not None and len(array) != size):
        wanted = "one whole number per vertex" if size is None else f"{size} whole numbers"
        raise InputError(f"{name} must hold {wanted}; it is {array.dtype} of shape {array.shape}.")
    outside = np.flatnonzero((array < 0) | (array >= target_size))
    if len(outside):
        raise InputError(
            f"{name} sends vertex {outside[0]} to {array[outside[0]]}, but the vertices there are 0 to "
            f"{target_size - 1} (counted from 0; .vts files count from 1)."
        )
    return array.astype(np.int32)


def _as_float32(block: Any) -> NDArray[np.float32]:
    if hasattr(block, "detach"):  # a tensor, recognised without importing torch
        block = block.detach().float().cpu().numpy()
    return np.asarray(block, dtype=np.float32)


def _top(logits: NDArray[np.float32], k: int, first_row: int) -> tuple[IntArray, NDArray[np.float32]]:
    """(rows, k) indices and softmax values of the k largest logits of each row."""
    m = logits.shape[1]
    if not k > 0:
        raise InputError(f"A soft map keeps at least one match per vertex, not {k}.")
    k = min(k, m)
    rows = len(logits)
    best, share = np.empty((rows, k), np.int32), np.empty((rows, k), np.float32)
    finite = np.empty(rows, bool)
    largest_of_rows(np.ascontiguousarray(logits), best, share, finite)
    if not finite.all():
        raise InputError(
            f"The logits of vertex {first_row + np.argmin(finite)} are not finite. The network or its input holds NaN "
            "or infinity."
        )
    return best, share


def _merged(vertices: IntArray, probabilities: NDArray[np.float32], size: int) -> SoftMap:
    """Add up probabilities of equal vertices within a row and sort again; freed places get probability 0."""
    n, k = vertices.shape
    order = np.argsort(vertices, axis=1, kind="stable")
    ordered = np.take_along_axis(vertices, order, axis=1)
    share = np.take_along_axis(probabilities, order, axis=1).astype(np.float64)
    first = np.ones((n, k), dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    group = np.cumsum(first, axis=1) - 1 + k * np.arange(n)[:, None]
    summed = np.bincount(group.ravel(), weights=share.ravel(), minlength=n * k).reshape(n, k)
    share = np.where(first, np.take_along_axis(summed, group - k * np.arange(n)[:, None], axis=1), 0.0)
    order = np.lexsort((ordered, ~first, -share), axis=1)
    return SoftMap(
        np.take_along_axis(ordered, order, axis=1),
        np.take_along_axis(share, order, axis=1).astype(np.float32),
        int(size),
    )


NEGLIGIBLE = 25.0
"""Logits this far below the largest add less than 2e-7 to the sum, ten thousand of them together."""

LANES = 32
"""How many entries of a row are compared side by side."""


@compiled(parallel=True)
def largest_of_rows(
    logits: NDArray[Any], vertices: NDArray[Any], probabilities: NDArray[Any], finite: NDArray[Any]
) -> None:
    """Fill in the k largest of each row, the largest first, equal ones by the lower index.

    Parameters
    ----------
    logits : (rows, m) float32 array
    vertices : (rows, k) int32 array
    probabilities : (rows, k) float32 array
    finite : (rows,) bool array
        False where a logit is NaN or the largest is infinite.
    """
    m, k = logits.shape[1], vertices.shape[1]
    for i in prange(len(logits)):
        row, best = logits[i], vertices[i]
        peak, good = _peak(row)
        finite[i] = good
        if not good:
            continue
        floor = peak - np.float32(NEGLIGIBLE)
        values = np.empty(k, np.float32)
        held = 0
        bar = np.float32(-np.inf)  # what is not above it neither counts nor adds
        total = 0.0
        for j in range(m):
            value = row[j]
            if held == k and value <= bar:
                continue
            if value > floor:
                total += exp(value - peak)
            if held == k and value <= values[k - 1]:
                continue
            place = held if held < k else k - 1
            while place > 0 and values[place - 1] < value:
                values[place], best[place] = values[place - 1], best[place - 1]
                place -= 1
            values[place], best[place] = value, j
            held = min(held + 1, k)
            bar = min(floor, values[held - 1])
        for place in range(k):
            probabilities[i, place] = exp(values[place] - peak) / total


@compiled()
def _peak(row: NDArray[Any]) -> tuple[Any, bool]:
    """The largest of a row, and whether none is NaN and the largest is finite; lanes side by side, for vector code."""
    largest = np.full(LANES, -np.inf, np.float32)
    wrong = np.zeros(LANES, np.bool_)
    whole = len(row) - len(row) % LANES
    for j in range(0, whole, LANES):
        for lane in range(LANES):
            value = row[j + lane]
            largest[lane] = value if value > largest[lane] else largest[lane]
            wrong[lane] |= value != value
    for j in range(whole, len(row)):
        largest[0] = row[j] if row[j] > largest[0] else largest[0]
        wrong[0] |= row[j] != row[j]
    peak = largest.max()
    return peak, not wrong.any() and -np.inf < peak < np.inf
