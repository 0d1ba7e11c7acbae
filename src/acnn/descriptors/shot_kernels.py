"""Compiled core of SHOT: neighbours, local frame, histograms.

Vectors are tuples of three numbers here: they live in registers, where small arrays would be allocated.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.types import FloatArray

Vector: TypeAlias = tuple[float, float, float]
Indices: TypeAlias = NDArray[np.int64]

FEWEST = 5
"""Least number of neighbours of a vertex that has a descriptor, as in the public code."""

BINS = 16
AZIMUTHS = 8
"""Steps of the histograms and azimuth sectors, as published."""

ROUNDING = 1e-6
"""Relative size below which a moment or a gap between eigenvalues is rounding and decides nothing."""


@compiled(nogil=True)
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
    most = 0
    for i in range(first, last):
        most = max(most, (ends[i] - begins[i]).sum())
    indices = np.empty(most, np.int64)
    offsets = np.empty((most, 4))  # to the neighbour, and its distance
    histogram = np.empty(4 * AZIMUTHS * (BINS + 1))
    for i in range(first, last):
        count = _gather(i, points, begins[i], ends[i], radius, indices, offsets)
        if count < FEWEST:
            continue
        normal = (normals[i, 0], normals[i, 1], normals[i, 2])
        if upright:
            normal = _mean_normal(normal, count, indices, offsets, normals, weights, radius)
        x, z = _axes(count, indices, offsets, weights, radius, normal, upright)
        x, z = _signed(x, z, normal, count, indices, offsets, weights, radius, majority, upright)
        _fill(histogram, x, _cross(z, x), z, count, indices, offsets, normals, weights, radius)
        squared = 0.0
        for k in range(len(histogram)):
            squared += histogram[k] ** 2
        if squared > 0.0:
            scale = 1.0 / np.sqrt(squared)
            for k in range(len(histogram)):
                result[i, k] = histogram[k] * scale


@compiled(nogil=True)
def _gather(
    i: int,
    points: FloatArray,
    begins: Indices,
    ends: Indices,
    radius: float,
    indices: Indices,
    offsets: FloatArray,
) -> int:
    """Collect the neighbours, without the point itself and its duplicates, which have no direction; returns a count."""
    count = 0
    for r in range(len(begins)):
        for j in range(begins[r], ends[r]):
            x, y, z = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
            squared = x * x + y * y + z * z
            if 0.0 < squared < radius * radius:
                indices[count] = j
                offsets[count, 0], offsets[count, 1], offsets[count, 2] = x, y, z
                offsets[count, 3] = np.sqrt(squared)
                count += 1
    return count


@compiled(nogil=True)
def _axes(
    count: int, indices: Indices, offsets: FloatArray, weights: FloatArray, radius: float, normal: Vector, upright: bool
) -> tuple[Vector, Vector]:
    """Axes x and z, of the largest and the smallest spread, without a sign; upright, z is the normal with its sign."""
    covariance = np.zeros((3, 3))
    for k in range(count):
        weight = weights[indices[k]] * (radius - offsets[k, 3])
        for a in range(3):
            for b in range(a + 1):
                if upright:
                    height = _along(offsets, k, normal)
                    flat = (offsets[k, a] - height * normal[a]) * (offsets[k, b] - height * normal[b])
                    covariance[a, b] += weight * flat
                else:
                    covariance[a, b] += weight * offsets[k, a] * offsets[k, b]
    values, vectors = np.linalg.eigh(covariance)  # ascending; reads the lower half
    x = (vectors[0, 2], vectors[1, 2], vectors[2, 2])
    z = (vectors[0, 0], vectors[1, 0], vectors[2, 0])
    round_about_z = values[2] - values[1] <= ROUNDING * values[2]
    round_about_x = values[1] - values[0] <= ROUNDING * values[2]
    if upright:
        z = normal
        x = _unit(_across(x, z), x)
    elif round_about_x:
        z = _unit(normal if round_about_z else _across(normal, x), z)
    if round_about_z:
        x = _unit(_across(_nearest(count, offsets, z, x), z), x)
    return x, z


@compiled(nogil=True)
def _mean_normal(
    own: Vector,
    count: int,
    indices: Indices,
    offsets: FloatArray,
    normals: FloatArray,
    weights: FloatArray,
    radius: float,
) -> Vector:
    """Mean of the neighbours' normals, weighted towards the near ones, without those that face away."""
    x, y, z = 0.0, 0.0, 0.0
    for k in range(count):
        j = indices[k]
        if _along(normals, j, own) > 0.0:
            weight = weights[j] * (radius - offsets[k, 3])
            x += weight * normals[j, 0]
            y += weight * normals[j, 1]
            z += weight * normals[j, 2]
    length = np.sqrt(x * x + y * y + z * z)
    return (x / length, y / length, z / length) if length > 0.0 else own


@compiled(nogil=True)
def _nearest(count: int, offsets: FloatArray, z: Vector, otherwise: Vector) -> Vector:
    """Offset of the nearest neighbour that is not straight above or below."""
    shortest, nearest = np.inf, otherwise
    for k in range(count):
        if offsets[k, 3] < shortest and abs(_along(offsets, k, z)) < 0.9 * offsets[k, 3]:
            shortest, nearest = offsets[k, 3], (offsets[k, 0], offsets[k, 1], offsets[k, 2])
    return nearest


@compiled(nogil=True)
def _signed(
    x: Vector,
    z: Vector,
    normal: Vector,
    count: int,
    indices: Indices,
    offsets: FloatArray,
    weights: FloatArray,
    radius: float,
    majority: bool,
    upright: bool,
) -> tuple[Vector, Vector]:
    """Both axes turned towards the neighbours; upright, only x is."""
    side = 1 if upright else _side(z, count, indices, offsets, weights, radius, majority)
    if side == 0:  # flat: z points inwards, as on the convex surfaces next to it
        side = -1 if _dot(z, normal) > 0.0 else 1
    if side < 0:
        z = (-z[0], -z[1], -z[2])
    side = _side(x, count, indices, offsets, weights, radius, majority)
    if side == 0:  # turning x over turns y over
        side = _side(_cross(z, x), count, indices, offsets, weights, radius, majority)
    if side < 0:
        x = (-x[0], -x[1], -x[2])
    return x, z


@compiled(nogil=True)
def _side(
    axis: Vector,
    count: int,
    indices: Indices,
    offsets: FloatArray,
    weights: FloatArray,
    radius: float,
    majority: bool,
) -> int:
    """1 or -1: the side of the axis on which the neighbours lie; 0 where both sides are alike."""
    votes, first, third, total, faded = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(count):
        weight = weights[indices[k]]
        height = _along(offsets, k, axis) / radius
        if abs(height) > ROUNDING:
            votes += weight if height > 0.0 else -weight
        total += weight
        weight *= 1.0 - offsets[k, 3] / radius
        first += weight * height
        third += weight * height * height * height
        faded += weight
    if majority and abs(votes) > ROUNDING * total:
        return 1 if votes > 0.0 else -1
    if abs(first) > ROUNDING * faded:
        return 1 if first > 0.0 else -1
    if abs(third) > ROUNDING * faded:
        return 1 if third > 0.0 else -1
    return 0


@compiled(nogil=True)
def _fill(
    histogram: FloatArray,
    x_axis: Vector,
    y_axis: Vector,
    z_axis: Vector,
    count: int,
    indices: Indices,
    offsets: FloatArray,
    normals: FloatArray,
    weights: FloatArray,
    radius: float,
) -> None:
    """Distribute every neighbour over the bins and sectors nearest to it."""
    histogram[:] = 0.0
    for k in range(count):
        x, y, z = _along(offsets, k, x_axis), _along(offsets, k, y_axis), _along(offsets, k, z_axis)
        flat = np.sqrt(x * x + y * y)
        cosine = min(1.0, max(-1.0, _along(normals, indices[k], z_axis)))
        # Each position in steps from the first centre.
        position = 0.5 * BINS * (1.0 + cosine)
        radial = 2.0 * offsets[k, 3] / radius - 0.5
        elevation = np.arctan2(z, flat) * (2.0 / np.pi) + 0.5
        azimuth = (np.arctan2(y, x) + np.pi) * (0.5 * AZIMUTHS / np.pi) - 0.5
        low_bin = min(int(position), BINS - 1)
        low_azimuth = int(np.floor(azimuth))
        upright = flat <= ROUNDING * offsets[k, 3]  # straight above or below there is no azimuth
        for a in range(AZIMUTHS if upright else 2):
            fraction = 1.0 / AZIMUTHS if upright else 1.0 - abs(azimuth - low_azimuth - a)
            sector = 4 * ((low_azimuth + a) % AZIMUTHS)
            for r in range(2):
                for e in range(2):
                    mass = fraction * max(0.0, 1.0 - abs(radial - r)) * max(0.0, 1.0 - abs(elevation - e))
                    mass *= weights[indices[k]]
                    index = (sector + 2 * r + e) * (BINS + 1) + low_bin
                    histogram[index] += mass * (1.0 + low_bin - position)
                    histogram[index + 1] += mass * (position - low_bin)


@compiled(nogil=True)
def _along(rows: FloatArray, k: int, axis: Vector) -> float:
    return rows[k, 0] * axis[0] + rows[k, 1] * axis[1] + rows[k, 2] * axis[2]


@compiled(nogil=True)
def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled(nogil=True)
def _cross(a: Vector, b: Vector) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@compiled(nogil=True)
def _across(a: Vector, unit: Vector) -> Vector:
    """Component of a orthogonal to a unit vector."""
    along = _dot(a, unit)
    return a[0] - along * unit[0], a[1] - along * unit[1], a[2] - along * unit[2]


@compiled(nogil=True)
def _unit(a: Vector, otherwise: Vector) -> Vector:
    length = np.sqrt(_dot(a, a))
    if length > ROUNDING:
        return a[0] / length, a[1] / length, a[2] / length
    return otherwise
