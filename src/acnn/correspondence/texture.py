"""A texture carried along a map: the picture of one mesh seen on another.

Every corner of the query's faces gets the texture coordinates of its match. Where the matches of a face lie on both
sides of a seam of the reference's texture, no three coordinates of the old picture are right: such faces are painted
anew, each into a small square below the old picture, point by point from the reference's surface.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints, Mesh, Texture
from acnn.surface.closest_points import ClosestPoints
from acnn.types import FloatArray, IntArray

TOLERANCE = 0.5
"""A face is painted anew where its coordinates are off by more than this share of its size in the picture."""

MAX_CELL, MAX_HEIGHT, MAX_TEXELS = 64, 16384, 1 << 22

# Where a face's coordinates are compared with the surface's: the middle, and points a little inside corners and sides.
_LOOKED_AT = np.array(
    [[1, 1, 1], [8, 1, 1], [1, 8, 1], [1, 1, 8], [5, 5, 2], [2, 5, 5], [5, 2, 5]], dtype=float
) / np.array([[3], [10], [10], [10], [12], [12], [12]])


@check_arguments
def transfer_texture(query: Mesh, reference: Mesh, places: BarycentricPoints) -> tuple[Texture, int]:
    """The reference's texture on the query.

    Parameters
    ----------
    query : Mesh
        N vertices.
    reference : Mesh
        With a texture.
    places : BarycentricPoints
        (n) matches of the query's vertices on the reference.

    Returns
    -------
    tuple[Texture, int]
        The texture of the query, and how many of its faces cross a seam: they are painted anew where there is a
        picture, and keep coordinates of one side where there are coordinates only.

    Raises
    ------
    InputError
        Where the reference has no texture.
    """
    texture = reference.texture
    if texture is None:
        raise InputError(
            "The shape to take a texture from has no texture coordinates. Use an OBJ, PLY or GLB with them."
        )
    corner_uv = texture.uv[texture.uv_faces]  # (faces of the reference, 3, 2)
    matched = places.interpolate(reference.vertices[reference.faces])[query.faces]  # (m, 3, 3)
    closest = ClosestPoints(reference.vertices, reference.faces)
    samples = np.einsum("sk,mkd->smd", _LOOKED_AT, matched)  # (7, m, 3)
    found = closest(samples.reshape(-1, 3))
    seen = found.interpolate(corner_uv).reshape(*samples.shape[:2], 2)
    uv = _continuous_uv(query.faces, reference, places, corner_uv, seen[0])  # (m, 3, 2)
    density = _density(reference, corner_uv)[found.faces[: len(query.faces)]]
    size = density * np.linalg.norm(matched - np.roll(matched, 1, axis=1), axis=2).max(axis=1)
    pixels = 1024 if texture.image is None else max(texture.image.shape[:2])
    off = np.linalg.norm(np.einsum("sk,mkd->smd", _LOOKED_AT, uv) - seen, axis=2).max(axis=0)
    crossing = off > np.maximum(TOLERANCE * size, 2.0 / pixels)
    # A picture that repeats is shifted so that the face's copy is the one in the middle.
    uv -= np.floor(uv.min(axis=1, keepdims=True) + 1e-9)
    image = texture.image
    if image is not None and crossing.any():
        crossing |= uv.max(axis=(1, 2)) > 1 + 1e-6
        rows = np.flatnonzero(crossing)
        cell = _cell_size(size[rows] * pixels, len(rows), image.shape)
        image, uv = _painted(image, uv, rows, matched, cell, closest, corner_uv)
    flat, index = np.unique(uv.reshape(-1, 2), axis=0, return_inverse=True)
    return Texture(flat, index.reshape(-1, 3).astype(np.int32), image), int(crossing.sum())


def colors_at(reference: Mesh, places: BarycentricPoints) -> NDArray[np.uint8]:
    """(n, 4) colours at points of a mesh, from its vertex colours, or else from its texture's picture."""
    if reference.colors is not None:
        mixed = places.interpolate(reference.colors[reference.faces].astype(float))
    elif reference.texture is not None and reference.texture.image is not None:
        texture = reference.texture
        mixed = sampled(reference.texture.image, places.interpolate(texture.uv[texture.uv_faces]))
    else:
        raise InputError("The shape to take colours from has neither vertex colours nor a texture with its picture.")
    if mixed.shape[1] == 3:
        mixed = np.column_stack([mixed, np.full(len(mixed), 255.0)])
    return np.rint(mixed).astype(np.uint8)


def sampled(image: NDArray[np.uint8], uv: FloatArray) -> FloatArray:
    """(n, channels) in 0..255: a picture at texture coordinates (n, 2), v upwards, linear between pixels, repeating."""
    height, width = image.shape[:2]
    x = uv[:, 0] * width - 0.5
    y = (1.0 - uv[:, 1]) * height - 0.5
    left, top = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    right_share, lower_share = (x - left)[:, None], (y - top)[:, None]
    columns, rows = (left % width, (left + 1) % width), (top % height, (top + 1) % height)
    upper = image[rows[0], columns[0]] * (1 - right_share) + image[rows[0], columns[1]] * right_share
    lower = image[rows[1], columns[0]] * (1 - right_share) + image[rows[1], columns[1]] * right_share
    return upper * (1 - lower_share) + lower * lower_share


def _continuous_uv(
    faces: IntArray, reference: Mesh, places: BarycentricPoints, corner_uv: FloatArray, middle: FloatArray
) -> FloatArray:
    """(m, 3, 2) coordinates of the corners' matches; a vertex on a seam has several: those nearest to the middle's."""
    uv = places.interpolate(corner_uv)[faces]
    best = np.linalg.norm(uv - middle[:, None], axis=2)
    at_vertex = places.weights.max(axis=1) > 1 - 1e-9
    vertex = np.where(at_vertex, places.largest_corner(reference.faces), -1)[faces]  # (m, 3)
    flat = reference.faces.ravel().astype(np.int64)
    assert reference.texture is not None
    wedges = np.unique(np.stack([flat, reference.texture.uv_faces.ravel()], axis=1), axis=0)
    first = np.searchsorted(wedges[:, 0], np.arange(len(reference.vertices) + 1))
    count = np.diff(first)
    for turn in range(int(count.max(initial=1))):
        has = np.argwhere((vertex >= 0) & (count[vertex] > np.maximum(turn, 1)))
        if not len(has):
            break
        row, corner = has.T
        other = reference.texture.uv[wedges[first[vertex[row, corner]] + turn, 1]]
        distance = np.linalg.norm(other - middle[row], axis=1)
        closer = distance < best[row, corner]
        best[row[closer], corner[closer]] = distance[closer]
        uv[row[closer], corner[closer]] = other[closer]
    return uv


def _density(reference: Mesh, corner_uv: FloatArray) -> FloatArray:
    """(faces,) length in the picture, as a share of its side, of a unit of length on the surface."""
    corners = reference.vertices[reference.faces]
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    uv_sides = np.linalg.norm(corner_uv - np.roll(corner_uv, 1, axis=1), axis=2)
    return uv_sides.max(axis=1) / np.maximum(sides.max(axis=1), 1e-300)


def _cell_size(pixels: FloatArray, count: int, shape: tuple[int, ...]) -> int:
    """Side of the square that a face is painted into: fine enough for most, small enough for all to find room."""
    height, width = shape[:2]
    cell = int(np.clip(np.ceil(np.quantile(pixels, 0.9)), 6, min(MAX_CELL, max(width - 2, 6))))

    def fits(side: int) -> bool:
        lines = -(-count // max(1, width // (side + 2)))
        return height + lines * (side + 2) <= MAX_HEIGHT and count * (side + 2) ** 2 <= MAX_TEXELS

    while cell > 3 and not fits(cell):
        cell -= 1
    return cell


def _painted(
    image: NDArray[np.uint8],
    uv: FloatArray,
    rows: IntArray,
    matched: FloatArray,
    cell: int,
    closest: ClosestPoints,
    corner_uv: FloatArray,
) -> tuple[NDArray[np.uint8], FloatArray]:
    """The picture with a square for each of some faces below it, and all coordinates in it."""
    step = cell + 2  # one pixel around, so that a viewer's filter finds the same colours there
    height = image.shape[0]
    width = max(image.shape[1], step)
    across = max(1, width // step)
    lines = -(-len(rows) // across)
    larger = np.zeros((height + lines * step, width, image.shape[2]), np.uint8)
    larger[:height, : image.shape[1]] = image
    i, j = np.meshgrid(np.arange(-1, cell + 1), np.arange(-1, cell + 1), indexing="xy")
    second, third = np.clip(i / (cell - 1), 0, 1), np.clip(j / (cell - 1), 0, 1)
    beyond = np.maximum(second + third, 1.0)
    second, third = second / beyond, third / beyond
    weights = np.stack([1 - second - third, second, third], axis=-1).reshape(-1, 3)
    points = np.einsum("sk,mkd->msd", weights, matched[rows]).reshape(-1, 3)
    colors = np.rint(sampled(image, closest(points).interpolate(corner_uv))).astype(np.uint8)
    squares = colors.reshape(len(rows), step, step, image.shape[2])
    uv = uv * [image.shape[1] / width, 1.0]
    uv[..., 1] = (uv[..., 1] * height + lines * step) / len(larger)
    for k, square in enumerate(squares):
        top, left = height + (k // across) * step, (k % across) * step
        larger[top : top + step, left : left + step] = square
        corner = np.array([[left + 1.5, top + 1.5], [left + cell + 0.5, top + 1.5], [left + 1.5, top + cell + 0.5]])
        uv[rows[k]] = np.column_stack([corner[:, 0] / width, 1 - corner[:, 1] / len(larger)])
    return larger, uv
