"""Statistics of shapes in one topology: mean, principal modes, scores, quality of the model, comparison of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.registration.groups import GroupComparison, compare_groups, group_names
from acnn.registration.missing import complete_shapes
from acnn.registration.procrustes import align_shapes
from acnn.shapes.mesh import Mesh

Array = NDArray[np.float64]

DEFAULT_FRACTION, DEFAULT_MODES = 0.95, 10
"""Without a number of modes: as many as explain this fraction of the variance, at most this many."""


@dataclass(frozen=True, eq=False)
class ShapeStatistics:
    """A linear model of shapes: mean + sum_k b_k sd_k mode_k, and how good it is.

    The distance of two shapes is the root mean square of the distances of their vertices, in the unit of the shapes.

    Attributes
    ----------
    aligned : (s, n, 3) array
        Shapes in the common frame; vertices without data are filled in by the model.
    weights : (s, n) array or None
        As given.
    scales : (s,) array
        Factors that alignment applied; all 1 unless `scale` was asked for.
    mean : (n, 3) array
        Mean shape, centred.
    modes : (k, n, 3) array
        Orthonormal principal modes, the one of largest variance first; their largest coordinate is positive.
    standard_deviations : (k,) array
        Along the modes.
    scores : (s, k) array
        Coordinates of the shapes along the modes, in standard deviations.
    explained_variance : (k,) array
        Fractions of the total variance.
    total_variance : float
        Sum of the variances along all modes, divided by the number of vertices.
    compactness : (k,) array
        Fraction of the variance that the first 1, 2, ..., k modes explain; larger is better.
    generalisation : (k,) array
        Mean distance of a shape to its best approximation by a model of the other shapes with as many modes
        (leave-one-out); smaller is better.
    specificity : (k,) array
        Mean distance of random shapes of the model to the nearest given shape; smaller is better.
    groups : GroupComparison or None
        Comparison of two groups, where groups were given.
    """

    aligned: Array
    weights: Array | None
    scales: Array
    mean: Array
    modes: Array
    standard_deviations: Array
    scores: Array
    explained_variance: Array
    total_variance: float
    compactness: Array
    generalisation: Array
    specificity: Array
    groups: GroupComparison | None = None

    def shape(self, scores: ArrayLike) -> Array:
        """Vertices of the model at scores of the first modes, in standard deviations.

        Parameters
        ----------
        scores : (m,) array
            At most k numbers; further modes are 0.

        Returns
        -------
        (n, 3) array
        """
        b = np.atleast_1d(np.asarray(scores, float))
        if b.ndim != 1 or len(b) > len(self.modes):
            raise InputError(f"Scores of shape {b.shape}: give at most {len(self.modes)} numbers, one for each mode.")
        vertices: Array = self.mean + np.tensordot(b * self.standard_deviations[: len(b)], self.modes[: len(b)], 1)
        return vertices

    def as_dict(self) -> dict[str, Any]:
        """Key figures for JSON: no arrays of vertices."""
        missing = 0.0 if self.weights is None else float(1 - self.weights.mean())
        return {
            "shapes": len(self.aligned),
            "vertices": len(self.mean),
            "modes": len(self.modes),
            "missing": missing,
            "standard_deviations": self.standard_deviations.tolist(),
            "explained_variance": self.explained_variance.tolist(),
            "total_variance": self.total_variance,
            "compactness": self.compactness.tolist(),
            "generalisation": self.generalisation.tolist(),
            "specificity": self.specificity.tolist(),
            "groups": None if self.groups is None else self.groups.as_dict(),
        }


@check_arguments
def shape_statistics(
    shapes: Sequence[Mesh] | Sequence[ArrayLike] | NDArray[Any],
    *,
    weights: ArrayLike | None = None,
    groups: Sequence[str | None] | None = None,
    modes: int | None = None,
    scale: bool = False,
    samples: int = 1000,
    permutations: int = 1999,
    seed: int = 0,
) -> ShapeStatistics:
    """Mean, principal modes and scores of shapes in one topology, after generalised Procrustes alignment.

    Where shapes lack data, they are completed by a low-rank model of all of them (`complete_shapes`). Leave-one-out
    errors are then taken over the vertices with data.

    Parameters
    ----------
    shapes : sequence of Mesh, or (s, n, 3) array
        At least three; vertex i is the same point on every shape, and meshes have the same faces.
    weights : (s, n) array or None
        Confidence in each vertex of each shape in 0..1, or whether it has data; coordinates of weight 0 are ignored.
    groups : sequence of str or None
        Group of each shape: the means of two groups are compared; None leaves a shape out of the comparison.
    modes : int or None
        Number of modes, at most s - 1; None takes those that explain 95 % of the variance, at most 10.
    scale : bool
        Remove differences of size, too.
    samples : int
        Random shapes for the specificity.
    permutations : int
        Random assignments for the comparison of groups.
    seed : int
        Random seed of both.

    Returns
    -------
    ShapeStatistics

    Raises
    ------
    InputError
        For fewer than three shapes, different topologies, coordinates that are not finite, or invalid arguments.

    Examples
    --------
    >>> import acnn
    >>> bones = acnn.make_family("bone", count=12, seed=0)
    >>> statistics = acnn.shape_statistics(bones.vertices, modes=3)
    >>> statistics.modes.shape == (3, len(bones.faces) // 2 + 2, 3)
    True
    >>> wide = statistics.shape([3.0])  # mean + 3 standard deviations of the first mode
    """
    points = _points(shapes)
    given = _weights(weights, points)
    if groups is not None:
        group_names(groups, len(points))
    if modes is not None and not 1 <= modes < len(points):
        raise InputError(f"{modes} modes of {len(points)} shapes: give 1 to {len(points) - 1}.")
    if samples < 1 or seed < 0:
        raise InputError(f"{samples} samples, seed {seed}: give at least 1 sample and a seed of 0 or more.")
    if given is None:
        alignment = align_shapes(points, scale=scale)
        aligned, scales = alignment.shapes, alignment.scales
    else:
        aligned, scales = complete_shapes(points, given, scale=scale)
    mean, directions, deviations = principal_modes(aligned)
    total = float((deviations**2).sum())
    if total <= (1e-9 * np.abs(mean).max()) ** 2 * mean.size:
        raise InputError("All shapes are the same after alignment: there is no variation to describe.")
    explained = deviations**2 / total
    if modes is None:
        modes = min(int(np.searchsorted(np.cumsum(explained), DEFAULT_FRACTION) + 1), DEFAULT_MODES, len(deviations))
    kept, sd = directions[:modes], deviations[:modes]
    flat = (aligned - mean).reshape(len(aligned), -1)
    raw = flat @ kept.reshape(modes, -1).T
    return ShapeStatistics(
        aligned,
        given,
        scales,
        mean,
        kept,
        sd,
        raw / np.maximum(sd, 1e-300),
        explained[:modes],
        total / len(mean),
        np.cumsum(explained)[:modes],
        generalisation(aligned, modes, given),
        specificity(aligned, modes, samples=samples, seed=seed),
        None
        if groups is None
        else compare_groups(aligned, groups, weights=given, permutations=permutations, seed=seed),
    )


def principal_modes(shapes: Array) -> tuple[Array, Array, Array]:
    """Mean, principal modes and standard deviations of aligned shapes.

    Parameters
    ----------
    shapes : (s, n, 3) array
        Aligned.

    Returns
    -------
    mean : (n, 3) array
    modes : (k, n, 3) array
        Orthonormal, k = min(s - 1, 3 n); of largest variance first, their largest coordinate positive.
    standard_deviations : (k,) array
        Square roots of the eigenvalues of the covariance matrix, which is divided by s - 1.
    """
    mean = shapes.mean(axis=0)
    _, singular, vt = np.linalg.svd((shapes - mean).reshape(len(shapes), -1), full_matrices=False)
    count = min(len(shapes) - 1, mean.size)  # the last singular value of centred shapes is 0
    modes = vt[:count]
    largest = np.abs(modes).argmax(axis=1)
    modes = modes * np.sign(modes[np.arange(count), largest])[:, None]
    return mean, modes.reshape(count, *mean.shape), singular[:count] / np.sqrt(len(shapes) - 1)


def generalisation(shapes: Array, modes: int, weights: Array | None = None) -> Array:
    """Leave-one-out error of models with 1, ..., `modes` modes (Davies 2002).

    Parameters
    ----------
    shapes : (s, n, 3) array
        Aligned.
    modes : int
        Largest number of modes. A model of the other shapes has s - 2 at most; more count as s - 2.
    weights : (s, n) array or None
        Where a shape has data: only there it is approximated and compared.

    Returns
    -------
    (modes,) array
        Mean over the shapes of the root mean square distance.
    """
    centre, directions, _ = principal_modes(shapes)
    frame = directions.reshape(len(directions), -1)  # in its coordinates distances are exact, and arrays small
    scores = (shapes - centre).reshape(len(shapes), -1) @ frame.T
    errors = np.empty((len(shapes), modes))
    for left in range(len(shapes)):
        others = np.delete(scores, left, axis=0)
        mean = others.mean(axis=0)
        basis = np.linalg.svd(others - mean, full_matrices=False)[2][: min(modes, len(shapes) - 2)]
        rest, w, total = scores[left] - mean, np.ones(len(frame)), float(len(centre))
        if weights is not None:
            basis, rest, w = basis @ frame, rest @ frame, np.repeat(weights[left], 3)
            total = weights[left].sum()
        normal, right = (basis * w) @ basis.T, (basis * w) @ rest
        for k in range(modes):
            m = min(k + 1, len(basis))
            b = np.linalg.lstsq(normal[:m, :m], right[:m], rcond=1e-10)[0]
            errors[left, k] = np.sqrt((w * (rest - b @ basis[:m]) ** 2).sum() / total)
    mean_errors: Array = errors.mean(axis=0)
    return mean_errors


def specificity(shapes: Array, modes: int, *, samples: int = 1000, seed: int = 0) -> Array:
    """Mean distance of random shapes of the model to the nearest given shape (Davies 2002).

    Scores are drawn from normal distributions with the standard deviations of the modes; the same numbers serve every
    number of modes. All distances are taken in the space of the modes, where they are exact.

    Parameters
    ----------
    shapes : (s, n, 3) array
        Aligned.
    modes : int
        Largest number of modes.
    samples : int
        Number of random shapes.
    seed : int
        Random seed.

    Returns
    -------
    (modes,) array
        For models with 1, ..., `modes` modes.
    """
    mean, directions, deviations = principal_modes(shapes)
    scores = (shapes - mean).reshape(len(shapes), -1) @ directions.reshape(len(directions), -1).T  # (s, k)
    drawn = np.random.default_rng(seed).standard_normal((samples, modes)) * deviations[:modes]
    squares = np.tile((scores**2).sum(axis=1), (samples, 1))  # of the distances to the mean, from which modes are taken
    result = np.empty(modes)
    for k in range(modes):
        squares += (drawn[:, k, None] - scores[:, k]) ** 2 - scores[:, k] ** 2
        result[k] = np.sqrt(np.maximum(squares.min(axis=1), 0.0) / len(mean)).mean()
    return result


def _points(shapes: Sequence[Mesh] | Sequence[ArrayLike] | NDArray[Any]) -> Array:
    """(s, n, 3) float64 vertices of the shapes, with everything checked that does not depend on weights."""
    if len(shapes) < 3:
        raise InputError(f"{len(shapes)} shapes: statistics need at least 3.")
    given: list[Any] = [Mesh.from_library(shape) or shape for shape in shapes]
    meshes = [shape for shape in given if isinstance(shape, Mesh)]
    for number, mesh in enumerate(meshes):
        if not np.array_equal(mesh.faces, meshes[0].faces):
            raise InputError(
                f"Shape {number} has other faces than shape 0. All shapes need one topology: register a template to "
                "them first (acnn register)."
            )
    try:
        rows = [np.asarray(shape.vertices if isinstance(shape, Mesh) else shape, np.float64) for shape in given]
    except (TypeError, ValueError) as error:
        raise InputError(f"The shapes cannot be read as arrays of numbers ({error}).") from error
    for number, row in enumerate(rows):
        if row.ndim != 2 or row.shape[1] != 3 or len(row) < 3:
            raise InputError(f"Shape {number} is an array of shape {row.shape}: (n, 3) vertices are needed.")
        if len(row) != len(rows[0]):
            raise InputError(
                f"Shape {number} has {len(row)} vertices, shape 0 has {len(rows[0])}. All shapes need one topology: "
                "register a template to them first (acnn register)."
            )
    return np.stack(rows)


def _weights(weights: ArrayLike | None, points: Array) -> Array | None:
    """Weights as checked float64 numbers, None where all are 1; sets coordinates of weight 0 to 0."""
    w = np.ones(points.shape[:2]) if weights is None else np.asarray(weights, np.float64)
    if w.shape != points.shape[:2]:
        raise InputError(f"Weights have shape {w.shape}: one for each vertex of each shape, {points.shape[:2]}.")
    if not (np.isfinite(w).all() and w.min() >= 0 and w.max() <= 1):
        raise InputError("Weights must be numbers in 0..1: 1 where a shape has data, 0 where it has none.")
    invalid = ~np.isfinite(points).all(axis=2) & (w > 0)
    if invalid.any():
        shape, vertex = np.argwhere(invalid)[0]
        raise InputError(
            f"Shape {shape}, vertex {vertex} is {points[shape, vertex]}; {invalid.sum()} vertices are not finite. Give "
            "such vertices the weight 0."
        )
    if (few := np.flatnonzero((w > 0).sum(axis=1) < 4)).size:
        raise InputError(f"Shape {few[0]} has data at fewer than 4 vertices: leave it out.")
    if (unseen := np.flatnonzero((w > 0).sum(axis=0) < 2)).size:
        raise InputError(
            f"{unseen.size} vertices, such as {unseen[0]}, have data in fewer than two shapes. Remove them from all "
            "shapes, or give them a positive weight."
        )
    points[w == 0] = 0.0
    return None if (w == 1).all() else w
