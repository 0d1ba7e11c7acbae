"""Parts of figures: checkerboard, subdivided triangles, colour bar, captions, and rows of matched shapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.datasets.dataset import spread_over
from acnn.datasets.parts import KINDS
from acnn.evaluation.distances import ReferenceDistances
from acnn.evaluation.results import Matched
from acnn.methods.run import Run
from acnn.shapes.mesh import Mesh
from acnn.surface.surface import surface_of
from acnn.types import FloatArray, IntArray
from acnn.viewer.colors import position_colors, value_colors
from acnn.viewer.images import grid, render, save_png

SOFT = 0.15
"""How soft the edges of squares are: the share of a square over which one colour turns into the next."""

_INK = (40, 40, 44)
_AXES = {"y": (0, 1), "z": (0, 2), "x": (1, 0)}
"""For each axis that may point up, the axes (sideways, up) of the pattern."""


def chequered(
    points: FloatArray, low: ArrayLike, high: ArrayLike, *, up: str = "y", across: int = 26
) -> NDArray[np.float64]:
    """(n, 3) colours of a chequered pattern: squares seen from the front, in colours that differ all over the shape.

    Parameters
    ----------
    points : (n, 3) array
        On the reference or near it.
    low, high : (3,) array
        The reference's box, so that colours do not depend on which points are asked for.
    across : int
        Squares along the box's height.
    """
    corner, size = np.asarray(low, np.float64), np.asarray(high, np.float64) - np.asarray(low, np.float64)
    sideways, height = _AXES[up]
    edge = size[height] / across
    middle = corner[sideways] + size[sideways] / 2
    # Waves that rise and fall by 1 a square; their product is positive in every second one. Edges are a little soft.
    column, row = (
        1 - 4 * np.abs(np.mod(c / (2 * edge) - 0.25, 1.0) - 0.5)
        for c in (points[:, sideways] - middle, points[:, height] - corner[height])
    )
    inside = np.minimum(np.abs(column), np.abs(row)) * np.sign(column * row)
    dark = np.clip(0.5 - inside / SOFT, 0.0, 1.0)[:, None]
    order = [sideways, height, 3 - sideways - height]
    # the box's corners come along, so that the colours are those of the whole reference
    framed = np.concatenate([np.clip(points, low, high), [low, high]])[:, order]
    colors = position_colors(framed)[:-2]
    return dark * 0.66 * colors + (1 - dark) * (0.25 * colors + 0.75)


def refined_mesh(mesh: Mesh, values: FloatArray, times: int = 3) -> tuple[Mesh, FloatArray]:
    """A mesh with every triangle split into 4, some times over, and values interpolated to the new vertices.

    Parameters
    ----------
    values : (n, c) array
        At the vertices.

    Returns
    -------
    tuple[Mesh, array]
        The finer mesh and (n', c) values.
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
    """(height, w, 3) uint8 an upright colour bar with five numbers and a text beside it."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(text)
    inner = height - 2 * text
    shades = value_colors(np.linspace(vmax, vmin, inner), cmap, vmin, vmax)
    strip = np.repeat(np.rint(255 * shades).astype(np.uint8)[:, None], width, axis=1)
    words = [f"{value:.4g}" for value in np.linspace(vmax, vmin, 5)]
    room = max(int(font.getlength(word)) for word in words)
    sheet = Image.new("RGB", (width + room + 30 + 2 * text, height), (255, 255, 255))
    sheet.paste(Image.fromarray(strip), (8, text))
    pen = ImageDraw.Draw(sheet)
    pen.rectangle((8, text, 8 + width - 1, text + inner - 1), outline=(120, 120, 124))
    for i, word in enumerate(words):
        y = text + i * (inner - 1) / 4
        pen.line((8 + width, y, 12 + width, y), fill=_INK)
        pen.text((16 + width, y), word, _INK, font=font, anchor="lm")
    along = Image.fromarray(caption(label, height, text=text, upright=True))
    sheet.paste(along, (width + room + 22, 0))
    return np.asarray(sheet)


def caption(words: str, length: int, *, text: int = 22, upright: bool = False) -> NDArray[np.uint8]:
    """A line of text as a picture (1.6 text, length, 3), or turned to run upwards (length, 1.6 text, 3)."""
    from PIL import Image, ImageDraw, ImageFont

    sheet = Image.new("RGB", (length, round(1.6 * text)), (255, 255, 255))
    font = ImageFont.load_default(text)
    ImageDraw.Draw(sheet).text((length / 2, 0.8 * text), words, _INK, font=font, anchor="mm")
    return np.asarray(sheet.rotate(90, expand=True) if upright else sheet)


def _split(faces: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """(edges, 2) ends of all edges, whose middles become vertices `count`, `count` + 1, ..., and the (4 m, 3) faces."""
    sides = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    ends, place = np.unique(sides, axis=0, return_inverse=True)
    ab, bc, ca = count + place.reshape(3, -1)
    a, b, c = faces.T
    corners = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return ends, np.concatenate([np.stack(face, axis=1) for face in corners])


PALE = 0.93
"""Grey of what a part lacks."""

HOTTEST = 0.1
"""Error, over sqrt(area), that is drawn in the hottest colour."""


def draw_matches(out: Path, run: Run, matched: dict[str, list[Matched]], count: int = 5) -> list[Path]:
    """Draw the reference and some matched shapes, for each kind of shape one picture.

    Rows: colours carried over from the reference by the refined map; errors of the network's map; errors after
    refinement. Of parts, also the reference with the region that was found, the rest pale.

    Parameters
    ----------
    out : Path
        Folder; files are `matches_KIND.png`.
    run : Run
        Whose reference it is.
    matched : dict[str, list[Matched]]
        Shapes by kind.
    count : int
        How many shapes to draw, spread over the list.

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
                found = _around(final, run.reference)
                rows[3].append(render(run.reference, colors=np.where(found[:, None], colors, PALE)))
                labels[3].append(f"found on the whole: {found.mean():.0%} of the vertices")
        path = out / f"matches_{kind}.png"
        save_png(grid(rows, labels), path)
        files.append(path)
    return files


def _around(matched: IntArray, reference: Mesh) -> NDArray[np.bool_]:
    """(m,) whether a reference vertex, or two of its neighbours, are the match of some vertex."""
    hit = np.zeros(len(reference.vertices), dtype=bool)
    hit[matched] = True
    corners = hit[reference.faces]
    beside = np.zeros(len(hit), dtype=int)
    for k in range(3):
        np.add.at(beside, reference.faces[:, k], corners[:, (k + 1) % 3] & corners[:, (k + 2) % 3])
    return hit | (beside > 0)
