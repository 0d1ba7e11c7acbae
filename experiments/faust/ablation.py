"""What matters: one row for each choice, all trained for the same processor time on subjects 0 to 4 of FAUST.

    python experiments/faust/ablation.py --data DIR --out DIR [--rows base,alpha_1] [--table FILE.json]

Every row is the row `base` with some settings changed, trained on 000-049 for 10 minutes of one core with one seed, and
tested on 050-059 as it is after the last step. Settings of presets were chosen by these rows, so 050-059 is the tuning
set: its figures compare rows, and results are reported on other shapes. A row that was stopped goes on, one that is
done is not run again. `--table` collects all rows that are done, in a file such as ablation.json beside this one, and
prints them as README.md has them.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acnn.training.config import RunConfig

TRAIN, TEST = "000-049", "050-059"
CORE_MINUTES = 10.0

NETWORK = "FC96+RES(IC64)+RES(IC64)+RES(IC64)+FC512+DO(0.4)+Softmax"

BASE: dict[str, Any] = {
    "angles": 8,
    "alpha": 100.0,
    "scales": (4.0, 16.0, 64.0),
    "shot_radii": (4.0, 8.0, 16.0),
    "area_weighted": False,
    "upright": True,
    "architecture": NETWORK,
    "learning_rate": 3e-3,
    "schedule": "one-cycle",
    "weight_decay": 1e-4,
    "shared_outputs": 300,
    "loss_vertices": 1000,
}


@dataclass(frozen=True)
class Row:
    """One row: what is different from `base`, in words and as settings."""

    words: str
    changes: dict[str, Any]


ROWS: dict[str, Row] = {
    "base": Row("", {}),
    # convolution
    "angular_max": Row("maximum over rotations of the filters, as in the released code", {"angular_max": True}),
    "alpha_1": Row("isotropic kernels", {"alpha": 1.0}),
    "alpha_10": Row("less anisotropic kernels, 10 instead of 100", {"alpha": 10.0}),
    "angles_4": Row("4 angles instead of 8", {"angles": 4}),
    "angles_16": Row("16 angles instead of 8", {"angles": 16}),
    "scales_narrow": Row("scales 3, 6, 12, 24 instead of 4, 16, 64", {"scales": (3.0, 6.0, 12.0, 24.0)}),
    "scales_wide": Row("scale 256 as well", {"scales": (4.0, 16.0, 64.0, 256.0)}),
    "top_7": Row("rows truncated to 7 entries, as in the released code", {"entries": 7}),
    # input
    "shot_radius_7": Row("SHOT of radius 7 instead of 4, 8 and 16", {"shot_radii": (7.0,)}),
    "shot_radius_12": Row("SHOT of radius 12 instead of 4, 8 and 16", {"shot_radii": (12.0,)}),
    "shot_by_area": Row("SHOT weighted by area instead of counting vertices", {"area_weighted": True}),
    "shot_published_frame": Row("SHOT's frame as published instead of upright", {"upright": False}),
    "wks": Row("wave kernel signatures instead of SHOT", {"kinds": ("wks",)}),
    "with_rings": Row("valence descriptor in addition to SHOT", {"kinds": ("shot", "valences")}),
    "only_rings": Row("what the triangulation says, without SHOT", {"kinds": ("valences",)}),
    # network
    "no_residual": Row(
        "plain instead of residual convolutions",
        {"architecture": "FC96+IC64+BN+IC64+BN+IC64+BN+FC512+DO(0.4)+Softmax"},
    ),
    "one_layer": Row("one convolution instead of three", {"architecture": "FC96+RES(IC64)+FC512+DO(0.4)+Softmax"}),
    "five_layers": Row(
        "five convolutions instead of three",
        {"architecture": NETWORK.replace("+FC512", "+RES(IC64)+RES(IC64)+FC512")},
    ),
    "wide_96": Row("96 channels instead of 64", {"architecture": NETWORK.replace("IC64", "IC96")}),
    "hidden_256": Row(
        "256 features before the output instead of 512", {"architecture": NETWORK.replace("FC512", "FC256")}
    ),
    # learning
    "no_dropout": Row("no dropout", {"architecture": NETWORK.replace("+DO(0.4)", "")}),
    "no_sharing": Row("output weights not shared along the reference", {"shared_outputs": 0}),
    "constant_rate": Row(
        "a constant rate of 0.001 instead of one cycle", {"schedule": "constant", "learning_rate": 1e-3}
    ),
    "label_smoothing": Row("a tenth of the target distributed over all vertices", {"label_smoothing": 0.1}),
    "all_vertices": Row("the loss on all vertices instead of 1,000", {"loss_vertices": 0}),
    # what is learned from
    "interpolated": Row("as many interpolated bodies as well", {"interpolated": 1}),
    "remeshed": Row("remeshed copies of half the shapes as well", {"remeshed": 0.5}),
    "remeshed_soft": Row("the same, and soft labels inside triangles", {"remeshed": 0.5, "soft_labels": True}),
}
"""Every row by its name, in the order of the table."""


def row_config(name: str) -> RunConfig:
    """All settings of a row."""
    from acnn.training.config import RunConfig

    return RunConfig().with_changes(BASE | {"core_minutes": CORE_MINUTES, "validate_every": 1000} | ROWS[name].changes)


def run_row(name: str, data: str, out: Path, workers: int) -> dict[str, Any]:
    """Prepare, train and test one row; what it found is also left in `out/NAME/result.json`."""
    import torch

    from acnn.files import write_atomic
    from acnn.runs.evaluate import evaluate_run
    from acnn.runs.train import train_run
    from acnn.training.config import read_config

    folder = out / name
    result_file = folder / "result.json"
    config = row_config(name)
    if result_file.is_file() and read_config(folder / "config.toml") == config:
        return dict(json.loads(result_file.read_text()))
    torch.set_num_threads(1)
    # Without validation: the model after the last step is tested, not one that the test shapes chose.
    facts, failures = train_run(data, folder, config, train_list=TRAIN, resume=True, workers=workers)
    report, more = evaluate_run(folder, data, test_list=TEST)
    if failures or more:
        raise SystemExit(f"{name}: {[*failures, *more]}")
    result = {
        "row": name,
        "changed": ROWS[name].changes,
        "exact": report["exact"],
        "mean_error_x100": report["mean_error_x100"],
        "steps": facts["step"],
        "core_seconds": facts["core_seconds"],
        "training_loss": facts["loss"],
        "seed": config.train.seed,
    }
    write_atomic(result_file, (json.dumps(result, indent=1) + "\n").encode())
    return result


def markdown(results: list[dict[str, Any]]) -> str:
    """The table of README.md."""
    lines = ["| row | changed | steps | exact | mean error |", "|---|---|---|---|---|"]
    for result in results:
        name = result["row"]
        cells = f"`{name}`", ROWS[name].words, f"{result['steps']:,}", f"{100 * result['exact']:.1f} %"
        lines.append("| " + " | ".join((*cells, f"{result['mean_error_x100']:.2f}")).replace("|  |", "| |") + " |")
    return "\n".join(lines)


def main() -> None:
    """Run rows one after the other."""
    from acnn.files import write_atomic

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="faust", help="FAUST's folder; by default below ACNN_DATA")
    parser.add_argument("--out", type=Path, required=True, help="one folder a row")
    parser.add_argument("--rows", default=",".join(ROWS), help="names separated by commas; all by default")
    parser.add_argument("--workers", type=int, default=1, help="processes that prepare shapes")
    parser.add_argument("--table", type=Path, help="write all rows that are done to this file, and print them")
    given = parser.parse_args()
    wanted = [name for name in given.rows.split(",") if name]
    for name in wanted:
        if name not in ROWS:
            parser.error(f"there is no row '{name}'; there are {', '.join(ROWS)}")
    for name in wanted:
        result = run_row(name, given.data, given.out, given.workers)
        print(
            f"{name:24} {result['exact']:7.1%} exact, error {result['mean_error_x100']:6.2f}, {result['steps']} steps"
        )
    if given.table:
        found = [given.out / name / "result.json" for name in ROWS]
        results = [json.loads(path.read_text()) for path in found if path.is_file()]
        write_atomic(given.table, (json.dumps(results, indent=1) + "\n").encode())
        print(markdown(results))


if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    main()
