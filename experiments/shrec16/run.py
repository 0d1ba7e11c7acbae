"""The paper's partial experiment (section 6.3): for each class, learn from some parts and match others.

    python experiments/shrec16/run.py --data DIR --kind cuts|holes --train 1-9 --test 10-12 --out DIR
        [--classes cat,dog] [--json]

Every class has a whole shape of its own, and so a network of its own, in DIR/KIND/CLASS. Prints what `acnn evaluate`
prints, over the test parts of all classes. What was stopped goes on. README.md beside this file has the results.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from acnn.cli._commands import Output, command
from acnn.cli._options import Changes, settings_of
from acnn.cli._program import run_alone
from acnn.cli.evaluate import report_text
from acnn.evaluation import ShapeEvaluation, evaluation_report


@dataclass(frozen=True)
class Job:
    """One class: where its data is, what to learn from and match, where results go."""

    root: Path
    kind: str
    cls: str
    train: str
    test: str
    folder: Path
    preset: str
    settings: dict[str, Any]
    refinement: str


@command
def experiment(
    out: Output,
    data: Annotated[Path, typer.Option(metavar="DIR", help="SHREC'16 Partial, or what 'acnn data parts' wrote.")],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the runs and all results.")],
    kind: Annotated[str, typer.Option(metavar="cuts|holes", help="Which partial shapes.")] = "cuts",
    train: Annotated[str, typer.Option(metavar="LIST", help="Numbers of the training shapes of every class.")] = "1-9",
    test: Annotated[str, typer.Option(metavar="LIST", help="Numbers of the test shapes.")] = "10-12",
    classes: Annotated[str, typer.Option(metavar="LIST", help="Only these, such as cat,dog.")] = "",
    preset: Annotated[str, typer.Option(help="best-partial, paper-shrec16, or a .toml file.")] = "best-partial",
    changes: Changes = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    refine: Annotated[str, typer.Option(metavar="none|pfm", help="Refine the matches as well.")] = "pfm",
    workers: Annotated[int, typer.Option(help="Classes at a time, each on one core.")] = 2,
) -> None:
    """Learn from some parts of every class and match others to the whole shapes."""
    from acnn.datasets.shrec16 import locate_shrec16, open_shrec16, shrec16_classes
    from acnn.errors import InputError
    from acnn.evaluation.curves import report_curves, write_curves
    from acnn.evaluation.published import PUBLISHED
    from acnn.files import write_atomic
    from acnn.training.config import preset_config
    from acnn.training.parallel import run_in_processes

    began = time.perf_counter()
    place = locate_shrec16(data)
    if place is None or kind not in ("cuts", "holes"):
        raise InputError(f"{data}, {kind}: give the folder with null/, cuts/ and holes/, and one of cuts and holes.")
    root = place[0]
    wanted = [c for c in classes.split(",") if c] or list(shrec16_classes(root, kind))
    for cls in wanted:
        dataset = open_shrec16(root, kind, cls)
        dataset.select(train)
        dataset.select(test)
    settings: dict[str, Any] = {"cut_kind": kind, **settings_of(changes)} | ({} if seed is None else {"seed": seed})
    config = preset_config(preset).with_changes(settings)
    jobs = [Job(root, kind, cls, train, test, folder / kind / cls, preset, settings, refine) for cls in wanted]
    found: dict[str, dict[str, Any]] = {}
    results = run_in_processes(run_class, jobs, min(workers, len(jobs)))
    with out.progress("classes") as progress, closing(results):
        for index, result in results:
            if isinstance(result, str):
                raise RuntimeError(f"{wanted[index]}: {result}")
            found[wanted[index]] = result
            out.message(f"{wanted[index]}: {summary(result)}")
            progress(len(found), len(jobs))
    for cls in wanted:
        for failure in found[cls]["failed"]:
            out.failed(f"{cls}: {failure['item']}", failure["why"])
    report = joined([found[cls] for cls in wanted])
    report |= {"kind": kind, "preset": preset, "seed": config.train.seed, "train": train, "test": test}
    report["classes"] = {cls: summary(found[cls]) for cls in wanted}
    report["by_missing"] = by_missing([part for cls in wanted for part in found[cls]["parts"]])
    report["seconds"] = time.perf_counter() - began
    write_curves(
        folder / f"curves_{kind}",
        report_curves(report),
        report["normalisation"],
        published=PUBLISHED[f"shrec16-{kind}-error"],
        title=f"SHREC'16 {kind}, parts {test}",
    )
    write_atomic(folder / f"results_{kind}.json", json.dumps(report, indent=1).encode())
    out.result(report, human=text)


def run_class(job: Job) -> dict[str, Any]:
    """Prepare, train, match and evaluate one class; what was found is kept in `result.json`."""
    import torch

    from acnn.datasets.shrec16 import open_shrec16, with_full_shape
    from acnn.evaluation.results import Matched
    from acnn.files import write_atomic
    from acnn.runs.evaluate import evaluate_run
    from acnn.runs.train import train_run
    from acnn.surface import surface_of
    from acnn.training.config import preset_config

    result_file = job.folder / "result.json"
    asked = json.loads(json.dumps([job.train, job.test, job.preset, job.settings, job.refinement]))
    if result_file.is_file() and (done := json.loads(result_file.read_text())).get("asked") == asked:
        return dict(done)
    torch.set_num_threads(1)
    dataset = open_shrec16(job.root, job.kind, job.cls)
    config = preset_config(job.preset).with_changes(job.settings)
    trained, failures = train_run(with_full_shape(dataset.select(job.train)), job.folder, config, resume=True)
    whole = float(surface_of(dataset.reference, dataset.unit).vertex_areas.sum())
    found: list[dict[str, Any]] = []

    def keep(matched: Matched) -> None:
        kinds = ("evaluation", "symmetric", "refined_evaluation", "refined_symmetric")
        area = float(surface_of(matched.example.shape, dataset.unit).vertex_areas.sum())
        figures = {kind: figures_of(getattr(matched, kind)) for kind in kinds}
        found.append({"name": matched.name, "missing": 1 - area / whole, **figures})

    report, more = evaluate_run(job.folder, dataset, test_list=job.test, refinement=job.refinement, keep=keep)
    result = {
        "class": job.cls,
        "asked": asked,
        "parts": found,
        "normalisation": report["normalisation"],
        "failed": [asdict(failure) for failure in (*failures, *more)],
        **{key: trained[key] for key in ("step", "seconds_preparing", "seconds_training", "core_seconds")},
    }
    write_atomic(result_file, json.dumps(result).encode())
    return result


def joined(results: list[dict[str, Any]]) -> dict[str, Any]:
    """One report over the parts of all classes, every part counting the same."""
    parts = [part for result in results for part in result["parts"]]

    def of(kind: str) -> list[ShapeEvaluation] | None:
        if any(part[kind] is None for part in parts):
            return None
        return [evaluation_of(part["name"], part[kind]) for part in parts]

    shapes = of("evaluation")
    assert shapes is not None
    report = evaluation_report(
        shapes,
        results[0]["normalisation"],
        symmetric=of("symmetric"),
        refined=of("refined_evaluation"),
        refined_symmetric=of("refined_symmetric"),
    ).as_dict()
    for entry, part in zip(report["shapes"], parts, strict=True):
        entry["missing"] = part["missing"]
    return report


def by_missing(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean errors of the parts that lack about the same share of the whole's area."""
    rows = []
    for low in np.arange(0.0, 1.0, 0.1):
        some = [part for part in parts if low <= part["missing"] < low + 0.1]
        if some:
            row: dict[str, Any] = {"missing": [round(float(low), 1), round(float(low) + 0.1, 1)], "parts": len(some)}
            rows.append(row | errors_of(some))
    return rows


def errors_of(parts: list[dict[str, Any]]) -> dict[str, float]:
    """Mean errors x 100 over parts, `network` and `refined`, also `network_symmetric` and `refined_symmetric`."""
    kinds = {"network": "evaluation", "refined": "refined_evaluation"}
    kinds |= {"network_symmetric": "symmetric", "refined_symmetric": "refined_symmetric"}
    known = {name: kind for name, kind in kinds.items() if all(part[kind] for part in parts)}
    return {name: float(np.mean([part[kind]["mean_error_x100"] for part in parts])) for name, kind in known.items()}


def text(report: dict[str, Any]) -> str:
    """A table of the figures, and one line a class."""
    lines = [
        f"{report['kind']}, {report['preset']}, seed {report['seed']}: learned from parts {report['train']}, matched "
        f"parts {report['test']} of {len(report['classes'])} classes, in {report['seconds'] / 60:.1f} minutes",
        report_text(report),
    ]
    lines += [f"  {cls:12} {figures}" for cls, figures in report["classes"].items()]
    kinds = [kind for kind in report["by_missing"][0] if kind not in ("missing", "parts")]
    lines.append(f"fraction of the area missing, parts, mean error x 100 ({', '.join(kinds)}):")
    for row in report["by_missing"]:
        errors = "  ".join(f"{row[kind]:6.2f}" for kind in kinds if kind in row)
        lines.append(f"  {row['missing'][0]:.1f}-{row['missing'][1]:.1f}  {row['parts']:3d}  {errors}")
    return "\n".join(lines)


def summary(result: dict[str, Any]) -> str:
    """Mean errors of one class in words."""
    words = ", ".join(f"{name} {value:.2f}" for name, value in errors_of(result["parts"]).items())
    return f"mean error x 100: {words} ({result['step']} steps)"


def figures_of(evaluation: ShapeEvaluation | None) -> dict[str, Any] | None:
    """An evaluation in types that JSON knows, without the error of every vertex."""
    if evaluation is None:
        return None
    kept = ("exact", "mean_error_x100", "auc", "coverage", "flipped")
    figures = {key: getattr(evaluation, key) for key in kept} | {"curve": evaluation.curve.tolist()}
    return figures | {"per_map": figures_of(evaluation.per_map)}


def evaluation_of(name: str, figures: dict[str, Any]) -> ShapeEvaluation:
    """The evaluation that `figures_of` took apart."""
    whole = figures.get("per_map")
    per_map = evaluation_of(name, whole) if whole else None
    return ShapeEvaluation(name=name, errors=np.zeros(0), **(figures | {"per_map": per_map}))


if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    sys.exit(run_alone(experiment))
