"""The paper's comparison on SHREC'16 Partial: RF, PFM and ACNN on the same partial shapes, one row each.

    python experiments/table/shrec16.py --data DIR --kind cuts --train 1-9 --test 10-12 --out DIR [--classes horse,dog]
    python experiments/table/shrec16.py --data DIR --kind holes --train 1-6 --test 7-8 --out DIR [--methods rf-wks,pfm]

Every class has its own full shape, and therefore its own run, in OUT/KIND/ROW/CLASS. What is found of a class is kept
as JSON (numbers only) in `results/shrec16/KIND/ROW/CLASS.json` beside this file, or below --results, and is not
computed again. Prints the table over all classes that every kept row has, and writes `table_KIND.md` and
`curves_KIND.png` into --out. Networks have the budget of their presets: 6 core-minutes a class for `acnn`, 100 epochs
for `acnn-published`.
"""

from __future__ import annotations

import json
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

from rows import Results, Row, Rows, Seed, Workers, draw_curves, figures_table, joined, kept_rows, known_rows, measure

RESULTS = Path(__file__).parent / "results" / "shrec16"

ROWS = {
    "rf-wks": Row("rf", "rf-wks", "as published"),
    "rf-shot": Row("rf", "rf-shot", "input of ACNN", {"shot_radii": (4.0, 8.0, 16.0), "upright": True}),
    "pfm": Row("pfm", "", "as published"),
    "acnn-published": Row("acnn", "paper-shrec16", "as published"),
    "acnn": Row("acnn", "best-partial", "best settings"),
}


@command
def experiment(
    out: Output,
    data: Annotated[Path, typer.Option(metavar="DIR", help="SHREC'16 Partial, or what 'acnn data parts' wrote.")],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Of the runs, the table and the figure.")],
    kind: Annotated[str, typer.Option(metavar="cuts|holes", help="Which partial shapes.")] = "cuts",
    train: Annotated[str, typer.Option(metavar="LIST", help="Numbers of the training shapes of every class.")] = "1-9",
    test: Annotated[str, typer.Option(metavar="LIST", help="Numbers of the test shapes.")] = "10-12",
    classes: Annotated[str, typer.Option(metavar="LIST", help="Classes, separated by commas; default: all.")] = "",
    methods: Rows = "",
    changes: Changes = None,
    refine: Annotated[str, typer.Option(metavar="none|pfm", help="Refine the maps of trained methods, too.")] = "none",
    results: Results = RESULTS,
    seed: Seed = 0,
    workers: Workers = 1,
) -> None:
    """Compare random forests, partial functional maps and ACNN on partial shapes."""
    from acnn.datasets.shrec16 import locate_shrec16, open_shrec16, shrec16_classes, with_full_shape
    from acnn.files import write_atomic

    place = locate_shrec16(data)
    if place is None or kind not in ("cuts", "holes"):
        raise InputError(f"{data}, {kind}: give the folder with null/, cuts/ and holes/, and one of cuts and holes.")
    root, chosen = place[0], known_rows(methods, ROWS)
    wanted = [name for name in classes.split(",") if name] or list(shrec16_classes(root, kind))
    datasets = {cls: open_shrec16(root, kind, cls) for cls in wanted}
    for dataset in datasets.values():  # errors before the training, not after it
        dataset.select(train)
        dataset.select(test)
    asked = settings_of(changes)
    settings = {"kind": kind, "train": train, "test": test, "refine": refine, "seed": seed, "changes": asked}
    for name in chosen:
        row = ROWS[name]

        def compute(cls: str, name: str = name, row: Row = row) -> dict[str, Any]:
            dataset = datasets[cls]
            with out.progress() as progress:
                record = measure(
                    row,
                    with_full_shape(dataset.select(train)),
                    dataset.select(test),
                    folder / kind / name / cls,
                    changes={"cut_kind": kind, "seed": seed, **asked},
                    refinement=refine,
                    workers=workers,
                    progress=named_stages(progress, f"{name}, {cls}: {{}}"),
                )
            return {**asdict(row), "class": cls, **record}

        kept_rows(
            wanted,
            results / kind / name,
            settings,
            compute,
            message=lambda line, name=name: out.message(f"{name}, {line}"),
            failed=lambda cls, why, name=name: out.failed(f"{name}, {cls}", why),
        )
    records, shared = class_records(results, kind)
    if not records:
        raise InputError("No row is complete for any class.")
    table = f"{kind}, over {', '.join(shared)}:\n\n{figures_table(ROWS, records)}"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / f"table_{kind}.md", table.encode())
    write_atomic(folder / f"curves_{kind}.png", draw_curves(records))
    out.result({"kind": kind, "classes": shared, "rows": list(records), "out": str(folder)}, human=lambda _: table)


def class_records(results: Path, kind: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """One record a row over the classes that all kept rows have, and these classes.

    Rows over different classes cannot be compared, so a row that lacks a class takes it from all.
    """
    kept: dict[str, dict[str, Any]] = {}
    for name in ROWS:
        files = sorted((results / kind / name).glob("*.json"))
        if files:
            kept[name] = {file.stem: json.loads(file.read_text()) for file in files}
    shared = sorted(set.intersection(*(set(found) for found in kept.values()))) if kept else []
    if not shared:
        return {}, []
    return {name: joined([found[cls] for cls in shared]) for name, found in kept.items()}, shared


if __name__ == "__main__":
    sys.exit(run_alone(experiment))
