"""Accuracy and cost of matching the fixed pairs of `benchmarks/pairs/`: five sets, 12 pairs each.

    python benchmarks/pairs.py [--only faust_r,scape,...] [--limit N] [--model RUN] [--method M] [--refine R]
                               [--rotate SEED] [--working-size N] [--out DIR] [--cache] [--json]

Needs `ACNN_DATA`. Errors are geodesic distances on B over the root of its area, times 100, pooled over all vertices;
`on_edges` measures them along edges alone, as published figures do. `failed` counts pairs with more than 20 % of the
vertices beyond 0.2, `flipped` those nearer to the mirrored ground truth where there is one. `core_s` is processor time
of a pair without loading; operators are computed for each pair unless `--cache` is given. With `--out`, finished pairs
are kept and not matched again. `--working-size 0` matches the shapes themselves instead of working copies; give it a
folder `--out` of its own.

These sets are for measuring: nothing may be chosen by their figures.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from _table import environment, print_table

from acnn.runs.evaluate_pairs import PairSettings, evaluate_pairs

LISTS = Path(__file__).parent / "pairs"
SETS = ("faust_r", "scape", "shrec19", "tosca", "shrec16")


def measured(name: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """The report over the pairs of one set."""
    from acnn.datasets.pairs import open_pairs, read_pair_list

    pairs = open_pairs(name).select(read_pair_list(LISTS / f"{name}.txt")[: chosen.limit])

    def progress(done: int, total: int) -> None:
        print(f"{name}: pair {done + 1} of {total}", file=sys.stderr, flush=True)

    report, failures = evaluate_pairs(
        pairs,
        chosen.model,
        settings=PairSettings(chosen.method, chosen.refine, chosen.rotate, working_size=chosen.working_size),
        out=None if chosen.out is None else chosen.out / f"{name}.jsonl",
        cache=chosen.cache,
        progress=progress,
    )
    return report | {"not_matched": [f"{failure.item}: {failure.why}" for failure in failures]}


def row(name: str, report: dict[str, Any]) -> dict[str, Any]:
    """One line of the table."""
    verdicts = {word: count["pairs"] for word, count in report["verdicts"].items()}
    return {
        "set": name,
        "pairs": len(report["pairs"]),
        "error": report["mean_error_x100"],
        "on_edges": report["edge_dijkstra"]["mean_error_x100"],
        "beyond_20": report["beyond_20"],
        "failed": report["failed_pairs"],
        "flipped": report["flipped_pairs"],
        "not_matched": len(report["not_matched"]),
        "good/doubtful/failed": "/".join(str(verdicts.get(word, 0)) for word in ("good", "doubtful", "failed")),
        "core_s": report["seconds_per_pair"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(SETS), help="sets, separated by commas")
    parser.add_argument("--limit", type=int, help="the first so many pairs of each list")
    parser.add_argument("--model", help="folder of a run; default: the pretrained model")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--refine", default="auto")
    parser.add_argument("--rotate", type=int)
    parser.add_argument("--working-size", type=int, metavar="N", help="as for 'acnn match'; 0: no working copies")
    parser.add_argument("--out", type=Path, help="folder for finished pairs")
    parser.add_argument("--cache", action="store_true", help="use cached operators")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
    reports = {}
    show = partial(print, file=sys.stderr, flush=True) if chosen.json else print
    for name in chosen.only.split(","):
        if name not in SETS:
            parser.error(f"there is no set '{name}'; there are {', '.join(SETS)}")
        reports[name] = measured(name, chosen)
        for failure in reports[name]["not_matched"]:
            show(f"{name}: not matched: {failure}")
    if chosen.json:
        print(json.dumps({"environment": environment(["torch", "numpy", "scipy"]), "sets": reports}))
        return
    for name, report in reports.items():
        columns = ("a", "b", "mean_error_x100", "beyond_20", "failed", "flipped", "verdict", "route", "seconds")
        print_table(name, [{column: pair[column] for column in columns} for pair in report["pairs"]])
    print_table("all sets", [row(name, report) for name, report in reports.items()])


if __name__ == "__main__":
    main()
