"""Groups of maps that agree with one another, found by eigenvectors of their similarities.

Two maps are similar where both are confident and send a point to nearby places (Kim, Lipman and Funkhouser 2011):

    S_ij = sum_p a_p c_i(p) c_j(p) exp(-d(m_i(p), m_j(p)) / sigma^2)

over samples p of area a_p. Distances d are between the samples of B nearest to the images, which a small table holds:
with sigma = 0.5 sqrt(area), their spacing of about 0.05 sqrt(area) makes little difference.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from acnn.compilation import compiled
from acnn.correspondence.intrinsic_features import FeatureTable
from acnn.correspondence.moebius import MoebiusMaps, in_conflict
from acnn.types import FloatArray, IntArray

SIMILARITY_SCALE = 0.25
"""sigma^2, d over sqrt(area) (the authors' number)."""

EIGENVECTORS, EIGENVALUE_RATIO = 10, 0.75
"""Eigenvectors that are looked at, as long as their eigenvalue is this fraction of the first (the authors' numbers)."""

MEMBER_RATIO, START_RATIO = 0.25, 0.75
"""Entries of an eigenvector, over the largest, from which a map may join or start a group (the authors' numbers)."""

BLENDED = 60
"""Maps in a group, those of the largest weight; further ones change little."""


def consistent_groups(
    maps: MoebiusMaps, confidence: NDArray[np.float32], cells: IntArray, left: FeatureTable, right: FeatureTable
) -> list[tuple[IntArray, FloatArray]]:
    """Gather maps that agree.

    Parameters
    ----------
    maps : MoebiusMaps
        At least one, k of them, between the features of two shapes.
    confidence : (k, s) array
        Of each map at the samples of A.
    cells : (k, s) array
        Sample of B nearest to each image.
    left, right : FeatureTable
        Of A and B.

    Returns
    -------
    list of tuple[(g,) array, (g,) array]
        For each group, at least one, its maps and their positive weights.
    """
    kernel = np.exp(-right.sample_distances / SIMILARITY_SCALE).astype(np.float32)
    scaled = confidence * np.sqrt(left.sample_areas).astype(np.float32)
    values, vectors = _leading(_similarities(scaled, np.ascontiguousarray(cells), kernel).astype(float))
    conflicts = in_conflict(left.feature_distances[:, None, :, None], right.feature_distances[None, :, None, :])
    groups = []
    for e in np.flatnonzero(values >= EIGENVALUE_RATIO * values[0]):
        weight = np.abs(vectors[:, e])
        rows = np.argsort(-weight, kind="stable")
        rows = rows[weight[rows] >= MEMBER_RATIO * weight.max()]
        while len(rows) and weight[rows[0]] >= START_RATIO * weight.max():
            member = _compatible(maps[rows], conflicts)
            groups.append((rows[member][:BLENDED], weight[rows[member]][:BLENDED]))
            rows = rows[~member]
    return groups


def distance_distortion(blend: FloatArray, cells: IntArray, left: FeatureTable, right: FeatureTable) -> float:
    """Mean change of the distances between samples, each at the image that most maps of a group agree on.

    The authors choose the group of the largest confidence instead. Areas are kept by a half turn of a body as well as
    by the right map; distances tell the two apart a little more often (of ten pairs of FAUST, 7 times against 6).

    Parameters
    ----------
    blend, cells : (g, s) array
        Weight of each map at each sample of A, and the sample of B nearest to its image.
    left, right : FeatureTable
        Of A and B.
    """
    there = cells[medoids(blend, cells, right.sample_distances), np.arange(cells.shape[1])]
    change = np.abs(left.sample_distances - right.sample_distances[there[:, None], there[None]])
    return float(left.sample_areas @ change @ left.sample_areas)


def medoids(blend: FloatArray, cells: IntArray, distances: FloatArray) -> IntArray:
    """(n,) the map i that minimises sum_j b_j d(m_i, m_j)^2 at each point, from (g, n) weights b and cells."""
    square = distances**2
    cost = np.stack([(blend * square[own[None], cells]).sum(axis=0) for own in cells])
    return np.argmin(cost, axis=0)


def _leading(similarity: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues, descending, and their eigenvectors."""
    k = len(similarity)
    if k > 4 * EIGENVECTORS:
        values, vectors = eigsh(similarity, EIGENVECTORS, v0=np.ones(k))
    else:
        values, vectors = np.linalg.eigh(similarity)
    order = np.argsort(-values, kind="stable")[:EIGENVECTORS]
    return values[order], vectors[:, order]


def _compatible(maps: MoebiusMaps, conflicts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(k,) maps that do not contradict any earlier one that is in; the first always is.

    conflicts : (f, g, f, g) array, whether sending one feature to one and another to another are in conflict.
    """
    inside = np.zeros(len(maps), dtype=bool)
    excluded = np.zeros(conflicts.shape[:2], dtype=bool)
    for i, (a, b) in enumerate(zip(maps.a, maps.b, strict=True)):
        if not excluded[a, b].any():
            inside[i] = True
            excluded |= conflicts[a, b].any(axis=0)
    return inside


@compiled(fastmath=True, nogil=True)
def _similarities(confidence, cells, kernel):  # type: ignore[no-untyped-def]
    """(k, k) sums over samples p of c_i(p) c_j(p) kernel[cell of m_i(p), cell of m_j(p)]."""
    k, samples = confidence.shape
    similarity = np.zeros((k, k), np.float32)
    for i in range(k):
        for p in range(samples):
            c = confidence[i, p]
            if c < 1e-4:
                continue
            row = kernel[cells[i, p]]
            for j in range(i + 1):
                similarity[i, j] += c * confidence[j, p] * row[cells[j, p]]
    for i in range(k):
        for j in range(i):
            similarity[j, i] = similarity[i, j]
    return similarity
