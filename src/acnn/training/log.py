"""The log of a training: `log.jsonl`, and TensorBoard where it is installed."""

from __future__ import annotations

import json
import math
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
            lines = path.read_text().splitlines() if step and path.exists() else []
            kept = [line for line in lines if _step_of(line) <= step]
            write_whole(path, "".join(line + "\n" for line in kept).encode())

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


def _tensorboard(folder: Path, step: int) -> Any:
    """A TensorBoard writer where TensorBoard is installed (extra `log`), else None."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=step + 1)


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError):  # the last line of a run that was killed while writing it
        return math.inf
