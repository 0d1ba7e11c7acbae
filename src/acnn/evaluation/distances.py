"""Geodesic distances between pairs of points on a reference, for the few pairs that an evaluation needs."""

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
    """Normalised geodesic distances on one reference; computed distances are kept for further shapes.

    Distances are requested for pairs, most of them short: Dijkstra first stops at a small radius, then at larger ones,
    so that only distant pairs cost a search of the full surface. The n x n matrix is never held. Points that no path
    connects count as one diameter apart.

    Parameters
    ----------
    surface : Surface
        The reference.
    normalisation : Normalisation
        What distances are divided by, `sqrt_area` or (geodesic) `diameter`.
    method : Method
        Of `GeodesicSolver`; `exact` is far slower, `edges` less accurate.

    Raises
    ------
    InputError
        For an unknown normalisation.

    Attributes
    ----------
    length, diameter : float
        What distances are divided by, and the geodesic diameter, in the unit of the surface.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    >>> surface = surface_of(Mesh(tetrahedron, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)))
    >>> distances = ReferenceDistances(surface, "diameter").between([0, 0, 1], [0, 1, 2])
    >>> np.allclose(distances, [0.0, 0.5**0.5, 1.0], atol=1e-6)
    True
    """

    def __init__(self, surface: Surface, normalisation: Normalisation = "sqrt_area", method: Method = "graph") -> None:
        from acnn.surface.geodesics import geodesic_diameter

        self.surface = surface
        self.normalisation = normalisation
        self.diameter = geodesic_diameter(surface)
        if normalisation == "sqrt_area":
            self.length = float(np.sqrt(surface.vertex_areas.sum()))
        elif normalisation == "diameter":
            self.length = self.diameter
        else:
            raise InputError(f"Unknown normalisation '{normalisation}': use 'sqrt_area' or 'diameter'.")
        self._graph = None if method == "exact" else distance_graph(surface, diagonals=method == "graph")
        self._solver = GeodesicSolver(surface, method) if method == "exact" else None
        self._keys = np.empty(0, dtype=np.int64)
        self._known = np.empty(0, dtype=np.float32)

    def __repr__(self) -> str:
        return f"ReferenceDistances({self.surface!r}, over {self.normalisation}, {len(self._keys)} pairs known)"

    def between(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """Normalised distances between vertices first[i] and second[i].

        Parameters
        ----------
        first, second : (pairs,) int array
            Vertices of the reference.

        Returns
        -------
        (pairs,) array

        Raises
        ------
        InputError
            Where a number is not a vertex.
        """
        m = len(self.surface.vertices)
        a, b = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
        if len(a) and not (min(a.min(), b.min()) >= 0 and max(a.max(), b.max()) < m):
            raise InputError(f"Vertices of the reference are 0 to {m - 1}.")
        keys = np.minimum(a, b) * m + np.maximum(a, b)
        wanted = np.unique(keys[a != b])
        self._compute(wanted[~np.isin(wanted, self._keys)])
        distance = np.zeros(len(a))
        apart = a != b
        distance[apart] = self._known[np.searchsorted(self._keys, keys[apart])]
        return distance / self.length

    def to_points(self, vertices: ArrayLike, truth: BarycentricPoints) -> FloatArray:
        """Normalised distances from vertices to points inside triangles.

        With corners c_i, weights w_i and the point p = sum_i w_i c_i, the smaller of two upper bounds:

            sum_i w_i d(v, c_i)             (d is convex on a flat patch)
            min_i d(v, c_i) + |c_i - p|     (through a corner)

        The first is nearly exact for distant points, the second for near ones; at a corner both are exact.

        Parameters
        ----------
        vertices : (n,) int array
            Vertices of the reference.
        truth : BarycentricPoints
            The n points.

        Returns
        -------
        (n,) array
        """
        corner = self.surface.faces[np.asarray(truth.faces)].astype(np.int64)  # (n, 3)
        weights = np.asarray(truth.weights, dtype=float)
        start = np.broadcast_to(np.asarray(vertices, dtype=np.int64)[:, None], corner.shape)
        to_corner = self.between(start.ravel(), corner.ravel()).reshape(-1, 3)
        corners = self.surface.vertices[corner]
        point = np.einsum("ni,nid->nd", weights, corners)
        straight = np.linalg.norm(corners - point[:, None], axis=2) / self.length
        return np.minimum((weights * to_corner).sum(axis=1), (to_corner + straight).min(axis=1))

    def _compute(self, keys: NDArray[np.int64]) -> None:
        """Compute the distances of new pairs (key = low * m + high) and store them in order."""
        if not len(keys):
            return
        m = len(self.surface.vertices)
        low, high = keys // m, keys % m
        computed = np.full(len(keys), np.inf)
        for radius in (0.03 * self.diameter, 0.12 * self.diameter, np.inf):
            open_ = np.flatnonzero(np.isinf(computed))
            if not len(open_):
                break
            # Either end may be the source: the side with fewer different vertices costs fewer searches.
            a, b = low[open_], high[open_]
            if len(np.unique(b)) < len(np.unique(a)):
                a, b = b, a
            computed[open_] = self._search(a, b, radius)
        computed[np.isinf(computed)] = self.diameter
        merged = np.concatenate([self._keys, keys])
        order = np.argsort(merged)
        self._keys = merged[order]
        self._known = np.concatenate([self._known, computed.astype(np.float32)])[order]

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
        """(sources, n) distances in the unit of the surface; they may be infinite beyond the radius."""
        from scipy.sparse.csgraph import dijkstra

        if self._solver is not None:
            return self._solver.distances_from(sources.astype(np.int32))
        return dijkstra(self._graph, directed=False, indices=sources, limit=radius)
