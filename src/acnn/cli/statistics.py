"""`acnn statistics`: mean, modes, scores and groups of meshes in one topology."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, long_command
from acnn.cli._options import Force, Seed


@long_command
def statistics(
    out: Output,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Meshes with the same faces, as 'acnn register' writes.")
    ],
    target: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder, created if missing.")],
    groups: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Lines NAME,GROUP: compare the means of two groups.")
    ] = None,
    modes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of modes; default: 95 % of the variance, at most 10."),
    ] = None,
    scale: Annotated[bool, typer.Option("--scale", help="Remove differences of size, too.")] = False,
    permutations: Annotated[int, typer.Option(metavar="N", help="Random assignments of the group test.")] = 1999,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Compute how a collection of shapes varies: mean, principal modes, scores, and differences of two groups."""
    from acnn.runs.statistics import statistics_files

    with out.progress() as progress:
        facts, failures = statistics_files(
            folder,
            target,
            groups=groups,
            modes=modes,
            scale=scale,
            permutations=permutations,
            seed=seed,
            force=force,
            progress=progress,
        )
    out.result(facts, human=_text, failures=failures)


def _text(facts: dict[str, Any]) -> str:
    lines = [
        f"{facts['shapes']} shapes, {facts['vertices']} vertices: {facts['modes']} modes explain "
        f"{100 * facts['compactness'][-1]:.1f} % of the variance",
        f"  error of a shape left out  {facts['generalisation'][-1]:.4g}",
        f"  error of random shapes     {facts['specificity'][-1]:.4g}",
    ]
    if comparison := facts["groups"]:
        first, second = comparison["names"]
        lines.append(
            f"  {first} against {second}: p = {comparison['p_value']:.4g}; {comparison['significant_vertices']} "
            "vertices differ (p <= 0.05, corrected)"
        )
    lines += [f"  note: {notice}" for notice in facts["notices"]]
    lines.append(f"  open {facts['page']} in a browser")
    return "\n".join(lines)
