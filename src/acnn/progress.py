"""Progress of long-running work: a function of (done, total), optionally with named stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
