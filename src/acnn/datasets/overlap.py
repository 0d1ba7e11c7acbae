"""How much a closed surface runs through itself, compiled. Import only where used: it brings in numba."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled


def overlap_share(vertices: NDArray[np.float64], faces: NDArray[np.int32], offset: float = 0.0005) -> float:
    """Share of the vertices that lie inside another part of the body.

    A point just outside the surface (moved along the normal by `offset`, in the unit of the vertices) has winding
    number 0, unless another part covers it: then 1. w(x) = sum of the faces' solid angles / 4 pi.
    """
    points = np.ascontiguousarray(vertices, np.float64)
    triangles = np.ascontiguousarray(faces, np.int32)
    corners = points[triangles]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(points)
    for k in range(3):
        np.add.at(normals, triangles[:, k], cross)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    return float(np.mean(_winding(points + offset * normals, points, triangles) > 0.5))


@compiled()
def _winding(queries, points, faces):  # type: ignore[no-untyped-def]
    out = np.zeros(len(queries))
    for i in range(len(queries)):
        total = 0.0
        for f in range(len(faces)):
            ax = points[faces[f, 0], 0] - queries[i, 0]
            ay = points[faces[f, 0], 1] - queries[i, 1]
            az = points[faces[f, 0], 2] - queries[i, 2]
            bx = points[faces[f, 1], 0] - queries[i, 0]
            by = points[faces[f, 1], 1] - queries[i, 1]
            bz = points[faces[f, 1], 2] - queries[i, 2]
            cx = points[faces[f, 2], 0] - queries[i, 0]
            cy = points[faces[f, 2], 1] - queries[i, 1]
            cz = points[faces[f, 2], 2] - queries[i, 2]
            a = math.sqrt(ax * ax + ay * ay + az * az)
            b = math.sqrt(bx * bx + by * by + bz * bz)
            c = math.sqrt(cx * cx + cy * cy + cz * cz)
            volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
            below = a * b * c + (ax * bx + ay * by + az * bz) * c
            below += (bx * cx + by * cy + bz * cz) * a + (cx * ax + cy * ay + cz * az) * b
            total += math.atan2(volume, below)
        out[i] = total / (2.0 * math.pi)
    return out
