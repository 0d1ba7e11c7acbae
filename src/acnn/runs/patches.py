"""From a file to its patch operator, checked and stored as asked."""

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
    """Compute, check and write the patch operator of a shape in a file.

    Parameters
    ----------
    path : Path
        The shape.
    settings : dict[str, Any]
        Of `PatchSettings`; scales may be text such as `3,6,12,24`.
    unit : float or None
        Length of one run unit in the shape's coordinates; None is its own geodesic diameter / 200.
    check : int
        How many random rows of every kernel to compare with exact ones.
    out : Path or None
        Where to write the operator.
    force : bool
        Overwrite a file that is there already, unless it is the shape.
    cache : bool
        Whether to look in the cache and put the operator there.
    progress : Progress or None
        Called with (done, in all).

    Returns
    -------
    dict[str, Any]
        The facts that `acnn patches --json` prints.
    """
    if check < 0:
        raise InputError(f"--check {check}: give the number of rows to compare, or leave it out.")
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
