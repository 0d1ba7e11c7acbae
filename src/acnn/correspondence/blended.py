"""Blended intrinsic maps between closed surfaces of genus 0 (Kim, Lipman and Funkhouser 2011).

Both surfaces are flattened to the sphere, where every conformal map between them is a Moebius map, fixed by three point
pairs. Maps through triplets of features are each good in some region: where they keep areas. Those that agree with one
another are found by the largest eigenvector of their similarities, and blended vertex by vertex.

Two maps are similar where both are confident and send a point to nearby points:

    S_ij = sum_p a_p c_i(p) c_j(p) exp(-d(m_i(p), m_j(p)) / sigma^2)

over samples p of area a_p. Distances d are between the samples of B nearest to the images, which a small table holds:
with sigma = 0.5 sqrt(area), their spacing of about 0.05 sqrt(area) makes little difference.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh
from scipy.spatial import cKDTree

from acnn.compilation import compiled
from acnn.correspondence.conformal import (
    ComplexArray,
    ConformalSphere,
    MoebiusMaps,
    area_confidence,
    candidate_maps,
    check_sphere,
    flatten,
    homogeneous,
    images,
    in_conflict,
    sphere_points,
)
from acnn.correspondence.intrinsic_features import FeatureTable, feature_table, smoothed
from acnn.correspondence.soft_map import SoftMap, soft_map_from_point_map
from acnn.errors import InputError
from acnn.progress import Progress, begin_stage
from acnn.shapes.mesh import BarycentricPoints
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

COARSE_SAMPLES = 64
"""Samples at which all candidates are judged; the best are judged at all samples of the feature table."""

KEPT = 1500
"""Candidates of the largest confidence among which consistent ones are looked for."""

BLOCK = 10_000
"""Vertices that are blended at a time, which bounds the memory."""

BLEND_RADIUS = 0.15
"""Images farther than this, over sqrt(area), from the one that most agree with are left out of the mean."""


@dataclass(frozen=True)
class BlendedReport:
    """What was done to find a blended map.

    Attributes
    ----------
    a_features, b_features : int
    candidates : int
        Moebius maps that were tried.
    groups : int
        Groups of consistent maps.
    blended : int
        Maps in the group that was taken.
    distortion : float
        Mean change of geodesic distances between samples, over sqrt(area).
    mean_confidence : float
    """

    a_features: int
    b_features: int
    candidates: int
    groups: int
    blended: int
    distortion: float
    mean_confidence: float

    def as_dict(self) -> dict[str, Any]:
        """The attributes by name."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class BlendedMap:
    """A blended intrinsic map of A to B.

    Attributes
    ----------
    a_to_b : (n,) int32 array
        Vertex of B nearest to each image.
    points : BarycentricPoints
        (n,) images on the faces of B.
    confidence : (n,) array
        In 0..1: how well areas are kept by the maps that were blended, and how many of them agree.
    b_size : int
        Vertices of B.
    report : BlendedReport
    """

    a_to_b: IntArray
    points: BarycentricPoints
    confidence: FloatArray
    b_size: int
    report: BlendedReport

    def soft_map(self) -> SoftMap:
        """The map as a soft map with one match per vertex."""
        return soft_map_from_point_map(self.a_to_b, self.b_size, self.confidence)


@dataclass(frozen=True, eq=False)
class _Side:
    """One of the two shapes.

    Attributes
    ----------
    surface : Surface
    sphere : ConformalSphere
    table : FeatureTable
    log_density : (n,) array
        Logarithm of area per area on the sphere, smoothed.
    """

    surface: Surface
    sphere: ConformalSphere
    table: FeatureTable
    log_density: FloatArray

    @cached_property
    def vectors(self) -> ComplexArray:
        """(n, 2) homogeneous coordinates of the vertices on the sphere."""
        return homogeneous(self.sphere.coordinates)


def blended_map(a: Surface, b: Surface, seed: int = 0, progress: Progress | None = None) -> BlendedMap:
    """Map A to B by blending conformal maps.

    Orientation is kept, so left and right are not exchanged alone; a half turn about the long axis of a body, which
    exchanges left and right as well as front and back, may win where these look alike.

    Parameters
    ----------
    a, b : Surface
        Closed connected meshes of genus 0, normals outwards. Sizes may differ.
    seed : int
        Of the choice of candidates, where there are more than 10,000.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    BlendedMap

    Raises
    ------
    InputError
        Where a shape is a cloud, has a boundary, handles or several components, or no candidate is plausible.
    """
    steps = begin_stage(progress, "blended intrinsic map")
    report = steps if steps else lambda done, total: None
    check_sphere(a, "A")
    check_sphere(b, "B")
    here, there = _side(a), _side(b)
    report(1, 4)
    candidates = _candidates(here, there, seed)
    tried = len(candidates)
    tree = cKDTree(there.sphere.points)
    coarse = _confidences(candidates.matrices, here, there, tree, here.table.samples[:COARSE_SAMPLES])[0]
    candidates = candidates[np.sort(np.argsort(-coarse.mean(axis=1), kind="stable")[:KEPT])]
    confidence, image = _confidences(candidates.matrices, here, there, tree, here.table.samples)
    cells = there.table.cells[image]
    report(2, 4)
    groups = consistent_groups(candidates, confidence, cells, here.table, there.table)
    distortions = [
        distance_distortion(w[:, None] * confidence[rows], cells[rows], here.table, there.table) for rows, w in groups
    ]
    best = int(np.argmin(distortions))
    rows, weights = groups[best]
    report(3, 4)
    points, trust = _blend(candidates.matrices[rows], weights, here, there)
    facts = BlendedReport(
        a_features=len(here.table.features),
        b_features=len(there.table.features),
        candidates=tried,
        groups=len(groups),
        blended=len(rows),
        distortion=distortions[best],
        mean_confidence=float(trust @ a.vertex_areas / a.vertex_areas.sum()),
    )
    matched = points.nearest_vertex(b.vertices, b.faces).astype(np.int32)
    report(4, 4)
    return BlendedMap(matched, points, trust, len(b.vertices), facts)


def _side(surface: Surface) -> _Side:
    table = feature_table(surface)
    sphere = flatten(surface, int(np.argmin(table.average_distance)))
    return _Side(surface, sphere, table, smoothed(surface, sphere.log_density))


def _candidates(a: _Side, b: _Side, seed: int) -> MoebiusMaps:
    """Moebius maps through pairs of triplets of features at similar distances."""
    candidates = candidate_maps(
        a.vectors[a.table.features],
        b.vectors[b.table.features],
        a.table.feature_distances,
        b.table.feature_distances,
        np.random.default_rng(seed),
    )
    if not len(candidates):
        raise InputError(
            "No three features of A have counterparts on B at similar distances, but blended intrinsic maps (bim) "
            "start from these: use the method 'descriptors' or 'acnn'."
        )
    return candidates


def _confidences(
    matrices: ComplexArray, a: _Side, b: _Side, tree: cKDTree, samples: IntArray
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """(k, samples) confidence of each map, and the vertex of B nearest to each image."""
    k = len(matrices)
    confidence, image = np.empty((k, len(samples)), np.float32), np.empty((k, len(samples)), np.int32)
    vectors = a.vectors[samples]
    for first in range(0, k, 500):
        block = slice(first, first + 500)
        mapped, change = images(matrices[block], vectors)
        image[block] = tree.query(sphere_points(mapped))[1]
        confidence[block] = area_confidence(b.log_density[image[block]] + change - a.log_density[samples])
    return confidence, image


def _blend(matrices: ComplexArray, weights: FloatArray, a: _Side, b: _Side) -> tuple[BarycentricPoints, FloatArray]:
    """Images of all vertices of A on B, weighted means of those of several maps, and their confidence."""
    n = len(a.surface.vertices)
    on_sphere = ClosestPoints(b.sphere.points, b.surface.faces)
    corners = b.surface.vertices[b.surface.faces]
    mean, trust = np.empty((n, 3)), np.empty(n)
    for first in range(0, n, BLOCK):
        block = slice(first, min(first + BLOCK, n))
        mapped, change = images(matrices, a.vectors[block])
        points = on_sphere(sphere_points(mapped))
        shape = change.shape  # (maps, vertices)
        vertex = points.largest_corner(b.surface.faces).reshape(shape)
        positions, cells = points.interpolate(corners).reshape(*shape, 3), b.table.cells[vertex]
        confidence = area_confidence(b.log_density[vertex] + change - a.log_density[block])
        blend = weights[:, None] * confidence + 1e-30  # where no map is any good, the mean of all is as good as any
        medoid = cells[medoids(blend, cells, b.table.sample_distances), np.arange(shape[1])]
        agreed = blend * (b.table.sample_distances[cells, medoid[None]] <= BLEND_RADIUS)
        mean[block] = np.einsum("kn,kna->na", agreed, positions) / agreed.sum(axis=0)[:, None]
        trust[block] = (agreed * confidence).sum(axis=0) / blend.sum(axis=0)
    return ClosestPoints(b.surface.vertices, b.surface.faces)(mean), np.clip(trust, 0.0, 1.0)


SIMILARITY_SCALE = 0.25
"""sigma^2, d over sqrt(area) (the authors' number)."""

EIGENVECTORS, EIGENVALUE_RATIO = 10, 0.75
"""Eigenvectors that are looked at, as long as their eigenvalue is this fraction of the first (the authors' numbers)."""

MEMBER_RATIO, START_RATIO = 0.25, 0.75
"""Entries of an eigenvector, over the largest, from which a map may join or start a group (the authors' numbers)."""

BLENDED = 60
"""Maps in a group, those of the largest weight; further ones change little."""


def consistent_groups(
    maps: MoebiusMaps, confidence: NDArray[np.float32], cells: IntArray, left: FeatureTable, right: FeatureTable
) -> list[tuple[IntArray, FloatArray]]:
    """Gather maps that agree.

    Parameters
    ----------
    maps : MoebiusMaps
        At least one, k of them, between the features of two shapes.
    confidence : (k, s) array
        Of each map at the samples of A.
    cells : (k, s) array
        Sample of B nearest to each image.
    left, right : FeatureTable
        Of A and B.

    Returns
    -------
    list of tuple[(g,) array, (g,) array]
        For each group, at least one, its maps and their positive weights.
    """
    kernel = np.exp(-right.sample_distances / SIMILARITY_SCALE).astype(np.float32)
    scaled = confidence * np.sqrt(left.sample_areas).astype(np.float32)
    values, vectors = _leading(_similarities(scaled, np.ascontiguousarray(cells), kernel).astype(float))
    conflicts = in_conflict(left.feature_distances[:, None, :, None], right.feature_distances[None, :, None, :])
    groups = []
    for e in np.flatnonzero(values >= EIGENVALUE_RATIO * values[0]):
        weight = np.abs(vectors[:, e])
        rows = np.argsort(-weight, kind="stable")
        rows = rows[weight[rows] >= MEMBER_RATIO * weight.max()]
        while len(rows) and weight[rows[0]] >= START_RATIO * weight.max():
            member = _compatible(maps[rows], conflicts)
            groups.append((rows[member][:BLENDED], weight[rows[member]][:BLENDED]))
            rows = rows[~member]
    return groups


def distance_distortion(blend: FloatArray, cells: IntArray, left: FeatureTable, right: FeatureTable) -> float:
    """Mean change of the distances between samples, each at the image that most maps of a group agree on.

    The authors choose the group of the largest confidence instead. Areas are kept by a half turn of a body as well as
    by the right map; distances tell the two apart a little more often (of ten pairs of FAUST, 7 times against 6).

    Parameters
    ----------
    blend, cells : (g, s) array
        Weight of each map at each sample of A, and the sample of B nearest to its image.
    left, right : FeatureTable
        Of A and B.
    """
    there = cells[medoids(blend, cells, right.sample_distances), np.arange(cells.shape[1])]
    change = np.abs(left.sample_distances - right.sample_distances[there[:, None], there[None]])
    return float(left.sample_areas @ change @ left.sample_areas)


def medoids(blend: FloatArray, cells: IntArray, distances: FloatArray) -> IntArray:
    """(n,) the map i that minimises sum_j b_j d(m_i, m_j)^2 at each point, from (g, n) weights b and cells."""
    square = distances**2
    cost = np.stack([(blend * square[own[None], cells]).sum(axis=0) for own in cells])
    return np.argmin(cost, axis=0)


def _leading(similarity: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues, descending, and their eigenvectors."""
    k = len(similarity)
    if k > 4 * EIGENVECTORS:
        values, vectors = eigsh(similarity, EIGENVECTORS, v0=np.ones(k))
    else:
        values, vectors = np.linalg.eigh(similarity)
    order = np.argsort(-values, kind="stable")[:EIGENVECTORS]
    return values[order], vectors[:, order]


def _compatible(maps: MoebiusMaps, conflicts: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(k,) maps that do not contradict any earlier one that is in; the first always is.

    conflicts : (f, g, f, g) array, whether sending one feature to one and another to another are in conflict.
    """
    inside = np.zeros(len(maps), dtype=bool)
    excluded = np.zeros(conflicts.shape[:2], dtype=bool)
    for i, (a, b) in enumerate(zip(maps.a, maps.b, strict=True)):
        if not excluded[a, b].any():
            inside[i] = True
            excluded |= conflicts[a, b].any(axis=0)
    return inside


@compiled(fastmath=True, nogil=True)
def _similarities(confidence, cells, kernel):  # type: ignore[no-untyped-def]
    """(k, k) sums over samples p of c_i(p) c_j(p) kernel[cell of m_i(p), cell of m_j(p)]."""
    k, samples = confidence.shape
    similarity = np.zeros((k, k), np.float32)
    for i in range(k):
        for p in range(samples):
            c = confidence[i, p]
            if c < 1e-4:
                continue
            row = kernel[cells[i, p]]
            for j in range(i + 1):
                similarity[i, j] += c * confidence[j, p] * row[cells[j, p]]
    for i in range(k):
        for j in range(i):
            similarity[j, i] = similarity[i, j]
    return similarity
