"""A smooth colouring of a shape by where its points are, and colours as amounts of light."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def position_colors(vertices: ArrayLike) -> NDArray[np.float64]:
    """Colour a reference shape smoothly by where its points are, so that equal colours show equal points elsewhere.

    Height runs through the hues, sideways and depth shift hue and lightness, so that left and right, front and back
    are told apart. Coordinates are taken relative to the bounding box: y up, as the built-in humans.

    - vertices: (n, 3)

    Returns (n, 3) in 0..1.
    """
    points = np.asarray(vertices, np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    side, height, front = ((points - low) / size).T
    # a turn through blue, violet, red, orange, yellow, green: the hues differ from head to foot
    hue = 2 * np.pi * (0.78 * height + 0.30 * (side - 0.5)) + 3.9
    lightness = 0.70 + 0.10 * np.cos(3 * np.pi * side) * 0.6 + 0.16 * (front - 0.5)
    chroma = 0.135 + 0.03 * np.sin(2 * np.pi * height)
    return _oklab_to_srgb(lightness, chroma * np.cos(hue), chroma * np.sin(hue))


def position_bytes(vertices: ArrayLike) -> NDArray[np.uint8]:
    """(n, 3) `position_colors` in 0..255, as files and pages hold them."""
    return np.rint(255 * position_colors(vertices)).astype(np.uint8)


def to_linear(colors: NDArray[np.floating]) -> NDArray[np.float32]:
    """sRGB in 0..1 as amounts of light, so that averages and shading are true."""
    c = np.clip(colors, 0.0, 1.0)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


def to_srgb(light: NDArray[np.floating]) -> NDArray[np.float32]:
    """Amounts of light in 0..1 as sRGB: the inverse of `to_linear`."""
    c = np.clip(light, 0.0, 1.0)
    return np.where(c <= 0.0031308, 12.92 * c, 1.055 * np.maximum(c, 1e-9) ** (1 / 2.4) - 0.055).astype(np.float32)


def _oklab_to_srgb(
    lightness: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    # Oklab (Ottosson 2020): equal steps look equally large, so no band stands out
    l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = np.stack(
        [
            4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
            -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
            -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
        ],
        axis=-1,
    )
    return to_srgb(linear).astype(np.float64)
