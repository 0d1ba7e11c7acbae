"""Components of figures: rows of matched shapes, checkerboard, subdivision, colour bar and captions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.datasets.dataset import spread_over
from acnn.datasets.parts import KINDS
from acnn.evaluation.distances import ReferenceDistances
from acnn.evaluation.results import Matched
from acnn.methods.run import Run
from acnn.shapes.mesh import Mesh, Shape
from acnn.surface.surface import surface_of
from acnn.types import FloatArray, IntArray
from acnn.viewer.colors import position_colors, value_colors
from acnn.viewer.images import grid, render, save_png

SOFT = 0.15
"""Fraction of a square over which one colour blends into the next."""

PALE = 0.93
"""Grey level of regions that a partial shape lacks."""

HOTTEST = 0.1
"""Error, divided by sqrt(area), at the upper end of the colour map."""

_INK = (40, 40, 44)
_AXES = {"y": (0, 1), "z": (0, 2), "x": (1, 0)}
"""Horizontal and vertical axes of the pattern, by the up axis."""


def draw_matches(out: Path, run: Run, matched: dict[str, list[Matched]], count: int = 5) -> list[Path]:
    """Render the reference and some matched shapes, one image per kind of shape.

    Rows: colours transferred from the reference by the refined map; errors of the network output; errors after
    refinement. For partial shapes also the reference with the matched region, the rest pale.

    Parameters
    ----------
    out : Path
        Output folder; files are `matches_KIND.png`.
    run : Run
        Run with the reference.
    matched : dict[str, list[Matched]]
        Matched shapes by kind.
    count : int
        Number of shapes to render, evenly spread over the list.

    Returns
    -------
    list[Path]
        The files.
    """
    colors = position_colors(run.reference.vertices)
    distances = ReferenceDistances(surface_of(run.reference))
    files = []
    for kind, shapes in matched.items():
        some = spread_over(shapes, count)
        rows = [[render(run.reference, colors=colors)], [], []]
        labels = [["reference"], [""], [""]]
        blank = np.full_like(rows[0][0], 255)
        rows[1].append(blank)
        rows[2].append(blank)
        if kind in KINDS:
            rows.append([blank])
            labels.append([""])
        for one in some:
            final = one.refined if one.refined is not None else one.soft_map.query_to_reference
            shape = one.example.shape
            rows[0].append(render(shape, colors=colors[final]))
            labels[0].append(one.name.replace("_remeshed", ""))
            for row, point_map in ((1, one.soft_map.query_to_reference), (2, final)):
                known = one.example.labels >= 0
                error = np.zeros(len(point_map))
                error[known] = distances.between(point_map[known], one.example.labels[known])
                rows[row].append(render(shape, values=error, cmap="heat", vmin=0.0, vmax=HOTTEST))
                labels[row].append(f"{'network' if row == 1 else 'refined'}: {100 * error[known].mean():.2f}")
            if kind in KINDS:
                covered = _covered(final, run.reference)
                rows[3].append(render(run.reference, colors=np.where(covered[:, None], colors, PALE)))
                labels[3].append(f"matched region: {covered.mean():.0%} of the vertices")
        path = out / f"matches_{kind}.png"
        save_png(grid(rows, labels), path)
        files.append(path)
    return files


def chequered(
    points: FloatArray, low: ArrayLike, high: ArrayLike, *, up: str = "y", across: int = 26
) -> NDArray[np.float64]:
    """Colours of a checkerboard projected from the front, in hues that differ all over the shape.

    Parameters
    ----------
    points : (n, 3) array
        Points on or near the reference.
    low, high : (3,) array
        Bounding box of the reference, so that a colour does not depend on the other points.
    up : str
        Up axis: `x`, `y` or `z`.
    across : int
        Number of squares along the height of the box.

    Returns
    -------
    (n, 3) array
        sRGB in 0..1.
    """
    corner, size = np.asarray(low, np.float64), np.asarray(high, np.float64) - np.asarray(low, np.float64)
    sideways, height = _AXES[up]
    edge = size[height] / across
    middle = corner[sideways] + size[sideways] / 2
    # Triangle waves with one sign change per square; their product is positive in every second one. Edges are smoothed.
    column, row = (
        1 - 4 * np.abs(np.mod(c / (2 * edge) - 0.25, 1.0) - 0.5)
        for c in (points[:, sideways] - middle, points[:, height] - corner[height])
    )
    inside = np.minimum(np.abs(column), np.abs(row)) * np.sign(column * row)
    dark = np.clip(0.5 - inside / SOFT, 0.0, 1.0)[:, None]
    order = [sideways, height, 3 - sideways - height]
    # the corners of the box are appended, so that the colours are those of the full reference
    framed = np.concatenate([np.clip(points, low, high), [low, high]])[:, order]
    colors = position_colors(framed)[:-2]
    return dark * 0.66 * colors + (1 - dark) * (0.25 * colors + 0.75)


def refined_mesh(mesh: Mesh, values: FloatArray, times: int = 3) -> tuple[Mesh, FloatArray]:
    """Split every triangle into 4, repeatedly, and interpolate values to the new vertices.

    Parameters
    ----------
    mesh : Mesh
        With n vertices.
    values : (n, c) array
        Values at the vertices.
    times : int
        Number of subdivisions.

    Returns
    -------
    tuple[Mesh, (n', c) array]
        The finer mesh and the values at its vertices.
    """
    vertices, faces = np.asarray(mesh.vertices, np.float64), np.asarray(mesh.faces)
    table = np.asarray(values, np.float64)
    for _ in range(times):
        ends, faces = _split(faces, len(vertices))
        vertices = np.concatenate([vertices, vertices[ends].mean(axis=1)])
        table = np.concatenate([table, table[ends].mean(axis=1)])
    return Mesh(vertices, faces.astype(np.int32)), table


def color_bar(
    cmap: str, vmin: float, vmax: float, label: str, *, height: int = 500, width: int = 22, text: int = 17
) -> NDArray[np.uint8]:
    """Render a vertical colour bar with five tick labels and a title beside it.

    Parameters
    ----------
    cmap : str
        Colour map of `value_colors`.
    vmin, vmax : float
        Its range, from bottom to top.
    label : str
        Title.
    height, width : int
        Height of the image and width of the bar, in pixels.
    text : int
        Height of the letters in pixels.

    Returns
    -------
    (height, w, 3) array
        uint8.
    """
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(text)
    inner = height - 2 * text
    shades = value_colors(np.linspace(vmax, vmin, inner), cmap, vmin, vmax)
    strip = np.repeat(np.rint(255 * shades).astype(np.uint8)[:, None], width, axis=1)
    ticks = [f"{value:.4g}" for value in np.linspace(vmax, vmin, 5)]
    space = max(int(font.getlength(tick)) for tick in ticks)
    sheet = Image.new("RGB", (width + space + 30 + 2 * text, height), (255, 255, 255))
    sheet.paste(Image.fromarray(strip), (8, text))
    pen = ImageDraw.Draw(sheet)
    pen.rectangle((8, text, 8 + width - 1, text + inner - 1), outline=(120, 120, 124))
    for i, tick in enumerate(ticks):
        y = text + i * (inner - 1) / 4
        pen.line((8 + width, y, 12 + width, y), fill=_INK)
        pen.text((16 + width, y), tick, _INK, font=font, anchor="lm")
    along = Image.fromarray(caption(label, height, text=text, upright=True))
    sheet.paste(along, (width + space + 22, 0))
    return np.asarray(sheet)


def caption(line: str, length: int, *, text: int = 22, upright: bool = False) -> NDArray[np.uint8]:
    """Render a line of text as a (1.6 text, length, 3) uint8 image, or rotated upwards as (length, 1.6 text, 3)."""
    from PIL import Image, ImageDraw, ImageFont

    sheet = Image.new("RGB", (length, round(1.6 * text)), (255, 255, 255))
    font = ImageFont.load_default(text)
    ImageDraw.Draw(sheet).text((length / 2, 0.8 * text), line, _INK, font=font, anchor="mm")
    return np.asarray(sheet.rotate(90, expand=True) if upright else sheet)


def centred(image: NDArray[np.uint8], height: int) -> NDArray[np.uint8]:
    """The image, vertically centred on a white strip of at least this height."""
    strip = np.full((max(height, image.shape[0]), *image.shape[1:]), 255, np.uint8)
    top = (len(strip) - len(image)) // 2
    strip[top : top + len(image)] = image
    return strip


def error_row(
    label: str,
    cells: Iterable[tuple[str, Shape, FloatArray | None]],
    largest: float,
    *,
    size: tuple[int, int],
    up: str,
) -> tuple[list[NDArray[np.uint8] | None], list[str]]:
    """One row of a figure of errors: a caption, then every shape coloured by its errors.

    Parameters
    ----------
    label : str
        The caption.
    cells : iterable of (str, Shape, (n,) array or None)
        Text below each shape, the shape, and its errors; None leaves the shape out.
    largest : float
        Error at the upper end of the colour map.
    size : tuple[int, int]
        (width, height) of one shape in pixels.
    up : str
        Up axis of the shapes.

    Returns
    -------
    images, texts : list
        For `grid`.
    """
    images: list[NDArray[np.uint8] | None] = [caption(label, size[1], upright=True)]
    texts = [""]
    for text, shape, errors in cells:
        drawn = None
        if errors is not None:
            drawn = render(shape, values=errors, vmin=0.0, vmax=largest, size=size, up=up)
        images.append(drawn)
        texts.append(text)
    return images, texts


def beside_color_bar(
    sheet: NDArray[np.uint8], colors: str, low: float, high: float, title: str, *, margin: int = 60, most: int = 640
) -> NDArray[np.uint8]:
    """A figure with a colour bar to its right, of its height less the margin, and at most `most` pixels."""
    bar = color_bar(colors, low, high, title, height=min(sheet.shape[0] - margin, most))
    return grid([[sheet, centred(bar, sheet.shape[0])]], gap=0)


def shown_name(name: str) -> str:
    """The name of a shape as captions show it."""
    return name.replace("_remeshed", " (remeshed)").replace("_", " ")


def _split(faces: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """(edges, 2) ends of edges, whose midpoints become vertices `count`, `count` + 1, ..., and the (4 m, 3) faces."""
    sides = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    ends, edge = np.unique(sides, axis=0, return_inverse=True)
    ab, bc, ca = count + edge.reshape(3, -1)
    a, b, c = faces.T
    corners = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return ends, np.concatenate([np.stack(face, axis=1) for face in corners])


def _covered(matched: IntArray, reference: Mesh) -> NDArray[np.bool_]:
    """(m,) whether a reference vertex, or both other corners of one of its faces, are matched."""
    hit = np.zeros(len(reference.vertices), dtype=bool)
    hit[matched] = True
    corners = hit[reference.faces]
    beside = np.zeros(len(hit), dtype=int)
    for k in range(3):
        np.add.at(beside, reference.faces[:, k], corners[:, (k + 1) % 3] & corners[:, (k + 2) % 3])
    return hit | (beside > 0)
