"""Statistics of a folder of meshes in one topology, and the files of the result."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.folder import SHAPES, listed_names, shapes_in
from acnn.errors import InputError
from acnn.files import check_outputs, write_atomic
from acnn.input_files import read_lines, read_npz, read_table
from acnn.progress import Progress, begin_stage
from acnn.registration.statistics import ShapeStatistics, shape_statistics
from acnn.reports import Report
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh
from acnn.shapes.save import save
from acnn.training.prepare import Failure
from acnn.types import FloatArray, IntArray
from acnn.viewer.statistics_page import StatisticsPage, write_statistics_page

OTHERS = ("reference", "template")
"""Names of meshes that are not members of the collection."""

DATA_ARRAYS = ("weights", "has_data")
"""Arrays of NAME.npz beside NAME.ply, one number per vertex: how much data there is, 0 for none."""


@dataclass(frozen=True, eq=False)
class Collection:
    """Meshes of a folder in one topology.

    Attributes
    ----------
    names : tuple[str, ...]
        Of the files, without suffix.
    vertices : (s, n, 3) array
        In the order of the files.
    faces : (m, 3) array
        Of all of them.
    weights : (s, n) array or None
        Where shapes have data; None where all have.
    failures : tuple[Failure, ...]
        Files that could not be used.
    """

    names: tuple[str, ...]
    vertices: FloatArray
    faces: IntArray
    weights: FloatArray | None
    failures: tuple[Failure, ...]


@dataclass(frozen=True, eq=False)
class StatisticsReport(Report):
    """What `acnn statistics --json` prints: files, the key figures of `ShapeStatistics.as_dict`, and notices."""

    out: str
    page: str
    shapes: int
    vertices: int
    modes: int
    missing: float
    standard_deviations: list[float]
    explained_variance: list[float]
    total_variance: float
    compactness: list[float]
    generalisation: list[float]
    specificity: list[float]
    groups: dict[str, Any] | None
    names: list[str]
    notices: list[str]
    files: list[str]


def statistics_files(
    folder: Path,
    out: Path,
    *,
    groups: Path | None = None,
    modes: int | None = None,
    scale: bool = False,
    permutations: int = 1999,
    seed: int = 0,
    force: bool = False,
    progress: Progress | None = None,
) -> tuple[StatisticsReport, list[Failure]]:
    """Compute the statistics of a folder of meshes with `shape_statistics`, and write them.

    Files: `statistics.npz` with all arrays; `mean.ply`, and `mode_K_minus.ply` and `mode_K_plus.ply` for the mean
    minus and plus three standard deviations of mode K; `scores.csv`; `vertices.csv` with the map of a comparison of
    groups; `statistics.html`. Files of an earlier result in `out` are overwritten, others only with `force`.

    Parameters
    ----------
    folder : Path
        Meshes with the same faces. Those called `reference` or `template` are left out; where `dataset.json` lists
        shapes, only those are read. `NAME.npz` with `weights` or `has_data`, or `NAME.weights.txt`, may give a number
        in 0..1 for each vertex, 0 where there is no data.
    out : Path
        Output folder, created if missing.
    groups : Path or None
        Lines `name,group` of two groups.
    modes, scale, permutations, seed
        As for `shape_statistics`.
    force : bool
        Overwrite existing files of other origin.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    report : StatisticsReport
    failures : list of Failure
        Files that could not be used.

    Raises
    ------
    InputError
        Where fewer than three meshes can be used, or the result cannot be written.
    """
    if out.exists() and folder.exists() and out.samefile(folder):
        raise InputError(f"{out}: is the input folder. Give the output another folder.")
    before = _earlier(out)
    own = ("statistics.npz", "scores.csv", "mean.ply", "statistics.html", *(["vertices.csv"] if groups else []))
    fixed = [out / name for name in own]
    check_outputs(fixed, inputs=[folder, groups], earlier=before, force=force)
    begin_stage(progress, "reading")
    collection = read_collection(folder, progress=progress)
    labels = None if groups is None else read_groups(groups, collection)
    weights, notices = _usable_weights(collection.weights)
    begin_stage(progress, "computing")
    statistics = shape_statistics(
        collection.vertices,
        weights=weights,
        groups=labels,
        modes=modes,
        scale=scale,
        permutations=permutations,
        seed=seed,
    )
    if collection.failures:
        notices.append(f"Files that could not be used and are left out: {len(collection.failures)}.")
    count = len(statistics.modes)
    meshes = {"mean": statistics.mean}
    for k in range(count):
        for name, sign in (("minus", -3.0), ("plus", 3.0)):
            meshes[f"mode_{k + 1}_{name}"] = statistics.shape([0.0] * k + [sign])
    files = fixed + [out / f"{name}.ply" for name in meshes if name != "mean"]
    check_outputs(files, inputs=[folder, groups], earlier=before, force=force)
    begin_stage(progress, "writing")
    for path in before:  # a result with fewer modes leaves none of the old ones behind
        path.unlink(missing_ok=True)
    write_atomic(out / "statistics.npz", _archive(statistics, collection, labels, files))
    for name, vertices in meshes.items():
        save(Mesh(vertices, collection.faces), out / f"{name}.ply")
    write_atomic(out / "scores.csv", _scores(statistics, collection.names, labels).encode())
    if labels is not None:
        write_atomic(out / "vertices.csv", _vertex_table(statistics).encode())
    title = folder.resolve().name
    page = StatisticsPage(title, statistics, collection.faces, collection.names, labels, notices)
    write_statistics_page(page, out / "statistics.html")
    report = StatisticsReport(
        out=str(out),
        page=str(out / "statistics.html"),
        **statistics.as_dict(),
        names=list(collection.names),
        notices=notices,
        files=[path.name for path in files],
    )
    return report, list(collection.failures)


def read_collection(folder: Path, *, progress: Progress | None = None) -> Collection:
    """Read the meshes of a folder that have the topology of most of them.

    Parameters
    ----------
    folder : Path
        As for `statistics_files`.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    Collection

    Raises
    ------
    InputError
        Where there are fewer than three such meshes.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. Give a folder of meshes, as 'acnn register' writes.")
    listed = listed_names(folder)
    paths = [path for path in shapes_in(folder) if (path.stem in listed if listed else path.stem not in OTHERS)]
    if not paths:
        raise InputError(f"{folder}: holds no meshes: looked for files ending in {' '.join(SHAPES)}.")
    meshes: dict[Path, Mesh] = {}
    weights: dict[Path, FloatArray | None] = {}
    failures = [Failure(name, "listed in dataset.json, but there is no such file") for name in listed]
    failures = [failure for failure in failures if failure.item not in {path.stem for path in paths}]
    for done, path in enumerate(paths):
        if progress:
            progress(done, len(paths))
        try:
            mesh = load(path, kind="mesh", repair=False)
            assert isinstance(mesh, Mesh)
            if not np.isfinite(mesh.vertices).all():
                raise InputError(f"{path.name}: some vertices are not finite. Repair it with 'acnn info --repair'.")
            weights[path] = _read_weights(path, len(mesh.vertices))
            meshes[path] = mesh
        except InputError as error:
            failures.append(Failure(path.name, str(error)))
    if progress:
        progress(len(paths), len(paths))
    kinds = {path: (len(mesh.vertices), np.asarray(mesh.faces, np.int64).tobytes()) for path, mesh in meshes.items()}
    common = Counter(kinds.values()).most_common(1)[0][0] if kinds else (0, b"")
    members = [path for path, kind in kinds.items() if kind == common]
    for path in meshes:
        if path not in members:
            count, faces = kinds[path][0], len(meshes[path].faces)
            same = "other faces" if count == common[0] else f"{count} vertices and {faces} faces"
            failures.append(
                Failure(
                    path.name,
                    f"has {same}, most meshes have {common[0]} vertices and {len(common[1]) // 24} faces. All need one "
                    "topology: register a template to them first (acnn register).",
                )
            )
    if len(members) < 3:
        why = f" First problem: {failures[0].item}: {failures[0].why}" if failures else ""
        raise InputError(
            f"{folder}: {len(members)} of {len(paths)} meshes can be used together; at least 3 are needed.{why}"
        )
    full = all(weights[path] is None for path in members)
    n = common[0]
    rows = [np.ones(n) if (own := weights[path]) is None else own for path in members]
    return Collection(
        tuple(path.stem for path in members),
        np.stack([meshes[path].vertices for path in members]),
        meshes[members[0]].faces,
        None if full else np.stack(rows),
        tuple(failures),
    )


def read_groups(path: Path, collection: Collection) -> list[str | None]:
    """Read the groups of shapes: lines `name,group`, with or without a heading; shapes not listed have no group.

    Semicolons and tabs, which spreadsheets write in many countries, separate as well. A shape without a group takes no
    part in the comparison.

    Parameters
    ----------
    path : Path
        CSV; names may have the suffix of the file.
    collection : Collection
        The shapes.

    Returns
    -------
    list of str or None
        Group of each shape of the collection.

    Raises
    ------
    InputError
        Where a line is not `name,group`, or names a shape twice or one that is not there.
    """
    known = set(collection.names) | {Path(failure.item).stem for failure in collection.failures}
    stems = {f"{name}{suffix}": name for name in known for suffix in ("", *SHAPES)}
    found: dict[str, str] = {}
    lines = read_lines(path)
    separator = next((sign for sign in ",;	" if lines and sign in lines[0]), ",")
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=separator)]
    groups = {cells[1] for cells in rows[1:] if len(cells) == 2}  # whose names no heading has, but a misspelt shape
    for number, cells in enumerate(rows, 1):
        if not any(cells) or (number == 1 and cells[0] not in stems and len(cells) == 2 and cells[1] not in groups):
            continue  # an empty line or the heading
        if len(cells) != 2:
            line = ",".join(cells)
            raise InputError(f"{path}: line {number} is '{line}'; write NAME,GROUP, such as femur_01,healthy.")
        if cells[0] not in stems:
            raise InputError(f"{path}: line {number}: there is no shape '{cells[0]}' in the folder.")
        if stems[cells[0]] in found:
            raise InputError(f"{path}: line {number}: '{cells[0]}' has a group already.")
        if cells[1]:
            found[stems[cells[0]]] = cells[1]
    return [found.get(name) for name in collection.names]


def _read_weights(path: Path, count: int) -> FloatArray | None:
    """Weights of the vertices from the file beside a mesh; None where there is none."""
    archive, text = path.with_suffix(".npz"), path.with_name(f"{path.stem}.weights.txt")
    values: NDArray[Any] | None = None
    if archive.is_file():
        arrays = read_npz(archive)
        values = next((arrays[name] for name in DATA_ARRAYS if name in arrays), None)
    elif text.is_file():
        values = read_table(text, float)
    if values is None:
        return None
    source = archive if archive.is_file() else text
    numbers = np.asarray(values, float).ravel()
    if len(numbers) != count or not np.isfinite(numbers).all() or numbers.min() < 0 or numbers.max() > 1:
        raise InputError(f"{source.name}: give {count} numbers in 0..1, one for each vertex, 0 where there is no data.")
    return numbers


def _usable_weights(weights: FloatArray | None) -> tuple[FloatArray | None, list[str]]:
    """Weights of which every vertex has two shapes with data, and notices."""
    if weights is None:
        return None, []
    unseen = (weights > 0).sum(axis=0) < 2
    if not unseen.any():
        return weights, []
    count = int(unseen.sum())
    return np.where(unseen, 1.0, weights), [
        f"{count} vertices have data in fewer than two shapes: there the positions in the files are taken as they are."
    ]


def _earlier(out: Path) -> list[Path]:
    """Files that an earlier run wrote into the folder, as recorded in its `statistics.npz`."""
    try:
        listed = read_npz(out / "statistics.npz").get("files")
    except InputError:
        return []
    if listed is None or listed.dtype.kind != "U":
        return []
    return [out / Path(str(name)).name for name in listed.ravel()]


def _archive(
    statistics: ShapeStatistics, collection: Collection, labels: Sequence[str | None] | None, files: Sequence[Path]
) -> bytes:
    names = ("aligned", "scales", "mean", "modes", "standard_deviations", "scores", "explained_variance")
    curves = ("compactness", "generalisation", "specificity")
    arrays: dict[str, Any] = {name: getattr(statistics, name) for name in (*names, *curves)}
    arrays |= {"faces": collection.faces, "names": np.array(collection.names)}
    if statistics.weights is not None:
        arrays["weights"] = statistics.weights
    if statistics.groups is not None and labels is not None:
        comparison = statistics.groups
        arrays |= {f"group_{name}": getattr(comparison, name) for name in ("difference", "hotelling", "p_values")}
        arrays |= {"groups": np.array([label or "" for label in labels]), "group_p_value": comparison.p_value}
    arrays["files"] = np.array([path.name for path in files])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _scores(statistics: ShapeStatistics, names: Sequence[str], labels: Sequence[str | None] | None) -> str:
    """Scores in standard deviations, a line for each shape."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["name", "group", *(f"mode_{k + 1}" for k in range(len(statistics.modes)))])
    for number, name in enumerate(names):
        group = "" if labels is None else labels[number] or ""
        table.writerow([name, group, *(f"{x:.6f}" for x in statistics.scores[number])])
    return text.getvalue()


def _vertex_table(statistics: ShapeStatistics) -> str:
    """Difference of the groups at each vertex."""
    assert statistics.groups is not None
    comparison = statistics.groups
    rows = zip(comparison.difference, comparison.hotelling, comparison.p_values, comparison.uncorrected, strict=True)
    lines = (f"{i},{d[0]:.9g},{d[1]:.9g},{d[2]:.9g},{t:.6g},{p:.6g},{u:.6g}" for i, (d, t, p, u) in enumerate(rows))
    return "\n".join(["vertex,dx,dy,dz,hotelling,p_value,p_value_uncorrected", *lines]) + "\n"
