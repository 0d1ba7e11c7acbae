"""Another triangulation of the same surface, with the exact place of every new vertex on the old one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.collection import BarycentricTruth
from acnn.shapes.shape import Mesh


@dataclass(frozen=True, eq=False)
class Remeshed:
    """A remeshed shape and where its vertices came from.

    - mesh: n vertices
    - face: (n,) the face of the original that holds each vertex
    - weights: (n, 3) barycentric weights of that face's corners, at least 0, rows sum to 1
    """

    mesh: Mesh
    face: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def truth(self) -> BarycentricTruth:
        """Where its vertices came from, as points of the original's faces."""
        return BarycentricTruth(self.face.astype(np.int32), self.weights)


def remesh(mesh: Mesh, *, vertices: int | None = None, density: float = 1.0, seed: int = 0) -> Remeshed:
    """Triangulate a closed mesh anew: other vertices, other edges, another order, nearly the same surface.

    Every face is cut into 16, the result is decimated with random costs, and the order is shuffled. Between the old
    vertices the surface is rounded (Phong tessellation), so that flat faces do not give the old mesh away.

    - mesh: closed and manifold
    - vertices: how many, at most 8 times the old number; None takes a random number within a tenth of the old one
    - density: 1 spreads vertices like the original's, 0 evenly
    - seed: of everything random
    """
    from acnn.datasets.collapse import decimate

    random = np.random.default_rng(seed)
    old = np.asarray(mesh.faces, np.int64)
    count = len(mesh.vertices)
    wanted = round(count * random.uniform(0.9, 1.1)) if vertices is None else int(vertices)
    parent = np.arange(len(old))
    inside = np.tile(np.eye(3), (len(old), 1, 1))  # (face, corner, weight) in the old face
    faces, points = old, count
    for _ in range(2):
        faces, parent, inside, points = _quarter(faces, parent, inside, points)
    at = np.empty(points, np.int64)  # one of the corners where each point sits
    at[faces.ravel()] = np.arange(faces.size)
    face, weights = parent[at // 3], inside.reshape(-1, 3)[at]
    places = _rounded(mesh, face, weights)
    noise = np.exp(0.7 * random.standard_normal(points))
    size = np.einsum("nk,nk->n", weights, _local_size(mesh)[old[face]]) ** density
    kept, coarse = decimate(places, faces.astype(np.int32), wanted, size=size, noise=noise)
    order = random.permutation(len(kept))
    number = np.empty(len(kept), np.int32)
    number[order] = np.arange(len(kept), dtype=np.int32)
    chosen = kept[order]
    shuffled = number[coarse][random.permutation(len(coarse))]
    return Remeshed(Mesh(places[chosen], np.ascontiguousarray(shuffled)), face[chosen], weights[chosen])


def _quarter(
    faces: NDArray[np.int64], parent: NDArray[np.int64], inside: NDArray[np.float64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]:
    """Cut each face at the middles of its edges; new vertices are numbered from `count` on."""
    start, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()
    key = np.minimum(start, end) * count + np.maximum(start, end)
    edges, edge_of = np.unique(key, return_inverse=True)
    middle = count + edge_of.reshape(-1, 3)  # of edges (0, 1), (1, 2), (2, 0)
    six = np.concatenate([faces, middle], axis=1)
    places = np.concatenate([inside, 0.5 * (inside + inside[:, [1, 2, 0]])], axis=1)
    parts = np.array([(0, 3, 5), (3, 1, 4), (5, 4, 2), (3, 4, 5)])
    return six[:, parts].reshape(-1, 3), np.repeat(parent, 4), places[:, parts].reshape(-1, 3, 3), count + len(edges)


def _rounded(
    mesh: Mesh, face: NDArray[np.int64], weights: NDArray[np.float64], share: float = 0.6
) -> NDArray[np.float64]:
    """Points of faces, drawn towards the tangent planes at the corners (Boubekeur and Alexa 2008)."""
    corners = np.asarray(mesh.vertices, np.float64)[mesh.faces]  # (m, 3, 3)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros((len(mesh.vertices), 3))
    for k in range(3):
        np.add.at(normals, mesh.faces[:, k], cross)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    flat = np.einsum("nk,nkd->nd", weights, corners[face])
    to_corner = flat[:, None] - corners[face]
    normal = normals[np.asarray(mesh.faces)[face]]  # (n, 3, 3)
    height = np.einsum("nkd,nkd->nk", to_corner, normal)
    return flat - share * np.einsum("nk,nk,nkd->nd", weights, height, normal)


def _local_size(mesh: Mesh) -> NDArray[np.float64]:
    """Mean edge length at each vertex over the mean of all."""
    start, end = mesh.faces.ravel(), mesh.faces[:, [1, 2, 0]].ravel()
    length = np.linalg.norm(mesh.vertices[start] - mesh.vertices[end], axis=1)
    total = np.bincount(start, length, len(mesh.vertices)) + np.bincount(end, length, len(mesh.vertices))
    degree = np.bincount(start, minlength=len(mesh.vertices)) + np.bincount(end, minlength=len(mesh.vertices))
    return total / np.maximum(degree, 1) / length.mean()
