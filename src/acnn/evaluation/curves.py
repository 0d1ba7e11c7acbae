"""Files of Princeton curves: CSV, JSON, and a plot as PNG."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from acnn.errors import InputError
from acnn.evaluation.princeton import THRESHOLDS
from acnn.evaluation.published import PublishedTable
from acnn.files import write_atomic


def report_curves(report: Mapping[str, Any]) -> dict[str, list[float]]:
    """Collect the curves of a report.

    Parameters
    ----------
    report : Mapping[str, Any]
        From `evaluation_report`.

    Returns
    -------
    dict[str, list[float]]
        Curves named `network`, `network symmetric`, `refined`, ...
    """
    curves: dict[str, list[float]] = {}
    for prefix, part in (("network", report), ("refined", report.get("refined"))):
        if part:
            curves[prefix] = list(part["curve"])
            if "symmetric" in part:
                curves[f"{prefix} symmetric"] = list(part["symmetric"]["curve"])
    return curves


def write_curves(
    stem: str | Path,
    curves: Mapping[str, ArrayLike],
    normalisation: str,
    published: PublishedTable | None = None,
    title: str = "",
) -> None:
    """Write `stem.csv`, `stem.json` and `stem.png`.

    Parameters
    ----------
    stem : path
        Path of the files without their endings.
    curves : Mapping[str, ArrayLike]
        Values at `THRESHOLDS`, by name.
    normalisation : str
        `ReferenceDistances.normalisation`.
    published : PublishedTable or None
        Published figures for comparison.
    title : str
        Of the plot.
    """
    write_curves_csv(f"{stem}.csv", curves)
    write_curves_json(f"{stem}.json", curves, normalisation, published=published)
    write_curves_png(f"{stem}.png", curves, normalisation, published=published, title=title)


def write_curves_csv(path: str | Path, curves: Mapping[str, ArrayLike], thresholds: ArrayLike = THRESHOLDS) -> None:
    """Write a table: the first column is the threshold, then one column per named curve."""
    names, table = _table(curves, thresholds)
    quoted = ['"' + name.replace('"', '""') + '"' if any(c in name for c in ',"\n') else name for name in names]
    lines = [",".join(["threshold", *quoted])]
    lines += [",".join(f"{value:.6g}" for value in row) for row in table]
    write_atomic(Path(path), ("\n".join(lines) + "\n").encode())


def write_curves_json(
    path: str | Path,
    curves: Mapping[str, ArrayLike],
    normalisation: str,
    thresholds: ArrayLike = THRESHOLDS,
    published: PublishedTable | None = None,
) -> None:
    """Write `{normalisation, thresholds, curves: {name: [...]}, published: {name, quantity, data, entries}}`."""
    names, table = _table(curves, thresholds)
    content: dict[str, Any] = {
        "normalisation": normalisation,
        "thresholds": table[:, 0].tolist(),
        "curves": {name: table[:, i + 1].tolist() for i, name in enumerate(names)},
    }
    if published is not None:
        content["published"] = {
            "name": published.name,
            "quantity": published.quantity,
            "data": published.data,
            "entries": [{"method": e.method, "value": e.value, "source": e.source} for e in published.entries],
        }
    write_atomic(Path(path), (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def write_curves_png(
    path: str | Path,
    curves: Mapping[str, ArrayLike],
    normalisation: str,
    thresholds: ArrayLike = THRESHOLDS,
    published: PublishedTable | None = None,
    title: str = "",
) -> None:
    """Draw the curves, with published figures beside them.

    Published fractions of exact matches are marked on the axis at error 0, where a curve starts; figures of other
    quantities are listed in the legend.

    Parameters
    ----------
    curves : (100,) array
        Per name; names that end in `symmetric` are drawn solid, others dashed where there are both.
    normalisation : str
        Named on the axis.
    published : PublishedTable or None
        A table of `published.py`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names, table = _table(curves, thresholds)
    figure = Figure(figsize=(8.0, 4.6), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    bases = list(dict.fromkeys(name.removesuffix(" symmetric") for name in names))
    paired = any(name.endswith(" symmetric") for name in names)
    for i, name in enumerate(names):
        dashed = paired and not name.endswith(" symmetric")
        colour = f"C{bases.index(name.removesuffix(' symmetric')) % 10}"
        style = "--" if dashed else "-"
        # A curve that a later one covers stays visible as its border.
        covering = sum(np.array_equal(table[:, i + 1], table[:, j]) for j in range(i + 2, len(names) + 1))
        axes.plot(table[:, 0], 100 * table[:, i + 1], style, color=colour, label=name, linewidth=1.8 + 2.4 * covering)
    if published is not None:
        at_axis = published.quantity.startswith("fraction of exact matches")
        axes.plot([], [], " ", label="\n".join(wrap(f"published: {published.quantity}", 34)))
        for i, entry in enumerate(published.entries):
            marker = "osD^v<>pPX*"[i % 11] if at_axis else ""
            position = ([0.0], [entry.value]) if at_axis else ([], [])
            axes.plot(
                *position, marker, color="0.35", markersize=5, clip_on=False, label=f"{entry.method} {entry.value:g}"
            )
    unit = {"sqrt_area": "sqrt(area)", "diameter": "geodesic diameter"}.get(normalisation, normalisation)
    axes.set_xlabel(f"geodesic error / {unit} of the reference")
    axes.set_ylabel("matches, %")
    axes.set_xlim(0.0, float(table[-1, 0]))
    axes.set_ylim(0.0, 100.5)
    axes.grid(alpha=0.3)
    if title:
        axes.set_title(title)
    figure.legend(loc="outside right upper", fontsize=7, frameon=False)
    stream = io.BytesIO()
    # No date or version in the file: the same curves give the same bytes.
    FigureCanvasAgg(figure).print_png(stream, metadata={"Software": None})
    write_atomic(Path(path), stream.getvalue())


def _table(curves: Mapping[str, ArrayLike], thresholds: ArrayLike) -> tuple[list[str], np.ndarray]:
    """Names and (thresholds, 1 + curves) numbers."""
    at = np.asarray(thresholds, dtype=float)
    columns = [at]
    for name, curve in curves.items():
        values = np.asarray(curve, dtype=float)
        if values.shape != at.shape or not np.isfinite(values).all():
            raise InputError(f"Curve '{name}' must have one finite value for each of the {len(at)} thresholds.")
        columns.append(values)
    if not curves:
        raise InputError("There is no curve to write.")
    return list(curves), np.stack(columns, axis=1)
