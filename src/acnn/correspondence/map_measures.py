"""Measurements of a map at every vertex that need no ground truth, and what they say of the map as a whole.

- `trust`: neighbours stay neighbours, and find room where they go (1 is best)
- `stretch`: mean change of geodesic distances to points spread over the query, over the root of the reference's area:
  a limb that is matched to another one keeps its own lengths, but not its distances to the rest of the body
- `turned`: fraction of the area around that is turned inside out: a mirrored map keeps all distances
- `evidence`: where a network was asked, its probability for the surroundings of the match
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from acnn.correspondence.point_maps import edge_distortions
from acnn.correspondence.refine import has_longer_boundary
from acnn.shapes.topology import mesh_edges
from acnn.surface.geodesics import distance_graph
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

ROOM = 4.0
"""How many times its own area a vertex of the reference may receive before its matches count as collapsed. Good maps
leave no room for less than 4 % of the query's area, those of shapes without a correct map for 69 to 99 %."""

LARGEST = 20.0
"""Times the median area of a vertex that any one counts. On built-in humans, remeshed ones too, it is 5 at most; a
point far away from a cloud makes it 350 and more, and would outweigh the shape."""

SAMPLES = 32
"""Points of the query that distances are measured to."""

UNREACHED = 1.0
"""Stretch, in roots of the area, of two connected points whose images are not connected."""


@dataclass(frozen=True, eq=False)
class MapMeasures:
    """Measurements of a map of n query vertices.

    Attributes
    ----------
    trust, stretch, turned : (n,) array
        See the module.
    evidence : (n,) array or None
        See the module; None without a network.
    areas : (n,) array
        Fraction of the query's area of each vertex.
    partial : bool
        Whether the query has boundaries that the reference lacks, so that its distances may be detours.
    """

    trust: FloatArray
    stretch: FloatArray
    turned: FloatArray
    evidence: FloatArray | None
    areas: FloatArray
    partial: bool = False

    @cached_property
    def means(self) -> dict[str, float]:
        """Means over the area of the query."""
        values = {"trust": self.trust, "stretch": self.stretch, "turned": self.turned}
        if self.evidence is not None:
            values["evidence"] = self.evidence
        return {name: float(self.areas @ value) for name, value in values.items()}

    def within(self, where: NDArray[np.bool_]) -> MapMeasures:
        """The same over a region alone: (n,) vertices, of which some have an area."""
        areas = np.where(where, self.areas, 0.0)
        return replace(self, areas=areas / areas.sum())


class MapMeter:
    """Measures maps between two surfaces; what does not depend on the map is computed once.

    Parameters
    ----------
    query, reference : Surface
        Meshes or clouds in the same unit.
    """

    def __init__(self, query: Surface, reference: Surface) -> None:
        self.query, self.reference = query, reference
        self._edges = mesh_edges(query.faces).vertices
        self._degree = np.bincount(self._edges.ravel(), minlength=len(query.vertices))
        areas = vertex_areas(query)
        self.areas = areas / areas.sum()

    def __call__(self, query_to_reference: IntArray, evidence: FloatArray | None = None) -> MapMeasures:
        """Measure a map.

        Parameters
        ----------
        query_to_reference : (n,) int array
            Reference vertex of each query vertex.
        evidence : (n,) array or None
            Probability of a network near each match, in 0..1.
        """
        matched = np.asarray(query_to_reference)
        values = self.trust(matched), self.stretch(matched), self.turned(matched)
        return MapMeasures(*values, evidence, self.areas, self.partial)

    def trust(self, matched: IntArray) -> FloatArray:
        """(n,) how well neighbours stay neighbours.

            (1 - d(x)) r(x)

        where d is the relative change of the lengths of edges (`edge_distortions`), averaged over the edges at x and
        twice over x and its neighbours, and r the fraction of the area that goes to the same vertex for which there is
        room (`ROOM`).
        """
        # A map to vertices cannot preserve lengths more accurately than their distances.
        shortest = 2.0 * edge_length(self.reference)
        changes = edge_distortions(self._edges, matched, self.query.vertices, self.reference.vertices, shortest)
        sums = np.bincount(self._edges.ravel(), weights=np.repeat(changes, 2), minlength=len(matched))
        change = self.smoothed(sums / np.maximum(self._degree, 1), 2)
        return (1.0 - change) * room(matched, self.query, self.reference)

    def stretch(self, matched: IntArray) -> FloatArray:
        """(n,) mean change of distances to samples, over the root of the reference's area.

        Distances on a query with boundaries that the reference lacks may be detours: there only distances that become
        longer count.
        """
        samples, here = self._samples
        there = dijkstra(self._reference_graph, directed=False, indices=matched[samples])[:, matched]
        scale = np.sqrt(vertex_areas(self.reference).sum())
        connected = np.isfinite(here)
        with np.errstate(invalid="ignore"):
            gaps = np.where(np.isfinite(there), there - here, UNREACHED * scale) / scale
        gaps = np.maximum(gaps, 0.0) if self.partial else np.abs(gaps)
        return np.where(connected, gaps, 0.0).sum(axis=0) / np.maximum(connected.sum(axis=0), 1)

    def turned(self, matched: IntArray) -> FloatArray:
        """(n,) fraction of the image's area around each vertex that faces inwards.

        A triangle counts with its area on the query or on the reference, whichever is smaller: slivers do not vote.
        """
        faces, n = self.query.faces, len(matched)
        weights, outward = image_orientation(matched, self.query, self.reference)
        inward = np.where(outward, 0.0, weights)
        total, turned = (
            self.smoothed(np.bincount(faces.ravel(), weights=np.repeat(values, 3), minlength=n).astype(float), 3)
            for values in (weights, inward)
        )
        return turned / np.maximum(total, np.finfo(float).tiny)

    @cached_property
    def partial(self) -> bool:
        """Whether the query has boundaries that the reference lacks."""
        return has_longer_boundary(self.query, self.reference)

    @cached_property
    def _reference_graph(self):  # type: ignore[no-untyped-def]
        return distance_graph(self.reference)

    @cached_property
    def _samples(self) -> tuple[IntArray, FloatArray]:
        """Samples, each farthest from those before, and the distances (samples, n) from them; infinite apart."""
        graph, points = distance_graph(self.query), self.query.vertices
        samples = [int(((points - self.areas @ points) ** 2).sum(axis=1).argmax())]
        rows, nearest = [], np.full(len(points), np.inf)
        while True:
            rows.append(dijkstra(graph, directed=False, indices=samples[-1]))
            nearest = np.minimum(nearest, rows[-1])
            if len(samples) == min(SAMPLES, len(points)):
                return np.array(samples, dtype=np.int32), np.array(rows)
            samples.append(int(nearest.argmax()))

    def smoothed(self, values: FloatArray, rounds: int) -> FloatArray:
        """Averaged over each vertex and its neighbours, several times."""
        edges, n = self._edges, len(values)
        for _ in range(rounds):
            ends = [np.bincount(edges[:, k], weights=values[edges[:, 1 - k]], minlength=n) for k in (0, 1)]
            values = (values + ends[0] + ends[1]) / (1 + self._degree)
        return values


def vertex_areas(surface: Surface) -> FloatArray:
    """(n,) areas of vertices, none more than `LARGEST` times the median."""
    areas = surface.vertex_areas
    return np.minimum(areas, LARGEST * np.median(areas))


def edge_length(surface: Surface) -> float:
    """Median length of the edges, which a point far away does not change."""
    ends = surface.vertices[mesh_edges(surface.faces).vertices]
    return float(np.median(np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)))


def area_ratio(query: Surface, reference: Surface) -> float:
    """Area of the query over that of the reference (`vertex_areas`)."""
    return float(vertex_areas(query).sum() / vertex_areas(reference).sum())


def room(matched: IntArray, query: Surface, reference: Surface) -> FloatArray:
    """(n,) fraction of the area matched to the same vertex for which there is room.

    A vertex has room for `ROOM` times its own area, at the scale of the query where that is larger, or for as many
    times the area of the largest vertex matched to it, so that a coarse query is not blamed for a fine reference.
    """
    here, there = vertex_areas(query), vertex_areas(reference)
    received = np.bincount(matched, weights=here, minlength=len(there))
    largest = np.zeros(len(there))
    np.maximum.at(largest, matched, here)
    offered = ROOM * np.maximum(there * max(1.0, area_ratio(query, reference)), largest)
    return np.minimum(1.0, offered[matched] / np.maximum(received[matched], np.finfo(float).tiny))


def image_orientation(matched: IntArray, query: Surface, reference: Surface) -> tuple[FloatArray, IntArray]:
    """Weight of the image of each face, and whether it faces outwards; slivers weigh what they have there.

    Returns
    -------
    weights : (faces,) array
        The smaller of the areas on the query and on the reference.
    outward : (faces,) bool array
    """
    corners = matched[query.faces]
    a, b, c = (reference.vertices[corners[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    weights = np.minimum(query.face_weights * query.face_areas, 0.5 * np.linalg.norm(normals, axis=1))
    return weights, np.einsum("nd,nd->n", normals, reference.normals[corners].sum(axis=1)) > 0
