"""Rendered images of shapes, without a display or a graphics card: a small software renderer.

`render` draws one shape, `grid` arranges images with labels, `save_png` writes the result.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.files import write_atomic
from acnn.shapes.mesh import PointCloud, Shape
from acnn.viewer.colors import position_colors, to_linear, to_srgb, value_colors

__all__ = ["grid", "position_colors", "render", "save_png", "value_colors"]

Image = NDArray[np.uint8]
VIEWS = {
    "front": (0.0, 0.0),
    "back": (180.0, 0.0),
    "left": (90.0, 0.0),
    "right": (-90.0, 0.0),
    "top": (0.0, 89.9),
    "three-quarter": (35.0, 12.0),
}
_PLAIN = (0.78, 0.80, 0.83)
# direction to the light in camera coordinates (x right, y up, z to the camera), strength, softness
_LAMPS = ((-0.45, 0.65, 0.70, 0.72, 0.25), (0.85, 0.10, 0.45, 0.20, 0.50), (0.10, 0.35, -0.90, 0.16, 0.10))
_SKY = (0.20, 0.40)


@check_arguments
def render(
    shape: Shape,
    *,
    colors: ArrayLike | None = None,
    values: ArrayLike | None = None,
    cmap: str = "heat",
    vmin: float | None = None,
    vmax: float | None = None,
    view: str | tuple[float, float] = "front",
    up: str = "y",
    size: tuple[int, int] = (600, 800),
    background: tuple[float, float, float] = (1.0, 1.0, 1.0),
    span: float | None = None,
    perspective: float = 18.0,
    margin: float = 0.04,
    point_size: float | None = None,
    supersample: int = 2,
) -> Image:
    """Render one shape, lit softly from the upper left.

    Parameters
    ----------
    shape : Shape
        A mesh, or a point cloud, whose points are drawn as small spheres.
    colors : (n, 3 or 4) array or None
        In 0..1 or uint8; alpha blends with the background. None: those of the shape, else light grey.
    values : (n,) array or None
        Numbers instead of colours, shown with `cmap` from `vmin` to `vmax` (see `value_colors`).
    view : str or tuple[float, float]
        A name in `VIEWS` or (azimuth, elevation) of the camera in degrees; azimuth moves it to the left of the shape.
    up : str
        Up axis, "x", "y" or "z".
    size : tuple[int, int]
        (width, height) in pixels.
    background : tuple[float, float, float]
        Colour in 0..1.
    span : float or None
        Length, in units of the shape, that the height of the image shows; None fits the shape with `margin` around it.
    perspective : float
        Field of view of the camera in degrees; 0 for a parallel projection.
    margin : float
        Margin as a fraction of the image.
    point_size : float or None
        Diameter of the spheres of a point cloud, in units of the shape; None derives it from the spacing of the points.
    supersample : int
        The image is rendered this many times larger and averaged.

    Returns
    -------
    Image
        (height, width, 3) uint8.

    Raises
    ------
    InputError
        For an empty shape, or arguments that do not fit it.
    """
    from acnn.viewer import raster  # numba

    vertices = np.ascontiguousarray(shape.vertices, np.float64)
    if not len(vertices) or not np.isfinite(vertices).all():
        raise InputError("render: the shape has no vertices, or some that are not finite. Load it with acnn.load.")
    width, height = int(size[0]) * supersample, int(size[1]) * supersample
    if width < 1 or height < 1:
        raise InputError(f"render: size {size} must be positive, as (width, height) in pixels.")
    turn = _camera(view, up)
    seen = vertices @ turn.T
    screen, pixel = _project(seen, width, height, span, perspective, margin)
    attribute, is_scale = _attribute(shape, colors, values, len(vertices))

    if isinstance(shape, PointCloud):
        diameter = _spacing(vertices) if point_size is None else float(point_size)
        radii = np.maximum(0.5 * diameter / pixel / screen[:, 3], 0.5 * supersample)
        index, normal, depth = raster.draw_discs(screen, radii, radii * pixel, height, width)
        window = _window(index, supersample)
        index, normal, depth = index[window], normal[window], depth[window]
        surface = attribute[np.maximum(index, 0)].astype(np.float32)
        if shape.normals is not None:
            # half the normal of the sphere: single points stay visible, and the surface still looks smooth
            along = np.asarray(shape.normals, np.float64) @ turn.T
            normal = 0.5 * normal + _towards_eye(along[np.maximum(index, 0)].astype(np.float32))
    else:
        faces = np.ascontiguousarray(shape.faces, np.int32)
        index, bary, depth = raster.draw_triangles(screen, faces, height, width)
        window = _window(index, supersample)
        index, bary, depth = index[window], bary[window], depth[window]
        surface = raster.interpolate(index, bary, faces, attribute)
        normal = _towards_eye(raster.interpolate(index, bary, faces, _vertex_normals(seen, faces)))
    covered = index >= 0
    normal /= np.maximum(np.linalg.norm(normal, axis=2, keepdims=True), 1e-12)

    ground = np.asarray(background, np.float32)
    if is_scale:
        limits = _limits(attribute[:, 0], vmin, vmax)
        surface[~covered] = limits[0]
        surface = value_colors(surface[..., 0], cmap, *limits).astype(np.float32)
    elif surface.shape[2] == 4:
        surface = surface[..., :3] * surface[..., 3:] + (1 - surface[..., 3:]) * ground
    reach = 0.05 * float(np.ptp(seen, axis=0).max()) / pixel
    light = raster.occlusion(depth, normal, pixel, reach, _disc_pattern())
    lit = raster.shade(to_linear(surface), normal, light, _lamps(), np.array(_SKY), 0.035)
    lit = np.where(covered[..., None], np.minimum(lit, 1.0), to_linear(ground))
    image = np.empty((height // supersample, width // supersample, 3), np.uint8)
    image[:] = np.rint(255 * ground)
    rows, columns = (slice(w.start // supersample, w.stop // supersample) for w in window)
    part = image[rows, columns]
    blocks = lit.reshape(len(part), supersample, part.shape[1], supersample, 3).mean(axis=(1, 3))
    part[:] = np.rint(255 * to_srgb(blocks))
    return image


def grid(
    rows: Sequence[Sequence[Image | None]],
    labels: Sequence[Sequence[str]] | None = None,
    *,
    gap: int = 8,
    text: int = 22,
    background: tuple[int, int, int] = (255, 255, 255),
) -> Image:
    """Arrange images in rows, each with an optional line of text below it.

    Parameters
    ----------
    rows : Sequence[Sequence[Image or None]]
        Images (h, w, 3) uint8; None leaves a cell empty; rows may differ in length.
    labels : Sequence[Sequence[str]] or None
        Texts in the same layout; a row without text takes no space.
    gap : int
        Pixels between images.
    text : int
        Height of the letters in pixels.
    background : tuple[int, int, int]
        Colour in 0..255.

    Returns
    -------
    Image
        (height, width, 3) uint8.

    Raises
    ------
    InputError
        If there is no image.
    """
    from PIL import Image as PILImage
    from PIL import ImageDraw, ImageFont

    if not any(image is not None for row in rows for image in row):
        raise InputError("grid: there is no image in any row.")
    columns = max(len(row) for row in rows)
    widths = [0] * columns
    heights = []
    for i, row in enumerate(rows):
        texts = labels[i] if labels is not None and i < len(labels) else ()
        tallest = max((p.shape[0] for p in row if p is not None), default=0)
        heights.append((tallest, round(1.6 * text) if any(texts) else 0))
        for j, image in enumerate(row):
            widths[j] = max(widths[j], 0 if image is None else image.shape[1])
    total = (sum(widths) + gap * (columns + 1), sum(a + b for a, b in heights) + gap * (len(rows) + 1))
    sheet = PILImage.new("RGB", total, background)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(text)
    ink = (40, 40, 44) if sum(background) > 380 else (235, 235, 235)
    top = gap
    for i, row in enumerate(rows):
        left = gap
        for j, image in enumerate(row):
            if image is not None:
                inset = (widths[j] - image.shape[1]) // 2
                sheet.paste(PILImage.fromarray(np.ascontiguousarray(image)), (left + inset, top))
            if labels is not None and i < len(labels) and j < len(labels[i]) and labels[i][j]:
                middle = (left + widths[j] / 2, top + heights[i][0] + 0.8 * text)
                pen.text(middle, labels[i][j], ink, font=font, anchor="mm")
            left += widths[j] + gap
        top += sum(heights[i]) + gap
    return np.asarray(sheet)


def save_png(image: Image, path: str | os.PathLike[str]) -> Path:
    """Write an image as PNG, atomically.

    Parameters
    ----------
    image : (h, w, 3 or 4) array
        uint8.
    path : path
        Output file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the array is not an image, or the file cannot be written.
    """
    from PIL import Image as PILImage

    target = Path(path)
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (3, 4):
        raise InputError(f"{target}: an image is (height, width, 3 or 4) uint8, not {pixels.shape} {pixels.dtype}.")
    stream = io.BytesIO()
    PILImage.fromarray(pixels).save(stream, format="PNG", optimize=True)
    write_atomic(target, stream.getvalue())
    return target


def _camera(view: str | tuple[float, float], up: str) -> NDArray[np.float64]:
    if isinstance(view, str):
        if view not in VIEWS:
            raise InputError(f"There is no view {view!r}. Use one of {', '.join(VIEWS)}, or (azimuth, elevation).")
        view = VIEWS[view]
    bases = {"y": np.eye(3), "z": [[1, 0, 0], [0, 0, 1], [0, -1, 0]], "x": [[0, 1, 0], [1, 0, 0], [0, 0, -1]]}
    if up not in bases:
        raise InputError(f"up must be 'x', 'y' or 'z', not {up!r}.")
    azimuth, elevation = np.radians(view)
    ca, sa, ce, se = np.cos(azimuth), np.sin(azimuth), np.cos(elevation), np.sin(elevation)
    about_up = np.array([[ca, 0, -sa], [0, 1, 0], [sa, 0, ca]])
    tilt = np.array([[1, 0, 0], [0, ce, -se], [0, se, ce]])
    return tilt @ about_up @ np.asarray(bases[up], np.float64)


def _project(
    seen: NDArray[np.float64], width: int, height: int, span: float | None, perspective: float, margin: float
) -> tuple[NDArray[np.float64], float]:
    """Project vertices to the image; also return the size of a pixel at the centre of the shape."""
    low, high = seen.min(axis=0), seen.max(axis=0)
    centred = seen - (low + high) / 2
    extent = max(float((high - low).max()), 1e-300)
    visible = extent if span is None else float(span)
    distance = np.inf if perspective <= 0 else 0.5 * visible / np.tan(np.radians(perspective) / 2) + extent / 2
    w = 1.0 - centred[:, 2] / distance
    flat = centred[:, :2] / w[:, None]
    if span is None:
        middle = (flat.min(axis=0) + flat.max(axis=0)) / 2
        flat -= middle
        needed = np.maximum(2 * np.abs(flat).max(axis=0), 1e-9 * extent)
        pixel = float(max(needed[0] / width, needed[1] / height)) / (1 - 2 * margin)
    else:
        pixel = float(span) / height
    screen = np.empty((len(seen), 4))
    screen[:, 0] = flat[:, 0] / pixel + width / 2
    screen[:, 1] = height / 2 - flat[:, 1] / pixel
    screen[:, 2] = -centred[:, 2]
    screen[:, 3] = w
    return screen, pixel


def _window(index: NDArray[np.int32], step: int) -> tuple[slice, slice]:
    """Rows and columns around what is drawn, in full pixels of the image: the rest is background."""
    out = []
    for axis in (1, 0):
        hit = np.flatnonzero((index >= 0).any(axis=axis))
        low, high = (int(hit[0]), int(hit[-1]) + 1) if len(hit) else (0, 0)
        out.append(slice(low // step * step, -(-high // step) * step))
    return out[0], out[1]


def _attribute(
    shape: Shape, colors: ArrayLike | None, values: ArrayLike | None, count: int
) -> tuple[NDArray[np.float64], bool]:
    if colors is not None and values is not None:
        raise InputError("render: give either colors or values, not both.")
    if values is not None:
        numbers = np.asarray(values, np.float64)
        if numbers.shape != (count,):
            raise InputError(f"render: values have shape {numbers.shape}; the shape has {count} vertices.")
        return numbers[:, None].copy(), True
    given: Any = shape.colors if colors is None else colors
    if given is None:
        return np.tile(_PLAIN, (count, 1)), False
    array = np.asarray(given)
    if array.ndim != 2 or array.shape[0] != count or array.shape[1] not in (3, 4):
        raise InputError(f"render: colors have shape {array.shape}; expected ({count}, 3) or ({count}, 4).")
    scale = 255.0 if array.dtype.kind in "ui" else 1.0
    return np.ascontiguousarray(array / scale, np.float64), False


def _limits(numbers: NDArray[np.float64], vmin: float | None, vmax: float | None) -> tuple[float, float]:
    known = numbers[np.isfinite(numbers)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return (low if vmin is None else float(vmin)), (high if vmax is None else float(vmax))


def _vertex_normals(vertices: NDArray[np.float64], faces: NDArray[np.int32]) -> NDArray[np.float64]:
    corners = vertices[faces]  # (m, 3, 3)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(normals, faces[:, k], cross)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)


def _towards_eye(normal: NDArray[np.float32]) -> NDArray[np.float32]:
    # the inside of an open mesh is lit like its outside
    return np.where(normal[..., 2:] < 0, -normal, normal) if normal.size else normal


def _spacing(points: NDArray[np.float64]) -> float:
    from scipy.spatial import cKDTree

    if len(points) < 2:
        return 1.0
    sample = points[:: max(1, len(points) // 2000)]
    nearest = cKDTree(points).query(sample, k=2)[0][:, 1]
    return 1.7 * float(np.mean(nearest)) or 1e-3


def _lamps() -> NDArray[np.float64]:
    lamps = np.array(_LAMPS)
    lamps[:, :3] /= np.linalg.norm(lamps[:, :3], axis=1, keepdims=True)
    return lamps


def _disc_pattern(count: int = 12) -> NDArray[np.float64]:
    """(16, count, 2) spirals over the unit disc, each rotated by a different sixteenth of a turn."""
    k = np.arange(count)
    radius = np.sqrt((k + 0.5) / count)
    order = (np.arange(16) * 7) % 16
    angle = k[None] * 2.399963 + order[:, None] * (2 * np.pi / 16)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
