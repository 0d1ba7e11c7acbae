"""The loss where the true point lies inside a triangle of the reference."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from acnn.shapes.mesh import BarycentricPoints


def soft_cross_entropy(
    logits: torch.Tensor,
    truth: BarycentricPoints,
    faces: NDArray[np.integer],
    rows: NDArray[np.integer],
    label_smoothing: float = 0.0,
) -> torch.Tensor:
    """Cross-entropy with a target spread over the corners of the face that holds the true point, by its weights.

    Parameters
    ----------
    logits : (r, classes) tensor
        Of the vertices `rows` (r,).
    faces : (m, 3) array
        Of the reference.
    label_smoothing : float
        Share of the target spread over all classes.
    """
    corners = torch.from_numpy(np.asarray(faces)[truth.faces[rows]].astype(np.int64))
    weights = torch.from_numpy(truth.weights[rows]).to(logits.dtype)
    logs = torch.log_softmax(logits, dim=1)
    placed = (weights * logs.gather(1, corners)).sum(dim=1).mean()
    return -(1 - label_smoothing) * placed - label_smoothing * logs.mean()
