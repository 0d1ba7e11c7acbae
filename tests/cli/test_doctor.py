"""`acnn doctor`, `acnn bench` and shell completion."""

import json
import os
import re
import subprocess
import sys

import pytest

from acnn.cli import main
from acnn.runs import machine as machine_module


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A cache and data of the test's own."""
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ACNN_DATA", raising=False)
    return tmp_path


def test_the_doctor_tells_versions_cache_and_a_passed_test(machine, capsys):
    (machine / "cache").mkdir()
    (machine / "cache" / "patches-a.safetensors").write_bytes(b"x" * 2_000_000)
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert re.match(r"\d+\.\d+", facts["versions"]["torch"])
    cache = {"folder": str(machine / "cache"), "entries": 1, "megabytes": 2.0, "limit_gb": 10.0, "writable": True}
    assert facts["cache"] == cache
    assert facts["data"]["set"] is False
    assert facts["self_test"]["passed"]
    assert facts["self_test"]["layer_error"] < 1e-4
    assert 1 <= facts["cores"] <= os.cpu_count()
    assert facts["problems"] == []
    # nothing personal beyond the folders asked about
    rest = json.dumps({key: value for key, value in facts.items() if key != "cache"})
    assert os.path.expanduser("~") not in rest


def test_what_is_wrong_is_said_with_what_to_do(machine, monkeypatch, capsys):
    monkeypatch.setenv("ACNN_DATA", str(machine / "nowhere"))
    monkeypatch.setattr(
        machine_module, "self_test", lambda: {"passed": False, "why": "a kernel is off", "seconds": 0.1}
    )
    monkeypatch.setattr(machine_module, "can_write", lambda folder: False)
    assert main(["doctor", "--quiet"]) == 1
    said = capsys.readouterr()
    assert "ACNN_DATA names a folder that does not exist" in said.err
    assert "set ACNN_CACHE" in said.err
    assert "a kernel is off" in said.err
    assert "FAILED in 0.1 s" in said.out


def test_data_are_named_by_folder_and_a_broken_kernel_is_noticed(machine, monkeypatch):
    (machine / "FAUST").mkdir()
    (machine / ".hidden").mkdir()
    assert machine_module.data_state(str(machine))["found"] == ["FAUST"]
    assert machine_module.can_write(machine / "not" / "yet" / "there")
    (machine / "file").write_text("")
    assert not machine_module.can_write(machine / "file" / "below")
    monkeypatch.setattr(machine_module, "_layer_error", lambda: 1.0)
    assert not machine_module.self_test()["passed"]
    monkeypatch.setattr(machine_module, "_kernel_error", lambda: 1 / 0)
    assert "ZeroDivisionError" in machine_module.self_test()["why"]


def test_bench_takes_the_best_time_and_compares(monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(machine_module, "_steps", lambda: {"first": lambda: calls.append("first")})
    monkeypatch.setattr(machine_module, "_acnn_pairs", lambda: lambda: sum(range(1000)))
    monkeypatch.setattr(machine_module, "_peers", lambda: {"eigenpairs, other": lambda: sum(range(1_000_000))})
    assert main(["bench", "--json", "--peers", "--repeat", "3"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert calls == ["first"] * 4  # once to warm up
    assert [part["name"] for part in facts["parts"]] == ["first", "eigenpairs", "eigenpairs, other"]
    assert facts["parts"][1]["ratio"] == 1.0
    assert facts["parts"][2]["ratio"] > 1.0
    assert all(part["peak_memory_mb"] > 10 for part in facts["parts"])
    assert main(["bench", "--repeat", "0"]) == 2


def completed(words, count):
    """What the shell is offered after some words."""
    environment = os.environ | {"COMP_WORDS": words, "COMP_CWORD": str(count), "_ACNN_COMPLETE": "complete_bash"}
    run = subprocess.run(
        [sys.executable, "-c", "import sys; from acnn.cli import main; sys.exit(main())"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_the_shell_completes_commands_and_options(capsys, monkeypatch):
    assert completed("acnn d", 1) == ["demo", "data", "doctor"]
    assert "--peers" in completed("acnn bench --", 2)
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: "bash")
    with pytest.raises(SystemExit, match="0"):
        main(["--show-completion"])
    assert "_ACNN_COMPLETE=complete_bash" in capsys.readouterr().out
