"""`acnn evaluate`: errors of a run on shapes with known ground truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, counted, long_command
from acnn.cli._options import Workers, WorkingSize, datasets, methods, models, one_of, refinements
from acnn.errors import InputError


@long_command
def evaluate(
    out: Output,
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Run folder; with --pairs it may be left out.", autocompletion=models),
    ],
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="Dataset; default: the one it was trained on.", autocompletion=datasets),
    ] = None,
    test: Annotated[str | None, typer.Option(metavar="LIST", help="Test shapes, e.g. 060-079.")] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            metavar="[all|N|FILE]",
            help="Match pairs of shapes of DATA: all, N drawn at random, or the names of A and B on each line of FILE.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="auto|METHOD",
            help="With --pairs: as for 'acnn match'; descriptors need no RUN.",
            autocompletion=methods,
        ),
    ] = "auto",
    refine: Annotated[
        str,
        typer.Option(
            metavar="none|fm|zoomout|pfm|auto",
            help="Refinement, reported under 'refined'.",
            autocompletion=refinements,
        ),
    ] = "auto",
    rotate: Annotated[
        int | None, typer.Option(metavar="[SEED]", help="With --pairs: rotate each shape at random.")
    ] = None,
    as_they_are: Annotated[
        bool, typer.Option("--no-remesh", help="With --pairs: leave shapes of one connectivity as they are.")
    ] = False,
    geodesics: Annotated[
        str,
        typer.Option(
            metavar="graph|exact",
            help="With --pairs: distances of errors; exact ones are slow.",
            autocompletion=one_of("graph", "exact"),
        ),
    ] = "graph",
    results: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="With --pairs: a JSON line per pair; can be resumed.")
    ] = None,
    reestimate: Annotated[
        bool, typer.Option("--reestimate", help="Batch statistics of each query, not of the training shapes.")
    ] = False,
    working_size: WorkingSize = None,
    workers: Workers = 1,
) -> None:
    """Match shapes with known ground truth and measure the errors by the Princeton protocol.

    Of a segmentation: the fraction of the area that is labelled right, and intersection over union of every class.

    Shapes are matched to the reference of a run or, with --pairs, to each other: 'acnn evaluate scape --pairs'.
    """
    report: Mapping[str, Any]
    if pairs is None:
        _check_unused(method, rotate, as_they_are, geodesics, results)
        from acnn.runs.evaluate import evaluate_run

        with out.progress() as progress:
            report, failures = evaluate_run(
                run,
                data,
                test_list=test,
                refinement=refine,
                reestimate=reestimate,
                working_size=working_size,
                workers=workers,
                progress=progress,
            )
    else:
        from acnn.runs.evaluate_pairs import PairSettings, evaluate_pairs

        if reestimate:
            raise InputError("--reestimate is not available with --pairs.")
        settings = PairSettings(
            *(method, refine, rotate, not as_they_are),
            geodesics=geodesics,  # type: ignore[arg-type]
            working_size=working_size,
        )
        with out.progress() as progress:
            report, failures = evaluate_pairs(
                data,
                run,
                pairs=pairs,
                shapes=test,
                settings=settings,
                out=results,
                cache=out.cache,
                progress=progress,
            )
    text = pairs_text if pairs is not None else classes_text if "iou" in report else report_text
    out.result(report, human=text, failures=failures)


def pairs_text(report: dict[str, Any]) -> str:
    """Format a report over pairs as a small table."""
    rows = [("pair", "error x 100", "on edges", "beyond 0.2", "", "verdict")]
    for pair in report["pairs"]:
        marks = " ".join(word for word in ("failed", "flipped") if pair[word])
        errors = f"{pair['mean_error_x100']:.2f}", f"{pair['edge_dijkstra_error_x100']:.2f}"
        rows.append((f"{pair['a']} {pair['b']}", *errors, f"{pair['beyond_20']:.1%}", marks, pair["verdict"]))
    errors = f"{report['mean_error_x100']:.2f}", f"{report['edge_dijkstra']['mean_error_x100']:.2f}"
    rows.append(("all vertices", *errors, f"{report['beyond_20']:.1%}", "", ""))
    flipped = "" if report["flipped_pairs"] is None else f", {report['flipped_pairs']} flipped"
    count = len(report["pairs"]) - report["self_pairs"]["pairs"]
    note = f"{counted(count, 'pair')}, {report['failed_pairs']} failed{flipped}; errors divided by the root of B's area"
    if report["self_pairs"]["pairs"]:
        note += f"; {report['self_pairs']['pairs']} self-pairs are not counted"
    return "\n".join(
        [_aligned(rows), note, *_seen(report, len({pair[side] for pair in report["pairs"] for side in "ab"}))]
    )


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
    lines = [_aligned(rows)]
    lines.append(
        f"{counted(len(report['shapes']), 'shape')}; errors divided by {report['normalisation']} of the reference"
    )
    if "symmetric" in report:
        lines.append(
            "symmetric: each vertex may match its true point or the mirrored one, so left and right may mix; per map: "
            "one of the two for the whole map"
        )
    copies = report.get("working_copies", {})
    if copies.get("shapes"):
        lines.append(
            f"{copies['shapes']} shape(s) of {copies['vertices']:.0f} vertices on average were matched on copies of "
            f"{copies['working']:.0f}"
        )
    for kind, curves in report.get("descriptor", {}).items():
        hits = ", ".join(f"{value:.1%} among {k}" for k, value in curves["asymmetric"]["hits"].items())
        lines.append(f"{kind} descriptor: true match {hits} nearest")
    return "\n".join([*lines, *_seen(report, len(report["shapes"]))])


def classes_text(report: dict[str, Any]) -> str:
    """Format the report of a segmentation."""
    width = max(len(name) for name in report["iou"])
    lines = [f"{report['accuracy']:.1%} of the area right, mean IoU {report['mean_iou']:.1%}"]
    lines += [f"  {name.ljust(width)}  {'-' if iou is None else f'{iou:.1%}'}" for name, iou in report["iou"].items()]
    return "\n".join([*lines, counted(len(report["shapes"]), "shape"), *_seen(report, len(report["shapes"]))])


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _check_unused(method: str, rotate: int | None, as_they_are: bool, geodesics: str, results: Path | None) -> None:
    """Raise InputError where an option of --pairs is given without it."""
    given = {
        "--method": method != "auto",
        "--rotate": rotate is not None,
        "--no-remesh": as_they_are,
        "--geodesics": geodesics != "graph",
        "--out": results is not None,
    }
    if used := next((option for option, present in given.items() if present), None):
        raise InputError(f"{used} is an option of --pairs: add --pairs, or leave it out.")


def _seen(report: dict[str, Any], count: int) -> list[str]:
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
                f"warning: the network was {words} {len(names)} of these {count} shapes ({listed}): "
                "the figures do not apply to new shapes"
            )
    return warnings
