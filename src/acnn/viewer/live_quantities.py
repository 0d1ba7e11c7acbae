"""Numbers that the live viewer turns into colours, and what a click meets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.correspondence import SoftMap
from acnn.patches.operator import PatchOperator
from acnn.shapes.shape import FloatArray, IntArray
from acnn.surface.surface import Surface


def spread_on_reference(soft_map: SoftMap, vertex: int) -> FloatArray:
    """(m,) probability f(x, .) of every reference vertex for one query vertex, as far as the soft map lists it."""
    spread = np.zeros(soft_map.reference_size)
    np.add.at(spread, soft_map.vertices[vertex], soft_map.probabilities[vertex])
    return spread


def spread_on_query(soft_map: SoftMap, reference_vertex: int) -> FloatArray:
    """(n,) probability f(., y) that each query vertex gives to one reference vertex."""
    return np.where(soft_map.vertices == reference_vertex, soft_map.probabilities, 0.0).sum(axis=1)


def spread_onward(spread: FloatArray, reference_to_target: IntArray, target_size: int) -> FloatArray:
    """(target vertices,) a distribution over the reference carried to another shape; probabilities add up."""
    return np.bincount(reference_to_target, weights=spread, minlength=target_size).astype(float)


def kernel_row(patches: PatchOperator, vertex: int, angle: int, scale: int) -> FloatArray:
    """(n,) density of the kernel of one vertex: weights over vertex areas, for an angle and a scale by position."""
    s = patches.settings
    if scale in patches.narrow:
        block = angle * len(patches.narrow) + patches.narrow.index(scale)
        part = slice(*patches.start[block * patches.n + vertex : block * patches.n + vertex + 2])
        row = np.zeros(patches.n)
        row[patches.vertices[part].astype(np.int64)] = patches.values[part]
        return row / patches.vertex_areas
    basis = patches.eigenfunctions[angle]
    return (np.exp(-s.scales[scale] * patches.eigenvalues[angle]) * basis[vertex]) @ basis.T


def filter_row(patches: PatchOperator, vertex: int, weights: ArrayLike) -> FloatArray:
    """(n,) density of a filter laid on the surface at one vertex: sum over theta, t of a(theta, t) w(theta, t).

    - weights: (angles, scales) a(theta, t)
    """
    table = np.asarray(weights)
    row = np.zeros(patches.n)
    for angle, scale in np.ndindex(*table.shape):
        row += table[angle, scale] * kernel_row(patches, vertex, angle, scale)
    return row


def direction_ribbons(surface: Surface, frames: FloatArray, count: int = 3000) -> tuple[FloatArray, FloatArray]:
    """Narrow quads along both principal directions of some faces, a little above the surface.

    - frames: (faces, 2, 3) of `principal_frames`
    - count: faces, at most

    Returns two (k, 4, 3) arrays of corners in the surface's coordinates, in order around each quad: along the larger
    curvature, and along the smaller.
    """
    chosen = np.arange(0, len(surface.faces), max(1, -(-len(surface.faces) // count)))
    above = 0.15 * surface.mean_edge * surface.face_normals[chosen]
    middle = surface.vertices[surface.faces[chosen]].mean(axis=1) + above
    spacing = surface.mean_edge * np.sqrt(len(surface.faces) / len(chosen))
    larger, smaller = (_quads(middle, spacing * frames[chosen, i], spacing * frames[chosen, 1 - i]) for i in (0, 1))
    return larger, smaller


def vertex_on_ray(
    vertices: FloatArray, faces: IntArray, origin: ArrayLike, direction: ArrayLike
) -> tuple[int, float] | None:
    """The vertex nearest to where a ray first meets a mesh, and how far along the ray that is; None where it misses.

    - vertices, faces: (n, 3), (m, 3)
    - origin, direction: (3,) in the same coordinates; distance is in lengths of `direction`
    """
    start, along = np.asarray(origin, np.float64), np.asarray(direction, np.float64)
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    ab, ac = b - a, c - a
    cross = np.cross(along, ac)
    volume = np.einsum("ij,ij->i", ab, cross)
    safe = np.where(np.abs(volume) > 1e-300, volume, np.inf)  # faces seen edge-on are missed
    offset = start - a
    u = np.einsum("ij,ij->i", offset, cross) / safe
    turned = np.cross(offset, ab)
    v = turned @ along / safe
    distance = np.einsum("ij,ij->i", ac, turned) / safe
    slack = 1e-9
    hit = np.isfinite(safe) & (u >= -slack) & (v >= -slack) & (u + v <= 1 + slack) & (distance > 0)
    if not hit.any():
        return None
    face = int(np.where(hit, distance, np.inf).argmin())
    point = start + distance[face] * along
    corner = np.linalg.norm(vertices[faces[face]] - point, axis=1).argmin()
    return int(faces[face, corner]), float(distance[face])


def shares(values: FloatArray) -> NDArray[np.float64]:
    """The values over their largest, in 0..1; all 0 where none is positive."""
    most = float(values.max(initial=0.0))
    return np.clip(values / most, 0.0, 1.0) if most > 0 else np.zeros(len(values))


def _quads(middle: FloatArray, along: FloatArray, across: FloatArray) -> FloatArray:
    long, wide = 0.38 * along, 0.035 * across
    return np.stack([middle - long - wide, middle + long - wide, middle + long + wide, middle - long + wide], axis=1)
