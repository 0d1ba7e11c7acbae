"""The training loop.

Whatever is random at a step is drawn from the seed and the step's number alone, so that a run of some steps which was
stopped and resumed from its checkpoint takes exactly the steps that it would have taken. Where time is the budget, the
clock decides how many steps there are and, unless it is constant, the rate.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from acnn.errors import InputError, TrainingError
from acnn.network.model import ShapeNetwork, save_model, start_from
from acnn.shapes.mesh import Mesh
from acnn.training.checkpoint import Progress, read_checkpoint, run_identity, write_checkpoint
from acnn.training.config import RunConfig, TrainSettings
from acnn.training.log import Log
from acnn.training.parallel import Processes
from acnn.training.tasks import Task, TrainingShape

CHECKPOINT_SECONDS = 60.0
"""A checkpoint is written after this much training at the latest."""

WINDOW = 100
"""Steps over which a loss is averaged to see whether it falls; the first tens of any training are above chance."""

WHY_NOTHING_IS_LEARNED = (
    "Either the labels of the shapes contradict each other (shapes of several kinds in one folder, or vertices in "
    "another order than the reference's): name shapes that belong together with --train. Or the rate does not suit: "
    "--set learning_rate=..."
)


StepReport = Callable[[dict[str, Any]], None]
"""Called after each step with `step, steps, epoch, loss, accuracy, seconds, seconds_left` and what else is known."""


@contextmanager
def _deterministic() -> Iterator[None]:
    """Operations that give the same in every run; afterwards what was in force before."""
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")  # use_deterministic_algorithms would load torch's compiler: seconds
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


@_deterministic()
def train(
    shapes: Sequence[TrainingShape],
    task: Task,
    config: RunConfig,
    folder: Path,
    *,
    validation: Sequence[TrainingShape] = (),
    reference: Mesh | None = None,
    resume: bool = False,
    start: ShapeNetwork | None = None,
    report: StepReport | None = None,
    metadata: dict[str, Any] | None = None,
) -> ShapeNetwork:
    """Train a network for a task, and leave the run in a folder.

    Files: `model.safetensors`, the best by validation (the last where there is none); `checkpoint.safetensors`;
    `log.jsonl`, one line for each step and validation; and `tensorboard/` where TensorBoard is installed.

    Parameters
    ----------
    shapes : Sequence[TrainingShape]
        To train on; vertices labelled -1 do not count.
    task : Task
        What the network is trained for.
    config : RunConfig
        All settings.
    folder : Path
        Of the run.
    validation : Sequence[TrainingShape]
        Shapes that choose the best model.
    reference : Mesh or None
        What labels refer to, by which a resumed training is recognised.
    resume : bool
        Continue from the folder's checkpoint, up to the budget that `config` has now.
    start : ShapeNetwork or None
        Network whose weights the training starts from, as for `start_from`; its standardisation of the descriptors
        stays.
    report : StepReport or None
        Called after each step.
    metadata : dict[str, Any] or None
        Kept in the model's file.
    """
    settings = config.train
    if not shapes:
        raise InputError("There is no shape to train on.")
    processes = Processes()
    if settings.shapes_per_step < processes.count:
        raise InputError(
            f"{processes.count} processes share the shapes of a step, and there is {settings.shapes_per_step} of them: "
            f"train with --set shapes_per_step={processes.count}, or fewer processes."
        )
    torch.manual_seed(settings.seed)
    model = task.build(shapes, validation)
    if start is not None:
        start_from(model, start)
    optimiser = torch.optim.AdamW(
        parameter_groups(model, settings.weight_decay), lr=settings.learning_rate, betas=(0.9, 0.999)
    )
    progress = Progress()
    checkpoint = folder / "checkpoint.safetensors"
    identity = run_identity(config, [shape.name for shape in shapes], reference)
    if resume and checkpoint.exists():
        progress = read_checkpoint(checkpoint, model, optimiser, identity)
    per_epoch = math.ceil(len(shapes) / settings.shapes_per_step)
    steps = settings.steps or per_epoch * settings.epochs
    clock = _Clock(progress)
    saved = progress.seconds
    chance, recent = task.chance, deque[float](maxlen=2 * WINDOW)

    def part_done() -> float:
        if settings.minutes:
            return progress.seconds / (60 * settings.minutes)
        if settings.core_minutes:
            return progress.core_seconds / (60 * settings.core_minutes)
        return progress.step / steps

    with Log(folder / "log.jsonl", progress.step, active=processes.rank == 0) as log:
        while (share := processes.agreed(part_done())) < 1.0:
            rate = learning_rate(settings, share)
            for group in optimiser.param_groups:
                group["lr"] = rate
            epoch, within = divmod(progress.step, per_epoch)
            order = np.random.default_rng([settings.seed, epoch]).permutation(len(shapes))
            chosen = order[within * settings.shapes_per_step : (within + 1) * settings.shapes_per_step]
            clock.start()
            loss, target_loss, accuracy = _step(
                model, optimiser, task, shapes, chosen, settings, progress.step, processes
            )
            progress.step += 1
            clock.stop()
            if not math.isfinite(loss):
                raise TrainingError(_diverged(f"The loss is {loss}", progress, settings, checkpoint))
            recent.append(target_loss)
            if _stuck_above(chance, recent):
                raise TrainingError(
                    f"The loss at step {progress.step} is {target_loss:.2f} and no longer falls, which is worse than "
                    f"guessing at random ({chance:.2f}). {WHY_NOTHING_IS_LEARNED}"
                )
            done = max(part_done(), 1e-9)
            facts: dict[str, Any] = {
                "step": progress.step,
                "steps": None if settings.minutes or settings.core_minutes else steps,
                "epoch": epoch,
                "loss": loss,
                "accuracy": accuracy,
                "learning_rate": rate,
                "seconds": progress.seconds,
                "core_seconds": progress.core_seconds,
                "seconds_left": max(0.0, progress.seconds * (1 / done - 1)),
            }
            finished = processes.agreed(part_done()) >= 1.0
            epochs, rest = divmod(progress.step, per_epoch)
            due = finished or (rest == 0 and epochs % settings.validate_every == 0)
            if finished and (latest := np.mean(list(recent)[-per_epoch:])) > chance:
                facts["notice"] = (
                    f"At the end the loss is {latest:.2f}, which is worse than guessing at random "
                    f"({chance:.2f}). Train for longer, if it is still falling. {WHY_NOTHING_IS_LEARNED}"
                )
            if due or processes.agreed(progress.seconds - saved) > CHECKPOINT_SECONDS:
                processes.average_buffers(model)
                if not all(bool(tensor.isfinite().all()) for tensor in model.state_dict().values()):
                    # A checkpoint of this would replace the last good one.
                    raise TrainingError(_diverged("A weight is not finite", progress, settings, checkpoint))
                if due and validation:
                    exact = task.score(model, validation)
                    if exact > progress.best:
                        progress.best, progress.best_step = exact, progress.step
                        if processes.rank == 0:
                            save_model(model, folder / "model.safetensors", _about(config, metadata, progress))
                    facts |= {"validation_exact": exact, "best_exact": progress.best, "best_step": progress.best_step}
                if processes.rank == 0:
                    write_checkpoint(checkpoint, model, optimiser, progress, identity)
                saved = progress.seconds
            log.write(facts)
            if report:
                report(facts)
    if processes.rank == 0 and (not validation or not (folder / "model.safetensors").exists()):
        save_model(model, folder / "model.safetensors", _about(config, metadata, progress))
    return model


def parameter_groups(model: torch.nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameters with the weight decay that each is to have.

    Weights that are multiplied with features decay. Biases, and the scales and shifts of normalisation, do not: they
    are not what makes a function rough, and pulling them to 0 only moves its mean.

    Parameters
    ----------
    model : torch.nn.Module
        Its matrices (arrays of two and more dimensions) are the weights.
    weight_decay : float
        Of the weights.

    Returns
    -------
    list of dict
        Parameter groups of an optimiser: weights, then the rest.
    """
    weights = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    return [{"params": weights, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def learning_rate(settings: TrainSettings, share: float) -> float:
    """The rate after a fraction of the training: constant, or a cosine up over 30 % and down to nothing."""
    if settings.schedule == "constant":
        return settings.learning_rate
    warm = 0.3
    if share < warm:
        return settings.learning_rate * (0.04 + 0.96 * 0.5 * (1 - math.cos(math.pi * share / warm)))
    return settings.learning_rate * (1e-4 + 0.5 * (1 + math.cos(math.pi * min(1.0, (share - warm) / (1 - warm)))))


def _step(
    model: ShapeNetwork,
    optimiser: torch.optim.Optimizer,
    task: Task,
    shapes: Sequence[TrainingShape],
    chosen: NDArray[np.int64],
    settings: TrainSettings,
    step: int,
    processes: Processes,
) -> tuple[float, float, float]:
    """One step on some shapes, distributed over processes.

    Returns
    -------
    tuple of float
        The loss, the part of it that measures the targets (without `l2`), and the accuracy, means over the shapes.
    """
    model.train()
    optimiser.zero_grad(set_to_none=True)
    total, targets, right = 0.0, 0.0, 0.0
    for place, index in enumerate(chosen):
        if place % processes.count != processes.rank:
            continue
        rng = np.random.default_rng([settings.seed, step, place])
        torch.manual_seed(int(rng.integers(2**62)))  # dropout
        loss, accuracy = task.loss(model, shapes, int(index), rng)
        targets += float(loss.detach()) / len(chosen)
        if settings.l2:
            loss = loss + settings.l2 * sum((w**2).sum() for w in model.parameters() if w.ndim > 1)
        (loss / len(chosen)).backward()
        total += float(loss.detach()) / len(chosen)
        right += accuracy / len(chosen)
    processes.sum_gradients(model)
    optimiser.step()
    return processes.sum(total), processes.sum(targets), processes.sum(right)


def _stuck_above(chance: float, recent: Sequence[float]) -> bool:
    """Whether the loss of the last `WINDOW` steps is above chance, and not below that of as many steps before."""
    if len(recent) < 2 * WINDOW:
        return False
    before, now = np.mean(list(recent)[:WINDOW]), np.mean(list(recent)[WINDOW:])
    return bool(now > chance and now > 0.99 * before)


def _diverged(what: str, progress: Progress, settings: TrainSettings, checkpoint: Path) -> str:
    stays = f" The checkpoint before that stays in {checkpoint.parent}." if checkpoint.exists() else ""
    return (
        f"{what} at step {progress.step}: the training diverges. Train into another folder with a lower rate than "
        f"{settings.learning_rate:g} (--set learning_rate=...).{stays}"
    )


class _Clock:
    """Time spent on steps alone, on the wall and on all cores; validating and saving do not count."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.start()

    def start(self) -> None:
        self.wall, self.cores = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.progress.seconds += time.perf_counter() - self.wall
        self.progress.core_seconds += time.process_time() - self.cores


def _about(config: RunConfig, metadata: dict[str, Any] | None, progress: Progress) -> dict[str, Any]:
    return {"config": config.as_dict(), "progress": asdict(progress), **(metadata or {})}
