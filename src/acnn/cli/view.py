"""`acnn view`: live viewer of shapes, matches, kernels and filters in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acnn.cli._commands import Output, command
from acnn.cli._options import Refine, Up, WorkingSize, models


@command
def view(
    out: Output,
    items: Annotated[
        list[Path],
        typer.Argument(metavar="SHAPE...|RUN|RESULT", help="Shape files, a run, or a folder that 'acnn match' wrote."),
    ],
    model: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Model that matches the shapes.", autocompletion=models)
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port; default: 8080, or the next free one.")] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; anyone who can reach it can see the shapes.")
    ] = "127.0.0.1",
    data: Annotated[
        str | None, typer.Option(metavar="DATA", help="For a run: dataset; default: the one it was trained on.")
    ] = None,
    test: Annotated[str | None, typer.Option(metavar="LIST", help="For a run: shapes to show.")] = None,
    shapes: Annotated[int, typer.Option(help="For a run: number of shapes if --test is not given.")] = 3,
    refine: Refine = "auto",
    working_size: WorkingSize = None,
    up: Up = "y",
) -> None:
    """View shapes in a browser: matches, probabilities, kernels, filters. Stop with Ctrl-C.

    Listens on this machine only (127.0.0.1) unless --host is given, rejects requests of other sites, and serves no
    files.
    """
    import time

    with out.progress() as progress:  # the imports alone take seconds
        from acnn.runs.view import collect_view
        from acnn.viewer.live import LiveViewer
        from acnn.viewer.live_guard import require_viser

        require_viser()  # fail before the long computation
        gathered, failures = collect_view(
            items,
            model,
            data=data,
            test_list=test,
            shapes=shapes,
            refinement=refine,
            working_size=working_size,
            cache=out.cache,
            progress=progress,
            announce=out.message,
        )
    for failure in failures:
        out.failed(failure.item, failure.why)
    viewer = LiveViewer(gathered, host=host, port=port, up=up)
    try:
        out.message(f"Open {viewer.address} in a browser. Press Ctrl-C to stop.")
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        out.result(
            {"address": viewer.address, "shapes": [shape.name for shape in gathered.shapes]},
            human=lambda facts: f"{facts['address']} is closed.",
        )
    finally:
        viewer.stop()
