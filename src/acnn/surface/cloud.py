"""Point clouds: outward normals, overlapping local triangulations, and curvature from fitted quadrics."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree

from acnn.compilation import compiled
from acnn.errors import InputError
from acnn.shapes.mesh import PointCloud
from acnn.surface.local_triangulations import local_triangulations
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

NEIGHBOURS = 24
"""Least number of points that a quadric, which has 6 coefficients, is fitted to."""

LOCAL_NEIGHBOURS = 40
"""Number of nearest points among which the neighbours of a point in its local triangulation are sought."""

ROUNDS = 3
"""How often estimated normals are replaced by those of the triangles computed with them."""

NORMAL_NEIGHBOURS = 8
"""Neighbours that a normal is estimated from: few, so that a point on a finger has none on the finger's other side."""

_SOURCES = 20_000
"""Largest number of dipoles whose field is summed, which bounds the time for large clouds."""


def triangulate_cloud(cloud: PointCloud) -> tuple[IntArray, FloatArray, FloatArray]:
    """Triangles around every point, from the Delaunay triangulation of its neighbours in its tangent plane.

    Each triangle belongs to the local triangulations of one, two or all three of its corners and has weight 1/3, 2/3 or
    1; where more than three points lie on one circle, the weight is divided among all their triangulations
    (`local_triangulations`). Normals that are not given are estimated, and then improved by those of the triangles.

    Parameters
    ----------
    cloud : PointCloud

    Returns
    -------
    faces : (m, 3) int32 array
        Counter-clockwise seen from outside.
    weights : (m,) array
    normals : (n, 3) array
        Outward unit normals of the points.

    Raises
    ------
    InputError
        For fewer than four points.
    """
    n = len(cloud.vertices)
    if n < 4:
        raise InputError(f"A cloud of {n} points has no surface; at least 4 are needed.")
    near = cKDTree(cloud.vertices).query(cloud.vertices, min(LOCAL_NEIGHBOURS + 1, n))[1].astype(np.int32)
    if cloud.normals is not None:
        normals = _unit(cloud.normals)
        return *_weighted_triangles(cloud.vertices, normals, near), normals
    normals = outward_normals(cloud.vertices)
    for _ in range(ROUNDS):
        faces, weights = _weighted_triangles(cloud.vertices, normals, near)
        a, b, c = (cloud.vertices[faces[:, k]] for k in range(3))
        vector = np.cross(b - a, c - a) * weights[:, None]
        total = np.stack(
            [np.bincount(faces.ravel(), weights=np.repeat(vector[:, axis], 3), minlength=n) for axis in range(3)],
            axis=1,
        )
        nonzero = np.linalg.norm(total, axis=1, keepdims=True) > 0
        normals = np.where(nonzero, _unit(total.astype(float)), normals)
    return *_weighted_triangles(cloud.vertices, normals, near), normals


def _weighted_triangles(points: FloatArray, normals: FloatArray, near: IntArray) -> tuple[IntArray, FloatArray]:
    """Unique triangles of the local triangulations, oriented by the normals, and their weights."""
    triangles, fractions = local_triangulations(points, normals, near)
    faces, same = np.unique(np.sort(triangles, axis=1), axis=0, return_inverse=True)
    a, b, c = (points[faces[:, k]] for k in range(3))
    facing = np.einsum("ij,ij->i", np.cross(b - a, c - a), normals[faces].sum(axis=1))
    faces[facing < 0] = faces[facing < 0][:, [0, 2, 1]]
    return faces.astype(np.int32), np.bincount(same.ravel(), weights=fractions, minlength=len(faces)).astype(float)


def quadric_tensors(surface: Surface, radius: float) -> FloatArray:
    """Second fundamental form from a quadric z = (a x^2 + 2 b x y + c y^2) / 2 + d x + e y + f at each point.

    The fit is weighted least squares over all points within twice the radius, at least `NEIGHBOURS` of them, in the
    frame of the point's normal; z points inwards, so that convex is positive.

    Parameters
    ----------
    surface : Surface
        Made from a cloud.
    radius : float
        In normalised units.

    Returns
    -------
    (n, 3, 3) array
    """
    points, normals = surface.vertices, surface.normals
    n = len(points)
    tree = cKDTree(points)
    distance, near = tree.query(points, min(4 * NEIGHBOURS, n))
    reach = np.maximum(2.0 * radius, distance[:, min(NEIGHBOURS, n - 1)] * (1.0 + 1e-9))  # all that are equally far
    across = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    first = _unit(np.cross(normals, across))
    second = np.cross(normals, first)
    tensors = np.empty((n, 3, 3))
    crowded = distance[:, -1] < reach if n > distance.shape[1] else np.zeros(n, bool)
    for begin in range(0, n, 4096):  # bounds the memory of the stacked systems
        part = np.arange(begin, min(begin + 4096, n))
        part = part[~crowded[part]]
        tensors[part] = _fitted(points, normals, first, second, part, near[part], distance[part], reach[part])
    dense = np.flatnonzero(crowded)
    within = tree.query_ball_point(points[dense], reach[dense], return_length=True)
    begin = 0
    while begin < len(dense):
        rows = max(1, 4096 * 4 * NEIGHBOURS // int(within[begin : begin + 4096].max()))
        part = dense[begin : begin + rows]
        apart, close = tree.query(points[part], min(int(within[begin : begin + rows].max()) + 1, n))
        tensors[part] = _fitted(points, normals, first, second, part, close, apart, reach[part])
        begin += rows
    return tensors


def _fitted(
    points: FloatArray,
    normals: FloatArray,
    first: FloatArray,
    second: FloatArray,
    part: IntArray,
    near: IntArray,
    distance: FloatArray,
    reach: FloatArray,
) -> FloatArray:
    """(p, 3, 3) array, tensors at the points `part` from those of their neighbours (p, k) that lie within `reach`."""
    offset = points[near] - points[part, None]
    x = np.einsum("ijk,ik->ij", offset, first[part])
    y = np.einsum("ijk,ik->ij", offset, second[part])
    z = -np.einsum("ijk,ik->ij", offset, normals[part])
    facing = np.einsum("ijk,ik->ij", normals[near], normals[part])  # leaves out the far side of thin parts
    weight = np.exp(-2.0 * (distance / reach[:, None]) ** 2) * (distance <= reach[:, None])
    weight = np.where(facing > 0, weight, 0.0)
    size = reach[:, None]
    terms = np.stack([x * x / 2, x * y, y * y / 2, x * size, y * size, size**2 * np.ones_like(x)], axis=2)
    terms /= size[..., None] ** 2
    normal = np.einsum("ij,ija,ijb->iab", weight, terms, terms)
    normal += 1e-9 * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(6)
    fit = np.linalg.solve(normal, np.einsum("ij,ija,ij->ia", weight, terms, z)[..., None])[:, :3, 0]
    a, b, c = fit.T / reach**2
    u, v = first[part], second[part]
    return (
        a[:, None, None] * _outer(u, u)
        + b[:, None, None] * (_outer(u, v) + _outer(v, u))
        + c[:, None, None] * _outer(v, v)
    )


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    return a[:, :, None] * b[:, None, :]


def _unit(vectors: FloatArray) -> FloatArray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)


def outward_normals(points: FloatArray, neighbours: int = NORMAL_NEIGHBOURS) -> FloatArray:
    """Unit normals of a point cloud, oriented consistently and outwards.

    1. The normal is the direction of least variance around each point.
    2. Signs are propagated along the spanning tree of neighbours whose tangent planes differ least (after Hoppe et al.
       1992).
    3. Where a region got the wrong sign, normals jump at its boundary: every region bounded by such jumps is flipped if
       that lowers its energy as a sheet of dipoles in the field of all others, which is lowest where all normals point
       to the same side of one closed surface (in the spirit of Metzer et al. 2021).
    4. Each connected component is flipped so that the flux of position through it is positive.

    Parameters
    ----------
    points : (n, 3) array
    neighbours : int
        Number of neighbours that a normal is estimated from.

    Returns
    -------
    (n, 3) array
    """
    n = len(points)
    k = min(neighbours, n - 1)
    distance, near = cKDTree(points).query(points, k + 1)
    # Weights fall to zero at the last neighbour, so that it does not matter which of two equally far ones it is.
    weight = np.maximum(1.0 - (distance / np.maximum(distance[:, -1:], 1e-300)) ** 2, 1e-9)
    weight /= weight.sum(axis=1, keepdims=True)
    offset = points[near] - np.einsum("ij,ijk->ik", weight, points[near])[:, None]
    normals = np.ascontiguousarray(np.linalg.eigh(np.einsum("ij,ija,ijb->iab", weight, offset, offset))[1][:, :, 0])
    i, j = np.repeat(np.arange(n), k), near[:, 1:].ravel()

    step = points[j] - points[i]
    step /= np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-300)
    # A step along the normals leads to the other side of a thin part or across a gap, and is not reliable.
    rise = np.abs(np.einsum("ij,ij->i", step, normals[i])) + np.abs(np.einsum("ij,ij->i", step, normals[j]))

    _align_along_tree(normals, rise, i, j)
    spacing = distance[:, min(6, k)]
    level = rise < 0.7
    _flip_regions(points, normals, spacing, i[level], j[level])
    pieces, label = connected_components(sp.coo_array((np.ones(len(i)), (i, j)), shape=(n, n)), directed=False)
    for piece in range(pieces):
        member = label == piece
        centred = points[member] - points[member].mean(axis=0)
        flux = spacing[member] ** 2 * np.einsum("ij,ij->i", centred, normals[member])
        outwards = float(flux.sum())
        if abs(outwards) < 1e-9 * np.abs(centred).max() * float((spacing[member] ** 2).sum()):
            # A flat piece has no outside: one of its sides, whatever the order of its points.
            mean = normals[member].mean(axis=0)
            outwards = float(mean[np.argmax(np.abs(mean) > 0.1)])
        if outwards < 0:
            normals[member] *= -1.0
    return normals


def _align_along_tree(normals: FloatArray, rise: FloatArray, i: IntArray, j: IntArray) -> None:
    n = len(normals)
    cost = 1.0 - np.abs(np.einsum("ij,ij->i", normals[i], normals[j])) + rise + 1e-6
    spanning = minimum_spanning_tree(sp.coo_array((cost, (i, j)), shape=(n, n)).tocsr())
    spanning = (spanning + spanning.T).tocsr()
    left = np.ones(n, dtype=bool)
    for root in range(n):
        if not left[root]:
            continue
        order, parent = breadth_first_order(spanning, root, directed=False)
        left[order] = False
        for v in order[1:]:
            if normals[v] @ normals[parent[v]] < 0:
                normals[v] *= -1.0


def _flip_regions(points: FloatArray, normals: FloatArray, spacing: FloatArray, i: IntArray, j: IntArray) -> None:
    n = len(points)
    smooth = np.einsum("ij,ij->i", normals[i], normals[j]) > 0.7
    _, label = connected_components(
        sp.coo_array((smooth[smooth], (i[smooth], j[smooth])), shape=(n, n)), directed=False
    )
    regions = np.argsort(np.bincount(label), kind="stable")[:-1]  # the largest stays as it is
    if len(regions) == 0:
        return
    rng = np.random.default_rng(0)
    sources = np.sort(rng.permutation(n)[:_SOURCES]).astype(np.int64)
    order = np.argsort(label, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(label))])
    for _ in range(5):
        turned = 0
        for region in regions:
            member = order[start[region] : start[region + 1]]
            if _dipole_energy(points, normals, spacing, member[:500], label, sources) > 0:
                normals[member] *= -1.0
                turned += 1
        if not turned:
            break


@compiled(nogil=True)
def _dipole_energy(
    points: FloatArray, normals: FloatArray, spacing: FloatArray, member: IntArray, label: IntArray, sources: IntArray
) -> float:
    """Sum over members of n_i . grad w(x_i), with w the winding number of the sources in other regions."""
    region = label[member[0]]
    energy = 0.0
    for i in member:
        for j in sources:
            if label[j] == region:
                continue
            dx, dy, dz = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
            squared = dx * dx + dy * dy + dz * dz + 0.25 * spacing[i] * spacing[i]
            inverse = spacing[j] * spacing[j] / (squared * np.sqrt(squared))
            nn = normals[i, 0] * normals[j, 0] + normals[i, 1] * normals[j, 1] + normals[i, 2] * normals[j, 2]
            ni = normals[i, 0] * dx + normals[i, 1] * dy + normals[i, 2] * dz
            nj = normals[j, 0] * dx + normals[j, 1] * dy + normals[j, 2] * dz
            energy += inverse * (3.0 * ni * nj / squared - nn)
    return energy
