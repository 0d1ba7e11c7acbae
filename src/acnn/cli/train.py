"""`acnn train`: train a network on a dataset and write a run folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acnn.cli._commands import Output, counted, long_command
from acnn.cli._options import (
    Changes,
    Force,
    RunFolder,
    TrainingSeed,
    Workers,
    datasets,
    one_of,
    presets,
    settings_of,
    trained_methods,
)
from acnn.errors import InputError

if TYPE_CHECKING:
    from acnn.training.config import RunConfig


@long_command
def train(
    out: Output,
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="'humans', 'faust' or a folder of shapes.", autocompletion=datasets),
    ],
    folder: RunFolder,
    preset: Annotated[
        str | None,
        typer.Option(
            help="A preset or a .toml file; by default that of the method ('quick' for acnn).", autocompletion=presets
        ),
    ] = None,
    changes: Changes = None,
    arch: Annotated[str | None, typer.Option(help="Architecture, e.g. FC64+IC64+FC256+Softmax.")] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="What to train, see 'acnn methods'; by default that of the preset.", autocompletion=trained_methods
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="labels|segmentation|descriptor",
            help="What the network is trained for.",
            autocompletion=one_of("labels", "segmentation", "descriptor"),
        ),
    ] = None,
    classes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For segmentation: class of every reference vertex (.txt, .npy); default: those of the dataset.",
        ),
    ] = None,
    labels: Annotated[
        str,
        typer.Option(
            metavar="known|none",
            help="'none' learns from shapes of one kind without reading any label.",
            autocompletion=one_of("known", "none"),
        ),
    ] = "known",
    reference: Annotated[
        str | None,
        typer.Option(metavar="SHAPE", help="With --labels none: name of a shape or a file; default: the most central."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training shapes.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Time budget in place of epochs; results depend on the machine.")
    ] = None,
    train_list: Annotated[
        str | None, typer.Option("--train", metavar="LIST", help="Training shapes, e.g. 000-059,065.")
    ] = None,
    val_list: Annotated[
        str | None, typer.Option("--val", metavar="LIST", help="Validation shapes, used for model selection.")
    ] = None,
    seed: TrainingSeed = None,
    workers: Workers = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run, with its settings and shapes unless others are given.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List which shapes would be used, and why others not; compute nothing.")
    ] = False,
    force: Force = False,
) -> None:
    """Train a network: to match shapes to the reference of a dataset, to label classes, or to describe points.

    With --labels none, a folder of shapes of one kind is enough: they are matched by descriptors, a network learns from
    the maps that agree with each other, and matches them again.
    """
    from acnn.runs.train import config_of_method, train_run

    named = {"architecture": arch, "epochs": epochs, "minutes": minutes, "seed": seed}
    given = {key: value for key, value in named.items() if value is not None}
    unlabelled = _is_unlabelled(labels, reference, val_list, classes, dry_run)
    if unlabelled and method in (None, "acnn") and preset is None:
        preset = "unlabelled"
    begun = folder / "config.toml"
    started = begun.is_file() and (folder / "run.json").is_file()
    if resume and not unlabelled and preset is method is task is None and started:
        preset = str(begun)
    config = config_of_method(method, preset, task).with_changes(settings_of(changes) | given)

    if dry_run:
        from acnn.runs.train import plan_training

        with out.progress() as progress:
            plan = plan_training(
                data, config, train_list=train_list, val_list=val_list, classes=classes, progress=progress
            )
        out.result(plan, human=_plan_text)
        return

    def report(step: dict[str, Any]) -> None:
        if "validation_exact" in step:
            out.message(
                f"step {step['step']}: loss {step['loss']:.3f}, validation {step['validation_exact']:.1%} exact"
            )

    options: dict[str, Any] = {"train_list": train_list, "resume": resume, "force": force, "workers": workers}
    if unlabelled:
        train_without_labels(out, data, folder, config, reference=reference, **options)
        return
    with out.progress() as progress, _hint_of_resuming(out, folder):
        facts, failures = train_run(
            data, folder, config, val_list=val_list, classes=classes, progress=progress, report=report, **options
        )
    out.result({"run": str(folder), **facts}, human=_text, failures=failures)


def _is_unlabelled(
    labels: str, reference: str | None, val_list: str | None, classes: Path | None, dry_run: bool
) -> bool:
    """Whether no labels are to be read; raises InputError where other options contradict that."""
    if labels not in ("known", "none"):
        raise InputError(f"--labels {labels}: use 'none', or leave it out.")
    if labels == "known" and reference is not None:
        raise InputError("--reference is for --labels none; labelled data have their own reference.")
    if labels == "none" and (val_list is not None or classes is not None or dry_run):
        raise InputError("--labels none takes neither --val, --classes nor --dry-run.")
    return labels == "none"


def train_without_labels(out: Output, data: str | Path, folder: Path, config: RunConfig, **options: Any) -> None:
    """Run `train_unlabelled` with some options; report its failures, and a line for the maps of each round."""
    from acnn.runs.unlabelled import train_unlabelled

    with out.progress() as progress, _hint_of_resuming(out, folder):
        record, failures = train_unlabelled(data, folder, config, progress=progress, **options)
    out.result({"run": str(folder), **record}, human=_unlabelled_text, failures=failures)


def _unlabelled_text(facts: dict[str, Any]) -> str:
    lines = [_text(facts), f"reference: {facts['reference']}"]
    for number, maps in enumerate(facts["rounds"], 1):
        when = f"round {number}" if number < len(facts["rounds"]) else "at the end"
        lines.append(
            f"{when}: maps by {maps['maps_by']}, {maps['kept']} of {len(facts['train'])} kept, "
            f"{maps['consistent']:.0%} consistent, cycle error {maps['cycle_error_x100']:.1f} (x 100), "
            f"confidence {maps['mean_confidence']:.2f}"
        )
    return "\n".join(lines)


@contextmanager
def _hint_of_resuming(out: Output, folder: Path) -> Iterator[None]:
    """After an interruption, report what was kept."""
    try:
        yield
    except KeyboardInterrupt:
        if (folder / "checkpoint.safetensors").is_file():
            out.message(f"{folder}: kept up to the last checkpoint. To continue, add --resume to the command.")
        elif (folder / "run.json").is_file():
            out.message(f"{folder}: no checkpoint was written yet. To start again, add --resume to the command.")
        raise


def _plan_text(plan: dict[str, Any]) -> str:
    lines = [f"{plan['data']}: method {plan['method']}, {plan['reference_vertices']} vertices of the reference"]
    for use in ("train", "validation"):
        lines.append(f"{use} ({len(plan[use])})")
        lines += [f"  {name}  {plan['vertices'][name]} vertices" for name in plan[use]]
    if plan["augmented"]:
        lines.append(f"and {plan['augmented']} shapes made of the training shapes")
    lines.append(f"not used ({len(plan['unused'])})")
    lines += [f"  {item['name']}  {item['why']}" for item in plan["unused"]]
    return "\n".join(lines)


def _text(facts: dict[str, Any]) -> str:
    validated = ""
    if "validation_exact" in facts:
        validated = f", {facts['validation_exact']:.1%} exact in validation (step {facts['best_step']}, which is kept)"
    return (
        f"{facts['run']}: {counted(facts.get('step', 0), 'step')} on {counted(len(facts['train']), 'shape')} in "
        f"{facts['seconds_training']:.0f} s, loss {facts.get('loss', float('nan')):.3f}{validated}"
        + (f"\nwarning: {facts['notice']}" if "notice" in facts else "")
    )
