"""The paper's descriptors compared: how often the true match of a vertex is among its nearest in descriptor space.

    python experiments/table/descriptors.py --data DIR --train 000-059 --query 060 --targets 061-079 --out DIR

Every row describes the query and each target, and is measured by the cumulative match characteristic (hit rates at 1,
10 and 100 neighbours) and the ROC curve, asymmetric and symmetric (`acnn.evaluation.descriptors`). Learned rows are the
runs of `experiments/table/run.py` where --out is the same; they are trained here where they are missing. Each finished
row is kept as JSON (numbers only) in `results/descriptors/` beside this file, or in --results.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from acnn.cli._commands import Output, command
from acnn.cli._program import run_alone
from acnn.errors import InputError
from acnn.progress import Progress, named_stages

sys.path.insert(0, str(Path(__file__).parents[1]))

from rows import (
    MISSING,
    CoreMinutes,
    Data,
    Results,
    Row,
    Rows,
    Seed,
    Train,
    Workers,
    kept_rows,
    known_rows,
    markdown,
    percent,
    read_rows,
    train_row,
)

RESULTS = Path(__file__).parent / "results" / "descriptors"


@dataclass(frozen=True)
class Fixed:
    """A descriptor that is computed, not learned.

    Attributes
    ----------
    settings : dict
        Of `DescriptorSettings`.
    dimension : int
        Columns that are kept, the first principal components of the training shapes; 0 keeps all as they are.
    """

    settings: dict[str, Any]
    dimension: int = 0


ROWS: dict[str, Fixed | Row] = {
    "hks": Fixed({"kinds": ("hks",), "hks_count": 16}),
    "wks": Fixed({"kinds": ("wks",), "wks_count": 16}),
    "shot": Fixed({"kinds": ("shot",), "shot_radii": (12.0,)}),
    "shot-16": Fixed({"kinds": ("shot",), "shot_radii": (12.0,)}, 16),
    "osd": Row("osd", "osd", "as published, log vectors"),
    "add": Row("add", "add", "as published, log vectors"),
    "lscnn-siamese": Row("lscnn", "paper-lscnn", "as published"),
}
"""All have 16 dimensions but `shot`, the input of LSCNN, with 544; names of learned rows are those of the runs."""


@command
def experiment(
    out: Output,
    data: Data,
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Of the runs, as of run.py.")],
    train: Train = "000-059",
    query: Annotated[str, typer.Option(metavar="NAME", help="The shape whose vertices are looked for.")] = "060",
    targets: Annotated[str, typer.Option(metavar="LIST", help="The shapes in which they are.")] = "061-079",
    methods: Rows = "",
    core_minutes: CoreMinutes = 30.0,
    results: Results = RESULTS,
    seed: Seed = 0,
    workers: Workers = 2,
) -> None:
    """Compare descriptors by their hit rates."""
    from acnn.datasets.open import open_dataset

    chosen = known_rows(methods, ROWS)
    dataset = open_dataset(data)
    training, testing = dataset.select(train), dataset.select(f"{query},{targets}")
    settings = {"data": Path(data).name, "train": train, "query": query, "targets": targets}
    settings |= {"core_minutes": core_minutes, "seed": seed}
    budget = {"core_minutes": core_minutes, "seed": seed}

    def compute(name: str) -> dict[str, Any]:
        with out.progress() as progress:
            stages = named_stages(progress, f"{name}: {{}}")
            describe = described(ROWS[name], training, testing, folder / name, budget, workers, stages)
            return compared(describe, dataset, dataset.select(query), dataset.select(targets), stages)

    kept_rows(chosen, results, settings, compute, message=out.message, failed=out.failed)
    records = read_rows(list(ROWS), results)
    if not records:
        raise InputError("No row could be computed.")
    hits = {name: {k: record[k]["hits"] for k in ("symmetric", "asymmetric")} for name, record in records.items()}
    out.result({"rows": list(records), "hits": hits}, human=lambda _: hits_table(records))


def described(
    row: Fixed | Row,
    training: Any,
    testing: Any,
    folder: Path,
    budget: dict[str, Any],
    workers: int,
    progress: Progress | None,
) -> Callable[[str], Any]:
    """A function that gives the (n, q) descriptors of a test shape by its name."""
    from acnn.descriptors.settings import DescriptorSettings
    from acnn.methods.run import open_run
    from acnn.training.prepare import prepare
    from acnn.training.prepared import Needs

    def prepared(dataset: Any, needs: Needs) -> dict[str, Any]:
        shapes, failures = prepare(dataset, needs, workers=workers, progress=progress)
        if failures:
            raise InputError(f"{failures[0].item}: {failures[0].why}")
        return {shape.name: shape for shape in shapes}

    if isinstance(row, Row):
        train_row(row, training, folder, changes=budget, workers=workers, progress=progress)
        run = open_run(folder)
        shapes = prepared(testing, run.needs)
        return lambda name: run.matcher.describe(shapes[name])
    needs = Needs(DescriptorSettings(**row.settings), None)
    shapes = prepared(testing, needs)
    if not row.dimension:
        return lambda name: shapes[name].descriptors()
    examples = [np.asarray(shape.descriptors(), float) for shape in prepared(training, needs).values()]
    count = sum(map(len, examples))
    mean = sum(one.sum(axis=0) for one in examples) / count
    covariance = sum((one - mean).T @ (one - mean) for one in examples) / count
    axes = np.linalg.eigh(covariance)[1][:, : -row.dimension - 1 : -1]
    return lambda name: (shapes[name].descriptors() - mean) @ axes


def compared(
    describe: Callable[[str], Any], dataset: Any, queries: Any, targets: Any, progress: Progress | None
) -> dict[str, Any]:
    """Mean hit rates and curves of the query against all targets."""
    from acnn.evaluation.descriptors import evaluate_descriptors, mean_evaluation

    found = []
    for sample in queries.samples:
        here, labels = describe(sample.name), sample.read().labels
        for done, target in enumerate(targets.samples):
            if progress:
                progress(done, len(targets.samples))
            on_target = np.full(len(dataset.reference.vertices) + 1, -1)  # the last for labels that are unknown
            other = target.read().labels
            on_target[other] = np.where(other >= 0, np.arange(len(other)), -1)
            on_target[-1] = -1
            mirrored = None if dataset.mirror is None else on_target[np.append(dataset.mirror, -1)[labels]]
            found.append(evaluate_descriptors(here, describe(target.name), on_target[labels], mirrored_truth=mirrored))
    return {"dimension": int(here.shape[1]), **mean_evaluation(found).as_dict()}


def hits_table(records: dict[str, dict[str, Any]]) -> str:
    """Hit rates of all rows in Markdown; those without a record are shown as missing."""
    head = ("row", "dimensions", "sym. hit@1", "sym. hit@10", "sym. hit@100", "hit@1", "hit@10", "hit@100", "AUC")
    lines = []
    for name in ROWS:
        record = records.get(name)
        if record is None:
            lines.append([name, f"*{MISSING}*", *[""] * (len(head) - 2)])
            continue
        cells = [name, str(record["dimension"])]
        for kind in ("symmetric", "asymmetric"):
            cells += [percent((record[kind] or {}).get("hits", {}).get(k)) for k in ("1", "10", "100")]
        lines.append([*cells, f"{record['asymmetric']['auc']:.4f}"])
    return markdown(head, lines)


if __name__ == "__main__":
    sys.exit(run_alone(experiment))
