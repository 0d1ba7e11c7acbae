"""Matching of many pairs of files: spread over processes or machines, resumable, with one table and one page."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from acnn.datasets.folder import shape_files
from acnn.errors import InputError
from acnn.files import check_outputs, full_disk, make_folder, write_atomic
from acnn.input_files import read_json, read_lines
from acnn.methods.registry import AUTO
from acnn.progress import Progress
from acnn.runs.match_files import match_files, model_digest
from acnn.shapes.load import load
from acnn.shapes.mesh import Shape
from acnn.training.parallel import run_in_processes, run_on_scheduler
from acnn.training.prepare import Failure
from acnn.viewer.match_page import FileMatch, write_match_page
from acnn.viewer.pages import TableRow, write_table_page

RESULT = "result.json"
"""The file of a pair that is written last: its presence means that the pair is done."""

COLUMNS = ("a", "b", "verdict", "mean_confidence", "coverage", "distortion", "route", "vertices", "target_vertices")
"""Columns of `matches.csv`."""


@dataclass(frozen=True)
class PairTask:
    """One pair to match.

    Attributes
    ----------
    a, b : Path
        Shape files.
    out : Path
        Folder of its result.
    options : dict[str, Any]
        Keyword arguments of `match_files`.
    """

    a: Path
    b: Path
    out: Path
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the pair in tables and messages."""
        return f"{self.a.name} to {self.b.name}"


@dataclass(frozen=True)
class ManyMatches:
    """Results of many pairs.

    Attributes
    ----------
    out, table, page : str
        Folder, table of all pairs, and page with links to theirs.
    matched : list[dict[str, Any]]
        Facts of every pair that was matched.
    resumed : int
        How many of them were there from before.
    failures : list[Failure]
        Pairs that could not be matched, and why.
    """

    out: str
    table: str
    page: str
    matched: list[dict[str, Any]]
    resumed: int
    failures: list[Failure]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `acnn match --pairs --json` prints them."""
        values = asdict(self)
        del values["failures"]
        return values | {"pairs": len(self.matched) + len(self.failures)}


def read_pairs(path: Path, target: Path | None = None) -> list[tuple[Path, Path]]:
    """Read the pairs of files to match.

    Parameters
    ----------
    path : Path
        Text with two files on each line, separated by a tab or by spaces, relative to the list; or a folder whose
        shapes are all matched to `target`.
    target : Path or None
        The file that all shapes of a folder are matched to.

    Raises
    ------
    InputError
        Where the list cannot be understood, the folder holds no shapes, or the target does not exist.
    """
    if path.is_dir():
        if target is None:
            raise InputError(f"{path}: a folder is matched to one shape: give that as the second argument.")
        if not target.is_file():
            raise InputError(f"{target}: there is no such file to match the shapes of {path} to.")
        files = [file for file in shape_files(path) if not _same(file, target)]
        if not files:
            raise InputError(f"{path}: there are no shape files in the folder.")
        return [(file, target) for file in files]
    if target is not None:
        raise InputError(f"{target}: a list of pairs names both shapes of each pair. Leave the second argument out.")
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        names = text.split("\t") if "\t" in text else text.split()
        if len(names) != 2:
            raise InputError(f"{path}, line {number}: two files are needed, separated by a tab or a space.")
        pairs.append((path.parent / names[0].strip(), path.parent / names[1].strip()))
    if not pairs:
        raise InputError(f"{path}: there are no pairs in the list.")
    return pairs


def match_many(
    pairs: Sequence[tuple[Path, Path]],
    out: Path,
    *,
    workers: int = 2,
    scheduler: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> ManyMatches:
    """Match pairs of files, each into a folder of its own, and write one table and one page.

    Operators of a shape that occurs in several pairs are computed once and taken from the cache, and a process does not
    read the shapes of its last pair again. A pair whose result is there from before, with the same files, network and
    options, is not matched again. One pair that fails does not stop the others.

    Parameters
    ----------
    pairs : Sequence of two paths
        Shape files A and B.
    out : Path
        Folder: one folder for each pair, `matches.csv` and `index.html`.
    workers : int
        Number of processes of one thread each.
    scheduler : str or None
        Address of a Dask scheduler, which takes the place of processes here; its workers must see the same files.
    force : bool
        As for `match_files`.
    progress : Progress or None
        Called with (done, total).
    **options
        Of `match_files`: model, method, refinement, cache and so on.

    Returns
    -------
    ManyMatches

    Raises
    ------
    InputError
        Before the work, where outputs cannot be written.
    """
    tasks = _tasks(pairs, out, {**options, "force": force})
    table, page = out / "matches.csv", out / "index.html"
    before = _is_table(table) or any((task.out / RESULT).is_file() for task in tasks)
    earlier = [table, page] if before else []
    check_outputs([table, page], inputs=[file for pair in pairs for file in pair], earlier=earlier, force=force)
    results: dict[int, dict[str, Any] | str] = {}
    for index, task in enumerate(tasks):
        kept = _kept(task)
        if kept is not None:
            results[index] = kept
    resumed = len(results)
    left = [index for index in range(len(tasks)) if index not in results]
    waiting = [tasks[index] for index in left]
    if progress:
        progress(resumed, len(tasks))
    for index, result in _spread(match_one, waiting, workers, scheduler):
        results[left[index]] = result
        if progress:
            progress(len(results), len(tasks))
    matched: list[dict[str, Any]] = []
    failures: list[Failure] = []
    rows: list[TableRow] = []
    for index, task in enumerate(tasks):
        result = results[index]
        if isinstance(result, str):
            failures.append(Failure(task.name, result))
            rows.append(TableRow((task.a.name, task.b.name, "not matched", "", "", "", result)))
        else:
            matched.append(result)
            rows.append(_row(task, result, out))
    make_folder(table)
    write_atomic(table, _csv(tasks, results))
    headings = ("A", "B", "verdict", "confidence", "coverage", "distortion", "matched by")
    introduction = (
        f"{len(matched)} of {len(tasks)} pairs were matched; each name leads to the page of the pair. Confidence: mean "
        "estimated probability that a match is right. Coverage: percentage of the area of B whose vertices are "
        "matched. Distortion: mean relative change of edge lengths."
    )
    write_table_page(page, f"Matches in {out.name}", introduction, headings, rows)
    return ManyMatches(str(out), str(table), str(page), matched, resumed, failures)


def match_one(task: PairTask) -> dict[str, Any] | str:
    """Match one pair; the facts of `match_files`, or why it failed."""
    pages: list[FileMatch] = []
    options = dict(task.options)
    try:
        report = match_files(
            task.a, task.b, options.pop("model", None), task.out, keep=pages.append, read=_read_once, **options
        )
        facts = report | {"page": str(write_match_page(pages[0], task.out / "match.html"))}
        record = {"key": _key(task), "facts": facts}
        write_atomic(task.out / RESULT, (json.dumps(record, indent=1) + "\n").encode())
    except MemoryError:
        return "not enough memory"
    except InputError as error:
        return str(error)
    except Exception as error:
        if full_disk(error):
            raise
        return f"{type(error).__name__}: {error}"
    return facts


def _read_once(path: Path) -> Shape:
    """A shape that this process may have read for another pair; read again where the file has changed."""
    if not path.is_file():
        return load(path)  # which says what is wrong
    status = path.stat()
    return _read(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=2)
def _read(path: Path, changed: int, size: int) -> Shape:
    return load(path)


def _spread(
    function: Callable[[PairTask], dict[str, Any] | str], tasks: list[PairTask], workers: int, scheduler: str | None
) -> Any:
    """Number and result of every task, in the order in which they end."""
    if scheduler is not None:  # its workers may have been started in other folders
        absolute = [PairTask(t.a.absolute(), t.b.absolute(), t.out.absolute(), t.options) for t in tasks]
        return run_on_scheduler(function, absolute, scheduler)
    if workers <= 1 or len(tasks) <= 1:
        return ((index, function(task)) for index, task in enumerate(tasks))
    return run_in_processes(function, tasks, min(workers, len(tasks)))


def _tasks(pairs: Sequence[tuple[Path, Path]], out: Path, options: dict[str, Any]) -> list[PairTask]:
    """A folder for each pair, named after its files; the same pair twice gets two."""
    tasks, used = [], set()
    for a, b in pairs:
        name = stem = f"{_plain(a.stem)}_to_{_plain(b.stem)}"
        count = 2
        while name.lower() in used:  # on disks that ignore case, too
            name, count = f"{stem}_{count}", count + 1
        used.add(name.lower())
        tasks.append(PairTask(a, b, out / name, options))
    return tasks


def _plain(stem: str) -> str:
    """A name that every disk takes."""
    return re.sub(r"[^\w.-]+", "_", stem)[:60].strip("_.") or "shape"


def _key(task: PairTask) -> str:
    """Hash of both files, of the network, and of the options that change a result."""
    digest = hashlib.blake2b(digest_size=16)
    for file in (task.a, task.b):
        digest.update(hashlib.blake2b(file.read_bytes(), digest_size=16).digest())
    chosen = {name: str(value) for name, value in task.options.items() if name not in ("force", "cache")}
    model = model_digest(task.options.get("model"), task.options.get("method", AUTO))
    digest.update(json.dumps([chosen, model], sort_keys=True).encode())
    return digest.hexdigest()


def _kept(task: PairTask) -> dict[str, Any] | None:
    """The facts of an earlier result of the same files and options, with the paths that it has now."""
    try:
        record = read_json(task.out / RESULT)
        same = record.get("key") == _key(task) and Path(task.out / "map.npz").is_file()
        facts = record.get("facts")
    except (InputError, OSError):
        return None
    if not same or not isinstance(facts, dict):
        return None
    paths = {"out": task.out, "map": task.out / Path(str(facts.get("map"))).name, "page": task.out / "match.html"}
    return facts | {name: str(path) for name, path in paths.items()}


def _row(task: PairTask, facts: dict[str, Any], out: Path) -> TableRow:
    figures = [
        "" if facts.get(name) is None else f"{facts[name]:.1%}"
        for name in ("mean_confidence", "coverage", "distortion")
    ]
    cells = (task.a.name, task.b.name, facts["verdict"], *figures, facts["route"])
    return TableRow(cells, f"{task.out.relative_to(out).as_posix()}/match.html")


def _csv(tasks: list[PairTask], results: dict[int, dict[str, Any] | str]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow([*COLUMNS, "failed"])
    for index, task in enumerate(tasks):
        result = results[index]
        facts = {} if isinstance(result, str) else result
        values = {"a": str(task.a), "b": str(task.b)} | {name: facts.get(name, "") for name in COLUMNS[2:]}
        writer.writerow([*(values[name] for name in COLUMNS), result if isinstance(result, str) else ""])
    return stream.getvalue().encode()


def _is_table(path: Path) -> bool:
    """Whether a file is a table of an earlier call, which has no other trace where no pair could be matched."""
    try:
        return read_lines(path)[:1] == [",".join([*COLUMNS, "failed"])]
    except InputError:
        return False


def _same(first: Path, second: Path) -> bool:
    return first.exists() and second.exists() and first.samefile(second)
