"""Progress of long-running work: a function of (done, total), optionally with named stages and their expected times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

Progress = Callable[[int, int], None]
"""Called with (done, total) during the work; a `StagedProgress` also receives the name of each stage as it begins."""


@runtime_checkable
class StagedProgress(Protocol):
    """Progress of work with several stages, one after the other."""

    def __call__(self, done: int, total: int) -> None:
        """Report how much of the current stage is done."""

    def stage(self, name: str) -> Progress:
        """Begin a stage, which ends the previous one, and return the progress that it reports to."""


@runtime_checkable
class TimedProgress(StagedProgress, Protocol):
    """Progress of work whose stages take times that are roughly known beforehand."""

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Take the expected seconds of all stages to come, by name and in their order."""


def expect_stages(progress: Progress | None, seconds: Mapping[str, float]) -> None:
    """Announce how long the stages of the work will take, for one remaining time that covers all of them.

    Parameters
    ----------
    progress : Progress or None
        Progress of the work; only a `TimedProgress` uses it.
    seconds : mapping of str to float
        Expected seconds of the stages to come, by name and in their order.
    """
    if isinstance(progress, TimedProgress):
        progress.expect(seconds)


def begin_stage(progress: Progress | None, name: str) -> Progress | None:
    """Begin a stage of the work.

    Parameters
    ----------
    progress : Progress or None
        Progress of the work.
    name : str
        Name of the stage for display: a few words such as ``operators of A``.

    Returns
    -------
    Progress or None
        Progress of the stage: `progress` itself where it is a plain function or None.
    """
    return progress.stage(name) if isinstance(progress, StagedProgress) else progress


def named_stages(progress: Progress | None, form: str) -> Progress | None:
    """Rename the stages of a part of the work: with ``{} of A``, ``operators`` becomes ``operators of A``.

    Parameters
    ----------
    progress : Progress or None
        Progress of the work.
    form : str
        The new name, with ``{}`` in place of the old one.

    Returns
    -------
    Progress or None
        Progress of that part: `progress` itself where it is a plain function or None.
    """
    return _Renamed(progress, form) if isinstance(progress, StagedProgress) else progress


@dataclass(frozen=True)
class _Renamed:
    progress: StagedProgress
    form: str

    def __call__(self, done: int, total: int) -> None:
        self.progress(done, total)

    def stage(self, name: str) -> Progress:
        return self.progress.stage(self.form.format(name))


@dataclass
class TimeEstimate:
    """Remaining time of staged work.

    Expected times come from a model of the work; how fast this machine is shows in the stages so far. With f the ratio
    of the time taken to the time expected of what is done, the rest takes f times as long as expected.

    Attributes
    ----------
    clock : callable
        Returns the time in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _expected: dict[str, float] = field(default_factory=dict)
    _stage: str = ""
    _fraction: float = 0.0
    _began: float = 0.0
    _taken: float = 0.0
    _done: float = 0.0
    _paused: float | None = None

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Take the expected seconds of the stages to come."""
        self._expected = dict(seconds)
        self.begin(self._stage)

    def begin(self, stage: str) -> None:
        """Begin a stage, which ends the previous one."""
        now = self.clock()
        if self._stage in self._expected and self._stage != stage:
            self._taken += now - self._began
            self._done += self._expected.pop(self._stage)
        if stage in self._expected:  # those before it were skipped
            later = list(self._expected).index(stage)
            self._expected = dict(list(self._expected.items())[later:])
        self._stage, self._fraction, self._began, self._paused = stage, 0.0, now, None

    def update(self, done: int, total: int) -> None:
        """Take how much of the current stage is done."""
        self._fraction = done / total if total else 0.0

    def pause(self) -> None:
        """Begin work that does not count, such as compilation."""
        if self._paused is None:
            self._paused = self.clock()

    def go_on(self) -> None:
        """End it."""
        if self._paused is not None:
            self._began += self.clock() - self._paused
            self._paused = None

    @property
    def paused(self) -> bool:
        """Whether work is going on that does not count."""
        return self._paused is not None

    def seconds_left(self) -> float | None:
        """Return the remaining time of all stages; None where nothing is expected."""
        if not self._expected:
            return None
        spent = (self.clock() if self._paused is None else self._paused) - self._began
        here = self._expected.get(self._stage, 0.0)
        later = sum(self._expected.values()) - here
        # The model counts like work that took as long as expected.
        weight = _MODEL * (self._done + here + later)
        if here and self._fraction > _TELLING:
            done = weight + self._done + self._fraction * here
            factor = (weight + self._taken + spent) / done
            return factor * (here * (1 - self._fraction) + later)
        factor = (weight + self._taken) / (weight + self._done)
        if here and spent > factor * here:  # slower than expected, but for how long?
            factor = spent / here
        return max(factor * here - spent, _NEVER_LESS * factor * here) + factor * later


_MODEL = 0.05
"""Weight of the model, as a fraction of the whole work: this much observed work weighs as much."""

_TELLING = 0.1
"""Fraction of a stage from which on its own speed counts; before, a few items say little."""

_NEVER_LESS = 0.1
"""Fraction of a stage that always remains while it does not report how much is done."""
