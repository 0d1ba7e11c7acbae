"""From a dataset to a run, stopped and gone on with."""

import pytest
from analytic import write_bumps

from acnn.errors import InputError
from acnn.pipeline.train_run import train_run
from acnn.training import RunConfig


def test_a_run_that_is_done_says_the_same_when_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    shapes, run = write_bumps(tmp_path / "bumps", 2), tmp_path / "run"
    changes = {"angles": 2, "scales": "6,24", "architecture": "FC8+IC8+Softmax", "epochs": 2}
    config = RunConfig().with_changes(changes)
    facts, _ = train_run(str(shapes), run, config)
    with pytest.raises(InputError, match="--resume"):
        train_run(str(shapes), run, config)
    again, _ = train_run(str(shapes), run, config, resume=True)
    for key in ("step", "loss", "accuracy", "core_seconds", "seconds_training"):
        assert again[key] == facts[key]
    assert facts["step"] == 4
