"""Training without labels: shapes are matched, a network learns from the best maps, and matches them again.

The first maps of all shapes to a reference come from descriptors, or from the model to adapt. Cycles through similar
shapes measure them: maps that no cycle confirms are dropped, the others become pseudo-labels, weighted by confidence
and agreement. After some steps of training the network takes the place of the descriptors, and so on.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from acnn.arguments import check_arguments
from acnn.correspondence.collection import (
    ConsistentMap,
    central_shape,
    most_consistent,
    similar_shapes,
    spectral_distances,
)
from acnn.correspondence.descriptor_matching import EIGENFUNCTIONS, match_by_descriptors
from acnn.correspondence.functional_map import basis_of
from acnn.correspondence.judge import Judgement, judge_map, map_confidence
from acnn.correspondence.match_checks import check_matchable
from acnn.correspondence.point_maps import barycentric_map, invert_through_reference
from acnn.correspondence.refine import refine
from acnn.datasets.augment import AugmentSettings
from acnn.datasets.dataset import Dataset, Example, InMemory, Sample, select_samples
from acnn.datasets.folder import unlabelled_samples
from acnn.errors import InputError
from acnn.files import check_outputs, read_arrays, write_arrays
from acnn.methods.network_methods import NetworkMatcher, load_network
from acnn.methods.registry import trained_method
from acnn.methods.run import FILES, Run, RunRecord, write_run
from acnn.progress import Progress, begin_stage
from acnn.runs.match_routes import CANDIDATES, working_size_of
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh, Shape, content_hash
from acnn.surface.surface import Surface, surface_of
from acnn.surface.working_copy import WORKING_SIZE, working_copy
from acnn.training.checkpoint import check_settings, mesh_hash, run_identity
from acnn.training.config import INSTEAD_OF_EPOCHS, RunConfig
from acnn.training.log import read_log
from acnn.training.loop import StepReport, train
from acnn.training.prepare import Failure, prepare
from acnn.training.prepared import Prepared
from acnn.training.tasks import PseudoLabelTask
from acnn.types import FloatArray, IntArray

PARTNERS = 2
"""Similar shapes through which the map of each is tested."""

LEAST_WEIGHT = 0.1
"""Pseudo-labels of less weight are left out."""

WORSE = 0.9
"""Ratio of the weights of all labels of a shape, new to old, below which the old ones are kept."""

FEWEST = 1 / 3
"""Fraction of the maps, those with the smallest cycle errors, that is kept in any case."""


@check_arguments
def train_unlabelled(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    config: RunConfig,
    *,
    reference: str | os.PathLike[str] | None = None,
    start: Run | None = None,
    train_list: str | None = None,
    resume: bool = False,
    force: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
    report: StepReport | None = None,
) -> tuple[RunRecord, list[Failure]]:
    """Train a network on shapes of one kind without labels, or adapt one to them.

    Parameters
    ----------
    data : path
        Folder of shapes; files with labels are not read.
    out : path
        Folder of the run.
    config : RunConfig
        All settings; `rounds` of them, and the budget of all rounds together.
    reference : path or str or None
        Name of a shape of the folder, or a file; None is the most central shape. Of a larger mesh, a working copy of
        `WORKING_SIZE` vertices is the reference.
    start : Run or None
        Model to adapt: its reference and its network are taken, and it gives the first maps.
    train_list : str or None
        Shapes, as for `Dataset.select`; by default all marked `train`, or all shapes.
    resume : bool
        Go on where the folder's last checkpoint is.
    force : bool
        Overwrite files of other origin that have the names of a run's.
    workers : int
        Processes that prepare.
    progress : Progress or None
        Called with (done, total); stages `reading`, `preparing`, and `matching, round k` and `training, round k`.
    report : StepReport or None
        Called after each step.

    Returns
    -------
    record : RunRecord
        With `labels`, `reference`, `adapted` and `rounds`: for the maps of each round and of the final network
        `maps_by`, `kept`, `dropped` (`{"name", "why"}`), `through_others` (how many detours were taken),
        `mean_confidence`, `cycle_error_x100` (over the root of the area) and `consistent`, the fraction of maps that a
        cycle confirms.
    failures : list[Failure]
        Shapes that could not be read or prepared.

    Raises
    ------
    InputError
        Where fewer than three shapes can be used, or the method is not trained on labels.
    """
    folder, root = Path(out), Path(data)
    _check_config(config, start)
    _check_folder(folder, root, config.train.rounds, resume, force)
    began = time.perf_counter()
    samples = unlabelled_samples(root)
    chosen = select_samples(samples, train_list or _default_list(samples), str(root))
    size = WORKING_SIZE if start is None else working_size_of(None, start)
    members, failures = _read(chosen, size, start, begin_stage(progress, "reading"))
    given = None if start is not None or reference is None else _given_reference(reference, samples, size)
    prepared, unprepared = _prepare(members, config, start, workers, begin_stage(progress, "preparing"))
    failures += unprepared
    if len(prepared) < 3:
        why = f" The first that failed: {failures[0].item}: {failures[0].why}" if failures else ""
        raise InputError(f"{root}: {len(prepared)} shapes can be used; at least three are needed.{why}")
    collection = _collect(members, prepared, start, given)
    dataset = Dataset(root.name or str(root), collection.mesh, (), unit=None if start is None else start.unit)
    checkpoint = folder / "checkpoint.safetensors"
    if resume and checkpoint.exists():
        check_settings(checkpoint, run_identity(config, [shape.name for shape in prepared], collection.mesh))
    record = RunRecord(
        data=str(root),
        train=[shape.name for shape in prepared],
        validation=[],
        unit=dataset.unit,
        method=config.method,
        task="labels",
        content={"train": [content_hash(members[shape.name][0]) for shape in prepared], "validation": []},
        seconds_preparing=time.perf_counter() - began,
        labels="none",
        reference=collection.reference_name,
        adapted=None if start is None else start.name,
    )
    write_run(folder, dataset, config, record)
    last: dict[str, Any] = {}
    rounds = []
    labels: _PseudoLabels | None = None
    network = None if start is None else start.model
    task = PseudoLabelTask(config, len(collection.mesh.vertices), collection.mesh, network)
    for number in range(1, config.train.rounds + 1):
        soft = None if network is None else NetworkMatcher(network)
        matching = begin_stage(progress, f"matching, round {number}")
        made_by = _made_by(config, number - 1, len(prepared), start)
        labels = _pseudo_labels(collection, soft, labels, folder / f"maps_{number}.safetensors", made_by, matching)
        if not any(np.any(shape.labels >= 0) for shape in labels.shapes):
            raise InputError(
                f"{root}: no map of any shape is confirmed by a cycle through others. Are all shapes of one kind, and "
                "of the kind that the model was trained on?"
            )
        rounds.append(labels.facts)
        write_run(folder, dataset, config, replace(record, rounds=rounds))
        steps = begin_stage(progress, f"training, round {number}")
        train(
            labels.shapes,
            task,
            _budget(config, number, len(prepared)),
            folder,
            reference=collection.mesh,
            resume=resume or number > 1,
            report=partial(_remember, last, steps, report),
            metadata={"data": record.data},
        )
        network = load_network(folder / "model.safetensors")[0].network
    if not last:  # all steps were taken before
        last = (read_log(folder / "log.jsonl", "step") or [{}])[-1]
    matching = begin_stage(progress, "matching at the end")
    assert network is not None
    made_by = _made_by(config, config.train.rounds, len(prepared), start)
    final = _pseudo_labels(collection, NetworkMatcher(network), None, folder / "maps.safetensors", made_by, matching)
    names = ("step", "epoch", "loss", "accuracy", "core_seconds", "notice")
    of_step: dict[str, Any] = {name: last.get(name) for name in names}
    record = replace(record, **of_step, seconds_training=last.get("seconds", 0.0), rounds=[*rounds, final.facts])
    write_run(folder, dataset, config, record)
    return replace(record, content=None), failures


def adapted_config(run: Run) -> RunConfig:
    """Settings to adapt a run with: its own, for 300 steps at a third of its rate."""
    config = replace(run.config, augment=AugmentSettings())
    return config.with_changes({"steps": 300, "learning_rate": config.train.learning_rate / 3, "rounds": 2})


@dataclass(frozen=True, eq=False)
class _Collection:
    """Shapes with their surfaces, similar shapes, and the reference; `at` is the reference's number, or -1."""

    prepared: list[Prepared]
    surfaces: list[Surface]
    similar: list[list[int]]
    mesh: Mesh
    reference: Surface
    reference_name: str
    at: int


@dataclass(frozen=True, eq=False)
class _PseudoLabels:
    """Shapes with the labels and weights of a round, and facts about its maps."""

    shapes: list[Prepared]
    facts: dict[str, Any]


def _check_config(config: RunConfig, start: Run | None) -> None:
    if start is not None:
        start.check_matches()
    if trained_method(config.method).load is not load_network or config.train.task != "labels":
        raise InputError(
            "Without labels, networks that label the vertices of a reference are trained (--method acnn, gcnn, scnn or "
            f"lscnn, --task labels), not '{config.method}' for '{config.train.task}'."
        )
    if config.augment != AugmentSettings():
        raise InputError("Training without labels has no augmentation: leave out the settings of [augment].")


def _check_folder(folder: Path, data: Path, rounds: int, resume: bool, force: bool) -> None:
    if (folder / "run.json").exists() and not resume:
        raise InputError(f"{folder}: there is a run already. Go on with --resume, or train into another folder.")
    names = (*FILES, "maps.safetensors", *(f"maps_{number}.safetensors" for number in range(1, rounds + 1)))
    files = [folder / name for name in names]
    started = (folder / "run.json").exists() and (folder / "reference.safetensors").exists()
    check_outputs(files, inputs=[data], earlier=files if started else [], force=force)


def _default_list(samples: Sequence[Sample]) -> str:
    return "train" if any(sample.split == "train" for sample in samples) else "all"


def _read(
    samples: Sequence[Sample], size: int, start: Run | None, progress: Progress | None
) -> tuple[dict[str, tuple[Shape, Shape]], list[Failure]]:
    """Shapes as loaded and their working copies by name, and what cannot be read."""
    members: dict[str, tuple[Shape, Shape]] = {}
    failures = []
    for done, sample in enumerate(samples):
        if progress:
            progress(done, len(samples))
        try:
            shape = sample.read().shape
            check_matchable(shape, sample.name, spectral=True)
            if start is not None:
                start.check_triangulation(shape)
            members[sample.name] = shape, working_copy(shape, size).shape
        except InputError as error:
            failures.append(Failure(sample.name, str(error)))
    return members, failures


def _given_reference(reference: str | os.PathLike[str], samples: Sequence[Sample], size: int) -> tuple[str, Mesh]:
    """Name and working copy of the reference that was asked for."""
    named = {sample.name: sample for sample in samples}
    shape = named[str(reference)].read().shape if str(reference) in named else load(Path(reference))
    if not isinstance(shape, Mesh):
        raise InputError(f"{reference}: the reference must be a mesh, and this is a cloud.")
    copy = working_copy(shape, size).shape
    assert isinstance(copy, Mesh)
    return str(reference), copy


def _prepare(
    members: dict[str, tuple[Shape, Shape]],
    config: RunConfig,
    start: Run | None,
    workers: int,
    progress: Progress | None,
) -> tuple[list[Prepared], list[Failure]]:
    """Operators and descriptors of the working copies."""
    if not members:
        return [], []
    unknown = {name: np.full(len(copy.vertices), -1, np.int32) for name, (_, copy) in members.items()}
    samples = tuple(Sample(name, InMemory(Example(members[name][1], unknown[name]))) for name in members)
    anything = next((copy for _, copy in members.values() if isinstance(copy, Mesh)), None)
    if anything is None:
        raise InputError("All shapes are point clouds: at least one mesh is needed, which can be the reference.")
    dataset = Dataset("shapes", anything, samples, unit=None if start is None else start.unit)
    return prepare(dataset, trained_method(config.method).needs(config), workers=workers, progress=progress)


def _collect(
    members: dict[str, tuple[Shape, Shape]],
    prepared: list[Prepared],
    start: Run | None,
    given: tuple[str, Mesh] | None,
) -> _Collection:
    copies = [members[shape.name][1] for shape in prepared]
    surfaces = [surface_of(copy, shape.unit) for copy, shape in zip(copies, prepared, strict=True)]
    distances = spectral_distances([basis_of(surface, EIGENFUNCTIONS) for surface in surfaces])
    at, mesh = -1, copies[0]
    if start is not None:
        name, mesh, surface = f"that of {start.name}", start.reference, start.reference_surface
    elif given is not None:
        name, mesh = given
        surface = surface_of(mesh)
        at = next((i for i, shape in enumerate(prepared) if shape.name == name), -1)
    else:
        # clouds have no faces for points between vertices
        meshes = np.array([isinstance(copy, Mesh) for copy in copies])
        at = int(np.flatnonzero(meshes)[central_shape(distances[np.ix_(meshes, meshes)])])
        name, mesh, surface = prepared[at].name, copies[at], surfaces[at]
    assert isinstance(mesh, Mesh)
    similar = [similar_shapes(distances, i, PARTNERS, at) for i in range(len(prepared))]
    return _Collection(prepared, surfaces, similar, mesh, surface, name, at)


def _pseudo_labels(
    collection: _Collection,
    network: NetworkMatcher | None,
    before: _PseudoLabels | None,
    path: Path,
    made_by: str,
    progress: Progress | None,
) -> _PseudoLabels:
    """Labels and weights of all shapes, from a file that an earlier call has written or by matching them.

    `made_by` states what the maps are made by: those of the file must be of the same (`_made_by`).

    A shape keeps the labels that it had before where those of the new map weigh clearly less (`WORSE`): a network that
    has learned too little yet must not replace good maps.
    """
    names = [shape.name for shape in collection.prepared]
    key = json.dumps([names, mesh_hash(collection.mesh), made_by])
    known = _read_maps(path, key, collection)
    if known is None:
        maps = _match_all(collection, network, progress)
        known = _select(maps, collection, "descriptors" if network is None else "network")
        _write_maps(path, key, known)
    labels, weights, facts = known
    shapes = []
    for i, (shape, surface) in enumerate(zip(collection.prepared, collection.surfaces, strict=True)):
        truth = barycentric_map(np.maximum(labels[i], 0), surface, collection.reference)
        shapes.append(replace(shape, labels=labels[i], truth=truth, weights=weights[i]))
        earlier = None if before is None else before.shapes[i]
        if earlier is not None and earlier.weights is not None and weights[i].sum() < WORSE * earlier.weights.sum():
            shapes[i] = earlier
    return _PseudoLabels(shapes, facts)


def _match_all(
    collection: _Collection, network: NetworkMatcher | None, progress: Progress | None
) -> list[ConsistentMap]:
    """For each shape the most consistent of its maps to the reference: the direct one, and those through others."""
    surfaces, reference = collection.surfaces, collection.reference
    detours = [others if i != collection.at else [] for i, others in enumerate(collection.similar)]
    total, done = len(surfaces) + sum(map(len, detours)), 0

    def advance() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done, total)

    to_each_other: Callable[[int, int], IntArray]
    direct: list[IntArray] = []
    if network is None:
        for i, surface in enumerate(surfaces):
            own = np.arange(len(surface.vertices), dtype=np.int32)
            direct.append(own if i == collection.at else match_by_descriptors(surface, reference).query_to_reference)
            advance()
        to_each_other = lambda i, j: match_by_descriptors(surfaces[i], surfaces[j]).query_to_reference  # noqa: E731
    else:
        soft = [network.soft_map(shape, shape, CANDIDATES) for shape in collection.prepared]
        for i, surface in enumerate(surfaces):
            direct.append(refine(soft[i], surface, reference, "auto").query_to_reference)
            advance()
        back = [invert_through_reference(s.query_to_reference, reference, s.confidence) for s in soft]
        to_each_other = lambda i, j: (  # noqa: E731
            refine(soft[i].compose(back[j], len(soft[j].vertices)), surfaces[i], surfaces[j], "auto").query_to_reference
        )
    maps = []
    for i, surface in enumerate(surfaces):
        candidates = [direct[i]]
        for j in detours[i]:
            candidates.append(direct[j][to_each_other(i, j)])
            advance()
        found = most_consistent(candidates, surface, reference)
        if found.index:  # a composition is rough
            found = replace(found, matches=refine(found.matches, surface, reference, "auto").query_to_reference)
        maps.append(found)
    return maps


def _select(
    maps: list[ConsistentMap], collection: _Collection, maps_by: str
) -> tuple[list[IntArray], list[FloatArray], dict[str, Any]]:
    """Pseudo-labels, their weights, and facts: maps that failed or that no cycle confirms are dropped."""
    trust, judged = list[FloatArray](), list[Judgement]()
    for found, surface in zip(maps, collection.surfaces, strict=True):
        trust.append(map_confidence(found.matches, surface, collection.reference))
        judged.append(judge_map(found.matches, surface, collection.reference, trust[-1]))
    why = {
        i: judgement.reasons[0] if judgement.verdict == "failed" else "no cycle through similar shapes confirms it"
        for i, (found, judgement) in enumerate(zip(maps, judged, strict=True))
        if judgement.verdict == "failed" or not found.consistent
    }
    order = sorted(range(len(maps)), key=lambda i: (judged[i].verdict == "failed", maps[i].cycle_error))
    for i in order[: max(2, round(FEWEST * len(maps)))]:
        why.pop(i, None)
    labels, weights = list[IntArray](), list[FloatArray]()
    for i, found in enumerate(maps):
        weight = trust[i] * found.agreement
        used = (weight >= LEAST_WEIGHT) & (i not in why)
        labels.append(np.where(used, found.matches, -1).astype(np.int32))
        weights.append(np.where(used, weight, 0.0))
    others = [i for i in range(len(maps)) if i != collection.at]
    dropped = [{"name": collection.prepared[i].name, "why": reason} for i, reason in sorted(why.items())]
    facts = {
        "maps_by": maps_by,
        "kept": len(maps) - len(dropped),
        "dropped": dropped,
        "through_others": sum(found.index > 0 for found in maps),
        "mean_confidence": float(np.mean([trust[i].mean() for i in others])),
        "cycle_error_x100": 100 * float(np.mean([maps[i].cycle_error for i in others])),
        "consistent": float(np.mean([maps[i].consistent for i in others])),
    }
    return labels, weights, facts


def _write_maps(path: Path, key: str, known: tuple[list[IntArray], list[FloatArray], dict[str, Any]]) -> None:
    labels, weights, facts = known
    arrays: dict[str, Any] = {f"{i}.labels": array for i, array in enumerate(labels)}
    arrays |= {f"{i}.weights": array.astype(np.float32) for i, array in enumerate(weights)}
    write_arrays(path, arrays, {"key": key, "facts": json.dumps(facts)})


def _read_maps(
    path: Path, key: str, collection: _Collection
) -> tuple[list[IntArray], list[FloatArray], dict[str, Any]] | None:
    """What `_write_maps` wrote under this key; None where there is nothing of the kind."""
    if not path.is_file():
        return None
    try:
        arrays, about = read_arrays(path)
        if about["key"] != key:
            return None
        count = len(collection.prepared)
        labels, weights = ([arrays[f"{i}.{kind}"] for i in range(count)] for kind in ("labels", "weights"))
        facts = json.loads(about["facts"])
    except (InputError, KeyError, ValueError, TypeError):
        return None
    fits = all(len(own) == shape.n for own, shape in zip(labels, collection.prepared, strict=True))
    return (labels, weights, facts) if fits else None


def _budget(config: RunConfig, number: int, shapes: int) -> RunConfig:
    """Settings with the budget of the first rounds."""
    part = number / config.train.rounds
    for name in INSTEAD_OF_EPOCHS:
        if budget := getattr(config.train, name):
            return config.with_changes({name: max(1, round(part * budget)) if name == "steps" else part * budget})
    per_epoch = -(-shapes // config.train.shapes_per_step)
    return config.with_changes({"steps": max(1, round(part * per_epoch * config.train.epochs))})


def _made_by(config: RunConfig, rounds: int, shapes: int, start: Run | None) -> str:
    """What makes maps after some rounds: descriptors, the model to adapt, or the network after its budget until then.

    A training that goes on with a larger budget has other networks at the ends of its rounds.
    """
    if rounds == 0:
        return "descriptors" if start is None else start.name
    train = _budget(config, rounds, shapes).train
    return ", ".join(f"{name} {getattr(train, name)}" for name in INSTEAD_OF_EPOCHS)


def _remember(last: dict[str, Any], progress: Progress | None, report: StepReport | None, step: dict[str, Any]) -> None:
    last.update(step)
    if progress:
        by_time = int(step["seconds"]), int(step["seconds"] + step["seconds_left"])
        progress(*(by_time if step["steps"] is None else (step["step"], step["steps"])))
    if report:
        report(step)
