"""No command writes over one of its inputs, nor over a file of other origin without being asked to."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analytic import bumpy

from acnn.cli import main
from acnn.shapes import Mesh, Texture, load, save


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two shapes, a map and labels in the current folder."""
    monkeypatch.chdir(tmp_path)
    mesh = bumpy(2)
    save(mesh, Path("a.ply"))
    save(mesh, Path("b.ply"))
    n = len(mesh.vertices)
    np.savetxt("map.txt", np.arange(n), fmt="%d")
    np.savetxt("labels.txt", np.arange(n) % 5, fmt="%d")
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


MATCH = ["match", "a.ply", "b.ply", "--model", "none", "--refine", "none", "--no-cache"]


def test_a_match_beside_its_inputs_leaves_them_and_may_be_repeated(folder):
    before = contents(folder)
    assert main([*MATCH, "--out", "."]) == 0
    after = contents(folder)
    assert {name: after[name] for name in before} == before
    colored = {f"{shape}_colored.{form}" for shape in "ab" for form in ("ply", "glb")}
    assert set(after) - set(before) == colored | {"a_to_b.txt", "a_to_b.vts", "confidence.txt", "map.npz", "match.html"}
    Path("confidence.txt").write_text("")
    assert main([*MATCH, "--out", "."]) == 0
    assert contents(folder)["confidence.txt"] == after["confidence.txt"]


@pytest.fixture
def no_work(monkeypatch):
    """Commands that are refused are refused before the work."""
    for function in ("runs.match_files.match", "runs.match_files.match_shape", "training.prepared.cached_patches"):
        monkeypatch.setattr(f"acnn.{function}", None)


@pytest.mark.parametrize("name", ["a_colored.ply", "A_Colored.PLY"])
def test_an_input_is_not_overwritten_even_if_asked_to(folder, no_work, name, capsys):
    Path("a.ply").rename(name)
    arguments = ["match", name, "b.ply", "--model", "none", "--out", str(folder)]
    before = contents(folder)
    for more in ([], ["--force"]):
        assert main([*arguments, *more]) == 2
        assert "a_colored.ply: is one of the inputs" in capsys.readouterr().err
    assert contents(folder) == before


def test_an_input_is_known_by_a_link(folder, no_work, capsys):
    Path("b_colored.glb").symlink_to("b.ply")
    assert main([*MATCH, "--out", ".", "--force"]) == 2
    assert "b_colored.glb: is one of the inputs" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["confidence.txt", "map.npz", "match.html", "b_colored.glb"])
def test_another_file_of_the_name_of_a_result_stops_a_match(folder, no_work, name, capsys):
    Path(name).write_text("mine")
    assert main([*MATCH, "--out", "."]) == 2
    said = capsys.readouterr().err
    assert f"{name}: already exists" in said
    assert "--force" in said
    assert Path(name).read_text() == "mine"


def test_a_match_overwrites_another_file_if_asked_to(folder):
    Path("confidence.txt").write_text("mine")
    assert main([*MATCH, "--out", ".", "--force"]) == 0
    assert len(np.loadtxt("confidence.txt")) == len(bumpy(2).vertices)


TRANSFER = ["transfer", "map.txt", "--from", "b.ply", "--to", "a.ply"]


@pytest.mark.parametrize("out", ["a.ply", "B.ply", "map.txt", "labels.txt", "here/b.ply"])
def test_transfer_does_not_overwrite_its_inputs(folder, out, capsys):
    Path("here").symlink_to(".")
    before = contents(folder)
    assert main([*TRANSFER, "--labels", "labels.txt", "--out", out, "--force"]) == 2
    assert f"{out}: is one of the inputs" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.parametrize(
    "arguments",
    [
        [*TRANSFER, "--shape", "--out", "o.ply"],
        ["patches", "a.ply", "--angles", "1", "--scales", "6", "--no-cache", "--out", "o.ply"],
        ["info", "a.ply", "--repair", "o.ply"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_existing_file_is_overwritten_only_if_asked_to(folder, arguments, capsys):
    Path("o.ply").write_text("mine")
    assert main(arguments) == 2
    assert "o.ply: already exists" in capsys.readouterr().err
    assert Path("o.ply").read_text() == "mine"
    assert main([*arguments, "--force"]) == 0
    assert Path("o.ply").read_bytes() != b"mine"


def test_the_operator_of_a_shape_does_not_replace_it(folder, no_work):
    before = contents(folder)
    assert main(["patches", "a.ply", "--out", "a.ply", "--force"]) == 2
    assert contents(folder) == before


def test_a_repaired_shape_replaces_the_input_only_if_asked_to(folder, capsys):
    loose = Mesh(np.vstack([bumpy(1).vertices, [[9.0, 9, 9]]]), bumpy(1).faces)
    save(loose, Path("a.ply"))
    before = contents(folder)
    assert main(["info", "a.ply", "--repair", "a.ply"]) == 2
    assert "overwrite it with --force" in capsys.readouterr().err
    assert contents(folder) == before
    assert main(["info", "a.ply", "--repair", "a.ply", "--force"]) == 0
    assert len(load("a.ply", repair=False).vertices) == len(bumpy(1).vertices)


def test_a_repaired_shape_leaves_the_material_and_the_image_of_the_input(folder):
    mesh = bumpy(1)
    image = np.random.default_rng(0).integers(0, 256, (4, 4, 3)).astype(np.uint8)
    save(replace(mesh, texture=Texture(mesh.vertices[:, :2], mesh.faces, image)), Path("a.obj"))
    Path("a.mtl").write_text("newmtl skin\nmap_Kd a.png\nnewmtl cloth\n")
    before = contents(folder)
    for more in ([], ["--force"]):
        assert main(["info", "a.obj", "--repair", "a.obj", *more]) == (0 if more else 2)
        after = contents(folder)
        assert all(after[name] == before[name] for name in ("a.mtl", "a.png"))
    np.testing.assert_array_equal(load("a.obj").texture.image, image)


def test_training_stops_before_it_overwrites_another_file(folder, monkeypatch, capsys):
    monkeypatch.setattr("acnn.runs.train.prepare", None)
    Path("run").mkdir()
    Path("run/config.toml").write_text("mine")
    for more in ([], ["--resume"]):
        assert main(["train", "humans", "--out", "run", *more]) == 2
        assert "config.toml: already exists" in capsys.readouterr().err
    assert main(["train", ".", "--out", "run", "--force"]) == 2
    assert "config.toml: is in ., one of the inputs" in capsys.readouterr().err


def test_a_demo_needs_an_empty_folder(folder, monkeypatch, capsys):
    monkeypatch.setattr("acnn.runs.demo.train_run", None)
    assert main(["demo", "--out", "."]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_humans_replace_humans_and_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr("acnn.datasets.humans.generate.write_humans", lambda folder, *numbers, **options: folder)
    arguments = ["data", "humans", "--out", str(tmp_path), "--subjects", "2", "--poses", "1"]
    (tmp_path / "human_01_00.ply").write_text("mine")
    assert main(arguments) == 2
    assert "human_01_00.ply: already exists" in capsys.readouterr().err
    assert main([*arguments, "--force"]) == 0
    about = {"kind": "humans", "shapes": [{"name": "human_00_00"}]}
    (tmp_path / "dataset.json").write_text(json.dumps(about))
    assert main(arguments) == 2  # the list does not name it
    about["shapes"].append({"name": "human_01_00"})
    (tmp_path / "dataset.json").write_text(json.dumps(about))
    assert main(arguments) == 0


@pytest.mark.parametrize("out", ["file/o.html", "/proc/o.html"])
def test_a_place_that_cannot_be_written_is_noticed_before_the_work(folder, out, monkeypatch, capsys):
    Path("file").write_text("")
    for function in ("runs.report.collect_report", "runs.train.prepare", "runs.demo.train_run"):
        monkeypatch.setattr(f"acnn.{function}", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr("acnn.datasets.humans.generate.write_humans", None)
    figure = str(Path(out).with_suffix(".png"))
    commands = [
        [*MATCH, "--out", out],
        [*TRANSFER, "--shape", "--out", str(Path(out).with_suffix(".ply"))],
        ["patches", "a.ply", "--out", out],
        ["info", "a.ply", "--repair", str(Path(out).with_suffix(".ply"))],
        ["report", ".", "--out", out],
        ["figure", ".", "curve", "--out", figure],
        ["train", ".", "--out", out],
        ["demo", "--out", out],
        ["data", "humans", "--out", out],
        ["data", "parts", "a.ply", "--out", out],
    ]
    for command in commands:
        assert main(command) == 2, command
        assert "cannot be written" in capsys.readouterr().err, command


def test_a_name_that_is_too_long_is_noticed_before_the_work(folder, no_work, capsys):
    assert main(["patches", "a.ply", "--out", 300 * "o"]) == 2
    assert "cannot be written" in capsys.readouterr().err
