"""How a training went: one row an epoch from the log, as a table and a picture."""

import json
from pathlib import Path

import pytest

from acnn.training.log import training_curve, write_training_curve


@pytest.fixture
def run(tmp_path: Path) -> Path:
    lines = []
    for step in range(1, 10):  # two epochs of four steps, and the first step of a third
        epoch = (step - 1) // 4
        facts = {"step": step, "epoch": epoch, "loss": 8.0 / step, "accuracy": 0.1 * step, "core_seconds": 30.0 * step}
        lines.append(json.dumps(facts | ({"validation_exact": 0.5} if step == 8 else {})))
    (tmp_path / "log.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_an_epoch_is_the_mean_of_its_steps(run: Path) -> None:
    first, second = training_curve(run / "log.jsonl")
    assert (first["epoch"], first["step"], first["core_minutes"]) == (1, 4, 2.0)
    assert first["loss"] == pytest.approx((8 + 4 + 8 / 3 + 2) / 4)
    assert first["training_exact"] == pytest.approx(0.25)
    assert (first["validation_exact"], second["validation_exact"]) == (None, 0.5)


def test_table_and_picture_are_written(run: Path) -> None:
    write_training_curve(run, "a title")
    table = (run / "training.csv").read_text().splitlines()
    assert table[0] == "epoch,step,core_minutes,loss,training_exact,validation_exact"
    assert table[1] == "1,4,2,4.16667,0.25,"
    assert table[2].endswith(",0.65,0.5")
    assert len(table) == 3
    assert (run / "training.png").read_bytes().startswith(b"\x89PNG")
