"""The main job on the built-in humans: prepare, train, match people never seen, refine, evaluate, draw."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acnn.correspondence.refine import RefineMethod
from acnn.datasets.collection import Dataset, Sample, spread_over
from acnn.datasets.opening import humans_dataset
from acnn.datasets.parts import KINDS, Kind, parts_of
from acnn.errors import InputError
from acnn.evaluation.curves import report_curves, write_curves
from acnn.files import check_outputs, write_whole
from acnn.pipeline.evaluate_run import Matched, evaluate_run
from acnn.pipeline.first_match import Show, first_match
from acnn.pipeline.run import Run, open_run
from acnn.pipeline.train_run import train_run
from acnn.training.config import RunConfig, preset_config
from acnn.types import Progress, begin_stage, named_stages

COPIED = 6
"""One in so many training shapes is learned from in a second triangulation, too."""

LACKING: dict[Kind, tuple[float, float]] = {"cuts": (0.2, 0.6), "holes": (0.1, 0.4)}
"""Shares of the area that the parts of the partial demo lack."""

Draw = Callable[[Path, Run, dict[str, list[Matched]], dict[str, dict[str, Any]]], list[Path]]
"""Shows what was matched, and its figures, both by kind of shape, in files of a folder; gives these."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What a demo learns from and matches.

    - dataset: all shapes; those marked `train` are learned from
    - tested: names of the shapes to match, by kind; the first kind's figures are the demo's
    - config: settings of the training
    - refinement: of the matches
    """

    dataset: Dataset
    tested: dict[str, list[str]]
    config: RunConfig
    refinement: RefineMethod


def run_demo(
    out: Path,
    *,
    partial: bool = False,
    config: RunConfig | None = None,
    train_shapes: int | None = None,
    test_shapes: int = 12,
    workers: int = 2,
    threads: int = 2,
    progress: Progress | None = None,
    show_first: Show | None = None,
    draw: Draw | None = None,
) -> dict[str, Any]:
    """Run the demo and leave everything in a folder.

    The training has a fixed number of steps on a fixed number of threads, and whatever is random comes from seeds: the
    figures do not depend on how busy a machine is, how many cores it has, or how many processes prepare. Processors of
    another kind and other versions of libraries round differently, which changes the figures a little.

    Parameters
    - out: folder; the first match goes into `out/first`, the run into `out/run`, the figures beside them
    - partial: learn from and match parts, with cuts and with holes, instead of whole shapes
    - config: by default the preset `quick`, or `quick-partial`
    - train_shapes: how many of the training shapes to use, for a quick try; None is all
    - test_shapes: how many shapes of unseen people to match, and as many remeshed copies (or: how many parts of each
      kind)
    - workers: processes that prepare
    - threads: of the training; sums are rounded differently with another number
    - progress: called with (done, in all); stages `preparing`, `training` and so on
    - show_first: shows two humans matched by the pretrained model, before anything is trained
      (`acnn.viewer.show_first_match`); None leaves that out
    - draw: shows the matched shapes (`acnn.viewer.show_demo`)

    Returns `exact, mean_error_x100, seconds` on unseen people, the same under `refined`, and all of that under
    `remeshed` for remeshed copies of them; of parts, those with cuts come first and those with holes are under `holes`.
    `first_result_seconds` is the time until the first match was shown.
    """
    began = time.perf_counter()
    plan = partial_plan(train_shapes, test_shapes, config) if partial else whole_plan(train_shapes, test_shapes, config)
    dataset = plan.dataset
    if out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out}: is not empty. Choose another folder with --out, or delete this one.")
    check_outputs([out / "demo.json"])
    first_seconds = None
    if show_first:
        first_match(out / "first", show_first, progress=progress)
        first_seconds = time.perf_counter() - began
    with _torch_threads(threads):
        facts, _ = train_run(dataset, out / "run", plan.config, workers=workers, progress=progress)
        run = open_run(out / "run")
        kept: dict[str, list[Matched]] = {kind: [] for kind in plan.tested}
        reports = {}
        for kind, samples in kept.items():
            reports[kind], _ = evaluate_run(
                run,
                dataset,
                test_list=",".join(plan.tested[kind]),
                refinement=plan.refinement,
                workers=workers,
                progress=named_stages(progress, f"{{}} unseen humans ({kind})"),
                keep=samples.append,
            )
            write_whole(out / f"evaluation_{kind}.json", json.dumps(reports[kind], indent=1).encode())
    _write_curves(out, reports)
    pictures = [out / "curves.png"]
    if draw:
        begin_stage(progress, "drawing")
        pictures += draw(out, run, kept, reports)
    first, second = reports
    figures = _figures(reports[first]) | {
        second: _figures(reports[second]),
        "train_shapes": len(facts["train"]),
        "steps": facts.get("step"),
        "first_result_seconds": first_seconds,
        "seconds_preparing": facts["seconds_preparing"],
        "seconds_training": facts["seconds_training"],
        "seconds": time.perf_counter() - began,
        "normalisation": reports[first]["normalisation"],
        "files": [str(path) for path in pictures],
    }
    write_whole(out / "demo.json", (json.dumps(figures, indent=2) + "\n").encode())
    return figures


def whole_plan(train_shapes: int | None, test_shapes: int, config: RunConfig | None = None) -> Plan:
    """People to learn from, some of them in a second triangulation as well, and people to test on in two of them.

    The people tested on are others than those learned from, in other poses.
    """
    dataset = humans_dataset(copies=1)
    originals = {s.name: s for s in dataset.samples if "_remeshed" not in s.name}
    copies = {s.name.removesuffix("_remeshed"): s for s in dataset.samples if "_remeshed" in s.name}
    training = spread_over([s for s in originals.values() if s.split == "train"], train_shapes)
    testing = spread_over([s for s in originals.values() if s.split == "test"], test_shapes)
    chosen = [*training, *(copies[s.name] for s in training[::COPIED])]
    chosen += [*testing, *(copies[s.name] for s in testing)]
    tested = {"original": [s.name for s in testing], "remeshed": [copies[s.name].name for s in testing]}
    chosen_config = config or preset_config("quick")
    return Plan(replace(dataset, samples=tuple(chosen)), tested, chosen_config, "zoomout")


def partial_plan(train_shapes: int | None, test_shapes: int, config: RunConfig | None = None) -> Plan:
    """Parts of people to learn from, half with cuts and half with holes, and parts of other people to test on."""
    dataset = humans_dataset()
    training = spread_over([s for s in dataset.samples if s.split == "train"], train_shapes)
    testing = spread_over([s for s in dataset.samples if s.split == "test"], test_shapes)
    samples: list[Sample] = []
    tested: dict[str, list[str]] = {}
    for i, kind in enumerate(KINDS):
        learned = parts_of(replace(dataset, samples=tuple(training[i::2])), kind, LACKING[kind], seed=1)
        matched = parts_of(replace(dataset, samples=tuple(testing)), kind, LACKING[kind], seed=2)
        samples += [*learned.samples, *matched.samples]
        tested[kind] = [s.name for s in matched.samples]
    parts = replace(dataset, samples=tuple(samples), unit=learned.unit)
    return Plan(parts, tested, config or preset_config("quick-partial"), "pfm")


@contextmanager
def _torch_threads(count: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _figures(report: dict[str, Any]) -> dict[str, Any]:
    names = ("exact", "mean_error_x100", "coverage")
    return {name: report[name] for name in names} | {"refined": {name: report["refined"][name] for name in names}}


def _write_curves(out: Path, reports: dict[str, dict[str, Any]]) -> None:
    curves = {}
    for kind, report in reports.items():
        for name, curve in report_curves(report).items():
            if "symmetric" not in name:
                curves[f"{name}, {kind}"] = curve
    write_curves(out / "curves", curves, next(iter(reports.values()))["normalisation"])
