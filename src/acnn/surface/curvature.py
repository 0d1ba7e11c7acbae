"""Curvature tensors of a surface and its principal curvature directions.

Directions have no sign, and averaging vectors would mix signs, so curvature is averaged as a 3 x 3 tensor

    K = k_M v_M v_M^T + k_m v_m v_m^T

(the second fundamental form in ambient coordinates; convex counted positive), and directions are computed from the
averaged tensors of the faces. On a mesh K comes from the normal cycle of Cohen-Steiner and Morvan,

    T(x) = 1 / |B| sum_e beta(e) |e n B| e e^T,

with beta the signed angle between the faces at edge e. T has its LARGER eigenvalue along the direction of smaller
curvature (the axis of a cylinder), so K is T with the two tangential eigenvalues exchanged. On a cloud K comes from a
quadric fitted around every point.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import cg, splu

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.topology import mesh_edges
from acnn.surface.cloud import quadric_tensors
from acnn.surface.laplacian import stiffness
from acnn.surface.surface import Surface
from acnn.types import FloatArray

SMOOTHING = 3.0
"""Default radius, in normalised units, of curvature averaging: the standard deviation of its kernel."""

DIRECT = 100_000
"""Vertices up to which curvature is averaged by a factorisation; its cost grows faster than that of an iteration."""


@check_arguments
def principal_frames(surface: Surface, smoothing: float = SMOOTHING) -> FloatArray:
    """Principal curvature directions of every face.

    Where the two curvatures are equal there is no principal direction. A weak tensor fixed to the shape (the covariance
    of its points, then the longest edge of the face) decides there, so that the result is finite and rotates with the
    shape.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud.
    smoothing : float
        Radius of averaging, in normalised units.

    Returns
    -------
    (m, 2, 3) array
        v_M, the direction of the larger signed curvature, and v_m = n x v_M.

    Examples
    --------
    >>> import acnn
    >>> from acnn.surface import principal_frames
    >>> principal_frames(acnn.surface_of(acnn.builtin_human())).shape
    (4996, 2, 3)
    """
    tensors = curvature_tensors(surface, smoothing)[surface.faces].mean(axis=1)  # (m, 3, 3)
    weight = surface.face_weights * surface.face_areas
    strength = np.sqrt(np.average(np.einsum("ijk,ijk->i", tensors, tensors), weights=weight))
    bias = 1e-4 * strength + 1e-6 / np.sqrt(weight.sum())
    covariance = np.einsum("i,ij,ik->jk", surface.vertex_areas, surface.vertices, surface.vertices)
    edges = np.roll(surface.vertices[surface.faces], 1, axis=1) - surface.vertices[surface.faces]
    longest = edges[np.arange(len(edges)), np.argmax(np.linalg.norm(edges, axis=2), axis=1)]
    longest /= np.maximum(np.linalg.norm(longest, axis=1, keepdims=True), 1e-300)
    tensors += bias * (covariance / np.trace(covariance) + 1e-3 * longest[:, :, None] * longest[:, None, :])
    return frames_from_tensors(tensors, surface.face_normals, longest)


def frames_from_tensors(tensors: FloatArray, normals: FloatArray, tangents: FloatArray) -> FloatArray:
    """In-plane eigenvectors of symmetric tensors, larger eigenvalue first, right-handed about the normal.

    Parameters
    ----------
    tensors : (m, 3, 3) array
    normals : (m, 3) array
        Of length 1.
    tangents : (m, 3) array
        Any direction not along the normal, from which angles are measured.

    Returns
    -------
    (m, 2, 3) array
    """
    first = tangents - np.einsum("ij,ij->i", tangents, normals)[:, None] * normals
    first /= np.maximum(np.linalg.norm(first, axis=1, keepdims=True), 1e-300)
    second = np.cross(normals, first)
    xx = np.einsum("ij,ijk,ik->i", first, tensors, first)
    xy = np.einsum("ij,ijk,ik->i", first, tensors, second)
    yy = np.einsum("ij,ijk,ik->i", second, tensors, second)
    angle = 0.5 * np.arctan2(2.0 * xy, xx - yy)
    major = np.cos(angle)[:, None] * first + np.sin(angle)[:, None] * second
    return np.stack([major, np.cross(normals, major)], axis=1)


def curvature_tensors(surface: Surface, smoothing: float = SMOOTHING) -> FloatArray:
    """Curvature tensors K = k_M v_M v_M^T + k_m v_m v_m^T of the vertices, averaged over the surface.

    The averaging is one implicit step of heat flow, (S + tau W) K' = S K with tau = smoothing^2 / 2: a fixed distance
    on the surface, whatever the triangulation.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud.
    smoothing : float
        Radius of averaging, in normalised units; 0 is none.

    Returns
    -------
    (n, 3, 3) array

    Examples
    --------
    >>> import acnn
    >>> from acnn.surface import curvature_tensors
    >>> curvature_tensors(acnn.surface_of(acnn.builtin_human())).shape
    (2500, 3, 3)
    """
    tensors = quadric_tensors(surface, smoothing) if surface.is_cloud else _normal_cycle(surface)
    if smoothing <= 0:
        return tensors
    mass = surface.vertex_areas
    system = stiffness(surface) * (0.5 * smoothing**2)
    system.setdiag(system.diagonal() + mass)
    upper = np.triu_indices(3)
    given = mass[:, None] * tensors[:, upper[0], upper[1]]
    if len(mass) <= DIRECT:
        packed = splu(system.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(given)
    else:
        packed = _conjugate_gradients(system.tocsr(), given)
    smoothed = np.empty_like(tensors)
    smoothed[:, upper[0], upper[1]] = packed
    smoothed[:, upper[1], upper[0]] = packed
    return smoothed


def _conjugate_gradients(system: csr_array, given: FloatArray) -> FloatArray:
    """Solve a symmetric positive definite system for every column, to 1e-10 of its length."""
    scaling = diags_array(1.0 / system.diagonal())
    solutions = []
    for column in given.T:
        solution, failed = cg(system, column, rtol=1e-10, maxiter=20_000, M=scaling)
        if failed:
            raise InputError(
                "The curvature of this shape could not be averaged: it has triangles without area or with coordinates "
                "that are not numbers. Repair it with 'acnn info SHAPE --repair OUT'."
            )
        solutions.append(solution)
    return np.stack(solutions, axis=1)


def _normal_cycle(surface: Surface) -> FloatArray:
    """(n, 3, 3) array, tensors from the angles between adjacent faces, tangential eigenvalues exchanged."""
    table = mesh_edges(surface.faces)
    interior = table.counts > 1
    edges, sides = table.vertices[interior], table.faces[interior]
    n1, n2 = surface.face_normals[sides[:, 0]], surface.face_normals[sides[:, 1]]
    vector = surface.vertices[edges[:, 1]] - surface.vertices[edges[:, 0]]
    length = np.linalg.norm(vector, axis=1)
    direction = vector / np.maximum(length, 1e-300)[:, None]
    sine, cosine = np.einsum("ij,ij->i", np.cross(n1, n2), direction), np.einsum("ij,ij->i", n1, n2)
    beta = np.arctan2(sine, cosine)  # positive on convex edges, as the first face lies to the left

    n = len(surface.vertices)
    tensor = np.empty((n, 3, 3))
    ends = edges.ravel()
    for a in range(3):
        for b in range(a, 3):
            half = np.repeat(0.5 * beta * length * direction[:, a] * direction[:, b], 2)
            tensor[:, a, b] = tensor[:, b, a] = np.bincount(ends, weights=half, minlength=n)
    tensor /= surface.vertex_areas[:, None, None]
    return _exchanged(tensor, surface.normals)


def _exchanged(tensor: FloatArray, normals: FloatArray) -> FloatArray:
    """Tangential part of symmetric tensors with its two eigenvalues exchanged: tr(T) P - P T P."""
    plane = np.eye(3) - normals[:, :, None] * normals[:, None, :]
    tangential = plane @ tensor @ plane
    return np.trace(tangential, axis1=1, axis2=2)[:, None, None] * plane - tangential
