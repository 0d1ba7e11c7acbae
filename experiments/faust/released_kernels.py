"""The kernels of the authors' released code beside exact ones, on one shape.

    python experiments/faust/released_kernels.py SHAPE [--rows 200] [--angles 2] [--json]

The released code sums 1,000 eigenfunctions of each anisotropic Laplacian, leaves the area element out, and keeps the
largest 0.1 % of every row (7 of 6,890 entries). Three kinds of rows, each divided by its sum, are compared with exact
ones (a contour integral, to 1e-12) at the settings of the preset `released`:

- exact, cut: the 7 largest entries of exact rows, which the preset `released` learns from
- truncated: all entries from 1,000 eigenpairs, what a truncated spectrum does by itself
- released: the 7 largest entries from 1,000 pairs without area, what the released code learns from

For each scale: the median L1 distance from the exact row (2 is the most that rows of positive entries can differ), and
how many of the 7 largest vertices are among the 7 largest of the exact row.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from acnn.cli._commands import Output, command
from acnn.cli._program import run_alone

PAIRS = 1000


@command
def compare(
    out: Output,
    shape: Annotated[Path, typer.Argument(metavar="SHAPE", help="A mesh, such as tr_reg_000.")],
    rows: Annotated[int, typer.Option(help="How many random rows of each kernel.")] = 200,
    angles: Annotated[int, typer.Option(help="How many of the 16 angles, evenly spread.")] = 2,
) -> None:
    """Compare the released code's kernels with exact ones."""
    from acnn.shapes import load
    from acnn.surface.curvature import principal_frames
    from acnn.surface.heat import exact_rows, spectral_rows
    from acnn.surface.laplacian import stiffness_parts
    from acnn.surface.spectra import eigenpairs
    from acnn.surface.surface import surface_of
    from acnn.training.config import preset_config

    settings = preset_config("released").patches
    surface = surface_of(load(shape))
    n, mass, kept = len(surface.vertices), surface.vertex_areas, settings.entries
    parts = stiffness_parts(surface, principal_frames(surface, settings.smoothing))
    chosen = np.sort(np.random.default_rng(0).choice(n, min(rows, n), replace=False)).astype(np.int32)
    found: dict[float, dict[str, list[np.ndarray]]] = {t: {} for t in settings.scales}
    taken = np.linspace(0, settings.angles, angles, endpoint=False).astype(int)
    with out.progress("angles") as progress:
        for done, angle in enumerate(taken):
            stiffness = parts.matrix(settings.alpha, settings.thetas[angle])
            values, functions = eigenpairs(stiffness, mass, min(PAIRS, n - 1))
            for t in settings.scales:
                exact = exact_rows(stiffness, mass, t, chosen)
                truncated = spectral_rows(values, functions, mass, t, chosen)
                kinds = {
                    "exact, cut": cut(exact, kept),
                    "truncated": truncated,
                    "released": cut(truncated / mass, kept),
                }
                right = largest(exact, kept)
                for name, made in kinds.items():
                    made = made / made.sum(axis=1, keepdims=True)
                    error = np.abs(made - exact).sum(axis=1)
                    shared = [len(set(a) & set(b)) for a, b in zip(largest(made, kept), right, strict=True)]
                    found[t].setdefault(name, []).append(np.stack([error, np.array(shared)]))
            progress(done + 1, angles)
    table: dict[str, dict[str, Any]] = {}
    for t, kinds in found.items():
        measured = {name: np.concatenate(many, axis=1) for name, many in kinds.items()}
        table[f"{t:g}"] = {
            name: {"l1_median": float(np.median(both[0])), "l1_worst": float(both[0].max()), "shared": both[1].mean()}
            for name, both in measured.items()
        }
    out.result(
        {"shape": shape.name, "rows": len(chosen), "angles": angles, "entries": kept, "scales": table}, human=text
    )


def largest(rows: np.ndarray, count: int) -> np.ndarray:
    """(rows, count) where the largest entries are."""
    return np.argpartition(-rows, count - 1, axis=1)[:, :count]


def cut(rows: np.ndarray, count: int) -> np.ndarray:
    """The rows with all but their largest entries set to zero."""
    where = largest(rows, count)
    result = np.zeros_like(rows)
    np.put_along_axis(result, where, np.take_along_axis(rows, where, axis=1), axis=1)
    return result


def text(result: dict[str, Any]) -> str:
    """The table for people."""
    lines = [
        f"{result['shape']}: {result['rows']} rows at {result['angles']} angles; "
        f"median L1 distance from exact rows, and how many of the {result['entries']} largest vertices are right",
        f"{'t':>6} {'exact, cut':>18} {'truncated':>18} {'released':>18}",
    ]
    for t, kinds in result["scales"].items():
        cells = [f"{kinds[name]['l1_median']:9.2f} {kinds[name]['shared']:8.1f}" for name in kinds]
        lines.append(f"{t:>6} " + " ".join(cells))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(run_alone(compare))
