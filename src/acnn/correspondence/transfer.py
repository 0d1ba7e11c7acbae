"""Transfer along a map: values, landmarks, and the shape of the query in the connectivity of the reference."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.arguments import check_arguments
from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.shapes.topology import groups, mesh_edges
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.surface import Surface, surface_of, vertex_normals
from acnn.types import FloatArray, IntArray

logger = logging.getLogger("acnn.correspondence")

COLLAPSED = 1e-3
"""Fraction of its area, at the scale of the moved mesh, below which a face has collapsed: its edges have shrunk to
less than about a thirtieth, or it has become a sliver, and its normal is unreliable."""


def pull_back(values_on_reference: ArrayLike, query_to_reference: ArrayLike) -> NDArray[Any]:
    """Values of the reference at the matches of the query.

    Parameters
    ----------
    values_on_reference : (m, ...) array
        Of any kind: colours, labels, coordinates.
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.

    Returns
    -------
    (n, ...) array
        Values on the query.

    Raises
    ------
    InputError
        Where an entry of the map is not a reference vertex.

    Examples
    --------
    >>> pull_back([10, 20, 30], [2, 2, 0, 1])
    array([30, 30, 10, 20])
    """
    values = np.asarray(values_on_reference)
    return values[checked_point_map(query_to_reference, len(values))]


def push_forward(
    values_on_query: ArrayLike,
    query_to_reference: ArrayLike,
    reference_size: int,
    *,
    weights: ArrayLike | None = None,
    missing: float = np.nan,
) -> FloatArray:
    """Mean of values of the query over the vertices that are matched to each reference vertex.

    Parameters
    ----------
    values_on_query : (n, ...) array
        Numbers.
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.
    reference_size : int
        Number m of reference vertices.
    weights : (n,) array or None
        Such as areas or confidences; None is 1.
    missing : float
        Value of reference vertices that no query vertex is matched to.

    Returns
    -------
    (m, ...) array
        Values on the reference.

    Raises
    ------
    InputError
        Where the map does not fit the values, or a weight is negative.

    Examples
    --------
    >>> push_forward([1.0, 3.0, 5.0], [0, 0, 2], reference_size=3)
    array([ 2., nan,  5.])
    """
    values = np.asarray(values_on_query, dtype=float)
    matched = checked_point_map(query_to_reference, reference_size, size=len(values))
    weight = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=float)
    if weight.shape != matched.shape or not (weight >= 0).all():
        raise InputError(f"Weights must be at least 0, one for each of the {len(matched)} query vertices.")
    flat = values.reshape(len(values), -1)
    total = np.bincount(matched, weights=weight, minlength=reference_size)
    sums = np.stack([np.bincount(matched, weights=weight * column, minlength=reference_size) for column in flat.T], 1)
    mean = np.where(total[:, None] > 0, sums / np.where(total > 0, total, 1.0)[:, None], missing)
    return mean.reshape(reference_size, *values.shape[1:])


def landmarks_on_query(
    landmarks: ArrayLike, query_to_reference: ArrayLike, query: FloatArray, reference: Surface
) -> IntArray:
    """Transfer landmarks from the reference to the query, against the direction of the map.

    The query vertex whose match is geodesically nearest to the landmark is taken; of several, the one nearest to their
    mean. Where no vertex is matched to the landmark's component, the Euclidean nearest match is taken.

    Parameters
    ----------
    landmarks : (k,) array
        Reference vertices.
    query_to_reference : (n,) array
        Reference vertices.
    query : (n, 3) array
        Vertices of the query.
    reference : Surface
        Mesh or cloud of m vertices.

    Returns
    -------
    (k,) int32 array
        Query vertices.

    Raises
    ------
    InputError
        Where a landmark or a match is not a reference vertex, or the query has no vertices.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    >>> faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
    >>> landmarks_on_query([3, 0], [0, 3, 2, 1], tetrahedron, surface_of(Mesh(tetrahedron, faces)))
    array([1, 0], dtype=int32)
    """
    from acnn.surface.geodesics import GeodesicSolver

    m = len(reference.vertices)
    reference_vertices = checked_point_map(landmarks, m, "The list of landmarks")
    matches = checked_point_map(query_to_reference, m)
    if not len(matches):
        raise InputError("No vertex of the query has a match, so no landmark can be transferred.")
    solver = GeodesicSolver(reference) if not np.isin(reference_vertices, matches).all() else None
    query_vertices = np.full(len(reference_vertices), -1, np.int32)
    for i, landmark in enumerate(reference_vertices):
        candidates = np.flatnonzero(matches == landmark)
        if not len(candidates) and solver is not None:
            distance = solver.distances_from([int(landmark)])[0][matches]
            if not np.isfinite(distance.min()):
                logger.debug("landmark %d: no match on its component, the Euclidean nearest is taken", landmark)
                distance = np.linalg.norm(reference.vertices[matches] - reference.vertices[landmark], axis=1)
            candidates = np.flatnonzero(distance <= distance.min())
        centre = query[candidates].mean(axis=0)
        query_vertices[i] = candidates[np.linalg.norm(query[candidates] - centre, axis=1).argmin()]
    return query_vertices


@dataclass(frozen=True)
class MovedFaces:
    """Damage to the faces of a mesh that was moved onto a shape.

    All is measured relative to the scale s of the movement, s^2 = area after / area before.

    Attributes
    ----------
    collapsed_faces : int
        Faces whose area is below `COLLAPSED` s^2 times what it was.
    inverted_faces : int
        Faces that have not collapsed and lie upside down on the shape: their normal points against the shape's outward
        normal nearest to their centre, and against the mean of those nearest to their corners. One of the two alone
        may belong to the other side of a thin part, or to a fold that the shape itself has. Over a cloud, which has no
        reliable normals, the moved mesh's own vertex normals stand in for both.
    largest_stretch : float
        The largest ratio of an edge's length to s times what it was.
    """

    collapsed_faces: int
    inverted_faces: int
    largest_stretch: float

    def as_dict(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return asdict(self)


@check_arguments
def transfer_shape(
    query: Shape, reference: Mesh, points: BarycentricPoints, *, smoothing: float | None = None
) -> FloatArray:
    """Move the vertices of the reference onto the surface of the query.

    With P the query's points, w_ij the weight of reference vertex j in the match of query vertex i, S the areas and W
    the stiffness matrix of the reference,

        X = argmin  sum_i |sum_j w_ij X_j - P_i|^2 + mu tr (W X)^T S^-1 (W X),

    so that matched vertices move (nearly) to the mean of their matches and the others are interpolated smoothly; then
    every vertex moves to the nearest point of the query's surface.

    Parameters
    ----------
    query : Shape
        Mesh or cloud of n vertices.
    reference : Mesh
        Of m vertices.
    points : BarycentricPoints
        The n matches of the query's vertices on the reference.
    smoothing : float or None
        Wavelength, in mean edge lengths of the reference, below which X is smoothed; None is 4 for matches at vertices,
        which are off by up to half an edge, and 1 for matches inside triangles.

    Returns
    -------
    (m, 3) array
        Vertices of the reference in the shape of the query.

    Raises
    ------
    InputError
        Where the reference is not a mesh, or no vertex is matched to one of its components.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import BarycentricPoints, Mesh
    >>> tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    >>> faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
    >>> points = BarycentricPoints.at_vertices(faces, np.arange(4))
    >>> moved = transfer_shape(Mesh(tetrahedron + 5, faces), Mesh(tetrahedron, faces), points, smoothing=0.1)
    >>> bool(np.abs(moved - tetrahedron - 5).max() < 0.01)
    True
    """
    import scipy.sparse as sp
    from scipy.sparse.linalg import splu

    from acnn.surface.laplacian import stiffness

    if not isinstance(reference, Mesh):
        raise InputError("The shape whose triangles are moved must be a mesh, not a point cloud.")
    _check_components(reference, points)
    surface = surface_of(reference)
    n, m = len(query.vertices), len(reference.vertices)
    rows = np.repeat(np.arange(n), 3)
    match = sp.coo_array((points.weights.ravel(), (rows, reference.faces[points.faces].ravel())), shape=(n, m)).tocsr()
    bending = stiffness(surface)
    bending = bending @ sp.diags_array(1.0 / surface.vertex_areas) @ bending
    # A wave of length q has |W X|^2 / S = S (2 pi / q)^4; here it weighs as much as its match does.
    if smoothing is None:
        smoothing = 4.0 if np.mean(points.weights.max(axis=1) > 0.999) > 0.9 else 1.0
    length = surface.mean_edge * max(smoothing, 0.1) / (2 * np.pi)
    normal = match.T @ match + length**4 / surface.vertex_areas.mean() * bending
    # A component with hardly any matches would be undetermined.
    normal = (normal + 1e-9 * sp.eye_array(m)).tocsc()
    centre = query.vertices.mean(axis=0)
    moved = splu(normal).solve(np.asarray(match.T @ (query.vertices - centre))) + centre
    if not isinstance(query, Mesh):
        return moved
    on_surface = ClosestPoints(query.vertices, query.faces)(moved)
    return on_surface.interpolate(query.vertices[query.faces])


def check_moved_faces(query: Shape, reference: Mesh, moved: FloatArray) -> MovedFaces:
    """Count the faces that `transfer_shape` has damaged.

    Parameters
    ----------
    query : Shape
        Mesh or cloud that the reference was moved onto.
    reference : Mesh
        Of m vertices, before.
    moved : (m, 3) array
        Its vertices after.

    Returns
    -------
    MovedFaces
        Numbers of damaged faces, and the largest stretch.
    """
    faces = reference.faces
    before, after = (_doubled_normals(points, faces) for points in (reference.vertices, moved))
    areas = [np.linalg.norm(normals, axis=1) for normals in (before, after)]
    scale = np.sqrt(areas[1].sum() / areas[0].sum())
    collapsed = areas[1] < COLLAPSED * scale**2 * areas[0]
    against = np.ones(len(faces), bool)
    for normals in _outward_normals(query, moved, faces):
        against &= np.einsum("nd,nd->n", after, normals) < 0
    edges = mesh_edges(faces).vertices
    lengths = [np.linalg.norm(p[edges[:, 0]] - p[edges[:, 1]], axis=1) for p in (reference.vertices, moved)]
    stretch = lengths[1] / np.maximum(scale * lengths[0], np.finfo(float).tiny)
    return MovedFaces(int(collapsed.sum()), int((against & ~collapsed).sum()), float(stretch.max()))


def _outward_normals(query: Shape, moved: FloatArray, faces: IntArray) -> list[FloatArray]:
    """(faces, 3) each: normals that those of the moved faces should not point against."""
    if not isinstance(query, Mesh):
        return [vertex_normals(moved, faces)[faces].sum(axis=1)]
    normals = _doubled_normals(query.vertices, query.faces)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(float).tiny)
    nearest = ClosestPoints(query.vertices, query.faces)
    at_centres = normals[nearest(moved[faces].mean(axis=1)).faces]
    return [at_centres, normals[nearest(moved).faces][faces].sum(axis=1)]


def _doubled_normals(vertices: FloatArray, faces: IntArray) -> FloatArray:
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def _check_components(reference: Mesh, points: BarycentricPoints) -> None:
    """Raise InputError where no vertex is matched to a component of the reference: its position is undetermined."""
    start, end = reference.faces.ravel(), np.roll(reference.faces, 1, axis=1).ravel()
    count, component = groups(start.astype(np.int64), end.astype(np.int64), len(reference.vertices))
    unmatched = np.setdiff1d(np.arange(count), component[reference.faces[points.faces][points.weights > 0]])
    if len(unmatched):
        members = np.flatnonzero(component == unmatched[0])
        more = f", and {len(unmatched) - 1} more like it" if len(unmatched) > 1 else ""
        raise InputError(
            f"No vertex is matched to a separate component of the shape to be moved ({len(members)} vertices, the "
            f"first as loaded is {members[0]}{more}), so its position is undetermined. Remove it, and match again."
        )
