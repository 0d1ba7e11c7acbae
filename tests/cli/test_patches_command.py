import json
import sys

import numpy as np
import pytest
from analytic import bumpy

from acnn.cli import main
from acnn.shapes import save
from acnn.training.cache_entries import read_patches


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
    assert main([*arguments, "--force"]) == 0
    assert "from the cache" in capsys.readouterr().out
    assert np.isfinite(read_patches(tmp_path / "o.safetensors").values).all()


def test_a_large_operator_is_written_without_the_cache_and_leaves_nothing_else(shape, tmp_path, monkeypatch):
    arguments = ["patches", shape, "--angles", "2", "--scales", "6", "--out"]
    assert main([*arguments, str(tmp_path / "small.safetensors"), "--no-cache"]) == 0
    monkeypatch.setattr("acnn.runs.patches.LARGE", 0)
    assert main([*arguments, str(tmp_path / "new" / "large.safetensors")]) == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["large.safetensors"]
    assert not list((tmp_path / "cache").glob("patches-*"))
    small, large = (read_patches(tmp_path / name) for name in ("small.safetensors", "new/large.safetensors"))
    np.testing.assert_array_equal(large.start, small.start)
    np.testing.assert_array_equal(large.vertices, small.vertices)
    np.testing.assert_array_equal(large.values, small.values)


@pytest.mark.parametrize(
    "wrong", [["--scales", "a,b"], ["--kernel", "magic"], ["--angles", "0"], ["--check", "-1"], ["--unit", "0"]]
)
def test_bad_settings_exit_with_2(shape, wrong, capsys):
    assert main(["patches", shape, *wrong]) == 2
    assert "error:" in capsys.readouterr().err


def test_a_damaged_entry_that_is_made_again_is_not_said_to_be_from_the_cache(shape, tmp_path, capsys):
    arguments = ["patches", shape, "--angles", "2", "--scales", "6", "--json"]
    said = []
    for damage in (False, False, True):
        if damage:
            (entry,) = (tmp_path / "cache").glob("patches-*")
            entry.write_bytes(entry.read_bytes()[:-9])
        assert main(arguments) == 0
        said.append(json.loads(capsys.readouterr().out)["from_cache"])
    assert said == [False, True, False]


@pytest.mark.parametrize("place", ["folder", "file/o.safetensors"])
def test_a_place_that_cannot_be_written_is_told_before_the_work(shape, tmp_path, place, capsys, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("acnn.training.prepared.cached_patches", None)
    assert main(["patches", shape, "--angles", "2", "--scales", "6", "--out", str(tmp_path / place)]) == 2
    assert str(tmp_path / place) in capsys.readouterr().err


def test_a_cache_that_cannot_be_used_is_named(shape, tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "file" / "cache"))
    assert main(["patches", shape, "--angles", "2", "--scales", "6"]) == 2
    said = capsys.readouterr().err
    assert str(tmp_path / "file" / "cache") in said
    assert "ACNN_CACHE" in said


def test_it_runs_where_python_has_no_resource_module(shape, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    assert main(["patches", shape, "--angles", "2", "--scales", "6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["peak_memory_mb"] > 10


def test_it_reports_the_kernel_time_and_memory_of_a_scale_between_narrow_and_wide(shape, capsys):
    arguments = ["patches", shape, "--angles", "2", "--scales", "200,9000", "--eigenpairs", "20", "--check", "20"]
    assert main([*arguments, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["kernels_by_scale"] == {"200": "rational", "9000": "eigenpairs"}
    assert facts["l1_error_max"] < 0.01
    assert facts["seconds"] > 0
    assert facts["peak_memory_mb"] > 10
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "200 by rational, 9000 by eigenpairs" in text
    assert "(rational)" in text
    assert "peak memory" in text
