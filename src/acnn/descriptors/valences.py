"""What the triangulation alone says about a vertex: the valences around it, ring by ring.

Nothing here depends on where vertices are. On shapes that share one triangulation, such as registrations of a template,
these numbers are the same for corresponding vertices whatever the pose and the body; between different triangulations
they mean nothing at all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from acnn.errors import InputError
from acnn.shapes.mesh import Mesh, Shape
from acnn.shapes.topology import mesh_edges
from acnn.surface.surface import Surface

RINGS = 9
"""Ring 0 is the vertex itself, ring r all that is r edges away."""

VALENCES = (4, 5, 6, 7, 8)
"""The valences that are told apart; fewer count as the first, more as the last."""

RINGS_LENGTH = RINGS * (len(VALENCES) + 1)
"""Numbers in a row of `rings`."""


def rings(surface: Surface) -> NDArray[np.float32]:
    """(n, 54) for every vertex and each of the 9 rings around it: 5 counts of vertices by valence, and a handedness.

    The handedness adds up +1 for a triangle whose three valences differ and grow counter-clockwise, -1 where they grow
    clockwise, shared by its corners: the counts of a mirrored mesh are the same, its handedness has the other sign. All
    are divided by what a ring of a regular mesh has in all, 6 r vertices.

    Raises
    ------
    InputError
        For a cloud, which has no triangulation of its own.
    """
    if surface.is_cloud:
        raise InputError("Descriptors of kind 'rings' come from a triangulation, which a point cloud does not have.")
    n, faces = len(surface.vertices), surface.faces
    edges = mesh_edges(faces).vertices
    one_way = sparse.csr_matrix((np.ones(len(edges), np.int32), (edges[:, 0], edges[:, 1])), shape=(n, n))
    adjacent = sparse.csr_matrix(one_way + one_way.T)
    valence = np.clip(np.diff(adjacent.indptr), VALENCES[0], VALENCES[-1])
    own = np.zeros((n, len(VALENCES) + 1))
    own[np.arange(n), valence - VALENCES[0]] = 1.0
    a, b, c = valence[faces].T
    turn = np.sign(b - a) * np.sign(c - b) * np.sign(a - c)  # two steps up and one down: they grow counter-clockwise
    own[:, -1] = np.bincount(faces.ravel(), weights=np.repeat(-turn / 3.0, 3), minlength=n)

    reached = sparse.identity(n, dtype=np.int32, format="csr")
    columns, before = [], np.zeros_like(own)
    for ring in range(RINGS):
        within = reached @ own
        columns.append((within - before) / max(6 * ring, 1))
        before = within
        if ring + 1 < RINGS:
            reached = _ones(reached + reached @ adjacent)
    return np.concatenate(columns, axis=1).astype(np.float32)


def same_triangulation(a: Shape, b: Shape) -> bool:
    """Whether two shapes may be meshes of one triangulation, vertices moved or renamed: equal counts of valences."""
    if not (isinstance(a, Mesh) and isinstance(b, Mesh)):
        return False
    if len(a.vertices) != len(b.vertices) or len(a.faces) != len(b.faces):
        return False
    of_a, of_b = (np.bincount(np.bincount(mesh.faces.ravel())) for mesh in (a, b))
    return np.array_equal(of_a, of_b)


def _ones(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """The same pattern with 1 everywhere."""
    matrix = sparse.csr_matrix(matrix)
    matrix.data = np.ones_like(matrix.data)
    return matrix
