"""The two kinds of shape: a triangle mesh and a point cloud, as frozen records of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Texture:
    """A picture wrapped onto a mesh.

    - uv: (k, 2) texture coordinates, v upwards
    - uv_faces: (m, 3) for each corner of each face its row in `uv`; seams need no doubled vertices
    - image: (height, width, 3 or 4) uint8, or None where only coordinates are known
    """

    uv: FloatArray
    uv_faces: IntArray
    image: NDArray[np.uint8] | None = None


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing noticed while reading a shape.

    - kind: a fixed word, e.g. `duplicate-faces`
    - count: how many vertices, edges or faces are concerned
    - text: what, where and what was done about it, for people
    - repaired: True where the shape in memory no longer has it
    """

    kind: str
    count: int
    text: str
    repaired: bool


@dataclass(frozen=True, eq=False)
class Source:
    """Where a shape came from, and how its vertices relate to those in the file.

    - path: the file
    - from_file: (vertices in the file,) the vertex here that stands for each vertex there, -1 where it was dropped
    - to_file: (n,) the vertex in the file that each vertex here came from
    - findings: everything that was noticed, repaired or not
    """

    path: str
    from_file: IntArray
    to_file: IntArray
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh.

    - vertices: (n, 3) float64
    - faces: (m, 3) int32, counter-clockwise seen from outside
    - colors: (n, 4) uint8 RGBA, or None
    - texture: or None
    - source: set by `load`
    """

    vertices: FloatArray
    faces: IntArray
    colors: NDArray[np.uint8] | None = None
    texture: Texture | None = None
    source: Source | None = None

    def __repr__(self) -> str:
        return f"Mesh({len(self.vertices)} vertices, {len(self.faces)} faces)"


@dataclass(frozen=True, eq=False)
class PointCloud:
    """Points sampled from a surface, without connectivity.

    - vertices: (n, 3) float64
    - normals: (n, 3) unit vectors pointing outwards, or None
    - colors: (n, 4) uint8 RGBA, or None
    - source: set by `load`
    """

    vertices: FloatArray
    normals: FloatArray | None = None
    colors: NDArray[np.uint8] | None = None
    source: Source | None = None

    def __repr__(self) -> str:
        return f"PointCloud({len(self.vertices)} points)"


Shape: TypeAlias = Mesh | PointCloud


def content_hash(shape: Shape) -> str:
    """Hash of a shape's points, by which it is recognised under another name.

    The order of vertices, faces, colours and everything else do not matter, nor does a file of single precision in
    between. A shape that was moved, scaled or remeshed is another one.

    Parameters
    ----------
    shape : Mesh or PointCloud

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    points = np.asarray(shape.vertices, np.float32) + np.float32(0)  # so that -0 is 0
    ordered = np.ascontiguousarray(points[np.lexsort(points.T)])
    return blake2b(ordered.tobytes(), digest_size=16).hexdigest()
