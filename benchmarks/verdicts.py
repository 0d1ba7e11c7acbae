"""Pairs of generated shapes with known correspondence, many of them disturbed: errors, confidences and verdicts.

    python benchmarks/verdicts.py [--kinds noise,holes,...] [--pairs N] [--first N] [--seed K] [--json]
    python benchmarks/verdicts.py --fit [--pairs N]

Two built-in humans of different subjects, or two shapes of a family (`acnn data family`), in triangulations of their
own, matched by `acnn.match`. A map is wrong where over 20 % of its vertices are more than 0.2 off (of the root of B's
area), or where it is mirrored, and for two kinds of shapes without a common map; right where at most 5 % are. Every
pair is matched with candidates and without (`candidates=False`); reported are errors, the calibration error of the
confidence and the area under its ROC curve over the maps with candidates, and how wrong and right maps of both are
called. `--fit` prints the constants of `acnn.correspondence.judge`, fitted to both maps of the kinds `FITTED`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from _table import environment, print_table

from acnn.correspondence.judge import confidence_features
from acnn.datasets.builtin import builtin_humans
from acnn.datasets.clouds import sample_points
from acnn.datasets.families import make_family
from acnn.datasets.parts import cut_part
from acnn.evaluation.distances import ReferenceDistances
from acnn.evaluation.pairs import ConfidenceCounts
from acnn.evaluation.princeton import evaluate_map
from acnn.runs.match import match
from acnn.shapes.mesh import Mesh, PointCloud, Shape
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.simplify import decimate, remesh
from acnn.surface.surface import surface_of, vertex_normals

VERTICES = 1500
"""Of a full shape; the pretrained model works on copies of at most 2,500."""


@dataclass(frozen=True, eq=False)
class GeneratedPair:
    """A pair; `positions` (n, 3) are the true images of A's vertices near B, `mirrored` those of the mirrored map."""

    kind: str
    a: Shape
    b: Mesh
    positions: np.ndarray | None
    mirrored: np.ndarray | None = None


def _humans(kind: str, random: np.random.Generator) -> GeneratedPair:
    """Two humans of different subjects; A, and for some kinds B too, is disturbed."""
    humans = builtin_humans()
    i, j = random.choice(len(humans), 2, replace=False)
    while humans.subjects[i] == humans.subjects[j]:
        j = random.integers(len(humans))
    first, second = humans.mesh(int(i)), humans.mesh(int(j))
    if kind == "stretched":
        first, second = (_stretched(mesh, random) for mesh in (first, second))
    seed_a, seed_b = (int(seed) for seed in random.integers(1 << 30, size=2))
    b = remesh(second, vertices=VERTICES + 200, density=0.5, seed=seed_b).mesh
    a: Shape
    if kind in ("voxels", "mittens", "fused"):
        from acnn.datasets.implicit import voxel_mesh

        closing = {"voxels": 0.0, "mittens": 0.02, "fused": 0.05}[kind] * random.uniform(0.7, 1.3)
        a = _decimated(voxel_mesh(first, random.uniform(0.012, 0.02), closing=closing), VERTICES)
        points = ClosestPoints(first.vertices, first.faces)(a.vertices)
        if kind == "fused":
            b = _decimated(voxel_mesh(second, 0.012, closing=0.5 * closing), VERTICES + 200)
    elif kind == "cloud":
        points = sample_points(first, 2 * VERTICES, seed_a)
        places = points.interpolate(first.vertices[first.faces])
        a = PointCloud(places + random.normal(0.0, random.uniform(0.0, 0.004), places.shape))
    else:
        made = remesh(first, vertices=VERTICES, seed=seed_a)
        a, points = made.mesh, made.truth
    if kind == "noise":
        a, b = (_noisy(mesh, random, random.uniform(0.1, 0.45)) for mesh in (a, b))  # type: ignore[arg-type]
    images, there = second.vertices[second.faces], second.vertices[humans.mirror][second.faces]
    positions, mirrored = points.interpolate(images), points.interpolate(there)
    if kind in ("holes", "cuts"):
        low, high = {"holes": (0.15, 0.5), "cuts": (0.2, 0.6)}[kind]
        a, kept = cut_part(a, kind, random.uniform(low, high), seed_a)  # type: ignore[arg-type]
        positions, mirrored = positions[kept], mirrored[kept]
    return GeneratedPair(kind, a, b, positions, mirrored)


def _family(kind: str, random: np.random.Generator) -> GeneratedPair:
    """Two shapes of one family in triangulations of their own."""
    seed = int(random.integers(1 << 30))
    family = make_family(kind, 2, vertices=VERTICES, seed=seed)  # type: ignore[arg-type]
    made = remesh(family.mesh(0), vertices=VERTICES, seed=seed)
    b = remesh(family.mesh(1), vertices=VERTICES - 100, density=0.5, seed=seed + 1).mesh
    return GeneratedPair(kind, made.mesh, b, made.truth.interpolate(family.vertices[1][family.faces]))


def _unlike(kind: str, random: np.random.Generator) -> GeneratedPair:
    """Two shapes that have no common map."""
    seed = int(random.integers(1 << 30))
    animal = make_family("quadruped", 1, vertices=VERTICES, seed=seed).mesh(0)
    if kind == "animal to human":
        humans = builtin_humans()
        return GeneratedPair(kind, animal, remesh(humans.mesh(seed % len(humans)), vertices=VERTICES).mesh, None)
    return GeneratedPair(kind, make_family("hand", 1, vertices=VERTICES, seed=seed).mesh(0), animal, None)


def _stretched(mesh: Mesh, random: np.random.Generator) -> Mesh:
    """Scaled differently along each axis, and displaced by smooth waves."""
    points = mesh.vertices * np.exp(random.normal(0.0, 0.15, 3))
    for _ in range(4):
        wave = random.normal(0.0, 5.0, 3)
        points = points + np.sin(points @ wave + random.uniform(0, 6))[:, None] * random.normal(0.0, 0.02, 3)
    return Mesh(points, mesh.faces)


def _noisy(mesh: Mesh, random: np.random.Generator, size: float) -> Mesh:
    """Displaced along normals by noise of `size` mean edge lengths."""
    corners = mesh.vertices[mesh.faces]
    edge = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean()
    heights = random.normal(0.0, size * edge, len(mesh.vertices))
    return Mesh(mesh.vertices + heights[:, None] * vertex_normals(mesh.vertices, mesh.faces), mesh.faces)


def _decimated(mesh: Mesh, vertices: int) -> Mesh:
    kept, faces = decimate(mesh.vertices, mesh.faces, vertices)
    return Mesh(mesh.vertices[kept], faces)


Maker = Callable[[str, np.random.Generator], GeneratedPair]
FITTED = ("noise", "stretched", "quadruped", "holes")
"""Kinds that the constants of `acnn.correspondence.judge` were chosen on; nothing was chosen on the others."""

KINDS: dict[str, Maker] = {
    **dict.fromkeys(("plain", "noise", "voxels", "stretched", "cuts"), _humans),
    "quadruped": _family,
    "animal to human": _unlike,
    **dict.fromkeys(("mittens", "fused", "holes", "cloud"), _humans),
    **dict.fromkeys(("hand", "bone"), _family),
    "hand to animal": _unlike,
}


def generated_pair(kind: str, number: int, seed: int = 0) -> GeneratedPair:
    """Pair `number` of a kind."""
    return KINDS[kind](kind, np.random.default_rng([seed, list(KINDS).index(kind), number]))


def matched(kind: str, number: int, seed: int, candidates: bool) -> dict[str, Any]:
    """A pair matched: its errors, confidences and verdict."""
    pair = generated_pair(kind, number, seed)
    began = time.process_time()
    found = match(pair.a, pair.b, candidates=candidates)
    facts: dict[str, Any] = {
        "kind": kind,
        "number": number,
        "candidates": candidates,
        "route": found.report.route,
        "verdict": found.verdict,
        "confidence": found.confidence,
        "core_s": time.process_time() - began,
        "match": found,
    }
    if pair.positions is None:
        return facts | {"errors": np.full(len(found.a_to_b), np.inf), "flipped": None}
    distances = ReferenceDistances(surface_of(pair.b))
    truth = ClosestPoints(pair.b.vertices, pair.b.faces)
    errors = evaluate_map(found.a_to_b, truth(pair.positions), distances).errors
    flipped = pair.mirrored is not None and bool(
        evaluate_map(found.a_to_b, truth(pair.mirrored), distances).errors.mean() < errors.mean()
    )
    return facts | {"errors": errors, "flipped": flipped}


def is_wrong(row: dict[str, Any]) -> bool:
    """Over 20 % of the vertices more than 0.2 off, or mirrored."""
    return bool((row["errors"] > 0.2).mean() > 0.2 or row["flipped"])


def is_right(row: dict[str, Any]) -> bool:
    """At most 5 % of the vertices more than 0.2 off, and not mirrored."""
    return bool((row["errors"] > 0.2).mean() <= 0.05 and not row["flipped"])


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Calibration over the maps with candidates, and verdicts over all maps."""
    chosen = [row for row in rows if row["candidates"]]
    counts = ConfidenceCounts.of(
        np.concatenate([row["confidence"] for row in chosen]), np.concatenate([row["errors"] for row in chosen])
    )
    wrong, right = ([row for row in rows if test(row)] for test in (is_wrong, is_right))
    return {
        "pairs": len(chosen),
        "calibration_error": counts.calibration_error(),
        "roc_area": counts.auc(),
        "wrong_maps": len(wrong),
        "wrong_called": sum(row["verdict"] != "good" for row in wrong),
        "right_maps": len(right),
        "right_called": sum(row["verdict"] != "good" for row in right),
    }


def fitted(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Weights of `confidence_features`, by logistic regression with vertices weighted by their area."""
    weights = {}
    for name, evidence in (("CONFIDENCE", False), ("CONFIDENCE_WITH_EVIDENCE", True)):
        features, right, areas = [], [], []
        for row in rows:
            measures = row["match"].measures
            if len(measures.trust) != len(row["errors"]):
                continue  # errors are those of the original, measures those of a working copy
            measures = measures if evidence else replace(measures, evidence=None)
            if measures.evidence is None and evidence:
                continue
            features.append(confidence_features(measures))
            right.append(row["errors"] <= 0.05)
            areas.append(measures.areas)
        x, y, w = np.concatenate(features), np.concatenate(right).astype(float), np.concatenate(areas)
        w, b = w / w.sum(), np.zeros(x.shape[1])
        for _ in range(50):
            p = 1.0 / (1.0 + np.exp(-x @ b))
            gradient = x.T @ (w * (p - y)) + 1e-3 * b
            b -= np.linalg.solve((x * (w * p * (1 - p))[:, None]).T @ x + 1e-3 * np.eye(len(b)), gradient)
        weights[name] = [round(float(value), 2) for value in b]
    return weights


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kinds", help="kinds of pairs, separated by commas")
    parser.add_argument("--pairs", type=int, default=8, help="pairs of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first pair of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fit", action="store_true", help="print fitted constants")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    kinds = chosen.kinds.split(",") if chosen.kinds else list(FITTED if chosen.fit else KINDS)
    rows = []
    for number in range(chosen.first, chosen.first + chosen.pairs):
        for kind in kinds:
            for candidates in (False, True):
                rows.append(matched(kind, number, chosen.seed, candidates))
                row = rows[-1]
                figures = f"{100 * row['errors'].mean():.1f} {row['verdict']} {row['confidence'].mean():.2f}"
                print(kind, number, "with" if candidates else "without", figures, file=sys.stderr, flush=True)
    if chosen.fit:
        print(json.dumps(fitted(rows)))
        return
    report: dict[str, Any] = {"environment": environment(["torch", "numpy", "scipy"])}
    for name, group in (("fitted", FITTED), ("held out", tuple(kind for kind in kinds if kind not in FITTED))):
        own = [row for row in rows if row["kind"] in group]
        if own:
            report[name] = summary(own)
    table = []
    for kind in kinds:
        for candidates in (False, True):
            own = [row for row in rows if row["kind"] == kind and row["candidates"] == candidates]
            table.append(
                {
                    "kind": kind,
                    "candidates": candidates,
                    "error": 100 * float(np.mean([row["errors"].mean() for row in own])),
                    "wrong": sum(map(is_wrong, own)),
                    "confidence": float(np.mean([row["confidence"].mean() for row in own])),
                    "good/doubtful/failed": "/".join(
                        str(sum(row["verdict"] == word for row in own)) for word in ("good", "doubtful", "failed")
                    ),
                    "core_s": float(np.mean([row["core_s"] for row in own])),
                }
            )
    if chosen.json:
        print(json.dumps(report | {"kinds": table}))
        return
    print_table("kinds", table)
    print_table(
        "confidence and verdicts", [{"kinds": name, **report[name]} for name in report if name != "environment"]
    )


if __name__ == "__main__":
    main()
