"""Which shapes of a dataset a training uses, and why it does not use the others."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from acnn.correspondence.matchable import check_matchable
from acnn.datasets.augment import augmented
from acnn.datasets.classes import classes_from_file, segmented
from acnn.datasets.dataset import Dataset, Sample
from acnn.datasets.open import open_dataset
from acnn.errors import InputError
from acnn.methods.registry import trained_method
from acnn.progress import Progress, begin_stage
from acnn.training.config import RunConfig


@dataclass(frozen=True, eq=False)
class Selection:
    """Shapes of a dataset by their use.

    Attributes
    ----------
    training, validation : Dataset
        Shapes to learn from, and to choose the model by.
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
        the dataset, see `acnn.datasets.classes`.

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


def plan_training(
    data: str | os.PathLike[str],
    config: RunConfig,
    *,
    train_list: str | None = None,
    val_list: str | None = None,
    classes: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
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
    dict[str, Any]
        `train` and `validation`: names; `unused`: `{"name", "why"}` of the others; `augmented`: how many further shapes
        are made of the training shapes; `vertices` of the shapes by name, `reference_vertices`.
    """
    dataset = training_dataset(data, config.train.task, classes)
    selection = select_shapes(dataset, train_list, val_list)
    spectral = trained_method(config.method).needs(config).spectral
    facts: dict[str, Any] = {"data": str(data), "method": config.method, "preset": config.preset}
    facts |= {"reference_vertices": len(dataset.reference.vertices), "vertices": {}}
    reading = begin_stage(progress, "reading")
    unused = [{"name": name, "why": why} for name, why in selection.unused.items()]
    total, done = len(selection.training) + len(selection.validation), 0
    for use, part in (("train", selection.training), ("validation", selection.validation)):
        facts[use] = []
        for sample in part.samples:
            if reading:
                reading(done, total)
            done += 1
            try:
                facts["vertices"][sample.name] = _check(sample, spectral)
                facts[use].append(sample.name)
            except InputError as error:
                unused.append({"name": sample.name, "why": str(error)})
    usable = tuple(sample for sample in selection.training.samples if sample.name in facts["vertices"])
    made = augmented(replace(dataset, samples=usable), config.augment).samples if usable else ()
    return facts | {"unused": unused, "augmented": len(made) - len(usable)}


def _check(sample: Sample, spectral: bool) -> int:
    """Read a shape and return its number of vertices; raises InputError where it cannot be used."""
    example = sample.read()
    check_matchable(example.shape, sample.name, spectral=spectral)
    if not np.any(example.labels >= 0):
        raise InputError("no vertex has a known label")
    return len(example.shape.vertices)
