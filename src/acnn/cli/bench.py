"""`acnn bench`: speed and memory on this machine."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, command


@command
def bench(
    out: Output,
    peers: Annotated[
        bool, typer.Option("--peers", help="Compare with LaPy and robust_laplacian, if installed.")
    ] = False,
    repeat: Annotated[int, typer.Option(help="Number of timed runs of each step; the best time counts.")] = 2,
) -> None:
    """Time the main steps on one built-in human: kernels, descriptors, training, inference, refinement."""
    from acnn.errors import InputError
    from acnn.runs.machine import bench as measure

    if repeat < 1:
        raise InputError(f"--repeat {repeat}: give at least 1.")
    with out.progress("measuring") as progress:
        facts = measure(peers=peers, repeat=repeat, progress=progress)
    if peers and not any("," in part["name"] for part in facts["parts"]):
        out.message("No other library is installed to compare with: pip install 'acnn[bench]'.")
    out.result(facts, human=_text)


def _text(facts: dict[str, Any]) -> str:
    rows = [("", "seconds", "peak MB", "")]
    for part in facts["parts"]:
        ratio = f"{part['ratio']:.1f} x" if "ratio" in part else ""
        rows.append((part["name"], f"{part['seconds']:.3f}", f"{part['peak_memory_mb']:.0f}", ratio))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = [f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}".rstrip() for a, b, c, d in rows]
    head = f"{facts['vertices']} vertices, {facts['angles']} angles, {facts['architecture']}"
    return "\n".join([head, *lines])
