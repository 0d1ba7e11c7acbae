"""`acnn report`: HTML report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, long_command
from acnn.cli._options import Force, Refine, Workers, runs


@long_command
def report(
    out: Output,
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Run folder, or the folder of 'acnn demo'.", autocompletion=runs)
    ],
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="Dataset; default: the one it was trained on.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE.html", help="Output file; default: report.html in the run folder."),
    ] = None,
    test: Annotated[str | None, typer.Option(metavar="LIST", help="Shapes to show, e.g. 080,085,090.")] = None,
    shapes: Annotated[int, typer.Option(help="Number of shapes if --test is not given.")] = 6,
    refine: Refine = "auto",
    workers: Workers = 1,
    force: Force = False,
) -> None:
    """Match some test shapes and write them, with figures and settings, to one HTML file."""
    from acnn.runs.report import write_report_page

    with out.progress() as progress:
        page, failures = write_report_page(
            run,
            data,
            file,
            test_list=test,
            shapes=shapes,
            refinement=refine,
            workers=workers,
            force=force,
            progress=progress,
        )
    out.result(page, human=_text, failures=failures)


def _text(facts: dict[str, Any]) -> str:
    shapes = "1 shape" if len(facts["shapes"]) == 1 else f"{len(facts['shapes'])} shapes"
    return f"{facts['report']}: {shapes}, {facts['bytes'] / 1e6:.1f} MB. Open it in a browser."
