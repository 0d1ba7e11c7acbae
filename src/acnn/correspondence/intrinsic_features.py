"""Features of a surface that bending does not move: ends of limbs, as maxima of the average geodesic distance.

    AGD(p) = integral of d(p, q) dA(q) / (A sqrt(A))

over farthest-point samples q; a feature is a maximum within a geodesic radius (Kim, Lipman and Funkhouser 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import splu

from acnn.surface.geodesics import distance_graph
from acnn.surface.laplacian import stiffness
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

SAMPLES = 256
"""Farthest-point samples (the authors' number)."""

RADIUS = 0.07
"""A feature is the largest average distance within this radius over sqrt(area): a disk of 1.5 % of the area."""

MOST, FEWEST = 10, 5
"""Features of a shape; where there are fewer maxima, minima join in and then the points farthest from all others."""

SMOOTHING = 0.02
"""Square root of the time of heat flow by which functions are smoothed, over sqrt(area)."""


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features and samples of a surface, with distances over sqrt(area).

    Attributes
    ----------
    features : (f,) array
        Vertices, maxima of the average distance first.
    feature_distances : (f, f) array
    samples : (s,) array
        Vertices, each the farthest from all before it.
    sample_distances : (s, s) array
    sample_areas : (s,) array
        Fraction of the area that is nearest to each sample.
    cells : (n,) array
        Number of the sample nearest to each vertex.
    average_distance : (n,) array
    """

    features: IntArray
    feature_distances: FloatArray
    samples: IntArray
    sample_distances: FloatArray
    sample_areas: FloatArray
    cells: IntArray
    average_distance: FloatArray


def feature_table(surface: Surface, samples: int = SAMPLES) -> FeatureTable:
    """Sample a connected surface and find its features.

    Parameters
    ----------
    surface : Surface
        Connected mesh of n vertices.
    samples : int
        At most n are taken.
    """
    graph = distance_graph(surface)
    total = float(surface.vertex_areas.sum())
    length = float(np.sqrt(total))
    n = len(surface.vertices)
    chosen = np.empty(min(samples, n), np.int64)
    rows = np.empty((len(chosen), n), np.float32)
    nearest = np.full(n, np.inf, np.float32)
    cells = np.zeros(n, np.int32)
    # From the point farthest from any other: the result does not depend on the order of vertices.
    outermost = int(np.argmax(np.linalg.norm(surface.vertices, axis=1)))
    following = int(np.argmax(dijkstra(graph, directed=False, indices=outermost)))
    for i in range(len(chosen)):
        chosen[i] = following
        rows[i] = dijkstra(graph, directed=False, indices=following) / length
        cells[rows[i] < nearest] = i
        nearest = np.minimum(nearest, rows[i])
        following = int(np.argmax(nearest))
    sample_areas = np.bincount(cells, weights=surface.vertex_areas / total, minlength=len(chosen)).astype(float)
    average = smoothed(surface, sample_areas @ rows)
    features = _features(surface.faces, graph, average, RADIUS * length)
    distances = dijkstra(graph, directed=False, indices=features)[:, features] / length
    sample_distances = rows[:, chosen].astype(float)
    return FeatureTable(features, distances, chosen, sample_distances, sample_areas, cells, average)


def smoothed(surface: Surface, values: FloatArray) -> FloatArray:
    """(n,) values after one implicit step of heat flow: the solution of (S + t W) f' = S f."""
    time = SMOOTHING**2 * surface.vertex_areas.sum()
    system = (diags_array(surface.vertex_areas) + time * stiffness(surface)).tocsc()
    return splu(system).solve(surface.vertex_areas * values)


def _features(faces: IntArray, graph: csr_array, average: FloatArray, radius: float) -> IntArray:
    """(f,) maxima of the average distance, the largest first; minima and far points where these are too few."""
    features = _maxima(faces, graph, average, radius, MOST)
    if len(features) < FEWEST:
        features = np.concatenate([features, _maxima(faces, graph, -average, radius, FEWEST - len(features))])
    while len(features) < FEWEST:
        gap = dijkstra(graph, directed=False, indices=features, min_only=True)
        features = np.append(features, int(np.argmax(gap)))
    return features


def _maxima(faces: IntArray, graph: csr_array, values: FloatArray, radius: float, most: int) -> IntArray:
    """At most `most` vertices whose value is the largest within a geodesic radius, the largest first."""
    highest = values.copy()
    for i, j in permutations(range(3), 2):
        np.maximum.at(highest, faces[:, i], values[faces[:, j]])
    peaks = np.flatnonzero(values >= highest)
    covered = np.zeros(len(values), dtype=bool)
    maxima: list[int] = []
    for peak in peaks[np.argsort(-values[peaks], kind="stable")]:
        if len(maxima) == most or covered[peak]:
            continue
        around = np.isfinite(dijkstra(graph, directed=False, indices=peak, limit=radius))
        if values[peak] >= values[around].max():
            maxima.append(int(peak))
        covered |= around  # whatever else peaks in there is lower than this one
    return np.array(maxima, dtype=np.int64)
