"""Conformal flattening of a closed surface of genus 0 onto the unit sphere, and Moebius maps of the sphere.

A puncture at one face sends the surface to the plane: with a dipole at the puncture (u, v a frame of its face),

    L z = (d/du - i d/dv) delta,

is solved by the complex coordinate z of a conformal map in which the puncture lies at infinity (Angenent, Haker,
Tannenbaum and Kikinis 1999). This is one sparse system over vertices, without the walk over mid-edges by which Kim,
Lipman and Funkhouser (2011) find the conjugate of a harmonic function; and with positive weights the triangles cannot
fold over (Tutte). The stereographic projection takes z to the sphere, scaled and shifted so that the centroid of the
surface's area lies at the centre: what remains free is a rotation.

A Moebius map z -> (a z + b) / (c z + d) is a 2 x 2 complex matrix of determinant 1 that acts on homogeneous coordinates
[u, v] with z = u / v. These are all maps of the sphere that keep angles and orientation, and three point pairs fix one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.linalg import splu

from acnn.errors import InputError
from acnn.shapes.topology import fans, mesh_edges, orientations_agree, vertex_components
from acnn.surface.laplacian import hat_gradients, stiffness
from acnn.surface.surface import Surface
from acnn.types import FloatArray, IntArray

SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-2, 1e4
"""Cotangent weights of edges are kept between these: positive weights alone rule out folded triangles, and slivers must
not outweigh everything else. Few edges of a reasonable mesh are concerned."""

RELAXATIONS, OVERLAP = 2, 2.0
"""How often both sides of the sphere are solved again, and up to which |z| each of them reaches."""

SMALLEST_AREA = 1e-30
"""Area on the sphere below which double precision leaves nothing of a triangle: tips of long, thin limbs."""

FEWEST = 12
"""Vertices below which a mesh is not flattened: those of the icosahedron."""


@dataclass(frozen=True, eq=False)
class ConformalSphere:
    """A conformal image of a surface on the unit sphere.

    Attributes
    ----------
    coordinates : (n,) complex array
        Stereographic coordinate z of each vertex: 0 is the north pole, infinity the south pole.
    faces : (m, 3) array
        Of the surface.
    face_areas : (m,) array
        Of the surface, as fractions of the total.
    """

    coordinates: NDArray[np.complex128]
    faces: IntArray
    face_areas: FloatArray

    @cached_property
    def points(self) -> FloatArray:
        """(n, 3) vertices on the unit sphere."""
        return sphere_points(homogeneous(self.coordinates))

    @cached_property
    def flat_areas(self) -> FloatArray:
        """(m,) areas of the faces on the sphere over 4 pi, negative where one is folded over."""
        a, b, c = (self.points[self.faces[:, k]] for k in range(3))
        doubled = np.cross(b - a, c - a)
        return np.sign((doubled * (a + b + c)).sum(axis=1)) * np.linalg.norm(doubled, axis=1) / (8.0 * np.pi)

    @cached_property
    def log_density(self) -> FloatArray:
        """(n,) logarithm of the area on the surface per area on the sphere, averaged over the faces at each vertex."""
        flat = np.maximum(np.abs(self.flat_areas), SMALLEST_AREA)
        ratio = np.log(np.maximum(self.face_areas, SMALLEST_AREA)) - np.log(flat)
        n = len(self.coordinates)
        weight = np.repeat(self.face_areas, 3)
        total = np.bincount(self.faces.ravel(), weights=weight * np.repeat(ratio, 3), minlength=n)
        return total / np.maximum(np.bincount(self.faces.ravel(), weights=weight, minlength=n), 1e-300)


def flatten(surface: Surface, puncture: int | None = None, name: str = "The shape") -> ConformalSphere:
    """Map a closed mesh of genus 0 conformally to the unit sphere.

    Parameters
    ----------
    surface : Surface
        Closed, connected mesh of genus 0.
    puncture : int or None
        Vertex of whose faces the largest is sent to infinity at first; None takes the vertex nearest to the centroid
        in space. It should lie where the surface is wide, so that limbs do not come to lie at infinity.
    name : str
        How messages call the shape.

    Returns
    -------
    ConformalSphere

    Raises
    ------
    InputError
        Where the surface is not such a mesh, see `check_sphere`.
    """
    check_sphere(surface, name)
    if puncture is None:
        puncture = int(np.argmin(np.linalg.norm(surface.vertices, axis=1)))
    around = (surface.faces == puncture).any(axis=1)
    face = int(np.argmax(np.where(around, surface.face_areas, -1.0)))
    weights = _positive_weights(surface)
    z = _planar_coordinates(surface, weights, face)
    areas = surface.face_areas / surface.face_areas.sum()
    vertex_areas = surface.vertex_areas / surface.vertex_areas.sum()
    z = _centred(z, vertex_areas)
    z = _centred(_relaxed(z, weights), vertex_areas)
    return ConformalSphere(z, surface.faces, areas)


def check_sphere(surface: Surface, name: str = "The shape") -> None:
    """Check that a surface is one closed manifold of genus 0, as conformal maps to the sphere need.

    Raises
    ------
    InputError
        With what is in the way, and which method can be used instead.
    """
    if surface.is_cloud:
        raise InputError(
            f"{name} is a point cloud, but blended intrinsic maps (bim) need a closed mesh: use the method "
            "'descriptors' or 'acnn' for clouds."
        )
    need = "but blended intrinsic maps (bim) need one closed mesh without holes or handles:"
    whole = "use the method 'descriptors' or 'acnn'."
    n, m = len(surface.vertices), len(surface.faces)
    if n < FEWEST:
        raise InputError(
            f"{name} has {n} vertices, but blended intrinsic maps (bim) need {FEWEST}: subdivide the mesh."
        )
    components = vertex_components(surface.faces, n)[0]
    if components > 1:
        raise InputError(f"{name} consists of {components} separate components, {need} {whole}")
    edges = mesh_edges(surface.faces)
    open_edges = int((edges.counts == 1).sum())
    if open_edges:
        raise InputError(
            f"{name} has a boundary ({open_edges} edges with a single face), {need} use the method 'pfm' for partial "
            "shapes, or fill the holes."
        )
    first, second = edges.pairs()
    if (edges.counts > 2).any() or fans(surface.faces, first, second)[0] > n:
        raise InputError(f"{name} is not a manifold (sheets meet at an edge or a vertex), {need} {whole}")
    if not orientations_agree(surface.faces, first, second).all():
        raise InputError(
            f"{name} has faces that are not oriented alike, {need} orient them with 'acnn info SHAPE --repair OUT'."
        )
    genus = (2 - (n - len(edges.counts) + m)) // 2
    if genus:
        handles = "1 handle" if genus == 1 else f"{genus} handles"
        raise InputError(f"{name} has {handles} (genus {genus}), {need} {whole}")


def homogeneous(coordinates: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """(..., 2) unit vectors [u, v] with u / v = z, so that no point lies at infinity."""
    z = np.asarray(coordinates, complex)
    length = np.sqrt(1.0 + np.abs(z) ** 2)
    return np.stack([z / length, 1.0 / length], axis=-1)


def sphere_points(vectors: NDArray[np.complex128]) -> FloatArray:
    """(..., 3) points on the unit sphere of (..., 2) homogeneous coordinates, of any length but 0."""
    u, v = vectors[..., 0], vectors[..., 1]
    across = 2.0 * u * v.conj()
    low, high = np.abs(v) ** 2, np.abs(u) ** 2
    return np.stack([across.real, across.imag, low - high], axis=-1) / (high + low)[..., None]


def _positive_weights(surface: Surface) -> sp.csr_array:
    """(n, n) stiffness matrix, all off-diagonal entries of which are negative."""
    matrix = stiffness(surface).tocoo()
    row, column = matrix.coords
    between = row != column
    values = np.clip(matrix.data[between], -LARGEST_WEIGHT, -SMALLEST_WEIGHT)
    off = sp.coo_array((values, (row[between], column[between])), shape=matrix.shape).tocsr()
    return (off - sp.diags_array(off.sum(axis=1))).tocsr()


def _planar_coordinates(surface: Surface, weights: sp.csr_array, face: int) -> NDArray[np.complex128]:
    """(n,) complex coordinates of the conformal map with a puncture at one face."""
    corners = surface.faces[face]
    gradients = hat_gradients(surface)[face]  # (3, 3)
    u = surface.vertices[corners[1]] - surface.vertices[corners[0]]
    u = u / np.linalg.norm(u)
    v = np.cross(surface.face_normals[face], u)
    dipole = np.zeros(len(surface.vertices), complex)
    dipole[corners] = gradients @ u - 1j * (gradients @ v)
    z = np.zeros(len(dipole), complex)
    free = np.delete(np.arange(len(dipole)), corners[0])  # one vertex is held: z is known up to a constant
    z[free] = _solve(weights[free][:, free], dipole[free])
    return z / np.abs(z).max()


def _centred(z: NDArray[np.complex128], areas: FloatArray) -> NDArray[np.complex128]:
    """Scale and shift z so that the centroid of areas on the sphere is the centre.

    It minimises sum_i a_i (log(1 + s^2 |z_i - t|^2) - log s), which is convex in hyperbolic space; the gradient is the
    centroid.
    """

    def energy(parameters: FloatArray) -> tuple[float, FloatArray]:
        scale, moved = np.exp(parameters[0]), z - complex(parameters[1], parameters[2])
        square = (scale * np.abs(moved)) ** 2
        pull = -areas @ (2.0 * scale**2 * moved / (1.0 + square))
        slope = areas @ ((square - 1.0) / (square + 1.0))
        return float(areas @ np.log1p(square) - parameters[0]), np.array([slope, pull.real, pull.imag])

    # The weighted median scale about the centroid is near enough for a quasi-Newton method.
    middle = areas @ z / areas.sum()
    distance = np.abs(z - middle)
    order = np.argsort(distance)
    size = distance[order[np.searchsorted(np.cumsum(areas[order]), 0.5)]]
    z = (z - middle) / size
    for _ in range(5):
        result = minimize(energy, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-10})
        z = np.exp(result.x[0]) * (z - complex(result.x[1], result.x[2]))
        if np.linalg.norm(result.x) < 1e-6:
            break
    return z


def _relaxed(z: NDArray[np.complex128], weights: sp.csr_array) -> NDArray[np.complex128]:
    """Solve again on either side of the sphere, each in the chart where it is finite, the rest held.

    The two sides overlap (Schwarz's alternating method), so that in the end neither the puncture nor the one triangle
    around it decides anything.
    """
    for _ in range(RELAXATIONS):
        for _ in range(2):
            z = np.asarray(
                1.0 / np.where(np.abs(z) < 1e-12, 1e-12, z), complex
            )  # far becomes near; no vertex may lie at infinity
            near = np.abs(z) < OVERLAP
            inside, outside = np.flatnonzero(near), np.flatnonzero(~near)
            z[inside] = _solve(weights[inside][:, inside], -(weights[inside][:, outside] @ z[outside]))
    return z


def _solve(matrix: sp.csr_array, right: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Solve a symmetric positive definite system with complex right-hand side."""
    factor = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    both = factor.solve(np.stack([right.real, right.imag], axis=1))
    return both[:, 0] + 1j * both[:, 1]


ComplexArray: TypeAlias = NDArray[np.complex128]

CANDIDATES = 10_000
"""Moebius maps that are tried, at random where there are more pairs of triplets (the authors' number)."""

LENGTH_RATIO = 0.6
"""Distances between features may shrink or grow to this fraction. Shapes to be matched are nearly isometric, so that
most of the wrong candidates are found in this way before any map is made; the authors try all of them."""

LENGTH_SLACK = 0.1
"""Changes of distance below this, over sqrt(area), are always allowed: a limb may have two features at its end."""


@dataclass(frozen=True, eq=False)
class MoebiusMaps:
    """Moebius maps with the point pairs that they go through.

    Attributes
    ----------
    a, b : (k, 3) array
        Numbers of the points: point a[i, j] is sent to point b[i, j].
    matrices : (k, 2, 2) complex array
        Of determinant 1.
    """

    a: IntArray
    b: IntArray
    matrices: ComplexArray

    def __getitem__(self, rows: Any) -> MoebiusMaps:
        return MoebiusMaps(self.a[rows], self.b[rows], self.matrices[rows])

    def __len__(self) -> int:
        return len(self.a)


def candidate_maps(
    a: ComplexArray, b: ComplexArray, a_distances: FloatArray, b_distances: FloatArray, random: np.random.Generator
) -> MoebiusMaps:
    """Moebius maps through all pairs of triplets of points at similar distances, at most `CANDIDATES` of them.

    Parameters
    ----------
    a, b : (f, 2) and (g, 2) complex array
        Homogeneous coordinates of the points.
    a_distances, b_distances : (f, f) and (g, g) array
        Geodesic distances over sqrt(area).
    random : Generator
        Chooses where there are too many.
    """
    first = np.array(list(combinations(range(len(a)), 3)), dtype=int).reshape(-1, 3)
    second = np.array(list(permutations(range(len(b)), 3)), dtype=int).reshape(-1, 3)
    plausible = np.ones((len(first), len(second)), dtype=bool)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        here, there = a_distances[first[:, i], first[:, j]], b_distances[second[:, i], second[:, j]]
        plausible &= ~in_conflict(here[:, None], there[None])
    chosen = np.argwhere(plausible)
    if len(chosen) > CANDIDATES:
        chosen = chosen[np.sort(random.choice(len(chosen), CANDIDATES, replace=False))]
    source, target = first[chosen[:, 0]], second[chosen[:, 1]]
    matrices = moebius_through(a[source], b[target])
    usable = np.isfinite(matrices).all(axis=(1, 2))
    return MoebiusMaps(source[usable], target[usable], matrices[usable])


def in_conflict(a_distances: FloatArray, b_distances: FloatArray) -> NDArray[np.bool_]:
    """Where distances on the two shapes, over sqrt(area), differ too much for one map."""
    short, long = np.minimum(a_distances, b_distances), np.maximum(a_distances, b_distances)
    return (short < LENGTH_RATIO * long) & (long - short > LENGTH_SLACK)


def moebius_through(source: ComplexArray, target: ComplexArray) -> ComplexArray:
    """Moebius maps that send three points to three points.

    Parameters
    ----------
    source, target : (..., 3, 2) complex array
        Homogeneous coordinates of three distinct points each.

    Returns
    -------
    (..., 2, 2) complex array
        Of determinant 1; not finite where two of the three points coincide.
    """
    return normalised(inverse(to_canonical(target)) @ to_canonical(source))


def to_canonical(points: ComplexArray) -> ComplexArray:
    """(..., 2, 2) maps that send (..., 3, 2) homogeneous points to 0, 1 and infinity.

    z -> (z - z_0) (z_1 - z_2) / ((z - z_2) (z_1 - z_0))
    """
    p, q, r = points[..., 0, :], points[..., 1, :], points[..., 2, :]
    # The bracket [x, p] = x_u p_v - x_v p_u vanishes where x = p: it is z - z_0 without denominators.
    to_zero = np.stack([p[..., 1], -p[..., 0]], axis=-1) * _bracket(q, r)[..., None]
    to_infinity = np.stack([r[..., 1], -r[..., 0]], axis=-1) * _bracket(q, p)[..., None]
    return normalised(np.stack([to_zero, to_infinity], axis=-2))


def normalised(matrices: ComplexArray) -> ComplexArray:
    """(..., 2, 2) matrices divided by a square root of their determinant."""
    determinant = matrices[..., 0, 0] * matrices[..., 1, 1] - matrices[..., 0, 1] * matrices[..., 1, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return matrices / np.sqrt(determinant)[..., None, None]


def inverse(matrices: ComplexArray) -> ComplexArray:
    """(..., 2, 2) inverses of matrices of determinant 1."""
    a, b, c, d = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 0], matrices[..., 1, 1]
    return np.stack([np.stack([d, -b], axis=-1), np.stack([-c, a], axis=-1)], axis=-2)


def images(matrices: ComplexArray, points: ComplexArray) -> tuple[ComplexArray, FloatArray]:
    """Images of points under Moebius maps, and the logarithm of the change of area on the sphere.

        area' / area = (|x|^2 / |T x|^2)^2      for det T = 1

    Parameters
    ----------
    matrices : (k, 2, 2) complex array
        Of determinant 1.
    points : (n, 2) complex array
        Homogeneous coordinates of unit length.

    Returns
    -------
    tuple[(k, n, 2) complex array, (k, n) array]
        Homogeneous images, not of unit length, and logarithms.
    """
    mapped = np.einsum("kab,nb->kna", matrices, points)
    length = np.abs(mapped[..., 0]) ** 2 + np.abs(mapped[..., 1]) ** 2
    return mapped, -2.0 * np.log(np.maximum(length, 1e-300))


def area_confidence(log_ratio: FloatArray) -> FloatArray:
    """Confidence 2 / (r + 1 / r) of a map that changes areas by the factor r = exp(log_ratio): 1 where it does not."""
    return 1.0 / np.cosh(np.clip(log_ratio, -300.0, 300.0))


def _bracket(x: ComplexArray, y: ComplexArray) -> ComplexArray:
    return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
