"""Learnt filters of the first intrinsic convolution: which are strong, and pictures of them in polar coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.shapes.shape import FloatArray
from acnn.viewer.colors import value_colors

if TYPE_CHECKING:
    from acnn.network import AcnnModel

_SMOOTH = 3
"""Filter pictures are drawn this many times larger and averaged, for a clean rim."""


def first_filters(model: AcnnModel) -> NDArray[np.float32]:
    """(angles, scales, in, out) weights a(theta, t) of the first IC layer. Raises InputError where there is none."""
    from acnn.network import IntrinsicConv

    layer = next((part for part in model.modules() if isinstance(part, IntrinsicConv)), None)
    if layer is None:
        raise InputError(f"The network {model.architecture} has no intrinsic convolution, so no filters to show.")
    weights: NDArray[np.float32] = layer.weight.detach().cpu().numpy()
    return weights


def strongest_filters(filters: NDArray[np.float32], count: int) -> list[tuple[int, int]]:
    """The (in, out) channels of the filters of largest norm, at most one for each output channel.

    - filters: (angles, scales, in, out)
    """
    norms = np.linalg.norm(filters.reshape(-1, *filters.shape[2:]), axis=0)  # (in, out)
    best = norms.argmax(axis=0)
    order = np.argsort(-norms.max(axis=0), kind="stable")[: max(1, count)]
    return [(int(best[out]), int(out)) for out in order]


def strongest_input(filters: NDArray[np.float32], out: int) -> int:
    """The input channel of which an output channel's filter is the largest."""
    return int(np.linalg.norm(filters[..., out].reshape(-1, filters.shape[2]), axis=0).argmax())


def polar_picture(
    weights: FloatArray, size: int = 160, background: tuple[float, float, float] = (1.0, 1.0, 1.0)
) -> NDArray[np.uint8]:
    """One filter as a disc: direction is the kernel's angle, distance from the middle its scale.

    A kernel is the same along theta and theta + pi, so a half turn shows all, and the disc repeats it. Red is positive,
    blue negative, white zero; the ends of the scale are the filter's own largest size.

    - weights: (angles, scales) a(theta, t), the scales ascending
    - size: pixels across

    Returns (size, size, 3) uint8; theta = 0 points right and grows counter-clockwise.
    """
    table = np.asarray(weights, np.float64)
    angles, scales = table.shape
    fine = size * _SMOOTH
    place = (np.arange(fine) + 0.5) / fine * 2 - 1
    x, y = place[None, :], -place[:, None]
    radius = np.hypot(x, y)
    turn = np.mod(np.arctan2(y, x), np.pi) / np.pi * angles
    ring = np.clip(radius * scales - 0.5, 0, scales - 1)
    low, inner = np.floor(turn).astype(int), np.minimum(ring.astype(int), max(scales - 2, 0))
    outer = np.minimum(inner + 1, scales - 1)
    along, across = turn - low, ring - inner
    first, second = low % angles, (low + 1) % angles
    values = (1 - along) * ((1 - across) * table[first, inner] + across * table[first, outer])
    values += along * ((1 - across) * table[second, inner] + across * table[second, outer])
    # Near the middle, angles mean nothing: the innermost ring fades into its mean.
    fade = np.clip(radius * scales / 0.5, 0, 1)
    values = np.where(fade < 1, fade * values + (1 - fade) * table[:, 0].mean(), values)
    most = float(np.abs(table).max()) or 1.0
    colors = value_colors(values, "diverging", -most, most)
    colors[radius > 0.985] = 0.35
    colors[radius > 1.0] = background
    small = colors.reshape(size, _SMOOTH, size, _SMOOTH, 3).mean(axis=(1, 3))
    return np.rint(255 * small).astype(np.uint8)
