"""`acnn register`: a template onto shapes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, counted, long_command
from acnn.cli._options import Force, Refine, Scheduler, methods, models


@long_command
def register(
    out: Output,
    template: Annotated[Path, typer.Argument(metavar="TEMPLATE", help="A mesh.")],
    shapes: Annotated[list[Path], typer.Argument(metavar="SHAPES...", help="Meshes, clouds, or folders of them.")],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder.")],
    landmarks: Annotated[
        Path | None, typer.Option(metavar="F", help="Vertices of the template, 'name index' per line, 0-based.")
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="auto|METHOD", help="As for 'acnn match'.", autocompletion=methods)
    ] = "auto",
    model: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|humans", help="Folder of a run, or the name of a pretrained model.", autocompletion=models
        ),
    ] = None,
    refine: Refine = "auto",
    workers: Annotated[int, typer.Option(metavar="N", help="Number of processes.")] = 1,
    scheduler: Scheduler = None,
    force: Force = False,
) -> None:
    """Register a template to shapes: each is written with the template's faces, texture and vertex order.

    Run the same again after an interruption: results that are complete are kept.
    """
    from acnn.runs.register import PAGE, register_files
    from acnn.viewer.register_page import write_register_page

    with out.progress("registering") as progress:
        report, failures = register_files(
            template,
            shapes,
            folder,
            landmarks=landmarks,
            method=method,
            model=model,
            refinement=refine,
            workers=workers,
            scheduler=scheduler,
            force=force,
            cache=out.cache,
            progress=progress,
        )
    page = write_register_page(report, failures, folder / PAGE)
    for item, why in failures:
        out.failed(item, why)
    out.result(replace(report, page=str(page)), human=_text)


def _text(facts: dict[str, Any]) -> str:
    before = f", {facts['kept']} of them before" if facts["kept"] else ""
    lines = [f"{facts['out']}: {counted(facts['registered'], 'shape')} registered{before}"]
    lines += [
        f"  {shape['name']}: {shape['verdict']}, {shape['with_data']:.0%} of the vertices have data"
        for shape in facts["shapes"]
    ]
    return "\n".join([*lines, f"{facts['page']}: images and numbers. Open it in a browser."])
