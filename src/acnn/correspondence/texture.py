"""Transfer of a texture or of colours along a map.

Every corner of the query's faces gets the texture coordinates of its match. Where the matches of a face lie on both
sides of a seam of the reference's texture, no three coordinates of its image are right: such faces are painted again,
each into a small square below the original image, point by point from the reference's surface.
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
"""A face is painted again where its coordinates are off by more than this fraction of its size in the image."""

MAX_CELL, MAX_HEIGHT, MAX_TEXELS = 64, 16384, 1 << 22
"""Limits of the painted squares and of the image: side of a square, height of the image, and pixels of all squares."""

# Barycentric samples of a face at which its coordinates are checked: the centre, and near the corners and sides.
_SAMPLES = np.array(
    [[1, 1, 1], [8, 1, 1], [1, 8, 1], [1, 1, 8], [5, 5, 2], [2, 5, 5], [5, 2, 5]], dtype=float
) / np.array([[3], [10], [10], [10], [12], [12], [12]])


@check_arguments
def transfer_texture(query: Mesh, reference: Mesh, points: BarycentricPoints) -> tuple[Texture, int]:
    """Transfer the texture of the reference to the query.

    Parameters
    ----------
    query : Mesh
        Of n vertices.
    reference : Mesh
        With a texture.
    points : BarycentricPoints
        The n matches of the query's vertices on the reference.

    Returns
    -------
    texture : Texture
        Of the query.
    seam_faces : int
        Number of its faces that cross a seam. They are painted again where the texture has an image, and keep the
        coordinates of one side where it has coordinates only.

    Raises
    ------
    InputError
        Where the reference has no texture.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import BarycentricPoints, Mesh, Texture
    >>> square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    >>> faces = np.array([[0, 1, 2], [0, 2, 3]], np.int32)
    >>> image = np.zeros((8, 8, 3), np.uint8)
    >>> reference = Mesh(square, faces, texture=Texture(square[:, :2], faces, image))
    >>> query = Mesh(2 * square, faces)
    >>> texture, seam_faces = transfer_texture(query, reference, BarycentricPoints.at_vertices(faces, np.arange(4)))
    >>> np.allclose(texture.uv[texture.uv_faces], square[faces, :2]), seam_faces
    (True, 0)
    """
    texture = reference.texture
    if texture is None:
        raise InputError(
            "The shape to take a texture from has no texture coordinates. Use an OBJ, PLY or GLB file with them."
        )
    corner_uv = texture.uv[texture.uv_faces]  # (faces of the reference, 3, 2)
    corners = points.interpolate(reference.vertices[reference.faces])[query.faces]  # (m, 3, 3)
    closest = ClosestPoints(reference.vertices, reference.faces)
    samples = np.einsum("sk,mkd->smd", _SAMPLES, corners)  # (7, m, 3)
    on_reference = closest(samples.reshape(-1, 3))
    sample_uv = on_reference.interpolate(corner_uv).reshape(*samples.shape[:2], 2)
    uv = _continuous_uv(query.faces, reference, points, corner_uv, sample_uv[0])  # (m, 3, 2)
    density = _density(reference, corner_uv)[on_reference.faces[: len(query.faces)]]
    size = density * np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    pixels = 1024 if texture.image is None else max(texture.image.shape[:2])
    error = np.linalg.norm(np.einsum("sk,mkd->smd", _SAMPLES, uv) - sample_uv, axis=2).max(axis=0)
    crossing = error > np.maximum(TOLERANCE * size, 2.0 / pixels)
    # Coordinates of a repeating image are shifted by whole numbers, so that the face lies in the image itself.
    uv -= np.floor(uv.min(axis=1, keepdims=True) + 1e-9)
    image = texture.image
    if image is not None and crossing.any():
        crossing |= uv.max(axis=(1, 2)) > 1 + 1e-6
        rows = np.flatnonzero(crossing)
        cell = _cell_size(size[rows] * pixels, len(rows), image.shape)
        image, uv = _painted(image, uv, rows, corners, cell, closest, corner_uv)
    flat, index = np.unique(uv.reshape(-1, 2), axis=0, return_inverse=True)
    return Texture(flat, index.reshape(-1, 3).astype(np.int32), image), int(crossing.sum())


def colors_at(reference: Mesh, points: BarycentricPoints) -> NDArray[np.uint8]:
    """Colours at points of a mesh, from its vertex colours or else from the image of its texture.

    Parameters
    ----------
    reference : Mesh
        With vertex colours, or a texture with an image.
    points : BarycentricPoints
        The n points on its triangles.

    Returns
    -------
    (n, 4) uint8 array
        Red, green, blue and alpha.

    Raises
    ------
    InputError
        Where the mesh has no colours.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import BarycentricPoints, Mesh
    >>> colors = np.array([[0, 0, 0, 255], [100, 0, 0, 255], [0, 200, 0, 255]], np.uint8)
    >>> triangle = Mesh(np.eye(3), np.array([[0, 1, 2]], np.int32), colors)
    >>> colors_at(triangle, BarycentricPoints(np.zeros(1, np.int32), np.array([[0.5, 0.25, 0.25]])))
    array([[ 25,  50,   0, 255]], dtype=uint8)
    """
    if reference.colors is not None:
        colors = points.interpolate(reference.colors[reference.faces].astype(float))
    elif reference.texture is not None and reference.texture.image is not None:
        texture = reference.texture
        colors = sampled(reference.texture.image, points.interpolate(texture.uv[texture.uv_faces]))
    else:
        raise InputError("The shape to take colours from has neither vertex colours nor a texture with an image.")
    if colors.shape[1] == 3:
        colors = np.column_stack([colors, np.full(len(colors), 255.0)])
    return np.rint(colors).astype(np.uint8)


def sampled(image: NDArray[np.uint8], uv: FloatArray) -> FloatArray:
    """Sample a repeating image at texture coordinates, linearly between pixels.

    Parameters
    ----------
    image : (height, width, channels) uint8 array
    uv : (n, 2) array
        Texture coordinates, v upwards.

    Returns
    -------
    (n, channels) array
        In 0..255.
    """
    height, width = image.shape[:2]
    x = uv[:, 0] * width - 0.5
    y = (1.0 - uv[:, 1]) * height - 0.5
    left, top = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    right_weight, lower_weight = (x - left)[:, None], (y - top)[:, None]
    columns, rows = (left % width, (left + 1) % width), (top % height, (top + 1) % height)
    upper = image[rows[0], columns[0]] * (1 - right_weight) + image[rows[0], columns[1]] * right_weight
    lower = image[rows[1], columns[0]] * (1 - right_weight) + image[rows[1], columns[1]] * right_weight
    return upper * (1 - lower_weight) + lower * lower_weight


def _continuous_uv(
    faces: IntArray, reference: Mesh, points: BarycentricPoints, corner_uv: FloatArray, centre_uv: FloatArray
) -> FloatArray:
    """(m, 3, 2) coordinates of the corners' matches; of several at a seam, those nearest to the centre's (m, 2)."""
    uv = points.interpolate(corner_uv)[faces]
    best = np.linalg.norm(uv - centre_uv[:, None], axis=2)
    at_vertex = points.weights.max(axis=1) > 1 - 1e-9
    vertex = np.where(at_vertex, points.largest_corner(reference.faces), -1)[faces]  # (m, 3)
    flat = reference.faces.ravel().astype(np.int64)
    assert reference.texture is not None
    wedges = np.unique(np.stack([flat, reference.texture.uv_faces.ravel()], axis=1), axis=0)
    first = np.searchsorted(wedges[:, 0], np.arange(len(reference.vertices) + 1))
    count = np.diff(first)
    for turn in range(int(count.max(initial=1))):
        entries = np.argwhere((vertex >= 0) & (count[vertex] > np.maximum(turn, 1)))
        if not len(entries):
            break
        row, corner = entries.T
        other = reference.texture.uv[wedges[first[vertex[row, corner]] + turn, 1]]
        distance = np.linalg.norm(other - centre_uv[row], axis=1)
        closer = distance < best[row, corner]
        best[row[closer], corner[closer]] = distance[closer]
        uv[row[closer], corner[closer]] = other[closer]
    return uv


def _density(reference: Mesh, corner_uv: FloatArray) -> FloatArray:
    """(faces,) length in the image, as a fraction of its side, of a unit of length on the surface."""
    corners = reference.vertices[reference.faces]
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    uv_sides = np.linalg.norm(corner_uv - np.roll(corner_uv, 1, axis=1), axis=2)
    return uv_sides.max(axis=1) / np.maximum(sides.max(axis=1), 1e-300)


def _cell_size(pixels: FloatArray, count: int, shape: tuple[int, ...]) -> int:
    """Side of the square that a face is painted into: fine enough for most faces, small enough for all to fit."""
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
    corners: FloatArray,
    cell: int,
    closest: ClosestPoints,
    corner_uv: FloatArray,
) -> tuple[NDArray[np.uint8], FloatArray]:
    """The image extended by a square for each of the faces `rows`, and the coordinates of all faces in it."""
    step = cell + 2  # a margin of one pixel, so that a viewer's filter finds the same colours there
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
    # Beyond the long side and its margin, pixels repeat those before them: that half of a square is never shown.
    back = (np.maximum(i + j - cell, 0) + 1) // 2
    painted, repeated = np.unique((j - back + 1) * step + i - back + 1, return_inverse=True)
    points = np.einsum("sk,mkd->msd", weights[painted], corners[rows]).reshape(-1, 3)
    colors = np.rint(sampled(image, closest(points).interpolate(corner_uv))).astype(np.uint8)
    squares = colors.reshape(len(rows), len(painted), image.shape[2])[:, repeated.reshape(step, step)]
    uv = uv * [image.shape[1] / width, 1.0]
    uv[..., 1] = (uv[..., 1] * height + lines * step) / len(larger)
    for k, square in enumerate(squares):
        top, left = height + (k // across) * step, (k % across) * step
        larger[top : top + step, left : left + step] = square
        corner = np.array([[left + 1.5, top + 1.5], [left + cell + 0.5, top + 1.5], [left + 1.5, top + cell + 0.5]])
        uv[rows[k]] = np.column_stack([corner[:, 0] / width, 1 - corner[:, 1] / len(larger)])
    return larger, uv
