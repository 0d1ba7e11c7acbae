"""Operators and descriptors of a whole dataset into the cache: in this process, in several, or on other machines.

Whatever is done stays in the cache: after an interruption, a full disk or a failure the same call goes on from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acnn.cache import cache_folder, mark_used
from acnn.datasets.dataset import Dataset, Sample, UnrelatedError
from acnn.datasets.open import open_dataset
from acnn.descriptors.settings import DescriptorSettings
from acnn.errors import InputError
from acnn.files import full_disk
from acnn.patches.settings import PatchSettings, parse_scales
from acnn.progress import Progress
from acnn.reports import Report
from acnn.training.prepared import Needs, Prepared, prepare_sample


@dataclass(frozen=True)
class Failure:
    """A shape that could not be prepared, and why; `unrelated` where its correspondence is not known."""

    item: str
    why: str
    unrelated: bool = False


@dataclass(frozen=True, eq=False)
class Task:
    """One shape to prepare, as it is sent to another process."""

    sample: Sample
    needs: Needs
    folder: str
    unit: float | None
    threads: int | None


Outcome = Prepared | str | UnrelatedError | OSError
"""Outcome of a task: done, why not, or that the disk is full."""


def prepare(
    dataset: Dataset,
    needs: Needs | None = None,
    *,
    samples: str | Sequence[str] | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> tuple[list[Prepared], list[Failure]]:
    """Compute operators and descriptors of every sample that are not in the cache.

    Parameters
    ----------
    dataset : Dataset
        The shapes.
    needs : Needs or None
        What is computed; None takes descriptors and patches with the default settings.
    samples : str or Sequence[str] or None
        Which ones, as for `Dataset.select`; None is all.
    workers : int
        1 works in this process on all cores; more are processes of one thread each. They are started afresh, so a
        script that asks for them must guard its main part with `if __name__ == "__main__":`.
    scheduler : str or None
        Address of a Dask scheduler; its workers must see the dataset and the cache under the same paths.
    cache_dir : path or None
        None is `acnn.cache.cache_folder()`.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    tuple[list[Prepared], list[Failure]]
        What was prepared, in the order of the samples, and what failed: one bad shape does not stop the others.

    Raises
    ------
    InputError
        For bad arguments.
    OSError
        Where the disk is full; what was done until then stays.
    """
    if workers < 1:
        raise InputError(f"{workers} workers: at least one is needed.")
    if workers > 1 and scheduler is not None:
        raise InputError("Give either workers or a scheduler: the scheduler's machines have their own workers.")
    chosen = dataset if samples is None else dataset.select(samples)
    folder = Path(cache_dir) if cache_dir is not None else cache_folder()
    wanted = needs or Needs()
    threads = None if workers == 1 and scheduler is None else 1
    tasks = [Task(sample, wanted, str(folder.absolute()), dataset.unit, threads) for sample in chosen.samples]
    prepared: dict[int, Prepared] = {}
    failures: dict[int, Failure] = {}
    if progress:
        progress(0, len(tasks))
    with closing(_outcomes(tasks, workers, scheduler)) as outcomes:
        for index, outcome in outcomes:
            if isinstance(outcome, OSError):
                stays = f"{len(prepared)} of {len(tasks)} shapes are done and stay."
                raise OSError(
                    f"No space left for the cache {folder} ({outcome.strerror}). {stays} Free some space or set "
                    "ACNN_CACHE to a folder on another disk, and run the same again: it goes on from there."
                )
            elsewhere = isinstance(outcome, Prepared) and [f for f in outcome.files.values() if not f.is_file()]
            if elsewhere:
                outcome = f"{elsewhere[0]} was written elsewhere: all machines must share the cache folder."
            if isinstance(outcome, Prepared):
                prepared[index] = outcome
                for path in outcome.files.values():
                    mark_used(path)  # by this process as well, which goes on with it
            else:
                unrelated = isinstance(outcome, UnrelatedError)
                failures[index] = Failure(tasks[index].sample.name, str(outcome), unrelated)
            if progress:
                progress(len(prepared) + len(failures), len(tasks))
    return [prepared[index] for index in sorted(prepared)], [failures[index] for index in sorted(failures)]


def run_task(task: Task) -> Outcome:
    """Prepare one shape; what is wrong with it is returned, not raised, so that it travels between processes."""
    try:
        return prepare_sample(task.sample, task.needs, Path(task.folder), unit=task.unit, threads=task.threads)
    except MemoryError:
        return "out of memory"
    except UnrelatedError as error:
        return error
    except InputError as error:
        return str(error)
    except Exception as error:
        number = full_disk(error)
        return OSError(number, os.strerror(number)) if number else f"{type(error).__name__}: {error}"


def _outcomes(tasks: list[Task], workers: int, scheduler: str | None) -> Generator[tuple[int, Outcome], None, None]:
    """(number of the task, outcome) as they come."""
    if scheduler is not None:
        from acnn.training.parallel import run_on_scheduler

        return run_on_scheduler(run_task, tasks, scheduler)
    if workers > 1 and len(tasks) > 1:
        from acnn.training.parallel import run_in_processes

        return run_in_processes(run_task, tasks, min(workers, len(tasks)))
    return _run_here(run_task, tasks)


def _run_here(function: Callable[[Task], Outcome], tasks: list[Task]) -> Generator[tuple[int, Outcome], None, None]:
    for index, task in enumerate(tasks):
        yield index, function(task)


@dataclass(frozen=True, eq=False)
class PrepareReport(Report):
    """What `acnn prepare --json` prints.

    Attributes
    ----------
    data : str
        The dataset.
    shapes, prepared, from_cache : int
        Number of its shapes, of those that are prepared, and of those among them that had been before.
    seconds : float
    cache : str
        Folder of the cache.
    patches, descriptors : dict
        The settings.
    """

    data: str
    shapes: int
    prepared: int
    from_cache: int
    seconds: float
    cache: str
    patches: dict[str, Any]
    descriptors: dict[str, Any]


def prepare_dataset(
    data: str,
    *,
    samples: str | None = None,
    patches: dict[str, Any] | None = None,
    descriptors: dict[str, Any] | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> tuple[PrepareReport, list[Failure]]:
    """Open a dataset and prepare it.

    Parameters
    ----------
    data, samples
        As for `open_dataset` and `Dataset.select`.
    patches : dict[str, Any] or None
        Of `PatchSettings`; scales may be text such as `3,6,12,24`.
    descriptors : dict[str, Any] or None
        Of `DescriptorSettings`; kinds and shot_radii may be text such as `shot,wks` and `8,16`.
    workers, scheduler, progress
        As for `prepare`.

    Returns
    -------
    tuple[PrepareReport, list[Failure]]
    """
    if not cache:
        raise InputError(
            "Preparing fills the cache, so --no-cache leaves nothing to do. Set ACNN_CACHE to use another."
        )
    began = time.perf_counter()
    chosen, described = dict(patches or {}), dict(descriptors or {})
    if isinstance(chosen.get("scales"), str):
        chosen["scales"] = parse_scales(chosen["scales"])
    if isinstance(described.get("kinds"), str):
        described["kinds"] = tuple(kind.strip() for kind in described["kinds"].split(","))
    if isinstance(described.get("shot_radii"), str):
        described["shot_radii"] = _radii(described["shot_radii"])
    settings = DescriptorSettings(**described), PatchSettings(**chosen)
    dataset = open_dataset(data)
    dataset = dataset if samples is None else dataset.select(samples)
    done, failures = prepare(dataset, Needs(*settings), workers=workers, scheduler=scheduler, progress=progress)
    report = PrepareReport(
        data=data,
        shapes=len(dataset),
        prepared=len(done),
        from_cache=sum(item.from_cache for item in done),
        seconds=time.perf_counter() - began,
        cache=str(cache_folder()),
        patches=settings[1].as_dict(),
        descriptors=settings[0].as_dict(),
    )
    return report, failures


def _radii(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"Radius '{text}': give one or more numbers separated by commas, such as 12 or 8,16."
        ) from None
