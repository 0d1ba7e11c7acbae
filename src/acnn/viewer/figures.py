"""Figures for papers and pages, rendered without a display: transfer, errors, filters and kernels."""

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
from acnn.viewer.figure_parts import (
    beside_color_bar,
    chequered,
    error_row,
    refined_mesh,
    shown_name,
)
from acnn.viewer.images import grid, render

if TYPE_CHECKING:
    from acnn.network.model import ShapeNetwork
    from acnn.viewer.report import ReportData


COMPARISONS = ("comparison", "partial")
"""Kinds of figures that show several methods on shapes."""

SEVERAL = ("curve", *COMPARISONS)
"""Kinds of figures that can show several methods."""

KINDS = ("transfer", "errors", "filters", *SEVERAL)
HOTTEST = 0.1
"""Error, divided by the length of the reference, at the upper end of the colour map."""

MOST_FACES = 400_000
"""Largest number of triangles after subdivision for the checkerboard."""

LENGTHS = {"sqrt_area": "sqrt(area)", "diameter": "geodesic diameter"}
_SMOOTH = 3
"""Supersampling factor of filter images, for a smooth rim."""

Image = NDArray[np.uint8]


def known_kind(kind: str) -> str:
    """Return the kind of figure; InputError if there is no such kind."""
    if kind not in KINDS:
        raise InputError(f"Unknown kind of figure '{kind}': use one of {', '.join(KINDS)}.")
    return kind


def draw_transfer(data: ReportData, *, size: tuple[int, int] = (360, 600), up: str = "y") -> Image:
    """Render the reference with a checkerboard, and every shape with the pattern pulled back along its map.

    Inside triangles the matched points of the corners are interpolated.

    Parameters
    ----------
    data : ReportData
        Data of `collect_report`; refined maps are used if there are any.
    size : tuple[int, int]
        (width, height) of one shape in pixels.
    up : str
        Up axis of the shapes.

    Returns
    -------
    Image
        (height, width, 3) uint8.
    """
    reference = data.run.reference
    box = reference.vertices.min(axis=0), reference.vertices.max(axis=0)

    def drawn(mesh: Mesh, on_reference: FloatArray) -> Image:
        times = next((k for k in (3, 2, 1) if len(mesh.faces) * 4**k <= MOST_FACES), 0)
        fine, points = refined_mesh(mesh, on_reference, times)
        return render(fine, colors=chequered(points, *box, up=up), size=size, up=up)

    images, labels = [drawn(reference, reference.vertices)], ["reference"]
    for shape in data.shapes:
        final = shape.refined if shape.refined is not None else shape.network
        images.append(drawn(Mesh(shape.vertices, shape.faces), reference.vertices[final]))
        labels.append(shown_name(shape.name))
    return grid([images], [labels])


def draw_errors(data: ReportData, *, size: tuple[int, int] = (340, 500), up: str = "y") -> Image:
    """Render the geodesic error of every point: one column per shape, one row per map, and a colour bar.

    Points without ground truth are grey; the mean error x 100 is printed below each shape.

    Parameters
    ----------
    data : ReportData
        Data of `collect_report`.
    size : tuple[int, int]
        (width, height) of one shape in pixels.
    up : str
        Up axis of the shapes.

    Returns
    -------
    Image
        (height, width, 3) uint8.
    """
    length = LENGTHS.get(data.figures["normalisation"], data.figures["normalisation"])
    rows = []
    for name in ("network", "refined"):
        errors = [getattr(shape, f"{name}_errors") for shape in data.shapes]
        if any(e is None for e in errors):
            continue
        cells = (
            (f"{shown_name(shape.name)}: {100 * np.nanmean(error):.2f}", Mesh(shape.vertices, shape.faces), error)
            for shape, error in zip(data.shapes, errors, strict=True)
        )
        rows.append(error_row(name, cells, HOTTEST, size=size, up=up))
    sheet = grid([images for images, _ in rows], [texts for _, texts in rows])
    return beside_color_bar(sheet, "heat", 0.0, HOTTEST, f"geodesic error / {length}")


def draw_filters(model: ShapeNetwork, *, columns: int = 8, rows: int = 4, size: int = 150) -> Image:
    """Render the filters of largest norm of the first intrinsic convolution as discs, one per output channel.

    Direction is the angle of the kernel from that of the larger principal curvature (to the right), distance from the
    centre its scale; red is positive, blue negative, normalised for each disc.

    Parameters
    ----------
    model : ShapeNetwork
        The network.
    columns, rows : int
        Number of discs.
    size : int
        Diameter of a disc in pixels.

    Returns
    -------
    Image
        (height, width, 3) uint8.

    Raises
    ------
    InputError
        If the network has no intrinsic convolution.
    """
    filters = first_filters(model)
    chosen = strongest_filters(filters, columns * rows)
    discs = [polar_image(filters[:, :, source, out], size) for source, out in chosen]
    texts = [f"in {source}, out {out}" for source, out in chosen]
    lines = [slice(i, i + columns) for i in range(0, len(discs), columns)]
    sheet = grid([discs[part] for part in lines], [texts[part] for part in lines], text=15, gap=12)
    return beside_color_bar(sheet, "diverging", -1.0, 1.0, "weight / largest magnitude", margin=40, most=420)


def draw_kernels(
    mesh: Mesh,
    vertex: int,
    angles: Sequence[float] = (0.0, 45.0, 90.0, 135.0),
    scales: Sequence[float] = (6.0, 24.0, 60.0),
    alpha: float = 25.0,
    **view: Any,
) -> Image:
    """Render exact kernels of one vertex: one row per scale, one column per angle.

    The long axis of a kernel lies at its angle from the direction of the larger principal curvature, counter-clockwise
    seen from outside. Each kernel is normalised by its largest value.

    Parameters
    ----------
    mesh : Mesh
        The shape.
    vertex : int
        Centre of the kernels.
    angles : Sequence[float]
        In degrees.
    scales : Sequence[float]
        Diffusion times t, for a geodesic diameter of 200.
    alpha : float
        Anisotropy.
    **view : Any
        Further arguments of `render`.

    Returns
    -------
    Image
        (height, width, 3) uint8.
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


def first_filters(model: ShapeNetwork) -> NDArray[np.float32]:
    """(angles, scales, in, out) weights a(theta, t) of the first IC layer; InputError if there is none."""
    from acnn.network.conv import IntrinsicConv

    layer = next((part for part in model.modules() if isinstance(part, IntrinsicConv)), None)
    if layer is None:
        raise InputError(f"The network {model.architecture} has no intrinsic convolution, so no filters to show.")
    weights: NDArray[np.float32] = layer.weight.detach().cpu().numpy()
    return weights


def strongest_filters(filters: NDArray[np.float32], count: int) -> list[tuple[int, int]]:
    """Select the filters of largest norm, at most one per output channel.

    Parameters
    ----------
    filters : (angles, scales, in, out) array
        Weights of a layer.
    count : int
        Largest number of filters.

    Returns
    -------
    list[tuple[int, int]]
        Their (in, out) channels.
    """
    norms = np.linalg.norm(filters.reshape(-1, *filters.shape[2:]), axis=0)  # (in, out)
    best = norms.argmax(axis=0)
    order = np.argsort(-norms.max(axis=0), kind="stable")[: max(1, count)]
    return [(int(best[out]), int(out)) for out in order]


def strongest_input(filters: NDArray[np.float32], out: int) -> int:
    """Return the input channel with the largest filter of an output channel."""
    return int(np.linalg.norm(filters[..., out].reshape(-1, filters.shape[2]), axis=0).argmax())


def polar_image(
    weights: FloatArray, size: int = 160, background: tuple[float, float, float] = (1.0, 1.0, 1.0)
) -> NDArray[np.uint8]:
    """Render one filter as a disc: direction is the angle of the kernel, distance from the centre its scale.

    Kernels agree at theta and theta + pi, so the disc shows each twice. Red is positive, blue negative, white zero;
    colours are normalised by the largest magnitude.

    Parameters
    ----------
    weights : (angles, scales) array
        a(theta, t), the scales ascending.
    size : int
        Diameter in pixels.
    background : tuple[float, float, float]
        Colour around the disc, in 0..1.

    Returns
    -------
    (size, size, 3) array
        uint8; theta = 0 points right and grows counter-clockwise.
    """
    table = np.asarray(weights, np.float64)
    angles, scales = table.shape
    fine = size * _SMOOTH
    coordinate = (np.arange(fine) + 0.5) / fine * 2 - 1
    x, y = coordinate[None, :], -coordinate[:, None]
    radius = np.hypot(x, y)
    turn = np.mod(np.arctan2(y, x), np.pi) / np.pi * angles
    ring = np.clip(radius * scales - 0.5, 0, scales - 1)
    low, inner = np.floor(turn).astype(int), np.minimum(ring.astype(int), max(scales - 2, 0))
    outer = np.minimum(inner + 1, scales - 1)
    along, across = turn - low, ring - inner
    first, second = low % angles, (low + 1) % angles
    values = (1 - along) * ((1 - across) * table[first, inner] + across * table[first, outer])
    values += along * ((1 - across) * table[second, inner] + across * table[second, outer])
    # Angles are undefined at the centre: the innermost ring fades to its mean.
    fade = np.clip(radius * scales / 0.5, 0, 1)
    values = np.where(fade < 1, fade * values + (1 - fade) * table[:, 0].mean(), values)
    most = float(np.abs(table).max()) or 1.0
    colors = value_colors(values, "diverging", -most, most)
    colors[radius > 0.985] = 0.35
    colors[radius > 1.0] = background
    small = colors.reshape(size, _SMOOTH, size, _SMOOTH, 3).mean(axis=(1, 3))
    return np.rint(255 * small).astype(np.uint8)
