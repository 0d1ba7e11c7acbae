"""The first result of a demo: two built-in humans matched by the pretrained model, with a texture transferred."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.datasets import builtin_human
from acnn.datasets.opening import humans_dataset
from acnn.errors import InputError
from acnn.files import make_folder
from acnn.pipeline.match import HUMANS
from acnn.pipeline.match_files import FileMatch, match_files
from acnn.pipeline.transfer_files import transfer_files
from acnn.shapes import Mesh, load, save
from acnn.shapes.shape import Shape, Texture
from acnn.types import Progress, begin_stage

A, B = "human_16_05_remeshed", "human_18_02"
"""Humans of the test split in different poses; A has a triangulation of its own."""

HEIGHT, MARGIN, SQUARES = 1024, 8, 26
"""Pixels along the height of the texture and around each of its two views, and squares along the height of the body."""

Show = Callable[[FileMatch, Mesh, Path], Any]
"""Shows a match and A with the texture of B in a folder."""


def first_match(folder: Path, show: Show, *, progress: Progress | None = None) -> dict[str, Any]:
    """Match two built-in humans with the pretrained model, transfer a texture from one to the other, and show both.

    Parameters
    ----------
    folder
        Gets both shapes (B with a texture), the files of `match_files`, A with the texture (`a_textured.glb`), and what
        `show` writes.
    show
        Called with the match, A with the texture, and the folder, as soon as they are there.
    progress
        Called with (done, total); the stages are those of `match_pair`.

    Returns
    -------
    dict
        The facts of `match_files`, and `textured`, the file of A with the texture.
    """
    begin_stage(progress, "two humans")
    humans = humans_dataset(copies=1)
    a, b = folder / f"{A}.ply", folder / f"{B}.obj"
    make_folder(a)
    save(humans.named(A).read().shape, a)
    save(with_texture(humans.named(B).read().shape), b)
    kept: list[FileMatch] = []
    facts = match_files(a, b, HUMANS, folder, barycentric=True, progress=progress, keep=kept.append)
    begin_stage(progress, "texture")
    textured = folder / "a_textured.glb"
    transfer_files(folder, b, a, textured, "texture")
    painted = load(textured)
    assert isinstance(painted, Mesh)
    show(kept[0], painted, folder)
    return facts | {"textured": str(textured)}


def with_texture(human: Shape) -> Mesh:
    """A built-in human with a chequered texture: its front and its back, as seen on a body that stands upright.

    Parameters
    ----------
    human
        With the faces that all built-in humans share.

    Returns
    -------
    Mesh
        The same with texture coordinates and an image.
    """
    upright = builtin_human()
    if not isinstance(human, Mesh) or not np.array_equal(upright.faces, human.faces):
        raise InputError("Only built-in humans in their own triangulation have this texture.")
    low, size = upright.vertices.min(axis=0), np.ptp(upright.vertices, axis=0)
    scale = (HEIGHT - 2 * MARGIN) / size[1]  # pixels in a unit of length
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
    """(HEIGHT, 2 half, 3) squares whose colours change with height and side, warm in front and cold behind."""
    row, column = np.mgrid[:HEIGHT, : 2 * half]
    edge = HEIGHT / SQUARES
    across = np.where(column < half, column, 2 * half - 1 - column)  # the same side of the body on both views
    dark = ((across - half / 2) // edge + row // edge) % 2 == 1
    up, side = 1.0 - row / HEIGHT, across / half
    front = np.stack([0.95 - 0.25 * up, 0.25 + 0.6 * up, 0.15 + 0.35 * side], axis=-1)
    back = np.stack([0.15 + 0.35 * side, 0.25 + 0.5 * up, 0.95 - 0.35 * up], axis=-1)
    color = np.where((column < half)[..., None], front, back)
    return np.rint(255 * np.where(dark[..., None], 0.55 * color, 0.45 + 0.55 * color)).astype(np.uint8)
