"""SHOT, the signature of histograms of orientations, at every vertex of a mesh or cloud.

Tombari, Salti, Di Stefano: Unique signatures of histograms for local surface description, ECCV 2010; and SHOT: unique
signatures of histograms for surface and texture description, CVIU 2014.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.descriptors.shot_kernels import describe
from acnn.errors import InputError
from acnn.shapes.mesh import Shape
from acnn.surface.surface import Surface, surface_of
from acnn.types import FloatArray

SHOT_LENGTH = 544
"""Number of columns: 8 azimuth x 2 radial x 2 elevation sectors, each with a histogram of 16 + 1 bins."""

CHUNK = 256
"""Number of vertices of one job of a thread."""


@check_arguments
def shot(
    shape: Shape | Surface,
    radius: float = 12.0,
    *,
    unit: float | None = None,
    area_weighted: bool = True,
    signs: Literal["moment", "majority"] = "moment",
    upright: bool = False,
    threads: int | None = None,
) -> NDArray[np.float32]:
    """SHOT-544 of every vertex: histograms of the angles between neighbouring normals and the local z axis, by sector.

    Frame at p, over neighbours q_j at distances d_j < R with weights a_j: the eigenvectors of

        sum_j a_j (R - d_j) (q_j - p)(q_j - p)^T

    with the largest (x) and the smallest eigenvalue (z), each oriented towards the neighbours, y = z x x. So z points
    inwards where the surface is convex.

    Histogram: the value <z, n_j> in [-1, 1] of each neighbour is interpolated linearly between the two nearest of 17
    bins centred at -1, -7/8, ..., 1 (16 steps have 17 ends: the public code asks for 16 bins and makes 16 + 1), and
    between the two nearest sectors in azimuth (8, centred at odd multiples of 22.5 degrees), elevation (centred at
    -45 and 45 degrees) and radius (centred at R/4 and 3R/4). The weight of a bin is the product of the four (1 -
    distance to its centre, in steps); beyond the last centre of elevation and radius the remaining weight is lost, as
    published. Entry ((azimuth * 2 + radial) * 2 + elevation) * 17 + bin; azimuth from -180 degrees upwards, inner
    before outer, below (z < 0) before above. The descriptor has length 1.

    Differences from the public code: the weight is a product rather than a sum of four, the bins at -1 and 1 are not
    adjacent, and the two options below have other defaults. Ties of a sign are decided by the first, then the third
    moment, then for x by the side of y and for z by the inside; equal eigenvalues are split by the nearest neighbour
    (x) and the vertex normal (z): nothing depends on the order of vertices or on the coordinate axes.

    Parameters
    ----------
    shape : Mesh, PointCloud or Surface
    radius : float
        R, of frame and histogram, in normalised units (geodesic diameter 200).
    unit : float or None
        Length of one normalised unit in the shape's coordinates; None is the geodesic diameter of the shape / 200, or
        the unit of a surface.
    area_weighted : bool
        The weight a_j is the vertex area, so that the sums approximate integrals over the surface and do not depend on
        the density of vertices; False is a_j = 1 as published. Between two FAUST bodies and their remeshed versions the
        mean cosine is 0.94 and 0.93 weighted, 0.78 and 0.72 unweighted. Between two bodies of ONE connectivity the
        nearest descriptor is correct to within 10 units for 47 % of the vertices weighted and 66 % unweighted, because
        it then describes the triangulation too.
    signs : {'moment', 'majority'}
        "moment" orients an axis towards sum_j a_j (R - d_j) (q_j - p), which no neighbour at distance R can change;
        "majority" towards the side with more neighbours (of larger total a_j), as published. On the remeshed pairs z
        flips at 3 % of the points by moment, 8 % by majority; x at 2 and 5 %.
    upright : bool
        The axis z is the mean outward normal of the neighbourhood, and x the direction of the largest variance
        orthogonal to it. Published frames flip where a part of the neighbourhood is missing; the normal does not.
    threads : int or None
        None is one per core.

    Returns
    -------
    (n, 544) float32 array
        Rows of length 1; zero where a vertex has fewer than 5 neighbours.

    Raises
    ------
    InputError
        Where radius or signs are invalid.

    Examples
    --------
    >>> import acnn
    >>> acnn.shot(acnn.surface_of(acnn.builtin_human()), radius=12.0).shape
    (2500, 544)
    """
    if not (np.isfinite(radius) and radius > 0):
        raise InputError(f"The radius of SHOT must be a positive number, not {radius}.")
    if signs not in ("moment", "majority"):
        raise InputError(f"The signs of SHOT's axes are chosen by 'moment' or 'majority', not by {signs!r}.")
    surface = surface_of(shape, unit)
    points = surface.vertices
    n = len(points)
    weights = surface.vertex_areas / surface.vertex_areas.mean() if area_weighted else np.ones(n)
    order, begins, ends = _grid_ranges(points, float(radius))
    arrays = points[order], surface.normals[order], weights[order], begins, ends
    descriptors = np.zeros((n, SHOT_LENGTH), np.float32)

    def run(first: int) -> None:
        describe(*arrays, float(radius), signs == "majority", upright, first, min(first + CHUNK, n), descriptors)

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        list(pool.map(run, range(0, n, CHUNK)))
    result = np.empty_like(descriptors)
    result[order] = descriptors
    return result


def _grid_ranges(points: FloatArray, radius: float) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sort points into the cells of a grid as wide as the radius, with the ranges that hold the neighbours of each.

    Returns
    -------
    order : (n,) array
    begins, ends : (n, 9) array
        Ranges of this order: one for three cells along the last axis.
    """
    low = points.min(axis=0)
    # A little wider, so that rounding never puts a neighbour two cells away; wider still where the radius is so small
    # that the numbers of cells would not fit.
    width = max(radius * 1.000001, float((points.max(axis=0) - low).max()) * 1e-6)
    cells = ((points - low) / width).astype(np.int64) + 1
    rows, layers = int(cells[:, 1].max()) + 2, int(cells[:, 2].max()) + 2
    keys = (cells[:, 0] * rows + cells[:, 1]) * layers + cells[:, 2]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    columns = keys[:, None] + layers * np.array([row * rows + column for row in (-1, 0, 1) for column in (-1, 0, 1)])
    return order, np.searchsorted(keys, columns - 1), np.searchsorted(keys, columns + 1, side="right")
