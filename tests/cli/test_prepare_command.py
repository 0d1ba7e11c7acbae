"""`acnn prepare` from the outside: one JSON object, and the exit codes of the contract."""

import json
from pathlib import Path

import numpy as np
import pytest

from acnn.cli import main
from acnn.shapes import Mesh, save
from acnn.training.config import preset_config

SMALL = ["--angles", "2", "--scales", "12", "--radius", "30"]


@pytest.fixture
def shapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    n = 8
    x, y = (a.ravel() for a in np.meshgrid(np.arange(n), np.arange(n)))
    a = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = np.concatenate([np.stack([a, a + 1, a + n + 1], 1), np.stack([a, a + n + 1, a + n], 1)]).astype(np.int32)
    for k in range(3):
        z = np.random.default_rng(k).uniform(0, 0.4, n * n)
        save(Mesh(np.stack([x, y, z], 1).astype(float), faces), tmp_path / f"sheet_{k}.ply")
    return tmp_path


def test_json_and_second_time_from_the_cache(shapes: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["prepare", str(shapes), *SMALL, "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert (facts["shapes"], facts["prepared"], facts["from_cache"]) == (3, 3, 0)
    assert facts["cache"] == str(shapes / "cache")
    assert facts["seconds"] > 0
    assert main(["prepare", str(shapes), *SMALL, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["from_cache"] == 3
    assert main(["prepare", str(shapes), *SMALL, "--samples", "1-2"]) == 0
    assert "2 of 2 shapes prepared" in capfd.readouterr().out


def test_a_preset_gives_the_settings_and_options_win(shapes: Path, capfd: pytest.CaptureFixture) -> None:
    preset = shapes / "mine.toml"
    preset.write_text("[patches]\nangles = 2\nscales = [12.0]\nkeep = 0.8\n[descriptors]\nshot_radii = [30.0]\n")
    assert main(["prepare", str(shapes), "--preset", str(preset), "--samples", "0", "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    config = preset_config(str(preset))
    assert (facts["patches"], facts["descriptors"]) == (config.patches.as_dict(), config.descriptors.as_dict())
    arguments = ["--preset", str(preset), "--samples", "0", "--angles", "3", "--radius", "20"]
    assert main(["prepare", str(shapes), *arguments, "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert (facts["patches"]["angles"], facts["patches"]["keep"]) == (3, 0.8)
    assert (facts["patches"]["scales"], facts["descriptors"]["shot_radii"]) == ([12.0], [20.0])
    assert main(["prepare", str(shapes), *SMALL, "--samples", "0", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["patches"]["keep"] == 0.9


def test_one_unreadable_shape_is_exit_code_1_and_named(shapes: Path, capfd: pytest.CaptureFixture) -> None:
    (shapes / "sheet_1.ply").write_bytes(b"ply\nformat")
    assert main(["prepare", str(shapes), *SMALL, "--json"]) == 1
    facts = json.loads(capfd.readouterr().out)
    assert (facts["shapes"], facts["prepared"]) == (3, 2)
    assert [failure["item"] for failure in facts["failed"]] == ["sheet_1"]
    assert "sheet_1.ply" in facts["failed"][0]["why"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--samples", "7"], "there is no shape '7'"),
        (["--samples", "2-1"], "'2-1' runs backwards"),
        (["--preset", "none-such"], "no preset 'none-such'"),
        (["--scales", "a"], "Scales 'a'"),
        (["--radius", "x"], "Radius 'x'"),
        (["--descriptors", "sift"], "sift"),
        (["--workers", "0"], "0 workers"),
        (["--no-cache"], "--no-cache"),
    ],
)
def test_bad_input_is_exit_code_2(shapes: Path, capfd: pytest.CaptureFixture, arguments: list[str], told: str) -> None:
    assert main(["prepare", str(shapes), *arguments, "--json"]) == 2
    assert told in json.loads(capfd.readouterr().out)["error"]
    assert not (shapes / "cache").exists()
