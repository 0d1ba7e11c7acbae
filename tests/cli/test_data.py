"""`acnn data humans` from the outside; the making itself needs the anny body model and is stood in for here."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from acnn.cli import main

needs_no_anny = pytest.mark.skipif(importlib.util.find_spec("anny") is not None, reason="anny is installed")


@needs_no_anny
def test_without_anny_the_install_line_is_told(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["data", "humans", "--out", str(tmp_path / "h"), "--json"]) == 2
    error = json.loads(capfd.readouterr().out)["error"]
    assert "pip install 'acnn[humans]'" in error
    assert "pip install torch --index-url" in error
    assert not (tmp_path / "h").exists()


@pytest.mark.parametrize("wrong", [["--subjects", "0"], ["--poses", "-1"], ["--vertices", "3"], ["--seed", "-1"]])
def test_numbers_out_of_range(tmp_path: Path, capfd: pytest.CaptureFixture, wrong: list[str]) -> None:
    assert main(["data", "humans", "--out", str(tmp_path / "h"), *wrong, "--json"]) == 2
    assert wrong[1] in json.loads(capfd.readouterr().out)["error"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--kinds", "cape"], "no kind 'cape'"),
        (["--kinds", "hat", "--combine", "2"], "--combine 2"),
        (["--kinds", "hat", "--remesh"], "--remesh"),
        (["--combine", "0.5"], "give --kinds"),
    ],
)
def test_kinds_that_make_no_sense(tmp_path: Path, capfd: pytest.CaptureFixture, options: list[str], why: str) -> None:
    assert main(["data", "humans", "--out", str(tmp_path / "h"), *options, "--json"]) == 2
    assert why in json.loads(capfd.readouterr().out)["error"]
    assert not (tmp_path / "h").exists()


def test_out_is_needed_and_must_be_a_folder(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["data", "humans"]) == 2
    (tmp_path / "f").write_text("")
    assert main(["data", "humans", "--out", str(tmp_path / "f")]) == 2
    assert "is a file" in capfd.readouterr().err


def test_options_reach_the_maker(tmp_path: Path, capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def write(folder: Path, *numbers: int, remeshed: bool, progress: Any) -> Path:
        asked.update(numbers=numbers, remeshed=remeshed)
        progress("human_00_00 stand")
        return folder

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr("acnn.datasets.humans.generate.write_humans", write)
    options = ["--subjects", "3", "--poses", "2", "--vertices", "500", "--remesh", "--seed", "7", "--json"]
    assert main(["data", "humans", "--out", str(tmp_path / "h"), *options]) == 0
    out, err = capfd.readouterr()
    assert asked == {"numbers": (3, 2, 500, 7), "remeshed": True}
    assert json.loads(out)["shapes"] == 6
    assert "human_00_00 stand" in err
