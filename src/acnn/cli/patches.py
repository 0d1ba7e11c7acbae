"""`acnn patches`: patch operator of one shape, and the error of its kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, long_command
from acnn.cli._options import Force, kernels


@long_command
def patches(
    out: Output,
    shape: Annotated[Path, typer.Argument(metavar="SHAPE", help="A mesh or point cloud.")],
    angles: Annotated[int, typer.Option(help="Number of directions, spread over half a turn.")] = 16,
    alpha: Annotated[float, typer.Option(help="Anisotropy; 1 is isotropic.")] = 100.0,
    scales: Annotated[str, typer.Option(help="Diffusion times t, for a geodesic diameter of 200.")] = "3,6,12,24",
    kernel: Annotated[
        str,
        typer.Option(
            metavar="auto|rational|squaring|spectral|exact", help="How kernels are computed.", autocompletion=kernels
        ),
    ] = "auto",
    keep: Annotated[float, typer.Option(help="Smallest fraction of the mass of a row to store.")] = 0.9,
    eigenpairs: Annotated[
        int, typer.Option(help="Most eigenpairs per angle; exactly as many for '--kernel spectral'.")
    ] = 200,
    unit: Annotated[
        float | None, typer.Option(help="Unit of length of the shape; default: its geodesic diameter / 200.")
    ] = None,
    check: Annotated[int, typer.Option(metavar="N", help="Compare N random rows of every kernel with exact ones.")] = 0,
    file: Annotated[Path | None, typer.Option("--out", metavar="F", help="Write the operator to this file.")] = None,
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
            announce=out.message,
        )
    out.result(facts, human=_text)


def _text(facts: dict[str, Any]) -> str:
    mixed = len(set(facts["kernels_by_scale"].values())) > 1
    scales = ", ".join(f"{t} by {kernel}" if mixed else t for t, kernel in facts["kernels_by_scale"].items())
    lines = [
        f"{facts['shape']}: {facts['vertices']} vertices",
        f"  kernels      {facts['angles']} angles, scales {scales}" + ("" if mixed else f" ({facts['kernel']})"),
        f"  built in     {facts['seconds']:.2f} s" + (" (read from the cache)" if facts["from_cache"] else ""),
        f"  stored       {facts['nnz_per_row']:.1f} entries a row, {facts['mass_kept']:.1%} of the mass",
        f"  unit         {facts['unit']:.6g} in the shape's coordinates (geodesic diameter 200 by default)",
        f"  peak memory  {facts['peak_memory_mb']:.0f} MB",
    ]
    if facts["l1_error_median"] is not None:
        lines.append(
            f"  L1 error     median {facts['l1_error_median']:.5f}, maximum {facts['l1_error_max']:.5f} "
            f"({facts['rows_checked']} rows of every kernel compared with exact ones, before clipping)"
        )
        for t, error in facts["l1_errors_by_scale"].items():
            lines.append(f"    t = {t:<6} median {error['median']:.5f}, maximum {error['max']:.5f} ({error['kernel']})")
    if facts["written_to"]:
        lines.append(f"written to {facts['written_to']}")
    return "\n".join(lines)
