"""Features of a surface that bending does not move: ends of limbs, as maxima of the average geodesic distance.

    AGD(p) = integral of d(p, q) dA(q) / (A sqrt(A))

over farthest-point samples q; a feature is a maximum within a geodesic radius (Kim, Lipman and Funkhouser 2011).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import diags_array
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
    surface : Surface
    """

    features: IntArray
    feature_distances: FloatArray
    samples: IntArray
    sample_distances: FloatArray
    sample_areas: FloatArray
    cells: IntArray
    average_distance: FloatArray
    surface: Surface

    def smoothed(self, values: FloatArray) -> FloatArray:
        """(n,) values after a little heat flow."""
        return _smoothed(self.surface, values)


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
    length = float(np.sqrt(surface.vertex_areas.sum()))
    areas = surface.vertex_areas / surface.vertex_areas.sum()
    n = len(surface.vertices)
    chosen = np.empty(min(samples, n), np.int64)
    rows = np.empty((len(chosen), n))
    nearest = np.full(n, np.inf)
    cells = np.zeros(n, np.int32)
    start = dijkstra(graph, directed=False, indices=int(np.argmax(np.linalg.norm(surface.vertices, axis=1))))
    chosen[0] = int(np.argmax(start))
    for i in range(len(chosen)):
        rows[i] = dijkstra(graph, directed=False, indices=chosen[i]) / length
        cells[rows[i] < nearest] = i
        nearest = np.minimum(nearest, rows[i])
        if i + 1 < len(chosen):
            chosen[i + 1] = int(np.argmax(nearest))
    sample_areas = np.bincount(cells, weights=areas, minlength=len(chosen))
    average = _smoothed(surface, sample_areas @ rows)
    features = _features(surface, graph, average, length)
    distances = dijkstra(graph, directed=False, indices=features)[:, features] / length
    return FeatureTable(features, distances, chosen, rows[:, chosen], sample_areas, cells, average, surface)


def _features(surface: Surface, graph, average: FloatArray, length: float) -> IntArray:  # type: ignore[no-untyped-def]
    """(f,) maxima of the average distance, the largest first; minima and far points where these are too few."""
    chosen = _maxima(surface.faces, graph, average, RADIUS * length)[:MOST]
    if len(chosen) < FEWEST:
        lows = _maxima(surface.faces, graph, -average, RADIUS * length)
        chosen = np.concatenate([chosen, lows])[:FEWEST]
    while len(chosen) < FEWEST:
        gap = dijkstra(graph, directed=False, indices=chosen, min_only=True)
        chosen = np.append(chosen, int(np.argmax(gap)))
    return chosen


def _maxima(faces: IntArray, graph, values: FloatArray, radius: float) -> IntArray:  # type: ignore[no-untyped-def]
    """Vertices whose value is the largest within a geodesic radius, the largest first."""
    highest = values.copy()
    for i in range(3):
        np.maximum.at(highest, faces[:, i], values[faces[:, (i + 1) % 3]])
        np.maximum.at(highest, faces[:, i], values[faces[:, (i + 2) % 3]])
    peaks = np.flatnonzero(values >= highest)
    distances = dijkstra(graph, directed=False, indices=peaks, limit=radius)
    winning = [values[p] >= values[np.isfinite(row)].max() for p, row in zip(peaks, distances, strict=True)]
    peaks = peaks[np.array(winning, dtype=bool)]
    return peaks[np.argsort(-values[peaks], kind="stable")]


def _smoothed(surface: Surface, values: FloatArray) -> FloatArray:
    """Solve (S + t W) f' = S f, one implicit step of heat flow."""
    time = SMOOTHING**2 * surface.vertex_areas.sum()
    system = (diags_array(surface.vertex_areas) + time * stiffness(surface)).tocsc()
    return splu(system).solve(surface.vertex_areas * values)
