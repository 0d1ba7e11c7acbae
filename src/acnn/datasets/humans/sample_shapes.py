"""Built-in humans as sample shapes: in other triangulations, with landmarks, with a texture.

The other triangulations are stored, so that nothing has to be compiled or computed to use them.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.builtin import builtin_human, builtin_humans
from acnn.errors import InputError
from acnn.files import write_atomic
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape, Texture
from acnn.types import FloatArray, IntArray

A, B, SCANNED = (16, 5), (18, 2), (19, 4)
"""Subject and pose of A, B and the point cloud: of the test split, which the pretrained model was not trained on."""

VERTICES, POINTS, COARSE = 2300, 3000, 600
"""Number of vertices of A, of points of the cloud, and of vertices of the coarse connectivity."""

HEIGHT, MARGIN, SQUARES = 1024, 8, 26
"""Height of the texture and margin of its two views in pixels, and squares along the height of the body."""

FILE = "data/sample.npz"


@dataclass(frozen=True, eq=False)
class SampleShapes:
    """Built-in humans in other triangulations.

    Attributes
    ----------
    a : Mesh
        The human `A`, remeshed.
    a_truth : BarycentricPoints
        Points of the original mesh that the vertices of A come from.
    points : (k, 3) float64 array
        Points on the surface of the human `SCANNED`.
    kept : (c,) array
        The vertices of the built-in humans that are also those of the coarse connectivity.
    faces : (m, 3) int32 array
        Of the coarse connectivity.
    """

    a: Mesh
    a_truth: BarycentricPoints
    points: FloatArray
    kept: IntArray
    faces: IntArray

    def coarse_human(self, subject: int, pose: int) -> Mesh:
        """Return a built-in human in the coarse connectivity."""
        return Mesh(builtin_human(subject, pose).vertices[self.kept], self.faces.copy())


def sample_shapes() -> SampleShapes:
    """Load the stored shapes."""
    stream = resources.files("acnn.datasets").joinpath(FILE).open("rb")
    with stream, np.load(stream, allow_pickle=False) as data:
        return SampleShapes(
            Mesh(data["a_vertices"].astype(np.float64), data["a_faces"].astype(np.int32)),
            BarycentricPoints(data["truth_faces"].astype(np.int32), data["truth_weights"].astype(np.float64)),
            data["points"].astype(np.float64),
            data["kept"].astype(np.int64),
            data["faces"].astype(np.int32),
        )


def make_sample_shapes() -> SampleShapes:
    """Compute the shapes that are stored."""
    from acnn.surface.simplify import decimate, remesh

    humans = builtin_humans()
    a = remesh(builtin_human(*A), vertices=VERTICES, seed=1)
    cloud = remesh(builtin_human(*SCANNED), vertices=POINTS, density=0.0, seed=2)
    kept, faces = decimate(humans.vertices[0], humans.faces, COARSE)
    return SampleShapes(a.mesh, a.truth, cloud.mesh.vertices, kept, faces)


def write_sample_shapes(path: Path) -> None:
    """Write the file of stored shapes: `python -m acnn.datasets.humans.sample_shapes FILE`."""
    shapes = make_sample_shapes()
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        a_vertices=shapes.a.vertices.astype(np.float32),
        a_faces=shapes.a.faces.astype(np.uint16),
        truth_faces=shapes.a_truth.faces.astype(np.uint16),
        truth_weights=shapes.a_truth.weights.astype(np.float32),
        points=shapes.points.astype(np.float32),
        kept=shapes.kept.astype(np.uint16),
        faces=shapes.faces.astype(np.uint16),
    )
    write_atomic(path, buffer.getvalue())


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


if __name__ == "__main__":
    write_sample_shapes(Path(sys.argv[1]))
