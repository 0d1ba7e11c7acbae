"""Colours for pictures: scales for numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.errors import InputError
from acnn.shapes.coloring import position_colors, to_linear, to_srgb

__all__ = ["position_colors", "to_linear", "to_srgb", "value_colors"]

# stops of equal spacing, sRGB; chosen so that lightness changes evenly
_SCALES = {
    "heat": ("#f4f1ea", "#fbd98a", "#f59b4c", "#dd4f39", "#961a40", "#450a3c"),
    "depth": ("#fdfbe6", "#bfe3c3", "#63bcb8", "#2f86ab", "#2c4f91", "#231b5c"),
    "diverging": ("#2b4c9b", "#6f9fd0", "#c4dbea", "#f5f2ec", "#f4c7a8", "#d9755a", "#9c1f3f"),
    "grey": ("#f2f2f2", "#202020"),
}


def value_colors(
    values: ArrayLike, cmap: str = "heat", vmin: float | None = None, vmax: float | None = None
) -> NDArray[np.float64]:
    """Colour numbers along a scale.

    - values: any shape; what is not finite becomes a light grey
    - cmap: "heat", "depth", "diverging", "grey", or a name matplotlib knows
    - vmin, vmax: ends of the scale; None takes the smallest and largest finite value

    Returns (*values.shape, 3) in 0..1. Raises `InputError` where no scale has that name.
    """
    numbers = np.asarray(values, np.float64)
    known = np.isfinite(numbers)
    low = (float(numbers[known].min()) if known.any() else 0.0) if vmin is None else float(vmin)
    high = (float(numbers[known].max()) if known.any() else 1.0) if vmax is None else float(vmax)
    position = np.clip((np.where(known, numbers, low) - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    table = _table(cmap)
    places = np.linspace(0.0, 1.0, len(table))
    colors = np.stack([np.interp(position, places, table[:, c]) for c in range(3)], axis=-1)
    colors[~known] = 0.8
    return colors


def _table(cmap: str) -> NDArray[np.float64]:
    if cmap in _SCALES:
        return np.array([[int(h[i : i + 2], 16) / 255 for i in (1, 3, 5)] for h in _SCALES[cmap]])
    try:
        from matplotlib import colormaps

        return np.asarray(colormaps[cmap](np.linspace(0.0, 1.0, 256)))[:, :3]
    except (ImportError, KeyError) as problem:
        own = ", ".join(_SCALES)
        raise InputError(
            f"There is no colour scale named {cmap!r}. Use one of {own}, or a matplotlib name."
        ) from problem
