"""Shapes as frozen records of arrays: meshes, point clouds, their textures and sources, and points on a surface."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.errors import InputError
from acnn.shapes.topology import mesh_edges
from acnn.types import FloatArray, IntArray

TIE = 1e-6
"""Distances that differ by less than this fraction are equal, so that labels do not depend on rounding."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh.

    Attributes
    ----------
    vertices : (n, 3) float64 array
        Coordinates, in any unit.
    faces : (m, 3) int32 array
        Vertices of each triangle, counter-clockwise seen from outside.
    colors : (n, 4) uint8 array or None
        RGBA colours of the vertices.
    texture : Texture or None
        Texture coordinates and image.
    source : Source or None
        Set by `load` and `from_arrays`, which also repair a mesh and orient it outwards.

    Raises
    ------
    TypeError
        Where these are not arrays.
    InputError
        Where their shapes do not fit together, a face uses a vertex that does not exist, or a vertex of a face is not
        finite.

    Examples
    --------
    >>> vertices = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    >>> Mesh(vertices, np.array([[0, 1, 2]]))
    Mesh(3 vertices, 1 faces)
    >>> Mesh(vertices, np.array([[0, 1, 3]]))
    Traceback (most recent call last):
    acnn.errors.InputError: Mesh: face 0 uses vertex 3, but there are 3 vertices.
    """

    vertices: FloatArray
    faces: IntArray
    colors: NDArray[np.uint8] | None = None
    texture: Texture | None = None
    source: Source | None = None

    def __post_init__(self) -> None:
        n = _check_rows("Mesh", "vertices", self.vertices, 3, "fiu")
        _check_rows("Mesh", "faces", self.faces, 3, "iu")
        if self.colors is not None:
            _check_rows("Mesh", "colors", self.colors, 4, "u", n)
        if len(self.faces) and (self.faces.min() < 0 or self.faces.max() >= n):
            face, corner = np.argwhere((self.faces < 0) | (self.faces >= n))[0]
            raise InputError(f"Mesh: face {face} uses vertex {self.faces[face, corner]}, but there are {n} vertices.")
        if not np.isfinite(self.vertices).all():
            used = np.unique(self.faces)
            invalid = used[~np.isfinite(self.vertices[used]).all(axis=1)]
            if len(invalid):  # vertices without a face may be anything until repair removes them
                raise InputError(
                    f"Mesh: vertex {invalid[0]} is {self.vertices[invalid[0]]}; {len(invalid)} are not finite."
                )

    @staticmethod
    def from_library(value: Any) -> Shape | None:
        """A shape of trimesh, pyvista or PyTorch Geometric as a mesh or a cloud; None for anything else.

        Public functions that take a shape call it for other arguments (`acnn.arguments.check_arguments`).
        """
        from acnn.shapes.arrays import converted_shape

        return converted_shape(value)

    def __repr__(self) -> str:
        return f"Mesh({len(self.vertices)} vertices, {len(self.faces)} faces)"


@dataclass(frozen=True, eq=False)
class PointCloud:
    """Points sampled from a surface, without connectivity.

    Attributes
    ----------
    vertices : (n, 3) float64 array
        Coordinates, in any unit.
    normals : (n, 3) float64 array or None
        Unit vectors pointing outwards.
    colors : (n, 4) uint8 array or None
        RGBA colours of the points.
    source : Source or None
        Set by `load` and `from_arrays`.

    Raises
    ------
    TypeError
        Where these are not arrays.
    InputError
        Where they do not fit together or are not finite.

    Examples
    --------
    >>> PointCloud(np.zeros((4, 3)))
    PointCloud(4 points)
    """

    vertices: FloatArray
    normals: FloatArray | None = None
    colors: NDArray[np.uint8] | None = None
    source: Source | None = None

    def __post_init__(self) -> None:
        n = _check_rows("PointCloud", "vertices", self.vertices, 3, "fiu")
        if self.colors is not None:
            _check_rows("PointCloud", "colors", self.colors, 4, "u", n)
        if self.normals is not None:
            _check_rows("PointCloud", "normals", self.normals, 3, "f", n)
        for name, array in (("point", self.vertices), ("normal", self.normals)):
            if array is not None and not np.isfinite(array).all():
                invalid = np.flatnonzero(~np.isfinite(array).all(axis=1))
                raise InputError(
                    f"PointCloud: {name} {invalid[0]} is {array[invalid[0]]}; {len(invalid)} are not finite."
                )

    def __repr__(self) -> str:
        return f"PointCloud({len(self.vertices)} points)"


Shape: TypeAlias = Mesh | PointCloud


@dataclass(frozen=True, eq=False)
class Texture:
    """Texture coordinates of a mesh, and the image that they refer to.

    Attributes
    ----------
    uv : (k, 2) float64 array
        Texture coordinates, v upwards.
    uv_faces : (m, 3) int32 array
        Row of `uv` for each corner of each face, so that seams need no duplicate vertices.
    image : (height, width, 3 or 4) uint8 array or None
        RGB or RGBA, top row first; None where only coordinates are known.

    Examples
    --------
    >>> red = np.full((2, 2, 3), [255, 0, 0], np.uint8)
    >>> texture = Texture(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([[0, 1, 2]]), red)
    >>> mesh = Mesh(np.eye(3), np.array([[0, 1, 2]]), texture=texture)
    >>> mesh.texture.uv[mesh.texture.uv_faces].shape
    (1, 3, 2)
    """

    uv: FloatArray
    uv_faces: IntArray
    image: NDArray[np.uint8] | None = None


@dataclass(frozen=True, eq=False)
class Finding:
    """One observation made while a shape was read: a defect, or something that a user should know.

    Attributes
    ----------
    kind : str
        One of a fixed set of names, e.g. `duplicate-faces`.
    count : int
        Number of vertices, edges or faces concerned.
    text : str
        What, where, and what was done about it, for humans.
    repaired : bool
        Whether the shape in memory is free of it.
    """

    kind: str
    count: int
    text: str
    repaired: bool


@dataclass(frozen=True, eq=False)
class Source:
    """Origin of a shape, and the correspondence of its vertices with those of the file or the arrays.

    Attributes
    ----------
    path : str
        The file; empty for a shape made from arrays.
    from_file : (vertices in the file,) int32 array
        The vertex of the shape for each vertex of the file, -1 where it was removed.
    to_file : (n,) int32 array
        The vertex of the file for each vertex of the shape.
    findings : tuple[Finding, ...]
        All findings, repaired or not.
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
class BarycentricPoints:
    """Points on the triangles of a mesh, in barycentric coordinates.

    Attributes
    ----------
    faces : (n,) int32 array
        Face that contains each point; -1 where it is unknown.
    weights : (n, 3) float64 array
        Barycentric coordinates with respect to the corners of that face: at least 0, rows sum to 1.

    Examples
    --------
    >>> faces = np.array([[0, 1, 2], [0, 2, 3]])
    >>> points = BarycentricPoints.at_vertices(faces, [3, 1, -1])
    >>> points.faces.tolist()
    [1, 0, -1]
    >>> heights = np.array([0.0, 1, 2, 3])
    >>> points[:2].interpolate(heights[faces]).tolist()
    [3.0, 1.0]
    """

    faces: IntArray
    weights: FloatArray

    @classmethod
    def at_vertices(cls, mesh_faces: IntArray, vertices: ArrayLike) -> BarycentricPoints:
        """Vertices of a mesh as points on one of their faces.

        Parameters
        ----------
        mesh_faces : (m, 3) int array
            Faces of the mesh.
        vertices : (n,) int array
            Vertices, each with a face; -1 stays unknown.

        Returns
        -------
        BarycentricPoints
            On the first face of each vertex.
        """
        corners, vertices = np.asarray(mesh_faces).ravel(), np.asarray(vertices)
        first = np.zeros(int(corners.max()) + 1, np.int64)
        first[corners[::-1]] = np.arange(len(corners))[::-1]
        at = np.where(vertices >= 0, first[vertices], -3)
        return cls((at // 3).astype(np.int32), np.eye(3)[at % 3] * (at >= 0)[:, None])

    def __len__(self) -> int:
        return len(self.faces)

    def __getitem__(self, rows: Any) -> BarycentricPoints:
        return BarycentricPoints(self.faces[rows], self.weights[rows])

    def interpolate(self, corner_values: NDArray[Any]) -> FloatArray:
        """(n, ...) values at the points, from (m, 3, ...) values at the corners of every face."""
        return np.einsum("nk,nk...->n...", self.weights, np.asarray(corner_values)[self.faces])

    def largest_corner(self, mesh_faces: IntArray) -> IntArray:
        """(n,) int32 corner of largest weight of each point's face; no point may be unknown."""
        return np.asarray(mesh_faces)[self.faces, self.weights.argmax(axis=1)].astype(np.int32)

    def nearest_vertex(self, vertices: FloatArray, faces: IntArray) -> IntArray:
        """Find the vertex of the mesh that is nearest to each point.

        It is the label of a vertex in training, and the match that counts as exact in evaluation. Candidates are the
        corners of the point's face and their neighbours: the corner of largest weight is not always the nearest, and a
        vertex that is near in space may belong to another fold of the surface. Of several at the same distance it is
        the one of lowest index.

        Parameters
        ----------
        vertices : (m, 3) array
            Of the mesh, in any unit.
        faces : (k, 3) array
            Of the mesh.

        Returns
        -------
        (n,) int32 array
            -1 where the point is unknown.
        """
        from scipy.sparse import csr_array, eye_array

        labels = np.full(len(self.faces), -1, np.int32)
        known = np.flatnonzero(self.faces >= 0)
        if not len(known):
            return labels
        m, corners = len(vertices), np.asarray(faces)[self.faces[known]]
        points = np.einsum("nk,nkd->nd", self.weights[known], vertices[corners])
        edges = mesh_edges(np.asarray(faces)).vertices
        adjacency = csr_array((np.ones(len(edges)), edges.T), shape=(m, m))
        rows = np.repeat(np.arange(len(known)), 3)
        at_corners = csr_array((np.ones(corners.size), (rows, corners.ravel())), shape=(len(known), m))
        candidates = (at_corners @ (adjacency + adjacency.T + eye_array(m))).tocsr()  # row i: those of point i
        start, rows = candidates.indptr[:-1], np.repeat(np.arange(len(known)), np.diff(candidates.indptr))
        distances = np.linalg.norm(vertices[candidates.indices] - points[rows], axis=1)
        tied = distances <= (1 + TIE) * np.minimum.reduceat(distances, start)[rows]
        labels[known] = np.minimum.reduceat(np.where(tied, candidates.indices, m), start)
        return labels


def content_hash(shape: Shape) -> str:
    """Hash of a shape's points, which identifies it under another name.

    It does not depend on the order of vertices, on faces or colours, or on rounding to single precision in a file. A
    shape that was moved, scaled or remeshed has another hash.

    Parameters
    ----------
    shape : Mesh or PointCloud

    Returns
    -------
    str
        32 hexadecimal digits.
    """
    points = np.asarray(shape.vertices, np.float32) + np.float32(0)  # -0 becomes 0
    ordered = np.ascontiguousarray(points[np.lexsort(points.T)])
    return blake2b(ordered.tobytes(), digest_size=16).hexdigest()


def _check_rows(where: str, name: str, array: Any, width: int, kinds: str, rows: int | None = None) -> int:
    """Number of rows of an array, which must be (rows, width) and of one of the `kinds` of dtype."""
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"{where}: {name} must be a NumPy array, not {type(array).__name__}; acnn.from_arrays takes lists, tensors "
            "and shapes of other libraries"
        )
    if array.ndim != 2 or array.shape[1] != width or (rows is not None and len(array) != rows):
        raise InputError(
            f"{where}: {name} has shape {array.shape}, but ({'n' if rows is None else rows}, {width}) is needed."
        )
    if array.dtype.kind not in kinds or (kinds == "u" and array.dtype != np.uint8):
        needed = {"fiu": "real numbers", "f": "real numbers", "iu": "integers", "u": "uint8"}[kinds]
        raise InputError(f"{where}: {name} holds {array.dtype}, but {needed} are needed.")
    return len(array)
