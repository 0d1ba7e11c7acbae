"""`acnn evaluate`: how well a run matches shapes whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli.app import Output, command


@command
def evaluate(
    out: Output,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    data: Annotated[str | None, typer.Argument(metavar="[DATA]", help="Default: what it was trained on.")] = None,
    test: Annotated[str | None, typer.Option(metavar="LIST", help="E.g. 060-079.")] = None,
    refine: Annotated[str, typer.Option(metavar="none|fm|zoomout|pfm|auto")] = "none",
    workers: Annotated[int, typer.Option(help="Processes that prepare shapes.")] = 1,
) -> None:
    """Match shapes whose truth is known, and compare by the Princeton protocol."""
    from acnn.pipeline.evaluate_run import evaluate_run

    with out.progress() as progress:
        report, failures = evaluate_run(
            run, data, test_list=test, refinement=refine, workers=workers, progress=progress
        )
    for failure in failures:
        out.failed(failure.item, failure.why)
    out.result(report, human=report_text)


def report_text(report: dict[str, Any]) -> str:
    """A small table of a report."""
    rows = [("", "exact", "error x 100", "auc", "coverage")]
    parts = {"network": report, "symmetric": report.get("symmetric"), "refined": report.get("refined")}
    parts["refined, symmetric"] = (report.get("refined") or {}).get("symmetric")
    for name, part in parts.items():
        if part:
            figures = f"{part['mean_error_x100']:.2f}", f"{part['auc']:.3f}", f"{part['coverage']:.1%}"
            rows.append((name, f"{part['exact']:.1%}", *figures))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(
        [*lines, f"{len(report['shapes'])} shapes; errors over {report['normalisation']} of the reference"]
    )
