"""Demo on the built-in humans: a match by the pretrained model, then prepare, train, match, refine and evaluate."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acnn.correspondence.refine import RefineMethod
from acnn.datasets.dataset import Dataset, Sample, spread_over
from acnn.datasets.open import humans_dataset
from acnn.datasets.parts import KINDS, Kind, parts_of
from acnn.errors import InputError
from acnn.evaluation.curves import report_curves, write_curves
from acnn.evaluation.results import Matched
from acnn.files import check_outputs, write_atomic
from acnn.methods.run import Run, open_run
from acnn.progress import Progress, begin_stage, named_stages
from acnn.runs.evaluate import evaluate_run
from acnn.runs.first_match import Show, first_match
from acnn.runs.train import train_run
from acnn.training.config import RunConfig, preset_config
from acnn.viewer.figure_parts import draw_matches
from acnn.viewer.report import report_of, write_report

COPIED = 6
"""One training shape in so many is also used in a second triangulation."""

MISSING: dict[Kind, tuple[float, float]] = {"cuts": (0.2, 0.6), "holes": (0.1, 0.4)}
"""Range of the missing fraction of the area in the partial demo, by kind."""

SHOWN = 4
"""Number of shapes in a report."""

Draw = Callable[[Path, Run, dict[str, list[Matched]], dict[str, dict[str, Any]]], list[Path]]
"""Writes images and pages of matched shapes and their figures, both by kind, into a folder; returns the files."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Training and test data of a demo, and its settings.

    Attributes
    ----------
    dataset : Dataset
        All shapes; those of the split `train` are trained on.
    tested : dict[str, list[str]]
        Names of the shapes to match, by kind; the figures of the first kind are those of the demo.
    config : RunConfig
        Training settings.
    refinement : RefineMethod
        How the matches are refined.
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
    test_shapes: int = 8,
    workers: int = 2,
    threads: int = 2,
    progress: Progress | None = None,
    show_first: Show | None = None,
    draw: Draw | None = None,
) -> dict[str, Any]:
    """Run the demo and write all results to a folder.

    Training runs for a fixed number of steps on a fixed number of threads with fixed seeds: the figures do not depend
    on the load of the machine, its number of cores, or the number of worker processes. Other processors and versions of
    libraries round differently, which changes the figures slightly.

    Parameters
    ----------
    out : Path
        Output folder: the first match in `out/first`, the run in `out/run`, the figures beside them.
    partial : bool
        Train on and match partial shapes, with cuts and with holes, instead of full shapes.
    config : RunConfig or None
        Training settings; None is the preset `quick`, or `quick-partial`.
    train_shapes : int or None
        Number of training shapes to use, for a quick trial; None is all.
    test_shapes : int
        Number of shapes of unseen subjects to match, and of remeshed copies (or: of partial shapes of each kind).
    workers : int
        Number of processes that prepare shapes.
    threads : int
        Threads of the training; another number changes the rounding of sums.
    progress : Progress or None
        Called with (done, total); stages `preparing`, `training` and so on.
    show_first : Show or None
        Shows two humans matched by the pretrained model before training (`show_first_match`); None skips this step.
    draw : Draw or None
        Renders the matched shapes (`show_demo`); None skips this step.

    Returns
    -------
    dict[str, Any]
        `exact, mean_error_x100, seconds` on unseen subjects, the same under `refined`, and all of it under `remeshed`
        for their remeshed copies; for partial shapes the main figures are those of cuts, with holes under `holes`.
        `first_result_seconds` is the time until the first match was shown.

    Raises
    ------
    InputError
        If the folder is not empty or cannot be written.
    """
    began = time.perf_counter()
    plan = partial_plan(train_shapes, test_shapes, config) if partial else full_plan(train_shapes, test_shapes, config)
    dataset = plan.dataset
    if out.is_dir() and any(out.iterdir()):
        raise InputError(f"{out}: the folder is not empty. Choose another with --out, or delete this one.")
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
            write_atomic(out / f"evaluation_{kind}.json", json.dumps(reports[kind], indent=1).encode())
    _write_curves(out, reports)
    images = [out / "curves.png"]
    if draw:
        begin_stage(progress, "rendering")
        images += draw(out, run, kept, reports)
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
        "files": [str(path) for path in images],
    }
    write_atomic(out / "demo.json", (json.dumps(figures, indent=2) + "\n").encode())
    return figures


def show_demo(out: Path, run: Run, matched: dict[str, list[Matched]], reports: dict[str, dict[str, Any]]) -> list[Path]:
    """Write `matches_KIND.png` and `report_KIND.html` for each kind of shape.

    Parameters
    ----------
    out : Path
        Output folder.
    run : Run
        The trained network.
    matched : dict[str, list[Matched]]
        Matched shapes by kind.
    reports : dict[str, dict[str, Any]]
        Reports of `evaluate_run` by kind.

    Returns
    -------
    list[Path]
        The files written.
    """
    files = draw_matches(out, run, matched)
    for kind, shapes in matched.items():
        some = spread_over(shapes, SHOWN)
        page = out / f"report_{kind}.html"
        write_report(report_of(f"acnn demo, {kind}", f"humans, {kind}", run, some, reports[kind]), page)
        files.append(page)
    return files


def full_plan(train_shapes: int | None, test_shapes: int, config: RunConfig | None = None) -> Plan:
    """Plan of the demo on full shapes: some training shapes and all test shapes come in two triangulations.

    Test subjects and poses differ from those of training.

    Parameters
    ----------
    train_shapes : int or None
        Number of training shapes; None is all.
    test_shapes : int
        Number of test shapes.
    config : RunConfig or None
        Training settings; None is the preset `quick`.

    Returns
    -------
    Plan
    """
    dataset = humans_dataset(remeshed=1)
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
    """Plan of the demo on partial shapes: half of the training shapes with cuts and half with holes.

    Parameters
    ----------
    train_shapes : int or None
        Number of full shapes that training shapes are cut from; None is all.
    test_shapes : int
        Number of test shapes of each kind, of other subjects.
    config : RunConfig or None
        Training settings; None is the preset `quick-partial`.

    Returns
    -------
    Plan
    """
    dataset = humans_dataset()
    training = spread_over([s for s in dataset.samples if s.split == "train"], train_shapes)
    testing = spread_over([s for s in dataset.samples if s.split == "test"], test_shapes)
    samples: list[Sample] = []
    tested: dict[str, list[str]] = {}
    for i, kind in enumerate(KINDS):
        seen = parts_of(replace(dataset, samples=tuple(training[i::2])), kind, MISSING[kind], seed=1)
        unseen = parts_of(replace(dataset, samples=tuple(testing)), kind, MISSING[kind], seed=2)
        samples += [*seen.samples, *unseen.samples]
        tested[kind] = [s.name for s in unseen.samples]
    partial = replace(dataset, samples=tuple(samples), unit=seen.unit)
    return Plan(partial, tested, config or preset_config("quick-partial"), "pfm")


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
