"""Rows of the experiments that compare methods or settings: how one is trained, measured, kept and shown.

Every row is measured by the same protocol, whatever its method: `measure` gives a record of plain numbers, `kept_rows`
computes those that are not kept as JSON yet, and `figures_table`, `properties_table` and `draw_curves` show them.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from acnn.errors import InputError
from acnn.progress import Progress

FIGURES = ("exact", "mean_error_x100", "within_005", "within_010")
"""What is averaged over shapes, besides the curve."""

MISSING = "missing"
"""What a table shows of a row that has not been computed yet."""

# Options that the experiments share.
Data = Annotated[str, typer.Option(metavar="DIR", help="A dataset: FAUST, the folder around it, or 'humans'.")]
Train = Annotated[str, typer.Option(metavar="LIST", help="Training shapes.")]
Rows = Annotated[str, typer.Option(metavar="ROWS", help="Rows to compute, separated by commas; default: all.")]
CoreMinutes = Annotated[float, typer.Option(help="Processor time for training a row.")]
Results = Annotated[Path, typer.Option(metavar="DIR", help="Where finished rows are kept.")]
Seed = Annotated[int, typer.Option(help="Random seed.")]
Workers = Annotated[int, typer.Option(help="Number of processes that prepare shapes.")]


@dataclass(frozen=True)
class Row:
    """One row of a comparison.

    Attributes
    ----------
    method : str
        Of `acnn.methods.registry`.
    preset : str
        Settings it is trained with; empty for methods for two shapes.
    terms : str
        What the settings are.
    changes : dict
        Settings that differ from the preset.
    """

    method: str
    preset: str
    terms: str
    changes: dict[str, Any] = field(default_factory=dict)


def measure(
    row: Row,
    training: Any,
    testing: Any,
    folder: Path,
    *,
    changes: dict[str, Any] | None = None,
    refinement: str = "none",
    workers: int = 1,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train a row on all shapes of a dataset, go on where it was stopped, and match all shapes of another.

    Parameters
    ----------
    row : Row
        What is trained; methods for two shapes are not.
    training, testing : Dataset
        With the same reference.
    folder : Path
        Of the run.
    changes : dict or None
        Settings, besides those of the row.
    refinement : str
        As for `acnn evaluate`.
    workers : int
        Number of processes that prepare shapes.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    dict[str, Any]
        The record of a row: plain numbers.

    Raises
    ------
    InputError
        Where a shape cannot be prepared or matched.
    """
    from acnn.methods.registry import PAIR_METHODS
    from acnn.methods.run import open_run
    from acnn.runs.compare import evaluate_pair_method
    from acnn.runs.evaluate import evaluate_run

    options: dict[str, Any] = {"test_list": "all", "refinement": refinement, "progress": progress}
    facts: dict[str, Any] = {"parameters": 0, "training_core_minutes": 0.0, "steps": None}
    if row.method in PAIR_METHODS:
        report, failures = evaluate_pair_method(PAIR_METHODS[row.method], testing, **options)
    else:
        trained = train_row(row, training, folder, changes=changes, workers=workers, progress=progress)
        report, failures = evaluate_run(folder, testing, workers=workers, **options)
        facts = {"parameters": open_run(folder).matcher.parameter_count, **trained}
    if failures:
        raise InputError(f"{failures[0].item}: {failures[0].why}")
    return record_of(report.as_dict()) | facts | {"seconds_per_shape": report["seconds_per_shape"]}


def train_row(
    row: Row,
    training: Any,
    folder: Path,
    *,
    changes: dict[str, Any] | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train a row, once, and report `training_core_minutes` and `steps`; arguments as for `measure`."""
    from acnn.runs.train import train_run
    from acnn.training.config import preset_config

    done = folder / "trained.json"
    if not done.is_file():
        config = preset_config(row.preset).with_changes({**(changes or {}), **row.changes})
        began = time.process_time()
        facts, _ = train_run(
            training, folder, config, train_list="all", resume=True, workers=workers, progress=progress
        )
        spent = facts.get("core_seconds", time.process_time() - began) / 60
        done.write_text(json.dumps({"core_minutes": spent, "steps": facts.get("step")}))
    kept = json.loads(done.read_text())
    return {"training_core_minutes": kept["core_minutes"], "steps": kept["steps"]}


def record_of(report: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a report of `acnn evaluate`."""
    symmetric, refined = report.get("symmetric") or {}, report.get("refined")
    record = {
        **_figures(report),
        "symmetric": {**_figures(symmetric), "curve": symmetric.get("curve")},
        "thresholds": report["thresholds"],
        "curve": report["curve"],
        "shapes": report["shapes"],
    }
    if refined is not None:
        record["refined"] = _figures(refined) | {"symmetric": _figures(refined.get("symmetric") or {})}
    return record


def joined(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One record of several, of datasets with references of their own: every shape counts the same."""
    weights = np.array([len(record["shapes"]) for record in records], float)

    def mean(values: Sequence[Any]) -> Any:
        return None if any(v is None for v in values) else np.average(values, axis=0, weights=weights).tolist()

    def means(parts: Sequence[dict[str, Any]], names: Sequence[str] = FIGURES) -> dict[str, Any]:
        return {name: mean([part[name] for part in parts]) for name in names}

    first = records[0]
    both: dict[str, Any] = {
        **means(records, (*FIGURES, "curve", "parameters", "training_core_minutes", "seconds_per_shape")),
        "symmetric": means([record["symmetric"] for record in records], (*FIGURES, "curve")),
        "thresholds": first["thresholds"],
        "shapes": [shape for record in records for shape in record["shapes"]],
    }
    if all("refined" in record for record in records):
        refined = [record["refined"] for record in records]
        both["refined"] = means(refined) | {"symmetric": means([one["symmetric"] for one in refined])}
    return both


def kept_rows(
    names: Sequence[str],
    results: Path,
    settings: dict[str, Any],
    compute: Callable[[str], dict[str, Any]],
    *,
    message: Callable[[str], None],
    failed: Callable[[str, str], None],
) -> None:
    """Compute the rows that are not kept yet, and keep each as `results/NAME.json` as soon as it is done.

    Parameters
    ----------
    names : sequence of str
        Of the rows.
    results : Path
        Folder of the JSON files.
    settings : dict
        A row that was computed with other settings is computed again.
    compute : callable
        Gives the record of a row; InputError leaves it out.
    message, failed : callable
        For one line each: what was done, and (row, why) of what was not.
    """
    from acnn.files import write_atomic

    results.mkdir(parents=True, exist_ok=True)
    for name in names:
        file = results / f"{name}.json"
        if file.is_file() and json.loads(file.read_text()).get("settings") == settings:
            message(f"{name}: kept from before")
            continue
        try:
            found = compute(name)
        except InputError as error:
            failed(name, str(error))
            continue
        write_atomic(file, (json.dumps({"row": name, "settings": settings, **found}, indent=1) + "\n").encode())
        message(f"{name}: done")


def read_rows(names: Sequence[str], results: Path) -> dict[str, dict[str, Any]]:
    """The kept rows among some names, in their order."""
    files = {name: results / f"{name}.json" for name in names}
    return {name: json.loads(file.read_text()) for name, file in files.items() if file.is_file()}


def known_rows(text: str, rows: dict[str, Any]) -> list[str]:
    """Names in a list separated by commas, all where it is empty; InputError for one that does not exist."""
    names = [name.strip() for name in text.split(",") if name.strip()] or list(rows)
    unknown = [name for name in names if name not in rows]
    if unknown:
        raise InputError(f"There is no row '{unknown[0]}'; there are {', '.join(rows)}.")
    return names


def markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows).replace("| --- ", "|---").replace("|--- |", "|---|")


def properties_of(method: str) -> list[str]:
    """The seven properties of a method in words; empty for one that the paper's table does not have."""
    from acnn.methods.registry import METHODS

    if method not in METHODS:
        return [""] * 7
    return [
        str(value) if not isinstance(value, bool) else "yes" if value else "no"
        for value in asdict(METHODS[method].properties).values()
    ]


PROPERTIES = ("representation", "input", "generalisable", "filters", "context", "directional", "task")


def properties_table() -> str:
    """The paper's table of properties, and what the names stand for, from the registry of methods."""
    from acnn.methods.registry import METHODS

    table = markdown(("method", *PROPERTIES), [[f"`{name}`", *properties_of(name)] for name in METHODS])
    return f"{table}\n{'; '.join(f'`{name}`: {method.title}' for name, method in METHODS.items())}.\n"


def figures_table(rows: dict[str, Row], records: dict[str, dict[str, Any]], properties: bool = False) -> str:
    """The figures of all rows in Markdown; those without a record are shown as missing.

    Parameters
    ----------
    rows : dict
        All rows of the comparison.
    records : dict
        Records by row.
    properties : bool
        Show the seven properties of each method as well.
    """
    refined = any("refined" in record for record in records.values())
    head = ["row", "settings", *(PROPERTIES if properties else ())]
    head += ["exact", "error x 100", "< 0.05", "< 0.1", "sym. error", "sym. < 0.05", "sym. < 0.1"]
    head += ["refined error", "refined sym. error"] if refined else []
    head += ["parameters", "core-minutes", "s a shape"]
    lines = []
    for name, row in rows.items():
        cells = [name, row.terms, *(properties_of(row.method) if properties else ())]
        record = records.get(name)
        if record is None:
            lines.append([*cells, f"*{MISSING}*", *[""] * (len(head) - len(cells) - 1)])
            continue
        other = record["symmetric"]
        cells += [percent(record["exact"]), error(record), percent(record["within_005"]), percent(record["within_010"])]
        cells += [error(other), percent(other["within_005"]), percent(other["within_010"])]
        if refined:
            after = record.get("refined", {})
            cells += [error(after), error(after.get("symmetric", {}))]
        cells += [f"{record['parameters']:,.0f}", f"{record['training_core_minutes']:.1f}"]
        lines.append([*cells, f"{record['seconds_per_shape']:.2f}"])
    return markdown(head, lines)


def draw_curves(records: dict[str, dict[str, Any]], form: str = "png") -> bytes:
    """The paper's figure: symmetric curves solid, asymmetric ones dashed; as the bytes of a PNG or SVG file."""
    from matplotlib import colormaps, rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.add_subplot()
    for index, (name, record) in enumerate(records.items()):
        color = colormaps["tab20"](2 * index % 20 + index // 10 % 2)  # ten strong colours, then ten light ones
        axes.plot(record["thresholds"], [100 * x for x in record["curve"]], "--", color=color, linewidth=1)
        solid = record["symmetric"]["curve"] or []
        axes.plot(record["thresholds"][: len(solid)], [100 * x for x in solid], color=color, label=name)
    axes.set(xlabel="geodesic error / sqrt(area)", ylabel="% correspondences", xlim=(0, 0.3), ylim=(0, 100))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, title="solid: symmetric, dashed: asymmetric", title_fontsize=8)
    stream = io.BytesIO()
    with rc_context({"svg.hashsalt": "acnn"}):  # the same bytes for the same numbers
        figure.savefig(stream, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
    return stream.getvalue()


def within(report: dict[str, Any], threshold: float) -> float | None:
    """Fraction of matches with an error of at most a threshold, interpolated on the curve."""
    if not report.get("curve"):
        return None
    thresholds = report.get("thresholds") or list(np.linspace(0.0, 0.3, len(report["curve"])))
    return float(np.interp(threshold, thresholds, report["curve"]))


def percent(value: float | None) -> str:
    """A fraction in percent; empty where there is none."""
    return "" if value is None else f"{value:.1%}"


def error(record: dict[str, Any]) -> str:
    """The mean error x 100 of a record; empty where there is none."""
    value = record.get("mean_error_x100")
    return "" if value is None else f"{value:.2f}"


def _figures(report: dict[str, Any]) -> dict[str, Any]:
    return {
        "exact": report.get("exact"),
        "mean_error_x100": report.get("mean_error_x100"),
        "within_005": within(report, 0.05),
        "within_010": within(report, 0.1),
    }
