"""The demo on the built-in humans: a match by the pretrained model, then prepare, train, match, refine, evaluate."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.correspondence.refine import RefineMethod
from acnn.correspondence.texture import sampled
from acnn.datasets.builtin import builtin_human
from acnn.datasets.dataset import Dataset, Sample, spread_over
from acnn.datasets.open import humans_dataset
from acnn.datasets.parts import KINDS, Kind, parts_of
from acnn.errors import InputError
from acnn.evaluation.curves import report_curves, write_curves
from acnn.evaluation.results import Matched
from acnn.files import check_outputs, make_folder, write_atomic
from acnn.methods.run import Run, open_run
from acnn.progress import Progress, begin_stage, named_stages
from acnn.runs.evaluate import evaluate_run
from acnn.runs.match import HUMANS
from acnn.runs.match_files import match_files
from acnn.runs.train import train_run
from acnn.runs.transfer import transfer_files
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh, Shape, Texture
from acnn.shapes.save import save
from acnn.training.config import RunConfig, preset_config
from acnn.viewer.figure_parts import draw_matches, refined_mesh
from acnn.viewer.images import Image, grid, render, save_png
from acnn.viewer.match_page import FileMatch, write_match_page
from acnn.viewer.report import report_of, write_report

COPIED = 6
"""One in so many training shapes is learned from in a second triangulation, too."""

LACKING: dict[Kind, tuple[float, float]] = {"cuts": (0.2, 0.6), "holes": (0.1, 0.4)}
"""Shares of the area that the parts of the partial demo lack."""

Draw = Callable[[Path, Run, dict[str, list[Matched]], dict[str, dict[str, Any]]], list[Path]]
"""Shows what was matched, and its figures, both by kind of shape, in files of a folder; gives these."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What a demo learns from and matches.

    Attributes
    ----------
    dataset : Dataset
        All shapes; those marked `train` are learned from.
    tested : dict[str, list[str]]
        Names of the shapes to match, by kind; the first kind's figures are the demo's.
    config : RunConfig
        Settings of the training.
    refinement : RefineMethod
        Of the matches.
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
    ----------
    out : Path
        Folder; the first match goes into `out/first`, the run into `out/run`, the figures beside them.
    partial : bool
        Learn from and match parts, with cuts and with holes, instead of whole shapes.
    config : RunConfig or None
        By default the preset `quick`, or `quick-partial`.
    train_shapes : int or None
        How many of the training shapes to use, for a quick try; None is all.
    test_shapes : int
        How many shapes of unseen people to match, and as many remeshed copies (or: how many parts of each kind).
    workers : int
        Processes that prepare.
    threads : int
        Of the training; sums are rounded differently with another number.
    progress : Progress or None
        Called with (done, in all); stages `preparing`, `training` and so on.
    show_first : Show or None
        Shows two humans matched by the pretrained model, before anything is trained (`acnn.viewer.show_first_match`);
        None leaves that out.
    draw : Draw or None
        Shows the matched shapes (`acnn.viewer.show_demo`).

    Returns
    -------
    dict[str, Any]
        `exact, mean_error_x100, seconds` on unseen people, the same under `refined`, and all of that under `remeshed`
        for remeshed copies of them; of parts, those with cuts come first and those with holes are under `holes`.
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
            write_atomic(out / f"evaluation_{kind}.json", json.dumps(reports[kind], indent=1).encode())
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
    write_atomic(out / "demo.json", (json.dumps(figures, indent=2) + "\n").encode())
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


A, B = "human_16_05_remeshed", "human_18_02"
"""Humans of the test split in different poses; A has a triangulation of its own."""

HEIGHT, MARGIN, SQUARES = 1024, 8, 26
"""Pixels along the height of the texture and around each of its two views, and squares along the height of the body."""

Show = Callable[[FileMatch, Mesh, Path], Any]
"""Shows a match and A with the texture of B in a folder."""


def first_match(folder: Path, show: Show, *, progress: Progress | None = None) -> dict[str, Any]:
    """Match two built-in humans with the pretrained model, transfer a texture from one to the other, and show both.

    Parameters
    ----------
    folder
        Gets both shapes (B with a texture), the files of `match_files`, A with the texture (`a_textured.glb`), and what
        `show` writes.
    show
        Called with the match, A with the texture, and the folder, as soon as they are there.
    progress
        Called with (done, total); the stages are those of `match_pair`.

    Returns
    -------
    dict
        The facts of `match_files`, and `textured`, the file of A with the texture.
    """
    begin_stage(progress, "two humans")
    humans = humans_dataset(copies=1)
    a, b = folder / f"{A}.ply", folder / f"{B}.obj"
    make_folder(a)
    save(humans.named(A).read().shape, a)
    save(with_texture(humans.named(B).read().shape), b)
    kept: list[FileMatch] = []
    facts = match_files(a, b, HUMANS, folder, barycentric=True, progress=progress, keep=kept.append)
    begin_stage(progress, "texture")
    textured = folder / "a_textured.glb"
    transfer_files(folder, b, a, textured, "texture")
    painted = load(textured)
    assert isinstance(painted, Mesh)
    show(kept[0], painted, folder)
    return facts | {"textured": str(textured)}


def with_texture(human: Shape) -> Mesh:
    """A built-in human with a chequered texture: its front and its back, as seen on a body that stands upright.

    Parameters
    ----------
    human
        With the faces that all built-in humans share.

    Returns
    -------
    Mesh
        The same with texture coordinates and an image.
    """
    upright = builtin_human()
    if not isinstance(human, Mesh) or not np.array_equal(upright.faces, human.faces):
        raise InputError("Only built-in humans in their own triangulation have this texture.")
    low, size = upright.vertices.min(axis=0), np.ptp(upright.vertices, axis=0)
    scale = (HEIGHT - 2 * MARGIN) / size[1]  # pixels in a unit of length
    half = round(scale * size[0]) + 2 * MARGIN
    x, y = ((upright.vertices - low)[:, :2] * scale + MARGIN).T
    views = [np.column_stack([u / (2 * half), y / HEIGHT]) for u in (x, 2 * half - x)]
    corners = upright.vertices[upright.faces]
    behind = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2] < 0
    texture = Texture(
        np.concatenate(views), (upright.faces + len(x) * behind[:, None]).astype(np.int32), _chequered(half)
    )
    return replace(human, texture=texture)


def _chequered(half: int) -> NDArray[np.uint8]:
    """(HEIGHT, 2 half, 3) squares whose colours change with height and side, warm in front and cold behind."""
    row, column = np.mgrid[:HEIGHT, : 2 * half]
    edge = HEIGHT / SQUARES
    across = np.where(column < half, column, 2 * half - 1 - column)  # the same side of the body on both views
    dark = ((across - half / 2) // edge + row // edge) % 2 == 1
    up, side = 1.0 - row / HEIGHT, across / half
    front = np.stack([0.95 - 0.25 * up, 0.25 + 0.6 * up, 0.15 + 0.35 * side], axis=-1)
    back = np.stack([0.15 + 0.35 * side, 0.25 + 0.5 * up, 0.95 - 0.35 * up], axis=-1)
    color = np.where((column < half)[..., None], front, back)
    return np.rint(255 * np.where(dark[..., None], 0.55 * color, 0.45 + 0.55 * color)).astype(np.uint8)


SHOWN = 4
"""Shapes in a report."""


def show_demo(out: Path, run: Run, matched: dict[str, list[Matched]], reports: dict[str, dict[str, Any]]) -> list[Path]:
    """Write `matches_KIND.png` and `report_KIND.html` for each kind of shape, and return the files.

    Parameters
    ----------
    out : Path
        Folder.
    matched : dict[str, list[Matched]]
        Shapes by kind.
    reports : dict[str, dict[str, Any]]
        What `evaluate_run` returned for them.
    """
    files = draw_matches(out, run, matched)
    for kind, shapes in matched.items():
        some = spread_over(shapes, SHOWN)
        page = out / f"report_{kind}.html"
        write_report(report_of(f"acnn demo, {kind}", f"humans, {kind}", run, some, reports[kind]), page)
        files.append(page)
    return files


def show_first_match(match: FileMatch, textured: Mesh, folder: Path) -> Path:
    """Write the page of a match (`match.html`) and an image of B's texture on both shapes (`texture.png`).

    Parameters
    ----------
    match
        Of A to B, a mesh with a texture.
    textured
        A with the texture of B.
    folder
        Where the files go.

    Returns
    -------
    Path
        The page.
    """
    assert isinstance(match.target, Mesh)
    labels = ["B with its texture", "A with the texture of B"]
    save_png(grid([[_render_textured(match.target), _render_textured(textured)]], [labels]), folder / "texture.png")
    return write_match_page(match, folder / "match.html")


def _render_textured(mesh: Mesh) -> Image:
    """An image of a mesh with its texture, which is sampled at the corners of smaller triangles."""
    texture = mesh.texture
    assert texture is not None
    assert texture.image is not None
    corners = Mesh(mesh.vertices[mesh.faces].reshape(-1, 3), np.arange(3 * len(mesh.faces)).reshape(-1, 3))
    fine, uv = refined_mesh(corners, texture.uv[texture.uv_faces].reshape(-1, 2), 3)
    return render(fine, colors=sampled(texture.image, uv)[:, :3] / 255.0)
