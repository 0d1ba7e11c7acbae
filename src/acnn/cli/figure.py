"""`acnn figure`: figures of a run or of several methods, rendered without a display."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, long_command
from acnn.cli._options import Force, Refine, Up, Workers, one_of
from acnn.cli._options import runs as completed_runs


@long_command
def figure(
    out: Output,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Run folder, or the folder of 'acnn demo'; for curve, comparison and partial also several, and names "
            "of methods for two shapes, such as bim.",
            autocompletion=completed_runs,
        ),
    ],
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="Kind of figure: transfer, errors, filters, curve, comparison or partial.",
            autocompletion=one_of("transfer", "errors", "filters", "curve", "comparison", "partial"),
        ),
    ],
    file: Annotated[Path, typer.Option("--out", metavar="F.png", help="Output image.")],
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="Dataset; default: the one it was trained on.")
    ] = None,
    test: Annotated[str | None, typer.Option(metavar="LIST", help="Shapes to render, e.g. 080,085,090.")] = None,
    shapes: Annotated[int, typer.Option(help="Number of shapes if --test is not given.")] = 4,
    refine: Refine = "auto",
    up: Up = "y",
    workers: Workers = 1,
    force: Force = False,
) -> None:
    """Render texture transfer, errors, learned filters or the error curve of a run, or those of several methods."""
    from acnn.runs.report import write_figure

    with out.progress() as progress:
        report, failures = write_figure(
            runs,
            kind,
            file,
            data=data,
            test_list=test,
            shapes=shapes,
            refinement=refine,
            up=up,
            workers=workers,
            force=force,
            progress=progress,
        )
    out.result(report, human=_text, failures=failures)


def _text(facts: dict[str, Any]) -> str:
    drawn = f": {', '.join(facts['shapes'])}" if "shapes" in facts else ""
    return f"{facts['figure']} ({facts['kind']}){drawn}"
