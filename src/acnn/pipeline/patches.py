"""From a file to its patch operator, checked and stored as asked."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

from acnn.errors import InputError
from acnn.patches import PatchSettings, build_patches, cached_patches, check_kernels, write_patches
from acnn.patches.cache import cache_folder, patch_key
from acnn.shapes import load
from acnn.surface import surface_of
from acnn.surface.rows import Progress


def patches_of_file(
    path: Path,
    settings: dict[str, Any],
    *,
    unit: float | None = None,
    check: int = 0,
    out: Path | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compute, check and write the patch operator of a shape in a file.

    Parameters
    - path: the shape
    - settings: of `PatchSettings`; scales may be text such as `3,6,12,24`
    - unit: length of one run unit in the shape's coordinates; None is its own geodesic diameter / 200
    - check: how many random rows of every kernel to compare with exact ones
    - out: where to write the operator
    - cache: whether to look in the cache and put the operator there
    - progress: called with (done, in all)

    Returns the facts that `acnn patches --json` prints.
    """
    if check < 0:
        raise InputError(f"--check {check}: give the number of rows to compare, or leave it out.")
    chosen = PatchSettings(**{**settings, "scales": parse_scales(settings["scales"])})
    shape = load(path)
    key = patch_key(shape, chosen, unit)
    known = cache and (cache_folder() / f"patches-{key}.safetensors").exists()
    make = cached_patches if cache else build_patches
    operator = make(shape, chosen, unit=unit, progress=progress)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1 << 20)
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
        facts |= check_kernels(surface_of(shape, operator.unit), chosen, check, progress=progress)
    if out is not None:
        write_patches(operator, out)
        facts["written_to"] = str(out)
    return facts


def parse_scales(text: str) -> tuple[float, ...]:
    """Scales from text such as `3,6,12,24`."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"Scales '{text}': give numbers separated by commas, such as 3,6,12,24.") from None
