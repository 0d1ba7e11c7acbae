"""Demo on the built-in humans: a match by the pretrained model, then prepare, train, match, refine and evaluate."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from acnn.correspondence.refine import RefineMethod
from acnn.correspondence.texture import sampled
from acnn.datasets.dataset import Dataset, Sample, spread_over
from acnn.datasets.humans.sample_shapes import with_texture
from acnn.datasets.open import humans_dataset
from acnn.datasets.parts import KINDS, Kind, parts_of
from acnn.errors import InputError
from acnn.evaluation.curves import report_curves, write_curves
from acnn.evaluation.results import Matched
from acnn.files import check_outputs, make_folder, write_atomic
from acnn.methods.run import Run, open_run
from acnn.progress import Progress, begin_stage, named_stages
from acnn.reports import Report
from acnn.runs.evaluate import evaluate_run
from acnn.runs.match_files import match_files
from acnn.runs.match_routes import HUMANS
from acnn.runs.train import train_run
from acnn.runs.transfer import transfer_files
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh
from acnn.shapes.save import save
from acnn.training.config import RunConfig, preset_config
from acnn.viewer.figure_parts import draw_matches, refined_mesh
from acnn.viewer.images import Image, grid, render, save_png
from acnn.viewer.match_page import FileMatch, write_match_page
from acnn.viewer.report import report_of, write_report

COPIED = 6
"""One training shape in so many is also used in a second triangulation."""

MISSING: dict[Kind, tuple[float, float]] = {"cuts": (0.2, 0.6), "holes": (0.1, 0.4)}
"""Range of the missing fraction of the area in the partial demo, by kind."""

SHOWN = 4
"""Number of shapes in a report."""

Draw = Callable[[Path, Run, dict[str, list[Matched]], dict[str, Report]], list[Path]]
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


@dataclass(frozen=True, eq=False, kw_only=True)
class DemoFigures(Report):
    """Figures of the network and, under `refined`, of the refined maps; see `EvaluationReport`."""

    exact: float
    mean_error_x100: float
    coverage: float
    refined: DemoFigures | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class DemoReport(DemoFigures):
    """What `acnn demo --json` prints: figures on unseen subjects; for partial shapes, on cuts.

    Attributes
    ----------
    remeshed, holes : DemoFigures or None
        The same on their remeshed copies; for partial shapes, on those with holes.
    train_shapes, steps : int or None
        Of the training.
    first_result_seconds : float or None
        The time until the first match was shown.
    seconds_preparing, seconds_training, seconds : float or None
        Of both, and in total.
    normalisation : str
        What errors are divided by.
    files : list[str]
        Images and pages.
    """

    train_shapes: int
    steps: int | None
    first_result_seconds: float | None
    seconds_preparing: float | None
    seconds_training: float | None
    seconds: float
    normalisation: str
    files: list[str]
    remeshed: DemoFigures | None = None
    holes: DemoFigures | None = None


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
) -> DemoReport:
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
    DemoReport

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
        record, _ = train_run(dataset, out / "run", plan.config, workers=workers, progress=progress)
        run = open_run(out / "run")
        kept: dict[str, list[Matched]] = {kind: [] for kind in plan.tested}
        reports: dict[str, Report] = {}
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
            write_atomic(out / f"evaluation_{kind}.json", json.dumps(reports[kind].as_dict(), indent=1).encode())
    _write_curves(out, reports)
    images = [out / "curves.png"]
    if draw:
        begin_stage(progress, "rendering")
        images += draw(out, run, kept, reports)
    first = next(iter(reports))
    figures = {kind: _figures(report) for kind, report in reports.items()}
    report = DemoReport(
        **figures[first],
        remeshed=figures.get("remeshed"),
        holes=figures.get("holes"),
        train_shapes=len(record.train),
        steps=record.step,
        first_result_seconds=first_seconds,
        seconds_preparing=record.seconds_preparing,
        seconds_training=record.seconds_training,
        seconds=time.perf_counter() - began,
        normalisation=reports[first]["normalisation"],
        files=[str(path) for path in images],
    )
    write_atomic(out / "demo.json", (json.dumps(report.as_dict(), indent=2) + "\n").encode())
    return report


def show_demo(out: Path, run: Run, matched: dict[str, list[Matched]], reports: dict[str, Report]) -> list[Path]:
    """Write `matches_KIND.png` and `report_KIND.html` for each kind of shape.

    Parameters
    ----------
    out : Path
        Output folder.
    run : Run
        The trained network.
    matched : dict[str, list[Matched]]
        Matched shapes by kind.
    reports : dict[str, Report]
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


def _figures(report: Mapping[str, Any]) -> DemoFigures:
    refined = _figures(report["refined"]) if "refined" in report else None
    return DemoFigures(
        exact=report["exact"], mean_error_x100=report["mean_error_x100"], coverage=report["coverage"], refined=refined
    )


def _write_curves(out: Path, reports: dict[str, Report]) -> None:
    curves = {}
    for kind, report in reports.items():
        for name, curve in report_curves(report).items():
            if "symmetric" not in name:
                curves[f"{name}, {kind}"] = curve
    write_curves(out / "curves", curves, next(iter(reports.values()))["normalisation"])


A, B = "human_16_05_remeshed", "human_18_02"
"""Humans of the test split in different poses; A is remeshed, so the triangulations differ."""

Show = Callable[[FileMatch, Mesh, Path], Any]
"""Writes pages and images of a match, and of A with the texture of B, into a folder."""


def first_match(folder: Path, show: Show, *, progress: Progress | None = None) -> dict[str, Any]:
    """Match two built-in humans with the pretrained model, transfer a texture from one to the other, and show both.

    Parameters
    ----------
    folder : Path
        Output folder: both shapes (B with a texture), the files of `match_files`, A with the texture
        (`a_textured.glb`), and the files that `show` writes.
    show : Show
        Called with the match, A with the texture, and the folder.
    progress : Progress or None
        Called with (done, total); the stages are those of `match`.

    Returns
    -------
    dict[str, Any]
        The report of `match_files`, and `textured`, the file of A with the texture.
    """
    begin_stage(progress, "two humans")
    humans = humans_dataset(remeshed=1)
    a, b = folder / f"{A}.ply", folder / f"{B}.obj"
    make_folder(a)
    save(humans.named(A).read().shape, a)
    save(with_texture(humans.named(B).read().shape), b)
    matches: list[FileMatch] = []
    report = match_files(a, b, HUMANS, folder, barycentric=True, progress=progress, keep=matches.append)
    begin_stage(progress, "texture")
    textured = folder / "a_textured.glb"
    transfer_files(folder, b, a, textured, "texture")
    painted = load(textured)
    assert isinstance(painted, Mesh)
    show(matches[0], painted, folder)
    return report | {"textured": str(textured)}


def show_first_match(match: FileMatch, textured: Mesh, folder: Path) -> Path:
    """Write the page of a match (`match.html`) and an image of B's texture on both shapes (`texture.png`).

    Parameters
    ----------
    match : FileMatch
        Match of A to B, a mesh with a texture.
    textured : Mesh
        A with the texture of B.
    folder : Path
        Output folder.

    Returns
    -------
    Path
        The page.
    """
    assert isinstance(match.target, Mesh)
    labels = ["B with its texture", "A with the texture of B"]
    save_png(grid([[render_textured(match.target), render_textured(textured)]], [labels]), folder / "texture.png")
    return write_match_page(match, folder / "match.html")


def render_textured(mesh: Mesh, **options: Any) -> Image:
    """Render a mesh with its texture, sampled at the vertices of a subdivided mesh; options as of `render`."""
    texture = mesh.texture
    assert texture is not None
    assert texture.image is not None
    corners = Mesh(mesh.vertices[mesh.faces].reshape(-1, 3), np.arange(3 * len(mesh.faces)).reshape(-1, 3))
    fine, uv = refined_mesh(corners, texture.uv[texture.uv_faces].reshape(-1, 2), 3)
    return render(fine, colors=sampled(texture.image, uv)[:, :3] / 255.0, **options)
