"""Closed meshes of implicit surfaces and of solid voxels: capsules, marching tetrahedra, even triangles.

Smooth unions of tapered capsules make bodies. Voxels of a mesh unite self-intersections and close narrow gaps.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.mesh import Mesh
from acnn.shapes.topology import vertex_components
from acnn.surface.simplify import decimate
from acnn.types import FloatArray, IntArray

Array = NDArray[np.float64]
Field = Callable[[Array], Array]
"""Negative inside, positive outside, about the distance near the surface; (m, 3) points to (m,) values."""

_CORNERS = tuple(product((0, 1), repeat=3))
"""Corners of a cube."""

_BLUR = 0.8
"""Standard deviation, in voxels, by which solid voxels are blurred before their surface is taken."""


def capsule_distances(points: Array, starts: Array, ends: Array, radii: Array) -> Array:
    """Signed distances to capsules, segments with a radius that changes linearly from start to end.

    Parameters
    ----------
    points : (m, 3) array
        Where to measure.
    starts, ends : (b, 3) array
        Segments.
    radii : (b, 2) array
        At start and end.

    Returns
    -------
    (m, b) array
        Negative inside.
    """
    along = ends - starts
    square = np.maximum((along**2).sum(axis=1), 1e-12)
    fraction = np.clip(((points @ along.T) - (starts * along).sum(axis=1)) / square, 0.0, 1.0)  # (m, b)
    nearest = starts + fraction[:, :, None] * along
    distance = np.linalg.norm(points[:, None] - nearest, axis=2)
    result: Array = distance - (radii[:, 0] + fraction * (radii[:, 1] - radii[:, 0]))
    return result


def smooth_union(distances: Array, blend: float) -> Array:
    """-blend log sum_b exp(-d_b / blend): the union of shapes with rounded joints, (m, b) to (m,)."""
    least = distances.min(axis=1)
    union: Array = least - blend * np.log(np.exp((least[:, None] - distances) / blend).sum(axis=1))
    return union


def mesh_of_field(
    field: Field, low: Array, high: Array, cell: float, vertices: int, size: Field
) -> tuple[Array, NDArray[np.int32]]:
    """Mesh the zero level of a field: marching tetrahedra, then edge collapse, then relaxation on the surface.

    Parameters
    ----------
    field : Field
        Positive on the border of the box.
    low, high : (3,) array
        The box.
    cell : float
        Edge length of the grid, thinner parts are lost; smaller ones are used where many vertices are asked for.
    vertices : int
        Number of vertices.
    size : Field
        Relative edge length at points.

    Returns
    -------
    vertices : (n, 3) array
    faces : (m, 3) int32 array
        Closed and manifold, oriented outwards.
    """
    points, faces = marching_tetrahedra(_on_grid(field, low, high, cell), low, cell)
    while len(points) < 6 * vertices:  # edge collapse needs a choice, to remove all slivers
        cell /= 1.4
        points, faces = marching_tetrahedra(_on_grid(field, low, high, cell), low, cell)
    for _ in range(4):  # slivers would block edge collapse
        points = 0.3 * points + 0.7 * neighbour_mean(points, faces)
    points = _projected(field, points, cell, rounds=2)
    kept, faces = decimate(points, faces, vertices, size=size(points))
    return _relaxed(field, points[kept], faces, cell), faces


def marching_tetrahedra(values: Array, low: Array, cell: float) -> tuple[Array, NDArray[np.int32]]:
    """Mesh the zero level of values on a grid whose cubes are split into six tetrahedra each.

    Parameters
    ----------
    values : (p, q, r) array
        Negative inside, positive outside and on the border.
    low : (3,) array
        Position of the first grid point.
    cell : float
        Edge length of the grid.

    Returns
    -------
    vertices : (n, 3) array
    faces : (m, 3) int32 array
        Always closed and manifold, oriented outwards.
    """
    shape = np.array(values.shape)
    inner = [values[tuple(slice(k, n - 1 + k) for k, n in zip(corner, shape, strict=True))] < 0 for corner in _CORNERS]
    number = np.sum(inner, axis=0)
    cubes = np.argwhere((number > 0) & (number < 8))  # the others hold no surface
    values = values.ravel()
    values = np.where(values == 0, 1e-12, values)  # no grid point lies on the surface
    strides = np.array([shape[1] * shape[2], shape[2], 1])
    cubes = cubes @ strides
    tetrahedra = []
    for order in permutations(range(3)):  # paths along the edges from one corner of the cube to the opposite one
        path = np.concatenate([[0], np.cumsum(strides[list(order)])])
        if _odd(order):
            path = path[[1, 0, 2, 3]]
        tetrahedra.append(cubes[:, None] + path)
    tets = np.concatenate(tetrahedra)
    inside = values[tets] < 0
    number = inside.sum(axis=1)
    tets, inside, number = (array[(number > 0) & (number < 4)] for array in (tets, inside, number))
    # inside corners first; a reordering that is odd turns the tetrahedron inside out
    order_of = np.argsort(~inside, axis=1, kind="stable")
    tets = np.take_along_axis(tets, order_of, axis=1)
    odd = sum((order_of[:, i] < order_of[:, j]).astype(int) for i in range(4) for j in range(i)) % 2 == 1
    # swap two corners on the same side of the surface to turn it back
    for count, swapped in ((1, [0, 2, 1, 3]), (2, [1, 0, 2, 3]), (3, [1, 0, 2, 3])):
        rows = odd & (number == count)
        tets[rows] = tets[rows][:, swapped]
    patterns = {
        1: [((0, 1), (0, 2), (0, 3))],
        2: [((0, 2), (1, 3), (1, 2)), ((0, 2), (0, 3), (1, 3))],
        3: [((3, 0), (3, 1), (3, 2))],
    }
    corners = np.concatenate(
        [tets[number == k][:, np.array(triangle)] for k, found in patterns.items() for triangle in found]
    )  # (m, 3, 2): a vertex of the surface lies on an edge of the grid
    edges, faces = np.unique(np.sort(corners, axis=2).reshape(-1, 2), axis=0, return_inverse=True)
    first, second = values[edges].T
    fraction = (first / (first - second))[:, None]
    start, end = (np.stack(np.unravel_index(side, shape), axis=1) for side in edges.T)
    points = low + cell * (start * (1 - fraction) + end * fraction)
    return points, faces.reshape(-1, 3).astype(np.int32)


def _on_grid(field: Field, low: Array, high: Array, cell: float) -> Array:
    """(p, q, r) values of a field on a grid over a box."""
    axes = [np.arange(a, b + cell, cell) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    values = np.concatenate([field(part) for part in np.array_split(grid, 1 + len(grid) // 50_000)])
    return values.reshape([len(axis) for axis in axes])


def _odd(order: tuple[int, ...] | NDArray[np.int64]) -> bool:
    return bool(sum(order[i] > order[j] for i in range(len(order)) for j in range(i + 1, len(order))) % 2)


def _gradient(field: Field, points: Array, step: float) -> Array:
    moves = step * np.eye(3)
    return np.stack([(field(points + move) - field(points - move)) / (2 * step) for move in moves], axis=1)


def _projected(field: Field, points: Array, cell: float, rounds: int = 3) -> Array:
    """Newton's method along the gradient."""
    for _ in range(rounds):
        slope = _gradient(field, points, 1e-3 * cell)
        step = field(points) / np.maximum((slope**2).sum(axis=1), 0.05)
        points = points - np.clip(step, -cell, cell)[:, None] * slope
    return points


def _relaxed(field: Field, points: Array, faces: NDArray[np.int32], cell: float, rounds: int = 8) -> Array:
    """Move vertices within the surface towards the mean of their neighbours, for even triangles."""
    for _ in range(rounds):
        normal = _gradient(field, points, 1e-3 * cell)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        move = neighbour_mean(points, faces) - points
        move -= (move * normal).sum(axis=1, keepdims=True) * normal
        points = _projected(field, points + 0.5 * move, cell, rounds=1)
    return _projected(field, points, cell)


def neighbour_mean(points: FloatArray, faces: IntArray) -> Array:
    """(n, 3) mean of the neighbours of every vertex of a closed mesh."""
    start, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()  # closed: every edge in both directions
    total = np.stack([np.bincount(start, points[end, d], len(points)) for d in range(3)], axis=1)
    mean: Array = total / np.bincount(start, minlength=len(points))[:, None]
    return mean


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
