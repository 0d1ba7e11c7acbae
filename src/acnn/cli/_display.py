"""Progress display of a command: one animated line in a terminal, one printed line per stage elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from acnn.progress import TimedProgress, TimeEstimate

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import Task
    from rich.text import Text


COMPILING = "compiling (first run only)"


class Display(TimedProgress, Protocol):
    """Progress of a command, and messages beside it."""

    def compiling(self, active: bool) -> None:
        """Show that code is being compiled, or no longer."""

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
    estimate = TimeEstimate()
    bar = _moving_bar(console, estimate)
    with bar:
        yield _Line(bar, estimate)


class _Lines:
    """Plain lines: one at the start of each stage."""

    def __call__(self, done: int, total: int) -> None:
        pass

    def stage(self, name: str) -> _Lines:
        self.message(name)
        return self

    def expect(self, seconds: Mapping[str, float]) -> None:
        pass

    def compiling(self, active: bool) -> None:
        pass

    def message(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class _Line:
    """The last line of a terminal: spinner, elapsed time, current stage, its progress, and the remaining time."""

    def __init__(self, bar: Bar, estimate: TimeEstimate) -> None:
        self.bar, self.estimate = bar, estimate
        self.task = bar.add_task("starting", total=None)

    def __call__(self, done: int, total: int) -> None:
        self.estimate.update(done, total)
        self.bar.update(self.task, completed=done, total=total)

    def stage(self, name: str) -> _Line:
        self.estimate.begin(name)
        self.bar.tasks[0].total = None  # reset() cannot: it reads None as 'unchanged'
        self.bar.reset(self.task, description=name)
        return self

    def expect(self, seconds: Mapping[str, float]) -> None:
        self.estimate.expect(seconds)

    def compiling(self, active: bool) -> None:
        if active:
            self.estimate.pause()
        else:
            self.estimate.go_on()
        self.bar.refresh()

    def message(self, text: str) -> None:
        # soft_wrap: the terminal wraps long paths itself, so that they can be copied
        self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _moving_bar(console: Console, estimate: TimeEstimate) -> Bar:
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
        """Progress of the stage, and the time remaining: of all stages where that is known, else of this one."""

        def render(self, task: Task) -> Text:
            parts = [] if task.total is None else [f"{int(task.completed)}/{int(task.total)}"]
            left = estimate.seconds_left()
            if estimate.paused:
                parts.append(COMPILING)
            if left is not None:
                parts.append(f"about {timedelta(seconds=round(left))} left in total")
            elif parts and not estimate.paused and not task.finished and task.time_remaining is not None:
                parts.append(f"{timedelta(seconds=int(task.time_remaining))} left")
            return Text(", ".join(parts))

    return Progress(
        Clock(), TextColumn("{task.description}", markup=False), BarColumn(), Count(), console=console, transient=True
    )
