"""The example scripts run as they are, on the files of `acnn sample`, and write their images; so does the notebook."""

import json
import runpy
from pathlib import Path

import pytest
from PIL import Image

from acnn.runs.sample import write_sample

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
NOTEBOOK = Path(__file__).parents[2] / "examples" / "tour.ipynb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    write_sample(folder / "sample")
    return folder


def test_the_scripts_are_numbered_and_listed() -> None:
    assert [int(path.name[:2]) for path in SCRIPTS] == list(range(1, len(SCRIPTS) + 1))
    listed = (SCRIPTS[0].parent / "README.md").read_text()
    assert all(f"[{path.name}]({path.name})" in listed for path in (*SCRIPTS, NOTEBOOK))


def test_every_script_has_a_small_image_in_the_gallery() -> None:
    images = sorted((NOTEBOOK.parents[1] / "docs" / "images" / "gallery").iterdir())
    assert [image.name for image in images] == [f"{path.stem}.png" for path in SCRIPTS]
    assert max(image.stat().st_size for image in images) < 80_000


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    runpy.run_path(str(script), run_name="__main__")
    with Image.open(folder / f"{script.stem}.png") as image:
        assert min(image.size) >= 200
        low, high = image.convert("L").getextrema()
    assert low < 150 < high  # something is drawn on the light ground


def test_notebook(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code cells run one after the other, and it is stored without outputs."""
    monkeypatch.chdir(folder)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        assert not cell["outputs"]
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert names["match"].verdict == "good"
    assert names["errors"].mean() < 0.02  # metres
    assert names["agreement"] > 0.95
