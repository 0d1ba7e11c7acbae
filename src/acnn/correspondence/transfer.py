"""Transfer along a point map: values, landmarks, and a shape in the connectivity of another."""

from __future__ import annotations

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


def pull_back(values_on_reference: ArrayLike, query_to_reference: ArrayLike) -> NDArray[Any]:
    """Values of the reference at the matches of the query: (n, ...) from (m, ...).

    Parameters
    ----------
    values_on_reference : (m, ...) array
        Of any kind: colours, labels, coordinates.
    query_to_reference : (n,) array
        Reference vertices.
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
    """Mean over the query vertices that match each reference vertex: (m, ...) from (n, ...).

    Parameters
    ----------
    values_on_query : (n, ...) array
        Numbers.
    query_to_reference : (n,) array
        Reference vertices.
    reference_size : int
        M.
    weights : (n,) array or None
        Such as areas or confidences; None is 1.
    missing : float
        For reference vertices that nothing matches.
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
    """(k,) query vertices for landmarks given as reference vertices: the map followed backwards.

    The query vertex whose match is nearest to the landmark along the reference is taken; of several, the one nearest
    to their mean. Where nothing matches the landmark's component, the straight-line nearest is taken.

    Parameters
    ----------
    landmarks : (k,) array
        Reference vertices.
    query_to_reference : (n,) array
        Reference vertices.
    query : (n, 3) array
        The query's points.
    reference : Surface
        Mesh or cloud of m vertices.
    """
    from acnn.surface.geodesics import GeodesicSolver

    m = len(reference.vertices)
    wanted = checked_point_map(landmarks, m, "The list of landmarks")
    matched = checked_point_map(query_to_reference, m)
    if not len(matched):
        raise InputError("No vertex of the query has a match, so there is nothing to put landmarks on.")
    solver = GeodesicSolver(reference) if not np.isin(wanted, matched).all() else None
    found = np.full(len(wanted), -1, np.int32)
    for i, landmark in enumerate(wanted):
        at = np.flatnonzero(matched == landmark)
        if not len(at) and solver is not None:
            distance = solver.distances_from([int(landmark)])[0][matched]
            if not np.isfinite(distance.min()):
                distance = np.linalg.norm(reference.vertices[matched] - reference.vertices[landmark], axis=1)
            at = np.flatnonzero(distance <= distance.min())
        middle = query[at].mean(axis=0)
        found[i] = at[np.linalg.norm(query[at] - middle, axis=1).argmin()]
    return found


COLLAPSED = 1e-3
"""Fraction of its area, at the scale of the moved mesh, below which a face has collapsed: its edges have shrunk to
less than about a thirtieth, or it has become a sliver, and no normal can be relied on."""


@dataclass(frozen=True)
class MovedFaces:
    """What became of the faces of a mesh that was moved onto a shape.

    All is measured relative to the scale s of the movement, s^2 = area after / area before.

    Attributes
    ----------
    collapsed_faces
        Faces whose area is below `COLLAPSED` s^2 times what it was.
    inverted_faces
        Faces that have not collapsed and lie upside down on the shape: their normal points against the shape's outward
        normal nearest to their centre, and against the mean of those nearest to their corners. One of the two alone
        may belong to the other side of a thin part, or to a fold that the shape itself has. Over a cloud, which has no
        reliable normals, the moved mesh's own vertex normals stand in for both.
    largest_stretch
        The largest ratio of an edge's length to s times what it was.
    """

    collapsed_faces: int
    inverted_faces: int
    largest_stretch: float

    def as_dict(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return asdict(self)


@check_arguments
def carry_shape(
    query: Shape, reference: Mesh, places: BarycentricPoints, *, smoothing: float | None = None
) -> FloatArray:
    """(m, 3) where the reference's vertices are on the query's surface.

    With P the query's points, w_ij the weight of reference vertex j in the match of query vertex i, S the areas and W
    the stiffness matrix of the reference,

        X = argmin  sum_i |sum_j w_ij X_j - P_i|^2 + mu tr (W X)^T S^-1 (W X),

    so vertices that matches fall on go to (nearly the mean of) those points, the others smoothly in between; then every
    vertex moves to the nearest point of the query's surface.

    Parameters
    ----------
    query : Shape
        N points; their mesh, where it has one, is what X is put on.
    reference : Mesh
        M vertices.
    places : BarycentricPoints
        (n) matches of the query's vertices on the reference.
    smoothing : float or None
        Wave length, in mean edges of the reference, below which X is smoothed; None is 4 for matches at vertices, which
        are off by up to half an edge, and 1 for exact places.

    Raises
    ------
    InputError
        Where the reference is no mesh, or nothing is matched to one of its components.
    """
    import scipy.sparse as sp
    from scipy.sparse.linalg import splu

    from acnn.surface.laplacian import stiffness

    if not isinstance(reference, Mesh):
        raise InputError("The shape whose triangles are moved must be a mesh, not a point cloud.")
    _check_components(reference, places)
    surface = surface_of(reference)
    n, m = len(query.vertices), len(reference.vertices)
    rows = np.repeat(np.arange(n), 3)
    match = sp.coo_array((places.weights.ravel(), (rows, reference.faces[places.faces].ravel())), shape=(n, m)).tocsr()
    bending = stiffness(surface)
    bending = bending @ sp.diags_array(1.0 / surface.vertex_areas) @ bending
    # A wave of length q has |W X|^2 / S = S (2 pi / q)^4; here it weighs as much as its match does.
    if smoothing is None:
        smoothing = 4.0 if np.mean(places.weights.max(axis=1) > 0.999) > 0.9 else 1.0
    length = surface.mean_edge * max(smoothing, 0.1) / (2 * np.pi)
    normal = match.T @ match + length**4 / surface.vertex_areas.mean() * bending
    # A component that hardly anything matches would have no certain place.
    normal = (normal + 1e-9 * sp.eye_array(m)).tocsc()
    centre = query.vertices.mean(axis=0)
    moved = splu(normal).solve(np.asarray(match.T @ (query.vertices - centre))) + centre
    if not isinstance(query, Mesh):
        return moved
    on_surface = ClosestPoints(query.vertices, query.faces)(moved)
    return on_surface.interpolate(query.vertices[query.faces])


def check_moved_faces(query: Shape, reference: Mesh, moved: FloatArray) -> MovedFaces:
    """Count the faces that `carry_shape` has damaged.

    Parameters
    ----------
    query
        Mesh or cloud that the reference was moved onto.
    reference
        Mesh of m vertices, before.
    moved
        (m, 3) its vertices after.

    Returns
    -------
    MovedFaces
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


def _check_components(reference: Mesh, places: BarycentricPoints) -> None:
    """Raise InputError where nothing is matched to a component of the reference: it has no place on the query."""
    start, end = reference.faces.ravel(), np.roll(reference.faces, 1, axis=1).ravel()
    count, component = groups(start.astype(np.int64), end.astype(np.int64), len(reference.vertices))
    lost = np.setdiff1d(np.arange(count), component[reference.faces[places.faces][places.weights > 0]])
    if len(lost):
        members = np.flatnonzero(component == lost[0])
        more = f", and {len(lost) - 1} more like it" if len(lost) > 1 else ""
        raise InputError(
            f"Nothing is matched to a separate piece of the shape to be moved ({len(members)} vertices, the first as "
            f"loaded is {members[0]}{more}), so it has no place on the other. Remove it, and match again."
        )
