"""Distances between pairs of points on a reference, for the few pairs that an evaluation needs."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints
from acnn.surface.geodesics import GeodesicSolver, Method, distance_graph
from acnn.surface.surface import Surface
from acnn.types import FloatArray

Normalisation = Literal["sqrt_area", "diameter"]


class ReferenceDistances:
    """Geodesic distances on one reference, over its length; what was computed is kept for further shapes.

    Distances are asked for in pairs, most of them short: Dijkstra first stops at a small radius, then at larger ones,
    so that only far pairs cost a search of the whole surface. The n x n matrix is never held. Points that no path
    joins count as one diameter apart.

    Parameters
    ----------
    surface : Surface
        The reference.
    normalisation : Normalisation
        What distances are divided by, `sqrt_area` or (geodesic) `diameter`.
    method : Method
        Of `GeodesicSolver`; `exact` is far slower.
    """

    def __init__(self, surface: Surface, normalisation: Normalisation = "sqrt_area", method: Method = "graph") -> None:
        from acnn.surface.geodesics import geodesic_diameter

        self.surface = surface
        self.normalisation = normalisation
        self._diameter = geodesic_diameter(surface)
        if normalisation == "sqrt_area":
            self.length = float(np.sqrt(surface.vertex_areas.sum()))
        elif normalisation == "diameter":
            self.length = self._diameter
        else:
            raise InputError(f"Unknown normalisation '{normalisation}': use 'sqrt_area' or 'diameter'.")
        self._graph = distance_graph(surface) if method == "graph" else None
        self._solver = GeodesicSolver(surface, method) if method != "graph" else None
        self._keys = np.empty(0, dtype=np.int64)
        self._known = np.empty(0, dtype=np.float32)

    def __repr__(self) -> str:
        return f"ReferenceDistances({self.surface!r}, over {self.normalisation}, {len(self._keys)} pairs known)"

    def between(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """(pairs,) distance between vertices first[i] and second[i], over the reference's length."""
        m = len(self.surface.vertices)
        a, b = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
        if len(a) and not (min(a.min(), b.min()) >= 0 and max(a.max(), b.max()) < m):
            raise InputError(f"Vertices of the reference are 0 to {m - 1}.")
        keys = np.minimum(a, b) * m + np.maximum(a, b)
        wanted = np.unique(keys[a != b])
        self._learn(wanted[~np.isin(wanted, self._keys)])
        distance = np.zeros(len(a))
        apart = a != b
        distance[apart] = self._known[np.searchsorted(self._keys, keys[apart])]
        return distance / self.length

    def to_points(self, vertices: ArrayLike, truth: BarycentricPoints) -> FloatArray:
        """(n,) distance from vertices to points inside triangles, over the reference's length.

        With corners c_i, weights w_i and the point p = sum_i w_i c_i, the smaller of two upper bounds:

            sum_i w_i d(v, c_i)             (d is convex on a flat patch)
            min_i d(v, c_i) + |c_i - p|     (through a corner)

        The first is nearly exact far away, the second close by; at a corner both are exact.
        """
        corner = self.surface.faces[np.asarray(truth.faces)].astype(np.int64)  # (n, 3)
        weights = np.asarray(truth.weights, dtype=float)
        start = np.broadcast_to(np.asarray(vertices, dtype=np.int64)[:, None], corner.shape)
        to_corner = self.between(start.ravel(), corner.ravel()).reshape(-1, 3)
        places = self.surface.vertices[corner]
        point = np.einsum("ni,nid->nd", weights, places)
        straight = np.linalg.norm(places - point[:, None], axis=2) / self.length
        return np.minimum((weights * to_corner).sum(axis=1), (to_corner + straight).min(axis=1))

    def _learn(self, keys: NDArray[np.int64]) -> None:
        """Compute the distances of new pairs (key = low * m + high) and file them in order."""
        if not len(keys):
            return
        m = len(self.surface.vertices)
        low, high = keys // m, keys % m
        found = np.full(len(keys), np.inf)
        for radius in (0.03 * self._diameter, 0.12 * self._diameter, np.inf):
            open_ = np.flatnonzero(np.isinf(found))
            if not len(open_):
                break
            # Either end may be the source: the side with fewer different vertices costs fewer searches.
            a, b = low[open_], high[open_]
            if len(np.unique(b)) < len(np.unique(a)):
                a, b = b, a
            found[open_] = self._search(a, b, radius)
        found[np.isinf(found)] = self._diameter
        merged = np.concatenate([self._keys, keys])
        order = np.argsort(merged)
        self._keys = merged[order]
        self._known = np.concatenate([self._known, found.astype(np.float32)])[order]

    def _search(self, a: NDArray[np.int64], b: NDArray[np.int64], radius: float) -> FloatArray:
        block = max(1, (1 << 21) // len(self.surface.vertices))
        sources, of = np.unique(a, return_inverse=True)
        order = np.argsort(of, kind="stable")
        bounds = np.searchsorted(of[order], np.arange(0, len(sources) + block, block))
        distance = np.empty(len(a))
        for i, first in enumerate(range(0, len(sources), block)):
            rows = self._rows(sources[first : first + block], radius)
            mine = order[bounds[i] : bounds[i + 1]]
            distance[mine] = rows[of[mine] - first, b[mine]]
        return distance

    def _rows(self, sources: NDArray[np.int64], radius: float) -> FloatArray:
        """(sources, n) distances in run units, infinite beyond the radius or more."""
        from scipy.sparse.csgraph import dijkstra

        if self._solver is not None:
            return self._solver.distances_from(sources.astype(np.int32))
        return dijkstra(self._graph, directed=False, indices=sources, limit=radius)
