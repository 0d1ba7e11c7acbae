"""Normals of a point cloud that all point outwards."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree

from acnn.compilation import compiled
from acnn.shapes.shape import FloatArray, IntArray

NEIGHBOURS = 8
"""Few enough that the neighbours of a point on a finger are not those on the finger's other side."""

_SOURCES = 20_000


def outward_normals(points: FloatArray, neighbours: int = NEIGHBOURS) -> FloatArray:
    """(n, 3) unit normals of a cloud, oriented alike and outwards.

    1. The direction of least spread around each point.
    2. Signs carried along the spanning tree of neighbours whose tangent planes differ least (after Hoppe et al. 1992).
    3. Where a region got the wrong sign, normals jump at its border: every region that is cut off by such jumps is
       turned if that lowers its energy as a sheet of dipoles in the field of all others, which is lowest where all
       normals point to the same side of one closed surface (in the spirit of Metzer et al. 2021).
    4. Each connected piece is turned so that the flux of position through it is positive.
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
    # A step along the normals leads to the other side of a thin part, or across a gap: not to be trusted.
    rise = np.abs(np.einsum("ij,ij->i", step, normals[i])) + np.abs(np.einsum("ij,ij->i", step, normals[j]))

    _align_along_tree(normals, rise, i, j)
    spacing = distance[:, min(6, k)]
    level = rise < 0.7
    _turn_regions(points, normals, spacing, i[level], j[level])
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


def _turn_regions(points: FloatArray, normals: FloatArray, spacing: FloatArray, i: IntArray, j: IntArray) -> None:
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
