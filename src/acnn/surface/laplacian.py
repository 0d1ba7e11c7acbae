"""Stiffness matrices of Laplacians with any conductivity tensor, from the gradients of hat functions.

For a symmetric tensor D_f on every face f and hat functions phi_i (1 at vertex i, linear, 0 at the others),

    W_ij = sum_f w_f A_f <grad phi_i, D_f grad phi_j>,      L = S^-1 W,

is positive semidefinite, W 1 = 0, and heat obeys f_t = -L f. Heat flows fastest along the eigenvector of D with the
larger eigenvalue. The paper's edge form (eq. acotan) multiplies D with edges instead of gradients; an edge is a
gradient rotated by 90 degrees, so that form conducts ACROSS the named axis: W(theta) here is minus the paper's
W(theta + 90 degrees).

With conductivity 1 along the long axis at angle theta from v_M and 1/alpha across it,

    W(alpha, theta) = (1 + 1/alpha)/2 W_0 + (1 - 1/alpha)/2 (cos 2theta W_c + sin 2theta W_s),

so three matrices give those of every alpha and theta.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from acnn.arguments import check_arguments
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class StiffnessParts:
    """Off-diagonal entries of W_0, W_c and W_s, face by face.

    Attributes
    ----------
    faces : (m, 3) array
    entries : (3, m, 3) array
        For W_0, W_c, W_s; column k belongs to the edge opposite corner k of the face.
    vertices : int
        n, the number of vertices.
    """

    faces: IntArray
    entries: FloatArray
    vertices: int

    def mix(self, alpha: float, theta: float) -> FloatArray:
        """(m, 3) array, off-diagonal face entries of W(alpha, theta)."""
        even, odd = 0.5 * (1.0 + 1.0 / alpha), 0.5 * (1.0 - 1.0 / alpha)
        isotropic, cosine, sine = self.entries
        return even * isotropic + odd * (np.cos(2.0 * theta) * cosine + np.sin(2.0 * theta) * sine)

    def matrix(self, alpha: float = 1.0, theta: float = 0.0) -> sp.csr_array:
        """(n, n) sparse array, the stiffness matrix W(alpha, theta)."""
        return assemble(self.faces, self.mix(alpha, theta), self.vertices)


@check_arguments
def stiffness(surface: Surface, tensors: FloatArray | None = None) -> sp.csr_array:
    """Stiffness matrix W_ij = sum_f w_f A_f <grad phi_i, D_f grad phi_j> for any symmetric conductivity D.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud.
    tensors : (m, 3, 3) array or None
        Conductivity D_f of each face in ambient coordinates (its normal component has no effect); None is the identity,
        the cotangent Laplacian.

    Returns
    -------
    (n, n) sparse array

    Examples
    --------
    >>> import acnn
    >>> from acnn.surface import stiffness
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> matrix = stiffness(surface)
    >>> matrix.shape, bool(abs(matrix.sum(axis=1)).max() < 1e-9)
    ((2500, 2500), True)
    """
    gradients = hat_gradients(surface)  # (m, 3, 3)
    flux = gradients if tensors is None else np.einsum("fab,fkb->fka", tensors, gradients)
    weight = surface.face_weights * surface.face_areas
    entries = np.stack(
        [weight * np.einsum("fa,fa->f", gradients[:, (k + 1) % 3], flux[:, (k + 2) % 3]) for k in range(3)], axis=1
    )
    return assemble(surface.faces, entries, len(surface.vertices))


def stiffness_parts(surface: Surface, frames: FloatArray) -> StiffnessParts:
    """W_0, W_c and W_s, the three parts of every W(alpha, theta).

    Parameters
    ----------
    surface : Surface
        Mesh or cloud.
    frames : (m, 2, 3) array
        Orthonormal frame of every face, the direction of theta = 0 first.

    Returns
    -------
    StiffnessParts

    Examples
    --------
    >>> import acnn
    >>> from acnn.surface import principal_frames, stiffness_parts
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> parts = stiffness_parts(surface, principal_frames(surface))
    >>> parts.matrix(alpha=100.0, theta=0.3).shape
    (2500, 2500)
    """
    gradients = np.einsum("fka,fba->fkb", hat_gradients(surface), frames)  # (m, 3, 2)
    weight = surface.face_weights * surface.face_areas
    entries = np.empty((3, len(weight), 3))
    for k in range(3):
        (ax, ay), (bx, by) = gradients[:, (k + 1) % 3].T, gradients[:, (k + 2) % 3].T
        entries[:, :, k] = weight * np.stack([ax * bx + ay * by, ax * bx - ay * by, ax * by + ay * bx])
    return StiffnessParts(surface.faces, entries, len(surface.vertices))


def hat_gradients(surface: Surface) -> FloatArray:
    """Gradients of the hat functions, grad phi_k = n x e_k / (2 A) with e_k the edge opposite corner k.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud.

    Returns
    -------
    (m, 3, 3) array
        By face, corner and coordinate.
    """
    corners = surface.vertices[surface.faces]
    opposite = np.roll(corners, 1, axis=1) - np.roll(corners, -1, axis=1)
    scale = 2.0 * np.maximum(surface.face_areas, np.finfo(float).tiny)
    return np.cross(surface.face_normals[:, None, :], opposite) / scale[:, None, None]


def assemble(faces: IntArray, entries: FloatArray, vertices: int) -> sp.csr_array:
    """Symmetric matrix with zero row sums from off-diagonal face entries.

    Parameters
    ----------
    faces : (m, 3) array
    entries : (m, 3) array
        Column k belongs to the edge opposite corner k.
    vertices : int
        n, the number of vertices.

    Returns
    -------
    (n, n) sparse array
    """
    i, j = faces[:, [1, 2, 0]].ravel(), faces[:, [2, 0, 1]].ravel()
    off = sp.coo_array((entries.ravel(), (i, j)), shape=(vertices, vertices)).tocsr()
    off = off + off.T
    return (off - sp.diags_array(off.sum(axis=1))).tocsr()
