"""How well pairs of shapes are matched: the protocol of the field, with self-pairs counted apart."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.datasets.pairs import PairSet, open_pairs, read_pair_list
from acnn.errors import InputError
from acnn.evaluation.pairs import PairEvaluation, PairEvaluator, PairsReport
from acnn.files import check_outputs, make_folder
from acnn.input_files import read_lines
from acnn.methods.registry import AUTO, METHODS
from acnn.methods.run import Run, open_run, run_digest, run_folder
from acnn.progress import Progress, begin_stage
from acnn.runs.match import match
from acnn.runs.match_routes import HUMANS, working_size_of
from acnn.shapes.mesh import PointCloud, Shape, content_hash
from acnn.surface.geodesics import Method
from acnn.training.prepare import Failure
from acnn.types import FloatArray

ALL = "all"


@dataclass(frozen=True)
class PairSettings:
    """How pairs are matched and measured.

    Attributes
    ----------
    method : str
        As for `match`.
    refinement : str
        `none`, `fm`, `zoomout`, `pfm` or `auto`.
    rotate : int or None
        Seed of random rotations, a different one for each shape; None leaves shapes as they are.
    remesh : bool
        Whether shapes of one connectivity are remeshed, see `open_pairs`.
    remesh_seed : int
        Of the triangulations.
    geodesics : Method
        How errors are measured, `graph` or `exact`.
    working_size : int or None
        As for `match`.
    """

    method: str = AUTO
    refinement: str = "auto"
    rotate: int | None = None
    remesh: bool = True
    remesh_seed: int = 0
    geodesics: Method = "graph"
    working_size: int | None = None

    def __post_init__(self) -> None:
        if self.geodesics not in ("graph", "exact"):
            raise InputError(f"Geodesics '{self.geodesics}': use 'graph' or 'exact'; 'edges' is reported beside them.")


@check_arguments
def evaluate_pairs(
    data: str | Path | PairSet | None,
    run: Run | Path | str | None = None,
    *,
    pairs: str = ALL,
    shapes: str | None = None,
    settings: PairSettings | None = None,
    out: Path | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> tuple[dict[str, Any], list[Failure]]:
    """Match pairs of shapes whose ground truth is known, and measure the errors.

    Parameters
    ----------
    data : str or Path or PairSet or None
        As for `open_pairs`; None is the data that the run was trained on.
    run : Run or Path or str or None
        Or its folder, or the name of a pretrained model; None is the pretrained model, or none where the method takes
        none. Where there is no data and this is no run, it is the data.
    pairs : str
        `all` ordered pairs, a number of pairs drawn at random, or a file with the names of A and B on each line.
    shapes : str or None
        Only pairs between these, such as `060-079`.
    settings : PairSettings or None
        How they are matched and measured.
    out : Path or None
        A file that receives a JSON line for each pair; pairs that it already has are not matched again.
    cache : bool
        Whether operators are looked for and kept in the cache.
    progress : Progress or None
        Called with (done, total) pairs.

    Returns
    -------
    report : dict[str, Any]
        What `acnn evaluate --pairs --json` prints (`PairsReport.as_dict`).
    failures : list[Failure]
        The pairs that could not be read or matched.

    Raises
    ------
    InputError
        Where no pair could be evaluated, or `out` has results of other settings.
    """
    how = settings or PairSettings()
    if data is None and isinstance(run, str | Path) and not (run_folder(Path(run)) / "model.safetensors").is_file():
        data, run = run, None
    model = _model(run, how.method)
    if data is None:
        assert model is not None
        data = model.record.data
    opened = data if isinstance(data, PairSet) else open_pairs(data, remesh=how.remesh, seed=how.remesh_seed)
    selected = _selected(opened if shapes is None else opened.among(shapes), pairs)
    named = {"data": opened.name, "model": None if model is None else model.name} | asdict(how)
    named["working_size"] = working_size_of(how.working_size, model)
    results = _Results(out, named, "" if model is None else run_digest(model.folder))
    evaluator, failures = PairEvaluator(how.geodesics), list[Failure]()
    content: dict[str, str] = {}
    stage = begin_stage(progress, "matching")
    for done, names in enumerate(selected):
        if stage:
            stage(done, len(selected))
        if names in results.pairs and content.keys() >= set(names):
            continue
        try:
            pair = selected.read(*names)
            content |= {name: content_hash(shape) for name, shape in zip(names, (pair.a, pair.b), strict=True)}
            if names in results.pairs:
                continue
            a, b = (_rotated(shape, name, how.rotate) for name, shape in zip(names, (pair.a, pair.b), strict=True))
            began = time.process_time()
            found = match(
                a,
                b,
                method=how.method,
                model=model,
                refinement=how.refinement,
                working_size=how.working_size,
                cache=cache,
            )
            seconds = time.process_time() - began
            results.add(
                evaluator(
                    pair,
                    found.a_to_b,
                    found.confidence,
                    verdict=found.verdict,
                    route=str(found.report.get("route", "")),
                    seconds=seconds,
                )
            )
        except Exception as error:  # one pair that fails does not stop the others
            why = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            failures.append(Failure(" ".join(names), why))
    evaluated = tuple(results.pairs[names] for names in selected if names in results.pairs)
    if not evaluated and not failures:
        raise InputError(f"{opened.name}: no pair was selected by --pairs {pairs}. Give 'all', a number or a list.")
    if not evaluated:
        own = how.remesh and model is not None and "file" in model.config.descriptors.kinds
        hint = " Leave the shapes as their files have them: --no-remesh." if own else ""
        raise InputError(f"No pair could be evaluated: {failures[0].item}: {failures[0].why}{hint}")
    report = PairsReport(evaluated).as_dict() | named
    if model is not None:
        # Remeshed shapes are recognised by their originals.
        content |= {s.name: content_hash(s.read().shape) for s in opened.samples if s.name in content}
        report["seen_in_training"] = model.seen(content, "train")
    return report, failures


def random_rotation(seed: int, name: str) -> FloatArray:
    """A (3, 3) rotation that depends on a seed and a name alone, uniform over all rotations."""
    from scipy.spatial.transform import Rotation

    own = int.from_bytes(hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest(), "little")
    return Rotation.random(rng=np.random.default_rng(own)).as_matrix()


class _Results:
    """Evaluations of pairs, kept as JSON lines of a file where there is one.

    The first line has the settings, and the hash of the network (`run_digest`).
    """

    def __init__(self, path: Path | None, settings: dict[str, Any], digest: str) -> None:
        self.path = path
        self.pairs: dict[tuple[str, str], PairEvaluation] = {}
        if path is None:
            return
        if not path.exists():
            check_outputs([path])
            make_folder(path)
            self._append({"settings": settings, "digest": digest})
            return
        first, *lines = read_lines(path)
        begun = _parsed(first)
        if begun.get("settings") != settings:
            raise InputError(f"{path}: is not a file of results with these settings. Name another file with --out.")
        if begun.get("digest", digest) != digest:  # files of earlier versions have none
            raise InputError(
                f"{path}: has results of the model '{settings['model']}' as it was before it was trained further or "
                "replaced. Name another file with --out."
            )
        for line in lines:
            try:
                found = PairEvaluation.from_dict(_parsed(line))
            except (KeyError, TypeError):
                continue  # a line that an interruption cut off: its pair is matched again
            self.pairs[found.a, found.b] = found

    def add(self, evaluation: PairEvaluation) -> None:
        self.pairs[evaluation.a, evaluation.b] = evaluation
        if self.path is not None:
            self._append(evaluation.as_dict())

    def _append(self, values: dict[str, Any]) -> None:
        assert self.path is not None
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(("\n" if self._cut_off() else "") + json.dumps(values) + "\n")

    def _cut_off(self) -> bool:
        assert self.path is not None
        if not self.path.exists() or not self.path.stat().st_size:
            return False
        with self.path.open("rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read() != b"\n"


def _parsed(line: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _model(run: Run | Path | str | None, method: str) -> Run | None:
    """The run that pairs are matched with; None where the method takes none. Opened once for all pairs."""
    if isinstance(run, Run):
        return run
    if run is not None:
        return open_run(run_folder(Path(run)))
    return open_run(HUMANS) if method == AUTO or method in METHODS else None


def _selected(pairs: PairSet, wanted: str) -> PairSet:
    if wanted == ALL:
        return pairs
    if wanted.isdecimal() and not Path(wanted).exists():
        return pairs.drawn(int(wanted))
    return pairs.select(read_pair_list(wanted))


def _rotated(shape: Shape, name: str, seed: int | None) -> Shape:
    if seed is None:
        return shape
    rotation = random_rotation(seed, name)
    if isinstance(shape, PointCloud) and shape.normals is not None:
        shape = replace(shape, normals=shape.normals @ rotation.T)
    return replace(shape, vertices=shape.vertices @ rotation.T)
