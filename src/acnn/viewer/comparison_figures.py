"""Figures that show several methods on the same shapes: pointwise errors, and correspondence of partial shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.mesh import Mesh, Shape
from acnn.types import FloatArray, IntArray
from acnn.viewer.colors import position_colors
from acnn.viewer.figure_parts import beside_color_bar, caption, error_row, shown_name
from acnn.viewer.images import grid, render

SATURATED = 10.0
"""Error in percent of the geodesic diameter at the upper end of the colour map, as in the paper's figures."""

Image = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class ComparedMethod:
    """The maps of one method.

    Attributes
    ----------
    label : str
        Its name.
    maps : sequence of ((n,) array or None)
        Matched reference vertices of each shape; None for a shape that the method could not match.
    errors : sequence of ((n,) array or None)
        Geodesic errors in percent of the geodesic diameter of the reference; NaN where the ground truth is unknown.
    """

    label: str
    maps: Sequence[IntArray | None]
    errors: Sequence[FloatArray | None]


@dataclass(frozen=True, eq=False)
class ComparisonData:
    """Shapes and what several methods made of them.

    Attributes
    ----------
    reference : Mesh
        The mesh that all shapes were matched to.
    names : sequence of str
        Names of the shapes.
    shapes : sequence of Shape
        The shapes.
    methods : sequence of ComparedMethod
        One a row, in the order shown.
    """

    reference: Mesh
    names: Sequence[str]
    shapes: Sequence[Shape]
    methods: Sequence[ComparedMethod]


def draw_comparison(data: ComparisonData, *, size: tuple[int, int] = (300, 440), up: str = "y") -> Image:
    """Render the geodesic error of every point: one row per method, one column per shape, and a colour bar.

    Errors are in percent of the geodesic diameter and saturated at 10 %. Below each shape is its mean error; points
    without ground truth are grey, and shapes that a method could not match are left out.

    Parameters
    ----------
    data : ComparisonData
        The shapes and the maps.
    size : tuple[int, int]
        (width, height) of one shape in pixels.
    up : str
        Up axis of the shapes.

    Returns
    -------
    Image
        (height, width, 3) uint8.
    """
    rows, labels = _error_rows(data, size, up)
    sheet = grid(rows, labels)
    return _with_bar(sheet)


def draw_partial(data: ComparisonData, *, size: tuple[int, int] = (300, 440), up: str = "y") -> Image:
    """Render partial shapes in the colours of their matches on the full one, and the errors of every method below.

    The first row shows the full shape on the left and the correspondence of the first method: corresponding points have
    the same colour. The other rows are those of `draw_comparison`.

    Parameters
    ----------
    data : ComparisonData
        Partial shapes and their maps to the full shape.
    size : tuple[int, int]
        (width, height) of one shape in pixels.
    up : str
        Up axis of the shapes.

    Returns
    -------
    Image
        (height, width, 3) uint8.
    """
    colors = position_colors(data.reference.vertices[:, _UPRIGHT[up]])
    first = data.methods[0]
    images: list[Image | None] = [
        caption(f"correspondence, {first.label}", size[1], upright=True),
        render(data.reference, colors=colors, size=size, up=up),
    ]
    for shape, point_map in zip(data.shapes, first.maps, strict=True):
        images.append(None if point_map is None else render(shape, colors=colors[point_map], size=size, up=up))
    below, texts = _error_rows(data, size, up)
    rows = [images, *([head, None, *cells] for head, *cells in below)]
    labels = [["", "full shape", *map(shown_name, data.names)], *(["", *line] for line in texts)]
    return _with_bar(grid(rows, labels))


_UPRIGHT = {"x": [1, 0, 2], "y": [0, 1, 2], "z": [0, 2, 1]}
"""Order of the axes in which the up axis comes second, as `position_colors` takes it."""


def _error_rows(
    data: ComparisonData, size: tuple[int, int], up: str
) -> tuple[list[list[Image | None]], list[list[str]]]:
    rows = []
    for method in data.methods:
        cells = (
            (f"{name}: {'not matched' if errors is None else f'{np.nanmean(errors):.1f} %'}", shape, errors)
            for name, shape, errors in zip(map(shown_name, data.names), data.shapes, method.errors, strict=True)
        )
        rows.append(error_row(method.label, cells, SATURATED, size=size, up=up))
    return [images for images, _ in rows], [texts for _, texts in rows]


def _with_bar(sheet: Image) -> Image:
    return beside_color_bar(sheet, "heat", 0.0, SATURATED, "geodesic error, % of the geodesic diameter")
