"""The two kinds of shape: a triangle mesh and a point cloud, as frozen records of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError

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
    """Where a shape came from, and how its vertices relate to those in the file, or in the arrays.

    - path: the file; empty where the shape was made from arrays
    - from_file: (vertices in the file,) the vertex here that stands for each vertex there, -1 where it was dropped
    - to_file: (n,) the vertex in the file that each vertex here came from
    - findings: everything that was noticed, repaired or not
    """

    path: str
    from_file: IntArray
    to_file: IntArray
    findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """The file's name, or `arrays`."""
        return Path(self.path).name if self.path else "arrays"


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh.

    - vertices: (n, 3) float64
    - faces: (m, 3) int32, counter-clockwise seen from outside
    - colors: (n, 4) uint8 RGBA, or None
    - texture: or None
    - source: set by `load` and `from_arrays`, which also repair a mesh and turn its outside out

    Raises TypeError where these are not arrays, InputError where their shapes do not fit together, a face uses a vertex
    that is not there, or a vertex of a face is not finite.
    """

    vertices: FloatArray
    faces: IntArray
    colors: NDArray[np.uint8] | None = None
    texture: Texture | None = None
    source: Source | None = None

    def __post_init__(self) -> None:
        n = _rows("Mesh", "vertices", self.vertices, 3, "fiu")
        _rows("Mesh", "faces", self.faces, 3, "iu")
        if self.colors is not None:
            _rows("Mesh", "colors", self.colors, 4, "u", n)
        if len(self.faces) and (self.faces.min() < 0 or self.faces.max() >= n):
            face, corner = np.argwhere((self.faces < 0) | (self.faces >= n))[0]
            raise InputError(f"Mesh: face {face} uses vertex {self.faces[face, corner]}, but there are {n} vertices.")
        if not np.isfinite(self.vertices).all():
            used = np.unique(self.faces)
            bad = used[~np.isfinite(self.vertices[used]).all(axis=1)]
            if len(bad):  # vertices without a face may be anywhere until repair leaves them out
                raise InputError(f"Mesh: vertex {bad[0]} is {self.vertices[bad[0]]}; {len(bad)} are not finite.")

    def __repr__(self) -> str:
        return f"Mesh({len(self.vertices)} vertices, {len(self.faces)} faces)"


@dataclass(frozen=True, eq=False)
class PointCloud:
    """Points sampled from a surface, without connectivity.

    - vertices: (n, 3) float64
    - normals: (n, 3) unit vectors pointing outwards, or None
    - colors: (n, 4) uint8 RGBA, or None
    - source: set by `load` and `from_arrays`

    Raises TypeError where these are not arrays, InputError where they do not fit together or are not finite.
    """

    vertices: FloatArray
    normals: FloatArray | None = None
    colors: NDArray[np.uint8] | None = None
    source: Source | None = None

    def __post_init__(self) -> None:
        n = _rows("PointCloud", "vertices", self.vertices, 3, "fiu")
        if self.colors is not None:
            _rows("PointCloud", "colors", self.colors, 4, "u", n)
        if self.normals is not None:
            _rows("PointCloud", "normals", self.normals, 3, "f", n)
        for name, array in (("point", self.vertices), ("normal", self.normals)):
            if array is not None and not np.isfinite(array).all():
                bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
                raise InputError(f"PointCloud: {name} {bad[0]} is {array[bad[0]]}; {len(bad)} are not finite.")

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


def _rows(where: str, name: str, array: Any, width: int, kinds: str, rows: int | None = None) -> int:
    """The number of rows of an array (rows, width) of numbers; raises where it is anything else."""
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"{where}: {name} must be a NumPy array, not {type(array).__name__}; acnn.from_arrays takes lists, tensors "
            "and trimesh objects"
        )
    if array.ndim != 2 or array.shape[1] != width or (rows is not None and len(array) != rows):
        raise InputError(
            f"{where}: {name} has shape {array.shape}, but ({'n' if rows is None else rows}, {width}) is needed."
        )
    if array.dtype.kind not in kinds:
        needed = {"fiu": "real numbers", "f": "real numbers", "iu": "whole numbers", "u": "uint8"}[kinds]
        raise InputError(f"{where}: {name} holds {array.dtype}, but {needed} are needed.")
    return len(array)
