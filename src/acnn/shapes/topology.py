"""Topology of triangle meshes: edges and their faces, components, vertex fans, boundary loops, orientation.

Functions that take `first` and `second` see the surface as glued along these pairs of half-edges, and nowhere else:
(p,) int arrays, as `Edges.pairs` returns them. A fan is a maximal set of faces around one vertex that are glued to each
other; a vertex of a manifold has exactly one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from acnn.types import IntArray


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a triangle mesh, sorted by their vertices, with the half-edges and faces at each.

    Half-edge 3 f + i runs from corner i of face f to corner (i + 1) mod 3.

    Attributes
    ----------
    corners : (3 m,) int64 array
        The vertex where each half-edge begins.
    order : (3 m,) int64 array
        Half-edges, sorted by edge.
    starts : (e,) int64 array
        Index in `order` of the first half-edge of each edge.
    counts : (e,) int64 array
        Number of faces at each edge.
    """

    corners: IntArray
    order: IntArray
    starts: IntArray
    counts: IntArray

    @cached_property
    def vertices(self) -> IntArray:
        """(e, 2) int32 vertices, in the direction of the edge's first face, which lies to the left."""
        first = self.order[self.starts]
        return np.column_stack([self.corners[first], self.corners[next_corner(first)]]).astype(np.int32)

    @cached_property
    def faces(self) -> IntArray:
        """(e, 2) int32 faces at each edge, the second -1 at a boundary; the first two where there are more."""
        return self._at_first_two(np.arange(len(self.corners)) // 3)

    @cached_property
    def opposite(self) -> IntArray:
        """(e, 2) int32 vertex opposite the edge in each of its `faces`; -1 where there is no face."""
        return self._at_first_two(self.corners.reshape(-1, 3)[:, [2, 0, 1]].reshape(-1))

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Both half-edges of every edge with exactly two faces."""
        paired = self.starts[self.counts == 2]
        return self.order[paired], self.order[paired + 1]

    def boundary(self) -> IntArray:
        """The half-edges of edges with a single face."""
        return self.order[self.starts[self.counts == 1]]

    def _at_first_two(self, values: IntArray) -> IntArray:
        """Values (3 m,) of half-edges at the first two half-edges of each edge, -1 where there is only one."""
        table = np.full((len(self.starts), 2), -1, np.int32)
        table[:, 0] = values[self.order[self.starts]]
        several = self.counts > 1
        table[several, 1] = values[self.order[self.starts[several] + 1]]
        return table


def mesh_edges(faces: NDArray[np.integer]) -> Edges:
    """Build the edge table of a mesh.

    Parameters
    ----------
    faces : (m, 3) int array

    Returns
    -------
    Edges
        In the order of the smaller, then the larger vertex of each edge.
    """
    corners = faces.astype(np.int64, copy=False).reshape(-1)
    ends = corners.reshape(-1, 3)[:, [1, 2, 0]].reshape(-1)
    key = np.minimum(corners, ends) * (int(corners.max(initial=0)) + 1) + np.maximum(corners, ends)
    order = np.argsort(key, kind="stable")
    key = key[order]
    is_first = np.ones(len(key), bool)
    is_first[1:] = key[1:] != key[:-1]
    starts = np.flatnonzero(is_first)
    return Edges(corners, order, starts, np.diff(np.append(starts, len(key))))


def next_corner(half_edges: IntArray) -> IntArray:
    """The corner at the far end of each half-edge: 3 f + (i + 1) mod 3."""
    return np.where(half_edges % 3 == 2, half_edges - 2, half_edges + 1)


def groups(a: IntArray, b: IntArray, n: int) -> tuple[int, IntArray]:
    """Connected components of a graph.

    Parameters
    ----------
    a, b : (l,) int array
        The two nodes that each link joins.
    n : int
        Number of nodes.

    Returns
    -------
    int
        Number of components.
    (n,) int64 array
        Component of each node.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # Indices of 32 bits halve the time.
    links = coo_array((np.ones(len(a), np.int8), (a.astype(np.int32), b.astype(np.int32))), shape=(n, n)).tocsr()
    count, labels = connected_components(links, directed=False)
    return int(count), labels.astype(np.int64)


def face_components(first: IntArray, second: IntArray, m: int) -> tuple[int, IntArray]:
    """Number of components of m glued faces, and the (m,) component of each face."""
    return groups(first // 3, second // 3, m)


def vertex_components(faces: NDArray[np.integer], n: int) -> tuple[int, IntArray]:
    """Number of components of n vertices connected by (m, 3) faces, and the (n,) component of each vertex."""
    return groups(faces[:, [0, 1]].reshape(-1).astype(np.int64), faces[:, [1, 2]].reshape(-1).astype(np.int64), n)


def fans(faces: NDArray[np.integer], first: IntArray, second: IntArray) -> tuple[int, IntArray]:
    """Number of vertex fans of (m, 3) glued faces, and the (3 m,) fan of each corner."""
    corners = faces.astype(np.int64, copy=False).reshape(-1)
    begin_1, end_1, begin_2, end_2 = first, next_corner(first), second, next_corner(second)
    opposite = corners[begin_1] == corners[end_2]
    a = np.concatenate([begin_1, end_1])
    b = np.concatenate([np.where(opposite, end_2, begin_2), np.where(opposite, begin_2, end_2)])
    return groups(a, b, len(corners))


def unpaired_half_edges(first: IntArray, second: IntArray, m: int) -> IntArray:
    """The half-edges of m glued faces that are in no pair: the boundary of the surface."""
    unpaired = np.ones(3 * m, bool)
    unpaired[first] = False
    unpaired[second] = False
    return np.flatnonzero(unpaired)


def boundary_loops(faces: NDArray[np.integer], half_edges: IntArray) -> tuple[int, IntArray]:
    """Number of loops that boundary half-edges form, and the loop of each half-edge."""
    if len(half_edges) == 0:
        return 0, half_edges
    corners = faces.reshape(-1)
    begin, end = corners[half_edges], corners[next_corner(half_edges)]
    vertices, local = np.unique(np.concatenate([begin, end]), return_inverse=True)
    count, labels = groups(local[: len(begin)], local[len(begin) :], len(vertices))
    return count, labels[local[: len(begin)]]


def orientations_agree(faces: NDArray[np.integer], first: IntArray, second: IntArray) -> NDArray[np.bool_]:
    """(p,) whether paired half-edges run in opposite directions, as those of consistently oriented faces do."""
    corners = faces.reshape(-1)
    return np.asarray(corners[first] != corners[second])


def consistent_flips(
    faces: NDArray[np.integer], first: IntArray, second: IntArray
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find the faces to flip so that all neighbours are consistently oriented.

    In the orientation double cover each face appears twice, as it is and flipped, and neighbours are joined where they
    agree. An orientable component lifts to two sheets, of which the one that flips fewer faces is taken; a component
    that lifts to a single sheet (a Moebius band) is not orientable.

    Returns
    -------
    (m,) bool array
        Faces to flip.
    (m,) bool array
        Faces of components that are not orientable; none of these is flipped.
    """
    m = len(faces)
    sheets = double_cover(first // 3, second // 3, orientations_agree(faces, first, second), m)
    plain, flipped = sheets[:m], sheets[m:]
    sheet_sizes = np.bincount(plain, minlength=2 * m)  # faces left as they are if this sheet is taken
    kept, lost = sheet_sizes[plain], sheet_sizes[flipped]
    flips = (kept < lost) | ((kept == lost) & (plain > flipped))
    non_orientable = plain == flipped
    return flips & ~non_orientable, non_orientable


def double_cover(f: IntArray, g: IntArray, agree: NDArray[np.bool_], m: int) -> IntArray:
    """(2 m,) component of every face as it is and of every face flipped, in the orientation double cover.

    Parameters
    ----------
    f, g : (p,) int array
        Neighbouring faces.
    agree : (p,) bool array
        Where these are consistently oriented.
    m : int
        Number of faces.
    """
    same, other = np.where(agree, g, g + m), np.where(agree, g + m, g)
    return groups(np.concatenate([f, f + m]), np.concatenate([same, other]), 2 * m)[1]


def corner_columns(vertices: NDArray[np.float64], faces: NDArray[np.integer]) -> list[list[NDArray[np.float64]]]:
    """Coordinate k of corner i of every face as [i][k], each (m,): contiguous columns, for speed on large meshes."""
    columns = [np.ascontiguousarray(vertices[:, k]) for k in range(3)]
    return [[column[faces[:, i]] for column in columns] for i in range(3)]


def cross(u: list[NDArray[np.float64]], v: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """The cross product of vectors given as three columns."""
    return [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]


def dot(u: list[NDArray[np.float64]], v: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The inner product of vectors given as three columns."""
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def minus(u: list[NDArray[np.float64]], v: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """The difference of vectors given as three columns."""
    return [a - b for a, b in zip(u, v, strict=True)]
