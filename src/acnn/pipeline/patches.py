"""From a file to its patch operator, checked and stored as asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acnn.array_files import full_disk
from acnn.cache import cache_folder
from acnn.errors import InputError
from acnn.files import check_outputs
from acnn.memory import peak_memory_mb
from acnn.patches import (
    PatchOperator,
    PatchSettings,
    build_patches,
    cached_patches,
    check_kernels,
    write_patches,
)
from acnn.patches.cache import cached_unit, patches_path, sound_patches
from acnn.shapes import Shape, load
from acnn.surface import surface_of
from acnn.types import Progress, begin_stage


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
    - path: the shape
    - settings: of `PatchSettings`; scales may be text such as `3,6,12,24`
    - unit: length of one run unit in the shape's coordinates; None is its own geodesic diameter / 200
    - check: how many random rows of every kernel to compare with exact ones
    - out: where to write the operator
    - force: overwrite a file that is there already, unless it is the shape
    - cache: whether to look in the cache and put the operator there
    - progress: called with (done, in all)

    Returns the facts that `acnn patches --json` prints.
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


def make_patches(
    shape: Shape, settings: PatchSettings, *, unit: float | None, cache: bool, progress: Progress | None = None
) -> PatchOperator:
    """The patch operator of a shape, through the cache (`cached_patches`) or not (`build_patches`).

    Raises InputError where the cache's folder cannot be used.
    """
    if not cache:
        return build_patches(shape, settings, unit=unit, progress=progress)
    with usable_cache():
        return cached_patches(shape, settings, unit=unit, progress=progress)


@contextmanager
def usable_cache() -> Iterator[None]:
    """Raise InputError with the name of the cache's folder where it cannot be used."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        if full_disk(error):
            raise
        raise InputError(
            f"{folder}: this cache folder cannot be used ({error.strerror}). Name another in the environment variable "
            "ACNN_CACHE, or use --no-cache."
        ) from error


def parse_scales(text: str) -> tuple[float, ...]:
    """Scales from text such as `3,6,12,24`."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"Scales '{text}': give numbers separated by commas, such as 3,6,12,24.") from None
