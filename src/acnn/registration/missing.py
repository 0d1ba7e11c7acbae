"""Shapes without data at some vertices: completed by a low-rank model of the whole collection."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.registration.procrustes import align_shapes, apply_motions, fit_motions, weighted_mean

Array = NDArray[np.float64]

FRACTION = 0.99
"""Modes are added until the model explains this fraction of the variance, at most half the number of shapes."""

COARSE, FINE, ITERATIONS = 1e-4, 1e-6, 300
"""A mode is added when no shape moves by more than the first fraction of its size; completion ends at the second one,
or after so many iterations."""


def complete_shapes(shapes: Array, weights: Array, *, scale: bool = False) -> tuple[Array, Array]:
    """Align shapes and fill in vertices without data, by probabilistic principal component analysis.

    The model is y = mean + sum_k b_k mode_k with normal scores b_k and normal noise sigma at the coordinates. In turns,
    the modes are those of the completed shapes w x + (1 - w) y, and the scores of every shape are the most probable
    ones given its data, b = (B W B^T + sigma^2 Lambda^-1)^-1 B W (x - mean), for the modes B and their variances
    Lambda (Tipping and Bishop 1999; weights as in Srebro and Jaakkola 2003). The model grows mode by mode: with many
    modes from the start, each incomplete shape would get a mode of its own. Completed shapes are aligned in the same
    iterations: what a shape lacks does not tilt it.

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
    size, rank, most = np.sqrt((first.mean**2).sum() / len(first.mean)), 1, max(1, (len(shapes) - 1) // 2)
    for _ in range(ITERATIONS):
        estimate = _most_probable(observed, filled, weights, rank)
        new = w * observed + (1 - w) * estimate
        left = (w * (observed - estimate) ** 2).sum() / (w * (observed - filled.mean(axis=0)) ** 2).sum()
        motions = fit_motions(new, new.mean(axis=0), ones, scale=scale)
        if scale:  # the mean keeps its size
            factor = np.exp(-np.mean(np.log(scales * motions[1])))
            motions = motions[0], motions[1] * factor, motions[2] * factor
        change = np.sqrt(((new - filled) ** 2).sum(axis=2).mean(axis=1)).max() / size
        observed, filled = apply_motions(observed, *motions), apply_motions(new, *motions)
        scales = scales * motions[1]
        enough = left <= 1 - FRACTION or rank == most
        if change < FINE and enough:
            break
        if change < COARSE and not enough:
            rank += 1
    return filled - filled.mean(axis=(0, 1)), scales


def _most_probable(observed: Array, filled: Array, weights: Array, rank: int) -> Array:
    """Shapes of the model with the first `rank` modes of the completed shapes, given the data of each shape."""
    count = len(filled)
    mean = filled.mean(axis=0)
    flat = (filled - mean).reshape(count, -1)
    values, vectors = np.linalg.eigh(flat @ flat.T / (count - 1))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    variances = np.maximum(values[:rank], 1e-12 * values[0])
    basis = (vectors[:, :rank] / np.sqrt(variances * (count - 1))).T @ flat  # (rank, 3 n), orthonormal
    noise = values[rank:].sum() / max(mean.size - rank, 1)
    estimates = np.empty_like(flat)
    for number, (shape, own) in enumerate(zip(observed, weights, strict=True)):
        weighted = basis * np.repeat(own, 3)
        normal = weighted @ basis.T + np.diag(noise / variances)
        estimates[number] = np.linalg.solve(normal, weighted @ (shape - mean).ravel()) @ basis
    return mean + estimates.reshape(filled.shape)
