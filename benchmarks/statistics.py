"""Statistics of generated bones: recovery of known modes, level and power of the group test, and quality curves.

python benchmarks/statistics.py [--repetitions N] [--power-repetitions N] [--only angles|curves|level|power] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np
from _table import environment
from scipy.linalg import subspace_angles
from scipy.spatial.distance import cdist
from scipy.spatial.transform import Rotation

import acnn
from acnn.registration import align_shapes, compare_groups

VERTICES = 800
GROUP = 20
PERMUTATIONS = 999


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--power-repetitions", type=int, default=100)
    parser.add_argument("--only", choices=("angles", "curves", "level", "power"))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    began = time.process_time()
    measurements = {
        "angles": angles,
        "curves": curves,
        "level": lambda: rejections(range(given.repetitions), None),
        "power": lambda: {name: rejections(range(given.power_repetitions), k) for k, name in enumerate(names())},
    }
    facts: dict[str, object] = {"environment": environment(["numpy", "scipy"])}
    for name, measure in measurements.items():
        if given.only in (None, name):
            facts[name] = measure()
            print(f"{name}: {json.dumps(facts[name])}", file=sys.stderr, flush=True)
    facts["cpu_seconds"] = time.process_time() - began
    print(json.dumps(facts, indent=None if given.json else 1))


def names() -> tuple[str, ...]:
    return acnn.make_family("bone", 1, vertices=VERTICES).names


def moved(shapes: np.ndarray, seed: int) -> np.ndarray:
    turns = Rotation.random(len(shapes), random_state=seed).as_matrix()
    return shapes @ turns.transpose(0, 2, 1) + np.random.default_rng(seed).normal(size=(len(shapes), 1, 3))


def angles() -> dict[str, float]:
    """Largest angle in degrees between the known five modes and those recovered from 40 moved bones; five families."""
    worst = dict.fromkeys(("rigid", "similarity", "a fifth of half of the bones missing", "missing and noise"), 0.0)
    for seed in range(5):
        family = acnn.make_family("bone", 40, vertices=VERTICES, seed=1000 + seed)
        random = np.random.default_rng(seed)
        shapes = moved(family.vertices, seed)
        factors = np.exp(0.2 * random.normal(size=(40, 1, 1)))
        weights = np.ones(shapes.shape[:2])
        for number in range(0, 40, 2):
            centre = family.template[random.integers(VERTICES)]
            far = np.linalg.norm(family.template - centre, axis=1)
            weights[number, np.argsort(far)[: VERTICES // 5]] = 0
        noisy = shapes + 0.002 * random.normal(size=shapes.shape)
        found = (
            acnn.shape_statistics(shapes, modes=5),
            acnn.shape_statistics(factors * shapes, modes=5, scale=True),
            acnn.shape_statistics(shapes, weights=weights, modes=5),
            acnn.shape_statistics(noisy, weights=weights, modes=5),
        )
        for name, statistics in zip(worst, found, strict=True):
            worst[name] = max(worst[name], angle(statistics, family))
    return worst


def angle(statistics: acnn.registration.ShapeStatistics, family: acnn.datasets.Family) -> float:
    turn, _ = Rotation.align_vectors(family.template - family.template.mean(axis=0), statistics.mean)
    found = turn.apply(statistics.modes.reshape(-1, 3)).reshape(5, -1)
    return float(np.degrees(subspace_angles(found.T, family.modes.reshape(5, -1).T)[0]))


def rejections(repetitions: range, mode: int | None) -> dict[str, float]:
    """Fraction of comparisons of 20 and 20 bones with p <= 0.05; one group shifted by 1 sd along a mode, or not."""
    rejected = np.zeros(2)
    for repetition in repetitions:
        family = acnn.make_family("bone", 2 * GROUP, vertices=VERTICES, seed=10_000 + repetition)
        shapes = family.vertices.copy()
        if mode is not None:
            shapes[GROUP:] += family.modes[mode]
        aligned = align_shapes(moved(shapes, repetition)).shapes
        labels = ["a"] * GROUP + ["b"] * GROUP
        result = compare_groups(aligned, labels, permutations=PERMUTATIONS, seed=repetition)
        rejected += [result.p_value <= 0.05, (result.p_values <= 0.05).any()]
    count = len(repetitions)
    return {"repetitions": count, "shape": rejected[0] / count, "any vertex": rejected[1] / count}


def curves() -> dict[str, float]:
    """Largest relative difference of the three curves from a computation with covariance matrices and projectors."""
    family = acnn.make_family("bone", 12, vertices=600, seed=77)
    shapes = family.vertices[:, ::4]
    shapes = shapes + 0.002 * np.random.default_rng(0).normal(size=shapes.shape)
    statistics = acnn.shape_statistics(shapes, modes=8, samples=200, seed=3)
    rows = statistics.aligned.reshape(12, -1)
    points, size = shapes.shape[1], rows.shape[1]
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    values, vectors = values[::-1], vectors[:, ::-1]
    drawn = np.random.default_rng(3).standard_normal((200, 8))
    signs = np.sign(np.einsum("nk,kn->k", vectors[:, :8], statistics.modes.reshape(8, -1)))
    expected = np.empty((3, 8))
    for k in range(8):
        expected[0, k] = values[: k + 1].sum() / values.sum()
        errors = []
        for left in range(12):
            others = np.delete(rows, left, axis=0)
            basis = np.linalg.eigh(np.cov(others.T))[1][:, -(k + 1) :]
            rest = (np.eye(size) - basis @ basis.T) @ (rows[left] - others.mean(axis=0))
            errors.append(np.sqrt((rest**2).sum() / points))
        expected[1, k] = np.mean(errors)
        chosen = slice(0, k + 1)
        samples = (
            rows.mean(axis=0) + (drawn[:, chosen] * np.sqrt(values[chosen]) * signs[chosen]) @ vectors[:, chosen].T
        )
        expected[2, k] = cdist(samples, rows).min(axis=1).mean() / np.sqrt(points)
    found = np.array([statistics.compactness, statistics.generalisation, statistics.specificity])
    errors_of = np.abs(found / expected - 1).max(axis=1)
    return dict(zip(("compactness", "generalisation", "specificity"), map(float, errors_of), strict=True))


if __name__ == "__main__":
    main()
