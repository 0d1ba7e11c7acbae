"""`acnn sample`: its files are what they say, the same each time, and nothing else is overwritten."""

import json

import numpy as np
import pytest

from acnn.cli import main
from acnn.datasets.builtin import BODY_PARTS
from acnn.datasets.humans.sample_shapes import body_landmarks, make_sample_shapes, sample_shapes
from acnn.datasets.open import open_dataset
from acnn.shapes import Mesh, PointCloud, load


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample") / "new"
    assert main(["sample", "--out", str(folder)]) == 0
    return folder


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_files_are_there_and_listed(folder, capsys):
    before = contents(folder)
    assert main(["sample", "--out", str(folder), "--json"]) == 0  # an earlier sample is replaced
    facts = json.loads(capsys.readouterr().out)
    assert contents(folder) == before
    assert set(facts["files"]) | {"sample.json"} == set(before)
    assert main(["sample", "--out", str(folder)]) == 0
    assert f" {len(list(folder.glob('shapes/*.ply')))} humans " in capsys.readouterr().out


def test_other_files_are_not_overwritten(tmp_path, capsys):
    (tmp_path / "B.png").write_text("mine")
    assert main(["sample", "--out", str(tmp_path)]) == 2
    assert "B.png: already exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["B.png"]
    assert (tmp_path / "B.png").read_text() == "mine"


def test_shapes_are_valid(folder):
    a, b, part, cloud = (load(folder / name) for name in ("A.ply", "B.obj", "A_part.ply", "cloud.xyz"))
    for shape in (a, b, part, cloud):
        assert not [finding for finding in shape.source.findings if finding.repaired]
    assert isinstance(cloud, PointCloud)
    assert isinstance(b, Mesh)
    assert b.texture is not None
    assert b.texture.image is not None
    assert len(a.vertices) != len(b.vertices)
    rows = {tuple(row) for row in a.vertices.tolist()}
    assert all(tuple(row) in rows for row in part.vertices.tolist())
    assert 0.3 < len(part.vertices) / len(a.vertices) < 0.7


def test_labels_and_landmarks_of_a_and_b_agree(folder):
    a, b = load(folder / "A.ply"), load(folder / "B.obj")
    a_to_b = np.loadtxt(folder / "A_to_B.txt", dtype=int)
    labels = {name: np.loadtxt(folder / f"{name}_labels.txt", dtype=int) for name in "AB"}
    assert len(a_to_b) == len(labels["A"]) == len(a.vertices)
    assert len(labels["B"]) == len(b.vertices)
    assert np.array_equal(labels["A"], labels["B"][a_to_b])
    assert set(labels["B"]) == set(range(len(BODY_PARTS)))
    points = {name: dict(line.split() for line in (folder / f"{name}_landmarks.txt").open()) for name in "AB"}
    assert list(points["A"]) == list(points["B"]) == list(body_landmarks())
    for name, vertex in points["A"].items():
        there = b.vertices[[a_to_b[int(vertex)], int(points["B"][name])]]
        assert np.linalg.norm(there[0] - there[1]) < 0.03  # metres


def test_the_folder_is_a_dataset(folder):
    dataset = open_dataset(folder / "shapes")
    assert len(dataset) == 8
    example = dataset.samples[3].read()
    assert np.array_equal(example.labels, np.arange(len(dataset.reference.vertices)))


def test_stored_shapes_are_those_that_are_computed():
    stored, made = sample_shapes(), make_sample_shapes()
    assert np.array_equal(stored.a.faces, made.a.faces)
    assert np.allclose(stored.a.vertices, made.a.vertices, atol=1e-6)
    assert np.array_equal(stored.a_truth.faces, made.a_truth.faces)
    assert np.array_equal(stored.a_truth.weights, made.a_truth.weights)
    assert np.allclose(stored.points, made.points, atol=1e-6)
    assert np.array_equal(stored.kept, made.kept)
    assert np.array_equal(stored.faces, made.faces)


def test_quiet_prints_no_listing(folder, capsys):
    assert main(["sample", "--out", str(folder), "--quiet"]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{folder}: 22 files\n"
    assert printed.err == ""
