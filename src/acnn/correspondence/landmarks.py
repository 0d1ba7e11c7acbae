"""Landmarks: known pairs of points that guide a map, and that the map honours.

Every landmark gives a coordinate to all other points: its geodesic distance d to them. Corresponding points have about
the same distances, so matches are compared by

    D(x, y)^2 = mean over landmarks of (log(d_A(x, a_i) + s) - log(d_B(y, b_i) + s))^2

in which distances near a landmark weigh most, and of far ones only the ratio. A soft map keeps what agrees with the
landmarks, and where nothing does, gets the points that agree best (`guide_by_landmarks`); refinement then starts from
the right limb and the right side. The refined map is moved to the landmarks where it is near them, and passes through
them exactly (`honour_landmarks`); landmarks that contradict it are reported.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from acnn.correspondence.soft_map import SoftMap, checked_point_map, merged_soft_map
from acnn.errors import InputError
from acnn.input_files import read_lines
from acnn.shapes.mesh import Shape
from acnn.surface.geodesics import GeodesicSolver
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

NEAR = 0.05
"""Distance s over sqrt(area) from which on ratios of distances count: a tenth of an arm."""

SPREAD = 0.12
"""Disagreement D at which a match keeps a third of its probability; poses and subjects change distances by as much."""

NEIGHBOURS = 8
"""Points that agree best with the landmarks, added as candidates of every vertex."""

PRIOR = 0.2
"""Probability of these candidates together before agreement is considered."""

TOLERANCE = 0.1
"""Distance over sqrt(area) between the map and a landmark up to which the map around it is moved to it; above,
the landmark contradicts the map."""

CHANGE = 0.5
"""Relative change of the distance of two landmarks above which they contradict each other."""


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Corresponding vertices of two shapes.

    Attributes
    ----------
    a, b : (k,) int array
        Vertices of A, and the vertices of B that they correspond to.
    names : tuple[str, ...]
        Of the k pairs.
    """

    a: IntArray
    b: IntArray
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.a)

    def exchanged(self, i: int, j: int) -> Landmarks:
        """The same with the vertices of B of two pairs exchanged."""
        b = self.b.copy()
        b[[i, j]] = b[[j, i]]
        return Landmarks(self.a, b, self.names)


@dataclass(frozen=True)
class LandmarkReport:
    """How a map honours its landmarks.

    Attributes
    ----------
    count : int
        Number of landmarks.
    tolerance : float
        Distance over sqrt(area of B), see `TOLERANCE`.
    distances : dict[str, float]
        By name, distance over sqrt(area of B) of the refined map from the landmark, before it was moved there.
    contradictions : tuple[str, ...]
        Sentences about landmarks that contradict the map or each other.
    """

    count: int
    tolerance: float
    distances: dict[str, float]
    contradictions: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `acnn match --json` prints them."""
        return asdict(self) | {"contradictions": list(self.contradictions)}


def landmarks_of(pairs: ArrayLike | Landmarks, sizes: tuple[int, int]) -> Landmarks:
    """Check pairs of corresponding vertices.

    Parameters
    ----------
    pairs : (k, 2) int array or Landmarks
        Vertices of A and B.
    sizes : tuple[int, int]
        Numbers of vertices of A and B.

    Raises
    ------
    InputError
        Where they are no pairs, name vertices that do not exist, or name a vertex of A twice.

    Examples
    --------
    >>> landmarks_of([[0, 5], [3, 1]], (10, 10)).b
    array([5, 1], dtype=int32)
    """
    if not isinstance(pairs, Landmarks):
        array = np.asarray(pairs)
        if array.ndim != 2 or array.shape[1] != 2 or not len(array) or array.dtype.kind not in "iu":
            raise InputError(f"Landmarks are (k, 2) integers, a vertex of A and one of B; the shape is {array.shape}.")
        pairs = Landmarks(array[:, 0], array[:, 1], tuple(str(i) for i in range(len(array))))
    here = checked_point_map(pairs.a, sizes[0], "landmarks of A")
    there = checked_point_map(pairs.b, sizes[1], "landmarks of B")
    vertices, counts = np.unique(here, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"Landmarks: vertex {vertices[counts > 1][0]} of A is named twice. Remove one of its lines.")
    return Landmarks(here, there, pairs.names)


def read_landmarks(path: Path, a: Shape, b: Shape) -> Landmarks:
    """Read pairs of corresponding vertices from a text file: `[name] vertex-of-A vertex-of-B` on each line.

    Parameters
    ----------
    path : Path
        The text file; vertices are 0-based, in the order of the shapes' files. Empty lines and what
        follows a '#' are skipped.
    a, b : Shape
        As loaded.

    Returns
    -------
    Landmarks
        Vertices of the shapes as loaded.

    Raises
    ------
    InputError
        That names the line where it cannot be understood, or a vertex that is not in the file or was removed on
        loading.
    """
    rows: list[tuple[str, int, int]] = []
    for number, line in enumerate(read_lines(path), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            vertices = [int(word) for word in words[-2:]]
        except ValueError:
            vertices = []
        if len(vertices) != 2:
            raise InputError(f"{path}, line {number}: '{line[:60]}' is not '[name] vertex-of-A vertex-of-B'.")
        name = " ".join(words[:-2]) or str(len(rows))
        here, there = (_loaded(path, number, v, s, n) for v, s, n in zip(vertices, (a, b), "AB", strict=True))
        rows.append((name, here, there))
    if not rows:
        raise InputError(f"{path}: there are no landmarks in the file.")
    ends = np.array([row[1:] for row in rows])
    found = Landmarks(ends[:, 0], ends[:, 1], tuple(row[0] for row in rows))
    return landmarks_of(found, (len(a.vertices), len(b.vertices)))


def _loaded(path: Path, line: int, vertex: int, shape: Shape, name: str) -> int:
    """A vertex of a shape's file as a vertex of the loaded shape."""
    count = len(shape.vertices) if shape.source is None else len(shape.source.from_file)
    if not 0 <= vertex < count:
        raise InputError(f"{path}, line {line}: there is no vertex {vertex}; {name} has vertices 0 to {count - 1}.")
    loaded = vertex if shape.source is None else int(shape.source.from_file[vertex])
    if loaded < 0:
        raise InputError(f"{path}, line {line}: vertex {vertex} of {name} was removed on loading. Choose another.")
    return loaded


def guide_by_landmarks(soft_map: SoftMap, query: Surface, reference: Surface, landmarks: Landmarks) -> SoftMap:
    """Weight a soft map by its agreement with landmarks, and add matches where nothing agrees.

    Parameters
    ----------
    soft_map : SoftMap
        Of query to reference.
    query, reference : Surface
        In the same unit of length, or each normalised by its own diameter.
    landmarks : Landmarks
        Of query (`a`) and reference (`b`).

    Returns
    -------
    SoftMap
        Every row sums to 1; at landmarks it is certain.

    Examples
    --------
    The two ends of an ellipsoid are alike; landmarks tell them apart:

    >>> import numpy as np
    >>> from acnn.correspondence.soft_map import soft_map_from_point_map
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> from scipy.spatial import ConvexHull
    >>> half = np.random.default_rng(0).standard_normal((100, 3))
    >>> points = np.concatenate([half, -half]) / np.tile(np.linalg.norm(half, axis=1, keepdims=True), (2, 1))
    >>> mesh = Mesh(points * [1.0, 1.4, 2.0], ConvexHull(points).simplices.astype(np.int32))
    >>> surface = surface_of(mesh)
    >>> swapped = soft_map_from_point_map(np.roll(np.arange(200), 100), 200)
    >>> landmarks = landmarks_of([[i, i] for i in (0, 7, 20, 50, 130)], (200, 200))
    >>> guided = guide_by_landmarks(swapped, surface, surface, landmarks)
    >>> bool((guided.query_to_reference == np.arange(200)).mean() > 0.9)
    True
    """
    length = float(np.sqrt(reference.vertex_areas.sum()))
    here = _coordinates(query, landmarks.a, length)
    there = _coordinates(reference, landmarks.b, length)
    count = min(NEIGHBOURS, len(there))
    _, nearest = cKDTree(there).query(here, k=count)
    nearest = np.reshape(nearest, (len(here), count))
    vertices = np.concatenate([soft_map.vertices, nearest], axis=1)
    added = np.full((len(here), count), PRIOR / count, np.float32)
    weights = np.concatenate([soft_map.probabilities, added], axis=1).astype(float)
    squared = ((here[:, None] - there[vertices]) ** 2).mean(axis=2) / SPREAD**2
    # Relative to the best candidate: where the surfaces differ, none agrees well, and all weights would underflow.
    weights *= np.exp(squared.min(axis=1, keepdims=True) - squared)
    weights[landmarks.a] = 0.0
    vertices[landmarks.a, 0], weights[landmarks.a, 0] = landmarks.b, 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    return merged_soft_map(vertices.astype(np.int32), weights.astype(np.float32), soft_map.reference_size)


def likely_exchanges(landmarks: Landmarks, query: Surface, reference: Surface, count: int) -> list[tuple[int, int]]:
    """Pairs of landmarks that may have been exchanged by mistake.

    Parameters
    ----------
    landmarks : Landmarks
        Of query (`a`) and reference (`b`).
    query, reference : Surface
        As for `guide_by_landmarks`.
    count : int
        Largest number of pairs.

    Returns
    -------
    list[tuple[int, int]]
        Those after whose exchange distances between landmarks agree best, best first.
    """
    here = GeodesicSolver(query).distances_from(landmarks.a)[:, landmarks.a]
    there = GeodesicSolver(reference).distances_from(landmarks.b)[:, landmarks.b]
    here, there = (np.nan_to_num(distances, posinf=0.0) for distances in (here, there))

    def disagreement(pair: tuple[int, int]) -> float:
        order = np.arange(len(landmarks))
        order[list(pair)] = pair[::-1]
        return float(np.abs(here - there[np.ix_(order, order)]).sum())

    return sorted(combinations(range(len(landmarks)), 2), key=disagreement)[:count]


def honour_landmarks(
    query_to_reference: ArrayLike, query: Surface, reference: Surface, landmarks: Landmarks
) -> tuple[IntArray, LandmarkReport]:
    """Move a map to its landmarks.

    Where the map is within `TOLERANCE` of a landmark, the matches around it are moved along, ever less up to twice the
    distance of the move, or three edges; the landmark itself is matched exactly in any case.

    Parameters
    ----------
    query_to_reference : (n,) int array
        Reference vertices.
    query, reference : Surface
        As for `guide_by_landmarks`.
    landmarks : Landmarks
        Of query (`a`) and reference (`b`).

    Returns
    -------
    query_to_reference : (n,) int32 array
        The moved map.
    report : LandmarkReport
        How far it was from the landmarks, and which of them contradict it or each other.
    """
    matched = checked_point_map(query_to_reference, len(reference.vertices), size=len(query.vertices)).copy()
    length = float(np.sqrt(reference.vertex_areas.sum()))
    from_a = GeodesicSolver(query).distances_from(landmarks.a)  # (k, n)
    from_b = GeodesicSolver(reference).distances_from(landmarks.b)  # (k, m)
    rows = np.arange(len(landmarks))
    moves = from_b[rows, matched[landmarks.a]]
    tree = cKDTree(reference.vertices)
    positions = reference.vertices[matched]
    shifts = np.zeros_like(positions)
    for i in np.flatnonzero((moves > 0) & (moves <= TOLERANCE * length)):
        radius = max(2.0 * moves[i], 3.0 * query.mean_edge)
        near = np.flatnonzero(from_a[i] < radius)
        weight = (1.0 - from_a[i, near] / radius)[:, None]
        shifts[near] += weight * (reference.vertices[landmarks.b[i]] - positions[landmarks.a[i]])
    moved = np.flatnonzero(np.any(shifts != 0, axis=1))
    if len(moved):
        matched[moved] = tree.query(positions[moved] + shifts[moved])[1]
    matched[landmarks.a] = landmarks.b
    relative = moves / length
    found = [
        f"Landmark {landmarks.names[i]} contradicts the surface: the map around it is {_far(relative[i])} away."
        for i in np.flatnonzero(~(relative <= TOLERANCE))
    ]
    found += _inconsistent(landmarks, from_a[:, landmarks.a] / length, from_b[:, landmarks.b] / length)
    distances = dict(zip(landmarks.names, (float(x) for x in relative), strict=True))
    return matched, LandmarkReport(len(landmarks), TOLERANCE, distances, tuple(found))


def _coordinates(surface: Surface, landmarks: IntArray, length: float) -> FloatArray:
    """(n, k) logarithms of the distances from landmarks; on other components that of the largest distance."""
    distances = GeodesicSolver(surface).distances_from(landmarks).T / length
    finite = np.isfinite(distances)
    distances[~finite] = distances[finite].max(initial=1.0)
    return np.log(distances + NEAR)


def _far(relative: float) -> str:
    return f"{100 * relative:.0f} % of sqrt(area)" if np.isfinite(relative) else "on another component"


def _inconsistent(landmarks: Landmarks, here: FloatArray, there: FloatArray) -> list[str]:
    """Sentences about pairs of landmarks whose distance differs much between the shapes."""
    found = []
    for i in range(len(landmarks)):
        for j in range(i + 1, len(landmarks)):
            first, second = here[i, j], there[i, j]
            if abs(first - second) > CHANGE * max(first, second) and max(first, second) > 2 * NEAR:
                names = f"{landmarks.names[i]} and {landmarks.names[j]}"
                found.append(
                    f"Landmarks {names} contradict each other: their distance is {100 * first:.0f} % of sqrt(area) on "
                    f"A and {100 * second:.0f} % on B."
                )
    return found
