"""Deformation of a mesh with local rigidity: alternating local transformations and one linear solve.

With e_ij = X_i - X_j the edges of the rest shape and T_i a 3 x 3 transformation at each vertex, the energy

    E(x, T) = sum_ij w_ij |x_i - x_j - (T_i + T_j) / 2 e_ij|^2

is as rigid as possible where the T_i are rotations, and lets the surface stretch where they may be more. w_ij are
cotangents, bounded from below.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import SuperLU, splu

from acnn.shapes.mesh import Mesh
from acnn.surface.laplacian import assemble
from acnn.surface.surface import surface_of, vertex_normals
from acnn.types import FloatArray

LEAST_COTANGENT = 0.05
"""Lower bound of an edge's weight: negative cotangents of obtuse triangles would reward folds."""


class Deformation:
    """A mesh in its rest shape, ready to be deformed.

    Parameters
    ----------
    mesh : Mesh
        Every vertex belongs to a face of positive area.

    Attributes
    ----------
    areas : (n,) array
        Vertex areas S.
    stiffness : (n, n) sparse array
        W with entries -w_ij outside the diagonal and zero row sums.
    """

    def __init__(self, mesh: Mesh) -> None:
        surface = surface_of(mesh, 1.0)
        self.faces = mesh.faces
        self.areas = surface.vertex_areas
        corners = mesh.vertices[mesh.faces]
        edge = np.roll(corners, -1, axis=1) - corners
        doubled = 2.0 * np.maximum(surface.face_areas, np.finfo(float).tiny)
        cotangents = np.stack(
            [-np.einsum("fd,fd->f", edge[:, k], edge[:, (k + 2) % 3]) / doubled for k in range(3)], axis=1
        )
        self.stiffness = assemble(mesh.faces, -0.5 * np.clip(cotangents, LEAST_COTANGENT, 10.0), len(mesh.vertices))
        off = sp.coo_array(self.stiffness)
        outside = off.row != off.col
        order = np.lexsort((off.col[outside], off.row[outside]))
        self._i, self._j = off.row[outside][order], off.col[outside][order]
        self._w = -off.data[outside][order]
        self._starts = np.searchsorted(self._i, np.arange(len(mesh.vertices)))
        self._edges = mesh.vertices[self._i] - mesh.vertices[self._j]
        # A vertex and its neighbours lie nearly in a plane: the normal stands for the third dimension.
        self._normals = vertex_normals(mesh.vertices, mesh.faces)
        self._thickness = self._sum(self._w * np.einsum("ed,ed->e", self._edges, self._edges)) / 2
        own = self._outer(self._w[:, None] * self._edges, self._edges)
        own += self._thickness[:, None, None] * self._normals[:, :, None] * self._normals[:, None, :]
        self._inverse = np.linalg.inv(own)

    def transformations(self, vertices: FloatArray) -> FloatArray:
        """(n, 3, 3) linear transformations that fit the edges at each vertex, and its normal, best."""
        moved = self._outer(self._w[:, None] * (vertices[self._i] - vertices[self._j]), self._edges)
        normals = vertex_normals(vertices, self.faces)
        moved += self._thickness[:, None, None] * normals[:, :, None] * self._normals[:, None, :]
        return moved @ self._inverse

    def divergence(self, transformations: FloatArray) -> FloatArray:
        """(n, 3) right-hand side: sum_j w_ij (T_i + T_j) / 2 e_ij, so that W x equals it where x follows T."""
        mean = 0.5 * (transformations[self._i] + transformations[self._j])
        return self._sum(self._w[:, None] * np.einsum("eab,eb->ea", mean, self._edges))

    def smoother(self, length: float) -> SuperLU:
        """Factors of S + length^2 W: one implicit step of heat flow, which averages over about that length."""
        return factorised(sp.diags_array(self.areas) + length**2 * self.stiffness)

    def _outer(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return self._sum(left[:, :, None] * right[:, None, :])

    def _sum(self, values: FloatArray) -> FloatArray:
        """Sums over the edges of each vertex."""
        return np.add.reduceat(values, self._starts, axis=0)


def factorised(matrix: sp.sparray) -> SuperLU:
    """LU factors of a symmetric positive definite matrix, in an order that keeps them sparse."""
    symmetric = {"SymmetricMode": True}
    return splu(sp.csc_array(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=symmetric)


def nearest_stretches(transformations: FloatArray, most: FloatArray | float) -> FloatArray:
    """Nearest transformations without reflection whose singular values lie within 1 / most and most.

    Parameters
    ----------
    transformations : (n, 3, 3) array
    most : (n,) array or float
        At least 1; 1 gives rotations.

    Returns
    -------
    (n, 3, 3) array
    """
    left, values, right = np.linalg.svd(transformations)
    mirrored = np.linalg.det(left @ right) < 0
    left[mirrored, :, 2] *= -1
    bound = np.broadcast_to(np.asarray(most, float), len(values))[:, None]
    values = np.where(mirrored[:, None] & (np.arange(3) == 2), 1.0 / bound, np.clip(values, 1.0 / bound, bound))
    return (left * values[:, None, :]) @ right


def robust_weights(residuals: FloatArray, reach: float) -> FloatArray:
    """Weights 1 / (1 + (r / reach)^2)^2 of the Geman-McClure estimator."""
    return 1.0 / (1.0 + (residuals / reach) ** 2) ** 2
