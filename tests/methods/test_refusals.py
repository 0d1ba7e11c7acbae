"""A method that cannot take a shape says so in one sentence and names one that can."""

import re

import numpy as np
import pytest
from analytic import bumpy, write_bumps

from acnn.cli import main
from acnn.datasets.parts import cut_part
from acnn.runs.train import train_run
from acnn.shapes import save
from acnn.training import preset_config


def refusal(capsys, *words):
    """The one sentence with which a command is refused."""
    assert main([*map(str, words), "--quiet"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert len(re.findall(r"\.(?:\s|$)", line)) == 1, line
    return line


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """A closed mesh, its points as a cloud, a partial shape of it, and a small GCNN."""
    folder = tmp_path_factory.mktemp("refusals")
    mesh = bumpy(3)
    save(mesh, folder / "mesh.ply")
    np.savetxt(folder / "cloud.xyz", mesh.vertices)
    save(cut_part(mesh, "cuts", 0.3, seed=0)[0], folder / "part.ply")
    changes = {"epochs": 1, "rings": 2, "rays": 4, "radius": 20, "architecture": "FC4+GC4+Softmax"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(folder / "cache"))
        config = preset_config("gcnn").with_changes(changes)
        train_run(str(write_bumps(folder / "bumps", 2)), folder / "gcnn", config)
        yield folder


def test_gcnn_on_a_cloud(shapes, tmp_path, capsys):
    words = ["match", shapes / "cloud.xyz", "--model", shapes / "gcnn", "--out", tmp_path / "out"]
    assert "need a mesh, not a point cloud: use the method 'acnn'" in refusal(capsys, *words)
    assert not (tmp_path / "out").exists()


def test_bim_on_a_partial_shape_and_on_a_cloud(shapes, tmp_path, capsys):
    words = ["match", shapes / "part.ply", shapes / "mesh.ply", "--method", "bim", "--out", tmp_path / "out"]
    message = refusal(capsys, *words)
    assert "A has a boundary" in message
    assert "use the method 'pfm'" in message
    words[1] = shapes / "cloud.xyz"
    assert "use the method 'descriptors' or 'acnn'" in refusal(capsys, *words)
    assert not (tmp_path / "out").exists()
