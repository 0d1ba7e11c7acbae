"""The paper's comparison on FAUST: every method on the same shapes with the same protocol, one row each.

    python experiments/table/run.py --data DIR --train 000-059 --test 060-079 --out DIR [--methods A,B]

Each finished row is kept as JSON (numbers only) in `results/` beside this file, or in --results, and is not computed
again; --out holds the runs. Prints the table, and writes `table.md`, `table.json` and `curves.png` into --out. Rows
marked 'as published' have the settings of the papers; all others share input (SHOT of radius 12), schedule and budget.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, command
from acnn.cli._program import run_alone
from acnn.errors import InputError
from acnn.progress import named_stages

sys.path.insert(0, str(Path(__file__).parents[1]))

from rows import (
    CoreMinutes,
    Data,
    Results,
    Row,
    Rows,
    Seed,
    Train,
    Workers,
    draw_curves,
    figures_table,
    kept_rows,
    known_rows,
    measure,
    read_rows,
)

RESULTS = Path(__file__).parent / "results"

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
    data: Data,
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Of the runs, the table and the figure.")],
    train: Train = "000-059",
    test: Annotated[str, typer.Option(metavar="LIST", help="Test shapes.")] = "060-079",
    methods: Rows = "",
    core_minutes: CoreMinutes = 30.0,
    results: Results = RESULTS,
    seed: Seed = 0,
    workers: Workers = 2,
) -> None:
    """Compare the methods of the paper on the same shapes."""
    from acnn.datasets.open import open_dataset
    from acnn.files import write_atomic

    chosen = known_rows(methods, ROWS)
    dataset = open_dataset(data)
    training, testing = dataset.select(train), dataset.select(test)  # errors before the training, not after it
    budget = {"core_minutes": core_minutes, "seed": seed}

    def compute(name: str) -> dict[str, Any]:
        row = ROWS[name]
        with out.progress() as progress:
            stages = named_stages(progress, f"{name}: {{}}")
            record = measure(row, training, testing, folder / name, changes=budget, workers=workers, progress=stages)
        return {**asdict(row), **record}

    settings = {"data": Path(data).name, "train": train, "test": test, **budget}
    kept_rows(chosen, results, settings, compute, message=out.message, failed=out.failed)
    records = read_rows(list(ROWS), results)
    if not records:
        raise InputError("No row could be computed.")
    folder.mkdir(parents=True, exist_ok=True)
    table = figures_table(ROWS, records, properties=True)
    write_atomic(folder / "table.md", table.encode())
    write_atomic(folder / "table.json", (json.dumps(records, indent=1) + "\n").encode())
    write_atomic(folder / "curves.png", draw_curves(records))
    out.result({"rows": list(records), "out": str(folder)}, human=lambda _: table)


if __name__ == "__main__":
    sys.exit(run_alone(experiment))
