"""Generalised Procrustes alignment of shapes in one topology, with weights for vertices without data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TOLERANCE = 1e-10
"""The alignment has converged once the mean moves by less than this fraction of its size."""

ITERATIONS = 200
"""Largest number of iterations; clean shapes need about ten."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """Shapes in a common frame, `aligned = scale * rotation @ x + translation`.

    Attributes
    ----------
    shapes : (s, n, 3) array
        Aligned vertices.
    mean : (n, 3) array
        Their weighted mean, with its centroid at the origin.
    rotations : (s, 3, 3) array
        Proper rotations.
    scales : (s,) array
        Factors; all 1 for a rigid alignment.
    translations : (s, 3) array
        Added after rotation and scaling.
    iterations : int
        Number of iterations.
    """

    shapes: Array
    mean: Array
    rotations: Array
    scales: Array
    translations: Array
    iterations: int

    def as_dict(self) -> dict[str, Any]:
        """Scales and number of iterations, for JSON."""
        return {"scales": self.scales.tolist(), "iterations": self.iterations}


def align_shapes(shapes: Array, weights: Array | None = None, *, scale: bool = False) -> Alignment:
    """Align shapes to their common mean (generalised Procrustes analysis, Gower 1975).

    Minimises sum_s sum_i w_si |c_s R_s x_si + t_s - m_i|^2 in turns over the motions and the mean m. With `scale`, the
    factor c_s makes the difference from the mean orthogonal to the mean (coordinates in the tangent space of shapes of
    equal size), and the mean keeps the average size of the shapes; least squares would shrink them. The frame is that
    of the first shape, centred.

    Parameters
    ----------
    shapes : (s, n, 3) array
        Vertices; vertex i is the same point on every shape.
    weights : (s, n) array or None
        In 0..1, 0 where a shape has no data; None is 1 everywhere.
    scale : bool
        Also remove differences of size.

    Returns
    -------
    Alignment
    """
    count, size = len(shapes), shapes.shape[1]
    w = np.ones((count, size)) if weights is None else weights
    motions = np.tile(np.eye(3), (count, 1, 1)), np.ones(count), np.zeros((count, 3))
    mean = shapes[np.argmax(w.sum(axis=1))].copy()  # the shape with the most data, for the first iteration
    iterations, change = 0, np.inf
    while change > TOLERANCE * np.linalg.norm(mean - mean.mean(axis=0)) and iterations < ITERATIONS:
        motions = fit_motions(shapes, mean, w, scale=scale)
        new = weighted_mean(apply_motions(shapes, *motions), w)
        if scale:
            new *= np.exp(-np.mean(np.log(motions[1])))
        change, mean, iterations = float(np.linalg.norm(new - mean)), new, iterations + 1
    # back to the frame of the first shape, with the centroid of the mean at the origin
    turn = motions[0][0].T
    rotations = turn @ motions[0]
    centre = mean.mean(axis=0)
    translations = (motions[2] - centre) @ turn.T
    aligned = apply_motions(shapes, rotations, motions[1], translations)
    return Alignment(aligned, (mean - centre) @ turn.T, rotations, motions[1], translations, iterations)


def fit_motions(shapes: Array, target: Array, weights: Array, *, scale: bool = False) -> tuple[Array, Array, Array]:
    """Rigid motions, or similarities, that bring each shape to a target in the weighted least squares sense.

    Parameters
    ----------
    shapes : (s, n, 3) array
        Vertices.
    target : (n, 3) or (s, n, 3) array
        Where they go.
    weights : (s, n) array
        Of the vertices; some of each shape must be positive.
    scale : bool
        Also fit a factor: then shape minus target is orthogonal to the target.

    Returns
    -------
    rotations : (s, 3, 3) array
    scales : (s,) array
    translations : (s, 3) array
    """
    w = weights[:, :, None] / weights.sum(axis=1)[:, None, None]
    target = np.broadcast_to(target, shapes.shape)
    here, there = (w * shapes).sum(axis=1), (w * target).sum(axis=1)
    x, y = shapes - here[:, None], target - there[:, None]
    u, singular, vt = np.linalg.svd(np.einsum("sni,snj->sij", w * y, x))
    signs = np.sign(np.linalg.det(u @ vt))
    u[:, :, 2] *= signs[:, None]
    singular[:, 2] *= signs
    rotations = u @ vt
    scales = np.ones(len(shapes))
    if scale:
        scales = (w * y * y).sum(axis=(1, 2)) / singular.sum(axis=1)
    return rotations, scales, there - scales[:, None] * np.einsum("sij,sj->si", rotations, here)


def apply_motions(shapes: Array, rotations: Array, scales: Array, translations: Array) -> Array:
    """Return `scale * rotation @ x + translation` for every shape."""
    moved: Array = scales[:, None, None] * (shapes @ rotations.transpose(0, 2, 1)) + translations[:, None]
    return moved


def weighted_mean(shapes: Array, weights: Array) -> Array:
    """Mean over the shapes at each vertex."""
    mean: Array = np.einsum("sn,sni->ni", weights / weights.sum(axis=0), shapes)
    return mean
