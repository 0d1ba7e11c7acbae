"""The ablation on FAUST: its rows can be run, and what is printed of them is what was measured."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from analytic import write_bumps

FOLDER = Path(__file__).parents[2] / "experiments" / "faust"
sys.path.insert(0, str(FOLDER))

import ablation  # noqa: E402

from acnn.network import ShapeNetwork  # noqa: E402
from acnn.training.config import RunConfig  # noqa: E402


@pytest.mark.parametrize("name", ablation.ROWS)
def test_every_row_is_base_with_something_changed(name):
    config = ablation.row_config(name)
    assert (config == ablation.row_config("base")) == (name == "base")
    assert bool(ablation.ROWS[name].words) == (name != "base")
    ShapeNetwork(config.train.architecture, 20, 30, config.patches.angles, len(config.patches.scales))


def test_the_readme_has_the_rows_of_the_json_file():
    results = json.loads((FOLDER / "ablation.json").read_text())
    assert ablation.markdown(results) in (FOLDER / "README.md").read_text()


def test_a_row_is_not_chosen_by_the_shapes_it_is_tested_on(tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    tiny = {"angles": 2, "scales": (6.0, 24.0), "shot_radii": (20.0,), "architecture": "FC8+IC8+Softmax", "epochs": 2}
    monkeypatch.setattr(ablation, "row_config", lambda name: RunConfig().with_changes(tiny))
    monkeypatch.setattr(ablation, "TRAIN", "0-1")
    monkeypatch.setattr(ablation, "TEST", "2")
    result = ablation.run_row("base", str(write_bumps(tmp_path / "shapes", 3)), tmp_path, 1)
    run = json.loads((tmp_path / "base" / "run.json").read_text())
    assert (run["train"], run["validation"]) == (["bump_0", "bump_1"], [])
    assert "best_step" not in run
    assert result["steps"] == 4


def test_rows_that_are_done_are_collected_and_not_run_again(tmp_path):
    result = {"row": "alpha_1", "changed": {"alpha": 1.0}, "steps": 1234, "exact": 0.5, "mean_error_x100": 1.25}
    (tmp_path / "rows" / "alpha_1").mkdir(parents=True)
    (tmp_path / "rows" / "alpha_1" / "result.json").write_text(json.dumps(result))
    (tmp_path / "rows" / "alpha_1" / "config.toml").write_text(str(ablation.row_config("alpha_1")))
    words = ["--out", str(tmp_path / "rows"), "--rows", "alpha_1", "--table", str(tmp_path / "t.json")]
    done = subprocess.run(
        [sys.executable, str(FOLDER / "ablation.py"), *words], capture_output=True, text=True, check=True
    )
    assert "| `alpha_1` | isotropic kernels | 1,234 | 50.0 % | 1.25 |" in done.stdout
    assert json.loads((tmp_path / "t.json").read_text()) == [result]
