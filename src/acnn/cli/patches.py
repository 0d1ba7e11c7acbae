"""`acnn patches`: the patch operator of one shape, and how far its kernels are from exact ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli.app import Force, Output, command


@command
def patches(
    out: Output,
    shape: Annotated[Path, typer.Argument(metavar="SHAPE", help="A mesh or point cloud.")],
    angles: Annotated[int, typer.Option(help="How many directions, spread over half a turn.")] = 16,
    alpha: Annotated[float, typer.Option(help="Anisotropy; 1 is isotropic.")] = 100.0,
    scales: Annotated[str, typer.Option(help="Times t at geodesic diameter 200.")] = "3,6,12,24",
    kernel: Annotated[str, typer.Option(metavar="auto|rational|squaring|spectral|exact")] = "auto",
    keep: Annotated[float, typer.Option(help="Least share of a row's mass to store.")] = 0.9,
    eigenpairs: Annotated[int, typer.Option(help="At most, per angle; as many for '--kernel spectral'.")] = 200,
    unit: Annotated[float | None, typer.Option(help="Length of one run unit; by default the diameter / 200.")] = None,
    check: Annotated[int, typer.Option(metavar="N", help="Compare N random rows of every kernel with exact ones.")] = 0,
    file: Annotated[Path | None, typer.Option("--out", metavar="F", help="Write the operator here.")] = None,
    force: Force = False,
) -> None:
    """Compute the patch operator of a shape."""
    from acnn.runs.patches import patches_of_file

    with out.progress() as progress:
        facts = patches_of_file(
            shape,
            settings={
                "angles": angles,
                "alpha": alpha,
                "scales": scales,
                "kernel": kernel,
                "keep": keep,
                "eigenpairs": eigenpairs,
            },
            unit=unit,
            check=check,
            out=file,
            force=force,
            cache=out.cache,
            progress=progress,
        )
    out.result(facts, human=_text)


def _text(facts: dict[str, Any]) -> str:
    mixed = len(set(facts["kernels_by_scale"].values())) > 1
    scales = ", ".join(f"{t} by {kernel}" if mixed else t for t, kernel in facts["kernels_by_scale"].items())
    lines = [
        f"{facts['shape']}: {facts['vertices']} vertices",
        f"  kernels      {facts['angles']} angles, scales {scales}" + ("" if mixed else f" ({facts['kernel']})"),
        f"  built in     {facts['seconds']:.2f} s" + (" (then; now from the cache)" if facts["from_cache"] else ""),
        f"  stored       {facts['nnz_per_row']:.1f} entries a row, {facts['mass_kept']:.1%} of the mass",
        f"  unit         {facts['unit']:.6g} in the shape's coordinates (geodesic diameter 200 by default)",
        f"  peak memory  {facts['peak_memory_mb']:.0f} MB",
    ]
    if facts["l1_error_median"] is not None:
        lines.append(
            f"  L1 error     median {facts['l1_error_median']:.5f}, largest {facts['l1_error_max']:.5f} "
            f"({facts['rows_checked']} rows of every kernel against exact ones, before clipping)"
        )
        for t, error in facts["l1_errors_by_scale"].items():
            lines.append(f"    t = {t:<6} median {error['median']:.5f}, largest {error['max']:.5f} ({error['kernel']})")
    if facts["written_to"]:
        lines.append(f"written to {facts['written_to']}")
    return "\n".join(lines)
