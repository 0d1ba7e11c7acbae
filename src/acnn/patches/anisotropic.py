"""Anisotropic patch operators: heat kernels at several angles and scales around every vertex, and their accuracy."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.patches.operator import PatchOperator, PatchReport
from acnn.patches.settings import NEGLIGIBLE, SUFFICIENT, WIDE, Kernel, PatchSettings
from acnn.progress import Progress
from acnn.reports import Report
from acnn.shapes.mesh import Shape
from acnn.surface.curvature import principal_frames
from acnn.surface.heat import ExactKernels, HeatKernels, SpectralKernels, exact_rows, spectral_rows
from acnn.surface.heat_rational import MAX_RATIO, RationalKernels
from acnn.surface.heat_squaring import SquaringKernels
from acnn.surface.laplacian import stiffness_parts
from acnn.surface.sparse_rows import SparseRows, largest_entries, renormalise_and_round
from acnn.surface.spectra import sufficient_spectra
from acnn.surface.surface import Surface, surface_of
from acnn.types import FloatArray, IntArray

DEFAULT = PatchSettings()


@check_arguments
def build_patches(
    shape: Shape | Surface,
    settings: PatchSettings = DEFAULT,
    *,
    angles: int | None = None,
    alpha: float | None = None,
    scales: tuple[float, ...] | None = None,
    kernel: Kernel | None = None,
    keep: float | None = None,
    entries: int | None = None,
    eigenpairs: int | None = None,
    smoothing: float | None = None,
    unit: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    folder: Path | None = None,
) -> PatchOperator:
    """Compute the patch operator of a mesh or a point cloud.

    Parameters
    ----------
    shape : Mesh, PointCloud or Surface
        As `load` or `from_arrays` returns it, or a surface already in normalised units.
    settings : PatchSettings
        Angles, anisotropy, scales and the like.
    angles, alpha, scales, kernel, keep, entries, eigenpairs, smoothing
        Fields of `PatchSettings`, instead of those of `settings`.
    unit : float or None
        Length of one normalised unit in the shape's coordinates; None is the geodesic diameter of the shape / 200. A
        part or a scan of known scale takes the unit of the full shape.
    threads : int or None
        None is one per core.
    progress : Progress or None
        Called with (done, total).
    folder : Path or None
        For large shapes: a folder for files that hold the rows, which are then computed angle by angle. Memory holds
        those of one angle only.

    Raises
    ------
    InputError
        Where a setting is out of range, or a vertex has no neighbourhood.

    Examples
    --------
    >>> import acnn
    >>> operator = acnn.build_patches(acnn.builtin_human(), angles=2, scales=(4, 16))
    >>> operator.n, operator.settings.angles, operator.settings.scales
    (2500, 2, (4.0, 16.0))
    """
    given: dict[str, Any] = {
        "angles": angles,
        "alpha": alpha,
        "scales": scales,
        "kernel": kernel,
        "keep": keep,
        "entries": entries,
        "eigenpairs": eigenpairs,
        "smoothing": smoothing,
    }
    settings = replace(settings, **{name: value for name, value in given.items() if value is not None})
    began = time.perf_counter()
    surface = surface_of(shape, unit)
    frames = principal_frames(surface, settings.smoothing)
    n = len(surface.vertices)
    start: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
    vertices: IntArray = np.zeros(0, dtype=np.int32)
    values: NDArray[np.float16] = np.zeros(0, dtype=np.float16)
    mass_kept: FloatArray = np.ones((settings.angles, 0))
    wide, eigenvalues, eigenfunctions = wide_part(surface, frames, settings, threads)
    narrow = [i for i in range(len(settings.scales)) if i not in wide]
    if narrow:
        kernels = heat_kernels(surface, frames, settings)
        small = np.dtype(np.uint16 if n <= 65536 else np.int32)
        if folder is None:
            start, vertices, values, mass_kept = _stored_rows(
                kernels, settings, settings.thetas, narrow, threads, progress
            )
            vertices = vertices.astype(small)
        else:
            start, vertices, values, mass_kept = _rows_on_disk(
                kernels, settings, narrow, folder, small, threads, progress
            )
    report = PatchReport(
        vertices=n,
        angles=settings.angles,
        scales=list(settings.scales),
        kernel="+".join(dict.fromkeys(kernels_by_scale(settings, wide).values())),
        seconds=time.perf_counter() - began,
        nnz_per_row=len(values) / max(1, len(start) - 1),
        kernels_by_scale=kernels_by_scale(settings, wide),
        mass_kept=float(mass_kept.mean()) if narrow else 1.0,
        mass_kept_per_scale={f"{settings.scales[s]:g}": float(mass_kept[:, i].mean()) for i, s in enumerate(narrow)},
    )
    return PatchOperator(
        start,
        vertices,
        values,
        eigenvalues,
        eigenfunctions,
        surface.vertex_areas.astype(np.float32),
        surface.unit,
        settings,
        report,
        wide,
    )


def kernels_by_scale(settings: PatchSettings, wide: Sequence[int]) -> dict[str, str]:
    """Name of the kernel that serves each scale.

    Parameters
    ----------
    settings : PatchSettings
        Scales and kernel.
    wide : Sequence[int]
        Positions of the scales that eigenpairs serve.

    Returns
    -------
    dict[str, str]
        By scale.
    """
    other = "rational" if settings.kernel == "auto" else settings.kernel
    return {f"{t:g}": "eigenpairs" if i in wide else other for i, t in enumerate(settings.scales)}


def heat_kernels(surface: Surface, frames: FloatArray, settings: PatchSettings) -> HeatKernels:
    """The method that computes the narrow kernels.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud, in normalised units.
    frames : (m, 2, 3) array
        Orthonormal frame of every face, the direction of theta = 0 first.
    settings : PatchSettings
        Kernel and eigenpairs.

    Returns
    -------
    HeatKernels
    """
    if settings.kernel == "squaring":
        return SquaringKernels(surface, frames)
    if settings.kernel == "spectral":
        return SpectralKernels(surface, frames, settings.eigenpairs)
    return ExactKernels(surface, frames) if settings.kernel == "exact" else RationalKernels(surface, frames)


def narrow_rows(
    kernels: HeatKernels,
    settings: PatchSettings,
    thetas: Sequence[float] | FloatArray,
    scales: Sequence[int],
    keep: float,
    rows: IntArray | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> SparseRows:
    """Rows of narrow kernels, ordered by angle, then narrow scale, then row.

    Parameters
    ----------
    kernels : HeatKernels
        Of the surface.
    settings : PatchSettings
        Anisotropy and scales.
    thetas : Sequence[float] or array
        Angles.
    scales : Sequence[int]
        Positions of the narrow scales.
    keep : float
        Least fraction of sum |row| that the stored entries hold.
    rows : (r,) array or None
        Vertices whose rows are computed, ascending; None is all.
    threads : int or None
        None is one per core.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    SparseRows
    """
    times = [settings.scales[i] for i in scales]
    groups = [list(range(len(times)))]
    if isinstance(kernels, RationalKernels):
        groups = _groups(times, MAX_RATIO)
    parts = []
    for number, group in enumerate(groups):

        def report(done: int, total: int, number: int = number) -> None:
            if progress:
                progress(done + number * total, total * len(groups))

        chosen = [times[i] for i in group]
        parts.append(
            kernels.rows(settings.alpha, [*map(float, thetas)], chosen, keep, rows, threads=threads, progress=report)
        )
    if groups == [list(range(len(times)))]:
        return parts[0]
    return _interleaved(parts, groups, len(thetas), len(times))


def _stored_rows(
    kernels: HeatKernels,
    settings: PatchSettings,
    thetas: Sequence[float] | FloatArray,
    scales: Sequence[int],
    threads: int | None,
    progress: Progress | None,
) -> tuple[NDArray[np.int64], IntArray, NDArray[np.float16], FloatArray]:
    """Rows of narrow kernels as an operator stores them: start, vertices, values; and the mass kept."""
    sparse = narrow_rows(kernels, settings, thetas, scales, settings.keep, None, threads, progress)
    if settings.entries:
        sparse = largest_entries(sparse, settings.entries)
    values = renormalise_and_round(sparse.start, sparse.values, threads)
    return sparse.start, sparse.vertices, values, sparse.mass_kept


def _rows_on_disk(
    kernels: HeatKernels,
    settings: PatchSettings,
    scales: Sequence[int],
    folder: Path,
    small: np.dtype[Any],
    threads: int | None,
    progress: Progress | None,
) -> tuple[NDArray[np.int64], IntArray, NDArray[np.float16], FloatArray]:
    """`_stored_rows` of all angles, one after the other, with vertices and values in files of a folder."""
    starts, masses, used = [np.zeros(1, np.int64)], [], 0
    paths = folder / "vertices", folder / "values"
    with paths[0].open("wb") as to_vertices, paths[1].open("wb") as to_values:
        for angle, theta in enumerate(settings.thetas):

            def report(done: int, total: int, angle: int = angle) -> None:
                if progress:
                    progress(done + angle * total, total * settings.angles)

            start, vertices, values, mass_kept = _stored_rows(kernels, settings, [theta], scales, threads, report)
            vertices.astype(small).tofile(to_vertices)
            values.tofile(to_values)
            starts.append(used + start[1:])
            masses.append(mass_kept)
            used += int(start[-1])
    vertices, values = np.memmap(paths[0], small, "r"), np.memmap(paths[1], np.float16, "r")
    return np.concatenate(starts), vertices, values, np.concatenate(masses)


def wide_part(
    surface: Surface, frames: FloatArray, settings: PatchSettings, threads: int | None = None
) -> tuple[tuple[int, ...], NDArray[np.float32], NDArray[np.float32]]:
    """Eigenpairs of every angle, and the scales for which they suffice.

    Eigenpairs serve a scale t above `WIDE` where exp(-t lambda) has fallen to `SUFFICIENT` at the last pair of every
    angle. Pairs with exp(-t lambda) below `NEGLIGIBLE` at the smallest of these scales are dropped.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud, in normalised units.
    frames : (m, 2, 3) array
        Orthonormal frame of every face, the direction of theta = 0 first.
    settings : PatchSettings
        Angles, anisotropy, scales, kernel and the largest number of eigenpairs.
    threads : int or None
        None is one per core.

    Returns
    -------
    wide : tuple[int, ...]
        Positions of the scales that the eigenpairs serve; may be empty.
    eigenvalues : (angles, k) float32 array
    eigenfunctions : (angles, n, k) float32 array
        k = 0 where no scale is wide.
    """

    def wide_scales(last_eigenvalue: float) -> tuple[int, ...]:
        wide = [i for i, t in enumerate(settings.scales) if settings.kernel == "auto" and t > WIDE]
        return tuple(i for i in wide if np.exp(-settings.scales[i] * last_eigenvalue) <= SUFFICIENT)

    spectra = None
    if wide_scales(np.inf):
        spectra = sufficient_spectra(
            surface, frames, settings.spectra, lambda last: len(wide_scales(last)) > 0, threads
        )
    if spectra is None:
        none: NDArray[np.float32] = np.zeros((settings.angles, 0), np.float32)
        return (), none, np.zeros((settings.angles, len(surface.vertices), 0), np.float32)
    wide = wide_scales(float(spectra.eigenvalues[:, -1].min()))
    smallest = min(settings.scales[i] for i in wide)
    count = int((smallest * spectra.eigenvalues < np.log(1.0 / NEGLIGIBLE)).sum(axis=1).max())
    return (
        wide,
        spectra.eigenvalues[:, :count].astype(np.float32),
        spectra.eigenfunctions[:, :, :count].astype(np.float32),
    )


def _groups(times: list[float], ratio: float) -> list[list[int]]:
    """Positions of scales, grouped such that the largest of a group is at most `ratio` times the smallest."""
    groups: list[list[int]] = []
    for i in sorted(range(len(times)), key=lambda i: times[i]):
        if groups and times[i] <= ratio * times[groups[-1][0]]:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _interleaved(parts: list[SparseRows], groups: list[list[int]], angles: int, scales: int) -> SparseRows:
    """Rows of groups of scales, in the order of the scales."""
    position = {scale: (g, k) for g, group in enumerate(groups) for k, scale in enumerate(group)}
    rows = (len(parts[0].start) - 1) // (angles * len(groups[0]))
    lengths, vertices, values = [], [], []
    mass_kept = np.empty((angles, scales))
    for angle in range(angles):
        for scale in range(scales):
            g, k = position[scale]
            first = (angle * len(groups[g]) + k) * rows
            start = parts[g].start[first : first + rows + 1]
            lengths.append(np.diff(start))
            vertices.append(parts[g].vertices[start[0] : start[-1]])
            values.append(parts[g].values[start[0] : start[-1]])
            mass_kept[angle, scale] = parts[g].mass_kept[angle, k]
    joined = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return SparseRows(joined, np.concatenate(vertices), np.concatenate(values), mass_kept)


@dataclass(frozen=True, eq=False)
class KernelErrors(Report):
    """L1 errors of kernel rows against exact ones.

    Attributes
    ----------
    l1_error_median, l1_error_max : float
        Over all rows of all kernels.
    row_sum_error_max : float
        Largest deviation of the sum of a row from 1.
    l1_errors_by_scale : dict
        `kernel`, `median` and `max` of each scale.
    rows_checked : int
        Of each kernel.
    """

    l1_error_median: float
    l1_error_max: float
    row_sum_error_max: float
    l1_errors_by_scale: dict[str, dict[str, Any]]
    rows_checked: int


def check_kernels(
    surface: Surface,
    settings: PatchSettings,
    rows: int,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> KernelErrors:
    """L1 errors of kernel rows, before clipping and rounding, against exact ones.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud, in normalised units.
    settings : PatchSettings
        The kernels to check, at every angle and scale.
    rows : int
        Number of random rows of each kernel.
    seed : int
        Random seed.
    threads : int or None
        None is one per core.
    progress : Progress or None
        Called with (kernels done, total).

    Returns
    -------
    KernelErrors

    Examples
    --------
    >>> import acnn
    >>> from acnn.patches import check_kernels
    >>> surface = acnn.surface_of(acnn.builtin_human())
    >>> errors = check_kernels(surface, acnn.PatchSettings(angles=1, scales=(8.0,)), 3)
    >>> errors.rows_checked, errors.l1_error_max < 0.01
    (3, True)
    """
    n = len(surface.vertices)
    targets = np.sort(np.random.default_rng(seed).choice(n, min(rows, n), replace=False)).astype(np.int32)
    frames = principal_frames(surface, settings.smoothing)
    parts, mass = stiffness_parts(surface, frames), surface.vertex_areas
    wide, values, functions = wide_part(surface, frames, settings, threads)
    narrow = [i for i in range(len(settings.scales)) if i not in wide]
    sparse = None
    if narrow:
        narrow_kernels = heat_kernels(surface, frames, settings)
        sparse = narrow_rows(narrow_kernels, settings, settings.thetas, narrow, 1.0, targets, threads)
    kernels = [(a, s) for a in range(settings.angles) for s in range(len(settings.scales))]
    done = [0]

    def compare(kernel: tuple[int, int]) -> tuple[FloatArray, float]:
        angle, scale = kernel
        t = settings.scales[scale]
        exact = exact_rows(parts.matrix(settings.alpha, settings.thetas[angle]), mass, t, targets)
        if scale in narrow:
            assert sparse is not None
            first = (angle * len(narrow) + narrow.index(scale)) * len(targets)
            computed = sparse.dense(n, first, len(targets))
        else:
            computed = spectral_rows(values[angle].astype(float), functions[angle].astype(float), mass, t, targets)
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
    return KernelErrors(
        l1_error_median=float(np.median(errors)),
        l1_error_max=float(errors.max()),
        row_sum_error_max=max(error for _, error in results),
        l1_errors_by_scale=by_scale,
        rows_checked=len(targets),
    )
