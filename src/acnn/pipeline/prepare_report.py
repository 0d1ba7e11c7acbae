"""From a dataset's name and settings as text to a prepared dataset and what to tell of it."""

from __future__ import annotations

import time
from typing import Any

from acnn.cache import cache_folder
from acnn.datasets.opening import open_dataset
from acnn.descriptors.settings import DescriptorSettings
from acnn.errors import InputError
from acnn.patches.settings import PatchSettings
from acnn.pipeline.patches import parse_scales
from acnn.pipeline.prepare import Failure, prepare
from acnn.types import Progress


def prepare_dataset(
    data: str,
    *,
    samples: str | None = None,
    patches: dict[str, Any] | None = None,
    descriptors: dict[str, Any] | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> tuple[dict[str, Any], list[Failure]]:
    """Open a dataset and prepare it.

    - data, samples: as for `open_dataset` and `Dataset.select`
    - patches: of `PatchSettings`; scales may be text such as `3,6,12,24`
    - descriptors: of `DescriptorSettings`; kinds and shot_radii may be text such as `shot,wks` and `8,16`
    - workers, scheduler, progress: as for `prepare`

    Returns the facts that `acnn prepare --json` prints, and the failures.
    """
    if not cache:
        raise InputError(
            "Preparing fills the cache, so --no-cache leaves nothing to do. Set ACNN_CACHE to use another."
        )
    began = time.perf_counter()
    chosen, described = dict(patches or {}), dict(descriptors or {})
    if isinstance(chosen.get("scales"), str):
        chosen["scales"] = parse_scales(chosen["scales"])
    if isinstance(described.get("kinds"), str):
        described["kinds"] = tuple(kind.strip() for kind in described["kinds"].split(","))
    if isinstance(described.get("shot_radii"), str):
        described["shot_radii"] = _radii(described["shot_radii"])
    settings = DescriptorSettings(**described), PatchSettings(**chosen)
    dataset = open_dataset(data)
    dataset = dataset if samples is None else dataset.select(samples)
    done, failures = prepare(dataset, *settings, workers=workers, scheduler=scheduler, progress=progress)
    return {
        "data": data,
        "shapes": len(dataset),
        "prepared": len(done),
        "from_cache": sum(item.from_cache for item in done),
        "seconds": time.perf_counter() - began,
        "cache": str(cache_folder()),
        "patches": settings[1].as_dict(),
        "descriptors": settings[0].as_dict(),
    }, failures


def _radii(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"Radius '{text}': give one or more numbers separated by commas, such as 12 or 8,16."
        ) from None
