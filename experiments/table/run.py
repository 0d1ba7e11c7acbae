"""The paper's comparison on FAUST: every method on the same shapes with the same protocol, one row each.

    python experiments/table/run.py --data DIR --train 000-059 --test 060-079 --out DIR [--methods A,B]

Each finished row is kept as JSON (numbers only) in `results/` beside this file, or in --results, and is not computed
again; --out holds the runs. Prints the table, and writes `table.md`, `table.json` and `curves.png` into --out. Rows
marked 'as
published' have the settings of the papers; all others share input (SHOT of radius 12), schedule and budget.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli.app import Output, command, run_alone
from acnn.errors import InputError
from acnn.progress import Progress, named_stages

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Row:
    """One row: a method, the preset it is trained with (empty for pair methods), and what the settings are."""

    method: str
    preset: str
    terms: str


ROWS = {
    "osd": Row("osd", "osd", "as published, log vectors"),
    "add": Row("add", "add", "as published, log vectors"),
    "rf-wks": Row("rf", "rf-wks", "as published"),
    "rf-shot": Row("rf", "rf-shot", "equal terms"),
    "bim": Row("bim", "", "as published"),
    "gcnn-published": Row("gcnn", "paper-gcnn", "as published"),
    "gcnn": Row("gcnn", "gcnn", "equal terms"),
    "scnn-index": Row("scnn", "paper-scnn", "as published"),
    "scnn": Row("scnn", "scnn-eigenvalue", "equal terms"),
    "lscnn-siamese": Row("lscnn", "paper-lscnn", "as published"),
    "lscnn": Row("lscnn", "lscnn-labels", "equal terms"),
    "acnn-published": Row("acnn", "paper-faust", "as published"),
    "acnn": Row("acnn", "acnn-table", "equal terms"),
}


@command
def experiment(
    out: Output,
    data: Annotated[str, typer.Option(metavar="DIR", help="A dataset: FAUST, the folder around it, or 'humans'.")],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Of the runs, the table and the figure.")],
    train: Annotated[str, typer.Option(metavar="LIST", help="Training shapes.")] = "000-059",
    test: Annotated[str, typer.Option(metavar="LIST", help="Test shapes.")] = "060-079",
    methods: Annotated[
        str, typer.Option(metavar="ROWS", help="Rows to compute, separated by commas; default: all.")
    ] = "",
    core_minutes: Annotated[float, typer.Option(help="Processor time for training a row.")] = 30.0,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Where finished rows are kept.")] = RESULTS,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    workers: Annotated[int, typer.Option(help="Number of processes that prepare shapes.")] = 2,
) -> None:
    """Compare the methods of the paper on the same shapes."""
    from acnn.files import write_atomic

    chosen = [name.strip() for name in methods.split(",") if name.strip()] or list(ROWS)
    unknown = [name for name in chosen if name not in ROWS]
    if unknown:
        raise InputError(f"There is no row '{unknown[0]}'; there are {', '.join(ROWS)}.")
    results.mkdir(parents=True, exist_ok=True)
    settings = {"data": Path(data).name, "train": train, "test": test, "core_minutes": core_minutes, "seed": seed}
    for name in chosen:
        file = results / f"{name}.json"
        if file.is_file() and json.loads(file.read_text()).get("settings") == settings:
            out.message(f"{name}: kept from before")
            continue
        with out.progress() as progress:
            try:
                found = _row(name, data, folder / name, settings, workers, named_stages(progress, f"{name}: {{}}"))
            except InputError as error:
                out.failed(name, str(error))
                continue
        write_atomic(file, (json.dumps({"row": name, "settings": settings, **found}, indent=1) + "\n").encode())
        out.message(f"{name}: exact {found['exact']:.1%}, mean error {found['mean_error_x100']:.2f}")
    rows = {
        name: json.loads((results / f"{name}.json").read_text())
        for name in ROWS
        if (results / f"{name}.json").is_file()
    }
    if not rows:
        raise InputError("No row could be computed.")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "table.md", table(rows).encode())
    write_atomic(folder / "table.json", (json.dumps(rows, indent=1) + "\n").encode())
    draw_curves(rows, folder / "curves.png")
    out.result({"rows": list(rows), "out": str(folder)}, human=lambda _: table(rows))


def _row(
    name: str, data: str, folder: Path, settings: dict[str, Any], workers: int, progress: Progress | None
) -> dict[str, Any]:
    """Train and evaluate one row."""
    from acnn.datasets.open import open_dataset
    from acnn.methods.registry import PAIR_METHODS

    row, dataset = ROWS[name], open_dataset(data)
    dataset.select(settings["test"])  # errors before the training, not after it
    if row.method in PAIR_METHODS:
        report, facts = _matched_in_pairs(PAIR_METHODS[row.method].match, dataset, settings["test"], progress)
    else:
        report, facts = _trained(row, dataset, folder, settings, workers, progress)
    symmetric = report.get("symmetric") or {}
    return {
        **asdict(row),
        "exact": report["exact"],
        "mean_error_x100": report["mean_error_x100"],
        "within_005": within(report, 0.05),
        "within_010": within(report, 0.1),
        "symmetric": {
            "exact": symmetric.get("exact"),
            "mean_error_x100": symmetric.get("mean_error_x100"),
            "within_005": within(symmetric, 0.05),
            "within_010": within(symmetric, 0.1),
            "curve": symmetric.get("curve"),
        },
        "thresholds": report["thresholds"],
        "curve": report["curve"],
        "shapes": report["shapes"],
        **facts,
    }


def _trained(
    row: Row, dataset: Any, folder: Path, settings: dict[str, Any], workers: int, progress: Progress | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    from acnn.methods.run import open_run
    from acnn.runs.evaluate import evaluate_run
    from acnn.runs.train import train_run
    from acnn.training.config import preset_config

    changes = {"core_minutes": settings["core_minutes"], "seed": settings["seed"]}
    config = preset_config(row.preset).with_changes(changes)
    began = time.process_time()
    facts: dict[str, Any] = {}
    if not (folder / "trained.json").is_file():
        facts, _ = train_run(
            dataset, folder, config, train_list=settings["train"], resume=True, workers=workers, progress=progress
        )
        spent = facts.get("core_seconds", time.process_time() - began) / 60
        (folder / "trained.json").write_text(json.dumps({"core_minutes": spent, "steps": facts.get("step")}))
    trained = json.loads((folder / "trained.json").read_text())
    report, failures = evaluate_run(
        folder, dataset, test_list=settings["test"], refinement="none", workers=workers, progress=progress
    )
    if failures:
        raise InputError(f"{failures[0].item}: {failures[0].why}")
    return report, {
        "parameters": open_run(folder).matcher.parameter_count,
        "training_core_minutes": trained["core_minutes"],
        "steps": trained["steps"],
        "seconds_per_shape": report["seconds_per_shape"],
    }


def _matched_in_pairs(
    match: Callable[..., Any], dataset: Any, test: str, progress: Progress | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Match every test shape to the reference by a method for two shapes."""
    from acnn.evaluation.distances import ReferenceDistances
    from acnn.evaluation.princeton import evaluate_map, evaluation_report, mirrored
    from acnn.surface.surface import surface_of

    reference = surface_of(dataset.reference, dataset.unit)
    distances = ReferenceDistances(reference)
    plain, symmetric, seconds = [], [], []
    samples = dataset.select(test).samples
    for done, sample in enumerate(samples):
        if progress:
            progress(done, len(samples))
        example = sample.read()
        began = time.perf_counter()
        point_map = match(surface_of(example.shape, dataset.unit), reference, "none", None).a_to_b
        seconds.append(time.perf_counter() - began)
        plain.append(evaluate_map(point_map, example.labels, distances, name=sample.name))
        if dataset.mirror is not None:
            other = mirrored(example.labels, dataset.mirror)
            symmetric.append(evaluate_map(point_map, example.labels, distances, mirrored_truth=other, name=sample.name))
    report = evaluation_report(plain, distances.normalisation, symmetric=symmetric or None)
    return report, {
        "parameters": 0,
        "training_core_minutes": 0.0,
        "steps": None,
        "seconds_per_shape": sum(seconds) / len(seconds),
    }


def within(report: dict[str, Any], threshold: float) -> float | None:
    """Fraction of matches with an error of at most a threshold, interpolated on the curve."""
    import numpy as np

    if not report.get("curve"):
        return None
    thresholds = report.get("thresholds") or list(np.linspace(0.0, 0.3, len(report["curve"])))
    return float(np.interp(threshold, thresholds, report["curve"]))


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The comparison as a table in Markdown."""
    from acnn.methods.registry import METHODS

    head = (
        *("row", "settings", "representation", "input", "generalisable", "filters", "context", "directional", "task"),
        *("exact", "error x 100", "< 0.05", "< 0.1", "sym. error", "sym. < 0.05", "sym. < 0.1"),
        *("parameters", "core-minutes", "s a shape"),
    )
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, row in rows.items():
        method = METHODS.get(row["method"])
        cells = [""] * 7
        if method is not None:
            cells = [
                str(value) if not isinstance(value, bool) else "yes" if value else "no"
                for value in asdict(method.properties).values()
            ]
        other = row["symmetric"]
        figures = [
            _percent(row["exact"]),
            f"{row['mean_error_x100']:.2f}",
            _percent(row["within_005"]),
            _percent(row["within_010"]),
            "" if other["mean_error_x100"] is None else f"{other['mean_error_x100']:.2f}",
            _percent(other["within_005"]),
            _percent(other["within_010"]),
            f"{row['parameters']:,}",
            f"{row['training_core_minutes']:.1f}",
            f"{row['seconds_per_shape']:.2f}",
        ]
        lines.append("| " + " | ".join([name, row["terms"], *cells, *figures]) + " |")
    return "\n".join(lines) + "\n"


def draw_curves(rows: dict[str, dict[str, Any]], path: Path) -> None:
    """The paper's figure: symmetric curves solid, asymmetric ones dashed."""
    import io

    from matplotlib.figure import Figure

    from acnn.files import write_atomic

    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.add_subplot()
    for index, (name, row) in enumerate(rows.items()):
        color = f"C{index % 10}"
        axes.plot(row["thresholds"], [100 * x for x in row["curve"]], "--", color=color, linewidth=1)
        if row["symmetric"]["curve"]:
            axes.plot(row["thresholds"], [100 * x for x in row["symmetric"]["curve"]], color=color, label=name)
        else:
            axes.plot([], [], color=color, label=name)
    axes.set(xlabel="geodesic error / sqrt(area)", ylabel="% correspondences", xlim=(0, 0.3), ylim=(0, 100))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, title="solid: symmetric, dashed: asymmetric", title_fontsize=8)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=150)
    write_atomic(path, stream.getvalue())


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


if __name__ == "__main__":
    sys.exit(run_alone(experiment))
