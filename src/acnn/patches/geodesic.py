"""Geodesic patch operators of GCNN: rings and rays of geodesic polar charts around every vertex."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from acnn.arguments import check_arguments
from acnn.compilation import compiled
from acnn.patches.operator import PatchOperator, PatchReport
from acnn.patches.settings import GeodesicPatchSettings
from acnn.shapes.mesh import Shape
from acnn.surface.charts import geodesic_charts
from acnn.surface.sparse_rows import renormalise_and_round
from acnn.surface.surface import Surface, surface_of
from acnn.types import FloatArray, IntArray

REACH = 1.5
"""Radius of charts over that of patches, so that the last ring has vertices on both sides (authors' program)."""

DROPPED = 0.01
"""Weights below this fraction of the largest of their bin are dropped (authors' program)."""

EMPTY = 1e-4
"""A ray that receives less than this fraction of any vertex is empty: with the published width, none lies within 17
degrees of it. Its bins take the nearest vertex."""

CHUNK = 128
"""Vertices whose weights a thread computes at a time."""


AS_PUBLISHED = GeodesicPatchSettings()
WIDER = GeodesicPatchSettings(radius=8.0, radial_width=0.5)
"""Charts of radius 12; rings that overlap with their neighbours only."""


@check_arguments
def build_geodesic_patches(
    shape: Shape | Surface,
    settings: GeodesicPatchSettings = AS_PUBLISHED,
    *,
    unit: float | None = None,
    threads: int | None = None,
) -> PatchOperator:
    """Compute the geodesic patch operator of a mesh.

    With distance d and direction theta of vertex y in the chart of x, the weight of y in the bin of ring rho_i and ray
    theta_r is the product of its area s_y and of

        exp(-sin^2(theta - theta_r) / h_a),                 1 in place of sin^2 beyond a right angle; over rays, sum 1
        exp(-(d - rho_i)^2 / (h_s (rho_2 - rho_1))^2),      1 / (1 + exp((d - rho_1) / (h_s rho_1))) in the first ring;
                                                            over rings, sum 1

    Small weights are dropped, and those of each bin are scaled to sum 1. A bin without vertices, such as one beyond the
    boundary, takes the vertex nearest to it in the plane of the chart. Where theta = 0 lies means nothing: a layer
    takes the maximum over rotations (`IntrinsicConv(angles=16, scales=5, angular_max=True)`).

    Parameters
    ----------
    shape : Shape or Surface
        A mesh as `load` returns it, or its surface in normalised units.
    settings : GeodesicPatchSettings
        Rings, rays, radius and widths.
    unit : float or None
        Length of one normalised unit in the shape's coordinates; None takes the shape's geodesic diameter / 200.
    threads : int or None
        None is one per core.

    Returns
    -------
    PatchOperator
        Rays on its angle axis, rings on its scale axis, no wide part.

    Raises
    ------
    InputError
        Where the shape is a cloud or not manifold.
    """
    began = time.perf_counter()
    surface = surface_of(shape, unit)
    charts = geodesic_charts(surface, REACH * settings.radius, threads)
    n, bins = len(charts), settings.rays * settings.rings
    areas = surface.vertex_areas
    widths = settings.radius, settings.angular_width, settings.radial_width

    def run(begin: int) -> tuple[IntArray, IntArray, FloatArray]:
        rows = charts.offsets, charts.vertices, charts.rho, charts.theta
        return _weights(*rows, areas, settings.rings, settings.rays, *widths, begin, min(begin + CHUNK, n))

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        pieces = list(pool.map(run, range(0, n, CHUNK)))
    counts = np.concatenate([piece[0] for piece in pieces])  # (n, bins)
    start = np.concatenate([[0], np.cumsum(counts.T.ravel())])
    vertices, values = np.empty(start[-1], np.int32), np.empty(start[-1], np.float32)
    begins = start[:-1].reshape(bins, n)
    for number, (part, entries, weights) in enumerate(pieces):
        _place(part, entries, weights, begins, number * CHUNK, vertices, values)
    report = PatchReport(
        vertices=n,
        angles=settings.rays,
        scales=list(settings.scales),
        kernel=settings.kind,
        seconds=time.perf_counter() - began,
        nnz_per_row=len(values) / max(1, len(start) - 1),
        chart_vertices=float(np.median(np.diff(charts.offsets))),
    )
    return PatchOperator(
        start,
        vertices.astype(np.uint16 if n <= 65536 else np.int32),
        renormalise_and_round(start, values, threads),
        np.zeros((settings.rays, 0), np.float32),
        np.zeros((settings.rays, n, 0), np.float32),
        areas.astype(np.float32),
        surface.unit,
        settings,
        report,
    )


@compiled(nogil=True)
def _weights(
    offsets: IntArray,
    vertices: IntArray,
    rho: FloatArray,
    theta: FloatArray,
    areas: FloatArray,
    rings: int,
    rays: int,
    radius: float,
    angular_width: float,
    radial_width: float,
    begin: int,
    end: int,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Weights of the bins of vertices begin to end - 1: (end - begin, bins) counts; entries ordered by vertex, bin."""
    bins, step = rays * rings, radius / rings
    counts = np.zeros((end - begin, bins), np.int64)
    most = 0
    for x in range(begin, end):
        most = max(most, offsets[x + 1] - offsets[x])
    room = 4 * most * bins
    entries, weights = np.empty(room, np.int32), np.empty(room, np.float32)
    by_ray, by_ring = np.empty((most, rays)), np.empty((most, rings))
    filled = 0
    for x in range(begin, end):
        first, size = offsets[x], offsets[x + 1] - offsets[x]
        for k in range(size):
            d, direction = float(rho[first + k]), float(theta[first + k])
            total = 0.0
            for r in range(rays):
                turn = direction - r * 2.0 * np.pi / rays
                turn -= 2.0 * np.pi * np.rint(turn / (2.0 * np.pi))
                off = 1.0 if abs(turn) > 0.5 * np.pi else np.sin(turn) ** 2
                # At the centre there is no direction: it belongs to all rays alike.
                by_ray[k, r] = 1.0 if d == 0.0 else np.exp(-off / angular_width)
                total += by_ray[k, r]
            for r in range(rays):
                by_ray[k, r] /= max(total, 1e-300)
            total = 0.0
            for i in range(rings):
                off = (d - (i + 1) * step) / (radial_width * step)
                by_ring[k, i] = 1.0 / (1.0 + np.exp(min(off, 700.0))) if i == 0 else np.exp(-off * off)
                total += by_ring[k, i]
            for i in range(rings):
                by_ring[k, i] /= max(total, 1e-300)
        if filled + size * bins > len(entries):
            entries = np.concatenate((entries, np.empty_like(entries)))
            weights = np.concatenate((weights, np.empty_like(weights)))
        for r in range(rays):
            fullest = 0.0
            for k in range(size):
                if rho[first + k] > 0.0:
                    fullest = max(fullest, by_ray[k, r])
            for i in range(rings):
                largest, before = 0.0, filled
                for k in range(size):
                    largest = max(largest, by_ray[k, r] * by_ring[k, i] * areas[vertices[first + k]])
                if fullest < EMPTY or largest <= 0.0:
                    entries[filled] = _nearest(
                        vertices, rho, theta, first, size, (i + 1) * step, r * 2.0 * np.pi / rays
                    )
                    weights[filled] = 1.0
                    filled += 1
                else:
                    for k in range(size):
                        weight = by_ray[k, r] * by_ring[k, i] * areas[vertices[first + k]]
                        if weight >= DROPPED * largest:
                            entries[filled], weights[filled] = vertices[first + k], weight / largest
                            filled += 1
                counts[x - begin, r * rings + i] = filled - before
    return counts, entries[:filled].copy(), weights[:filled].copy()


@compiled(nogil=True)
def _nearest(
    vertices: IntArray, rho: FloatArray, theta: FloatArray, first: int, size: int, distance: float, direction: float
) -> int:
    """The vertex of a chart nearest to a point of its plane."""
    best, nearest = np.inf, 0
    for k in range(first, first + size):
        d = float(rho[k])
        squared = d * d + distance * distance - 2.0 * d * distance * np.cos(theta[k] - direction)
        if squared < best:
            best, nearest = squared, vertices[k]
    return nearest


@compiled(nogil=True)
def _place(
    counts: IntArray,
    entries: IntArray,
    weights: FloatArray,
    begins: IntArray,
    first: int,
    vertices: IntArray,
    values: FloatArray,
) -> None:
    """Copy rows ordered by vertex, then bin, to where they stand ordered by bin, then vertex."""
    at = 0
    for x in range(counts.shape[0]):
        for b in range(counts.shape[1]):
            to = begins[b, first + x]
            for k in range(counts[x, b]):
                vertices[to + k], values[to + k] = entries[at], weights[at]
                at += 1
