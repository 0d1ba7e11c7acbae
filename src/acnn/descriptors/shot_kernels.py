"""Core of SHOT: the local frame of each point, and its histograms.

Loops over neighbours are compiled; eigenvectors and the rare cases of equal eigenvalues are left to numpy.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.types import FloatArray

Indices: TypeAlias = NDArray[np.int64]

FEWEST = 5
"""Least number of neighbours of a vertex that has a descriptor, as in the public code."""

BINS = 16
AZIMUTHS = 8
"""Steps of the histograms and azimuth sectors, as published."""

ROUNDING = 1e-6
"""Relative size below which a moment or a gap between eigenvalues is rounding and decides nothing."""


def describe(
    points: FloatArray,
    normals: FloatArray,
    weights: FloatArray,
    begins: Indices,
    ends: Indices,
    radius: float,
    majority: bool,
    upright: bool,
    first: int,
    last: int,
    result: NDArray[np.float32],
) -> None:
    """Write the descriptors of points first to last - 1 into `result`.

    Parameters
    ----------
    points, normals : (n, 3) array
    weights : (n,) array
        a_j.
    begins, ends : (n, ranges) array
        All points within the radius of point i are among begins[i, r], ..., ends[i, r] - 1 for some r.
    radius : float
        R.
    majority : bool
        Signs by majority instead of moments.
    upright : bool
        The axis z is the mean normal of the neighbours.
    first, last : int
    result : (n, 544) float32 array
    """
    count = last - first
    spread, mean, neighbours = np.zeros((count, 3, 3)), np.zeros((count, 3)), np.zeros(count, np.int64)
    _sum_neighbours(points, normals, weights, begins, ends, radius, first, spread, mean, neighbours)
    rows = np.flatnonzero(neighbours >= FEWEST)
    if len(rows) == 0:
        return
    own = normals[first:last][rows]
    if upright:
        own = _unit(mean[rows], own)
    x, z, about_z = _axes(spread[rows], own, upright)
    rows = first + rows
    if about_z.any():
        nearest = x[about_z].copy()
        _find_nearest(points, begins, ends, radius, rows[about_z], z[about_z], nearest)
        x[about_z] = _unit(_across(nearest, z[about_z]), x[about_z])
    most = int(neighbours.max())
    offsets, indices, moments = np.empty((most, 4)), np.empty(most, np.int64), np.zeros((3, 3))
    histogram = np.zeros(4 * AZIMUTHS * (BINS + 1))
    frames = np.stack([x, np.cross(z, x), z], axis=1)
    inward = np.einsum("ij,ij->i", z, own) <= 0.0
    _fill_histograms(
        points, normals, weights, begins, ends, radius, majority, upright, rows, frames, inward,
        indices, offsets, moments, histogram, result,
    )  # fmt: skip


def _axes(spread: FloatArray, normals: FloatArray, upright: bool) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Axes x and z, of the largest and the smallest spread, without a sign, and where nothing distinguishes x.

    Upright, z is the normal with its sign, and x is orthogonal to it.
    """
    if upright:
        flat = np.eye(3) - normals[:, :, None] * normals[:, None, :]
        spread = flat @ spread @ flat
    values, vectors = np.linalg.eigh(spread)  # ascending
    x, z = vectors[:, :, 2], vectors[:, :, 0]
    about_z = values[:, 2] - values[:, 1] <= ROUNDING * values[:, 2]
    about_x = values[:, 1] - values[:, 0] <= ROUNDING * values[:, 2]
    if upright:
        return _unit(_across(x, normals), x), normals, about_z
    upwards = np.where(about_z[:, None], normals, _across(normals, x))
    return x, np.where(about_x[:, None], _unit(upwards, z), z), about_z


def _across(vectors: FloatArray, units: FloatArray) -> FloatArray:
    """Components orthogonal to unit vectors."""
    return vectors - np.einsum("ij,ij->i", vectors, units)[:, None] * units


def _unit(vectors: FloatArray, otherwise: FloatArray) -> FloatArray:
    """Unit vectors, or others where there is no direction."""
    length = np.linalg.norm(vectors, axis=1)[:, None]
    return np.where(length > ROUNDING, vectors / np.maximum(length, ROUNDING), otherwise)


@compiled(nogil=True)
def _sum_neighbours(
    points: FloatArray,
    normals: FloatArray,
    weights: FloatArray,
    begins: Indices,
    ends: Indices,
    radius: float,
    first: int,
    spread: FloatArray,
    mean: FloatArray,
    neighbours: Indices,
) -> None:
    """Number of neighbours, their second moments, and the sum of their normals without those that face away.

    The point itself and its duplicates do not count: they have no direction.
    """
    for row in range(len(neighbours)):
        i = first + row
        for r in range(begins.shape[1]):
            for j in range(begins[i, r], ends[i, r]):
                x, y, z = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
                squared = x * x + y * y + z * z
                if 0.0 < squared < radius * radius:
                    neighbours[row] += 1
                    weight = weights[j] * (radius - np.sqrt(squared))
                    spread[row, 0, 0] += weight * x * x
                    spread[row, 1, 0] += weight * y * x
                    spread[row, 1, 1] += weight * y * y
                    spread[row, 2, 0] += weight * z * x
                    spread[row, 2, 1] += weight * z * y
                    spread[row, 2, 2] += weight * z * z
                    x, y, z = normals[j, 0], normals[j, 1], normals[j, 2]
                    if x * normals[i, 0] + y * normals[i, 1] + z * normals[i, 2] > 0.0:
                        mean[row, 0] += weight * x
                        mean[row, 1] += weight * y
                        mean[row, 2] += weight * z
        spread[row, 0, 1], spread[row, 0, 2] = spread[row, 1, 0], spread[row, 2, 0]
        spread[row, 1, 2] = spread[row, 2, 1]


@compiled(nogil=True)
def _find_nearest(
    points: FloatArray,
    begins: Indices,
    ends: Indices,
    radius: float,
    rows: Indices,
    axes: FloatArray,
    nearest: FloatArray,
) -> None:
    """Offset of the nearest neighbour that is not straight above or below; nothing where there is none."""
    for row in range(len(rows)):
        i, shortest = rows[row], radius * radius
        for r in range(begins.shape[1]):
            for j in range(begins[i, r], ends[i, r]):
                x, y, z = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
                squared = x * x + y * y + z * z
                height = x * axes[row, 0] + y * axes[row, 1] + z * axes[row, 2]
                if 0.0 < squared < shortest and height * height < 0.81 * squared:
                    shortest = squared
                    nearest[row, 0], nearest[row, 1], nearest[row, 2] = x, y, z


@compiled(nogil=True)
def _fill_histograms(
    points: FloatArray,
    normals: FloatArray,
    weights: FloatArray,
    begins: Indices,
    ends: Indices,
    radius: float,
    majority: bool,
    upright: bool,
    rows: Indices,
    frames: FloatArray,
    inward: NDArray[np.bool_],
    indices: Indices,
    offsets: FloatArray,
    moments: FloatArray,
    histogram: FloatArray,
    result: NDArray[np.float32],
) -> None:
    """Turn the axes towards the neighbours, and distribute every neighbour over the bins and sectors nearest to it.

    Upright, only x is turned, and y with it.
    """
    for row in range(len(rows)):
        i, count, total, faded = rows[row], 0, 0.0, 0.0
        for axis in range(3):
            moments[axis, 0] = moments[axis, 1] = moments[axis, 2] = 0.0
        for r in range(begins.shape[1]):
            for j in range(begins[i, r], ends[i, r]):
                x, y, z = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
                squared = x * x + y * y + z * z
                if 0.0 < squared < radius * radius:
                    distance = np.sqrt(squared)
                    indices[count], offsets[count, 3] = j, distance
                    weight = weights[j]
                    near = weight * (1.0 - distance / radius)
                    total += weight
                    faded += near
                    for axis in range(3):
                        along = x * frames[row, axis, 0] + y * frames[row, axis, 1] + z * frames[row, axis, 2]
                        offsets[count, axis] = along
                        height = along / radius
                        if height > ROUNDING:
                            moments[axis, 0] += weight
                        elif height < -ROUNDING:
                            moments[axis, 0] -= weight
                        moments[axis, 1] += near * height
                        moments[axis, 2] += near * height * height * height
                    count += 1
        for axis in range(3):  # the side on which the neighbours lie, 0 where both are alike
            side = 0.0
            for order in range(0 if majority else 1, 3):
                if side == 0.0 and abs(moments[axis, order]) > ROUNDING * (faded if order else total):
                    side = 1.0 if moments[axis, order] > 0.0 else -1.0
            moments[axis, 0] = side
        turn_z = 1.0 if upright else moments[2, 0]
        if turn_z == 0.0:  # flat: z points inwards, as on the convex surfaces next to it
            turn_z = 1.0 if inward[row] else -1.0
        turn_x = moments[0, 0]
        if turn_x == 0.0:  # turning x over turns y over
            turn_x = -1.0 if moments[1, 0] * turn_z < 0.0 else 1.0

        for k in range(len(histogram)):
            histogram[k] = 0.0
        for k in range(count):
            j = indices[k]
            x, y, z = offsets[k, 0] * turn_x, offsets[k, 1] * turn_x * turn_z, offsets[k, 2] * turn_z
            flat = np.sqrt(x * x + y * y)
            cosine = normals[j, 0] * frames[row, 2, 0] + normals[j, 1] * frames[row, 2, 1]
            cosine = (cosine + normals[j, 2] * frames[row, 2, 2]) * turn_z
            cosine = 1.0 if cosine > 1.0 else (-1.0 if cosine < -1.0 else cosine)
            # Each position in steps from the first centre.
            position = 0.5 * BINS * (1.0 + cosine)
            radial = 2.0 * offsets[k, 3] / radius - 0.5
            elevation = np.arctan2(z, flat) * (2.0 / np.pi) + 0.5
            azimuth = (np.arctan2(y, x) + np.pi) * (0.5 * AZIMUTHS / np.pi) + 0.5  # one more, so that it is positive
            low_bin = int(position) if position < BINS else BINS - 1
            low_azimuth = int(azimuth)
            straight = flat <= ROUNDING * offsets[k, 3]  # straight above or below there is no azimuth
            for a in range(AZIMUTHS if straight else 2):
                fraction = 1.0 / AZIMUTHS if straight else 1.0 - abs(azimuth - low_azimuth - a)
                sector = 4 * ((low_azimuth + a + AZIMUTHS - 1) % AZIMUTHS)
                for part in range(4):
                    share = (1.0 - abs(radial - part // 2)) * fraction * weights[j]
                    rest = 1.0 - abs(elevation - part % 2)
                    if share > 0.0 and rest > 0.0:
                        index = (sector + part) * (BINS + 1) + low_bin
                        histogram[index] += share * rest * (1.0 + low_bin - position)
                        histogram[index + 1] += share * rest * (position - low_bin)
        squared = 0.0
        for k in range(len(histogram)):
            squared += histogram[k] * histogram[k]
        if squared > 0.0:
            for k in range(len(histogram)):
                result[i, k] = histogram[k] / np.sqrt(squared)
