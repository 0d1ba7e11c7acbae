"""The FAUST experiment from one end to the other, on shapes of as many vertices in the same layout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from analytic import random_sphere

from acnn.shapes import Mesh, save

SCRIPT = Path(__file__).parents[2] / "experiments" / "faust" / "run.py"
TINY = ["angles=2", "scales=6", "shot_radii=12", "architecture=FC16+IC8+Softmax", "core_minutes=0", "epochs=2"]
TINY += ["shared_outputs=0", "validate_every=2"]


def run(folder: Path, *more: str) -> subprocess.CompletedProcess:
    """The script on two shapes to learn from and one to match."""
    command = [sys.executable, str(SCRIPT), "--data", str(folder), "--train", "000-001", "--test", "002"]
    command += ["--out", str(folder / "out"), "--workers", "1", "--json"]
    command += [word for change in TINY for word in ("--set", change)] + [*more]
    cached = os.environ | {"ACNN_CACHE": str(folder / "cache")}
    return subprocess.run(command, env=cached, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Three bumpy balls of one triangulation, as FAUST's registrations lie."""
    folder = tmp_path_factory.mktemp("faust")
    (folder / "faust" / "training" / "registrations").mkdir(parents=True)
    ball = random_sphere(6890, 0)
    x, y, z = ball.vertices.T
    for i in range(3):
        radius = 1 + 0.2 * np.sin(2 * x + 1) * np.cos(3 * y) + (0.1 + 0.05 * i) * z * y
        shape = Mesh(ball.vertices * radius[:, None] * [1, 0.7, 1.4], ball.faces)
        save(shape, folder / "faust" / "training" / "registrations" / f"tr_reg_{i:03}.ply")
    return folder


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
    done = run(folder, "--remeshed", "060")
    assert done.returncode == 2
    assert "best-remeshed" in done.stderr
