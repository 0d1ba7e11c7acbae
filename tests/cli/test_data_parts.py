"""`acnn data parts` from the outside."""

import json
from pathlib import Path

import numpy as np
import pytest

from acnn.cli import main
from acnn.datasets import builtin_human, open_dataset
from acnn.shapes import save


@pytest.fixture
def shape(tmp_path: Path) -> Path:
    save(builtin_human(2, 1), tmp_path / "me.ply")
    return tmp_path / "me.ply"


@pytest.mark.parametrize("kind", ["cuts", "holes"])
def test_parts_of_a_shape_open_again(shape: Path, tmp_path: Path, capfd: pytest.CaptureFixture, kind: str) -> None:
    out = tmp_path / "out"
    options = ["--kind", kind, "--missing", "0.4", "--count", "3", "--seed", "2", "--json"]
    assert main(["data", "parts", str(shape), "--out", str(out), *options]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert (facts["parts"], facts["shapes"], facts["kind"]) == (3, 1, kind)
    assert all(abs(share - 0.4) < 0.02 for share in facts["missing_range"])
    data = open_dataset(facts["data"])
    assert len(data) == 3
    labels = [sample.read().labels for sample in data]
    assert not np.array_equal(labels[0], labels[1])


def test_a_range_and_plain_text(shape: Path, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    assert (
        main(["data", "parts", str(shape), "--out", str(tmp_path / "o"), "--missing", "0.2-0.6", "--count", "4"]) == 0
    )
    said = capfd.readouterr().out
    assert "4 cuts of 1 shape written to" in said
    assert f"open as  {tmp_path / 'o' / 'cuts' / 'me'}" in said


def test_a_shape_that_cannot_be_cut_leaves_the_others(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    for name in ("a", "b", "c"):
        save(builtin_human(1, 1), folder / f"{name}.ply")
    (folder / "b.ply").write_bytes(b"ply\nbroken")
    assert main(["data", "parts", str(folder), "--out", str(tmp_path / "o"), "--json"]) == 1
    facts = json.loads(capfd.readouterr().out)
    assert facts["parts"] == 2
    assert [failure["item"] for failure in facts["failed"]] == ["b_cuts"]
    assert [s.number for s in open_dataset(facts["data"])] == [1, 3]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [(["--missing", "1.2"], "1.2"), (["--missing", "much"], "--missing much"), (["--missing", "0.5-0.2"], "first"),
     (["--kind", "slices"], "slices"), (["--count", "0"], "0 parts"), (["--seed", "-1"], "Seed -1")],
)  # fmt: skip
def test_bad_numbers(shape: Path, tmp_path: Path, capfd: pytest.CaptureFixture, wrong: list[str], told: str) -> None:
    assert main(["data", "parts", str(shape), "--out", str(tmp_path / "o"), *wrong, "--json"]) == 2
    assert told in json.loads(capfd.readouterr().out)["error"]
    assert not (tmp_path / "o").exists()


def test_source_and_target_are_checked(shape: Path, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["data", "parts", str(tmp_path / "none"), "--out", str(tmp_path / "o")]) == 2
    assert "there is no such folder" in capfd.readouterr().err
    assert main(["data", "parts", str(shape), "--out", str(shape)]) == 2
    assert "is a file; give a folder" in capfd.readouterr().err
