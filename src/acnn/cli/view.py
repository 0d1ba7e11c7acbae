"""`acnn view`: shapes, matches, kernels and filters in a browser, live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acnn.cli.app import Output, command


@command
def view(
    out: Output,
    items: Annotated[list[Path], typer.Argument(metavar="SHAPE...|RUN", help="Files of shapes, or a run's folder.")],
    model: Annotated[Path | None, typer.Option(metavar="RUN", help="A run that matches the shapes.")] = None,
    port: Annotated[int | None, typer.Option(help="Default: 8080, or the next that is free.")] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Other than 127.0.0.1, all who reach it can see the shapes.")
    ] = "127.0.0.1",
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="For a run: other data than it learned from.")
    ] = None,
    test: Annotated[str | None, typer.Option(metavar="LIST", help="For a run: shapes to show.")] = None,
    shapes: Annotated[int, typer.Option(help="For a run: how many to show where there is no list.")] = 3,
    refine: Annotated[str, typer.Option(metavar="none|fm|zoomout|pfm|auto")] = "auto",
    up: Annotated[str, typer.Option(metavar="x|y|z", help="The shapes' axis that points up.")] = "y",
) -> None:
    """Look at shapes in a browser: matches, probabilities, kernels, filters. Ends with Ctrl-C.

    Serves this machine only (127.0.0.1) unless told otherwise, answers no pages of other sites, and serves no files.
    """
    import time

    from acnn.runs.view import collect_view
    from acnn.viewer.live import LiveViewer
    from acnn.viewer.live_guard import require_viser

    require_viser()  # before the long work
    with out.progress() as progress:
        gathered, failures = collect_view(
            items,
            model,
            data=data,
            test_list=test,
            shapes=shapes,
            refinement=refine,
            cache=out.cache,
            progress=progress,
        )
    for failure in failures:
        out.failed(failure.item, failure.why)
    viewer = LiveViewer(gathered, host=host, port=port, up=up)
    try:
        out.say(f"Open {viewer.address} in a browser. Ctrl-C ends it.")
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        out.result(
            {"address": viewer.address, "shapes": [shape.name for shape in gathered.shapes]},
            human=lambda facts: f"{facts['address']} is closed.",
        )
    finally:
        viewer.stop()
