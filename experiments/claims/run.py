"""Two claims of the paper, tested: that batch normalisation makes no difference, and that dropout is crucial.

    python experiments/claims/run.py --faust DIR --shrec16 DIR --out DIR [--rows bn,no-bn] [--core-minutes 6]

- "We did not experience any noticeable difference in raw performance compared to un-normalized setting" (section
  6.2): rows `bn` and `no-bn`, the layers of the FAUST network with fewer kernels, trained on 000-049 and tested on
  050-059.
- "Dropout was crucial to avoid overfitting on such a small training set" (section 6.3): rows `dropout` and
  `no-dropout`, the network of the partial experiment, trained on cuts 1-9 of one class, tested on cuts 10-12.

The two rows of a pair have the same budget, seed, schedule and data. Each is measured on test shapes and on the shapes
it was trained on: the difference is overfitting. Finished rows are kept as JSON (numbers only) in `results/` beside
this file, or in --results, and are not computed again.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, command
from acnn.cli._options import Changes, settings_of
from acnn.cli._program import run_alone
from acnn.errors import InputError
from acnn.progress import named_stages

sys.path.insert(0, str(Path(__file__).parents[1]))

from rows import (
    MISSING,
    CoreMinutes,
    Results,
    Row,
    Seed,
    Workers,
    error,
    kept_rows,
    known_rows,
    markdown,
    measure,
    percent,
    read_rows,
)

RESULTS = Path(__file__).parent / "results"

FEWER_KERNELS = {"angles": 8, "scales": (4.0, 16.0, 64.0), "shot_radii": (12.0,), "loss_vertices": 1000}
"""Of the FAUST rows: with the paper's 80 kernels a step takes too long for a short budget."""

LAYERS = "FC64+IC64{0}+IC128{0}+IC256{0}+FC1024:linear{0}+FC512{0}+Softmax"
PARTIAL = "IC32+FC1024{0}+FC2048{0}+Softmax"

ROWS = {
    "bn": Row("acnn", "paper-faust", "batch normalisation", FEWER_KERNELS | {"architecture": LAYERS.format("+BN")}),
    "no-bn": Row("acnn", "paper-faust", "without", FEWER_KERNELS | {"architecture": LAYERS.format("")}),
    "dropout": Row("acnn", "paper-shrec16", "dropout", {"architecture": PARTIAL.format("+DO(0.5)")}),
    "no-dropout": Row("acnn", "paper-shrec16", "without", {"architecture": PARTIAL.format("")}),
}
DATA = {"bn": "faust", "no-bn": "faust", "dropout": "shrec16", "no-dropout": "shrec16"}
"""What a row is trained and tested on."""


@command
def experiment(
    out: Output,
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Of the runs.")],
    faust: Annotated[str, typer.Option(metavar="DIR", help="Dataset of the rows bn and no-bn.")] = "",
    train: Annotated[str, typer.Option(metavar="LIST", help="Its training shapes.")] = "000-049",
    test: Annotated[str, typer.Option(metavar="LIST", help="Its test shapes.")] = "050-059",
    shrec16: Annotated[str, typer.Option(metavar="DIR", help="Dataset of the rows dropout and no-dropout.")] = "",
    cls: Annotated[str, typer.Option("--class", metavar="NAME", help="Its class.")] = "wolf",
    train_parts: Annotated[str, typer.Option(metavar="LIST", help="Its training shapes.")] = "1-9",
    test_parts: Annotated[str, typer.Option(metavar="LIST", help="Its test shapes.")] = "10-12",
    rows: Annotated[str, typer.Option(metavar="ROWS", help="Rows to compute; default: all whose data is given.")] = "",
    core_minutes: CoreMinutes = 6.0,
    changes: Changes = None,
    results: Results = RESULTS,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Train with and without batch normalisation, and with and without dropout."""
    from acnn.datasets.open import open_dataset
    from acnn.datasets.shrec16 import with_full_shape

    given = {"faust": faust, "shrec16": f"{shrec16}/cuts/{cls}" if shrec16 else ""}
    lists = {"faust": (train, test), "shrec16": (train_parts, test_parts)}
    chosen = [name for name in known_rows(rows, ROWS) if rows or given[DATA[name]]]
    missing = [DATA[name] for name in chosen if not given[DATA[name]]]
    if missing or not chosen:
        raise InputError(f"Give the data of these rows with --{missing[0] if missing else 'faust and --shrec16'}.")
    shapes: dict[str, Any] = {}
    for where in {DATA[name] for name in chosen}:
        dataset = open_dataset(given[where])
        training, testing = (dataset.select(part) for part in lists[where])
        shapes[where] = with_full_shape(training) if where == "shrec16" else training, training, testing
    asked = settings_of(changes)
    budget = {"core_minutes": core_minutes, "seed": seed}

    def compute(name: str) -> dict[str, Any]:
        row = ROWS[name]
        learned, training, testing = shapes[DATA[name]]
        options: dict[str, Any] = {"changes": budget, "workers": workers}
        changed = Row(row.method, row.preset, row.terms, row.changes | asked)
        with out.progress() as progress:
            options["progress"] = named_stages(progress, f"{name}: {{}}")
            record = measure(changed, learned, testing, folder / name, **options)
            seen = measure(changed, learned, training, folder / name, **options)
        return {**asdict(changed), **record, "training_shapes": {k: seen[k] for k in ("exact", "mean_error_x100")}}

    for where in sorted(shapes):
        settings = {"data": Path(given[where]).name, "train": lists[where][0], "test": lists[where][1], **budget}
        mine = [name for name in chosen if DATA[name] == where]
        kept_rows(mine, results, settings | {"changes": asked}, compute, message=out.message, failed=out.failed)
    records = read_rows(list(ROWS), results)
    if not records:
        raise InputError("No row could be computed.")
    figures = {
        name: {"exact": record["exact"], "training_exact": record["training_shapes"]["exact"]}
        for name, record in records.items()
    }
    out.result({"rows": figures}, human=lambda _: claims_table(records))


def claims_table(records: dict[str, dict[str, Any]]) -> str:
    """All rows in Markdown; those without a record are shown as missing."""
    head = ("row", "data", "steps", "core-minutes", "exact, training", "exact, test", "error x 100, test", "sym. error")
    lines = []
    for name in ROWS:
        record = records.get(name)
        if record is None:
            lines.append([name, DATA[name], f"*{MISSING}*", *[""] * (len(head) - 3)])
            continue
        cells = [name, DATA[name], f"{record['steps']:,}", f"{record['training_core_minutes']:.1f}"]
        cells += [percent(record["training_shapes"]["exact"]), percent(record["exact"]), error(record)]
        lines.append([*cells, error(record["symmetric"])])
    return markdown(head, lines)


if __name__ == "__main__":
    sys.exit(run_alone(experiment))
