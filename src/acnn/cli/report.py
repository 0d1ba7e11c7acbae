"""`acnn report`: HTML report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Force, Output, long_command
from acnn.cli._completion import refinements, runs


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
    refine: Annotated[
        str, typer.Option(metavar="none|fm|zoomout|pfm|auto", help="How maps are refined.", autocompletion=refinements)
    ] = "auto",
    workers: Annotated[int, typer.Option(help="Number of processes that prepare shapes.")] = 1,
    force: Force = False,
) -> None:
    """Match some test shapes and write them, with figures and settings, to one HTML file."""
    from acnn.errors import InputError
    from acnn.files import check_outputs, make_folder
    from acnn.methods.run import inputs_of_run
    from acnn.progress import begin_stage
    from acnn.runs.report import collect_report
    from acnn.viewer.report import is_report, write_report

    target = file if file is not None else run / "report.html"
    if file is None and not run.is_dir():
        raise InputError(f"{run}: no such folder. Give a run folder, or an output file with --out.")
    earlier = [target] if is_report(target) else []
    check_outputs([target], inputs=inputs_of_run(run, data), earlier=earlier, force=force)
    with out.progress() as progress:
        gathered, failures = collect_report(
            run,
            data,
            test_list=test,
            shapes=shapes,
            refinement=refine,
            workers=workers,
            progress=progress,
        )
        begin_stage(progress, "rendering")
        make_folder(target)
        write_report(gathered, target)
    figures = gathered.figures
    facts = {
        "report": str(target),
        "bytes": target.stat().st_size,
        "shapes": [shape.name for shape in gathered.shapes],
        "exact": figures["exact"],
        "mean_error_x100": figures["mean_error_x100"],
    }
    out.result(facts, human=_text, failures=failures)


def _text(facts: dict[str, Any]) -> str:
    shapes = "1 shape" if len(facts["shapes"]) == 1 else f"{len(facts['shapes'])} shapes"
    return f"{facts['report']}: {shapes}, {facts['bytes'] / 1e6:.1f} MB. Open it in a browser."
