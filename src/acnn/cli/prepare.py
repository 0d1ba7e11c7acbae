"""`acnn prepare`: operators and descriptors of a whole dataset into the cache."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from acnn.cli.app import Output, command


@command
def prepare(
    out: Output,
    data: Annotated[str, typer.Argument(metavar="DATA", help="'humans', 'faust' or a folder of shapes.")],
    workers: Annotated[int, typer.Option(metavar="N", help="Processes; 1 uses all cores in one process.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Spread over the workers of a Dask scheduler.")
    ] = None,
    samples: Annotated[
        str | None, typer.Option(metavar="LIST", help="Only these: names or numbers, as in 000-059,065.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(metavar="P", help="Settings as 'acnn train --preset P' has them; those below still win."),
    ] = None,
    angles: Annotated[
        int | None, typer.Option(help="How many directions, spread over half a turn. Without a preset: 16.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Anisotropy; 1 is isotropic. Without a preset: 100.")] = None,
    scales: Annotated[
        str | None, typer.Option(help="Times t at geodesic diameter 200. Without a preset: 3,6,12,24.")
    ] = None,
    descriptors: Annotated[
        str | None, typer.Option(help="One or more of shot, hks, wks, valences, file. Without a preset: shot.")
    ] = None,
    radius: Annotated[
        str | None, typer.Option(help="One or more radii of SHOT, at geodesic diameter 200. Without a preset: 12.")
    ] = None,
) -> None:
    """Compute patch operators and descriptors of all shapes of a dataset, and keep them.

    Training finds them where the settings are the same: give the preset that it will be given.
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
    for failure in failures:
        out.failed(failure.item, failure.why)
    out.result(facts, human=_text)


def _text(facts: dict[str, Any]) -> str:
    lines = [
        f"{facts['data']}: {facts['prepared']} of {facts['shapes']} shapes prepared in {facts['seconds']:.1f} s, "
        f"{facts['from_cache']} of them from the cache",
        f"  cache  {facts['cache']}",
    ]
    return "\n".join(lines)
