"""How well `acnn match A B` does without any training: the network that comes with the package, or descriptors.

    python benchmarks/shipped_model.py [--model humans|none|RUN] [--only new_poses,people,faust,...] [--json]

Pairs of shapes, none of which the network has seen: new people in poses of which no dataset has any (`new_poses`; they
are made, which needs `acnn[humans]` and some minutes), and built-in people of the test split, whose *poses* the network
was trained on with other people (`people`), both in triangulations of their own; with `ACNN_DATA` also FAUST
registrations, remeshed FAUST, clouds sampled from it, and the whole shapes of SHREC'16 Partial, people and animals,
where no truth is known and only the route is told. Errors are geodesic distances on B over the root of its area, times
100.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from _table import environment, print_table

from acnn.datasets import Humans, builtin_humans
from acnn.datasets.faust import find_registrations
from acnn.datasets.labels import read_vts
from acnn.evaluation import evaluate_map
from acnn.evaluation.distances import ReferenceDistances
from acnn.runs.match import match
from acnn.shapes import Mesh, PointCloud, load
from acnn.shapes.mesh import BarycentricPoints
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.simplify import remesh

PEOPLE = ((130, 147), (135, 152), (140, 157), (145, 130), (150, 135), (155, 142))
NEW_SUBJECTS, NEW_SEED = 8, 901
"""People of `new_poses`, two poses each; the seed was used for no other data."""

FAUST = ((60, 73), (66, 79), (72, 65), (76, 69))
"""Of one subject each, to the other subject in another pose."""

OTHERS = (("cat", "wolf"), ("michael", "victoria"))
NOISE = 0.001
"""Of a sampled point in metres: the standard deviation along each axis."""

MADE, RESEARCH = ("new_poses", "people"), ("faust", "remeshed", "cloud", "others")
"""Pairs of shapes that this project makes, and those of research data."""

Pair = tuple[str, Any, Mesh, Any, Any]
"""Name, A, B, truth (None unknown), rows of A's vertices that it belongs to (None all)."""


def new_poses() -> Iterator[Pair]:
    """People made for this, in poses that nothing was trained on, both remeshed; every pose is once A and once B."""
    from acnn.datasets.humans.generate import make_humans
    from acnn.datasets.humans.poses import UNSEEN_POSES

    told = partial(print, file=sys.stderr, flush=True)
    humans = make_humans(NEW_SUBJECTS, 2, seed=NEW_SEED, test_share=0.0, table=UNSEEN_POSES, progress=told)
    pairs = [(2 * i, 2 * ((i + 3) % NEW_SUBJECTS) + 1) for i in range(NEW_SUBJECTS)]
    for (i, j), (_, *pair) in zip(pairs, _both_remeshed(humans, pairs), strict=True):
        yield (f"{humans.poses[i]} to {humans.poses[j]}", *pair)  # type: ignore[misc]


def people() -> Iterator[Pair]:
    """Built-in people of the test split, both remeshed."""
    return _both_remeshed(builtin_humans(), PEOPLE)


def _both_remeshed(humans: Humans, pairs: Iterable[tuple[int, int]]) -> Iterator[Pair]:
    for i, j in pairs:
        first, second = humans.mesh(i), humans.mesh(j)
        a, b = remesh(first, vertices=1800, seed=i), remesh(second, vertices=2400, density=0.5, seed=j)
        places = a.truth.interpolate(second.vertices[second.faces])
        yield f"{i} to {j}", a.mesh, b.mesh, _nearest(places, b.mesh), None


def faust(root: Path) -> Iterator[Pair]:
    """Registrations: vertex i is vertex i."""
    for i, j in FAUST:
        a, b = (_registration(root, k) for k in (i, j))
        yield f"{i} to {j}", a, b, np.arange(len(a.vertices)), None


def remeshed(root: Path) -> Iterator[Pair]:
    """Remeshed registrations: row k of one list is row k of the other."""
    for i, j in FAUST:
        a, b = (load(root / "faust_r" / "off" / f"tr_reg_{k:03d}.off", kind="mesh") for k in (i, j))
        files = [root / "faust_r" / "corres" / f"tr_reg_{k:03d}.vts" for k in (i, j)]
        rows, truth = (read_vts(file, len(mesh.vertices)) for file, mesh in zip(files, (a, b), strict=True))
        yield f"{i} to {j}", a, b, truth, rows


def cloud(root: Path) -> Iterator[Pair]:
    """Points drawn from registrations, with noise and without normals, to a registration."""
    import trimesh

    for i, j in FAUST[:2]:
        a, b = (_registration(root, k) for k in (i, j))
        points, face = trimesh.sample.sample_surface_even(trimesh.Trimesh(a.vertices, a.faces, process=False), 8000, i)
        weights = trimesh.triangles.points_to_barycentric(a.vertices[a.faces[face]], points)
        noisy = points + np.random.default_rng(i).normal(0.0, NOISE, points.shape)
        truth = BarycentricPoints(
            face.astype(np.int32), np.clip(weights, 0, 1) / np.clip(weights, 0, 1).sum(1)[:, None]
        )
        yield f"{i} to {j}", PointCloud(noisy), b, truth, None


def others(root: Path) -> Iterator[Pair]:
    """Whole shapes of SHREC'16 Partial."""
    for i, j in OTHERS:
        a, b = (load(root / "shrec16_partial" / "null" / f"{k}.off", kind="mesh") for k in (i, j))
        yield f"{i} to {j}", a, b, None, None


def measured(pair: Pair, model: str | None) -> dict[str, Any]:
    """One row of the table."""
    name, a, b, truth, rows = pair
    began = time.process_time()
    found = match(a, b, model=model, cache=False)
    facts = found.report
    row: dict[str, Any] = {
        "pair": name,
        "route": facts["route"],
        "confidence": facts["mean_confidence"],
        "verdict": facts["verdict"],
        "distortion": facts["distortion"],
        "core_s": time.process_time() - began,
    }
    if truth is not None:
        row["error"] = evaluate_map(found.a_to_b, truth, ReferenceDistances(found.b), rows=rows).mean_error_x100
    return row


def _registration(root: Path, number: int) -> Mesh:
    folder = find_registrations(root)
    assert folder is not None
    return load(folder / f"tr_reg_{number:03d}.ply", kind="mesh")


def _nearest(places: Any, mesh: Mesh) -> BarycentricPoints:
    found = ClosestPoints(mesh.vertices, mesh.faces)(places)
    return BarycentricPoints(found.faces, found.weights)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="humans")
    parser.add_argument("--only", default=",".join(MADE + RESEARCH), help="names separated by commas")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    root = os.environ.get("ACNN_DATA")
    results: dict[str, list[dict[str, Any]]] = {}
    for name in chosen.only.split(","):
        if name not in MADE + RESEARCH:
            parser.error(f"there are no pairs '{name}'; there are {', '.join(MADE + RESEARCH)}")
        if name in RESEARCH and root is None:
            print(f"{name}: left out, ACNN_DATA is not set")
            continue
        if name == "new_poses" and find_spec("anny") is None:
            print(f"{name}: left out, acnn[humans] is not installed")
            continue
        pairs = globals()[name]() if name in MADE else globals()[name](Path(root or ""))
        results[name] = []
        for pair in pairs:
            print(f"{name}: {pair[0]}", file=sys.stderr, flush=True)
            results[name].append(measured(pair, None if chosen.model == "none" else chosen.model))
        errors = [row["error"] for row in results[name] if "error" in row]
        print_table(name, results[name], f"mean error x 100: {np.mean(errors):.2f}" if errors else "")
    if chosen.json:
        print(json.dumps({"environment": environment(["torch", "numpy"]), "results": results}))


if __name__ == "__main__":
    main()
