"""Networks trained without labels, and an adapted pretrained model, against descriptors and the model as it is.

    python benchmarks/unlabelled.py quadruped|hand|bone|faust_r|scape|cats --out DIR [--pairs N] [--set key=value]...

quadruped, hand, bone: a generated family, remeshed; trained on 40 shapes and measured on pairs of 10 others.
faust_r: remeshed FAUST, trained on 060-069 and measured on 070-079. scape: the pretrained model adapted to the remeshed
shapes 000-009, measured on 010-019. cats: of TOSCA's four cats, remeshed, trained on three and measured on the pairs of
the fourth with these, four times. All but families need `ACNN_DATA`; labels are used for measuring alone.

Errors are geodesic distances on B over the root of its area, times 100, with refinement in all rows; `core_s` is
processor time of a pair with all operators, without loading. A stopped call goes on when repeated.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from _table import environment, print_table

from acnn.datasets.pairs import PairSet, open_pairs
from acnn.methods.run import open_run
from acnn.runs.data import family_into
from acnn.runs.evaluate_pairs import PairSettings, evaluate_pairs
from acnn.runs.unlabelled import adapted_config, train_unlabelled
from acnn.shapes.save import save
from acnn.training.config import preset_config

FAMILIES = ("quadruped", "hand", "bone")


def write_shapes(pairs: PairSet, names: list[str], folder: Path) -> Path:
    """Shapes of a set, as its pairs have them, in a folder without labels."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if not (folder / f"{name}.ply").exists():
            other = next(b for a, b in pairs if a == name)
            save(pairs.read(name, other).a, folder / f"{name}.ply")
    return folder


def trained(data: Path, run: Path, chosen: argparse.Namespace, adapt: bool = False) -> dict[str, Any]:
    """The facts of a training without labels, or of an adaptation of the pretrained model."""
    start = open_run("humans") if adapt else None
    config = preset_config("unlabelled") if start is None else adapted_config(start)
    config = config.with_changes(dict(change.split("=", 1) for change in chosen.set or []))
    facts, failures = train_unlabelled(data, run, config, start=start, resume=(run / "run.json").exists())
    assert not failures, failures
    return facts


def measured(pairs: PairSet, out: Path, model: Path | str | None) -> dict[str, Any]:
    """Errors of pairs matched by a run, by the pretrained model, or by descriptors (None)."""
    settings = PairSettings("descriptors" if model is None else "auto", remesh=False)
    report, failures = evaluate_pairs(pairs, model, settings=settings, out=out, cache=False)
    return report | {"not_matched": len(failures)}


def row(name: str, report: dict[str, Any]) -> dict[str, Any]:
    """One line of the table."""
    return {
        "maps by": name,
        "pairs": len(report["pairs"]),
        "error": report["mean_error_x100"],
        "median pair": sorted(pair["mean_error_x100"] for pair in report["pairs"])[len(report["pairs"]) // 2],
        "failed": report["failed_pairs"],
        "flipped": report["flipped_pairs"],
        "not matched": report["not_matched"],
        "core_s": report["seconds_per_pair"],
    }


def experiment(chosen: argparse.Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the table, and the facts of all trainings."""
    out, what = chosen.out, chosen.what
    out.mkdir(parents=True, exist_ok=True)
    if what == "cats":
        return cats(chosen)
    adapt = what == "scape"
    if what in FAMILIES:
        data = out / what
        if not (data / "dataset.json").exists():
            family_into(what, data, count=50, vertices=chosen.vertices, remeshed=True, seed=0)
        tested = open_pairs(data, remesh=False).among("test")
    else:
        pairs = open_pairs(what)
        numbers, test = ("060-069", "070-079") if what == "faust_r" else ("000-009", "010-019")
        data = write_shapes(pairs, sorted({a for a, _ in pairs.among(numbers)}), out / f"{what}_train")
        tested = pairs.among(test)
    tested = tested.drawn(chosen.pairs) if chosen.pairs else tested
    # what costs least first
    first = row("pretrained" if adapt else "descriptors", measured(tested, out / f"{what}_before.jsonl",
                "humans" if adapt else None))  # fmt: skip
    print_table(what, [first])
    run = out / f"{what}_run"
    facts = trained(data, run, chosen, adapt)
    after = row("adapted" if adapt else "network", measured(tested, out / f"{what}_after.jsonl", run))
    return [first, after], [facts]


def cats(chosen: argparse.Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Leave-one-out on TOSCA's cats."""
    pairs = open_pairs("tosca")
    names = sorted({a for a, _ in pairs if a.startswith("cat")})
    rows, all_facts = [], []
    for left in names:
        others = [name for name in names if name != left]
        folder = chosen.out / f"without_{left}"
        if folder.exists():
            shutil.rmtree(folder)
        facts = trained(write_shapes(pairs, others, folder), chosen.out / f"run_{left}", chosen)
        own = pairs.select([(left, other) for other in others])
        before = measured(own, chosen.out / f"{left}_before.jsonl", None)
        after = measured(own, chosen.out / f"{left}_after.jsonl", chosen.out / f"run_{left}")
        rows += [row(f"descriptors, {left}", before), row(f"network, {left}", after)]
        print_table(left, rows[-2:])
        all_facts.append(facts)
    return rows, all_facts


def main() -> None:
    """Train, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=[*FAMILIES, "faust_r", "scape", "cats"])
    parser.add_argument("--out", type=Path, required=True, help="folder for shapes, runs and finished pairs")
    parser.add_argument("--pairs", type=int, default=0, help="so many test pairs, drawn at random; default: all")
    parser.add_argument("--vertices", type=int, default=1500, help="of the shapes of a family")
    parser.add_argument("--set", action="append", help="a setting of the training, key=value")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows, facts = experiment(chosen)
    if chosen.json:
        print(json.dumps({"environment": environment(["torch", "numpy", "scipy"]), "rows": rows, "trainings": facts}))
        return
    print_table(chosen.what, rows)
    for one in facts:
        print(f"\n{len(one['train'])} shapes, reference {one['reference']}, {one['step']} steps, "
              f"{one['core_seconds'] / 60:.1f} core-minutes of training")  # fmt: skip
        print_table("maps", [{k: v if k != "dropped" else len(v) for k, v in maps.items()} for maps in one["rounds"]])


if __name__ == "__main__":
    main()
