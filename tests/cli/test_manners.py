"""Manners of the command line: help, suggestions, default folders, completion, messages."""

import json
import re
from typing import get_args

import numpy as np
import pytest
import typer
from analytic import bumpy

import acnn
from acnn.cli import _options, main
from acnn.cli._program import ORDER, app
from acnn.correspondence.match_checks import check_matchable
from acnn.correspondence.refine import RefineMethod
from acnn.datasets.families import KINDS as FAMILIES
from acnn.methods.registry import METHODS, PAIR_METHODS
from acnn.methods.run import open_run, shipped_models
from acnn.patches.settings import KERNELS
from acnn.runs.match_files import free_result_folder
from acnn.shapes import Mesh, PointCloud, save
from acnn.training.config import presets
from acnn.viewer.figures import KINDS as FIGURES


@pytest.mark.parametrize("words", [[], ["match"], ["data"], ["data", "humans"]], ids=" ".join)
def test_help_has_three_forms(words, capsys):
    shown = []
    for form in ([*words, "-h"], [*words, "--help"], ["help", *words]):
        assert main(form) == 0
        shown.append(capsys.readouterr().out.strip())
    assert shown[0] == shown[1] == shown[2]
    assert f"Usage: acnn {' '.join(words)}".strip() in shown[0]
    assert main(["help", *words, "--json"]) == 0
    assert "Usage" in json.loads(capsys.readouterr().out)["help"]


def test_help_lists_all_commands(capsys):
    main(["help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in ORDER)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["mtach", "a", "b"], "Did you mean 'match'"),
        (["help", "trian"], "Did you mean 'train'"),
        (["help", "data", "human"], "Did you mean 'humans'"),
        (["xyzzy"], "Try 'acnn --help'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_misspelt_commands_get_a_suggestion(words, hint, capsys):
    assert main(words) == 2
    assert hint in capsys.readouterr().err


def test_a_file_in_place_of_a_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample").mkdir()
    for name in ("a.ply", "sample/A.ply"):  # the second resembles the name of a command
        save(bumpy(1), tmp_path / name)
        assert main([name]) == 2
        assert f"acnn match {name}" in capsys.readouterr().err


def test_a_folder_above_a_run_gets_a_suggestion(tmp_path):
    (tmp_path / "demo" / "run").mkdir(parents=True)
    (tmp_path / "demo" / "run" / "model.safetensors").touch()
    with pytest.raises(acnn.InputError, match=rf"Did you mean {tmp_path / 'demo' / 'run'}\?"):
        open_run(tmp_path / "demo")
    with pytest.raises(acnn.InputError, match="humans"):
        open_run(tmp_path / "other")


def test_default_folders_are_new(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b = tmp_path / "x" / "A.ply", tmp_path / "B.obj"
    assert str(free_result_folder(a, b)) == "A_to_B"
    assert str(free_result_folder(a, None)) == "A_to_reference"
    (tmp_path / "A_to_B").mkdir()
    (tmp_path / "A_to_B-2").touch()
    assert str(free_result_folder(a, b)) == "A_to_B-3"


def test_completed_values_are_those_there_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert _options.presets("") == sorted(presets())
    assert _options.presets("best-r") == ["best-remeshed"]
    assert set(_options.methods("")) == {"auto", *METHODS, *PAIR_METHODS}
    assert set(_options.trained_methods("")) == set(METHODS)
    assert _options.models("") == sorted(shipped_models())
    assert set(_options.refinements("")) == set(get_args(RefineMethod))
    assert set(_options.kernels("")) == set(KERNELS)
    (tmp_path / "demo" / "run").mkdir(parents=True)
    assert _options.runs("d") == ["demo"]
    assert _options.runs("demo/") == ["demo/run"]
    assert _options.models("demo/r") == ["demo/run"]


def test_every_choice_of_values_is_completed():
    """Of options that list their values, and of methods, models and kinds."""
    program = typer.main.get_command(app)
    context = program.make_context("acnn", [], resilient_parsing=True)

    def parameters(name, command):
        for child in command.list_commands(context) if hasattr(command, "list_commands") else ():
            yield from parameters(f"{name} {child}".strip(), command.get_command(context, child))
        yield from (((name, parameter.name), parameter) for parameter in command.params)

    completed = {
        name: {item.value for item in parameter.shell_complete(context, "")}
        for name, parameter in parameters("", program)
        if name[1] in ("method", "model", "kind") or re.fullmatch(r"[a-z]+(\|[a-z]+)+", parameter.metavar or "")
    }
    assert len(completed) > 20
    assert [name for name, values in completed.items() if not values] == []
    for name, parameter in parameters("", program):
        if re.fullmatch(r"[a-z]+(\|[a-z]+)+", parameter.metavar or ""):
            assert completed[name] == set(parameter.metavar.split("|")), name
    assert completed["figure", "kind"] == set(FIGURES)
    assert completed["data family", "kind"] == set(FAMILIES)
    assert completed["adapt", "model"] >= set(shipped_models())


def test_shells_complete_values(monkeypatch, capsys):
    monkeypatch.setenv("COMP_WORDS", "acnn train humans --preset best-r")
    monkeypatch.setenv("COMP_CWORD", "4")
    monkeypatch.setenv("_ACNN_COMPLETE", "complete_bash")
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == ["best-remeshed"]


def test_a_unit_that_cannot_be_is_refused():
    mesh = bumpy(2)
    for unit in (1e9, 1e-9, -1.0, float("nan")):
        with pytest.raises(acnn.InputError, match="unit of length"):
            check_matchable(mesh, "A", unit=unit)
    assert check_matchable(mesh, "A", unit=0.01) == []
    with pytest.raises(acnn.InputError, match="leave out --unit"):
        check_matchable(mesh, "A", unit=1e9)


def test_an_image_is_no_mesh(tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    assert main(["info", str(tmp_path / "a.png")]) == 2
    assert "a PNG image, not a mesh or a point cloud. Give a file in one of the formats PLY" in capsys.readouterr().err


def test_a_sparse_cloud_gets_a_notice():
    points = acnn.builtin_human().vertices
    (notice,) = check_matchable(PointCloud(points[::40]), "A")
    assert "A has only 63 points" in notice
    assert check_matchable(PointCloud(points), "A") == []


def test_a_dry_run_lists_shapes_and_writes_nothing(tmp_path, capsys):
    mesh = bumpy(2)
    for number in range(3):
        save(Mesh(mesh.vertices * [1, 1, 1 + number / 10], mesh.faces), tmp_path / f"s_{number}.ply")
    save(bumpy(1), tmp_path / "s_3.ply")
    (tmp_path / "s_4.ply").write_text("ply\nbroken")
    words = ["train", str(tmp_path), "--out", str(tmp_path / "run"), "--dry-run", "--val", "1"]
    assert main([*words, "--train", "0-1,3-4", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["train"] == ["s_0"]
    assert plan["validation"] == ["s_1"]
    why = {item["name"]: item["why"] for item in plan["unused"]}
    assert list(why) == ["s_2", "s_3", "s_4"]
    assert why["s_2"] == "not in --train 0-1,3-4"
    assert "not those of s_0.ply" in why["s_3"]
    assert "header" in why["s_4"]
    assert not (tmp_path / "run").exists()
    assert main(words) == 0
    assert "not used (2)" in capsys.readouterr().out


def test_interrupted_training_mentions_resuming(tmp_path, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "checkpoint.safetensors").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("acnn.runs.train.train_run", interrupted)
    assert main(["train", "humans", "--out", str(tmp_path / "run")]) == 130
    assert "add --resume" in capsys.readouterr().err


def test_ply_is_float32_where_that_is_enough(tmp_path):
    def written(vertices):
        shape = Mesh(vertices, mesh.faces)
        save(shape, tmp_path / "a.ply")
        back = acnn.load(tmp_path / "a.ply")
        diagonal = np.linalg.norm(np.ptp(vertices, axis=0))
        assert len(back.vertices) == len(vertices)
        assert np.abs(back.vertices - vertices).max() <= 1e-6 * diagonal
        return b"property float x" in (tmp_path / "a.ply").read_bytes()

    mesh = bumpy(2)
    assert written(mesh.vertices)
    assert written(mesh.vertices * 1e9)
    assert not written(mesh.vertices + 1e3)  # far from the origin
    assert not written(mesh.vertices * 1e39)  # beyond the range of float32
    close = mesh.vertices.copy()
    a, b = mesh.faces[0, :2]
    close[b] = close[a] * (1 + 1e-9)
    assert not written(close)  # two vertices would become one
