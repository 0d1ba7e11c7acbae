"""Shapes without data at some vertices: completed by a low-rank model of the whole collection."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.registration.procrustes import align_shapes, apply_motions, fit_motions, weighted_mean

Array = NDArray[np.float64]

FRACTION = 0.99
"""The model has as many modes as explain this fraction of the variance, at most half the number of shapes."""

TOLERANCE, ITERATIONS = 1e-6, 500
"""Completion ends when no shape moves by more than this fraction of its size, or after so many iterations."""


def complete_shapes(shapes: Array, weights: Array, *, scale: bool = False) -> tuple[Array, Array]:
    """Align shapes and fill in vertices without data, by iterative principal component analysis.

    Minimises sum_si w_si |x_si - y_si|^2 over shapes y of a linear model with few modes: every iteration fits the model
    to w x + (1 - w) y (weighted low-rank approximation, Srebro and Jaakkola 2003). Scores are shrunk by
    (lambda - sigma^2) / lambda, as in probabilistic principal component analysis, with sigma^2 the mean of the
    variances that the model leaves out, so that noise is not extrapolated. The completed shapes are aligned in the
    same iterations: what a shape lacks does not tilt it.

    Parameters
    ----------
    shapes : (s, n, 3) array
        Vertices; finite, also where there is no data.
    weights : (s, n) array
        In 0..1; every shape has data at several vertices, and every vertex in several shapes.
    scale : bool
        Also remove differences of size.

    Returns
    -------
    shapes : (s, n, 3) array
        Aligned and complete; as given (but for the motion) where the weight is 1.
    scales : (s,) array
        Factors that alignment applied.
    """
    first = align_shapes(shapes, weights, scale=scale)
    observed, scales = first.shapes, first.scales
    w, ones = weights[:, :, None], np.ones_like(weights)
    filled = w * observed + (1 - w) * weighted_mean(observed, weights)
    size, rank = np.sqrt((first.mean**2).sum() / len(first.mean)), 1
    for _ in range(ITERATIONS):
        estimate, rank = _low_rank(filled, rank)
        new = w * observed + (1 - w) * estimate
        motions = fit_motions(new, new.mean(axis=0), ones, scale=scale)
        if scale:  # the mean keeps its size
            factor = np.exp(-np.mean(np.log(scales * motions[1])))
            motions = motions[0], motions[1] * factor, motions[2] * factor
        change = np.sqrt(((new - filled) ** 2).sum(axis=2).mean(axis=1)).max()
        observed, filled = apply_motions(observed, *motions), apply_motions(new, *motions)
        scales = scales * motions[1]
        if change < TOLERANCE * size:
            break
    return filled - filled.mean(axis=(0, 1)), scales


def _low_rank(shapes: Array, rank: int) -> tuple[Array, int]:
    """Shrunk approximation of the shapes by a model with at least `rank` modes, and the number of modes used."""
    mean = shapes.mean(axis=0)
    flat = (shapes - mean).reshape(len(shapes), -1)
    values, vectors = np.linalg.eigh(flat @ flat.T)  # the modes themselves are not needed
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    fractions = np.cumsum(values) / max(values.sum(), 1e-300)
    rank = min(max(rank, int(np.searchsorted(fractions, FRACTION)) + 1), max(1, (len(shapes) - 1) // 2))
    noise = values[rank : len(shapes) - 1].mean() if rank < len(shapes) - 1 else 0.0
    shrunk = np.maximum(values[:rank] - noise, 0.0) / np.maximum(values[:rank], 1e-300)
    estimate = (vectors[:, :rank] * shrunk) @ (vectors[:, :rank].T @ flat)
    return mean + estimate.reshape(shapes.shape), rank
