"""Detached parts of a target, such as a hand whose arm is missing, matched to where the template fits them.

A component that lies alone says little about which part of the template it is: its matches are often those of a similar
part. But the rest of the target leaves few places to it: regions of the template to which nothing else is matched
(free), and which are long enough to reach from there. Rigid motions of the template that bring such a region onto the
points are compared by

    S = mean_k min(d_k / ACCURATE, 1) + U + V / 2,

with d_k the distance of point k and its normal from the moved region, U the fraction of the surroundings of its matches
that have no points (a hand has them everywhere but at the wrist, a piece of an arm lacks them at both ends), and V the
fraction of points that are farther from fitted parts, in a straight line, than their matches are along the template.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from acnn.registration.deformation import nearest_stretches, robust_weights
from acnn.shapes.mesh import Mesh
from acnn.shapes.topology import mesh_edges
from acnn.surface.surface import surface_of, vertex_normals
from acnn.surface.working_copy import farthest_points
from acnn.types import FloatArray, IntArray

# Lengths are in square roots of the template's area (1.3 m for a human body).

FOLLOWED = 0.06
"""Residual of a match up to which a fit follows it."""

NEAR = 0.03
"""Distance from the fitted template up to which a point lies on it if the normals agree, whatever its match."""

LOST = 0.2
"""Fraction of the points of a component, neither followed nor near, from which it is matched again."""

LEAST = 0.003, 20
"""Components of a smaller fraction of the points, or of fewer points, are left as they are."""

FREE = 0.04
"""Distance of a fitted vertex to the points that are followed, above which it is free."""

SLACK = 1.15, 0.05
"""Factor and length by which points may be farther from fitted parts than along the template."""

AROUND = 0.06
"""Length along the template that belongs to the surroundings of matches."""

ACCURATE = 0.02
"""The d_k that means nothing any more."""

WORST = 0.75
"""The first term of S above which no region of the template is taken to be the component."""

TURNED = 0.03
"""Distance that a difference of 1 between unit normals is worth."""

REGIONS, ANCHORS, POINTS = 40, 60, 200
"""Most regions, fitted vertices and points of a component that are compared."""

FEWEST = 10
"""Fewest faces of a region."""

ROUGH, FINE, COMPARED = 5, 12, 12
"""Iterations of closest points of all motions, and of so many best ones."""

Motion = tuple[FloatArray, FloatArray]
"""Rotation and translation, x -> R x + t."""


@dataclass(frozen=True, eq=False)
class Rematched:
    """New matches of some points: centroids of `faces` of the template, with `weights` in 0..1."""

    points: IntArray
    faces: IntArray
    weights: FloatArray


def rematch_detached(
    template: Mesh,
    fitted: FloatArray,
    points: FloatArray,
    normals: FloatArray,
    component: IntArray,
    residuals: FloatArray,
) -> list[Rematched]:
    """Match components of a target again whose matches a fit does not follow.

    Parameters
    ----------
    template : Mesh
        Of n vertices and area 1.
    fitted : (n, 3) array
        Its vertices after a first, stiff fit.
    points, normals : (k, 3) array
        Points of the target with matches, in the same unit of length.
    component : (k,) int array
        Of each point.
    residuals : (k,) array
        Distances of the points from their matches on the fitted template.

    Returns
    -------
    list[Rematched]
        Of the components that were found elsewhere, the largest first; the component with most points never is.
    """
    sizes = np.bincount(component)
    if len(sizes) < 2:
        return []
    lost = (residuals > FOLLOWED) & ~_on_surface(points, normals, fitted, vertex_normals(fitted, template.faces))
    groups = []
    for label in np.argsort(-sizes, kind="stable")[1:]:
        members = component == label
        if sizes[label] >= max(LEAST[0] * len(points), LEAST[1]) and lost[members].mean() > LOST:
            lost |= members
            groups.append(np.flatnonzero(members))
    if not groups or lost.all():
        return []
    free = cKDTree(points[~lost]).query(fitted)[0] > FREE
    space = _Template(template)
    rematched = []
    for group in groups:
        matched = _placed(space, fitted, free, points[group], normals[group])
        if matched is not None:
            rematched.append(Rematched(group, *matched))
            free[template.faces[matched[0]]] = False
    return rematched


def _on_surface(
    points: FloatArray, normals: FloatArray, fitted: FloatArray, directions: FloatArray
) -> NDArray[np.bool_]:
    distances, near = cKDTree(fitted).query(points, 4)
    facing = np.einsum("nkd,nd->nk", directions[near], normals) > 0.3
    return np.asarray(((distances < NEAR) & facing).any(axis=1))


class _Template:
    """Centroids, normals and areas of faces, and distances along edges."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.centroids = mesh.vertices[mesh.faces].mean(axis=1)
        surface = surface_of(mesh, 1.0)
        self.normals, self.areas = surface.face_normals, surface.face_areas
        edges = mesh_edges(mesh.faces).vertices
        lengths = np.linalg.norm(mesh.vertices[edges[:, 0]] - mesh.vertices[edges[:, 1]], axis=1)
        self._graph = sp.csr_array((lengths, (edges[:, 0], edges[:, 1])), shape=(len(mesh.vertices),) * 2)

    def distances(self, vertices: IntArray) -> FloatArray:
        """(s, m) array, of the faces from each vertex."""
        return np.asarray(dijkstra(self._graph, directed=False, indices=vertices)[:, self.mesh.faces].mean(axis=2))

    def around(self, vertices: IntArray) -> NDArray[np.bool_]:
        """(n,) vertices within `AROUND` of some."""
        return np.isfinite(dijkstra(self._graph, directed=False, indices=vertices, min_only=True, limit=AROUND))


def _placed(
    template: _Template, fitted: FloatArray, free: NDArray[np.bool_], points: FloatArray, normals: FloatArray
) -> tuple[IntArray, FloatArray] | None:
    """Faces of the free template that the points fit best, and weights; None where they fit none."""
    faces = np.flatnonzero(free[template.mesh.faces].any(axis=1))
    settled = np.flatnonzero(~free)
    if len(faces) < FEWEST or not len(settled):
        return None
    random = np.random.default_rng(0)
    anchors = settled[farthest_points(fitted[settled], min(ANCHORS, len(settled)))]
    reach = SLACK[0] * template.distances(anchors)[:, faces] + SLACK[1]
    centre = np.linalg.norm(points.mean(axis=0) - fitted[anchors], axis=1)
    reached = (centre[:, None] <= reach).all(axis=0)
    ends = np.unique(template.mesh.faces[faces[reached] if reached.any() else faces])
    seeds = ends[farthest_points(template.mesh.vertices[ends], min(REGIONS, len(ends)))]
    some = random.permutation(len(points))[:POINTS]
    x, directions = points[some], normals[some]
    straight = np.linalg.norm(x[:, None] - fitted[anchors], axis=2)
    region, few, motions = _Region(template, faces), slice(POINTS * 2 // 5), []
    for motion in _aligned(template, faces, seeds, points):
        moved, distances, _ = region.closest(x[few], directions[few], motion, ROUGH, 2 * NEAR)
        motions.append((float(np.minimum(distances, 2 * NEAR).mean()), moved))
    tree, best = cKDTree(points), (np.inf, np.inf, motions[0][1])
    for _, motion in sorted(motions, key=lambda pair: pair[0])[:COMPARED]:
        moved, distances, nearest = region.closest(x, directions, motion, FINE, NEAR)
        fit = float(np.minimum(distances / ACCURATE, 1.0).mean())
        too_far = float((straight > reach[:, nearest].T).any(axis=1).mean())
        covered = nearest[distances < ACCURATE] if (distances < ACCURATE).any() else nearest
        around = free & template.around(np.unique(template.mesh.faces[faces[covered]]))
        rotation, shift = moved
        gaps = tree.query(template.mesh.vertices[around] @ rotation.T + shift)[0] > NEAR
        best = min(best, (fit + gaps.mean() + too_far / 2, fit, moved), key=lambda found: found[0])
    if best[1] > WORST:
        return None
    _, distances, nearest = region.closest(points, normals, best[2], 0, NEAR)
    return faces[nearest], robust_weights(distances, NEAR)


def _aligned(template: _Template, faces: IntArray, seeds: IntArray, points: FloatArray) -> list[Motion]:
    """Motions that align principal axes of the points with those of regions as wide as they are, in the four ways."""
    centre, axes = _principal_axes(points, np.ones(len(points)))
    width = np.linalg.norm(points - centre, axis=1).max()
    motions: list[Motion] = []
    for row in template.distances(seeds)[:, faces]:
        inside = faces[row <= max(width, np.sort(row)[:FEWEST][-1])]
        middle, others = _principal_axes(template.centroids[inside], template.areas[inside])
        for signs in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)):
            rotation = axes.T @ (np.array(signs)[:, None] * others)
            motions.append((rotation, centre - rotation @ middle))
    return motions


def _principal_axes(points: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centroid, and right-handed axes in rows."""
    centre = weights @ points / weights.sum()
    axes = np.linalg.svd((points - centre) * np.sqrt(weights)[:, None], full_matrices=False)[2]
    axes[2] *= np.sign(np.linalg.det(axes))
    return centre, axes


class _Region:
    """Faces of the template among which closest points are looked for."""

    def __init__(self, template: _Template, faces: IntArray) -> None:
        self._centroids = template.centroids[faces]
        self._tree = cKDTree(np.hstack([self._centroids, TURNED * template.normals[faces]]))

    def closest(
        self, points: FloatArray, normals: FloatArray, motion: Motion, iterations: int, reach: float
    ) -> tuple[Motion, FloatArray, IntArray]:
        """The motion after iterations of closest points, distances of the points, and their faces in the list."""
        for left in range(iterations, -1, -1):
            rotation, shift = motion
            here = np.hstack([(points - shift) @ rotation, TURNED * normals @ rotation])
            distances, nearest = self._tree.query(here)
            if left:
                motion = _rigid(self._centroids[nearest], points, robust_weights(distances, reach))
        return motion, distances, nearest


def _rigid(source: FloatArray, target: FloatArray, weights: FloatArray) -> Motion:
    """The motion of points to others with least weighted squares."""
    w = weights / weights.sum()
    here, there = w @ source, w @ target
    rotation = nearest_stretches((((target - there) * w[:, None]).T @ (source - here))[None], 1.0)[0]
    return rotation, there - rotation @ here
