"""Pictures of kernels: the weights with which one vertex sees the others, by angle and scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from acnn.shapes import Mesh
from acnn.surface import exact_rows, principal_frames, stiffness_parts, surface_of
from acnn.viewer.pictures import grid, render


def draw_kernels(
    mesh: Mesh,
    vertex: int,
    angles: Sequence[float] = (0.0, 45.0, 90.0, 135.0),
    scales: Sequence[float] = (6.0, 24.0, 60.0),
    alpha: float = 25.0,
    **view: Any,
) -> Any:
    """(h, w, 3) picture: exact kernels of one vertex, a row for each scale, a column for each angle in degrees.

    Each kernel is drawn from 0 to its largest value; its long axis lies at the angle from the direction of the larger
    principal curvature, counter-clockwise seen from outside. Further arguments go to `render`.
    """
    surface = surface_of(mesh)
    parts = stiffness_parts(surface, principal_frames(surface))
    rows, labels = [], []
    for t in scales:
        images, texts = [], []
        for angle in angles:
            matrix = parts.matrix(alpha, np.radians(angle))
            density = exact_rows(matrix, surface.vertex_areas, t, np.array([vertex]))[0] / surface.vertex_areas
            images.append(render(mesh, values=density, vmin=0.0, vmax=float(density.max()), **view))
            texts.append(f"{angle:g} degrees, t = {t:g}")
        rows.append(images)
        labels.append(texts)
    return grid(rows, labels)
