"""The FAUST experiment from one end to the other, on shapes of fewer vertices in the same layout."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from analytic import random_sphere
from scripts import Finished, run_script

from acnn.shapes import Mesh, save

SCRIPT = Path(__file__).parents[2] / "experiments" / "faust" / "run.py"
VERTICES = 900
TINY = ["angles=2", "scales=6", "shot_radii=12", "architecture=FC16+IC8+Softmax", "core_minutes=0", "epochs=2"]
TINY += ["shared_outputs=0", "validate_every=2"]


def run(folder: Path, *more: str) -> Finished:
    """The script on two shapes to learn from and one to match."""
    words = ["--data", folder, "--train", "000-001", "--test", "002", "--out", folder / "out", "--workers", "1"]
    changes = [word for change in TINY for word in ("--set", change)]
    return run_script(SCRIPT, *words, *changes, *more, "--json", ACNN_CACHE=folder / "cache")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    """Three bumpy balls of one triangulation, as FAUST's registrations lie."""
    folder = tmp_path_factory.mktemp("faust")
    (folder / "faust" / "training" / "registrations").mkdir(parents=True)
    ball = random_sphere(VERTICES, 0)
    x, y, z = ball.vertices.T
    for i in range(3):
        radius = 1 + 0.2 * np.sin(2 * x + 1) * np.cos(3 * y) + (0.1 + 0.05 * i) * z * y
        shape = Mesh(ball.vertices * radius[:, None] * [1, 0.7, 1.4], ball.faces)
        save(shape, folder / "faust" / "training" / "registrations" / f"tr_reg_{i:03}.ply")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acnn.datasets.faust.VERTICES", VERTICES)
        yield folder


def test_it_prepares_trains_evaluates_and_draws(folder):
    done = run(folder)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [shape["name"] for shape in report["shapes"]] == ["tr_reg_002"]
    assert (report["preset"], report["seed"], report["step"]) == ("best", 0, 4)
    for name in ("results.json", "curves.csv", "curves.png", "training.csv", "training.png", "model.safetensors"):
        assert (folder / "out" / name).is_file()
    other = run(folder, "--seed", "1")  # one training is not taken for another
    assert other.returncode == 2
    assert "seed was 0 and is 1" in other.stderr


def test_remeshed_shapes_are_refused_where_the_network_goes_by_the_triangulation(folder):
    done = run(folder, "--preset", "faust-connectivity", "--remeshed", "060")
    assert done.returncode == 2
    assert "best-remeshed" in done.stderr
