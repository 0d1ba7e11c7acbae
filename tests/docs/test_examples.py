"""The example scripts run as they are, on the files of `acnn sample`, and write their images."""

import runpy
from pathlib import Path

import pytest
from PIL import Image

from acnn.runs.sample import write_sample

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    write_sample(folder / "sample")
    return folder


def test_the_scripts_are_numbered_and_listed() -> None:
    assert [int(path.name[:2]) for path in SCRIPTS] == list(range(1, len(SCRIPTS) + 1))
    listed = (SCRIPTS[0].parent / "README.md").read_text()
    assert all(f"[{path.name}]({path.name})" in listed for path in SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    runpy.run_path(str(script), run_name="__main__")
    with Image.open(folder / f"{script.stem}.png") as image:
        assert min(image.size) >= 200
        low, high = image.convert("L").getextrema()
    assert low < 150 < high  # something is drawn on the light ground
