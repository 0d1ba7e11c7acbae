"""The log of a training: `log.jsonl`, and TensorBoard where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from acnn.files import write_whole


class Log:
    """One JSON object a line; lines of steps that will be taken again after resuming are dropped."""

    def __init__(self, path: Path, step: int, active: bool) -> None:
        """Open the log of a run that has taken some steps; one that is not active writes nothing."""
        self.path, self.active = path, active
        self.board = _tensorboard(path.parent / "tensorboard", step) if active else None
        if active:
            kept = [facts for facts in read_log(path, "step") if facts["step"] <= step] if step else []
            write_whole(path, "".join(json.dumps(facts) + "\n" for facts in kept).encode())

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
