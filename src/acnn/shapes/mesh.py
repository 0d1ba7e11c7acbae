"""The two kinds of shape: a triangle mesh and a point cloud, as frozen records of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.errors import InputError
from acnn.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Texture:
    """A picture wrapped onto a mesh.

    Attributes
    ----------
    uv : (k, 2) array
        Texture coordinates, v upwards.
    uv_faces : (m, 3) array
        For each corner of each face its row in `uv`; seams need no doubled vertices.
    image : (height, width, 3 or 4) uint8 array or None
        Or None where only coordinates are known.
    """

    uv: FloatArray
    uv_faces: IntArray
    image: NDArray[np.uint8] | None = None


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing noticed while reading a shape.

    Attributes
    ----------
    kind : str
        A fixed word, e.g. `duplicate-faces`.
    count : int
        How many vertices, edges or faces are concerned.
    text : str
        What, where and what was done about it, for people.
    repaired : bool
        True where the shape in memory no longer has it.
    """

    kind: str
    count: int
    text: str
    repaired: bool


@dataclass(frozen=True, eq=False)
class Source:
    """Where a shape came from, and how its vertices relate to those in the file, or in the arrays.

    Attributes
    ----------
    path : str
        The file; empty where the shape was made from arrays.
    from_file : (vertices in the file,) array
        The vertex here that stands for each vertex there, -1 where it was dropped.
    to_file : (n,) array
        The vertex in the file that each vertex here came from.
    findings : tuple[Finding, ...]
        Everything that was noticed, repaired or not.
    """

    path: str
    from_file: IntArray
    to_file: IntArray
    findings: tuple[Finding, ...] = ()

    @property
    def name(self) -> str:
        """The file's name, or `arrays`."""
        return Path(self.path).name if self.path else "arrays"


_TIE = 1e-6
"""Distances that differ by less than this fraction are equal, so that labels do not depend on rounding."""


@dataclass(frozen=True, eq=False)
class BarycentricPoints:
    """Points on the triangles of a mesh, in barycentric coordinates.

    Parameters
    ----------
    faces : (n,) int array
        Face that contains each point; -1 where it is unknown.
    weights : (n, 3) float array
        Barycentric coordinates with respect to the corners of that face: at least 0, rows sum to 1.
    """

    faces: IntArray
    weights: FloatArray

    @classmethod
    def at_vertices(cls, mesh_faces: IntArray, vertices: ArrayLike) -> BarycentricPoints:
        """Vertices of a mesh as points of one of their faces.

        Parameters
        ----------
        mesh_faces : (m, 3) int array
            Faces of the mesh.
        vertices : (n,) int array
            Vertices; -1 stays unknown. Every other one must belong to a face.
        """
        flat, wanted = np.asarray(mesh_faces).ravel(), np.asarray(vertices)
        corner = np.zeros(int(flat.max()) + 1, np.int64)
        corner[flat[::-1]] = np.arange(len(flat))[::-1]  # the first face of each vertex
        at = np.where(wanted >= 0, corner[wanted], -3)
        return cls((at // 3).astype(np.int32), np.eye(3)[at % 3] * (at >= 0)[:, None])

    def __len__(self) -> int:
        return len(self.faces)

    def __getitem__(self, rows: Any) -> BarycentricPoints:
        return BarycentricPoints(self.faces[rows], self.weights[rows])

    def interpolate(self, corner_values: NDArray[Any]) -> FloatArray:
        """(n, ...) values at the points, from (m, 3, ...) values at the corners of every face."""
        return np.einsum("nk,nk...->n...", self.weights, np.asarray(corner_values)[self.faces])

    def largest_corner(self, mesh_faces: IntArray) -> IntArray:
        """(n,) the corner of largest weight of each point's face; no point may be unknown."""
        return np.asarray(mesh_faces)[self.faces, self.weights.argmax(axis=1)].astype(np.int32)

    def nearest_vertex(self, vertices: FloatArray, faces: IntArray) -> IntArray:
        """Find the vertex of the reference that is nearest to each point.

        It is the label of a vertex in training, and the match that counts as exact in evaluation. Candidates are the
        corners of the point's face and all vertices joined to them: the corner of largest weight is not always the
        nearest, and a vertex that is near in space may belong to another fold of the surface. Of several at the same
        distance it is that of the lowest number.

        Parameters
        ----------
        vertices : (m, 3) array
            Of the reference, in any unit.
        faces : (k, 3) array
            Of the reference.

        Returns
        -------
        (n,) int32 array
            -1 where the point is unknown.
        """
        from scipy.sparse import csr_array, eye_array

        known = np.flatnonzero(self.faces >= 0)
        if not len(known):
            return np.full(len(self.faces), -1, np.int32)
        m, corners = len(vertices), np.asarray(faces)[self.faces[known]]
        points = np.einsum("nk,nkd->nd", self.weights[known], vertices[corners])
        edges = np.asarray(faces)[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2).T
        joined = csr_array((np.ones(edges.shape[1]), edges), shape=(m, m))
        rows = np.repeat(np.arange(len(known)), 3)
        at_corners = csr_array((np.ones(corners.size), (rows, corners.ravel())), shape=(len(known), m))
        candidates = (at_corners @ (joined + joined.T + eye_array(m))).tocsr()  # row i: those of point i
        start, rows = candidates.indptr[:-1], np.repeat(np.arange(len(known)), np.diff(candidates.indptr))
        apart = np.linalg.norm(vertices[candidates.indices] - points[rows], axis=1)
        least = np.minimum.reduceat(apart, start)
        tied = apart <= (1 + _TIE) * least[rows]
        nearest = np.minimum.reduceat(np.where(tied, candidates.indices, m), start)
        labels = np.full(len(self.faces), -1, np.int32)
        labels[known] = nearest
        return labels


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh.

    Attributes
    ----------
    vertices : (n, 3) float64 array
    faces : (m, 3) int32 array
        Counter-clockwise seen from outside.
    colors : (n, 4) uint8 array or None
        RGBA, or None.
    texture : Texture or None
        Or None.
    source : Source or None
        Set by `load` and `from_arrays`, which also repair a mesh and turn its outside out.

    Raises
    ------
    TypeError
        Where these are not arrays.
    InputError
        Where their shapes do not fit together, a face uses a vertex that is not there, or a vertex of a face is not
        finite.
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

    Attributes
    ----------
    vertices : (n, 3) float64 array
    normals : (n, 3) array or None
        Unit vectors pointing outwards, or None.
    colors : (n, 4) uint8 array or None
        RGBA, or None.
    source : Source or None
        Set by `load` and `from_arrays`.

    Raises
    ------
    TypeError
        Where these are not arrays.
    InputError
        Where they do not fit together or are not finite.
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
