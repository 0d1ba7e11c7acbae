"""Whether four landmarks on the paws resolve limbs that a match swaps, on TOSCA (needs `ACNN_DATA`).

    python benchmarks/landmarks.py [--all] [--pairs FILE] [--limit N] [--method METHOD] [--no-candidates] [--json]

Pairs within a class, remeshed; `benchmarks/pairs/tosca.txt`, or with `--all` every ordered pair. Paws are where the
limbs of the first shape of the class, which stands, touch the ground (of humans: hands and feet), and the same points
of the others. A limb is swapped if most vertices within 10 % of sqrt(area) of its paw are matched nearer to another
paw. Where one is, the pair is matched again with the four paws as landmarks, and again with two of them exchanged,
which contradict each other. `swapped` is counted in the map around the landmarks, not only at them.

TOSCA is for measuring: nothing may be chosen by these figures.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from _table import environment, print_table
from scipy.cluster.hierarchy import fclusterdata

import acnn
from acnn.datasets.pairs import open_pairs, read_pair_list
from acnn.shapes.mesh import Mesh
from acnn.surface.geodesics import geodesics_from
from acnn.surface.surface import surface_of

HUMANS = ("david", "michael", "victoria")
NEAR = 0.1
"""Around a paw, in square roots of the area."""

UP = 2
"""Axis along which the first shapes of TOSCA's classes stand."""

PAIRS = open_pairs("tosca")


def main() -> None:
    """Match, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=Path, default=Path(__file__).parent / "pairs" / "tosca.txt")
    parser.add_argument("--all", action="store_true", help="every ordered pair within a class")
    parser.add_argument("--limit", type=int, help="the first so many pairs")
    parser.add_argument("--method", default="auto", help="as of acnn match")
    parser.add_argument("--no-candidates", action="store_true", help="one map a pair, which swaps more limbs")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    listed = [pair for pair in PAIRS if pair[0] != pair[1]] if chosen.all else read_pair_list(chosen.pairs)
    rows = []
    for a, b in listed[: chosen.limit]:
        rows.append(measured(a, b, method=chosen.method, candidates=not chosen.no_candidates))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    if chosen.json:
        print(json.dumps({"environment": environment(["torch", "numpy", "scipy"]), "pairs": rows}))
        return
    print_table("limbs swapped of four, without and with landmarks", rows)
    swapped = [row for row in rows if row["swapped"]]
    left = sum(row["with_landmarks"] > 0 for row in swapped)
    print(f"{len(swapped)} of {len(rows)} pairs have a swapped limb; with landmarks {left} of these.")


def measured(a: str, b: str, **options: Any) -> dict[str, Any]:
    """Limbs swapped in one pair, without and with landmarks, and with options of `acnn.match`."""
    begin = time.process_time()
    pair = PAIRS.read(a, b)
    here, there = paws(a), paws(b)
    found = acnn.match(pair.a, pair.b, **options)
    row = {"a": a, "b": b, "route": found.report.route, "verdict": found.verdict}
    row |= {"swapped": swapped(found.a_to_b, pair.a, pair.b, here, there)}
    row |= {"with_landmarks": None, "reported": None, "exchanged_reported": None}
    if row["swapped"]:
        guided = acnn.match(pair.a, pair.b, landmarks=np.column_stack([here, there]), **options)
        row["with_landmarks"] = swapped(guided.a_to_b, pair.a, pair.b, here, there)
        row["reported"] = len(guided.report.landmarks["contradictions"])
        exchanged = np.column_stack([here, there[[0, 1, 3, 2]]])
        crossed = acnn.match(pair.a, pair.b, landmarks=exchanged, **options)
        row["exchanged_reported"] = len(crossed.report.landmarks["contradictions"])
    return row | {"core_s": time.process_time() - begin}


@lru_cache
def paws(name: str) -> np.ndarray:
    """Four vertices of a shape: front ones first, then hind ones, left and right in one order for all of a class."""
    cls = re.sub(r"\d+$", "", name)
    pair = PAIRS.read(f"{cls}0", name)
    assert isinstance(pair.a, Mesh)
    first = pair.a
    surface = surface_of(first)
    height = first.vertices[:, UP] - first.vertices[:, UP].min()
    if cls in HUMANS:
        ends = extremities(surface, 5)
        ends = ends[np.argsort(height[ends])][[2, 3, 0, 1]]  # hands, feet; the highest is the head
    else:
        low = np.flatnonzero(height < 0.05 * height.max())
        group = fclusterdata(first.vertices[low], 4, criterion="maxclust")
        ends = np.array([low[group == k][height[low[group == k]].argmin()] for k in range(1, 5)])
        length = int(np.ptp(first.vertices[ends, :2], axis=0).argmax())  # from head to tail, or the other way
        ends = ends[np.argsort(first.vertices[ends, length])]
    vertices = pair.b.vertices
    positions = pair.truth.interpolate(vertices[pair.b.faces])[ends]
    return np.array([np.linalg.norm(vertices - position, axis=1).argmin() for position in positions])


def extremities(surface: Any, count: int) -> np.ndarray:
    """Points far from all before, beginning with the one farthest from the centre."""
    centre = int(np.linalg.norm(surface.vertices - surface.vertices.mean(axis=0), axis=1).argmin())
    ends: list[int] = [int(geodesics_from(surface, [centre])[0].argmax())]
    while len(ends) < count:
        ends.append(int(geodesics_from(surface, ends).min(axis=0).argmax()))
    return np.array(ends)


def swapped(a_to_b: np.ndarray, a: Mesh, b: Mesh, here: np.ndarray, there: np.ndarray) -> int:
    """Number of limbs that are matched to another."""
    first, second = surface_of(a), surface_of(b)
    near = geodesics_from(first, here) < NEAR * np.sqrt(first.vertex_areas.sum())
    nearest = geodesics_from(second, there).argmin(axis=0)[a_to_b]
    return sum(bool((nearest[around] != limb).mean() > 0.5) for limb, around in enumerate(near))


if __name__ == "__main__":
    main()
