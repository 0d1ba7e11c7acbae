"""The training log (`log.jsonl`, TensorBoard where installed) and the training curve as a table and an image."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Self

import numpy as np

from acnn.files import write_atomic


class Log:
    """One JSON object a line; lines of steps that will be taken again after resuming are dropped."""

    def __init__(self, path: Path, step: int, active: bool) -> None:
        """Open the log of a run that has taken some steps; one that is not active writes nothing."""
        self.path, self.active = path, active
        self.board = _tensorboard(path.parent / "tensorboard", step) if active else None
        if active:
            kept = [facts for facts in read_log(path, "step") if facts["step"] <= step] if step else []
            write_atomic(path, "".join(json.dumps(facts) + "\n" for facts in kept).encode())

    def write(self, facts: dict[str, Any]) -> None:
        """Add a line."""
        if self.active:
            with self.path.open("a") as stream:
                stream.write(json.dumps(facts) + "\n")
        if self.board is not None:
            for name in ("loss", "accuracy", "learning_rate", "validation_exact"):
                if name in facts:
                    self.board.add_scalar(name, facts[name], facts["step"])
            self.board.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.board is not None:
            self.board.close()


def read_log(path: Path, *keys: str) -> list[dict[str, Any]]:
    """The steps in a log that hold numbers under all of some keys; empty where there is no log.

    Other lines are left out: the last of a run that was killed while writing it may be cut short.
    """
    steps = []
    for line in path.read_text(errors="replace").splitlines() if path.is_file() else []:
        try:
            step = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(step, dict) and all(_is_number(step.get(key)) for key in keys):
            steps.append(step)
    return steps


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _tensorboard(folder: Path, step: int) -> Any:
    """A TensorBoard writer where TensorBoard is installed (extra `log`), else None."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step + 1)


COLUMNS = ("epoch", "step", "core_minutes", "loss", "training_exact", "validation_exact")


def training_curve(log: str | Path) -> list[dict[str, Any]]:
    """Rows of `COLUMNS` from a run's `log.jsonl`, one for each epoch; a last one that was hardly begun is left out.

    Loss and fraction of exact matches are means over the epoch's steps, of the network as it was at each step, with
    dropout; step and core-minutes are those at the epoch's end. `validation_exact` is None where nothing was validated.
    """
    epochs: dict[int, list[dict[str, Any]]] = {}
    for step in read_log(Path(log), "epoch", "step", "core_seconds", "loss", "accuracy"):
        epochs.setdefault(step["epoch"], []).append(step)
    longest = max((len(those) for those in epochs.values()), default=0)
    rows = []
    for epoch, those in epochs.items():
        if 2 * len(those) < longest:
            continue
        found = [step["validation_exact"] for step in those if "validation_exact" in step]
        rows.append(
            {
                "epoch": epoch + 1,
                "step": those[-1]["step"],
                "core_minutes": those[-1]["core_seconds"] / 60.0,
                "loss": float(np.mean([step["loss"] for step in those])),
                "training_exact": float(np.mean([step["accuracy"] for step in those])),
                "validation_exact": found[-1] if found else None,
            }
        )
    return rows


def write_training_curve(folder: str | Path, title: str = "") -> None:
    """Write `training.csv` and `training.png` beside a run's log."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    folder = Path(folder)
    rows = training_curve(folder / "log.jsonl")
    lines = [",".join(COLUMNS)]
    lines += [",".join("" if row[c] is None else f"{row[c]:.6g}" for c in COLUMNS) for row in rows]
    write_atomic(folder / "training.csv", ("\n".join(lines) + "\n").encode())

    figure = Figure(figsize=(7.0, 4.2), dpi=150, layout="constrained")
    share = figure.add_subplot()
    minutes = [row["core_minutes"] for row in rows]
    loss = share.twinx()
    loss.plot(minutes, [row["loss"] for row in rows], color="0.6", linewidth=1.5)
    loss.set_ylabel("loss (grey)")
    loss.set_ylim(bottom=0.0)
    share.plot(minutes, [100 * row["training_exact"] for row in rows], color="C0", label="exact while training")
    found = [
        (row["core_minutes"], 100 * row["validation_exact"]) for row in rows if row["validation_exact"] is not None
    ]
    if found:
        share.plot(*zip(*found, strict=True), "o-", color="C1", markersize=3, label="exact in validation")
    share.set_xlabel("core-minutes of training")
    share.set_ylabel("exact matches, %")
    share.set_xlim(left=0.0)
    share.set_ylim(0.0, 100.5)
    share.grid(alpha=0.3)
    share.legend(loc="upper left", frameon=False, fontsize=8)
    if title:
        share.set_title(title)
    stream = io.BytesIO()
    FigureCanvasAgg(figure).print_png(stream, metadata={"Software": None})
    write_atomic(folder / "training.png", stream.getvalue())
