"""Arrays as short text for a page: few bits a number, little-endian, base64."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.shape import FloatArray

NONE16 = 65535
"""Stands for 'unknown' among 16-bit numbers; among 32-bit ones it is 2^32 - 1."""


def packed(values: NDArray[Any]) -> dict[str, str]:
    """Whole numbers of 8, 16 or 32 bits as `{type, data}`."""
    array = np.ascontiguousarray(values)
    kinds = {"u1": "u1", "u2": "<u2", "u4": "<u4"}
    name = f"{array.dtype.kind}{array.dtype.itemsize}"
    return {"type": name, "data": base64.b64encode(array.astype(kinds[name]).tobytes()).decode("ascii")}


def packed_indices(values: NDArray[Any], count: int) -> dict[str, str]:
    """Numbers in 0..count-1, -1 for unknown, in the fewest bits."""
    small = count < NONE16
    kind, none = (np.uint16, NONE16) if small else (np.uint32, 2**32 - 1)
    array = np.asarray(values).ravel()
    return packed(np.where(array < 0, none, array).astype(kind))


def packed_values(values: FloatArray, largest: float | None = None) -> dict[str, Any]:
    """Numbers from 0 to `largest` (None: their own largest) in 16 bits, with `scale` to multiply by; NaN is unknown."""
    array = np.asarray(values, float)
    known = np.isfinite(array)
    top = largest if largest is not None else float(array[known].max(initial=0.0))
    scale = max(top, 1e-12) / (NONE16 - 1)
    steps = np.rint(np.clip(np.where(known, array, 0.0) / scale, 0, NONE16 - 1))
    return packed(np.where(known, steps, NONE16).astype(np.uint16)) | {"scale": scale}


def packed_places(vertices: FloatArray) -> dict[str, Any]:
    """Points in 16 bits a coordinate: `{vertices, low, step}`, a coordinate is low + step * number."""
    points = np.asarray(vertices, float)
    low = points.min(axis=0)
    step = max(float(np.ptp(points, axis=0).max()), 1e-300) / 65535
    numbers = np.rint((points - low) / step).astype(np.uint16)
    return {"vertices": packed(numbers), "low": [float(x) for x in low], "step": step}
