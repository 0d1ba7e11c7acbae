"""How long-running work reports its progress: a plain function, or one that is also told the name of every stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

Progress = Callable[[int, int], None]
"""Called with (done, total) as work goes on. Any such function will do; one that is a `StagedProgress` also gets the
name of every stage as it begins."""


@runtime_checkable
class StagedProgress(Protocol):
    """Progress of work that has several stages, one after the other."""

    def __call__(self, done: int, total: int) -> None:
        """Report how much of the present stage is done."""

    def stage(self, name: str) -> Progress:
        """Begin a stage, which ends the one before, and return what it reports to."""


def begin_stage(progress: Progress | None, name: str) -> Progress | None:
    """Begin a stage of some work.

    Parameters
    ----------
    progress
        What the work reports to, or None.
    name
        Of the stage, for people to read: a few words such as ``operators of A``.

    Returns
    -------
    Progress or None
        What the stage reports to: `progress` itself where it is a plain function, None where there is none.
    """
    return progress.stage(name) if isinstance(progress, StagedProgress) else progress


def named_stages(progress: Progress | None, form: str) -> Progress | None:
    """The same progress for a part of the work, its stages renamed: ``{} of A`` makes ``operators`` ``operators of A``.

    Parameters
    ----------
    progress
        What the work reports to, or None.
    form
        The new name, with ``{}`` where the old one goes.
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
