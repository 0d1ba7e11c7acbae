"""Registration of a template onto shapes: matched by `match`, then fitted, with one file of each and a list of all."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.correspondence.judge import Verdict
from acnn.correspondence.transfer import push_forward
from acnn.datasets.folder import shape_files
from acnn.errors import InputError
from acnn.files import check_outputs, full_disk, make_folder, write_atomic
from acnn.methods.registry import AUTO
from acnn.methods.run import Run
from acnn.progress import Progress, begin_stage
from acnn.registration.fit import MAP_DETAIL, Fit, fit, matched_scale
from acnn.reports import Report
from acnn.runs.match import match
from acnn.runs.match_files import model_digest
from acnn.runs.match_results import PairMatch
from acnn.runs.transfer import FitFigures, read_landmarks
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh, Shape
from acnn.shapes.save import save
from acnn.shapes.topology import mesh_edges
from acnn.training.parallel import run_in_processes, run_on_scheduler
from acnn.types import FloatArray

LIST = "registration.json"
"""The file that lists all results of a folder."""

LEAST_SHOWN = 0.005
"""Least upper end of the colours of residuals, over the root of the area, so that a close fit does not look poor."""

SUFFIXES_WRITTEN = (".ply", ".npz", ".json", ".png", "_residual.png")
"""Ends of the names of the files of one result; `.png` is the texture."""

PAGE = "register.html"
"""The page that shows them."""

RESIZED = 1.15, 2.0
"""Ratios between which the size of a shape by its matches contradicts the one by its geodesic diameter, which a missing
part changes: for full bodies, poses and proportions make it 0.95 to 1.17 (12 FAUST registrations of 000-059). Larger
ones come from wrong matches."""

UNSURE = 0.85
"""Mean confidence below which a shape of contradicting size is matched again."""

SURER = 0.75
"""Factor by which doubt, 1 - confidence, must fall for the second match to be taken. Of 16 clouds of FAUST 000-059 with
a part missing, four are matched again, and factors are 0.22, 0.23, 0.66 (errors fall from 37 to 16, 56 to 47 and 56 to
18 mm) and 0.84 (64 to 92 mm, as its detached hand is matched elsewhere)."""

VERSION = 3
"""Of the method: results of another version are computed again."""


@dataclass(frozen=True, eq=False)
class Registration:
    """A template registered to a shape.

    Attributes
    ----------
    fit : Fit
        The fitted template, residuals, and where the shape has data.
    confidence : (n,) array
        Mean confidence of the matches at each vertex of the template, 0 where there is none.
    match : PairMatch
        The map of the shape to the template.
    """

    fit: Fit
    confidence: FloatArray
    match: PairMatch

    @property
    def mesh(self) -> Mesh:
        """The template in the form of the shape."""
        return self.fit.mesh

    def as_dict(self) -> dict[str, Any]:
        """Figures of match and fit."""
        report = self.match.report
        return {
            "verdict": self.match.verdict,
            "route": report.route,
            "model": report.model,
            "mean_confidence": report.mean_confidence,
            **self.fit.as_dict(),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class RegisteredShape(FitFigures):
    """One result of `register_files`: what `NAME.json` contains.

    Attributes
    ----------
    name, shape : str
        The name of the result, and the file of the shape.
    key : str
        Hash of template, shape, network and settings, by which a result is known again.
    verdict, route, model, mean_confidence
        Of the match, see `MatchReport`.
    out : str
        The mesh.
    landmarks : dict[str, list[float]]
        Their positions on the shape.
    largest_shown : float or None
        The distance at the end of the colours of its image; None in results of earlier versions.
    """

    name: str
    shape: str
    key: str
    verdict: Verdict
    route: str
    model: str | None
    mean_confidence: float | None
    out: str
    landmarks: dict[str, list[float]]
    largest_shown: float | None = None


@dataclass(frozen=True, eq=False)
class RegisterReport(Report):
    """What `acnn register --json` prints.

    Attributes
    ----------
    template, out : str
        The file of the template, and the folder of the results.
    registered, kept : int
        Number of results, and of those among them that an earlier call had completed.
    shapes : list[RegisteredShape]
        In the order of the files.
    page : str or None
        The page that shows them.
    """

    template: str
    out: str
    registered: int
    kept: int
    shapes: list[RegisteredShape]
    page: str | None = None


@check_arguments
def register(
    template: Shape,
    shape: Shape,
    *,
    method: str = AUTO,
    model: Run | str | os.PathLike[str] | None = None,
    refinement: str = "auto",
    cache: bool = True,
    progress: Progress | None = None,
) -> Registration:
    """Register a template to a shape: match the shape to the template (`match`), then fit the template (`fit`).

    Where parts are missing, the geodesic diameter is not that of the full shape: if matches of a scan or a cloud are
    uncertain and show another size, it is matched again with that size, and the second match is taken if it is clearly
    more confident. Detached parts are matched again during the fit (`acnn.registration.fit`, `detached`).

    Parameters
    ----------
    template : Mesh
        Its faces, texture and vertex order stay.
    shape : Shape
        Mesh, scan with holes or point cloud, of any size and pose.
    method, model, refinement, cache, progress
        As for `match`; a further stage is `fit`.

    Returns
    -------
    Registration

    Raises
    ------
    InputError
        Where the template is a cloud, the two cannot be matched, or their map is judged to have failed.
    """
    if not isinstance(template, Mesh):
        raise InputError("The template must be a mesh, not a point cloud.")
    options: dict[str, Any] = {"method": method, "model": model, "refinement": refinement}
    found = match(shape, template, **options, cache=cache, progress=progress)
    unit = _other_unit(found, template, shape)
    if unit is not None:
        again = match(shape, template, **options, unit=unit, cache=cache, progress=progress)
        if _better(again, found):
            found = again
    if found.verdict == "failed":
        raise InputError(f"It could not be matched to the template: {' '.join(found.judgement.reasons)}")
    stage = begin_stage(progress, "fit")
    fitted = fit(
        template,
        shape,
        found.points,
        shape.vertices,
        found.confidence,
        detail=MAP_DETAIL,
        detached=True,
        progress=stage,
    )
    confidence = push_forward(found.confidence, found.a_to_b, len(template.vertices), missing=0.0)
    return Registration(fitted, confidence, found)


def _other_unit(found: PairMatch, template: Mesh, shape: Shape) -> float | None:
    """The unit of length by which an uncertain shape with missing parts has the size that its matches have."""
    if found.a.unit == found.b.unit or found.verdict == "failed" or found.confidence.mean() >= UNSURE:
        return None  # a network's own unit, nothing to go by, or nothing to improve
    if isinstance(shape, Mesh) and not len(mesh_edges(shape.faces).boundary()):
        return None
    unit = found.b.unit * matched_scale(template, found.points, shape.vertices, found.confidence)
    return unit if RESIZED[0] < max(unit / found.a.unit, found.a.unit / unit) < RESIZED[1] else None


def _better(again: PairMatch, found: PairMatch) -> bool:
    """Whether a match is clearly better than another of the same shapes."""
    verdicts = ("failed", "doubtful", "good")
    surer = 1.0 - again.confidence.mean() < SURER * (1.0 - found.confidence.mean())
    return bool(surer) and verdicts.index(again.verdict) >= verdicts.index(found.verdict)


@dataclass(frozen=True)
class Task:
    """One shape to register, as it is sent to another process."""

    template: str
    shape: str
    name: str
    out: str
    key: str
    landmarks: tuple[tuple[str, int], ...]
    options: tuple[tuple[str, Any], ...]


@check_arguments
def register_files(
    template: str | os.PathLike[str],
    shapes: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    landmarks: str | os.PathLike[str] | None = None,
    method: str = AUTO,
    model: str | os.PathLike[str] | None = None,
    refinement: str = "auto",
    workers: int = 1,
    scheduler: str | None = None,
    force: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
) -> tuple[RegisterReport, list[tuple[str, str]]]:
    """Register a template to shapes and write the results into a folder.

    For each shape `NAME.ply`, the template in its form; `NAME.npz` with `residual`, `confidence` and `has_data` of
    every vertex of the template; `NAME.json` with figures and landmarks; `NAME_residual.png`, coloured by the residual;
    `NAME.png`, the texture of the template if it has one. What an
    earlier call with the same template, shape, network and settings has written is kept.

    Parameters
    ----------
    template : path
        A mesh.
    shapes : sequence of paths
        Files, and folders of which all shapes are taken (text and NPY files only where there is nothing else).
    out : path
        Output folder.
    landmarks : path or None
        Vertices of the template, `[name] index` per line, 0-based; their positions on each shape are written.
    method, model, refinement, cache
        As for `match`.
    workers : int
        1 works in this process; more are processes of one thread each.
    scheduler : str or None
        Address of a Dask scheduler; its workers must see all files under the same paths.
    force : bool
        Overwrite files that are neither inputs nor from an earlier call.
    progress : Progress or None
        Called with (shapes done, in total).

    Returns
    -------
    report : RegisterReport
        Without a page.
    failures : list[tuple[str, str]]
        The files that failed, and why.

    Raises
    ------
    InputError
        Where there is nothing to register, two shapes have the same name, or files would be overwritten.
    """
    if workers < 1 or (workers > 1 and scheduler is not None):
        raise InputError("Give a number of workers from 1 on, or a scheduler, whose machines have their own workers.")
    goal, folder, files = Path(template), Path(out), _shape_files(shapes, Path(template))
    mesh = load(goal)
    if not isinstance(mesh, Mesh):
        raise InputError(f"{goal}: a template must be a mesh, not a point cloud.")
    marks = _landmarks(Path(landmarks), mesh) if landmarks is not None else ()
    options = {"method": method, "model": None if model is None else str(model), "refinement": refinement}
    tasks = [
        Task(str(goal), str(file), file.stem, str(folder), _key(goal, file, options, marks), marks,
             (*options.items(), ("cache", cache)))
        for file in files
    ]  # fmt: skip
    earlier = _earlier(folder)
    written = [folder / f"{task.name}{suffix}" for task in tasks for suffix in SUFFIXES_WRITTEN]
    written += [folder / LIST, folder / PAGE]
    inputs = (goal, *files, None if landmarks is None else Path(landmarks))
    check_outputs(written, inputs=inputs, earlier=earlier, force=force)
    make_folder(folder / LIST)
    # First of all, so that an interrupted call may write its own files again.
    names = sorted({*(file.name for file in earlier), *(file.name for file in written)})
    _write_json(folder / LIST, {"template": str(goal), "files": names, "complete": False})
    results = {i: done for i, task in enumerate(tasks) if (done := _kept(task)) is not None}
    kept = len(results)
    failures: dict[int, str] = {}
    left = [i for i in range(len(tasks)) if i not in results]
    if progress is not None:
        progress(kept, len(tasks))
    with closing(_outcomes([tasks[i] for i in left], workers, scheduler)) as outcomes:
        for index, outcome in outcomes:
            if isinstance(outcome, OSError):
                raise OSError(f"No room left in {folder} ({outcome.strerror}). What is done stays; run the same again.")
            if isinstance(outcome, str):
                failures[left[index]] = outcome
            else:
                results[left[index]] = outcome
            if progress is not None:
                progress(len(results) + len(failures), len(tasks))
    report = RegisterReport(str(goal), str(folder), len(results), kept, [results[i] for i in sorted(results)])
    failed = [(tasks[i].shape, failures[i]) for i in sorted(failures)]
    record = {"failed": [{"item": item, "why": why} for item, why in failed], "files": names, "complete": True}
    _write_json(folder / LIST, report | record)
    return report, failed


def register_task(task: Task) -> RegisteredShape | str | OSError:
    """Register one shape and write its files; what is wrong is returned, so that it travels between processes."""
    try:
        return _register_task(task)
    except MemoryError:
        return "out of memory"
    except InputError as error:
        return str(error)
    except Exception as error:
        number = full_disk(error)
        return OSError(number, os.strerror(number)) if number else f"{type(error).__name__}: {error}"


def _register_task(task: Task) -> RegisteredShape:
    from acnn.viewer.images import render, save_png

    template, shape = load(Path(task.template)), load(Path(task.shape))
    done = register(template, shape, **dict(task.options))
    folder = Path(task.out)
    save(done.mesh, folder / f"{task.name}.ply")
    buffer = io.BytesIO()
    fields: dict[str, Any] = {
        "residual": done.fit.residuals,
        "confidence": done.confidence,
        "has_data": done.fit.has_data,
    }
    np.savez_compressed(buffer, **fields)
    write_atomic(folder / f"{task.name}.npz", buffer.getvalue())
    first, second, third = (done.mesh.vertices[done.mesh.faces[:, i]] for i in range(3))
    area = 0.5 * np.linalg.norm(np.cross(second - first, third - first), axis=1).sum()
    largest = float(max(np.quantile(done.fit.residuals, 0.98), LEAST_SHOWN * np.sqrt(area)))
    image = render(done.mesh, values=done.fit.residuals, vmin=0.0, vmax=largest, size=(240, 320))
    save_png(image, folder / f"{task.name}_residual.png")
    positions = {name: done.mesh.vertices[vertex].tolist() for name, vertex in task.landmarks}
    result = RegisteredShape(
        name=task.name,
        shape=task.shape,
        key=task.key,
        out=str(folder / f"{task.name}.ply"),
        landmarks=positions,
        largest_shown=largest,
        **done.as_dict(),
    )
    _write_json(folder / f"{task.name}.json", result.as_dict())  # last: it marks the result as complete
    return result


def _outcomes(
    tasks: list[Task], workers: int, scheduler: str | None
) -> Generator[tuple[int, RegisteredShape | str | OSError], None, None]:
    if scheduler is not None:
        yield from run_on_scheduler(register_task, tasks, scheduler)
    elif workers > 1 and len(tasks) > 1:
        yield from run_in_processes(register_task, tasks, workers)
    else:
        for index, task in enumerate(tasks):
            yield index, register_task(task)


def _shape_files(shapes: Iterable[str | os.PathLike[str]], template: Path) -> list[Path]:
    """Files of the shapes, those of folders sorted by name, without the template."""
    files: list[Path] = []
    for path in map(Path, shapes):
        if path.is_dir():
            files += [file for file in shape_files(path) if not _same_file(file, template)]
        else:
            files.append(path)
    if not files:
        raise InputError("There are no shapes to register: give files, or folders that contain some.")
    names: dict[str, Path] = {}
    for file in files:
        if file.stem in names:
            raise InputError(f"{names[file.stem]} and {file} would both be written as {file.stem}.ply. Rename one.")
        names[file.stem] = file
    return files


def _same_file(file: Path, other: Path) -> bool:
    return other.exists() and os.path.samefile(file, other)


def _landmarks(path: Path, template: Mesh) -> tuple[tuple[str, int], ...]:
    """Names and vertices, as loaded, of the landmarks of a template."""
    names, numbers = read_landmarks(path)
    count = len(template.vertices) if template.source is None else len(template.source.from_file)
    outside = np.flatnonzero(numbers >= count)
    if len(outside):
        line = outside[0]
        raise InputError(
            f"{path}: line {line + 1} names vertex {numbers[line]}, but the template has vertices 0 to {count - 1}."
        )
    here = numbers if template.source is None else template.source.from_file[numbers]
    if (here < 0).any():
        line = int(np.argmax(here < 0))
        raise InputError(f"{path}: vertex {numbers[line]} of line {line + 1} was removed when the template was read.")
    return tuple((name or str(number), int(at)) for name, number, at in zip(names, numbers, here, strict=True))


def _key(template: Path, shape: Path, options: dict[str, Any], landmarks: Any) -> str:
    """Hash of all that a result depends on; of a file that cannot be read, of its name."""
    digest = hashlib.blake2b(digest_size=16)
    for path in (template, shape):
        try:
            digest.update(hashlib.blake2b(path.read_bytes()).digest())
        except OSError:
            digest.update(str(path).encode())
    model = model_digest(options["model"], options["method"])
    digest.update(json.dumps([VERSION, options, model, landmarks], sort_keys=True).encode())
    return digest.hexdigest()


def _kept(task: Task) -> RegisteredShape | None:
    """A result that an earlier call has completed with the same inputs, with the paths that it has now."""
    stem = Path(task.out) / task.name
    content = _read_json(stem.with_name(f"{task.name}.json"))
    complete = all(stem.with_name(f"{task.name}{suffix}").is_file() for suffix in (".ply", ".npz"))
    if not complete or content.get("key") != task.key:
        return None
    try:
        return RegisteredShape(**content | {"shape": task.shape, "out": str(stem.with_name(f"{task.name}.ply"))})
    except TypeError:  # other entries than these
        return None


def _earlier(folder: Path) -> list[Path]:
    """Files that earlier calls have written into a folder."""
    names = _read_json(folder / LIST).get("files", [])
    return [folder / str(name) for name in names if isinstance(name, str) and Path(name).name == name]


def _read_json(path: Path) -> dict[str, Any]:
    """Contents of a file of ours; empty where there is none or it is damaged."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_atomic(path, json.dumps(content, indent=1, allow_nan=False).encode())
