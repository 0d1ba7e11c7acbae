import json

import numpy as np
import pytest
from analytic import bumpy

from acnn.cli import main
from acnn.patches import read_patches
from acnn.shapes import save


@pytest.fixture
def shape(tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    save(bumpy(2), tmp_path / "shape.ply")
    return str(tmp_path / "shape.ply")


def test_json_has_the_keys_of_the_contract(shape, capsys):
    arguments = ["patches", shape, "--angles", "2", "--scales", "6,12", "--check", "5", "--json", "--no-cache"]
    assert main(arguments) == 0
    facts = json.loads(capsys.readouterr().out)
    contract = "vertices angles scales kernel seconds nnz_per_row mass_kept l1_error_median l1_error_max peak_memory_mb"
    assert set(contract.split()) <= set(facts)
    assert facts["scales"] == [6.0, 12.0]
    assert facts["l1_error_max"] < 0.05


def test_second_run_comes_from_the_cache_and_out_writes_the_operator(shape, tmp_path, capsys):
    arguments = ["patches", shape, "--angles", "2", "--scales", "6", "--out", str(tmp_path / "o.safetensors")]
    assert main(arguments) == 0
    assert "cache" not in capsys.readouterr().out
    assert main(arguments) == 0
    assert "from the cache" in capsys.readouterr().out
    assert np.isfinite(read_patches(tmp_path / "o.safetensors").values).all()


@pytest.mark.parametrize(
    "wrong", [["--scales", "a,b"], ["--kernel", "magic"], ["--angles", "0"], ["--check", "-1"], ["--unit", "0"]]
)
def test_bad_settings_exit_with_2(shape, wrong, capsys):
    assert main(["patches", shape, *wrong]) == 2
    assert "error:" in capsys.readouterr().err
