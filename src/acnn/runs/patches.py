"""Patch operator of a shape file: computed, checked and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acnn.errors import InputError
from acnn.files import check_outputs
from acnn.patches.anisotropic import check_kernels
from acnn.patches.settings import PatchSettings, parse_scales
from acnn.progress import Progress, begin_stage
from acnn.runs.cost import peak_memory_mb
from acnn.shapes.load import load
from acnn.surface.surface import surface_of
from acnn.training.prepared import (
    cached_unit,
    make_patches,
    patches_path,
    sound_patches,
    usable_cache,
    write_patches,
)


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
) -> dict[str, Any]:
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

    Returns
    -------
    dict[str, Any]
        The facts that `acnn patches --json` prints.

    Raises
    ------
    InputError
        For invalid settings, or a file that cannot be read or must not be overwritten.
    """
    if check < 0:
        raise InputError(f"--check {check}: give a number of rows of 0 or more.")
    chosen = PatchSettings(**{**settings, "scales": parse_scales(settings["scales"])})
    begin_stage(progress, "reading")
    shape = load(path)
    if out is not None:
        check_outputs([out], inputs=[path], force=force)
    known = False
    if cache:
        with usable_cache():
            unit, _ = cached_unit(shape, unit)
            known = sound_patches(patches_path(shape, chosen, unit)) is not None
    operator = make_patches(shape, chosen, unit=unit, cache=cache, progress=begin_stage(progress, "operator"))
    memory = peak_memory_mb()
    facts: dict[str, Any] = {
        "shape": str(path),
        **operator.facts,
        "unit": operator.unit,
        "from_cache": known,
        "peak_memory_mb": memory,
        "l1_error_median": None,
        "l1_error_max": None,
        "written_to": None,
    }
    if check:
        checking = begin_stage(progress, "checking")
        facts |= check_kernels(surface_of(shape, operator.unit), chosen, check, progress=checking)
    if out is not None:
        write_patches(operator, out)
        facts["written_to"] = str(out)
    return facts
