"""Generation of datasets: humans, families of shapes, and partial shapes in the layout of SHREC'16 Partial."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acnn.datasets.dataset import Dataset, Example, InMemory, Sample
from acnn.datasets.families import KINDS as FAMILIES
from acnn.datasets.families import family_files, family_names, make_family, write_family, written_family
from acnn.datasets.open import open_dataset
from acnn.datasets.parts import KINDS, Kind, PartOf, parts_of
from acnn.datasets.shrec16 import load_mesh, write_baryc
from acnn.errors import InputError
from acnn.files import check_outputs, write_atomic
from acnn.input_files import read_json
from acnn.progress import Progress
from acnn.reports import Report
from acnn.shapes.mesh import BarycentricPoints, Mesh
from acnn.shapes.save import save
from acnn.training.prepare import Failure

INSTALL = (
    "Generating humans needs the anny body model: pip install 'acnn[humans]'. Without a GPU, install torch's "
    "CPU build first, or several GB are downloaded: pip install torch --index-url https://download.pytorch.org/whl/cpu"
)


@dataclass(frozen=True, eq=False)
class HumansReport(Report):
    """What `acnn data humans --json` prints; `kinds` and `combine` are those of disturbed bodies."""

    out: str
    shapes: int
    subjects: int
    poses: int
    vertices: int
    remeshed: bool
    seed: int
    seconds: float
    kinds: list[str] | None = None
    combine: float | None = None


@dataclass(frozen=True, eq=False)
class FamilyReport(Report):
    """What `acnn data family --json` prints; `parameters` are the names of what varies."""

    out: str
    kind: str
    shapes: int
    vertices: int
    parameters: list[str]
    remeshed: bool
    seed: int
    seconds: float


@dataclass(frozen=True, eq=False)
class PartsReport(Report):
    """What `acnn data parts --json` prints.

    Attributes
    ----------
    out, data : str
        The folder, and what opens the partial shapes as a dataset.
    kind : str
        `cuts` or `holes`.
    parts, shapes : int
        Number of partial shapes, and of shapes that they were cut from.
    missing, missing_range : float, list of float
        Mean, least and largest missing fraction of the area.
    mirrored : bool
        Whether all of them have a mirrored ground truth.
    seed : int
    seconds : float
    """

    out: str
    data: str
    kind: str
    parts: int
    shapes: int
    missing: float
    missing_range: list[float]
    mirrored: bool
    seed: int
    seconds: float


def humans_into(
    folder: Path,
    *,
    subjects: int = 20,
    poses: int = 8,
    vertices: int = 2500,
    remeshed: bool = False,
    seed: int = 0,
    kinds: str | None = None,
    combine: float = 0.0,
    workers: int = 1,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
) -> HumansReport:
    """Generate humans with `write_humans`, or disturbed ones with `write_disturbed`.

    Humans that were generated in the folder before are overwritten, other files only with `force`.

    Parameters
    ----------
    folder : Path
        Output folder, created if missing.
    subjects, poses : int
        Number of subjects, and of poses per subject.
    vertices : int
        Vertices per shape.
    remeshed : bool
        Give every shape a different triangulation.
    seed : int
        Random seed.
    kinds : str or None
        Kinds of disturbed bodies, as for `acnn.datasets.humans.kinds.kind_names`; None is none.
    combine : float
        Fraction of the disturbed bodies that are of two kinds.
    workers : int
        Number of processes that make disturbed bodies.
    force : bool
        Overwrite existing files of other origin.
    progress : callable or None
        Called with a message for each shape.

    Returns
    -------
    HumansReport

    Raises
    ------
    InputError
        If a number is out of range, the folder cannot be used, or anny is not installed.
    """
    if subjects < 1 or poses < 1:
        raise InputError(f"{subjects} subjects and {poses} poses: both must be at least 1.")
    if vertices < 12:
        raise InputError(f"{vertices} vertices: give at least 12; about 2,000 are needed for a recognisable body.")
    if seed < 0:
        raise InputError(f"Seed {seed}: give an integer of 0 or more.")
    names = _checked_kinds(kinds, combine, workers, vertices, remeshed)
    _check_folder(folder)
    if importlib.util.find_spec("anny") is None:
        raise InputError(INSTALL)
    from acnn.datasets.humans.generate import human_files, human_names, write_humans, written_humans

    began = time.perf_counter()
    earlier = human_files(folder, written_humans(folder))
    if kinds is None:
        check_outputs(human_files(folder, human_names(subjects, poses)), earlier=earlier, force=force)
        written = write_humans(folder, subjects, poses, vertices, seed, remeshed=remeshed, progress=progress)
    else:
        from acnn.datasets.humans.kind_files import disturbed_names, write_disturbed

        files = human_files(folder, disturbed_names(names, subjects, poses, seed, combine))
        check_outputs(files, earlier=earlier, force=force)
        for path in earlier:  # they would be read together with the new ones
            path.unlink(missing_ok=True)
        written = write_disturbed(
            folder, names, subjects, poses, vertices, seed, combine=combine, workers=workers, progress=progress
        )
    return HumansReport(
        out=str(written),
        shapes=subjects * poses,
        subjects=subjects,
        poses=poses,
        vertices=vertices,
        remeshed=remeshed,
        seed=seed,
        seconds=time.perf_counter() - began,
        kinds=None if kinds is None else list(names),
        combine=None if kinds is None else combine,
    )


def _checked_kinds(kinds: str | None, combine: float, workers: int, vertices: int, remeshed: bool) -> tuple[str, ...]:
    """Names of the kinds of disturbed bodies; none where none are wanted."""
    if workers < 1:
        raise InputError(f"{workers} workers: at least 1 is needed.")
    if kinds is None:
        if combine or workers > 1:
            raise InputError("--combine and --workers are for disturbed bodies: give --kinds as well.")
        return ()
    if remeshed:
        raise InputError("--kinds with --remesh: disturbed bodies have different triangulations anyway.")
    if not 0 <= combine <= 1:
        raise InputError(f"--combine {combine}: give a fraction from 0 to 1.")
    if vertices < 150:
        raise InputError(f"{vertices} vertices: disturbed bodies need at least 150.")
    from acnn.datasets.humans.kinds import kind_names

    return kind_names(kinds)


def family_into(
    kind: str,
    folder: Path,
    *,
    count: int = 20,
    vertices: int = 1500,
    pose: float = 1.0,
    remeshed: bool = False,
    seed: int = 0,
    force: bool = False,
    progress: Progress | None = None,
) -> FamilyReport:
    """Generate a family with `make_family` and write it with `write_family`.

    A family of the same kind in the folder is overwritten, other files only with `force`.

    Parameters
    ----------
    kind : str
        `bone`, `hand` or `quadruped`.
    folder : Path
        Output folder, created if missing.
    count : int
        Number of shapes.
    vertices : int
        Vertices per shape.
    pose : float
        Size of the joint angles, 0 to 1.
    remeshed : bool
        Give every shape a different triangulation.
    seed : int
        Random seed.
    force : bool
        Overwrite existing files of other origin.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    FamilyReport

    Raises
    ------
    InputError
        If an argument is out of range or the folder cannot be used.
    """
    began = time.perf_counter()
    known = next((name for name in FAMILIES if name == kind), None)
    if known is None:
        raise InputError(f"Unknown family '{kind}': use {', '.join(FAMILIES[:-1])} or {FAMILIES[-1]}.")
    _check_folder(folder)
    if count < 1:
        raise InputError(f"{count} shapes: give at least 1.")
    names, before = family_names(kind, count), written_family(folder, kind)
    check_outputs(family_files(folder, names), earlier=family_files(folder, before), force=force)
    family = make_family(known, count, vertices=vertices, pose=pose, seed=seed)
    # What an earlier, larger or remeshed family left would be read together with the new one.
    for path in family_files(folder, before):
        path.unlink(missing_ok=True)
    write_family(folder, family, seed=seed, remeshed=remeshed, progress=progress)
    return FamilyReport(
        out=str(folder),
        kind=kind,
        shapes=count,
        vertices=vertices,
        parameters=list(family.names),
        remeshed=remeshed,
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def make_parts(
    source: str | os.PathLike[str] | Dataset,
    folder: Path,
    *,
    kind: str = "cuts",
    missing: float | tuple[float, float] = 0.3,
    count: int | None = None,
    seed: int = 0,
    force: bool = False,
    progress: Progress | None = None,
) -> tuple[PartsReport, list[Failure]]:
    """Generate partial shapes with exact ground truth, in the layout that `acnn.datasets.shrec16` reads.

    The null shape is the mesh itself, or the reference of the dataset: then partial shapes are cut from all shapes of
    the dataset, and the ground truth of a vertex is its point on the reference. Partial shapes keep the unit of the
    null shape (see `parts_of`).

    Parameters
    ----------
    source : path or Dataset
        A mesh file, anything that `open_dataset` takes, or a dataset.
    folder : Path
        Output folder, created if missing; several kinds and null shapes may share it.
    kind : str
        `cuts` or `holes`.
    missing : float or tuple[float, float]
        Missing fraction of the area, or the range it is drawn from.
    count : int or None
        Total number of partial shapes; None is one per shape.
    seed : int
        Random seed.
    force : bool
        Overwrite existing files of other origin.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    report : PartsReport
    failures : list of Failure
        The shapes that could not be cut.

    Raises
    ------
    InputError
        For invalid arguments, or if the folder contains other partial shapes of that name.
    """
    began = time.perf_counter()
    if kind not in KINDS:
        raise InputError(f"Unknown kind of partial shapes '{kind}': use 'cuts' or 'holes'.")
    chosen: Kind = "cuts" if kind == "cuts" else "holes"
    _check_folder(folder)
    full = source if isinstance(source, Dataset) else _open(source)
    dataset = parts_of(full, chosen, missing, count=count, seed=seed)
    cls = re.sub(r"[^A-Za-z0-9]+", "_", full.name).strip("_") or "shape"
    low, high = missing if isinstance(missing, tuple) else (missing, missing)
    about = {"kind": chosen, "missing": [low, high], "seed": seed, "made_of": full.name}
    names = [f"{chosen}_{cls}_shape_{sample.number}" for sample in dataset.samples]
    listing = folder / chosen / f"{chosen}_{cls}_parts.json"
    endings = (".off", ".baryc_gt", ".baryc_gt_sym")
    files = [listing, *((folder / chosen / name).with_suffix(ending) for name in names for ending in endings)]
    earlier = _earlier_files(listing, about, len(names), files)
    given = None if isinstance(source, Dataset) or not Path(source).is_file() else Path(source)
    check_outputs(files, inputs=[given], earlier=earlier, force=force)
    entries: list[dict[str, Any]] = []
    failures: list[Failure] = []
    _write_null(dataset.reference, folder / "null" / f"{cls}.off")
    (folder / chosen).mkdir(parents=True, exist_ok=True)
    _write_listing(listing, about, len(names), entries)  # first, so that an interrupted run can be repeated
    mirrored = 0
    for done, (name, sample) in enumerate(zip(names, dataset.samples, strict=True)):
        if progress:
            progress(done, len(names))
        assert isinstance(sample.read, PartOf)
        try:
            example, fraction = sample.read.with_missing()
        except InputError as error:
            failures.append(Failure(sample.name, str(error)))
            continue
        mirrored += _write_part(folder / chosen / f"{name}.off", example, dataset)
        known: dict[str, Any] = {"name": name, "of": sample.name.rpartition("_")[0]}
        known |= {"split": sample.split, "subject": sample.subject}
        entries.append({**known, "missing": round(fraction, 6), "vertices": len(example.shape.vertices)})
    if not entries:
        raise InputError(f"No partial shape could be cut. First failure: {failures[0].item}: {failures[0].why}")
    _write_listing(listing, about, len(names), entries)
    if progress:
        progress(len(names), len(names))
    fractions = [entry["missing"] for entry in entries]
    report = PartsReport(
        out=str(folder),
        data=str(folder / chosen / cls),
        kind=chosen,
        parts=len(entries),
        shapes=len({entry["of"] for entry in entries}),
        missing=float(np.mean(fractions)),
        missing_range=[min(fractions), max(fractions)],
        mirrored=mirrored == len(entries),
        seed=seed,
        seconds=time.perf_counter() - began,
    )
    return report, failures


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give a folder.")


def _open(source: str | os.PathLike[str]) -> Dataset:
    """Open a dataset by name, or a single mesh file as a dataset whose reference is the mesh."""
    path = Path(source).expanduser()
    if not path.is_file():
        return open_dataset(source)
    mesh = load_mesh(str(path))
    labels = np.arange(len(mesh.vertices), dtype=np.int32)
    return Dataset(path.stem, mesh, (Sample(path.stem, InMemory(Example(mesh, labels)), number=1),))


def _earlier_files(listing: Path, about: dict[str, Any], count: int, files: Sequence[Path]) -> Sequence[Path]:
    """Return the files that may be overwritten: all if the same partial shapes were generated before, else the listing.

    Raises
    ------
    InputError
        If files of other partial shapes would be mixed with the new ones.
    """
    try:
        written = read_json(listing)
    except InputError:
        written = {}
    ours = "made_of" in written
    same = all(written.get(key) == value for key, value in {**about, "count": count}.items())
    stem, kind = listing.name.removesuffix("_parts.json"), about["kind"]
    if not same and any(listing.parent.glob(f"{stem}_shape_*.off")):
        raise InputError(
            f"{listing.parent.parent}: already contains other {kind} of '{stem.removeprefix(f'{kind}_')}'. Choose "
            "another folder, or delete them first."
        )
    return files if same else [listing] if ours else []


def _write_null(mesh: Mesh, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file():
        there = load_mesh(str(path), repair=False)
        if not (np.array_equal(there.vertices, mesh.vertices) and np.array_equal(there.faces, mesh.faces)):
            raise InputError(f"{path}: contains another shape. Choose another folder.")
        return
    save(Mesh(mesh.vertices, mesh.faces), path)


def _write_part(path: Path, example: Example, dataset: Dataset) -> bool:
    """Write a partial shape and its ground truth, the shape last; return whether a mirrored ground truth is known."""
    reference = dataset.reference
    truth = (
        example.truth if example.truth is not None else BarycentricPoints.at_vertices(reference.faces, example.labels)
    )
    other = example.mirrored_truth
    if other is None and example.mirrored is not None:
        other = BarycentricPoints.at_vertices(reference.faces, example.mirrored)
    if other is None and dataset.mirror is not None:
        opposite = np.append(dataset.mirror, np.int32(-1))  # so that -1 stays -1
        other = BarycentricPoints.at_vertices(reference.faces, opposite[example.labels])
    if other is not None:
        write_baryc(path.with_suffix(".baryc_gt_sym"), other)
    write_baryc(path.with_suffix(".baryc_gt"), truth)
    save(example.shape, path)
    return other is not None


def _write_listing(path: Path, about: dict[str, Any], count: int, entries: Sequence[dict[str, Any]]) -> None:
    text = json.dumps({**about, "count": count, "parts": list(entries)}, indent=1)
    write_atomic(path, (text + "\n").encode())
