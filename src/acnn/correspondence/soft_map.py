"""Soft maps: for every vertex of the query the few most probable vertices of the reference.

A network gives a distribution f(x, .) over the m reference vertices for each of n query vertices. The full n x m matrix
is never held: logits come in blocks of rows, and only the k largest probabilities of each row are kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from math import exp
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.arguments import check_arguments
from acnn.compilation import compiled
from acnn.errors import InputError
from acnn.types import IntArray


@dataclass(frozen=True, eq=False)
class SoftMap:
    """The most probable matches of every query vertex, best first; ties go to the lower index.

    Attributes
    ----------
    vertices : (n, k) int32 array
        Reference vertices.
    probabilities : (n, k) float32 array
        Descending along each row. A row sums to at most 1; the rest belongs to vertices that are not listed.
    reference_size : int
        Number m of reference vertices.

    Examples
    --------
    >>> import numpy as np
    >>> soft_map = soft_map_from_logits([np.log([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])], k=2)
    >>> soft_map
    SoftMap(2 vertices to 3, top 2, mean confidence 0.650)
    >>> soft_map.query_to_reference
    array([0, 2], dtype=int32)
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
        """(n,) probability of the most probable vertex: c(x) = max_y f(x, y)."""
        return self.probabilities[:, 0]

    def compose(self, reference_to_target: ArrayLike, target_size: int) -> SoftMap:
        """Compose with a map of reference to target.

        Probabilities of reference vertices that are matched to the same target vertex are added.

        Parameters
        ----------
        reference_to_target : (m,) int array
            Target vertex of each reference vertex.
        target_size : int
            Number of target vertices.

        Returns
        -------
        SoftMap
            Of query to target.

        Raises
        ------
        InputError
            Where the map does not have m entries, or one of them is not a target vertex.

        Examples
        --------
        >>> import numpy as np
        >>> soft_map = soft_map_from_logits([np.log([[0.5, 0.3, 0.2]])], k=3)
        >>> soft_map.compose([1, 0, 0], target_size=2).confidence
        array([0.5], dtype=float32)
        """
        composed = checked_point_map(reference_to_target, target_size, "reference_to_target", self.reference_size)
        return merged_soft_map(composed[self.vertices], self.probabilities, target_size)

    def mass_near(self, matches: ArrayLike, reference_vertices: ArrayLike, radius: float) -> NDArray[np.float32]:
        """Sum the probabilities of all listed vertices near a match: confidence in the region, not the single vertex.

        Parameters
        ----------
        matches : (n,) int array
            Reference vertices, of this map or of a refined one.
        reference_vertices : (m, 3) array
            Coordinates of the reference's vertices.
        radius : float
            Euclidean distance that counts as near.

        Returns
        -------
        (n,) float32 array
            In 0..1.
        """
        points = np.asarray(reference_vertices)
        distances = np.linalg.norm(points[self.vertices] - points[np.asarray(matches)][:, None], axis=2)
        return np.where(distances <= radius, self.probabilities, 0).sum(axis=1, dtype=np.float32)

    def rows(self, query_vertices: ArrayLike) -> SoftMap:
        """Select query vertices, or all of them in another order.

        Parameters
        ----------
        query_vertices : (s,) int or (n,) bool array
            Indices of query vertices, or a mask.

        Returns
        -------
        SoftMap
            Of those vertices.
        """
        index = np.asarray(query_vertices)
        return SoftMap(self.vertices[index], self.probabilities[index], self.reference_size)


def soft_map_from_logits(blocks: Iterable[Any], k: int = 16) -> SoftMap:
    """Keep the k most probable reference vertices of each row of logits.

        f(x, y) = exp(l(x, y)) / sum_z exp(l(x, z))

    Parameters
    ----------
    blocks : Iterable[Any]
        Arrays or tensors of shape (rows, m), n rows in total; each may be freed once it was read.
    k : int
        Number of matches to keep per vertex, at most m.

    Returns
    -------
    SoftMap
        Of n query vertices.

    Raises
    ------
    InputError
        Where there are no rows, blocks differ in width, or a logit is NaN or +infinity.

    Examples
    --------
    >>> import numpy as np
    >>> soft_map_from_logits([np.zeros((1, 3)), np.array([[0.0, 0.0, 9.0]])], k=1).query_to_reference
    array([0, 2], dtype=int32)
    """
    vertices, probabilities, m, done = [], [], -1, 0
    for block in blocks:
        logits = _as_float32(block)
        if logits.ndim != 2 or not logits.shape[1] or (m >= 0 and logits.shape[1] != m):
            raise InputError(
                f"Logits must have shape (rows, reference vertices), all blocks of the same width; row {done} starts a "
                f"block of shape {logits.shape}."
            )
        m = logits.shape[1]
        block_vertices, block_probabilities = _top(logits, k, done)
        vertices.append(block_vertices)
        probabilities.append(block_probabilities)
        done += len(logits)
    if not done:
        raise InputError("There are no logits to make a soft map from.")
    return SoftMap(np.concatenate(vertices), np.concatenate(probabilities), m)


def soft_map_from_features(features: Any, weight: Any, bias: Any = None, k: int = 16, block: int = 512) -> SoftMap:
    """Soft map of the linear classifier l = F W^T + b, computed `block` rows at a time.

    Parameters
    ----------
    features : (n, d) array or tensor
        Activations before the classifier.
    weight : (m, d) array or tensor
    bias : (m,) array or tensor, or None
    k : int
        Number of matches to keep per vertex.
    block : int
        Rows at a time: block x m numbers are held.

    Returns
    -------
    SoftMap
        Of n query vertices.

    Raises
    ------
    InputError
        As for `soft_map_from_logits`.

    Examples
    --------
    >>> import numpy as np
    >>> soft_map_from_features(np.eye(3), 5 * np.eye(3), k=2).query_to_reference
    array([0, 1, 2], dtype=int32)
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
    """Make a soft map with one match per vertex from a point map.

    Parameters
    ----------
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.
    reference_size : int
        Number m of reference vertices.
    confidence : (n,) array or None
        In 0..1; None is 0.9 everywhere: most matches are trusted, none completely.

    Returns
    -------
    SoftMap
        With k = 1.

    Raises
    ------
    InputError
        Where an entry is not a reference vertex, or a confidence is not in 0..1.

    Examples
    --------
    >>> soft_map_from_point_map([2, 0], reference_size=3)
    SoftMap(2 vertices to 3, top 1, mean confidence 0.900)
    """
    matches = checked_point_map(query_to_reference, reference_size)
    probabilities = np.full(len(matches), 0.9) if confidence is None else np.asarray(confidence, dtype=float)
    if probabilities.shape != matches.shape or not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise InputError(f"A confidence between 0 and 1 is needed for each of the {len(matches)} vertices.")
    return SoftMap(matches[:, None], probabilities.astype(np.float32)[:, None], int(reference_size))


def checked_point_map(
    point_map: ArrayLike, target_size: int, name: str = "query_to_reference", size: int | None = None
) -> IntArray:
    """Check that every entry of a point map is in 0..target_size-1.

    Parameters
    ----------
    point_map : (n,) int array
        Target vertex of each source vertex.
    target_size : int
        Number of target vertices.
    name : str
        What the map is called in error messages.
    size : int or None
        Required number n of entries; None accepts any.

    Returns
    -------
    (n,) int32 array
        The map.

    Raises
    ------
    InputError
        Where the map is not a list of integers of that length, or naming the first entry out of range.
    """
    array = np.asarray(point_map)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer) or (size is not None and len(array) != size):
        wanted = "one whole number per vertex" if size is None else f"{size} whole numbers"
        raise InputError(f"{name} must hold {wanted}; it is {array.dtype} of shape {array.shape}.")
    outside = np.flatnonzero((array < 0) | (array >= target_size))
    if len(outside):
        raise InputError(
            f"{name} maps vertex {outside[0]} to {array[outside[0]]}, but the target's vertices are 0 to "
            f"{target_size - 1} (0-based; .vts files are 1-based)."
        )
    return array.astype(np.int32)


def _as_float32(block: Any) -> NDArray[np.float32]:
    if hasattr(block, "detach"):  # a tensor, recognised without importing torch
        block = block.detach().float().cpu().numpy()
    return np.asarray(block, dtype=np.float32)


def _top(logits: NDArray[np.float32], k: int, first_row: int) -> tuple[IntArray, NDArray[np.float32]]:
    """(rows, k) indices and softmax probabilities of the k largest logits of each row."""
    m = logits.shape[1]
    if not k > 0:
        raise InputError(f"A soft map keeps at least one match per vertex, not {k}.")
    k = min(k, m)
    rows = len(logits)
    vertices, probabilities = np.empty((rows, k), np.int32), np.empty((rows, k), np.float32)
    logits = np.ascontiguousarray(logits)
    peaks = logits.max(axis=1)  # NaN where one is among them
    if not np.isfinite(peaks).all():
        raise InputError(
            f"The logits of vertex {first_row + np.argmin(np.isfinite(peaks))} are not finite. The network or its "
            "input contains NaN or infinity."
        )
    edges = np.linspace(0, rows, (os.cpu_count() or 1) + 1).astype(int).tolist()

    def run(part: tuple[int, int]) -> None:
        top_k_softmax(logits, peaks, *part, np.empty(k, np.float32), vertices, probabilities)

    with ThreadPoolExecutor(len(edges) - 1) as pool:
        list(pool.map(run, pairwise(edges)))
    return vertices, probabilities


def merged_soft_map(vertices: IntArray, probabilities: NDArray[np.float32], size: int) -> SoftMap:
    """Add up the probabilities of equal vertices within a row and sort again; freed entries get probability 0."""
    n, k = vertices.shape
    order = np.argsort(vertices, axis=1, kind="stable")
    ordered = np.take_along_axis(vertices, order, axis=1)
    mass = np.take_along_axis(probabilities, order, axis=1).astype(np.float64)
    first = np.ones((n, k), dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    group = np.cumsum(first, axis=1) - 1 + k * np.arange(n)[:, None]
    summed = np.bincount(group.ravel(), weights=mass.ravel(), minlength=n * k).reshape(n, k)
    mass = np.where(first, np.take_along_axis(summed, group - k * np.arange(n)[:, None], axis=1), 0.0)
    order = np.lexsort((ordered, ~first, -mass), axis=1)
    return SoftMap(
        np.take_along_axis(ordered, order, axis=1),
        np.take_along_axis(mass, order, axis=1).astype(np.float32),
        int(size),
    )


NEGLIGIBLE = 25.0
"""Ten thousand logits this far below the largest add less than 2e-7 to the sum of a softmax."""


# Why not torch.topk and torch.logsumexp: on 6,890 x 6,890 logits in blocks of 512 rows with k = 16 they take 0.36 s of
# processor time against 0.32 s here on one thread, and do not order ties by index.
@compiled(nogil=True)
def top_k_softmax(
    logits: NDArray[Any],
    peaks: NDArray[Any],
    begin: int,
    end: int,
    values: NDArray[Any],
    vertices: NDArray[Any],
    probabilities: NDArray[Any],
) -> None:
    """Fill in the k largest of rows begin to end - 1, largest first, ties by the lower index.

    Parameters
    ----------
    logits : (rows, m) float32 array
        Finite.
    peaks : (rows,) float32 array
        Largest entry of each row.
    begin, end : int
        The rows.
    values : (k,) float32 array
        Workspace.
    vertices : (rows, k) int32 array
        Output.
    probabilities : (rows, k) float32 array
        Output: softmax over the full row.
    """
    m, k = logits.shape[1], vertices.shape[1]
    for i in range(begin, end):
        peak = peaks[i]
        floor = peak - np.float32(NEGLIGIBLE)
        held = 0
        bar = floor  # values at or below it are neither among the k largest, once there are k, nor add to the sum
        total = 0.0
        for j in range(m):
            value = logits[i, j]
            if held == k and value <= bar:
                continue
            if value > floor:
                total += exp(value - peak)
            if held == k and value <= values[k - 1]:
                continue
            slot = held if held < k else k - 1
            while slot > 0 and values[slot - 1] < value:
                values[slot] = values[slot - 1]
                vertices[i, slot] = vertices[i, slot - 1]
                slot -= 1
            values[slot], vertices[i, slot] = value, j
            if held < k:
                held += 1
            bar = values[held - 1] if values[held - 1] < floor else floor
        for slot in range(k):
            probabilities[i, slot] = exp(values[slot] - peak) / total
