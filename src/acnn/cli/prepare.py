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
    angles: Annotated[int, typer.Option(help="How many directions, spread over half a turn.")] = 16,
    alpha: Annotated[float, typer.Option(help="Anisotropy; 1 is isotropic.")] = 100.0,
    scales: Annotated[str, typer.Option(help="Times t at geodesic diameter 200.")] = "3,6,12,24",
    descriptors: Annotated[str, typer.Option(help="One or more of shot, hks, wks, rings, file.")] = "shot",
    radius: Annotated[str, typer.Option(help="One or more radii of SHOT, at geodesic diameter 200.")] = "12",
) -> None:
    """Compute patch operators and descriptors of all shapes of a dataset, and keep them."""
    from acnn.pipeline.prepare_report import prepare_dataset

    with out.progress("prepare") as step:
        facts, failures = prepare_dataset(
            data,
            samples=samples,
            patches={"angles": angles, "alpha": alpha, "scales": scales},
            descriptors={"kinds": descriptors, "shot_radii": radius},
            workers=workers,
            scheduler=scheduler,
            cache=out.cache,
            progress=step,
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
