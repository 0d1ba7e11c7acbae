"""Attributes of the built-in humans: a texture and landmarks, in their shared connectivity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.builtin import builtin_human
from acnn.errors import InputError
from acnn.shapes.mesh import Mesh, Shape, Texture

HEIGHT, MARGIN, SQUARES = 1024, 8, 26
"""Height of the texture and margin of its two views in pixels, and squares along the height of the body."""


def body_landmarks() -> dict[str, int]:
    """Named vertices of the built-in humans.

    Returns
    -------
    dict[str, int]
        Extreme points in the pose with raised arms.
    """
    x, y, z = builtin_human(0, 1).vertices.T
    face, foot = (y > 1.7) & (y < 1.85), y < 0.1

    def extreme(values: NDArray[np.float64], among: NDArray[np.bool_] | None = None) -> int:
        return int(np.argmax(values if among is None else np.where(among, values, -np.inf)))

    return {
        "crown": extreme(y),
        "nose": extreme(z, face),
        "left_hand": extreme(x),
        "right_hand": extreme(-x),
        "left_toe": extreme(z, foot & (x > 0)),
        "right_toe": extreme(z, foot & (x < 0)),
        "left_heel": extreme(-z, foot & (x > 0)),
        "right_heel": extreme(-z, foot & (x < 0)),
    }


def with_texture(human: Shape) -> Mesh:
    """Give a built-in human a checkerboard texture: front and back views of the body in its rest pose.

    Parameters
    ----------
    human : Shape
        A built-in human in the original triangulation.

    Returns
    -------
    Mesh
        The same mesh with texture coordinates and an image.

    Raises
    ------
    InputError
        If the shape has other faces.
    """
    upright = builtin_human()
    if not isinstance(human, Mesh) or not np.array_equal(upright.faces, human.faces):
        raise InputError("This texture fits only built-in humans in their original triangulation.")
    low, size = upright.vertices.min(axis=0), np.ptp(upright.vertices, axis=0)
    scale = (HEIGHT - 2 * MARGIN) / size[1]  # pixels per unit of length
    half = round(scale * size[0]) + 2 * MARGIN
    x, y = ((upright.vertices - low)[:, :2] * scale + MARGIN).T
    views = [np.column_stack([u / (2 * half), y / HEIGHT]) for u in (x, 2 * half - x)]
    corners = upright.vertices[upright.faces]
    behind = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2] < 0
    texture = Texture(
        np.concatenate(views), (upright.faces + len(x) * behind[:, None]).astype(np.int32), _chequered(half)
    )
    return replace(human, texture=texture)


def _chequered(half: int) -> NDArray[np.uint8]:
    """(HEIGHT, 2 half, 3) checkerboard whose colours vary with height and side, warm in front and cold at the back."""
    row, column = np.mgrid[:HEIGHT, : 2 * half]
    edge = HEIGHT / SQUARES
    across = np.where(column < half, column, 2 * half - 1 - column)  # the same side of the body in both views
    dark = ((across - half / 2) // edge + row // edge) % 2 == 1
    up, side = 1.0 - row / HEIGHT, across / half
    front = np.stack([0.95 - 0.25 * up, 0.25 + 0.6 * up, 0.15 + 0.35 * side], axis=-1)
    back = np.stack([0.15 + 0.35 * side, 0.25 + 0.5 * up, 0.95 - 0.35 * up], axis=-1)
    color = np.where((column < half)[..., None], front, back)
    return np.rint(255 * np.where(dark[..., None], 0.55 * color, 0.45 + 0.55 * color)).astype(np.uint8)
