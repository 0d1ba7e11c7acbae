"""Solid voxels of closed meshes and the surfaces of such voxels: self-intersections are united, narrow gaps closed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.implicit import Array, marching_tetrahedra, neighbour_mean
from acnn.shapes.mesh import Mesh
from acnn.shapes.topology import vertex_components

_BLUR = 0.8
"""Standard deviation, in voxels, by which solid voxels are blurred before their surface is taken."""


def voxel_mesh(mesh: Mesh, cell: float, *, closing: float = 0.0, smoothing: int = 2) -> Mesh:
    """Mesh what a closed mesh encloses, on a grid: like the marching-cubes surface of a volumetric scan.

    Parts that intersect are united, parts thinner than a voxel disappear, and only the largest component remains.

    Parameters
    ----------
    mesh : Mesh
        Closed, oriented outwards; it may intersect itself.
    cell : float
        Edge length of a voxel.
    closing : float
        Gaps narrower than twice this are filled (morphological closing by a ball), so that fingers become a mitten.
    smoothing : int
        Rounds of Laplacian smoothing, which remove the traces of the grid.

    Returns
    -------
    Mesh
        Closed and manifold.
    """
    from scipy.ndimage import distance_transform_edt, gaussian_filter

    margin = (np.ceil(closing / cell) + 4.5) * cell  # the outermost vertices lie halfway between grid points
    low = mesh.vertices.min(axis=0) - margin
    shape = np.ceil((np.ptp(mesh.vertices, axis=0) + 2 * margin) / cell).astype(int) + 1
    inside = solid_voxels(mesh, low, (int(shape[0]), int(shape[1]), int(shape[2])), cell)
    if closing > 0:
        dilated = distance_transform_edt(~inside) <= closing / cell
        inside = distance_transform_edt(dilated) > closing / cell
    points, faces = marching_tetrahedra(0.5 - gaussian_filter(inside.astype(np.float32), _BLUR), low, cell)
    points, faces = _largest(points, faces)
    for _ in range(smoothing):
        points = 0.5 * (points + neighbour_mean(points, faces))
    return Mesh(points, faces)


def solid_voxels(mesh: Mesh, low: Array, shape: tuple[int, int, int], cell: float) -> NDArray[np.bool_]:
    """Which grid points lie inside a closed mesh: those of positive winding number.

    Along every line of grid points in the direction x, the winding number rises by one where the line enters the
    surface and falls by one where it leaves.

    Parameters
    ----------
    mesh : Mesh
        Closed, oriented outwards, inside the grid.
    low : (3,) array
        Position of the first grid point.
    shape : tuple[int, int, int]
        Number of grid points along x, y and z.
    cell : float
        Distance of grid points.

    Returns
    -------
    (p, q, r) bool array
    """
    # An irrational offset: no line meets an edge.
    corners = (mesh.vertices[mesh.faces] - low) / cell + np.array([0.0, 1e-4 * np.sqrt(2), 1e-4 * np.sqrt(3)])
    first = np.ceil(corners[:, :, 1:].min(axis=1)).astype(np.int64)
    size = np.floor(corners[:, :, 1:].max(axis=1)).astype(np.int64) - first + 1
    count = np.maximum(size, 0).prod(axis=1)
    face = np.repeat(np.arange(len(corners)), count)  # a face and a line through its bounding rectangle
    place = np.arange(len(face)) - np.repeat(np.cumsum(count) - count, count)
    line = first[face] + np.stack([place // size[face, 1], place % size[face, 1]], axis=1)
    a, b, c = (corners[face, k] for k in range(3))
    weights = np.stack([_turn(b, c, line), _turn(c, a, line), _turn(a, b, line)], axis=1)
    total = weights.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights /= total[:, None]
    hit = (weights >= 0).all(axis=1) & (total != 0)
    x = np.einsum("nk,nk->n", weights[hit], corners[face[hit], :, 0])
    winding = np.zeros(shape, np.int32)
    # Faces that are counter-clockwise in the plane (y, z) have a normal along x: there the line leaves.
    at = (np.ceil(x).astype(np.int64), line[hit, 0], line[hit, 1])
    np.add.at(winding, at, np.where(total[hit] > 0, -1, 1))
    return np.cumsum(winding, axis=0) > 0


def _turn(a: Array, b: Array, point: NDArray[np.int64]) -> Array:
    """Twice the signed area of the triangles a, b, point in the plane (y, z)."""
    result: Array = (b[:, 1] - a[:, 1]) * (point[:, 1] - a[:, 2]) - (b[:, 2] - a[:, 2]) * (point[:, 0] - a[:, 1])
    return result


def _largest(points: Array, faces: NDArray[np.int32]) -> tuple[Array, NDArray[np.int32]]:
    _, member = vertex_components(faces, len(points))
    kept = member == np.bincount(member).argmax()
    number = np.cumsum(kept, dtype=np.int32) - 1
    return points[kept], number[faces[kept[faces[:, 0]]]]
