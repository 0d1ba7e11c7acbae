"""The valence descriptor: how many vertices of each valence lie 0, 1, ... 8 edges from a vertex.

It depends on the triangulation alone, not on vertex positions. On shapes that share one triangulation, such as
registrations of a template, corresponding vertices have the same values whatever the pose and the body; between
different triangulations the values cannot be compared.
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
"""Number of rings: ring 0 is the vertex itself, ring r all vertices that are r edges away. With 9, 6,888 of the 6,890
vertices of FAUST's template differ."""

VALENCES = (4, 5, 6, 7, 8)
"""The valences that are distinguished; smaller ones count as the first, larger ones as the last."""

VALENCE_LENGTH = RINGS * (len(VALENCES) + 1)
"""Number of columns of `valence_descriptors`."""


def valence_descriptors(surface: Surface) -> NDArray[np.float32]:
    """Counts of vertices by valence, and a handedness, for each of the 9 rings around every vertex.

    The handedness sums +1 for a triangle whose three valences differ and increase counter-clockwise and -1 where they
    increase clockwise, a third for each of its corners: a mirrored mesh has the same counts, and handedness of the
    opposite sign. All values are divided by 6 r, the number of vertices of ring r in a regular mesh.

    Parameters
    ----------
    surface : Surface
        Made from a mesh.

    Returns
    -------
    (n, 54) float32 array
        For ring r, columns 6 r to 6 r + 4 are the counts of valences 4 to 8 and column 6 r + 5 the handedness.

    Raises
    ------
    InputError
        For a cloud, which has no triangulation of its own.

    Examples
    --------
    >>> import acnn
    >>> from acnn.descriptors import valence_descriptors
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> valence_descriptors(surface).shape
    (2500, 54)
    """
    if surface.is_cloud:
        raise InputError("Descriptors of kind 'valences' need a triangulation, which a point cloud does not have.")
    n, faces = len(surface.vertices), surface.faces
    edges = mesh_edges(faces).vertices
    one_way = sparse.csr_matrix((np.ones(len(edges), np.int32), (edges[:, 0], edges[:, 1])), shape=(n, n))
    adjacency = sparse.csr_matrix(one_way + one_way.T)
    valences = np.clip(np.diff(adjacency.indptr), VALENCES[0], VALENCES[-1])
    own = np.zeros((n, len(VALENCES) + 1))
    own[np.arange(n), valences - VALENCES[0]] = 1.0
    a, b, c = valences[faces].T
    orientation = np.sign(b - a) * np.sign(c - b) * np.sign(a - c)  # -1 where they increase counter-clockwise
    own[:, -1] = np.bincount(faces.ravel(), weights=np.repeat(-orientation / 3.0, 3), minlength=n)

    reachable = sparse.identity(n, dtype=np.int32, format="csr")
    columns, previous = [], np.zeros_like(own)
    for ring in range(RINGS):
        cumulative = reachable @ own
        columns.append((cumulative - previous) / max(6 * ring, 1))
        previous = cumulative
        if ring + 1 < RINGS:
            reachable = _pattern(reachable + reachable @ adjacency)
    return np.concatenate(columns, axis=1).astype(np.float32)


def same_triangulation(a: Shape, b: Shape) -> bool:
    """Whether two shapes may be meshes of one triangulation, with vertices moved or renumbered.

    Parameters
    ----------
    a, b : Shape
        Meshes or clouds.

    Returns
    -------
    bool
        True where both are meshes with as many vertices and faces and equal counts of valences; a necessary condition,
        not a sufficient one.
    """
    if not (isinstance(a, Mesh) and isinstance(b, Mesh)):
        return False
    if len(a.vertices) != len(b.vertices) or len(a.faces) != len(b.faces):
        return False
    counts_a, counts_b = (np.bincount(np.bincount(mesh.faces.ravel())) for mesh in (a, b))
    return np.array_equal(counts_a, counts_b)


def _pattern(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """A matrix with 1 at every stored entry."""
    matrix = sparse.csr_matrix(matrix)
    matrix.data = np.ones_like(matrix.data)
    return matrix
