"""Built-in humans in other triangulations, stored, so that nothing has to be compiled or computed to use them."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from acnn.datasets.builtin import builtin_human, builtin_humans
from acnn.files import write_atomic
from acnn.shapes.mesh import BarycentricPoints, Mesh
from acnn.types import FloatArray, IntArray

A, B, SCANNED = (16, 5), (18, 2), (19, 4)
"""Subject and pose of A, B and the point cloud: of the test split, which the pretrained model was not trained on."""

VERTICES, POINTS, COARSE = 2300, 3000, 600
"""Number of vertices of A, of points of the cloud, and of vertices of the coarse connectivity."""

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


if __name__ == "__main__":
    write_sample_shapes(Path(sys.argv[1]))
