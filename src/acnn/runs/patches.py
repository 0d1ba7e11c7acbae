"""Patch operator of a shape file: computed, checked and written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acnn.errors import InputError
from acnn.files import check_outputs, make_folder
from acnn.patches.anisotropic import build_patches, check_kernels
from acnn.patches.operator import PatchReport
from acnn.patches.settings import PatchSettings, parse_scales
from acnn.progress import Progress, begin_stage
from acnn.runs.cost import ANNOUNCED, AREA, announce_reading, patches_cost, peak_memory_mb, reading_cost
from acnn.shapes.load import load
from acnn.surface.surface import surface_of
from acnn.training.cache_entries import cached_unit, patches_path, usable_cache, valid_patches, write_patches
from acnn.training.prepared import make_patches

LARGE = 20_000
"""Vertices from which an operator that is written to a file is computed angle by angle, in files beside it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PatchFileReport(PatchReport):
    """What `acnn patches --json` prints: figures of the construction, the file, and the check of the kernels.

    Attributes
    ----------
    shape : str
        The file of the shape.
    unit : float
        Unit of length in the coordinates of the shape.
    from_cache : bool
        Whether the operator had been computed before.
    peak_memory_mb : float
        Of this process.
    l1_error_median, l1_error_max : float or None
        Of the rows that were checked; None where none were.
    written_to : str or None
        The file of the operator.
    row_sum_error_max, l1_errors_by_scale, rows_checked
        Where rows were checked: see `KernelErrors`.
    """

    shape: str
    unit: float
    from_cache: bool
    peak_memory_mb: float
    l1_error_median: float | None
    l1_error_max: float | None
    written_to: str | None
    row_sum_error_max: float | None = None
    l1_errors_by_scale: dict[str, dict[str, Any]] | None = None
    rows_checked: int | None = None


def patches_of_file(
    path: Path,
    settings: dict[str, Any],
    *,
    unit: float | None = None,
    check: int = 0,
    out: Path | None = None,
    force: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
    announce: Callable[[str], object] | None = None,
) -> PatchFileReport:
    """Compute the patch operator of a shape file, optionally check and write it.

    Parameters
    ----------
    path : Path
        Shape file.
    settings : dict[str, Any]
        Fields of `PatchSettings`; scales may be text such as `3,6,12,24`.
    unit : float or None
        Unit of length in the coordinates of the shape; None is its geodesic diameter / 200.
    check : int
        Number of random rows of every kernel to compare with exact ones.
    out : Path or None
        Output file of the operator; None writes none.
    force : bool
        Overwrite an existing file, unless it is the input.
    cache : bool
        Whether to read the operator from the cache and write it there.
    progress : Progress or None
        Called with (done, total).
    announce : callable or None
        Called before the work with a sentence on what it takes, where that is much.

    Returns
    -------
    PatchFileReport

    Raises
    ------
    InputError
        For invalid settings, a file that cannot be read or must not be overwritten, or one whose operator would not
        fit into memory: before it is read where its size shows that.
    """
    if check < 0:
        raise InputError(f"--check {check}: give a number of rows of 0 or more.")
    chosen = PatchSettings(**{**settings, "scales": parse_scales(settings["scales"])})
    memory = announce_reading([path], announce, "made into patches")
    [expected] = reading_cost([path]).vertices
    if expected > ANNOUNCED:  # a sphere has four times the area of a human
        patches_cost(expected, chosen, area=4 * AREA, by_angle=out is not None).text(memory, path.name)
    begin_stage(progress, "reading")
    shape = load(path)
    if out is not None:
        check_outputs([out], inputs=[path], force=force)
    if len(shape.vertices) > LARGE:
        area = float(surface_of(shape, unit).vertex_areas.sum())
        words = patches_cost(len(shape.vertices), chosen, area=area, by_angle=out is not None).text(memory, path.name)
        if words and announce is not None:
            announce(words)
    known = False
    if cache:
        with usable_cache():
            unit, _ = cached_unit(shape, unit)
            known = valid_patches(patches_path(shape, chosen, unit)) is not None
    # A large operator is kept beside its file instead of in memory, and not in the cache, which it would fill.
    large = out is not None and not known and len(shape.vertices) > LARGE
    if out and large:
        make_folder(out)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".acnn-") if out and large else nullcontext() as folder:
        building = begin_stage(progress, "operator")
        if folder is None:
            operator = make_patches(shape, chosen, unit=unit, cache=cache, progress=building)
        else:
            operator = build_patches(shape, chosen, unit=unit, progress=building, folder=Path(folder))
        report = PatchFileReport(
            shape=str(path),
            **operator.report,
            unit=operator.unit,
            from_cache=known,
            peak_memory_mb=peak_memory_mb(),
            l1_error_median=None,
            l1_error_max=None,
            written_to=None if out is None else str(out),
        )
        if check:
            checking = begin_stage(progress, "checking")
            errors = check_kernels(surface_of(shape, operator.unit), chosen, check, progress=checking)
            report = replace(report, **errors)
        if out is not None:
            write_patches(operator, out)
        del operator  # it may be open in the folder, which some systems then do not remove
    return report
