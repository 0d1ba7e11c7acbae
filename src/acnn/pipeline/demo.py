"""The main job on the built-in humans: prepare, train, match people never seen, refine, evaluate, draw."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from acnn.datasets.collection import Dataset, Sample
from acnn.datasets.opening import humans_dataset
from acnn.evaluation.curves import report_curves, write_curves_csv, write_curves_json, write_curves_png
from acnn.pipeline.evaluate_run import Matched, evaluate_run
from acnn.pipeline.run import Run, open_run
from acnn.pipeline.train_run import train_run
from acnn.shapes.formats.files import write_whole
from acnn.surface.rows import Progress
from acnn.training.config import RunConfig, preset_config
from acnn.training.loop import Report

COPIED = 6
"""One in so many training shapes is learned from in a second triangulation, too."""

Draw = Callable[[Path, Run, dict[str, list[Matched]]], list[Path]]
"""Draws what was matched into a folder and gives the files."""

Stage = Callable[[str], Progress | None]
"""Called with the name of each stage as it begins; gives what is to be called with (done, in all)."""


def run_demo(
    out: Path,
    *,
    config: RunConfig | None = None,
    train_shapes: int | None = None,
    test_shapes: int = 12,
    workers: int = 2,
    stage: Stage = lambda name: None,
    report: Report | None = None,
    draw: Draw | None = None,
) -> dict[str, Any]:
    """Run the demo and leave everything in a folder.

    Parameters
    - out: folder; the run goes into `out/run`, the figures beside it
    - config: by default the preset `quick`
    - train_shapes: how many of the training shapes to use, for a quick try; None is all
    - test_shapes: how many shapes of unseen people to match, and as many remeshed copies
    - workers: processes that prepare
    - stage, report: for progress
    - draw: draws the matched shapes (`acnn.viewer.draw_matches`)

    Returns `exact, mean_error_x100, seconds` on unseen people, the same under `refined`, and all of that under
    `remeshed` for remeshed copies of them.
    """
    began = time.perf_counter()
    chosen = config or preset_config("quick")
    dataset = demo_dataset(train_shapes, test_shapes)
    out.mkdir(parents=True, exist_ok=True)
    facts, _ = train_run(
        dataset, out / "run", chosen, workers=workers, preparing=stage("preparing people"), report=report
    )
    run = open_run(out / "run")
    kept: dict[str, list[Matched]] = {"original": [], "remeshed": []}
    reports = {}
    for kind, samples in kept.items():
        names = [
            s.name for s in dataset.samples if s.split == "test" and ("_remeshed" in s.name) == (kind == "remeshed")
        ]
        reports[kind], _ = evaluate_run(
            run,
            dataset,
            test_list=",".join(names),
            refinement="zoomout",
            workers=workers,
            preparing=stage(f"preparing unseen people ({kind})"),
            progress=stage(f"matching unseen people ({kind})"),
            keep=samples.append,
        )
        write_whole(out / f"evaluation_{kind}.json", json.dumps(reports[kind], indent=1).encode())
    _write_curves(out, reports)
    pictures = [out / "curves.png"]
    if draw:
        stage("drawing")
        pictures += draw(out, run, kept)
    figures = _figures(reports["original"]) | {
        "remeshed": _figures(reports["remeshed"]),
        "train_shapes": len(facts["train"]),
        "steps": facts.get("step"),
        "seconds_preparing": facts["seconds_preparing"],
        "seconds_training": facts["seconds_training"],
        "seconds": time.perf_counter() - began,
        "normalisation": reports["original"]["normalisation"],
        "files": [str(path) for path in pictures],
    }
    write_whole(out / "demo.json", (json.dumps(figures, indent=2) + "\n").encode())
    return figures


def demo_dataset(train_shapes: int | None, test_shapes: int) -> Dataset:
    """People to learn from, some of them in a second triangulation as well, and people to test on in two of them.

    The people tested on are others than those learned from, in other poses.
    """
    dataset = humans_dataset(copies=1)
    originals = {s.name: s for s in dataset.samples if "_remeshed" not in s.name}
    copies = {s.name.removesuffix("_remeshed"): s for s in dataset.samples if "_remeshed" in s.name}
    training = _spread([s for s in originals.values() if s.split == "train"], train_shapes)
    testing = _spread([s for s in originals.values() if s.split == "test"], test_shapes)
    chosen = [*training, *(copies[s.name] for s in training[::COPIED])]
    chosen += [*testing, *(copies[s.name] for s in testing)]
    return replace(dataset, samples=tuple(chosen))


def _spread(samples: list[Sample], count: int | None) -> list[Sample]:
    """`count` of the samples, spread evenly over them."""
    if count is None or count >= len(samples):
        return samples
    return [samples[(i * len(samples)) // count] for i in range(count)]


def _figures(report: dict[str, Any]) -> dict[str, Any]:
    names = ("exact", "mean_error_x100", "coverage")
    return {name: report[name] for name in names} | {"refined": {name: report["refined"][name] for name in names}}


def _write_curves(out: Path, reports: dict[str, dict[str, Any]]) -> None:
    curves = {}
    for kind, report in reports.items():
        for name, curve in report_curves(report).items():
            if "symmetric" not in name:
                curves[f"{name}, {kind}"] = curve
    normalisation = reports["original"]["normalisation"]
    write_curves_csv(out / "curves.csv", curves)
    write_curves_json(out / "curves.json", curves, normalisation)
    write_curves_png(out / "curves.png", curves, normalisation)
