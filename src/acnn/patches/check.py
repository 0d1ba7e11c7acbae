"""Comparing kernels with exact ones, row by row."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from acnn.patches.build import kernels_by_scale, narrow_rows, wide_pairs
from acnn.patches.settings import PatchSettings
from acnn.shapes.shape import FloatArray
from acnn.surface.curvature import principal_frames
from acnn.surface.heat import exact_rows, spectral_rows
from acnn.surface.laplacian import stiffness_parts
from acnn.surface.surface import Surface
from acnn.types import Progress


def check_kernels(
    surface: Surface,
    settings: PatchSettings,
    rows: int,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """L1 distance of computed kernel rows, before clipping or storing, from exact ones.

    Parameters
    - surface: mesh or cloud, in run units
    - settings: the kernels to check, every angle and scale of them
    - rows: how many random rows of each kernel

    Returns `l1_error_median`, `l1_error_max`, `row_sum_error_max`, and under `l1_errors_by_scale` kernel, median and
    largest error for each scale.
    """
    n = len(surface.vertices)
    chosen = np.sort(np.random.default_rng(seed).choice(n, min(rows, n), replace=False)).astype(np.int32)
    frames = principal_frames(surface, settings.smoothing)
    parts, mass = stiffness_parts(surface, frames), surface.vertex_areas
    wide, values, functions = wide_pairs(parts, mass, settings, threads)
    narrow = [i for i in range(len(settings.scales)) if i not in wide]
    found = narrow_rows(surface, frames, settings, narrow, 1.0, chosen, threads) if narrow else None
    kernels = [(a, s) for a in range(settings.angles) for s in range(len(settings.scales))]
    done = [0]

    def compare(kernel: tuple[int, int]) -> tuple[FloatArray, float]:
        angle, scale = kernel
        t = settings.scales[scale]
        exact = exact_rows(parts.matrix(settings.alpha, settings.thetas[angle]), mass, t, chosen)
        if scale in narrow:
            assert found is not None
            first = (angle * len(narrow) + narrow.index(scale)) * len(chosen)
            computed = found.dense(n, first, len(chosen))
        else:
            computed = spectral_rows(values[angle].astype(float), functions[angle].astype(float), mass, t, chosen)
        done[0] += 1
        if progress:
            progress(done[0], len(kernels))
        return np.abs(computed - exact).sum(axis=1), float(np.abs(computed.sum(axis=1) - 1.0).max())

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        results = list(pool.map(compare, kernels))
    errors = np.stack([error for error, _ in results]).reshape(settings.angles, len(settings.scales), -1)
    by_scale = {
        t: {"kernel": kernel, "median": float(np.median(errors[:, s])), "max": float(errors[:, s].max())}
        for s, (t, kernel) in enumerate(kernels_by_scale(settings, wide).items())
    }
    return {
        "l1_error_median": float(np.median(errors)),
        "l1_error_max": float(errors.max()),
        "row_sum_error_max": max(error for _, error in results),
        "l1_errors_by_scale": by_scale,
        "rows_checked": len(chosen),
    }
