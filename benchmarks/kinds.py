"""Errors of the pretrained model, or of other runs, on generated bodies of held-out kinds, kind by kind.

    acnn data humans --out held_out --kinds held-out --subjects 10 --poses 3 --seed 9021
    python benchmarks/kinds.py held_out [--models humans,RUN] [--pairs N] [--json]

The table gives the error of the network's most probable vertex of the reference, the fraction of the vertices beyond
0.2, and shapes with more than 20 % of these (`failed`). With `--pairs`, N pairs drawn at random are matched as
`acnn match` does: the error of a pair counts for the kind of A. Errors are over the root of the area, times 100.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from _table import environment, print_table

from acnn.evaluation.results import Matched
from acnn.runs.evaluate import evaluate_run
from acnn.runs.evaluate_pairs import PairSettings, evaluate_pairs

FAR, FAILED = 0.2, 0.2
"""A vertex is far off beyond this error, and a shape failed with more than this fraction of such vertices."""


def kind_of(name: str) -> str:
    """The kind in the name of a shape, `human_03_02_hat`."""
    return name.split("_", 3)[3]


def by_kind(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the shapes of each kind, and over all."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["kind"]].append(row)
        groups["all"].append(row)
    return [
        {
            "kind": kind,
            "number": len(group),
            "error": float(np.mean([row["error"] for row in group])),
            "beyond_20": float(np.mean([row["beyond_20"] for row in group])),
            "failed": sum(row["beyond_20"] > FAILED for row in group),
        }
        for kind, group in sorted(groups.items(), key=lambda item: (item[0] == "all", item[0]))
    ]


def network_output(model: str, data: Path) -> list[dict[str, Any]]:
    """One row for each shape, matched to the reference by the network alone."""
    rows: list[dict[str, Any]] = []

    def keep(matched: Matched) -> None:
        errors = matched.evaluation.errors
        row = {"kind": kind_of(matched.name), "error": 100 * float(errors.mean())}
        rows.append(row | {"beyond_20": float((errors > FAR).mean())})

    evaluate_run(model, data, test_list="all", refinement="none", keep=keep)
    return rows


def matched_pairs(model: str, data: Path, count: int) -> list[dict[str, Any]]:
    """One row for each of some pairs, as `acnn match` gives them."""
    report, _ = evaluate_pairs(data, model, pairs=str(count), settings=PairSettings(remesh=False))
    return [
        {"kind": kind_of(pair["a"]), "error": pair["mean_error_x100"], "beyond_20": pair["beyond_20"]}
        for pair in report["pairs"]
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder that `acnn data humans --kinds` wrote")
    parser.add_argument("--models", default="humans", help="runs or pretrained models, separated by commas")
    parser.add_argument("--pairs", type=int, default=0, help="number of pairs; 0 matches to the reference alone")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    results: dict[str, Any] = {}
    for model in chosen.models.split(","):
        results[model] = {"network": by_kind(network_output(model, chosen.data))}
        if chosen.pairs:
            results[model]["pairs"] = by_kind(matched_pairs(model, chosen.data, chosen.pairs))
        if not chosen.json:
            for what, table in results[model].items():
                print_table(f"{model}, {what}", table)
    if chosen.json:
        print(json.dumps({"environment": environment(["torch", "numpy", "scipy"]), "models": results}))


if __name__ == "__main__":
    main()
