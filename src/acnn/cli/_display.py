"""The progress display of a command: one line that keeps moving in a terminal, a line for each stage elsewhere."""

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
    """What a command shows while it works."""

    def message(self, text: str) -> None:
        """Show a line that stays."""


@contextmanager
def open_display() -> Iterator[Display]:
    """The display of a command on standard error; one at a time."""
    from rich.console import Console

    console = Console(stderr=True)
    if not (sys.stderr.isatty() and console.is_interactive):
        yield _Lines()
        return
    bar = _moving_bar(console)
    with bar:
        yield _Line(bar)


class _Lines:
    """Plain lines: one for each stage as it begins."""

    def __call__(self, done: int, total: int) -> None:
        pass

    def stage(self, name: str) -> _Lines:
        self.message(name)
        return self

    def message(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class _Line:
    """The last line of a terminal: spinner, time since the start, the present stage and how much of it is done."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.task = bar.add_task("starting", total=None)

    def __call__(self, done: int, total: int) -> None:
        self.bar.update(self.task, completed=done, total=total)

    def stage(self, name: str) -> _Line:
        self.bar.tasks[0].total = None  # reset() cannot: it takes None for 'as before'
        self.bar.reset(self.task, description=name)
        return self

    def message(self, text: str) -> None:
        # soft_wrap: a long path is left to the terminal to break, so that it can be copied
        self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _moving_bar(console: Console) -> Bar:
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
    from rich.spinner import Spinner
    from rich.text import Text

    began = time.monotonic()
    spinner = Spinner("dots")

    class Clock(ProgressColumn):
        """Moves whatever the stage reports; rich's own spinner and clock stop where a stage has reported its end."""

        def render(self, task: Task) -> Text:
            seconds = time.monotonic() - began
            return Text.assemble(spinner.render(seconds), f" {timedelta(seconds=int(seconds))}")  # type: ignore[arg-type]

    class Count(ProgressColumn):
        """How much of a stage is done, and the time that the rest of it takes."""

        def render(self, task: Task) -> Text:
            if task.total is None:
                return Text("")
            left = task.time_remaining
            rest = "" if task.finished or left is None else f", {timedelta(seconds=int(left))} left"
            return Text(f"{int(task.completed)}/{int(task.total)}{rest}")

    return Progress(
        Clock(), TextColumn("{task.description}", markup=False), BarColumn(), Count(), console=console, transient=True
    )
