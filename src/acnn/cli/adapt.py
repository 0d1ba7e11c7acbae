"""`acnn adapt`: continue training a model on unlabelled shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from acnn.cli._commands import Output, long_command
from acnn.cli._options import Changes, Force, RunFolder, TrainingSeed, Workers, models, settings_of
from acnn.cli.train import train_without_labels


@long_command
def adapt(
    out: Output,
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Run folder, or 'humans', the pretrained model.", autocompletion=models),
    ],
    data: Annotated[Path, typer.Argument(metavar="FOLDER", help="Shapes of the kind that it was trained on.")],
    folder: RunFolder,
    changes: Changes = None,
    minutes: Annotated[
        float | None, typer.Option(help="Time budget in place of steps; results depend on the machine.")
    ] = None,
    train_list: Annotated[
        str | None, typer.Option("--train", metavar="LIST", help="Shapes to adapt to, e.g. 000-009.")
    ] = None,
    seed: TrainingSeed = None,
    workers: Workers = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    force: Force = False,
) -> None:
    """Adapt a trained model to a folder of unlabelled shapes; the model itself stays as it is.

    The model matches the shapes, and learns from those of its maps that agree with each other.
    """
    from acnn.methods.run import open_run
    from acnn.runs.unlabelled import adapted_config

    named = {"minutes": minutes, "seed": seed}
    given = {key: value for key, value in named.items() if value is not None}
    run = open_run(model)
    config = adapted_config(run).with_changes(settings_of(changes) | given)
    train_without_labels(
        out, data, folder, config, start=run, train_list=train_list, resume=resume, force=force, workers=workers
    )
