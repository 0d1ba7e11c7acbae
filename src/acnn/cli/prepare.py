"""`acnn prepare`: compute operators and descriptors of a dataset and cache them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, long_command
from acnn.cli._options import Scheduler, datasets, presets


@long_command
def prepare(
    out: Output,
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="'humans', 'faust' or a folder of shapes.", autocompletion=datasets),
    ],
    workers: Annotated[
        int, typer.Option(metavar="N", help="Number of processes; 1 uses all cores in one process.")
    ] = 1,
    scheduler: Scheduler = None,
    samples: Annotated[
        str | None, typer.Option(metavar="LIST", help="Only these shapes, by name or number: 000-059,065.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Use the settings of 'acnn train --preset P'; options below override them.",
            autocompletion=presets,
        ),
    ] = None,
    angles: Annotated[
        int | None, typer.Option(help="Number of directions, spread over half a turn. Without a preset: 16.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Anisotropy; 1 is isotropic. Without a preset: 100.")] = None,
    scales: Annotated[
        str | None, typer.Option(help="Diffusion times t, for a geodesic diameter of 200. Without a preset: 3,6,12,24.")
    ] = None,
    descriptors: Annotated[
        str | None, typer.Option(help="One or more of shot, hks, wks, valences, file. Without a preset: shot.")
    ] = None,
    radius: Annotated[
        str | None, typer.Option(help="One or more SHOT radii, for a geodesic diameter of 200. Without a preset: 12.")
    ] = None,
) -> None:
    """Compute patch operators and descriptors of all shapes of a dataset and cache them.

    Training reuses them if the settings agree: give the same preset.
    """
    from acnn.training.config import RunConfig, preset_config
    from acnn.training.prepare import prepare_dataset

    config = RunConfig() if preset is None else preset_config(preset)
    given = {"angles": angles, "alpha": alpha, "scales": scales}, {"kinds": descriptors, "shot_radii": radius}
    chosen = [{key: value for key, value in part.items() if value is not None} for part in given]
    with out.progress("preparing") as progress:
        facts, failures = prepare_dataset(
            data,
            samples=samples,
            patches=config.patches.as_dict() | chosen[0],
            descriptors=config.descriptors.as_dict() | chosen[1],
            workers=workers,
            scheduler=scheduler,
            cache=out.cache,
            progress=progress,
        )
    out.result(facts, human=_text, failures=failures)


def _text(facts: dict[str, Any]) -> str:
    lines = [
        f"{facts['data']}: {facts['prepared']} of {facts['shapes']} shapes prepared in {facts['seconds']:.1f} s, "
        f"{facts['from_cache']} of them from the cache",
        f"  cache  {facts['cache']}",
    ]
    return "\n".join(lines)
