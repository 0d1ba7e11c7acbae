"""Blended intrinsic maps between closed surfaces of genus 0 (Kim, Lipman and Funkhouser 2011).

Both surfaces are flattened to the sphere, where every conformal map between them is a Moebius map, fixed by three point
pairs. Maps through triplets of features are each good in some region: where they keep areas. Those that agree with one
another are found by the largest eigenvector of their similarities, and blended vertex by vertex.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh
from scipy.spatial import cKDTree

from acnn.compilation import compiled
from acnn.correspondence.conformal import ConformalSphere, check_sphere, flatten, homogeneous, sphere_points
from acnn.correspondence.intrinsic_features import FeatureTable, feature_table, smoothed
from acnn.correspondence.moebius import ComplexArray, area_confidence, images, moebius_through
from acnn.correspondence.soft_map import SoftMap, soft_map_from_point_map
from acnn.errors import InputError
from acnn.progress import Progress, begin_stage
from acnn.shapes.mesh import BarycentricPoints
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

CANDIDATES = 10_000
"""Moebius maps that are tried, at random where there are more triplets (the authors' number)."""

COARSE_SAMPLES = 64
"""Samples at which all candidates are judged; the best are judged at all samples of the feature table."""

KEPT = 1500
"""Candidates of the largest confidence among which consistent ones are looked for."""

SIMILARITY_SCALE = 0.25
"""sigma^2 = 0.5^2 of exp(-d / sigma^2), d over sqrt(area) (the authors' number)."""

LENGTH_RATIO = 0.6
"""Candidates and pairs of them are in conflict where a distance between features becomes shorter or longer than this
fraction: shapes are nearly isometric, and most of the wrong candidates are found in this way before any map is made."""

LENGTH_SLACK = 0.1
"""Changes of distance below this, over sqrt(area), are no conflict: a limb may have two features at its end."""

EIGENVECTORS, EIGENVALUE_RATIO, MEMBER_RATIO = 10, 0.75, 0.25
"""Eigenvectors looked at, as long as their eigenvalue is this fraction of the first; entries of these, over the
largest, from which a map may join a group (the authors' numbers)."""

BLENDED = 60
"""Maps of a group that are blended, those of the largest weight; further ones change little."""

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


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Moebius maps with the features they go through.

    Attributes
    ----------
    a, b : (k, 3) array
        Numbers of features.
    matrices : (k, 2, 2) complex array
    """

    a: IntArray
    b: IntArray
    matrices: ComplexArray

    def __getitem__(self, rows: Any) -> _Candidates:
        return _Candidates(self.a[rows], self.b[rows], self.matrices[rows])

    def __len__(self) -> int:
        return len(self.a)


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
    groups = _consistent_groups(candidates, confidence, cells, here.table, there.table)
    distortions = [
        _distortion(w[:, None] * confidence[rows], cells[rows], here.table, there.table) for rows, w in groups
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
    centre = int(np.argmin(table.average_distance[surface.faces].sum(axis=1)))
    sphere = flatten(surface, centre)
    return _Side(surface, sphere, table, smoothed(surface, sphere.log_density))


def _candidates(a: _Side, b: _Side, seed: int) -> _Candidates:
    """Moebius maps through all plausible pairs of triplets of features, at most `CANDIDATES` of them."""
    left, right = a.table, b.table
    first = np.array(list(combinations(range(len(left.features)), 3)))
    second = np.array(list(permutations(range(len(right.features)), 3)))
    plausible = np.ones((len(first), len(second)), dtype=bool)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        plausible &= ~_in_conflict(
            left.feature_distances[first[:, i], first[:, j]][:, None],
            right.feature_distances[second[:, i], second[:, j]][None, :],
        )
    chosen = np.argwhere(plausible)
    if not len(chosen):
        raise InputError(
            "No three features of A have a counterpart on B at similar distances, so that blended intrinsic maps (bim) "
            "cannot start: the shapes differ too much. Use the method 'descriptors' or 'acnn'."
        )
    if len(chosen) > CANDIDATES:
        random = np.random.default_rng(seed)
        chosen = chosen[np.sort(random.choice(len(chosen), CANDIDATES, replace=False))]
    triplets, targets = first[chosen[:, 0]], second[chosen[:, 1]]
    matrices = moebius_through(a.vectors[left.features[triplets]], b.vectors[right.features[targets]])
    usable = np.isfinite(matrices).all(axis=(1, 2))
    return _Candidates(triplets[usable], targets[usable], matrices[usable])


def _in_conflict(left: FloatArray, right: FloatArray) -> NDArray[np.bool_]:
    """Where distances on the two shapes, over sqrt(area), differ too much for one map."""
    short, long = np.minimum(left, right), np.maximum(left, right)
    return (short < LENGTH_RATIO * long) & (long - short > LENGTH_SLACK)


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


def _consistent_groups(
    candidates: _Candidates,
    confidence: NDArray[np.float32],
    cells: NDArray[np.int32],
    left: FeatureTable,
    right: FeatureTable,
) -> list[tuple[IntArray, FloatArray]]:
    """Groups of maps that agree, each as rows of the candidates and their weights, at least one."""
    kernel = np.exp(-right.sample_distances / SIMILARITY_SCALE).astype(np.float32)
    scaled = confidence * np.sqrt(left.sample_areas).astype(np.float32)
    similarity = _similarities(np.ascontiguousarray(scaled), np.ascontiguousarray(cells), kernel)
    k = len(similarity)
    count = min(EIGENVECTORS, k - 1)
    if count < 1:
        return [(np.arange(k), np.ones(k))]
    if k <= 50:
        values, vectors = np.linalg.eigh(similarity)
    else:
        values, vectors = eigsh(similarity.astype(float), count, v0=np.ones(k))
    order = np.argsort(-values)[:count]
    groups = []
    for e in order[values[order] >= EIGENVALUE_RATIO * values[order[0]]]:
        weight = np.abs(vectors[:, e])
        rows = np.argsort(-weight, kind="stable")
        rows = rows[weight[rows] >= MEMBER_RATIO * weight.max()]
        while len(rows):
            member = _compatible(candidates[rows], left, right)
            groups.append((rows[member][:BLENDED], weight[rows[member]][:BLENDED]))
            rows = rows[~member]
            if not len(rows) or weight[rows[0]] < EIGENVALUE_RATIO * weight.max():
                break
    return groups


def _compatible(candidates: _Candidates, left: FeatureTable, right: FeatureTable) -> NDArray[np.bool_]:
    """(k,) maps that do not contradict any earlier one that is in; the first always is."""
    inside = np.zeros(len(candidates), dtype=bool)
    pairs_a, pairs_b = np.empty(0, int), np.empty(0, int)
    for i in range(len(candidates)):
        a, b = candidates.a[i], candidates.b[i]
        conflict = _in_conflict(
            left.feature_distances[a[:, None], pairs_a[None]], right.feature_distances[b[:, None], pairs_b[None]]
        )
        inside[i] = not conflict.any()
        if inside[i]:
            both = np.unique(np.stack([np.append(pairs_a, a), np.append(pairs_b, b)]), axis=1)
            pairs_a, pairs_b = both
    return inside


@compiled(parallel=False, fastmath=True, nogil=True)
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


def _distortion(blend: FloatArray, cells: IntArray, left: FeatureTable, right: FeatureTable) -> float:
    """Mean change of the distances between samples, each at the image that most maps of a group agree on.

    The authors choose the group of the largest confidence instead. Areas are kept by a half turn of a body as well as
    by the right map; distances tell the two apart more often.
    """
    there = cells[_medoids(blend, cells, right.sample_distances), np.arange(cells.shape[1])]
    change = np.abs(left.sample_distances - right.sample_distances[there[:, None], there[None]])
    return float(left.sample_areas @ change @ left.sample_areas)


def _medoids(blend: FloatArray, cells: IntArray, distances: FloatArray) -> IntArray:
    """(n,) the map i that minimises sum_j b_j d(m_i, m_j)^2 at each point, from (k, n) weights and cells."""
    square = distances**2
    cost = np.empty(blend.shape)
    for i in range(len(blend)):
        cost[i] = (blend * square[cells[i][None], cells]).sum(axis=0)
    return np.argmin(cost, axis=0)


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
        medoid = cells[_medoids(blend, cells, b.table.sample_distances), np.arange(shape[1])]
        agreed = blend * (b.table.sample_distances[cells, medoid[None]] <= BLEND_RADIUS)
        mean[block] = np.einsum("kn,kna->na", agreed, positions) / agreed.sum(axis=0)[:, None]
        trust[block] = (agreed * confidence).sum(axis=0) / blend.sum(axis=0)
    return ClosestPoints(b.surface.vertices, b.surface.faces)(mean), np.clip(trust, 0.0, 1.0)
