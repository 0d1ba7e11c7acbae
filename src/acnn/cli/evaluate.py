"""`acnn evaluate`: errors of a run on shapes with known ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._completion import datasets, refinements, runs
from acnn.cli.app import Output, command


@command
def evaluate(
    out: Output,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.", autocompletion=runs)],
    data: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="Dataset; default: the one it was trained on.", autocompletion=datasets),
    ] = None,
    test: Annotated[str | None, typer.Option(metavar="LIST", help="Test shapes, e.g. 060-079.")] = None,
    refine: Annotated[
        str,
        typer.Option(
            metavar="none|fm|zoomout|pfm|auto",
            help="Refinement, reported under 'refined'.",
            autocompletion=refinements,
        ),
    ] = "auto",
    reestimate: Annotated[
        bool, typer.Option("--reestimate", help="Batch statistics of each query, not of the training shapes.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Number of processes that prepare shapes.")] = 1,
) -> None:
    """Match shapes with known ground truth and measure the errors by the Princeton protocol."""
    from acnn.runs.evaluate import evaluate_run

    with out.progress() as progress:
        report, failures = evaluate_run(
            run,
            data,
            test_list=test,
            refinement=refine,
            reestimate=reestimate,
            workers=workers,
            progress=progress,
        )
    for failure in failures:
        out.failed(failure.item, failure.why)
    out.result(report, human=report_text)


def report_text(report: dict[str, Any]) -> str:
    """Format a report as a small table."""
    rows = [("", "exact", "error x 100", "auc", "coverage")]
    for name, part in (("network", report), ("refined", report.get("refined") or {})):
        symmetric = part.get("symmetric") or {}
        parts = {name: part, f"{name}, symmetric": symmetric, f"{name}, symmetric per map": symmetric.get("per_map")}
        for label, figures in parts.items():
            if figures:
                covered = f"{figures['coverage']:.1%}" if "coverage" in figures else ""
                error, auc = f"{figures['mean_error_x100']:.2f}", f"{figures['auc']:.3f}"
                rows.append((label, f"{figures['exact']:.1%}", error, auc, covered))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.append(f"{len(report['shapes'])} shapes; errors divided by {report['normalisation']} of the reference")
    if "symmetric" in report:
        lines.append(
            "symmetric: each vertex may match its true point or the mirrored one, so left and right may mix; per map: "
            "one of the two for the whole map"
        )
    return "\n".join([*lines, *_seen(report)])


def _seen(report: dict[str, Any]) -> list[str]:
    """Warnings about test shapes that were used in training or validation."""
    warnings = []
    for key, words in (("seen_in_training", "trained on"), ("seen_in_validation", "validated on")):
        names = report.get(key)
        if names == "unknown":
            warnings.append(
                f"note: the shapes the network was {words} were not recorded; the test shapes may be among them"
            )
        elif names:
            listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            warnings.append(
                f"warning: the network was {words} {len(names)} of these {len(report['shapes'])} shapes ({listed}): "
                "the figures do not apply to new shapes"
            )
    return warnings
