"""From a dataset to a run: select the shapes to train on, prepare them, then train."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.correspondence.match_checks import check_matchable
from acnn.datasets.augment import augmented
from acnn.datasets.dataset import Dataset, Sample
from acnn.datasets.labels import classes_from_file, segmented
from acnn.datasets.open import open_dataset
from acnn.errors import InputError
from acnn.files import check_outputs
from acnn.input_files import read_json
from acnn.methods.method import Method, TrainingData
from acnn.methods.registry import METHODS, trained_method
from acnn.methods.run import FILES, RunRecord, open_run, write_run
from acnn.network.architecture import with_head
from acnn.progress import Progress, begin_stage
from acnn.reports import Report
from acnn.training.checkpoint import check_settings, run_identity
from acnn.training.config import TASKS, RunConfig, preset_config
from acnn.training.log import read_log
from acnn.training.loop import StepReport
from acnn.training.prepare import Failure, prepare


@check_arguments
def train_run(
    data: str | os.PathLike[str] | Dataset,
    out: str | os.PathLike[str],
    config: RunConfig,
    *,
    train_list: str | None = None,
    val_list: str | None = None,
    resume: bool = False,
    classes: str | os.PathLike[str] | None = None,
    force: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
    report: StepReport | None = None,
) -> tuple[RunRecord, list[Failure]]:
    """Prepare a dataset and train a method on it.

    Parameters
    ----------
    data : path or Dataset
        As for `open_dataset`, or a dataset.
    out : path
        Folder of the run.
    config : RunConfig
        All settings.
    train_list, val_list : str or None
        Shapes, as for `Dataset.select`; by default all marked `train`, or all shapes, and none.
    resume : bool
        Continue from the folder's last checkpoint, up to the budget that `config` has now. Without lists, the shapes
        are those that the run has used so far.
    classes : path or None
        For the task `segmentation`: a file with the class of every vertex of the reference; None takes the classes of
        the dataset, see `acnn.datasets.labels`.
    force : bool
        Overwrite files of other origin that have the names of a run's.
    workers : int
        Processes that prepare.
    progress : Progress or None
        Called with (done, total), in steps or in seconds where time is the budget; stages `preparing` and `training`.
    report : StepReport or None
        Called after each step.

    Returns
    -------
    tuple[RunRecord, list[Failure]]
        The record of the run, and the shapes that failed to be prepared.
    """
    out = Path(out)
    if (out / "run.json").exists() and not resume:
        raise InputError(f"{out}: there is a run already. Go on with --resume, or train into another folder.")
    files = [out / name for name in FILES]
    started = (out / "run.json").exists() and (out / "reference.safetensors").exists()
    data_folder = Path(data) if not isinstance(data, Dataset) else None
    check_outputs(files, inputs=[data_folder], earlier=files if started else [], force=force)
    checkpoint = out / "checkpoint.safetensors"
    method = trained_method(config.method)
    check_task(method, config.train.task)
    needs = method.needs(config)
    if resume and checkpoint.exists():
        check_settings(checkpoint, config.as_dict())  # before anything is prepared
    dataset = training_dataset(data, config.train.task, classes)
    segmenting = config.train.task == "segmentation"
    names_of_classes = dataset.classes.names if segmenting and dataset.classes is not None else ()
    if resume and train_list is None and val_list is None:
        train_list, val_list = _lists_of_run(out, dataset)
    selection = select_shapes(dataset, train_list, val_list)
    began = time.perf_counter()
    learned = augmented(selection.training, config.augment)
    names = {sample.name for sample in learned.samples}
    everything = replace(dataset, samples=(*learned.samples, *selection.validation.samples))
    prepared, failures = prepare(
        everything,
        needs,
        workers=workers,
        progress=begin_stage(progress, "preparing"),
    )
    if unrelated := [failure for failure in failures if failure.unrelated and failure.item in names]:
        raise InputError(
            f"{len(unrelated)} of {len(names)} training shapes do not belong to the reference. The first: "
            f"{unrelated[0].why} Or name those that belong together with --train LIST."
        )
    blind = [shape.name for shape in prepared if not np.any(shape.labels >= 0)]
    lacking = "no vertex has a known " + ("class" if names_of_classes else "match on the reference")
    failures += [Failure(name, lacking) for name in blind]
    prepared = [shape for shape in prepared if shape.name not in blind]
    learning = [shape for shape in prepared if shape.name in names]
    if not learning:
        why = f" The first: {failures[0].item}: {failures[0].why}" if failures else ""
        raise InputError(f"None of the training shapes could be prepared.{why}")
    if resume and checkpoint.exists():  # before anything is written
        check_settings(checkpoint, run_identity(config, [shape.name for shape in learning], dataset.reference))
    validating = [shape for shape in prepared if shape.name not in names]
    record = RunRecord(
        data=str(data) if not isinstance(data, Dataset) else dataset.name,
        train=[shape.name for shape in learning],
        validation=[shape.name for shape in validating],
        unit=dataset.unit,
        method=method.name,
        task=config.train.task,
        classes=list(names_of_classes) or None,
        seconds_preparing=time.perf_counter() - began,
    )
    content = {use: [s.content for s in shapes] for use, shapes in (("train", learning), ("validation", validating))}
    if config.train.start:  # its shapes were seen in training, too
        content["train"] += (open_run(config.train.start).record.content or {}).get("train", [])
    write_run(out, dataset, config, replace(record, content=content))
    last: dict[str, Any] = {}
    steps = begin_stage(progress, "training")

    def remember(step: dict[str, Any]) -> None:
        last.update(step)
        if steps:
            by_time = int(step["seconds"]), int(step["seconds"] + step["seconds_left"])
            steps(*(by_time if step["steps"] is None else (step["step"], step["steps"])))
        if report:
            report(step)

    data_of_method = TrainingData(learning, validating, dataset.reference, len(names_of_classes))
    method.train(data_of_method, config, out, resume, remember, {"data": record.data})
    if not last:  # all steps were taken before
        last = (read_log(out / "log.jsonl", "step") or [{}])[-1]
    names_of_step = ("step", "epoch", "loss", "accuracy", "core_seconds", "best_step", "notice")
    of_step: dict[str, Any] = {name: last.get(name) for name in names_of_step}
    record = replace(
        record,
        **of_step,
        validation_exact=last.get("best_exact"),
        seconds_training=last.get("seconds", 0.0),
    )
    write_run(out, dataset, config, replace(record, content=content))
    return record, failures


def _lists_of_run(folder: Path, dataset: Dataset) -> tuple[str | None, str | None]:
    """The training and validation shapes of a run that was begun, as lists; None where there are none."""
    if not (folder / "run.json").is_file():
        return None, None
    record = read_json(folder / "run.json")
    known = {sample.name for sample in dataset.samples}  # without those that augmentation made
    training, validation = (
        ",".join(name for name in record.get(use) or () if name in known) or None for use in ("train", "validation")
    )
    return training, validation


def config_of_method(method: str | None, preset: str | None, task: str | None = None) -> RunConfig:
    """Settings to train a method with.

    Parameters
    ----------
    method : str or None
        Name of a trained method; None is that of the preset.
    preset : str or None
        Name of a preset or of a file; None is that of the method and the task.
    task : str or None
        What it is trained for; None is the task of the preset. The architecture of a preset for another task is
        given the output that this one needs.

    Raises
    ------
    InputError
        Where the preset belongs to another method, or the method cannot be trained for the task.
    """
    chosen = None if method is None and preset is not None else trained_method(method or "acnn")
    if chosen is not None and task is not None:
        check_task(chosen, task)
    if preset is None:
        assert chosen is not None
        preset = chosen.preset if task is None else chosen.presets[task]
    config = preset_config(preset)
    if chosen is not None and config.method != chosen.name:
        raise InputError(f"The preset '{preset}' is one of the method '{config.method}', not of '{chosen.name}'.")
    if task is None or task == config.train.task:
        return config
    check_task(trained_method(config.method), task)
    return config.with_changes(
        {"task": task, "architecture": with_head(config.train.architecture, softmax=task != "descriptor")}
    )


def check_task(method: Method, task: str) -> None:
    """Raise InputError where a method cannot be trained for a task, with those that can."""
    if task not in TASKS:
        raise InputError(f"There is no task '{task}'; there are {', '.join(TASKS)}.")
    if task not in method.presets:
        others = ", ".join(other.name for other in METHODS.values() if task in other.presets)
        raise InputError(
            f"The method '{method.name}' is trained for {' or '.join(method.presets)}, not for {task}: use {others}."
        )


@dataclass(frozen=True, eq=False)
class Selection:
    """Shapes of a dataset by their use.

    Attributes
    ----------
    training, validation : Dataset
        Shapes for training, and for the choice of the model.
    unused : dict[str, str]
        Why the other shapes are not used, by name.
    """

    training: Dataset
    validation: Dataset
    unused: dict[str, str]


def training_dataset(
    data: str | os.PathLike[str] | Dataset, task: str, classes: str | os.PathLike[str] | None = None
) -> Dataset:
    """Open a dataset as a task needs it: for `segmentation`, labelled with classes.

    Parameters
    ----------
    data : path or Dataset
        As for `open_dataset`, or a dataset.
    task : str
        What the network is trained for.
    classes : path or None
        For the task `segmentation`: a file with the class of every vertex of the reference; None takes the classes of
        the dataset, see `acnn.datasets.labels`.

    Raises
    ------
    InputError
        Where classes are given for another task.
    """
    dataset = data if isinstance(data, Dataset) else open_dataset(data)
    if task == "segmentation":
        return segmented(dataset, None if classes is None else classes_from_file(Path(classes), dataset.reference))
    if classes is not None:
        raise InputError(f"Classes are for --task segmentation; the task is '{task}'.")
    return dataset


def select_shapes(dataset: Dataset, train_list: str | None = None, val_list: str | None = None) -> Selection:
    """Divide a dataset into training, validation and unused shapes.

    Parameters
    ----------
    dataset : Dataset
        All shapes.
    train_list, val_list : str or None
        As for `Dataset.select`; by default all shapes marked `train`, or all where none is, and none.

    Returns
    -------
    Selection
        Validation shapes are not trained on.
    """
    given = train_list is not None
    if train_list is None:
        train_list = "train" if any(sample.split == "train" for sample in dataset.samples) else "all"
    chosen = dataset.select(train_list).samples
    validation = dataset.select(val_list).samples if val_list else ()
    validating = {sample.name for sample in validation}
    training = tuple(sample for sample in chosen if sample.name not in validating)
    used = validating | {sample.name for sample in training}
    unused = {
        sample.name: f"not in --train {train_list}" if given else f"marked '{sample.split or 'none'}', not 'train'"
        for sample in dataset.samples
        if sample.name not in used
    }
    return Selection(replace(dataset, samples=training), replace(dataset, samples=validation), unused)


@dataclass(frozen=True, eq=False)
class TrainingPlan(Report):
    """What `acnn train --dry-run --json` prints.

    Attributes
    ----------
    data, method, preset : str
    reference_vertices : int
    vertices : dict[str, int]
        Of the shapes, by name.
    train, validation : list[str]
        Names of the shapes.
    unused : list[dict]
        `name` and `why` of the others.
    augmented : int
        How many further shapes are made of the training shapes.
    """

    data: str
    method: str
    preset: str
    reference_vertices: int
    vertices: dict[str, int]
    train: list[str]
    validation: list[str]
    unused: list[dict[str, str]]
    augmented: int


def plan_training(
    data: str | os.PathLike[str],
    config: RunConfig,
    *,
    train_list: str | None = None,
    val_list: str | None = None,
    classes: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> TrainingPlan:
    """Read the shapes that a training would use, without computing or writing anything.

    Parameters
    ----------
    data : path
        As for `open_dataset`.
    config : RunConfig
        All settings.
    train_list, val_list, classes
        As for `train_run`.
    progress : Progress or None
        Called with (done, total); stage `reading`.

    Returns
    -------
    TrainingPlan
    """
    dataset = training_dataset(data, config.train.task, classes)
    selection = select_shapes(dataset, train_list, val_list)
    spectral = trained_method(config.method).needs(config).spectral
    reading = begin_stage(progress, "reading")
    unused = [{"name": name, "why": why} for name, why in selection.unused.items()]
    vertices: dict[str, int] = {}
    samples = selection.training.samples, selection.validation.samples
    for done, sample in enumerate((*samples[0], *samples[1])):
        if reading:
            reading(done, len(samples[0]) + len(samples[1]))
        try:
            vertices[sample.name] = _check(sample, spectral)
        except InputError as error:
            unused.append({"name": sample.name, "why": str(error)})
    training, validation = (tuple(sample for sample in part if sample.name in vertices) for part in samples)
    made = augmented(replace(dataset, samples=training), config.augment).samples if training else ()
    return TrainingPlan(
        data=str(data),
        method=config.method,
        preset=config.preset,
        reference_vertices=len(dataset.reference.vertices),
        vertices=vertices,
        train=[sample.name for sample in training],
        validation=[sample.name for sample in validation],
        unused=unused,
        augmented=len(made) - len(training),
    )


def _check(sample: Sample, spectral: bool) -> int:
    """Read a shape and return its number of vertices; raises InputError where it cannot be used."""
    example = sample.read()
    check_matchable(example.shape, sample.name, spectral=spectral)
    if not np.any(example.labels >= 0):
        raise InputError("no vertex has a known label")
    return len(example.shape.vertices)
