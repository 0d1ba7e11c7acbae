"""The main job, small: a few built-in people, a few steps, then everything that follows."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from analytic import permuted, rotation
from safetensors.numpy import load_file
from scipy.spatial import cKDTree

from acnn.cli import main
from acnn.correspondence.texture import colors_at, sampled
from acnn.datasets import builtin_humans
from acnn.datasets.open import humans_dataset
from acnn.methods.run import open_run
from acnn.runs.demo import A, B, run_demo, show_demo
from acnn.runs.match import match_shape
from acnn.runs.match_files import match_files
from acnn.shapes import Mesh, PointCloud, load, save
from acnn.surface import surface_of, vertex_normals
from acnn.training import preset_config


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A network trained for some seconds on 8 people."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(folder / "cache"))
        config = preset_config("quick").with_changes({"steps": 120, "scales": "6,36", "angles": 4})
        config = config.with_changes({"architecture": "FC32+RES(IC32)+RES(IC32)+FC128+Softmax"})
        config = config.with_changes({"loss_vertices": 500, "shared_outputs": 100})
        facts = run_demo(
            folder,
            config=config,
            train_shapes=8,
            test_shapes=1,
            workers=1,
            threads=1,
            draw=show_demo,
        )
        yield folder, facts, open_run(folder / "run")


def test_the_demo_beats_a_bar_and_leaves_its_files(demo):
    folder, facts, _ = demo
    assert facts["exact"] > 0.15
    assert facts["refined"]["mean_error_x100"] < facts["mean_error_x100"]
    assert facts["remeshed"]["refined"]["mean_error_x100"] < 25
    for name in (
        "demo.json",
        "curves.csv",
        "curves.png",
        "matches_original.png",
        "matches_remeshed.png",
        "report_remeshed.html",
        "run",
    ):
        assert (folder / name).exists()


def interrupted(*arguments, **options):
    raise KeyboardInterrupt


def test_the_demo_shows_what_the_pretrained_model_gives_before_it_trains(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("acnn.runs.demo.train_run", interrupted)
    first = tmp_path / "demo" / "first"
    assert main(["demo", "--out", str(tmp_path / "demo")]) == 130
    assert f"{first / 'match.html'}: two built-in humans" in capsys.readouterr().err
    assert {"match.html", "texture.png", "a_textured.glb"} < {path.name for path in first.iterdir()}
    truth = humans_dataset(remeshed=1).named(A).read().truth
    right = truth
    b = load(first / f"{B}.obj")
    matched = np.loadtxt(first / "a_to_b.txt", dtype=int)
    apart = np.linalg.norm(b.vertices[matched] - right.interpolate(b.vertices[b.faces]), axis=1)
    assert apart.mean() < 0.015 * np.sqrt(surface_of(b, 1.0).vertex_areas.sum())
    # the texture of A has the colours of the right points of B, but for edges of its squares
    a, textured = load(first / f"{A}.ply"), load(first / "a_textured.glb")
    same = cKDTree(a.vertices).query(textured.vertices)[1]
    corner = np.zeros(len(textured.vertices), int)
    corner[textured.faces.ravel()] = textured.texture.uv_faces.ravel()
    shown = sampled(textured.texture.image, textured.texture.uv[corner])[:, :3]
    off = np.abs(shown - colors_at(b, right)[same, :3]).max(axis=1)
    assert np.mean(off < 30) > 0.7


def test_the_demo_trains_the_same_network_whatever_the_number_of_cores(tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("acnn.runs.demo.evaluate_run", interrupted)
    tiny = {"steps": 3, "angles": 2, "scales": "6", "architecture": "FC64+IC64+FC256+Softmax"}
    config = preset_config("quick").with_changes(tiny)
    before = torch.get_num_threads()
    networks = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            folder = tmp_path / f"{threads} threads"
            with pytest.raises(KeyboardInterrupt):
                run_demo(folder, config=config, train_shapes=2, test_shapes=1, workers=1)
            assert torch.get_num_threads() == threads
            networks.append(load_file(folder / "run" / "model.safetensors"))
    finally:
        torch.set_num_threads(before)
    first, second = networks
    assert len(first) > 5
    assert all(np.array_equal(first[name], second[name]) for name in first)


def agreement(a, b):
    return np.mean(np.asarray(a) == np.asarray(b))


def test_the_map_is_the_same_whatever_pose_size_order_or_side_out(demo):
    _, _, run = demo
    mesh = builtin_humans().mesh(140)
    base = match_shape(mesh, run, refinement="none").query_to_reference
    moved = Mesh(mesh.vertices @ rotation(5).T * 13.0 + [3.0, 1.0, -2.0], mesh.faces)
    assert agreement(match_shape(moved, run, refinement="none").query_to_reference, base) >= 0.995
    other, place = permuted(mesh, 4)
    assert agreement(match_shape(other, run, refinement="none").query_to_reference[place], base) >= 0.995


def test_a_file_turned_inside_out_gives_the_same_map(demo, tmp_path):
    _, _, run = demo
    mesh = builtin_humans().mesh(141)
    save(mesh, tmp_path / "a.ply")
    save(replace(mesh, faces=mesh.faces[:, ::-1]), tmp_path / "b.ply")
    maps = []
    for name in ("a", "b"):
        match_files(tmp_path / f"{name}.ply", None, run, tmp_path / name, refinement="none")
        maps.append(np.loadtxt(tmp_path / name / "query_to_reference.txt", dtype=int))
    assert agreement(*maps) >= 0.995


def test_refinement_does_not_know_the_order_of_vertices(demo):
    _, _, run = demo
    mesh = builtin_humans().mesh(142)
    base = match_shape(mesh, run, refinement="zoomout").query_to_reference
    other, place = permuted(mesh, 6)
    again = match_shape(other, run, refinement="zoomout").query_to_reference[place]
    assert agreement(base, again) > 0.98


def test_a_cloud_is_matched_end_to_end(demo):
    _, _, run = demo
    mesh = builtin_humans().mesh(143)
    cloud = PointCloud(mesh.vertices, vertex_normals(mesh.vertices, mesh.faces))
    as_mesh, as_cloud = (match_shape(shape, run) for shape in (mesh, cloud))
    apart = np.linalg.norm(
        run.reference.vertices[as_mesh.query_to_reference] - run.reference.vertices[as_cloud.query_to_reference], axis=1
    )
    assert np.median(apart) < 0.2


def test_match_of_two_files_is_numbered_as_in_the_files(demo, tmp_path, capsys):
    folder, _, _ = demo
    humans = builtin_humans()
    first, second = humans.mesh(144), humans.mesh(145)
    with_stray = Mesh(np.vstack([[[9.0, 9, 9]], first.vertices]), first.faces + 1)  # vertex 0 belongs to no face
    save(with_stray, tmp_path / "a.off")
    save(second, tmp_path / "b.obj")
    arguments = ["match", str(tmp_path / "a.off"), str(tmp_path / "b.obj"), "--model", str(folder / "run")]
    assert main([*arguments, "--out", str(tmp_path / "result"), "--json", "--barycentric"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["vertices"] == 2500
    lines = np.loadtxt(tmp_path / "result" / "a_to_b.txt", dtype=int)
    assert len(lines) == 2501
    assert lines[0] == -1
    assert lines[1:].min() >= 0
    assert lines.max() < 2500
    assert {p.name for p in (tmp_path / "result").iterdir()} == {
        *("a_to_b.txt", "a_to_b.vts", "confidence.txt", "map.npz", "match.html"),
        *("a_colored.ply", "a_colored.glb", "b_colored.ply", "b_colored.glb"),
    }
    assert (np.loadtxt(tmp_path / "result" / "a_to_b.vts", dtype=int) == lines + 1).all()
    arrays = np.load(tmp_path / "result" / "map.npz")
    assert arrays["a_to_b_weights"].shape == (2500, 3)
    assert (second.faces[arrays["a_to_b_faces"]] == arrays["a_to_b"][:, None]).any(axis=1).mean() > 0.5


def test_evaluate_prints_the_contract(demo, capsys):
    folder, _, _ = demo
    names = "human_16_01,human_17_02"
    assert main(["evaluate", str(folder / "run"), "humans", "--test", names, "--refine", "zoomout", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    contract = "exact auc mean_error_x100 normalisation thresholds curve coverage shapes symmetric refined"
    assert set(contract.split()) <= set(report)
    assert [shape["name"] for shape in report["shapes"]] == names.split(",")
    assert report["symmetric"]["mean_error_x100"] <= report["mean_error_x100"]


def test_clear_errors(tmp_path, capsys):
    assert main(["evaluate", str(tmp_path)]) == 2
    assert main(["match", str(tmp_path / "no.ply"), "--out", str(tmp_path / "o")]) == 2
    assert main(["train", "humans", "--out", str(tmp_path / "r"), "--set", "nonsense=1"]) == 2
    assert main(["train", "humans", "--out", str(tmp_path / "r"), "--method", "bim"]) == 2
    assert main(["demo", "--out", str(tmp_path / "d"), "--set", "minutes"]) == 2
    said = capsys.readouterr().err
    assert said.count("error:") == 5
    assert "--set minutes: write KEY=VALUE" in said
