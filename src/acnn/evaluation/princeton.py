"""The Princeton protocol: errors of matches against the ground truth, as a curve and as single figures.

For a query vertex x matched to y(x) with ground truth y*(x) on the reference,

    error(x) = d(y(x), y*(x)) / sqrt(area of the reference)    (or / its geodesic diameter, 1.72 times smaller on FAUST)

and the curve gives for each r in [0, 0.3] the fraction of vertices with error at most r. Kim, Lipman, Funkhouser,
Blended intrinsic maps, 2011.

In the symmetric setting the mirrored point y'(x) is correct as well. The published protocol chooses between the two for
each vertex separately,

    per vertex:    mean over x of min( d(y(x), y*(x)), d(y(x), y'(x)) )

so that a map which mixes left and right at random has no error. It is complemented by the error of the map as a whole,

    per map:       min( mean over x of d(y(x), y*(x)), mean over x of d(y(x), y'(x)) )

which accepts a map that is mirrored as a whole, and nothing else. It is never smaller than the former.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.correspondence.soft_map import checked_point_map
from acnn.errors import InputError
from acnn.evaluation.distances import ReferenceDistances
from acnn.shapes.mesh import BarycentricPoints
from acnn.surface.surface import Surface
from acnn.types import FloatArray

THRESHOLDS: FloatArray = np.linspace(0.0, 0.3, 100)
"""Errors at which the curve is sampled."""

Truth = ArrayLike | BarycentricPoints
"""A reference vertex per query vertex (-1 unknown), or barycentric points on the reference."""


@dataclass(frozen=True, eq=False)
class ShapeEvaluation:
    """Errors of the map of one shape.

    Attributes
    ----------
    name : str
        Of the shape.
    errors : (known,) array
        Error of each query vertex whose ground truth is known.
    exact : float
        Fraction of matches equal to the true vertex (the vertex nearest to a point in a triangle, as in labels).
    mean_error_x100 : float
        Mean of the errors, times 100.
    auc : float
        Mean of the curve.
    curve : (100,) array
        Fraction of errors at most each of `THRESHOLDS`.
    coverage : float
        Fraction of the reference's area whose vertices are matched.
    per_map : ShapeEvaluation or None
        In the symmetric setting, the evaluation against one of the two ground truths for all vertices, the one with the
        smaller mean error where both are known; None otherwise.
    flipped : bool
        Of a `per_map`, whether that is the mirrored ground truth.
    """

    name: str
    errors: FloatArray
    exact: float
    mean_error_x100: float
    auc: float
    curve: FloatArray
    coverage: float
    per_map: ShapeEvaluation | None = None
    flipped: bool = False


def evaluate_map(
    query_to_reference: ArrayLike,
    truth: Truth,
    distances: ReferenceDistances,
    *,
    mirrored_truth: Truth | None = None,
    rows: ArrayLike | None = None,
    name: str = "",
) -> ShapeEvaluation:
    """Compare a point map with the ground truth.

    Parameters
    ----------
    query_to_reference : (n,) array
        Matched reference vertices.
    truth : Truth
        (n,) true vertices, -1 where unknown, or `BarycentricPoints`.
    distances : ReferenceDistances
        On the reference; shared between shapes.
    mirrored_truth : Truth or None
        The mirrored ground truth, as `truth`. Where given, the smaller error of each vertex counts (the symmetric
        protocol), and `per_map` is set. For true vertices and a mirror map of the reference it is
        `mirrored(truth, mirror)`.
    rows : (k,) array or None
        Query vertices that the k rows of the ground truth belong to, where it is a list in which a vertex may occur
        more than once or not at all; errors are then averaged over the list. None: row i belongs to vertex i.
    name : str
        Of the shape.

    Returns
    -------
    ShapeEvaluation
        The errors, and figures over them.

    Raises
    ------
    InputError
        Where sizes do not fit or the ground truth is not known for any vertex.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    >>> surface = surface_of(Mesh(tetrahedron, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)))
    >>> evaluate_map([0, 1, 2, 0], [0, 1, 2, 3], ReferenceDistances(surface)).exact
    0.75
    """
    everything = checked_point_map(query_to_reference, len(distances.surface.vertices))
    matched = everything if rows is None else everything[checked_point_map(rows, len(everything))]
    errors, hit, known = _errors(matched, truth, distances)
    if not known.any():
        raise InputError(
            f"{name or 'The shape'}: the ground truth is not known for any vertex, so nothing can be evaluated."
        )
    covered_area = coverage(everything, distances.surface)

    def summary(errors: FloatArray, hit: NDArray[np.bool_], **more: Any) -> ShapeEvaluation:
        curve = princeton_curve(errors)
        figures = float(hit.mean()), float(100.0 * errors.mean()), float(curve.mean())
        return ShapeEvaluation(name, errors, *figures, curve, covered_area, **more)

    if mirrored_truth is None:
        return summary(errors[known], hit[known])
    other, other_hit, other_known = _errors(matched, mirrored_truth, distances)
    both = known & other_known
    flipped = bool(both.any() and other[both].mean() < errors[both].mean())
    whole = summary(other[both], other_hit[both], flipped=True) if flipped else summary(errors[known], hit[known])
    errors = np.minimum(errors, np.where(other_known, other, np.inf))
    hit = hit | (other_hit & other_known)
    return summary(errors[known], hit[known], per_map=whole)


def princeton_curve(errors: ArrayLike, thresholds: ArrayLike = THRESHOLDS) -> FloatArray:
    """Fraction of errors that are at most each threshold.

    Parameters
    ----------
    errors : (n,) array
    thresholds : (t,) array

    Returns
    -------
    (t,) array
        In 0..1, ascending.

    Examples
    --------
    >>> princeton_curve([0.0, 0.1, 0.2, 0.5], thresholds=[0.0, 0.15, 0.3])
    array([0.25, 0.5 , 0.75])
    """
    ordered = np.sort(np.asarray(errors, dtype=float))
    return np.searchsorted(ordered, np.asarray(thresholds), side="right") / max(len(ordered), 1)


def mirrored(truth: ArrayLike, mirror: ArrayLike) -> NDArray[np.int64]:
    """Mirrored ground truth: mirror[truth], -1 where unknown.

    Parameters
    ----------
    truth : (n,) array
        Reference vertices, -1 where unknown.
    mirror : (m,) array
        The mirror image of each reference vertex, -1 where there is none.

    Returns
    -------
    (n,) int64 array
        Reference vertices, -1 where unknown.

    Examples
    --------
    >>> mirrored([0, -1, 2], mirror=[1, 0, 2])
    array([ 1, -1,  2])
    """
    known = np.asarray(truth, dtype=np.int64)
    return np.where(known >= 0, np.asarray(mirror, dtype=np.int64)[known], -1)


def coverage(query_to_reference: ArrayLike, reference: Surface) -> float:
    """Fraction of the reference's area that belongs to matched vertices.

    Parameters
    ----------
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.
    reference : Surface
        Mesh or cloud.

    Returns
    -------
    float
        In 0..1.

    Raises
    ------
    InputError
        Where the map holds anything but vertices of the reference.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> tetrahedron = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], float)
    >>> surface = surface_of(Mesh(tetrahedron, np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]], np.int32)))
    >>> round(coverage([0, 1, 1], surface), 6)
    0.5
    """
    matched_vertices = np.unique(checked_point_map(query_to_reference, len(reference.vertices)))
    return float(reference.vertex_areas[matched_vertices].sum() / reference.vertex_areas.sum())


def smoothness(query_to_reference: ArrayLike, query: Surface, reference: Surface) -> float:
    """Dirichlet energy of the map, 1 for an isometry; larger is rougher.

        E = sum_d g_d^T W g_d / (2 area of the reference),      g_d(x) = coordinate d of the matched vertex

    W is the stiffness matrix of the query. The energy of a smooth conformal map is twice the area that it covers.

    Parameters
    ----------
    query_to_reference : (n,) int array
        Reference vertex of each query vertex.
    query, reference : Surface
        Mesh or cloud.

    Returns
    -------
    float
        E.

    Raises
    ------
    InputError
        Where the map holds anything but one vertex of the reference for each vertex of the query.

    Examples
    --------
    >>> import numpy as np
    >>> from acnn.shapes.mesh import Mesh
    >>> from acnn.surface.surface import surface_of
    >>> tetrahedron = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    >>> surface = surface_of(Mesh(tetrahedron, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)))
    >>> round(smoothness(np.arange(4), surface, surface), 6)
    1.0
    """
    from acnn.surface.laplacian import stiffness

    matched = checked_point_map(query_to_reference, len(reference.vertices), size=len(query.vertices))
    positions = reference.vertices[matched]
    energy = float(np.einsum("nd,nd->", positions, stiffness(query) @ positions))
    return energy / (2.0 * float(reference.vertex_areas.sum()))


def _errors(
    matched: NDArray[np.integer], truth: Truth, distances: ReferenceDistances
) -> tuple[FloatArray, NDArray[np.bool_], NDArray[np.bool_]]:
    """(n,) errors, whether each is exact, and whether the ground truth is known; errors of unknown ones are 0."""
    faces = distances.surface.faces
    barycentric = isinstance(truth, BarycentricPoints)
    indices = np.asarray(truth.faces if isinstance(truth, BarycentricPoints) else truth)
    limit, what = (len(faces), "face") if barycentric else (len(distances.surface.vertices), "vertex")
    if indices.shape != matched.shape or not np.issubdtype(indices.dtype, np.integer):
        raise InputError(f"The ground truth has shape {indices.shape}, but {len(matched)} vertices were matched.")
    if len(indices) and indices.max() >= limit:
        raise InputError(
            f"The ground truth names {what} {indices.max()}, but the reference has {what} numbers 0 to {limit - 1} "
            "(0-based; .vts and .baryc_gt files are 1-based)."
        )
    known = indices >= 0
    errors, hit = np.zeros(len(matched)), np.zeros(len(matched), dtype=bool)
    if isinstance(truth, BarycentricPoints):
        weights = np.asarray(truth.weights, dtype=float)
        if weights.shape != (len(matched), 3) or not np.allclose(weights[known].sum(axis=1), 1.0, atol=1e-3):
            raise InputError("Barycentric weights must be (n, 3) and sum to 1 in every row.")
        points = BarycentricPoints(indices[known], weights[known])
        errors[known] = distances.to_points(matched[known], points)
        hit[known] = matched[known] == points.nearest_vertex(distances.surface.vertices, faces)
    else:
        errors[known] = distances.between(matched[known], indices[known])
        hit[known] = matched[known] == indices[known]
    return errors, hit, known
