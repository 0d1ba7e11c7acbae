"""Colours: colour maps for values, a smooth colouring by position, conversion between sRGB and linear RGB."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.errors import InputError

__all__ = ["class_colors", "position_colors", "to_linear", "to_srgb", "value_colors"]
# equally spaced stops in sRGB, chosen so that lightness changes evenly
_SCALES = {
    "heat": ("#f4f1ea", "#fbd98a", "#f59b4c", "#dd4f39", "#961a40", "#450a3c"),
    "depth": ("#fdfbe6", "#bfe3c3", "#63bcb8", "#2f86ab", "#2c4f91", "#231b5c"),
    "diverging": ("#2b4c9b", "#6f9fd0", "#c4dbea", "#f5f2ec", "#f4c7a8", "#d9755a", "#9c1f3f"),
    "grey": ("#f2f2f2", "#202020"),
}


def value_colors(
    values: ArrayLike, cmap: str = "heat", vmin: float | None = None, vmax: float | None = None
) -> NDArray[np.float64]:
    """Map numbers to colours.

    Parameters
    ----------
    values : array_like
        Of any shape; values that are not finite become light grey.
    cmap : str
        "heat", "depth", "diverging", "grey", or a matplotlib colour map.
    vmin, vmax : float or None
        Range of the colour map; None takes the smallest and largest finite value.

    Returns
    -------
    (*values.shape, 3) array
        sRGB in 0..1.

    Raises
    ------
    InputError
        If there is no colour map of that name.
    """
    numbers = np.asarray(values, np.float64)
    known = np.isfinite(numbers)
    low = (float(numbers[known].min()) if known.any() else 0.0) if vmin is None else float(vmin)
    high = (float(numbers[known].max()) if known.any() else 1.0) if vmax is None else float(vmax)
    position = np.clip((np.where(known, numbers, low) - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    table = _table(cmap)
    stops = np.linspace(0.0, 1.0, len(table))
    colors = np.stack([np.interp(position, stops, table[:, c]) for c in range(3)], axis=-1)
    colors[~known] = 0.8
    return colors


def position_colors(vertices: ArrayLike) -> NDArray[np.float64]:
    """Colour a reference shape smoothly by position, so that equal colours show corresponding points.

    Height determines the hue; the other axes shift hue and lightness, so that left and right, front and back differ.
    Coordinates are relative to the bounding box, with y up as in the built-in humans.

    Parameters
    ----------
    vertices : (n, 3) array

    Returns
    -------
    (n, 3) array
        sRGB in 0..1.
    """
    points = np.asarray(vertices, np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    side, height, front = ((points - low) / size).T
    # from blue through violet, red, orange and yellow to green: all hues from head to foot differ
    hue = 2 * np.pi * (0.78 * height + 0.30 * (side - 0.5)) + 3.9
    lightness = 0.70 + 0.10 * np.cos(3 * np.pi * side) * 0.6 + 0.16 * (front - 0.5)
    chroma = 0.135 + 0.03 * np.sin(2 * np.pi * height)
    return _oklab_to_srgb(lightness, chroma * np.cos(hue), chroma * np.sin(hue))


def class_colors(count: int) -> NDArray[np.float64]:
    """Colours of classes: successive ones differ clearly in hue, and every third is lighter or darker.

    Parameters
    ----------
    count : int
        Number of classes.

    Returns
    -------
    (count, 3) array
        sRGB in 0..1.
    """
    number = np.arange(count)
    hue = 2 * np.pi * (0.08 + number * (np.sqrt(5) - 1) / 2)  # multiples of the golden ratio never come close
    lightness = np.array([0.72, 0.84, 0.60])[number % 3]
    return _oklab_to_srgb(lightness, 0.13 * np.cos(hue), 0.13 * np.sin(hue))


def position_bytes(vertices: ArrayLike) -> NDArray[np.uint8]:
    """(n, 3) `position_colors` as uint8, as stored in files and pages."""
    return np.rint(255 * position_colors(vertices)).astype(np.uint8)


def to_linear(colors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Convert sRGB in 0..1 to linear RGB, in which averaging and shading are correct."""
    c = np.clip(colors, 0.0, 1.0)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


def to_srgb(light: NDArray[np.floating]) -> NDArray[np.float32]:
    """Convert linear RGB in 0..1 to sRGB: the inverse of `to_linear`."""
    c = np.clip(light, 0.0, 1.0)
    return np.where(c <= 0.0031308, 12.92 * c, 1.055 * np.maximum(c, 1e-9) ** (1 / 2.4) - 0.055).astype(np.float32)


def _table(cmap: str) -> NDArray[np.float64]:
    if cmap in _SCALES:
        return np.array([[int(h[i : i + 2], 16) / 255 for i in (1, 3, 5)] for h in _SCALES[cmap]])
    try:
        from matplotlib import colormaps

        return np.asarray(colormaps[cmap](np.linspace(0.0, 1.0, 256)))[:, :3]
    except (ImportError, KeyError) as problem:
        own = ", ".join(_SCALES)
        raise InputError(f"There is no colour map {cmap!r}. Use one of {own}, or a matplotlib name.") from problem


def _oklab_to_srgb(
    lightness: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    # Oklab (Ottosson 2020) is perceptually uniform, so no band stands out
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
