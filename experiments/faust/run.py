"""The paper's FAUST experiment (section 6.2): learn from some subjects, match others, in one run folder.

    python experiments/faust/run.py --data DIR --train 000-059 --test 060-079 --out DIR [--preset P] [--json]

Prepares, trains, evaluates and draws the curves; prints what `acnn evaluate` prints. A run that was stopped goes on.
README.md beside this file has the results.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, command
from acnn.cli._options import Changes, settings_of
from acnn.cli._program import run_alone
from acnn.cli.evaluate import report_text
from acnn.errors import InputError
from acnn.progress import named_stages


@command
def experiment(
    out: Output,
    data: Annotated[Path, typer.Option(metavar="DIR", help="FAUST, or the folder that holds it as 'faust'.")],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the run and all results.")],
    train: Annotated[str, typer.Option(metavar="LIST", help="Training shapes.")] = "000-079",
    test: Annotated[str, typer.Option(metavar="LIST", help="Test shapes.")] = "080-099",
    preset: Annotated[
        str, typer.Option(help="best, faust-connectivity, paper-faust, released, or a .toml file.")
    ] = "best",
    changes: Changes = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    refine: Annotated[str, typer.Option(metavar="none|fm|zoomout", help="Refine the matches as well.")] = "none",
    remeshed: Annotated[
        str | None, typer.Option(metavar="LIST", help="Remeshed FAUST shapes to match and refine, too.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Number of processes that prepare shapes.")] = 2,
) -> None:
    """Learn from some subjects of FAUST and match others to tr_reg_000."""
    from acnn.datasets.faust import open_faust, open_remeshed_faust
    from acnn.evaluation.curves import report_curves, write_curves
    from acnn.evaluation.published import FAUST_EXACT, FAUST_REMESHED_ERROR
    from acnn.files import write_atomic
    from acnn.runs.evaluate import evaluate_run
    from acnn.runs.train import train_run
    from acnn.training.config import preset_config
    from acnn.training.log import write_training_curve

    config = preset_config(preset).with_changes(settings_of(changes) | ({} if seed is None else {"seed": seed}))
    seed = config.train.seed
    if remeshed and "valences" in config.descriptors.kinds:
        raise InputError(
            f"Preset {preset} depends on the triangulation that registrations share (descriptors of kind 'valences'), "
            "and remeshed shapes have others: use --preset best-remeshed with --remeshed."
        )
    dataset = open_faust(data)
    dataset.select(test)  # errors before, not after, the training
    tests = {"": (dataset, test, refine, FAUST_EXACT)}
    if remeshed:
        other = open_remeshed_faust(data)
        other.select(remeshed)
        tests["remeshed"] = (other, remeshed, "zoomout", FAUST_REMESHED_ERROR)
    asked = json.loads(json.dumps({"settings": config.as_dict(), "train": train}))
    trained_file = folder / "trained.json"
    facts: dict[str, Any] = json.loads(trained_file.read_text()) if trained_file.is_file() else {}
    if facts.get("asked") != asked:
        with out.progress() as progress:
            record, failures = train_run(
                dataset,
                folder,
                config,
                train_list=train,
                resume=True,
                workers=workers,
                progress=progress,
            )
        for failure in failures:
            out.failed(failure.item, failure.why)
        facts = record | {"asked": asked}
        write_atomic(trained_file, json.dumps(facts, indent=1).encode())
    write_training_curve(folder, f"FAUST {train}, {preset}, seed {seed}")
    reports = {}
    for kind, (shapes, names, refinement, published) in tests.items():
        label = f"{kind} test shapes".strip()
        with out.progress() as progress:
            reports[kind], failures = evaluate_run(
                folder,
                shapes,
                test_list=names,
                refinement=refinement,
                workers=workers,
                progress=named_stages(progress, f"{{}} {label}"),
            )
        for failure in failures:
            out.failed(failure.item, failure.why)
        write_curves(
            folder / (f"curves_{kind}" if kind else "curves"),
            report_curves(reports[kind]),
            reports[kind]["normalisation"],
            published=published,
            title=f"FAUST {kind} {names}",
        )
    report = reports[""] | {key: value for key, value in reports.items() if key}
    kept = ("step", "seconds_preparing", "seconds_training", "core_seconds", "loss")
    report |= {
        "preset": preset,
        "seed": seed,
        "train": train,
        "test": test,
        **{k: facts[k] for k in kept if k in facts},
    }
    write_atomic(folder / "results.json", json.dumps(report, indent=1).encode())
    out.result(report, human=_text)


def _text(report: dict[str, Any]) -> str:
    lines = [
        f"{report['preset']}, seed {report['seed']}: {report['step']} steps in {report['seconds_training'] / 60:.1f} "
        f"minutes ({report['core_seconds'] / 60:.1f} core-minutes) on {report['train']}",
        report_text(report),
    ]
    if "remeshed" in report:
        lines += ["remeshed:", report_text(report["remeshed"])]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(run_alone(experiment))
