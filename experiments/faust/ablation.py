"""What matters: one row for each choice, all trained for the same processor time on subjects 0 to 4 of FAUST.

    python experiments/faust/ablation.py --data DIR --out DIR [--rows base,alpha_1] [--table FILE.json]

Every row is the row `base` with some settings changed, trained on 000-049 for 10 minutes of one core
with one seed, and tested on 050-059, never on the shapes that results are reported on. A row that was stopped goes on,
one that is done is not run again. `--table` collects all rows that are done.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

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

ROWS: dict[str, dict[str, Any]] = {
    "base": {},
    # convolution
    "angular_max": {"angular_max": True},
    "alpha_1": {"alpha": 1.0},
    "alpha_10": {"alpha": 10.0},
    "angles_4": {"angles": 4},
    "angles_16": {"angles": 16},
    "scales_narrow": {"scales": (3.0, 6.0, 12.0, 24.0)},
    "scales_wide": {"scales": (4.0, 16.0, 64.0, 256.0)},
    "top_7": {"entries": 7},
    # input
    "shot_radius_7": {"shot_radii": (7.0,)},
    "shot_radius_12": {"shot_radii": (12.0,)},
    "shot_by_area": {"area_weighted": True},
    "shot_published_frame": {"upright": False},
    "wks": {"kinds": ("wks",)},
    "with_rings": {"kinds": ("shot", "rings")},
    "only_rings": {"kinds": ("rings",)},
    # network
    "no_residual": {"architecture": "FC96+IC64+BN+IC64+BN+IC64+BN+FC512+DO(0.4)+Softmax"},
    "one_layer": {"architecture": "FC96+RES(IC64)+FC512+DO(0.4)+Softmax"},
    "five_layers": {"architecture": NETWORK.replace("+FC512", "+RES(IC64)+RES(IC64)+FC512")},
    "wide_96": {"architecture": NETWORK.replace("IC64", "IC96")},
    "hidden_256": {"architecture": NETWORK.replace("FC512", "FC256")},
    # learning
    "no_dropout": {"architecture": NETWORK.replace("+DO(0.4)", "")},
    "no_sharing": {"shared_outputs": 0},
    "constant_rate": {"schedule": "constant", "learning_rate": 1e-3},
    "label_smoothing": {"label_smoothing": 0.1},
    "all_vertices": {"loss_vertices": 0},
    # what is learned from
    "blended": {"blended": 1},
    "remeshed": {"remeshed": 0.5},
    "remeshed_soft": {"remeshed": 0.5, "soft_labels": True},
}
"""Changes to `BASE`, by the name of the row."""


def run_row(name: str, data: str, out: Path, workers: int) -> dict[str, Any]:
    """Prepare, train and test one row; what it found is also left in `out/NAME/result.json`."""
    import torch

    from acnn.pipeline.evaluate_run import evaluate_run
    from acnn.pipeline.train_run import train_run
    from acnn.training.config import RunConfig

    folder = out / name
    result_file = folder / "result.json"
    if result_file.is_file():
        return dict(json.loads(result_file.read_text()))
    torch.set_num_threads(1)
    config = RunConfig().with_changes(BASE | {"core_minutes": CORE_MINUTES, "validate_every": 1000} | ROWS[name])
    facts, failures = train_run(data, folder, config, train_list=TRAIN, val_list=TEST, resume=True, workers=workers)
    report, more = evaluate_run(folder, data, test_list=TEST)
    if failures or more:
        raise SystemExit(f"{name}: {[*failures, *more]}")
    result = {
        "row": name,
        "changed": ROWS[name],
        "exact": report["exact"],
        "mean_error_x100": report["mean_error_x100"],
        "steps": facts["step"],
        "core_seconds": facts["core_seconds"],
        "training_loss": facts["loss"],
        "seed": config.train.seed,
    }
    result_file.write_text(json.dumps(result, indent=1) + "\n")
    return result


def main() -> None:
    """Run rows one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="faust", help="FAUST's folder; by default below ACNN_DATA")
    parser.add_argument("--out", type=Path, required=True, help="one folder a row")
    parser.add_argument("--rows", default=",".join(ROWS), help="names separated by commas; all by default")
    parser.add_argument("--workers", type=int, default=1, help="processes that prepare shapes")
    parser.add_argument("--table", type=Path, help="write all finished rows to this file")
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
        rows = [json.loads(path.read_text()) for path in found if path.is_file()]
        given.table.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    main()
