"""Parts of the built-in people, small: learn from some, match others, and parts of every odd kind."""

import json

import numpy as np
import pytest

from acnn.cli import main
from acnn.datasets import builtin_humans
from acnn.datasets.parts import cut_part
from acnn.methods.run import open_run
from acnn.runs.demo import run_demo, show_demo
from acnn.runs.match import match_shape
from acnn.shapes import Mesh, save
from acnn.surface import surface_of
from acnn.surface.simplify import remesh
from acnn.training import preset_config


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A network trained for some seconds on parts of 10 people."""
    folder = tmp_path_factory.mktemp("partial")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(folder / "cache"))
        config = preset_config("quick-partial").with_changes({"steps": 160, "scales": "6,36", "angles": 4})
        config = config.with_changes({"architecture": "FC32+RES(IC32)+RES(IC32)+FC128+Softmax", "shot_radii": "8"})
        config = config.with_changes({"loss_vertices": 500})
        facts = run_demo(
            folder, partial=True, config=config, train_shapes=10, test_shapes=1, workers=1, threads=1, draw=show_demo
        )
        yield folder, facts, open_run(folder / "run")


def test_parts_of_unseen_people_are_matched_better_than_a_bar(demo):
    folder, facts, _ = demo
    for part in (facts, facts["holes"]):
        assert part["mean_error_x100"] < 35
        assert part["refined"]["mean_error_x100"] < part["mean_error_x100"]
    for name in ("demo.json", "curves.png", "matches_cuts.png", "matches_holes.png", "run"):
        assert (folder / name).exists()


@pytest.fixture(scope="module")
def person(demo):
    """A person in the unit of the run."""
    mesh = builtin_humans().mesh(150)
    return Mesh(mesh.vertices * (demo[2].unit / surface_of(mesh).unit), mesh.faces)


def piece(mesh, wanted):
    """The faces whose corners are all wanted."""
    faces = mesh.faces[wanted[mesh.faces].all(axis=1)]
    kept, corners = np.unique(faces, return_inverse=True)
    return Mesh(mesh.vertices[kept], corners.reshape(-1, 3).astype(np.int32))


def test_a_part_that_is_the_whole_is_matched_as_a_whole(demo, person):
    found = match_shape(person, demo[2], cache=False)
    assert found.report.chosen_because.startswith("the query has no boundary")


def test_several_pieces_a_cut_limb_and_a_sliver_give_a_result_that_says_what_was_done(demo, person):
    x, y, _ = person.vertices.T
    high, low = np.quantile(y, 0.7), np.quantile(y, 0.3)
    top = np.linalg.norm(person.vertices - person.vertices[y.argmax()], axis=1)
    parts = {
        "two pieces": (y < low) | (y > high),
        "limb cut off": ~((x > np.quantile(x, 0.93)) & (x < np.quantile(x, 0.95))),
        "sliver": top <= np.sort(top)[9],
    }
    used = {}
    for name, wanted in parts.items():
        part = piece(person, wanted)
        found = match_shape(part, demo[2], cache=False)
        assert found.query_to_reference.shape == (len(part.vertices),)
        assert found.report.why
        used[name] = found.report.used
    assert used["sliver"] == "none"


def test_two_files_are_matched_without_a_network(tmp_path, capsys):
    whole = remesh(builtin_humans().mesh(0), vertices=1200, seed=1).mesh
    part, kept = cut_part(whole, "cuts", 0.4, seed=5)
    save(part, tmp_path / "part.ply")
    save(whole, tmp_path / "whole.obj")
    arguments = ["match", str(tmp_path / "part.ply"), str(tmp_path / "whole.obj"), "--out", str(tmp_path / "result")]
    assert main([*arguments, "--model", "none", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["route"] == "descriptors"
    assert facts["refinement"]["method"] == "pfm"
    assert facts["unit"]["why"].startswith("that of B")
    matched = np.loadtxt(tmp_path / "result" / "a_to_b.txt", dtype=int)
    apart = np.linalg.norm(whole.vertices[matched] - whole.vertices[kept], axis=1)
    assert apart.mean() < 0.02 * np.ptp(whole.vertices, axis=0).max()
