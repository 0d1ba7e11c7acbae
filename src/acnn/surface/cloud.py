"""Point clouds: outward normals, overlapping local triangulations, and curvature from fitted quadrics."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree

from acnn.compilation import compiled
from acnn.errors import InputError
from acnn.shapes.mesh import PointCloud
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
        For fewer than four points, or where a normal is zero.
    """
    n = len(cloud.vertices)
    if n < 4:
        raise InputError(f"A cloud of {n} points has no surface; at least 4 are needed.")
    near = cKDTree(cloud.vertices).query(cloud.vertices, min(LOCAL_NEIGHBOURS + 1, n))[1].astype(np.int32)
    if cloud.normals is not None:
        zero = np.flatnonzero(~cloud.normals.any(axis=1))
        if len(zero):
            raise InputError(
                f"The normal of point {zero[0]} of the cloud (and of {len(zero) - 1} more) is zero. Leave the normals "
                "out, and they are estimated."
            )
        normals = _unit(cloud.normals)
        return *_complete_triangles(cloud.vertices, normals, near), normals
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
    return *_complete_triangles(cloud.vertices, normals, near), normals


def _complete_triangles(points: FloatArray, normals: FloatArray, near: IntArray) -> tuple[IntArray, FloatArray]:
    """Those of `_weighted_triangles`, and one for each point that has none, as noise may leave a few of."""
    faces, weights = _weighted_triangles(points, normals, near)
    a, b, c = (points[faces[:, k]] for k in range(3))
    alone = np.ones(len(points), bool)
    alone[faces[np.linalg.norm(np.cross(b - a, c - a), axis=1) > 0]] = False
    added = []
    for i in np.flatnonzero(alone):
        others = near[i][near[i] != i]
        first, rest = points[others[0]] - points[i], points[others[1:]] - points[i]
        wide = np.linalg.norm(np.cross(first, rest), axis=1) > 0.1 * (rest**2).sum(axis=1)
        if wide.any():
            j, k = others[0], others[1:][wide.argmax()]
            outward = np.cross(points[j] - points[i], points[k] - points[i]) @ normals[i] >= 0
            added.append((i, j, k) if outward else (i, k, j))
    if not added:
        return faces, weights
    return np.vstack([faces, np.array(added, dtype=np.int32)]), np.append(weights, np.full(len(added), 1.0 / 3.0))


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
    # Where points are too few for a fit, the smallest quadric that fits is taken; b occurs twice in its matrix, so that
    # its size, and with it the fit, does not depend on the directions of x and y.
    normal += 1e-9 * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.diag([1.0, 2.0, 1.0, 1.0, 1.0, 1.0])
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


STRAIGHT = 1e-5
"""Angle in radians below which points are taken to lie on one circle or line: above the rounding of single precision,
and small enough to change nothing else."""


@compiled(nogil=True)
def local_triangulations(points: FloatArray, normals: FloatArray, near: IntArray) -> tuple[IntArray, FloatArray]:
    """Triangles at each point in the Delaunay triangulation of its neighbours in its tangent plane.

    A neighbour q of a point at the origin is joined to it where q / |q|^2 is a corner of the convex hull of all of
    them (the hull is the polar dual of the point's Voronoi cell); triangles go from one corner of the hull to the next.
    Neighbours on the far side of a thin part, whose normals point the other way, are left out.

    Each corner of a triangle whose local triangulation contains it adds 1/3 to its weight. On a regular grid four
    points or more lie on one circle, and their geometry prefers no triangulation of them. They are given the mean of
    all fans: each of m points on a circle adds 1/m to the triangles of the fan around it. So the result rotates with
    the points and does not depend on their order.

    Parameters
    ----------
    points, normals : (n, 3) array
    near : (n, k) array
        Neighbours of each point, -1 where there are fewer.

    Returns
    -------
    triangles : (m, 3) int32 array
        Each up to three times.
    weights : (m,) array
        What each adds to the weight of its triangle.
    """
    n, most = near.shape
    triangles, weights = np.empty((n * (most + 1), 3), np.int32), np.empty(n * (most + 1))
    count = 0
    flat = np.empty((most + 1, 2))
    index = np.empty(most + 1, np.int32)
    hull, path = np.empty(2 * most + 4, np.int64), np.empty(2 * most + 4, np.int64)
    for i in range(n):
        # Written out: products of small arrays would take ten seconds to compile.
        nx, ny, nz = normals[i, 0], normals[i, 1], normals[i, 2]
        if abs(nx) <= abs(ny) and abs(nx) <= abs(nz):
            ax, ay, az = 0.0, nz, -ny
        elif abs(ny) <= abs(nz):
            ax, ay, az = -nz, 0.0, nx
        else:
            ax, ay, az = ny, -nx, 0.0
        norm = math.sqrt(ax * ax + ay * ay + az * az)
        ax, ay, az = ax / norm, ay / norm, az / norm
        bx, by, bz = ny * az - nz * ay, nz * ax - nx * az, nx * ay - ny * ax
        # The point itself, at the origin, takes part in the hull: it is a corner of it where the surface ends.
        flat[0, 0], flat[0, 1], index[0] = 0.0, 0.0, -1
        many = 1
        for k in range(most):
            j = near[i, k]
            if j < 0 or j == i or nx * normals[j, 0] + ny * normals[j, 1] + nz * normals[j, 2] <= 0.0:
                continue
            dx, dy, dz = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1], points[j, 2] - points[i, 2]
            x, y = dx * ax + dy * ay + dz * az, dx * bx + dy * by + dz * bz
            squared, distance = x * x + y * y, dx * dx + dy * dy + dz * dz
            if squared <= 1e-12 * distance:
                continue
            # Keep distances of space while directions come from the plane, so that folds do not look near.
            stretch = math.sqrt(squared / distance)
            flat[many, 0], flat[many, 1] = x / squared * stretch, y / squared * stretch
            index[many] = j
            many += 1
        corners = _convex_hull(flat[:many], hull)
        begin = 0
        for c in range(corners):
            if not _goes_on(flat, hull, corners, c):
                begin = c
                break
        length = 0
        for step in range(corners):
            c = (begin + step) % corners
            a, b = hull[c], hull[(c + 1) % corners]
            if not _faces(flat, a, b):
                continue
            if length == 0:
                path[0] = a
                length = 1
            length = _append_between(flat[:many], a, b, path, length)
            if step + 1 < corners and _goes_on(flat, hull, corners, (c + 1) % corners):
                continue
            for k in range(length - 1):
                triangles[count, 0], triangles[count, 1] = i, index[path[k]]
                triangles[count, 2], weights[count] = index[path[k + 1]], 1.0 / (length + 1)
                count += 1
            length = 0
    return triangles[:count].copy(), weights[:count].copy()


@compiled(nogil=True)
def _faces(points: FloatArray, a: int, b: int) -> bool:
    """Whether a triangle of the origin lies on the side from a to b of the hull: not where the surface ends."""
    if a == 0 or b == 0:
        return False
    cross = points[a, 0] * points[b, 1] - points[a, 1] * points[b, 0]
    dot = points[a, 0] * points[b, 0] + points[a, 1] * points[b, 1]
    return cross > STRAIGHT * abs(dot)


@compiled(nogil=True)
def _goes_on(points: FloatArray, hull: IntArray, corners: int, c: int) -> bool:
    """Whether the two sides of the hull at corner c lie on one line: the corner and both neighbours on one circle."""
    a, b, d = hull[(c - 1) % corners], hull[c], hull[(c + 1) % corners]
    return _faces(points, a, b) and _faces(points, b, d) and _straight(points, a, b, d)


@compiled(nogil=True)
def _append_between(points: FloatArray, a: int, b: int, path: IntArray, length: int) -> int:
    """Append to a path the points on the way from a to b, in order, and b; returns the new length."""
    start = length
    for c in range(1, len(points)):
        if c in (a, b) or not _straight(points, a, c, b):
            continue
        k = length
        while k > start and _turn(points, 0, c, path[k - 1]) > 0.0:  # in the order in which the origin sees them
            path[k] = path[k - 1]
            k -= 1
        path[k] = c
        length += 1
    path[length] = b
    return length + 1


@compiled(nogil=True)
def _straight(points: FloatArray, a: int, b: int, c: int) -> bool:
    """Whether the way from a over b to c turns by less than `STRAIGHT`."""
    x, y = points[b, 0] - points[a, 0], points[b, 1] - points[a, 1]
    u, v = points[c, 0] - points[b, 0], points[c, 1] - points[b, 1]
    return abs(x * v - y * u) < STRAIGHT * (x * u + y * v)


@compiled(nogil=True)
def _convex_hull(points: FloatArray, hull: IntArray) -> int:
    """Corners of the convex hull, counter-clockwise, into `hull`; returns their number (Andrew's monotone chain)."""
    n = len(points)
    order = np.empty(n, np.int64)
    for k in range(n):  # by x, then y
        j = k
        while j > 0 and (
            points[k, 0] < points[order[j - 1], 0]
            or (points[k, 0] == points[order[j - 1], 0] and points[k, 1] < points[order[j - 1], 1])
        ):
            order[j] = order[j - 1]
            j -= 1
        order[j] = k
    size = 0
    for sweep in range(2):
        floor = size + 1
        for step in range(n):
            p = order[step] if sweep == 0 else order[n - 1 - step]
            while size > floor and _turn(points, hull[size - 2], hull[size - 1], p) <= 0.0:
                size -= 1
            hull[size] = p
            size += 1
        size -= 1  # the end of one sweep is the start of the other
    return size


@compiled(nogil=True)
def _turn(points: FloatArray, a: int, b: int, c: int) -> float:
    """Twice the signed area of the triangle a, b, c."""
    return (points[b, 0] - points[a, 0]) * (points[c, 1] - points[a, 1]) - (points[b, 1] - points[a, 1]) * (
        points[c, 0] - points[a, 0]
    )
