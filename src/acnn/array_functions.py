"""Differential geometry on plain arrays: Laplacians, heat kernels, eigenpairs, geodesics, curvature and SHOT.

Every function takes the (n, 3) vertices `v` and the (m, 3) faces `f` of a triangle mesh, or `f=None` for a point cloud,
whose surface is approximated by overlapping triangulations in tangent planes. Lengths, areas and times are in the
coordinates given: nothing is normalised, repaired, merged or reordered. Input is checked for shape, finiteness and face
indices only; `acnn.from_arrays` repairs what is not a valid mesh.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.mesh import Mesh, PointCloud
from acnn.surface.geodesics import GeodesicSolver, Method, geodesic_diameter
from acnn.surface.surface import REFERENCE_LENGTH, Surface, surface_of
from acnn.types import FloatArray, IntArray

SMOOTHING = 3.0 / REFERENCE_LENGTH
"""Default radius over which curvature is averaged, as a fraction of the geodesic diameter.

0.015, that of `acnn.PatchSettings` (3 where the diameter is 200), so that theta = 0 is the same direction in both."""


@check_arguments
def cotangent_laplacian(v: ArrayLike, f: ArrayLike | None) -> tuple[sp.csr_array, sp.csr_array]:
    """Cotangent Laplacian and lumped mass.

        L_ij = -(cot a_ij + cot b_ij) / 2 for i != j,    L_ii = -sum_j L_ij,    M_ii = area of the faces at i / 3

    with a_ij, b_ij the angles opposite edge ij. L is symmetric positive semidefinite and L 1 = 0; the Laplace-Beltrami
    operator is M^-1 L, and heat obeys M u_t = -L u. L does not change when v is scaled; M is an area.

    Parameters
    ----------
    v : (n, 3) array_like
        Vertices.
    f : (m, 3) array_like or None
        Faces; None for a point cloud.

    Returns
    -------
    L : (n, n) sparse array
        Stiffness, CSR.
    M : (n, n) sparse array
        Diagonal of the vertex areas, CSR.

    Raises
    ------
    InputError
        Where the arrays do not make a surface, or a vertex belongs to no face of positive area.

    Examples
    --------
    >>> import acnn
    >>> L, M = acnn.cotangent_laplacian([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    >>> L.toarray().round(6).tolist()
    [[1.0, -0.5, -0.5], [-0.5, 0.5, 0.0], [-0.5, 0.0, 0.5]]
    >>> M.diagonal().round(6).tolist()
    [0.166667, 0.166667, 0.166667]
    """
    surface = _surface(v, f)
    return _stiffness(surface, 1.0, 0.0, 0.0), _mass(surface)


@check_arguments
def anisotropic_laplacian(
    v: ArrayLike, f: ArrayLike | None, alpha: float, theta: float, *, smoothing: float = SMOOTHING
) -> tuple[sp.csr_array, sp.csr_array]:
    """Laplacian that conducts `alpha` times better along one direction than across it, and lumped mass.

        L_ij = sum_faces A <grad phi_i, D grad phi_j>,    D = e e^T + (1 / alpha) e' e'^T,
        e = cos(theta) v_M + sin(theta) v_m,              e' = -sin(theta) v_M + cos(theta) v_m

    with phi_i the hat function of vertex i, and v_M, v_m the principal directions of each face. Conductivity is 1 along
    the long axis e of the heat kernel and 1 / alpha across it. theta = 0 is the direction of the larger principal
    curvature (signed, convex counted positive: around a cylinder, not along it), and theta grows counter-clockwise
    about the outward normal. alpha = 1 is `cotangent_laplacian`. The paper's diag(alpha, 1) is alpha times this.

    Parameters
    ----------
    v : (n, 3) array_like
        Vertices.
    f : (m, 3) array_like or None
        Faces, counter-clockwise seen from outside; None for a point cloud.
    alpha : float
        Anisotropy, at least 1.
    theta : float
        Angle of the long axis in radians.
    smoothing : float
        Radius over which curvature is averaged, as a fraction of the geodesic diameter of the largest component.

    Returns
    -------
    L : (n, n) sparse array
        Symmetric positive semidefinite stiffness with L 1 = 0, CSR.
    M : (n, n) sparse array
        Diagonal of the vertex areas, CSR.

    Raises
    ------
    InputError
        Where the arrays do not make a surface, or alpha, theta or smoothing are out of range.

    Examples
    --------
    >>> import acnn
    >>> mesh = acnn.builtin_human()
    >>> L, M = acnn.anisotropic_laplacian(mesh.vertices, mesh.faces, alpha=100, theta=0.3)
    >>> bool(abs(L.sum(axis=1)).max() < 1e-9)
    True
    """
    surface = _surface(v, f)
    return _stiffness(surface, alpha, theta, smoothing), _mass(surface)


@check_arguments
def heat_kernel_rows(
    v: ArrayLike,
    f: ArrayLike | None,
    t: float,
    rows: ArrayLike,
    alpha: float = 1.0,
    theta: float = 0.0,
    *,
    smoothing: float = SMOOTHING,
) -> FloatArray:
    """Rows of the heat operator exp(-t M^-1 L), to about 1e-12.

        (H u)_i = sum_j H_ij u_j,    H = exp(-t M^-1 L(alpha, theta))

    Row i holds the weights with which vertex i sees all others, areas included: rows sum to 1. In the plane a kernel
    has variance 2 t along its long axis and 2 t / alpha across it. Scaling v by s and t by s^2 changes nothing.

    Parameters
    ----------
    v : (n, 3) array_like
        Vertices.
    f : (m, 3) array_like or None
        Faces; None for a point cloud.
    t : float
        Time, in the square of the unit of length of v.
    rows : (r,) array_like of int
        Vertices whose rows are wanted.
    alpha, theta, smoothing : float
        As for `anisotropic_laplacian`.

    Returns
    -------
    (r, n) array

    Raises
    ------
    InputError
        Where the arrays do not make a surface, or a parameter is out of range.

    Examples
    --------
    >>> import acnn
    >>> v, f = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]]
    >>> acnn.heat_kernel_rows(v, f, 0.1, [0]).sum().round(9).item()
    1.0
    """
    from acnn.surface.heat import exact_rows

    surface = _surface(v, f)
    if not (np.isfinite(t) and t > 0):
        raise InputError(f"t = {t}: the time of a heat kernel must be a positive number.")
    wanted = _vertices("rows", rows, len(surface.vertices))
    return exact_rows(_stiffness(surface, alpha, theta, smoothing), surface.vertex_areas, t, wanted)


@check_arguments
def eigenpairs(
    v: ArrayLike,
    f: ArrayLike | None,
    k: int,
    alpha: float = 1.0,
    theta: float = 0.0,
    *,
    smoothing: float = SMOOTHING,
) -> tuple[FloatArray, FloatArray]:
    """Smallest eigenvalues of a Laplacian and their eigenfunctions: L phi = lambda M phi.

    Eigenfunctions are orthonormal with respect to M, and their entry of largest magnitude is positive. Scaling v by s
    divides eigenvalues by s^2 and eigenfunctions by s. `acnn.surface.eigenpairs` does the same for given matrices.

    Parameters
    ----------
    v : (n, 3) array_like
        Vertices.
    f : (m, 3) array_like or None
        Faces; None for a point cloud.
    k : int
        How many, below n.
    alpha, theta, smoothing : float
        As for `anisotropic_laplacian`; the default is the cotangent Laplacian.

    Returns
    -------
    eigenvalues : (k,) array
        Ascending; the first is 0.
    eigenfunctions : (n, k) array

    Raises
    ------
    InputError
        Where the arrays do not make a surface, or a parameter is out of range.

    Examples
    --------
    >>> import acnn
    >>> v, f = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]]
    >>> eigenvalues, eigenfunctions = acnn.eigenpairs(v, f, 2)
    >>> eigenvalues.round(6).tolist(), eigenfunctions.shape
    ([0.0, 3.0], (4, 2))
    """
    from acnn.surface.spectra import eigenpairs as of_matrices

    surface = _surface(v, f)
    return of_matrices(_stiffness(surface, alpha, theta, smoothing), surface.vertex_areas, k)


@check_arguments
def geodesic_distances(
    v: ArrayLike, f: ArrayLike | None, sources: ArrayLike, *, method: Method = "graph"
) -> FloatArray:
    """Geodesic distances from some vertices to all others.

    Parameters
    ----------
    v : (n, 3) array_like
        Vertices.
    f : (m, 3) array_like or None
        Faces; None for a point cloud.
    sources : (s,) array_like of int
        Vertices.
    method : {'graph', 'exact'}
        `graph` is Dijkstra's algorithm on edges and unfolded diagonals: never shorter than the true distance, 1.8 %
        longer on average on a human body. `exact` is the shortest polyline over the faces of a mesh (Mitchell, Mount
        and Papadimitriou), some 70 times slower.

    Returns
    -------
    (s, n) array
        In the unit of v; infinite on other components.

    Raises
    ------
    InputError
        Where the arrays do not make a surface, a source is no vertex, or exact distances are asked of a cloud or of a
        mesh with an edge of more than two faces.

    Examples
    --------
    >>> import acnn
    >>> v, f = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]]
    >>> acnn.geodesic_distances(v, f, [0]).round(3).tolist()  # to vertex 3 across the diagonal
    [[0.0, 1.0, 1.0, 1.414]]
    """
    surface = _surface(v, f)
    wanted = _vertices("sources", sources, len(surface.vertices))
    return GeodesicSolver(surface, method).distances_from(wanted)


@check_arguments
def principal_directions(v: ArrayLike, f: ArrayLike | None, *, smoothing: float = SMOOTHING) -> FloatArray:
    """Directions of principal curvature at every VERTEX.

    The directions of the faces, which `anisotropic_laplacian` measures theta from, are averaged around each vertex as
    lines, that is as tensors v_M v_M^T weighted by area. Signs have no meaning. Where both curvatures agree (plane,
    sphere) there is no such direction; what is returned there is finite and turns with the shape.

    Parameters
    ----------
    v : (n, 3) array_like
        Vertices.
    f : (m, 3) array_like or None
        Faces, counter-clockwise seen from outside; None for a point cloud.
    smoothing : float
        Radius over which curvature is averaged, as a fraction of the geodesic diameter of the largest component.

    Returns
    -------
    (n, 2, 3) array
        Unit v_M, the direction of the larger signed curvature (convex counted positive), and v_m = normal x v_M.

    Raises
    ------
    InputError
        Where the arrays do not make a surface, or smoothing is out of range.

    Examples
    --------
    >>> import acnn
    >>> mesh = acnn.builtin_human()
    >>> acnn.principal_directions(mesh.vertices, mesh.faces).shape == (len(mesh.vertices), 2, 3)
    True
    """
    from acnn.surface.curvature import frames_from_tensors, principal_frames

    surface = _surface(v, f)
    along = principal_frames(surface, _radius(surface, smoothing))[:, 0]
    weight = np.repeat(surface.face_weights * surface.face_areas, 3)
    lines = np.empty((len(surface.vertices), 3, 3))
    for a in range(3):
        for b in range(a, 3):
            products = weight * np.repeat(along[:, a] * along[:, b], 3)
            total = np.bincount(surface.faces.ravel(), weights=products, minlength=len(lines))
            lines[:, a, b] = lines[:, b, a] = total / surface.vertex_areas
    return frames_from_tensors(lines, surface.normals, _tangents(surface.normals))


@check_arguments
def principal_curvatures(v: ArrayLike, f: ArrayLike | None, *, smoothing: float = SMOOTHING) -> FloatArray:
    """Principal curvatures at every vertex, averaged over a fixed distance on the surface.

    They are the tangential eigenvalues of the smoothed second fundamental form (normal cycle of Cohen-Steiner and
    Morvan on a mesh, fitted quadrics on a cloud). Mean curvature is their mean, Gaussian curvature their product.

    Parameters
    ----------
    v : (n, 3) array_like
        Vertices.
    f : (m, 3) array_like or None
        Faces, counter-clockwise seen from outside; None for a point cloud.
    smoothing : float
        Radius of the averaging, as a fraction of the geodesic diameter of the largest component.

    Returns
    -------
    (n, 2) array
        The larger and the smaller curvature, signed, convex counted positive, in 1 / unit of v.

    Raises
    ------
    InputError
        Where the arrays do not make a surface, or smoothing is out of range.

    Examples
    --------
    >>> import acnn
    >>> mesh = acnn.builtin_human()
    >>> larger, smaller = acnn.principal_curvatures(mesh.vertices, mesh.faces).T
    >>> bool((larger >= smaller).all())
    True
    """
    from acnn.surface.curvature import curvature_tensors

    surface = _surface(v, f)
    tensors = curvature_tensors(surface, _radius(surface, smoothing))
    first = _tangents(surface.normals)
    second = np.cross(surface.normals, first)
    xx, xy, yy = (
        np.einsum("na,nab,nb->n", a, tensors, b) for a, b in ((first, first), (first, second), (second, second))
    )
    mean, half = 0.5 * (xx + yy), np.hypot(0.5 * (xx - yy), xy)
    return np.stack([mean + half, mean - half], axis=1)


@check_arguments
def shot_descriptors(v: ArrayLike, f: ArrayLike | None, radius: float) -> NDArray[np.float32]:
    """SHOT, the signature of histograms of orientations, at every vertex.

    Unchanged by rigid motion, and by scaling of v and radius together. `acnn.shot` documents the histogram, and takes a
    mesh or a point cloud with further options and the radius in normalised units.

    Parameters
    ----------
    v : (n, 3) array_like
        Vertices.
    f : (m, 3) array_like or None
        Faces, counter-clockwise seen from outside; None for a point cloud.
    radius : float
        Of the ball of neighbours, in the unit of v; 6 % of the geodesic diameter is the default of `acnn.shot`.

    Returns
    -------
    (n, 544) float32 array
        Rows of length 1; zero where a vertex has fewer than 5 neighbours.

    Raises
    ------
    InputError
        Where the arrays do not make a surface, or the radius is not positive.

    Examples
    --------
    >>> import acnn
    >>> mesh = acnn.builtin_human()
    >>> acnn.shot_descriptors(mesh.vertices, mesh.faces, radius=0.1).shape == (len(mesh.vertices), 544)
    True
    """
    from acnn.descriptors.shot import shot

    return shot(_surface(v, f), radius)


def _surface(v: Any, f: Any) -> Surface:
    """The surface of some arrays in their own coordinates; raises InputError where they make none."""
    vertices = _array("v", v)
    if vertices.dtype.kind in "fiu":
        vertices = np.ascontiguousarray(vertices, np.float64)
    if f is None:
        return surface_of(PointCloud(vertices), unit=1.0)
    faces = _array("f", f)
    mesh = Mesh(vertices, faces)
    return surface_of(Mesh(vertices, np.ascontiguousarray(mesh.faces, np.int32)), unit=1.0)


def _array(name: str, value: Any) -> NDArray[Any]:
    """A NumPy array of what may also be a list or a torch tensor, on any device and with a gradient."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InputError(f"The rows of {name} are not all of the same length.") from error


def _vertices(name: str, value: Any, n: int) -> IntArray:
    """(r,) vertices of a shape with n of them."""
    array = np.atleast_1d(_array(name, value))
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise InputError(f"{name} must be a list of vertices, not {array.dtype} of shape {array.shape}.")
    wrong = array[(array < 0) | (array >= n)]
    if len(wrong):
        raise InputError(f"{name} contains vertex {wrong[0]}, but the vertices are 0 to {n - 1}.")
    return array.astype(np.int32)


def _mass(surface: Surface) -> sp.csr_array:
    return sp.csr_array(sp.diags_array(surface.vertex_areas))


def _stiffness(surface: Surface, alpha: float, theta: float, smoothing: float) -> sp.csr_array:
    """(n, n) L(alpha, theta)."""
    from acnn.surface.laplacian import stiffness, stiffness_parts

    if not (np.isfinite(alpha) and alpha >= 1):
        raise InputError(f"alpha = {alpha}: it must be at least 1, which is isotropic.")
    if not np.isfinite(theta):
        raise InputError(f"theta = {theta}: the angle must be a finite number of radians.")
    if alpha == 1:
        return stiffness(surface)
    from acnn.surface.curvature import principal_frames

    frames = principal_frames(surface, _radius(surface, smoothing))
    return stiffness_parts(surface, frames).matrix(alpha, theta)


def _radius(surface: Surface, smoothing: float) -> float:
    """Radius of smoothing in the unit of the vertices, from a fraction of the geodesic diameter."""
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise InputError(f"smoothing = {smoothing}: give a fraction of the geodesic diameter, such as {SMOOTHING:g}.")
    if smoothing == 0:
        return 0.0
    return float(smoothing * geodesic_diameter(surface))


def _tangents(normals: FloatArray) -> FloatArray:
    """(n, 3) unit vectors across unit normals."""
    first = np.cross(normals, np.eye(3)[np.argmin(np.abs(normals), axis=1)])
    return first / np.linalg.norm(first, axis=1, keepdims=True)
