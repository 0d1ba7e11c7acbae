"""Progress display of a command: one animated line in a terminal, one printed line per stage elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from acnn.progress import StagedProgress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import Task
    from rich.text import Text


class Display(StagedProgress, Protocol):
    """Progress of a command, and messages beside it."""

    def message(self, text: str) -> None:
        """Show a line that stays visible."""


@contextmanager
def open_display() -> Iterator[Display]:
    """Open the display of a command on standard error; only one at a time."""
    from rich.console import Console

    console = Console(stderr=True)
    if not (sys.stderr.isatty() and console.is_interactive):
        yield _Lines()
        return
    bar = _moving_bar(console)
    with bar:
        yield _Line(bar)


class _Lines:
    """Plain lines: one at the start of each stage."""

    def __call__(self, done: int, total: int) -> None:
        pass

    def stage(self, name: str) -> _Lines:
        self.message(name)
        return self

    def message(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class _Line:
    """The last line of a terminal: spinner, elapsed time, current stage and its progress."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.task = bar.add_task("starting", total=None)

    def __call__(self, done: int, total: int) -> None:
        self.bar.update(self.task, completed=done, total=total)

    def stage(self, name: str) -> _Line:
        self.bar.tasks[0].total = None  # reset() cannot: it reads None as 'unchanged'
        self.bar.reset(self.task, description=name)
        return self

    def message(self, text: str) -> None:
        # soft_wrap: the terminal wraps long paths itself, so that they can be copied
        self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _moving_bar(console: Console) -> Bar:
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.spinner import Spinner
    from rich.text import Text

    began = time.monotonic()
    spinner = Spinner("dots")

    class Clock(ProgressColumn):
        """Spinner and elapsed time; those of rich stop once a stage has reported its end."""

        def render(self, task: Task) -> Text:
            seconds = time.monotonic() - began
            return Text.assemble(spinner.render(seconds), f" {timedelta(seconds=int(seconds))}")  # type: ignore[arg-type]

    class Count(ProgressColumn):
        """Progress of the stage and the time remaining."""

        def render(self, task: Task) -> Text:
            if task.total is None:
                return Text("")
            left = task.time_remaining
            rest = "" if task.finished or left is None else f", {timedelta(seconds=int(left))} left"
            return Text(f"{int(task.completed)}/{int(task.total)}{rest}")

    return Progress(
        Clock(), TextColumn("{task.description}", markup=False), BarColumn(), Count(), console=console, transient=True
    )
