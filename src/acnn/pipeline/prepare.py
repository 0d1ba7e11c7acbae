"""Operators and descriptors of a whole dataset into the cache: in this process, in several, or on other machines.

Whatever is done stays in the cache: after an interruption, a full disk or a failure the same call goes on from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from acnn.array_files import full_disk
from acnn.cache import cache_folder, mark_used
from acnn.datasets.collection import Dataset, Sample, UnrelatedError
from acnn.descriptors.settings import DescriptorSettings
from acnn.errors import InputError
from acnn.patches.settings import PatchSettings
from acnn.pipeline.prepared import Prepared, prepare_sample
from acnn.types import Progress


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
    descriptors: DescriptorSettings
    patches: PatchSettings
    folder: str
    unit: float | None
    threads: int | None


Outcome = Prepared | str | UnrelatedError | OSError
"""What became of a task: done, why not, or that there is no room."""


def prepare(
    dataset: Dataset,
    descriptor_settings: DescriptorSettings | None = None,
    patch_settings: PatchSettings | None = None,
    *,
    samples: str | Sequence[str] | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> tuple[list[Prepared], list[Failure]]:
    """Compute operators and descriptors of every sample that are not in the cache.

    - samples: which ones, as for `Dataset.select`; None is all
    - workers: 1 works in this process on all cores; more are processes of one thread each. They are started afresh, so
      a script that asks for them must guard its main part with `if __name__ == "__main__":`
    - scheduler: address of a Dask scheduler; its workers must see the dataset and the cache under the same paths
    - cache_dir: None is `acnn.cache.cache_folder()`
    - progress: called with (done, in all)

    Returns what was prepared, in the order of the samples, and what failed: one bad shape does not stop the others.

    Raises InputError for bad arguments, and OSError where the disk is full; what was done until then stays.
    """
    if workers < 1:
        raise InputError(f"{workers} workers: at least one is needed.")
    if workers > 1 and scheduler is not None:
        raise InputError("Give either workers or a scheduler: the scheduler's machines have their own workers.")
    chosen = dataset if samples is None else dataset.select(samples)
    folder = Path(cache_dir) if cache_dir is not None else cache_folder()
    settings = (descriptor_settings or DescriptorSettings(), patch_settings or PatchSettings())
    threads = None if workers == 1 and scheduler is None else 1
    tasks = [Task(sample, *settings, str(folder.absolute()), dataset.unit, threads) for sample in chosen.samples]
    prepared: dict[int, Prepared] = {}
    failures: dict[int, Failure] = {}
    if progress:
        progress(0, len(tasks))
    with closing(_outcomes(tasks, workers, scheduler)) as outcomes:
        for index, outcome in outcomes:
            if isinstance(outcome, OSError):
                stays = f"{len(prepared)} of {len(tasks)} shapes are done and stay."
                raise OSError(
                    f"No room left for the cache {folder} ({outcome.strerror}). {stays} Free some space or set "
                    "ACNN_CACHE to a folder on another disk, and run the same again: it goes on from there."
                )
            if isinstance(outcome, Prepared) and not outcome.patches_path.is_file():
                outcome = f"{outcome.patches_path} was written elsewhere: all machines must share the cache folder."
            if isinstance(outcome, Prepared):
                prepared[index] = outcome
                for path in (outcome.patches_path, outcome.descriptors_path):
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
        return prepare_sample(
            task.sample, task.descriptors, task.patches, Path(task.folder), unit=task.unit, threads=task.threads
        )
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
        from acnn.pipeline.spreading import run_on_scheduler

        return run_on_scheduler(run_task, tasks, scheduler)
    if workers > 1 and len(tasks) > 1:
        from acnn.pipeline.spreading import run_in_processes

        return run_in_processes(run_task, tasks, min(workers, len(tasks)))
    return _run_here(run_task, tasks)


def _run_here(function: Callable[[Task], Outcome], tasks: list[Task]) -> Generator[tuple[int, Outcome], None, None]:
    for index, task in enumerate(tasks):
        yield index, function(task)
