"""`acnn figure`: pictures of a run, drawn without a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli.app import Force, Output, command


@command
def figure(
    out: Output,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or of 'acnn demo'.")],
    kind: Annotated[str, typer.Argument(metavar="KIND", help="transfer, errors, filters or curve.")],
    file: Annotated[Path, typer.Option("--out", metavar="F.png", help="The picture.")],
    data: Annotated[str | None, typer.Option(metavar="DATA", help="Default: what it was trained on.")] = None,
    test: Annotated[str | None, typer.Option(metavar="LIST", help="Shapes to draw, e.g. 080,085,090.")] = None,
    shapes: Annotated[int, typer.Option(help="How many to draw where there is no list.")] = 4,
    refine: Annotated[str, typer.Option(metavar="none|fm|zoomout|pfm|auto")] = "auto",
    up: Annotated[str, typer.Option(metavar="x|y|z", help="The shapes' axis that points up.")] = "y",
    workers: Annotated[int, typer.Option(help="Processes that prepare shapes.")] = 1,
    force: Force = False,
) -> None:
    """Draw texture transfer, errors, learnt filters or the Princeton curve of a run."""
    from acnn.runs.report import write_figure

    with out.progress() as progress:
        facts, failures = write_figure(
            run,
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
    for failure in failures:
        out.failed(failure.item, failure.why)
    out.result(facts, human=_text)


def _text(facts: dict[str, Any]) -> str:
    drawn = f": {', '.join(facts['shapes'])}" if "shapes" in facts else ""
    return f"{facts['figure']} ({facts['kind']}){drawn}"
