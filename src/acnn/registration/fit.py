"""Fit of a template mesh to a target along a map: locally rigid, from stiff to soft, without folded faces.

With X the template, x its vertices after the fit, T_i a transformation at each vertex (`Deformation`), P_k the position
on the target of the point sum_j b_kj X_j of the template, and q_i the closest point of the target to x_i,

    E(x, T) = l^2 sum_ij w_ij |x_i - x_j - (T_i + T_j) / 2 e_ij|^2
              + sum_k c_k |sum_j b_kj x_j - P_k|^2 + sum_i s_i |x_i - q_i|^2.

Matches that contradict their surroundings and closest points that are far, face another way, or lie on the boundary of
the target lose their weights c_k and s_i. l is a length: details of the template that are smaller follow it, larger
ones follow the target. It falls from level to level (`Level`), while the T_i, rotations at first, may stretch more.
Matches that are right only down to a length d have c_k divided by 1 + (d / l)^2: where they are, details follow
template and surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.progress import Progress
from acnn.registration.deformation import Deformation, factorised, nearest_stretches, robust_weights
from acnn.registration.detached import rematch_detached
from acnn.registration.faces import FaceDamage, face_damage
from acnn.registration.target import Target, TargetPoints
from acnn.shapes.mesh import BarycentricPoints, Mesh, PointCloud, Shape
from acnn.shapes.topology import mesh_edges, vertex_components
from acnn.surface.surface import surface_of, vertex_normals
from acnn.surface.working_copy import farthest_points
from acnn.types import FloatArray, IntArray


@dataclass(frozen=True)
class Level:
    """Settings of one level of a fit; lengths are in square roots of the template's area.

    Attributes
    ----------
    stiffness : float
        The length l.
    smoothing : float
        Length over which the transformations T are averaged.
    stretch : float
        Largest factor by which T stretches or compresses; 1 is rigid. What the surface needs beyond it has a price, so
        that stretches come from the target, and less from errors of the matches.
    matches, surface : float
        Weights of matches and of closest points.
    reach : float
        Residual at which the weight of a match or a closest point has fallen to a quarter.
    rounds : int
        How often weights are computed again.
    """

    stiffness: float
    smoothing: float
    stretch: float
    matches: float
    surface: float
    reach: float
    rounds: int


LEVELS = (
    Level(0.1, 0.05, 1.0, 1.0, 0.0, 0.1, 3),
    Level(0.05, 0.04, 1.05, 1.0, 0.2, 0.06, 5),
    Level(0.025, 0.03, 1.1, 1.0, 0.5, 0.03, 6),
    Level(0.012, 0.025, 1.2, 0.3, 1.0, 0.02, 6),
    Level(0.006, 0.02, 1.4, 0.1, 1.0, 0.02, 6),
    Level(0.003, 0.015, 2.0, 0.03, 1.0, 0.02, 6),
    Level(0.002, 0.01, 2.5, 0.01, 1.0, 0.02, 6),
)
"""From stiff to soft: the last two bring the surface onto the target, which outweighs matches by 30 and 100."""

MAP_DETAIL = 0.05
"""`detail` of maps that `match` computes, in square roots of the area: two remeshed FAUST registrations of the training
set have mean errors of 14.4 mm with 0.05 or 0.1, and 19.1 mm with 0.2. Thin parts that are
curled up in one shape alone need the details of their matches: with more than 0 they may stay off the target."""

FARTHER = 3.0
"""Reach, in the stiffness of a level, of matches that agree with those around them: where a thin part is curled up in
the template and straight in the target, stiffness keeps its vertices about that far from matches that are right."""

LOCAL_LENGTH = 0.05
"""Length, in square roots of the area, over which the first transformations are fitted to the matches: 6 cm of a
human body, less than a limb."""

NEIGHBOURHOOD = 0.15
"""Length along the surface, in square roots of the area, within which matches are compared for the size of the target:
farther apart a pose changes distances, and nearer the errors of matches do."""

SAMPLES = 200
"""Matches whose distances from others are compared."""

STIFF = 2
"""Levels after which detached parts are matched again."""

STEPS = 2
"""Local and global steps between two computations of weights."""

REPAIRS = 20
"""Most rounds of repair of damaged faces; every second one takes a ring of faces more."""

SMOOTHINGS = 10
"""Most rounds of smoothing of faces that are damaged after that."""

FREED = 0.01
"""Weight of the target at vertices of damaged faces and around them, which then follow the template."""

MARGIN = 1.5
"""Factor by which faces are kept from being collapsed or stretched."""

WITH_DATA = 0.03
"""Distance to the target, in square roots of the area, up to which a vertex has data."""

AGREEING = 0.3
"""Cosine between normals up to which a closest point has no weight."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A template fitted to a target.

    Attributes
    ----------
    mesh : Mesh
        The template with its faces, texture and colours, and the vertices of the fit, in the target's coordinates.
    residuals : (n,) array
        Distance of each vertex to the target, in its units.
    has_data : (n,) bool array
        Whether the target has a surface there: near, facing the same way, and not at its boundary.
    match_weights : (k,) array
        In 0..1: how far each match was used, 0 where it contradicts the others.
    scale : float
        Size of the target over that of the template.
    damage : FaceDamage
        Inverted and collapsed faces, and the largest stretch of an edge.
    repaired_vertices : int
        Vertices that were freed of the target, wholly or in part, because a face there was damaged.
    """

    mesh: Mesh
    residuals: FloatArray
    has_data: NDArray[np.bool_]
    match_weights: FloatArray
    scale: float
    damage: FaceDamage
    repaired_vertices: int

    @property
    def vertices(self) -> FloatArray:
        """(n, 3) array, the vertices of `mesh`."""
        return self.mesh.vertices

    def as_dict(self) -> dict[str, Any]:
        """Numbers about the fit."""
        known = self.residuals[self.has_data]
        return {
            "scale": self.scale,
            "mean_residual": float(known.mean()) if len(known) else None,
            "with_data": float(self.has_data.mean()),
            "repaired_vertices": self.repaired_vertices,
            **self.damage.as_dict(),
        }


@check_arguments
def fit(
    template: Mesh,
    target: Shape,
    points: BarycentricPoints,
    positions: FloatArray,
    weights: FloatArray | None = None,
    *,
    detail: float = 0.0,
    levels: Sequence[Level] = LEVELS,
    detached: bool = False,
    repair: bool = True,
    progress: Progress | None = None,
) -> Fit:
    """Deform a template onto a target along matches.

    Parameters
    ----------
    template : Mesh
        Of n vertices, in any position and size.
    target : Shape
        Mesh or cloud; parts may be missing.
    points : BarycentricPoints
        k points of the template, `BarycentricPoints.at_vertices` for vertices.
    positions : (k, 3) array
        Their matches on the target.
    weights : (k,) array or None
        Confidence of the matches, at least 0; None is 1.
    detail : float
        Length d, in square roots of the template's area, below which the matches are not relied on: 0 if they are
        exact or only the surface matters, `MAP_DETAIL` if they come from `match` and vertices shall correspond.
    levels : sequence of Level
        From stiff to soft.
    detached : bool
        Whether detached parts of the target whose matches the first, stiff levels do not follow are matched to where
        the template fits them (`rematch_detached`).
    repair : bool
        Whether damaged faces are freed of the target at the end.
    progress : Progress or None
        Called with (rounds done, in total).

    Returns
    -------
    Fit

    Raises
    ------
    InputError
        Where the arrays do not fit together, `detail` is negative, or a component of the template has no match.

    Examples
    --------
    >>> import acnn
    >>> import numpy as np
    >>> from acnn.registration import fit
    >>> from acnn.shapes.mesh import BarycentricPoints
    >>> template, target = acnn.builtin_human(0, 0), acnn.builtin_human(1, 3)
    >>> some = np.arange(0, 2500, 5)
    >>> result = fit(template, target, BarycentricPoints.at_vertices(template.faces, some), target.vertices[some])
    >>> result.damage.inverted_faces
    0
    """
    trust = _checked(template, points, positions, weights)
    if not 0 <= detail < np.inf:
        raise InputError(f"detail {detail}: give a length of at least 0.")
    problem = _Problem(template, target, points, positions, trust, detail)
    state = problem.start()
    left, total, done = list(levels), sum(level.rounds for level in levels), 0
    while left:
        level = left.pop(0)
        problem.set_level(level)
        for _ in range(level.rounds):
            state = problem.relax(state)
            done += 1
            if progress is not None:
                progress(done, total)
        if detached and len(levels) - len(left) == STIFF:
            detached = False  # once
            again = problem.rematched(state, points)
            if again is not None:
                problem = _Problem(template, target, *again, detail)
                state, left, total = problem.start(), list(levels), total + done
    state, freed = problem.repair(state) if repair else (state, 0)
    return problem.result(state, freed)


@check_arguments
def transfer_shape(query: Shape, reference: Mesh, points: BarycentricPoints) -> FloatArray:
    """Move the vertices of the reference onto the surface of the query (`fit`).

    Parameters
    ----------
    query : Shape
        Mesh or cloud of n vertices.
    reference : Mesh
        Of m vertices.
    points : BarycentricPoints
        The n matches of the query's vertices on the reference.

    Returns
    -------
    (m, 3) array
        Vertices of the reference in the shape of the query.

    Raises
    ------
    InputError
        Where no vertex is matched to a component of the reference.

    Examples
    --------
    >>> import acnn
    >>> import numpy as np
    >>> from acnn.shapes.mesh import BarycentricPoints
    >>> a, b = acnn.builtin_human(0, 0), acnn.builtin_human(0, 2)
    >>> moved = acnn.transfer_shape(a, b, BarycentricPoints.at_vertices(b.faces, np.arange(2500)))
    >>> bool(np.linalg.norm(moved - a.vertices, axis=1).mean() < 0.005)
    True
    """
    return fit(reference, query, points, query.vertices).vertices


def matched_scale(template: Mesh, points: BarycentricPoints, positions: FloatArray, weights: FloatArray) -> float:
    """Size of a target over that of the template, from distances between matches that are near each other.

    Parameters
    ----------
    template : Mesh
    points : BarycentricPoints
        k points of the template.
    positions : (k, 3) array
        Their matches on the target.
    weights : (k,) array
        Matches count where it is positive.

    Returns
    -------
    float

    Raises
    ------
    InputError
        Where all matches lie on one point.
    """
    known = (weights > 0) & (points.faces >= 0)
    corners, at = template.faces[points.faces[known]], points.weights[known]
    nearest = corners[np.arange(len(corners)), at.argmax(axis=1)]
    source = np.einsum("nk,nkd->nd", at, template.vertices[corners])
    near = _around(template, nearest, NEIGHBOURHOOD * float(np.sqrt(_area(template))))
    return _relative_size(source, positions[known], near)


def _area(mesh: Mesh) -> float:
    return float(0.5 * np.linalg.norm(np.cross(*_sides(mesh.vertices, mesh.faces)), axis=1).sum())


def _checked(
    template: Mesh, points: BarycentricPoints, positions: FloatArray, weights: FloatArray | None
) -> FloatArray:
    """Weights of the matches, after checks of all arguments."""
    k = len(points)
    if positions.shape != (k, 3) or not np.isfinite(positions).all():
        raise InputError(f"Positions of shape {positions.shape} do not fit {k} points: a finite ({k}, 3) is needed.")
    trust = np.ones(k) if weights is None else np.asarray(weights, float)
    if trust.shape != (k,) or not (np.isfinite(trust) & (trust >= 0)).all():
        raise InputError(f"Weights must be at least 0, one for each of the {k} matches.")
    if k and (points.faces.min() < -1 or points.faces.max() >= len(template.faces)):
        raise InputError(f"The points lie on faces up to {points.faces.max()}; there are {len(template.faces)}.")
    trust = np.where(points.faces >= 0, trust, 0.0)
    corners = template.faces[points.faces[trust > 0]]
    count, component = vertex_components(template.faces, len(template.vertices))
    unmatched = np.setdiff1d(np.arange(count), component[corners])
    if len(unmatched):
        members = np.flatnonzero(component == unmatched[0])
        more = f", and {len(unmatched) - 1} more like it" if len(unmatched) > 1 else ""
        raise InputError(
            f"No vertex is matched to a separate component of the shape to be moved ({len(members)} vertices, the "
            f"first as loaded is {members[0]}{more}), so its position is undetermined. Remove it, and match again."
        )
    return trust


@dataclass(frozen=True, eq=False)
class _State:
    """Vertices, their transformations, and the weights in 0..1 that the matches have at present."""

    vertices: FloatArray
    transformations: FloatArray
    match_weights: FloatArray


@dataclass(frozen=True, eq=False)
class _Data:
    """What pulls the vertices: matches, with weights in 0..1 and in the energy, and closest points."""

    match_weights: FloatArray
    by_match: FloatArray
    by_surface: FloatArray
    closest: FloatArray


class _Problem:
    """Template and target with the template's area 1, centred on the matches."""

    def __init__(
        self,
        template: Mesh,
        target: Shape,
        points: BarycentricPoints,
        positions: FloatArray,
        trust: FloatArray,
        detail: float,
    ) -> None:
        n, k = len(template.vertices), len(points)
        self.template, self.trust, self.detail = template, trust, detail
        known = trust > 0
        self.scale = matched_scale(template, points, positions, trust)
        rows = np.repeat(np.arange(k), 3)
        corners = template.faces[np.maximum(points.faces, 0)].ravel()
        self.at: sp.csr_array = sp.coo_array((points.weights.ravel(), (rows, corners)), shape=(k, n)).tocsr()
        self.unit = self.scale * float(np.sqrt(_area(template)))
        self.centre = positions[known].mean(axis=0)
        self.rest = (template.vertices - template.vertices.mean(axis=0)) * (self.scale / self.unit)
        self.positions = (positions - self.centre) / self.unit
        self.shape: Shape = replace(target, vertices=(target.vertices - self.centre) / self.unit, source=None)
        if isinstance(self.shape, PointCloud):
            self.shape = replace(self.shape, normals=surface_of(self.shape, 1.0).normals)
        self.target = Target(self.shape)
        self.deformation = Deformation(Mesh(self.rest, template.faces))
        self.local_smoother = self.deformation.smoother(LOCAL_LENGTH)
        self.matched: FloatArray = np.ones(n)  # how far closest points count
        if isinstance(self.shape, PointCloud):
            # The edge of a partial cloud is not sharp: what lies beyond follows the template, and is not drawn to that
            # edge, if closest points count only where matches are around. At the edge their averaged density is 1/2.
            density = np.minimum(self.deformation.areas, self.at.T @ known / max(known.sum(), 1))
            self.matched = np.clip((self.local_smoother.solve(density) - 0.3) / 0.4, 0.0, 1.0)
        self.held: FloatArray = np.ones(n)  # how far each vertex is held by the target: lowered by repair

    def start(self) -> _State:
        """First transformations: rotations fitted to the matches around each vertex, weighted by heat diffusion."""
        source = self.at @ self.rest
        weights: FloatArray = np.ones(len(self.trust))
        rotations: FloatArray = np.tile(np.eye(3), (len(self.rest), 1, 1))
        for _ in range(3):
            trust = (self.trust * weights)[:, None]
            products = (self.positions[:, :, None] * source[:, None, :]).reshape(-1, 9)
            moments = np.hstack([trust, trust * self.positions, trust * source, trust * products])
            moments = self.local_smoother.solve(np.asarray(self.at.T @ moments))
            moments /= np.maximum(moments[:, :1], 1e-12)
            there, here = moments[:, 1:4], moments[:, 4:7]
            rotations = nearest_stretches(moments[:, 7:].reshape(-1, 3, 3) - there[:, :, None] * here[:, None, :], 1.0)
            expected = there + np.einsum("nab,nb->na", rotations, self.rest - here)
            residuals = np.linalg.norm(self.at @ expected - self.positions, axis=1)
            weights = robust_weights(residuals, 2 * LOCAL_LENGTH)
        self.agreeing = robust_weights(residuals, LOCAL_LENGTH)
        return _State(expected, rotations, weights)

    def set_level(self, level: Level) -> None:
        self.level = level
        self.smoother = self.deformation.smoother(level.smoothing)

    def relax(self, state: _State) -> _State:
        """Weights of the data, then alternating positions and transformations."""
        return self.solve(state, self.data(state))

    def data(self, state: _State) -> _Data:
        """Weights and positions of matches and closest points at the present vertices."""
        x, level = state.vertices, self.level
        residuals = np.linalg.norm(self.at @ x - self.positions, axis=1)
        farther = self.agreeing * robust_weights(residuals, FARTHER * level.stiffness)
        match_weights = np.maximum(robust_weights(residuals, level.reach), farther)
        each = level.matches / (1.0 + (self.detail / level.stiffness) ** 2) / max(len(self.trust), 1)
        by_match = each * self.trust * match_weights
        normals = vertex_normals(x, self.template.faces)
        found = self.target(x, normals, level.reach)
        by_surface = level.surface * self.deformation.areas * self.matched * self._agreement(x, normals, found)
        return _Data(match_weights, by_match, by_surface, found.positions)

    def solve(self, state: _State, data: _Data) -> _State:
        """Alternating positions and transformations."""
        stiff = self.level.stiffness**2
        by_match, by_surface = data.by_match * (self.at @ self.held), data.by_surface * self.held
        pull = self.at.T @ (by_match[:, None] * self.positions) + by_surface[:, None] * data.closest
        matrix = stiff * self.deformation.stiffness + self.at.T @ sp.diags_array(by_match) @ self.at
        factors = factorised(matrix + sp.diags_array(by_surface))
        # Without data nothing would keep a stretch from growing with the distance from those that cause it.
        areas = self.deformation.areas
        support = self.smoother.solve(np.minimum(areas, self.at.T @ data.by_match + data.by_surface))
        most = 1.0 + (self.level.stretch - 1.0) * np.clip(support, 0.0, 1.0)
        transformations = state.transformations
        for _ in range(STEPS):
            x = factors.solve(stiff * self.deformation.divergence(transformations) + pull)
            fitted = self.deformation.transformations(x).reshape(-1, 9)
            averaged = self.smoother.solve(areas[:, None] * fitted)
            transformations = nearest_stretches(averaged.reshape(-1, 3, 3), most)
        return _State(x, transformations, data.match_weights)

    def rematched(
        self, state: _State, points: BarycentricPoints
    ) -> tuple[BarycentricPoints, FloatArray, FloatArray] | None:
        """Points, positions and weights with other matches of detached parts of the target; None without any."""
        surface = surface_of(self.shape, 1.0)
        count, component = vertex_components(surface.faces, len(self.shape.vertices))
        if count == 1:
            return None
        nearest = cKDTree(self.shape.vertices).query(self.positions)[1]
        found = rematch_detached(
            Mesh(self.rest, self.template.faces),
            state.vertices,
            self.positions,
            surface.normals[nearest],
            component[nearest],
            np.linalg.norm(self.at @ state.vertices - self.positions, axis=1),
        )
        if not found:
            return None
        faces, weights, trust = points.faces.copy(), points.weights.copy(), self.trust.copy()
        for part in found:
            faces[part.points], weights[part.points], trust[part.points] = part.faces, 1 / 3, part.weights
        return BarycentricPoints(faces, weights), self.positions * self.unit + self.centre, trust

    def repair(self, state: _State) -> tuple[_State, int]:
        """Free damaged faces and their surroundings of the target, a ring more in every round, until none is left."""
        rings = sp.csr_array(abs(self.deformation.stiffness) > 0)
        mesh = Mesh(self.rest, self.template.faces)
        data = self.data(state)  # kept, so that nothing changes elsewhere
        best, fewest, worst = (state, self.held), np.inf, np.zeros(len(self.template.faces), bool)
        for growth in range(REPAIRS + 1):
            damaged = face_damage(self.shape, mesh, state.vertices, margin=MARGIN).damaged
            if damaged.sum() < fewest:
                best, fewest, worst = (state, self.held), damaged.sum(), damaged
            if not damaged.any() or growth == REPAIRS:
                break
            region = np.zeros(len(self.rest), bool)
            region[self.template.faces[damaged]] = True
            for _ in range(1 + growth // 2):
                region = rings @ region > 0
            self.held = np.where(region, FREED, self.held)
            # Inside, transformations come from the surroundings: those of folded faces mean nothing.
            outside = self.deformation.areas * np.where(self.held < 1, FREED, 1.0)
            system = factorised(sp.diags_array(outside) + self.level.smoothing**2 * self.deformation.stiffness)
            extended = system.solve(outside[:, None] * state.transformations.reshape(-1, 9)).reshape(-1, 3, 3)
            turned = np.where(region[:, None, None], nearest_stretches(extended, 1.2), state.transformations)
            state = self.solve(replace(state, transformations=turned), data)
        state, self.held = best
        damaged, neighbours = worst, rings.astype(float)
        fewest = face_damage(self.shape, mesh, state.vertices).damaged.sum()
        for _ in range(SMOOTHINGS):
            if not fewest:
                break
            # What is left are single faces between others that contradict each other: the mean of the neighbours
            # unfolds them, and may stretch others up to the margin.
            region = np.zeros(len(self.rest), bool)
            region[self.template.faces[damaged]] = True
            region = rings @ region > 0
            around = (neighbours @ state.vertices) / neighbours.sum(axis=1)[:, None]
            state = replace(state, vertices=np.where(region[:, None], around, state.vertices))
            damaged = face_damage(self.shape, mesh, state.vertices, margin=MARGIN).damaged
            left = face_damage(self.shape, mesh, state.vertices).damaged.sum()
            if left < fewest:
                best, fewest = (state, self.held), left
        state = best[0]
        return state, int((self.held < 1).sum())

    def result(self, state: _State, freed: int) -> Fit:
        found = self.target(state.vertices)
        distances = np.linalg.norm(found.positions - state.vertices, axis=1)
        facing = np.einsum("nd,nd->n", vertex_normals(state.vertices, self.template.faces), found.normals) > AGREEING
        vertices = state.vertices * self.unit + self.centre
        return Fit(
            mesh=replace(self.template, vertices=vertices, source=None),
            residuals=distances * self.unit,
            has_data=found.inside & facing & (distances <= WITH_DATA),
            match_weights=np.where(self.trust > 0, state.match_weights, 0.0),
            scale=self.scale,
            damage=face_damage(self.shape, Mesh(self.rest, self.template.faces), state.vertices),
            repaired_vertices=freed,
        )

    def _agreement(self, x: FloatArray, normals: FloatArray, found: TargetPoints) -> FloatArray:
        """(n,) weights in 0..1 of closest points to vertices with given normals."""
        facing = np.clip((np.einsum("nd,nd->n", normals, found.normals) - AGREEING) / (1 - AGREEING), 0.0, 1.0)
        return facing * found.inside * robust_weights(np.linalg.norm(found.positions - x, axis=1), self.level.reach)


def _around(mesh: Mesh, vertices: IntArray, radius: float) -> IntArray:
    """(p, 2) pairs of given vertices, by their place in the list, that are near each other along edges of the mesh."""
    edges = mesh_edges(mesh.faces).vertices
    lengths = np.linalg.norm(mesh.vertices[edges[:, 0]] - mesh.vertices[edges[:, 1]], axis=1)
    graph = sp.csr_array((lengths, (edges[:, 0], edges[:, 1])), shape=(len(mesh.vertices),) * 2)
    some = farthest_points(mesh.vertices[vertices], min(SAMPLES, len(vertices)))
    distances = dijkstra(graph, directed=False, indices=vertices[some], limit=radius)
    first, second = np.nonzero(np.isfinite(distances[:, vertices]))
    return np.column_stack([some[first], second])


def _relative_size(source: FloatArray, target: FloatArray, near: IntArray) -> float:
    """Median ratio of distances between matches near each other: neither poses nor wrong matches change it much."""
    size = float(np.linalg.norm(source.std(axis=0)))
    spread = farthest_points(source, min(SAMPLES, len(source)))
    apart = spread[np.column_stack(np.triu_indices(len(spread), 1))]
    for pairs, least in ((near, 0.02), (apart, 0.1)):
        here, there = (np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1) for x in (source, target))
        long = here > least * size
        ratio = float(np.median(there[long] / here[long])) if long.any() else 0.0
        if ratio > 0:
            return ratio
    raise InputError("The matches lie on a single point: the template cannot be fitted to the target.")


def _sides(vertices: FloatArray, faces: Any) -> tuple[FloatArray, FloatArray]:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return b - a, c - a
