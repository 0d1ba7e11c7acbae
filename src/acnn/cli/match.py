"""`acnn match`: the dense map of one shape to the reference, or to another shape."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli.app import Output, command


@command
def match(
    out: Output,
    a: Annotated[Path, typer.Argument(metavar="A", help="A mesh or point cloud.")],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the result goes.")],
    b: Annotated[Path | None, typer.Argument(metavar="[B]", help="Match A to this shape.")] = None,
    model: Annotated[Path | None, typer.Option(metavar="RUN", help="Folder of a run.")] = None,
    refine: Annotated[str, typer.Option(metavar="none|fm|zoomout|pfm|auto")] = "auto",
    unit: Annotated[float | None, typer.Option(help="Length of one run unit [default: diameter / 200].")] = None,
    barycentric: Annotated[bool, typer.Option("--barycentric", help="Points inside triangles, too.")] = False,
) -> None:
    """Match a shape to the reference of a run, or to another shape: through a run, or by descriptors without one."""
    from acnn.errors import InputError
    from acnn.pipeline.match import match_files, match_files_without_network

    if model is None and b is None:
        raise InputError("Give a second shape to match to, or the folder of a run with --model (see 'acnn demo').")
    with out.progress("matching") as progress:
        if model is None:
            assert b is not None
            facts = match_files_without_network(a, b, folder, unit=unit, barycentric=barycentric, progress=progress)
            out.result(facts, human=_text)
            return
        facts = match_files(
            a,
            b,
            model,
            folder,
            refinement=refine,
            unit=unit,
            barycentric=barycentric,
            cache=out.cache,
            progress=progress,
        )
    out.result(facts, human=_text)


def _text(facts: dict[str, Any]) -> str:
    used = facts["refinement"]["used"]
    return (
        f"{facts['map']}: {facts['vertices']} vertices, mean confidence {facts['mean_confidence']:.1%}, "
        f"refinement {used} ({facts['refinement']['why']})"
    )
