"""Figures for papers and pages, rendered without a screen: transfer, errors, filters and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.shapes.mesh import Mesh
from acnn.surface.curvature import principal_frames
from acnn.surface.heat import exact_rows
from acnn.surface.laplacian import stiffness_parts
from acnn.surface.surface import surface_of
from acnn.types import FloatArray
from acnn.viewer.colors import value_colors
from acnn.viewer.figure_parts import caption, chequered, color_bar, refined_mesh
from acnn.viewer.images import grid, render

if TYPE_CHECKING:
    from acnn.network.model import ShapeNetwork
    from acnn.viewer.report import ReportData, ReportShape


KINDS = ("transfer", "errors", "filters", "curve")
HOTTEST = 0.1
"""Error, over the reference's length, that is drawn in the hottest colour."""

MOST_FACES = 400_000
"""Triangles are split for the pattern as long as there are no more of them than this."""

LENGTHS = {"sqrt_area": "sqrt(area)", "diameter": "geodesic diameter"}
Image = NDArray[np.uint8]


def known_kind(kind: str) -> str:
    """The kind of picture itself. Raises InputError where there is no such kind."""
    if kind not in KINDS:
        raise InputError(f"There is no figure '{kind}': use one of {', '.join(KINDS)}.")
    return kind


def draw_transfer(data: ReportData, *, size: tuple[int, int] = (360, 600), up: str = "y") -> Image:
    """The reference with a procedural pattern, and every shape with the pattern pulled back along its map.

    The pattern is drawn inside the triangles, too: the matched points of a triangle's corners are interpolated.

    Parameters
    ----------
    data : ReportData
        Of `collect_report`; the refined maps are taken where there are some.
    size : tuple[int, int]
        Of one shape, (width, height).
    up : str
        The shapes' axis that points up.
    """
    reference = data.run.reference
    box = reference.vertices.min(axis=0), reference.vertices.max(axis=0)

    def drawn(mesh: Mesh, on_reference: FloatArray) -> Image:
        times = next((k for k in (3, 2, 1) if len(mesh.faces) * 4**k <= MOST_FACES), 0)
        fine, points = refined_mesh(mesh, on_reference, times)
        return render(fine, colors=chequered(points, *box, up=up), size=size, up=up)

    pictures, labels = [drawn(reference, reference.vertices)], ["reference"]
    for shape in data.shapes:
        final = shape.refined if shape.refined is not None else shape.network
        pictures.append(drawn(Mesh(shape.vertices, shape.faces), reference.vertices[final]))
        labels.append(_name(shape))
    return grid([pictures], [labels])


def draw_errors(data: ReportData, *, size: tuple[int, int] = (340, 500), up: str = "y") -> Image:
    """Geodesic error of every point: a column for each shape, a row for each map, and a colour bar.

    Grey: no truth is known there. Below each shape its mean error x 100.
    """
    length = LENGTHS.get(data.figures["normalisation"], data.figures["normalisation"])
    rows: list[list[Image | None]] = []
    labels: list[list[str]] = []
    for name in ("network", "refined"):
        errors = [getattr(shape, f"{name}_errors") for shape in data.shapes]
        if any(e is None for e in errors):
            continue
        drawn: list[Image | None] = []
        words = []
        for shape, error in zip(data.shapes, errors, strict=True):
            mesh = Mesh(shape.vertices, shape.faces)
            drawn.append(render(mesh, values=error, vmin=0.0, vmax=HOTTEST, size=size, up=up))
            words.append(f"{_name(shape)}: {100 * np.nanmean(error):.2f}")
        rows.append([caption(name, size[1], upright=True), *drawn])
        labels.append(["", *words])
    sheet = grid(rows, labels)
    bar = color_bar("heat", 0.0, HOTTEST, f"geodesic error / {length}", height=min(sheet.shape[0] - 60, 640))
    return grid([[sheet, _centred(bar, sheet.shape[0])]], gap=0)


def draw_filters(model: ShapeNetwork, *, columns: int = 8, rows: int = 4, size: int = 150) -> Image:
    """The strongest filters of the first intrinsic convolution as discs, one for each output channel.

    Direction is the kernel's angle from that of the larger principal curvature (to the right), distance from the
    middle its scale; red is positive, blue negative, each disc from its own largest size.
    """
    filters = first_filters(model)
    chosen = strongest_filters(filters, columns * rows)
    discs = [polar_picture(filters[:, :, source, out], size) for source, out in chosen]
    words = [f"in {source}, out {out}" for source, out in chosen]
    lines = [slice(i, i + columns) for i in range(0, len(discs), columns)]
    sheet = grid([discs[part] for part in lines], [words[part] for part in lines], text=15, gap=12)
    bar = color_bar("diverging", -1.0, 1.0, "weight over its largest size", height=min(sheet.shape[0] - 40, 420))
    return grid([[sheet, _centred(bar, sheet.shape[0])]], gap=0)


def _name(shape: ReportShape) -> str:
    return shape.name.replace("_remeshed", " (remeshed)").replace("_", " ")


def _centred(picture: Image, height: int) -> Image:
    """The picture in the middle of a white strip."""
    strip = np.full((max(height, picture.shape[0]), *picture.shape[1:]), 255, np.uint8)
    top = (len(strip) - len(picture)) // 2
    strip[top : top + len(picture)] = picture
    return strip


_SMOOTH = 3
"""Filter pictures are drawn this many times larger and averaged, for a clean rim."""


def first_filters(model: ShapeNetwork) -> NDArray[np.float32]:
    """(angles, scales, in, out) weights a(theta, t) of the first IC layer. Raises InputError where there is none."""
    from acnn.network.conv import IntrinsicConv

    layer = next((part for part in model.modules() if isinstance(part, IntrinsicConv)), None)
    if layer is None:
        raise InputError(f"The network {model.architecture} has no intrinsic convolution, so no filters to show.")
    weights: NDArray[np.float32] = layer.weight.detach().cpu().numpy()
    return weights


def strongest_filters(filters: NDArray[np.float32], count: int) -> list[tuple[int, int]]:
    """The (in, out) channels of the filters of largest norm, at most one for each output channel.

    Parameters
    ----------
    filters : (angles, scales, in, out) array
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

    Parameters
    ----------
    weights : (angles, scales) array
        a(theta, t), the scales ascending.
    size : int
        Pixels across.

    Returns
    -------
    array
        (size, size, 3) uint8; theta = 0 points right and grows counter-clockwise.
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


def draw_kernels(
    mesh: Mesh,
    vertex: int,
    angles: Sequence[float] = (0.0, 45.0, 90.0, 135.0),
    scales: Sequence[float] = (6.0, 24.0, 60.0),
    alpha: float = 25.0,
    **view: Any,
) -> Any:
    """(h, w, 3) picture: exact kernels of one vertex, a row for each scale, a column for each angle in degrees.

    Each kernel is drawn from 0 to its largest value; its long axis lies at the angle from the direction of the larger
    principal curvature, counter-clockwise seen from outside. Further arguments go to `render`.
    """
    surface = surface_of(mesh)
    parts = stiffness_parts(surface, principal_frames(surface))
    rows, labels = [], []
    for t in scales:
        images, texts = [], []
        for angle in angles:
            matrix = parts.matrix(alpha, np.radians(angle))
            density = exact_rows(matrix, surface.vertex_areas, t, np.array([vertex]))[0] / surface.vertex_areas
            images.append(render(mesh, values=density, vmin=0.0, vmax=float(density.max()), **view))
            texts.append(f"{angle:g} degrees, t = {t:g}")
        rows.append(images)
        labels.append(texts)
    return grid(rows, labels)
