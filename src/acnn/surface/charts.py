"""Geodesic polar charts: the vertices around every vertex of a mesh, by distance and direction along the surface.

Two steps for every centre x:

1. Straight lines. The triangles around x are unfolded into a plane, one after the other, and windows of straight lines
   from x are followed through them. Where a window contains a vertex, distance and direction are exact.
2. Discrete geodesic polar coordinates (Melvaer and Reimers, Computer Graphics Forum 31(8), 2012) for vertices that no
   straight line meets, because a vertex of negative curvature lies in between. In the order of distance, the edge jk of
   a triangle ijk gives a virtual source with distances rho_j and rho_k from its ends, from which i, and vertices a few
   triangles further, are seen as in the plane:

       rho_i = |i - s|,   theta_i = theta_j + (theta_k - theta_j) angle(j, s, i) / angle(j, s, k)
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.topology import fans, mesh_edges, next_corner, orientations_agree
from acnn.surface.chart_kernels import HalfEdges, charts_of
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

CHUNK = 128
"""Centres that a thread computes at a time."""


@dataclass(frozen=True, eq=False)
class GeodesicCharts:
    """Polar coordinates around every vertex, in compressed rows.

    Row i is `offsets[i]` to `offsets[i + 1]` of the other arrays: the vertices of its chart in ascending order, with
    vertex i itself among them at rho = theta = 0.

    Attributes
    ----------
    offsets : (n + 1,) int64 array
    vertices : (entries,) int32 array
    rho : (entries,) float32 array
        Geodesic distance from the centre, in normalised units, at most `radius`.
    theta : (entries,) float32 array
        Direction at the centre in radians, counter-clockwise about the outward normal, in [0, `angles[i]`]. At interior
        vertices the angles of the one-ring are scaled to 2 pi, and theta = 0 is the longest edge there. At boundary
        vertices they are as they are, and theta = 0 is the first edge of the fan.
    angles : (n,) array
        The angle around every vertex that its chart covers: 2 pi, or on the boundary the sum of the triangles' angles.
    radius : float
        Of all charts, in normalised units.
    """

    offsets: NDArray[np.int64]
    vertices: NDArray[np.int32]
    rho: NDArray[np.float32]
    theta: NDArray[np.float32]
    angles: FloatArray
    radius: float

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"GeodesicCharts({len(self)} vertices, radius {self.radius:g}, {len(self.vertices)} entries)"

    def chart(self, vertex: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Vertices, distances and directions around one vertex."""
        row = slice(self.offsets[vertex], self.offsets[vertex + 1])
        return self.vertices[row], self.rho[row], self.theta[row]


@check_arguments
def geodesic_charts(surface: Surface, radius: float, threads: int | None = None) -> GeodesicCharts:
    """Compute geodesic polar coordinates around every vertex of a mesh.

    Parameters
    ----------
    surface : Surface
        Of a mesh, manifold around every vertex, in normalised units.
    radius : float
        Distance up to which vertices belong to a chart, in normalised units.
    threads : int or None
        None is one per core.

    Returns
    -------
    GeodesicCharts

    Raises
    ------
    InputError
        Where the surface is that of a cloud, or of a mesh that is not manifold or has an edge of length zero; or where
        the radius is not positive.
    """
    if not (np.isfinite(radius) and radius > 0):
        raise InputError(f"The radius of geodesic charts must be a positive number, not {radius}.")
    mesh = half_edges(surface)
    n = len(surface.vertices)

    def run(begin: int) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
        counts, vertices, rho, theta, angles = charts_of(*mesh, float(radius), begin, min(begin + CHUNK, n))
        order = np.argsort(np.repeat(np.arange(len(counts)) * n, counts) + vertices)
        return counts, vertices[order], rho[order], theta[order], angles

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        pieces = list(pool.map(run, range(0, n, CHUNK)))
    counts, vertices, rho, theta, angles = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    return GeodesicCharts(np.concatenate([[0], np.cumsum(counts)]), vertices, rho, theta, angles, float(radius))


def half_edges(surface: Surface) -> HalfEdges:
    """Half-edges of a mesh.

    Raises
    ------
    InputError
        Where the surface is that of a cloud, or of a mesh that is not an oriented manifold or has an edge of length 0.
    """
    if surface.is_cloud:
        raise InputError("Geodesic charts need a mesh, not a point cloud: use the method 'acnn', which takes clouds.")
    faces, n = surface.faces.astype(np.int32), len(surface.vertices)
    edges = mesh_edges(faces)
    first, second = edges.pairs()
    if (edges.counts > 2).any():
        a, b = edges.vertices[np.argmax(edges.counts)]
        _refuse(f"{edges.counts.max()} triangles meet at the edge between vertices {a} and {b}")
    if not (agreeing := orientations_agree(faces, first, second)).all():
        a, b = edges.vertices[edges.counts == 2][np.argmin(agreeing)]
        _refuse(f"triangles of opposite orientation meet at the edge between vertices {a} and {b}")
    flat = faces.reshape(-1)
    count, fan = fans(faces, first, second)
    one_corner = np.zeros(count, np.int64)
    one_corner[fan] = np.arange(len(flat))
    fans_at = np.bincount(flat[one_corner], minlength=n)
    if (fans_at > 1).any():
        _refuse(f"{fans_at.max()} fans of triangles meet at vertex {fans_at.argmax()}")
    if (fans_at == 0).any():
        _refuse(f"vertex {fans_at.argmin()} belongs to no triangle")

    twins = np.full(len(flat), -1, np.int32)
    twins[first], twins[second] = second, first
    begin = surface.vertices[flat]
    along = surface.vertices[np.roll(faces, -1, axis=1).reshape(-1)] - begin
    apex = surface.vertices[np.roll(faces, 1, axis=1).reshape(-1)] - begin
    lengths = np.linalg.norm(along, axis=1)
    if not lengths.all():
        zero = np.flatnonzero(lengths == 0)
        a, b = flat[zero[0]], flat[next_corner(zero)[0]]
        raise InputError(
            f"Geodesic charts need edges of positive length, but vertices {a} and {b}, which an edge joins, "
            "coincide. Read the shape with acnn.load, which repairs it."
        )
    x = np.einsum("ij,ij->i", apex, along) / lengths
    y = np.linalg.norm(np.cross(along, apex), axis=1) / lengths
    # Half-edges in the order of preference, worst first: the last one written at a vertex remains.
    order = np.lexsort((lengths, twins < 0))
    start = np.zeros(n, np.int32)
    start[flat[order]] = order
    measures = np.stack([lengths, x, y, np.arctan2(y, x)], axis=1)
    return HalfEdges(start, np.stack([flat, twins], axis=1), measures)


def _refuse(why: str) -> None:
    raise InputError(
        f"Geodesic charts need a mesh that is manifold around every vertex, but {why}: "
        "use the method 'acnn', which takes such meshes."
    )
