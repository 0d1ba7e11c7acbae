"""Two shapes matched to each other: through the network of the package, or by descriptors where it does not fit."""

import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from analytic import bumpy, cylinder, grid, permuted, sphere

import acnn.runs.match
import acnn.training.prepared
from acnn.cli import main
from acnn.datasets import builtin_humans, open_dataset
from acnn.datasets.parts import cut_part
from acnn.errors import InputError
from acnn.methods.run import MODELS, open_run, shipped_models
from acnn.patches import PatchSettings
from acnn.runs.cost import match_cost, patches_cost, reading_cost
from acnn.runs.match import match, match_shape
from acnn.runs.match_results import PairMatch
from acnn.shapes import Mesh, PointCloud, load, save
from acnn.shapes.topology import mesh_edges
from acnn.surface import surface_of, vertex_normals
from acnn.surface.simplify import decimate, remesh
from acnn.training.prepare import prepare


def mean_error_x100(matched, truth, mesh):
    """Straight distance from the truth over sqrt(area): a lower bound of the geodesic error, near it where small."""
    area = 0.5 * np.linalg.norm(
        np.cross(*(mesh.vertices[mesh.faces[:, k]] - mesh.vertices[mesh.faces[:, 0]] for k in (1, 2))), axis=1
    )
    return 100 * np.linalg.norm(mesh.vertices[matched] - truth, axis=1).mean() / np.sqrt(area.sum())


def test_the_package_holds_a_network_of_people_that_is_small():
    assert shipped_models() == ["humans", "humans-1"]
    assert sum(file.stat().st_size for name in shipped_models() for file in (MODELS / name).iterdir()) < 15.5e6
    for name, data in (("humans", "bodies"), ("humans-1", "people")):
        run = open_run(name)
        assert run.shipped
        assert run.record.data == data


def test_a_name_that_is_neither_a_folder_nor_in_the_package_is_told():
    with pytest.raises(InputError, match="humans"):
        open_run("horses")


def test_two_people_never_seen_in_triangulations_of_their_own_are_matched_through_the_network():
    humans = builtin_humans()
    first, second = humans.mesh(130), humans.mesh(150)
    a, b = remesh(first, vertices=1800, seed=1), remesh(second, vertices=2300, density=0.5, seed=2)
    found = match(a.mesh, b.mesh)
    assert found.report["route"] == "network"
    # A's vertices lie in triangles that the second person has, too: their positions there are the ground truth.
    truth = np.einsum("nk,nkd->nd", a.truth.weights, second.vertices[first.faces[a.truth.faces]])
    assert mean_error_x100(found.a_to_b, truth, b.mesh) < 5
    assert found.points.faces.shape == (len(a.mesh.vertices),)
    assert found.verdict == found.report["verdict"] == "good"
    assert found.judgement.reasons == found.judgement.advice == ()
    # a confidence is the probability of an error of at most 0.05
    root = found.b.unit * found.b.vertex_areas.sum() ** 0.5
    off = np.linalg.norm(b.mesh.vertices[found.a_to_b] - truth, axis=1) / root
    assert abs(found.confidence.mean() - (off <= 0.05).mean()) < 0.07


def rod(radius, around=8, along=30):
    """An open rod, like nothing that was ever seen."""
    mesh = cylinder(around, along)
    return Mesh(mesh.vertices * [radius, radius, 1 / np.ptp(mesh.vertices[:, 2])], mesh.faces)


def far_outlier():
    """A cloud of an ellipsoid, and a point far away."""
    points = np.random.default_rng(0).normal(size=(500, 3))
    points *= np.array([1.0, 0.7, 0.5]) / np.linalg.norm(points, axis=1, keepdims=True)
    return PointCloud(np.vstack([points, [[1e4, 0, 0]]]))


def needles():
    """A mesh of needles."""
    return Mesh(sphere(3).vertices * [1.0, 0.01, 0.01], sphere(3).faces)


def test_nonsense_is_called_failed(tmp_path, capsys):
    save(rod(0.1), tmp_path / "one.ply")
    save(remesh(builtin_humans().mesh(130), vertices=900, seed=1).mesh, tmp_path / "two.ply")
    asked = ["match", str(tmp_path / "one.ply"), str(tmp_path / "two.ply"), "--out", str(tmp_path / "r"), "--json"]
    assert main(asked) == 0
    said = capsys.readouterr()
    facts = json.loads(said.out)
    assert facts["verdict"] == "failed"
    assert any("The map collapses" in notice for notice in facts["notices"])
    assert said.err.splitlines()[-1].startswith("verdict: failed.")
    assert (tmp_path / "r" / "a_to_b.txt").exists()


@pytest.mark.parametrize(("radius", "verdicts"), [(0.2, ("failed",)), (0.02, ("failed", "doubtful"))])
def test_a_rod_of_any_width_is_not_called_good(radius, verdicts):
    # A rod thinner than the edges of the human lies along a line of them, and hits nearly all vertices there.
    found = match(rod(radius), remesh(builtin_humans().mesh(130), vertices=900, seed=1).mesh)
    assert found.verdict in verdicts
    assert found.judgement.reasons


def test_a_point_far_away_spoils_the_refinement_but_not_all_candidates():
    shape = far_outlier()
    found = match(shape, shape, model="humans-1")
    assert (found.a_to_b == np.arange(len(shape.vertices))).mean() > 0.95
    assert found.verdict == "good"
    assert found.report.candidates is not None
    assert found.report.candidates["filtered"] < 0.5 * found.report.candidates["refined"]
    alone = match(shape, shape, model="humans-1", candidates=False)
    assert alone.report.candidates is None
    assert alone.verdict == "failed"
    assert "The map collapses" in alone.judgement.reasons[0]


def test_needles_are_called_good_only_where_all_lengths_are_kept():
    # Which map comes out, a symmetry, a collapsed one or one with exchanged ends, depends on how a machine rounds.
    shape = needles()
    found = match(shape, shape, cache=False)
    edges = mesh_edges(shape.faces).vertices
    ends = shape.vertices[edges], shape.vertices[found.a_to_b[edges]]
    before, after = (np.linalg.norm(both[:, 0] - both[:, 1], axis=1) for both in ends)
    if np.abs(after - before).mean() > 0.1 * before.mean():
        assert found.verdict in ("doubtful", "failed")
        assert found.judgement.reasons
    if len(np.unique(found.a_to_b)) < 0.1 * len(shape.vertices):
        assert found.verdict == "failed"


def test_a_good_map_of_an_unsure_network_is_good_and_no_advice_repeats_what_was_tried():
    humans = builtin_humans()
    coarse = remesh(humans.mesh(138), vertices=500, seed=1).mesh
    options = {"model": "humans-1", "working_size": 0}  # trained on few triangulations, and given the coarse one
    found = match(humans.mesh(151), coarse, **options)
    assert "is unsure of these shapes" in found.report["why"]
    assert "descriptor" in found.report["why"]  # so that they were tried
    assert mean_error_x100(found.a_to_b, humans.mesh(138).vertices, coarse) < 5
    assert found.verdict == "good"
    assert not any("--model none" in text for text in found.judgement.advice)


def test_a_full_shape_matched_to_a_part_is_told_to_go_the_other_way(tmp_path, capsys):
    full = remesh(builtin_humans().mesh(134), vertices=900, seed=1).mesh
    part, _ = cut_part(full, "cuts", 0.4, seed=1)
    save(full, tmp_path / "full.ply")
    save(part, tmp_path / "part.ply")
    asked = ["match", str(tmp_path / "full.ply"), str(tmp_path / "part.ply"), "--out", str(tmp_path / "r"), "--json"]
    assert main(asked) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["verdict"] == "doubtful"
    assert "B looks like a part of A: match B to A." in facts["notices"]


def test_what_preparing_or_an_earlier_match_computed_is_not_computed_again(tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    run, humans = open_run("humans"), builtin_humans()
    a, b = (remesh(humans.mesh(k), vertices=1000, seed=k).mesh for k in (130, 150))  # matched as they are
    (tmp_path / "shapes").mkdir()
    save(a, tmp_path / "shapes" / "a.ply")
    a = load(tmp_path / "shapes" / "a.ply")
    prepare(open_dataset(tmp_path / "shapes"), run.needs)
    built = []

    def counted(function):
        return lambda *given, **named: built.append(function) or function(*given, **named)

    for module in (acnn.training.prepared, acnn.runs.match):
        for name in {"build_patches", "describe_surface"} & set(vars(module)):
            monkeypatch.setattr(module, name, counted(getattr(module, name)))
    match(a, b, model=run, refinement="none")
    assert len(built) == 2  # the operator and the descriptors of b
    match(b, a, model=run, refinement="none")
    match_shape(b, run, refinement="none")
    assert len(built) == 2


def test_a_shape_that_is_no_person_is_tried_by_descriptors_too_and_that_is_reported(tmp_path, capsys):
    rng = np.random.default_rng(0)
    ball = _bumpy_ball(rng)
    other, place = permuted(ball, 3)
    save(ball, tmp_path / "a.ply")
    save(other, tmp_path / "b.ply")
    options = ["--model", "humans-1", "--working-size", "0", "--json"]  # a finer copy is exact by the network alone
    arguments = ["match", str(tmp_path / "a.ply"), str(tmp_path / "b.ply"), *options]
    assert main([*arguments, "--out", str(tmp_path / "r")]) == 0
    said = capsys.readouterr()
    facts = json.loads(said.out)
    assert "descriptor" in facts["why"]
    assert any("humans" in notice for notice in facts["notices"])
    assert "notice:" in said.err
    assert (np.loadtxt(tmp_path / "r" / "a_to_b.txt", dtype=int) == place).mean() > 0.9


def test_descriptors_alone_on_request(tmp_path, capsys):
    mesh = _bumpy_ball(np.random.default_rng(1))
    save(mesh, tmp_path / "a.ply")
    arguments = ["match", str(tmp_path / "a.ply"), "--model", "none", "--out", str(tmp_path / "r")]
    assert main(arguments) == 2
    assert "second shape" in capsys.readouterr().err
    found = match(mesh, mesh, method="descriptors")
    assert found.report["route"] == "descriptors"
    assert found.through is None


def test_descriptors_are_refined_as_asked_for(tmp_path, capsys):
    save(bumpy(2), tmp_path / "a.ply")
    arguments = ["match", str(tmp_path / "a.ply"), str(tmp_path / "a.ply"), "--model", "none", "--json"]
    for method in ("none", "zoomout"):
        assert main([*arguments, "--refine", method, "--out", str(tmp_path / method)]) == 0
        assert json.loads(capsys.readouterr().out)["refinement"]["method"] == method


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Two small files, and no matching at all."""
    save(bumpy(1), tmp_path / "a.ply")
    save(PointCloud(bumpy(1).vertices), tmp_path / "cloud.ply")
    monkeypatch.setattr("acnn.runs.match_files.match", None)
    return tmp_path


def test_a_result_that_cannot_be_written_is_told_before_the_work(small, capsys):
    taken = small / "taken"
    taken.write_text("a file")
    arguments = ["match", str(small / "a.ply"), str(small / "a.ply"), "--model", "none", "--out", str(taken)]
    assert main(arguments) == 2
    assert str(taken) in capsys.readouterr().err
    assert taken.read_text() == "a file"


def test_an_interrupted_match_leaves_no_folder(small, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("acnn.runs.match_files.match", interrupt)
    arguments = ["match", str(small / "a.ply"), str(small / "a.ply"), "--model", "none"]
    assert main([*arguments, "--out", str(small / "new" / "r")]) == 130
    assert not (small / "new").exists()


def test_points_in_triangles_of_a_cloud_are_refused_before_the_work(small, capsys):
    arguments = ["match", str(small / "a.ply"), str(small / "cloud.ply"), "--model", "none", "--barycentric"]
    assert main([*arguments, "--out", str(small / "r")]) == 2
    assert "cloud" in capsys.readouterr().err
    a, b = surface_of(bumpy(1)), surface_of(PointCloud(bumpy(1).vertices))
    n = len(a.vertices)
    with pytest.raises(InputError, match="cloud"):
        _ = PairMatch(a, b, np.arange(n, dtype=np.int32), np.ones(n), None, {}, None).points


def test_large_shapes_are_announced_before_the_work(tmp_path, monkeypatch, capsys):
    class Begun(Exception):
        """The work has begun."""

    def begin(*shapes, **options):
        raise Begun

    monkeypatch.setattr("acnn.runs.match_files.match", begin)
    monkeypatch.setenv("ACNN_DEBUG", "1")
    save(grid(160), tmp_path / "large.ply")
    save(bumpy(1), tmp_path / "small.ply")
    for name, size, said in (("large.ply", "0", True), ("large.ply", "3000", False), ("small.ply", "0", False)):
        asked = ["match", str(tmp_path / name), str(tmp_path / "small.ply"), "--out", str(tmp_path / "r")]
        with pytest.raises(Begun):
            main([*asked, "--model", "none", "--working-size", size])
        words = capsys.readouterr().err
        assert ("3 minutes of processor time (25,600 and 42 vertices)" in words) == said
        assert ("--working-size 2500" in words) == said


def test_time_and_memory_grow_with_the_square_and_are_told_where_they_are_large():
    assert match_cost([2500, 2500]).text() == ""
    large = match_cost([100_000, 2500])
    assert large.seconds == pytest.approx(100 * match_cost([10_000]).seconds, rel=0.1)
    assert "roughly 50 minutes" in large.text()
    assert "48 GB of memory (available: 16 GB)" in large.text(memory=16.0)
    assert "memory" not in large.text(memory=256.0)


def test_with_working_copies_time_and_memory_grow_linearly():
    small, large = match_cost([100_000, 3000], 3000), match_cost([1_000_000, 3000], 3000)
    assert small.text() == match_cost([2500, 3000], 3000).text() == ""
    assert (large.seconds - small.seconds) / 900_000 == pytest.approx((small.seconds - 9.4) / 100_000, rel=0.01)
    assert "Copies of 3,000 vertices are matched" in match_cost([2_000_000, 3000], 3000).text()


@pytest.mark.parametrize("command", ["match", "info", "patches"])
def test_files_too_large_for_the_memory_are_refused_before_they_are_read(command, tmp_path, monkeypatch, capsys):
    with open(tmp_path / "huge.ply", "wb") as stream:
        stream.truncate(2 * 10**9)  # a hole, which takes no room on the disk
    # All are imported before the first is changed: none may take the change for the function.
    modules = [import_module(f"acnn.{name}") for name in ("runs.match_files", "shapes.load", "runs.patches")]
    for module in modules:
        monkeypatch.setattr(module, "load", None)
    monkeypatch.setattr("acnn.runs.cost.machine_memory_mb", lambda: {"available": 16_000.0})
    output = [] if command == "info" else ["--out", str(tmp_path / "r")]
    assert main([command, str(tmp_path / "huge.ply"), *output]) == 2
    words = capsys.readouterr().err
    assert "huge.ply (2.0 GB, up to 53 million vertices): needs roughly 106 GB of memory" in words
    assert "16 GB are available" in words
    assert not (tmp_path / "r").exists()
    assert reading_cost([tmp_path / "huge.ply"]).text(200.0).startswith("Reading huge.ply (2.0 GB")


def test_operators_too_large_for_the_memory_are_refused_before_they_are_computed():
    settings = PatchSettings()
    assert 0.6 < patches_cost(6890, settings).entries / 49.3 < 1.1  # those of a FAUST registration
    assert patches_cost(6890, settings).text(16.0, "a.ply") == ""
    few = replace(settings, angles=1, scales=(0.001,))
    assert "a.ply (10 million vertices) has 1 rows of 13 entries" in patches_cost(10_000_000, few).text(16.0, "a.ply")
    with pytest.raises(InputError, match=r"roughly 221 GB of memory, and 16 GB are available"):
        patches_cost(1_000_000, settings, by_angle=True).text(16.0, "a.ply")


def test_a_cache_that_cannot_be_used_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match=r"file/cache.*ACNN_CACHE"):
        match_shape(bumpy(1), open_run("humans"), refinement="none")


def test_a_cloud_of_a_file_is_matched_and_colored(tmp_path):
    mesh = _bumpy_ball(np.random.default_rng(2))
    save(mesh, tmp_path / "mesh.ply")
    np.savetxt(tmp_path / "cloud.xyz", mesh.vertices)
    arguments = ["match", str(tmp_path / "cloud.xyz"), str(tmp_path / "mesh.ply"), "--model", "none"]
    assert main([*arguments, "--out", str(tmp_path / "r")]) == 0
    matched = np.loadtxt(tmp_path / "r" / "a_to_b.txt", dtype=int)
    apart = np.linalg.norm(mesh.vertices[matched] - mesh.vertices, axis=1)
    assert np.median(apart) < 0.1
    assert (tmp_path / "r" / "a_colored.ply").exists()
    assert not (tmp_path / "r" / "a_colored.glb").exists()


def test_one_shape_is_matched_to_the_reference_of_the_package():
    mesh = builtin_humans().mesh(137)
    run = open_run("humans")
    cloud = PointCloud(mesh.vertices, vertex_normals(mesh.vertices, mesh.faces))
    maps = [match_shape(shape, run).query_to_reference for shape in (mesh, cloud)]
    apart = np.linalg.norm(run.reference.vertices[maps[0]] - run.reference.vertices[maps[1]], axis=1)
    assert np.median(apart) < 0.1 * np.ptp(run.reference.vertices, axis=0).max()


def test_a_network_that_goes_by_a_triangulation_refuses_another():
    run = open_run("humans")
    going_by = replace(run, config=run.config.with_changes({"kinds": ("shot", "valences")}))
    other = remesh(builtin_humans().mesh(137), vertices=1800, seed=1).mesh
    with pytest.raises(InputError, match=r"triangulation of its reference, .* 1800 .*best-remeshed"):
        match_shape(other, going_by)


def _bumpy_ball(rng):
    """A closed surface that is like no person."""
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=3)
    heights = np.ones(len(ball.vertices))
    for centre in rng.normal(size=(6, 3)):
        centre /= np.linalg.norm(centre)
        heights += rng.uniform(0.2, 0.8) * np.exp(-8 * (1 - ball.vertices @ centre))
    return Mesh(np.asarray(ball.vertices) * heights[:, None], np.asarray(ball.faces))


def test_coarse_humans_are_matched_on_finer_copies():
    # As they are, the pretrained model takes a hand for the other one, and the map is called good.
    humans = builtin_humans()
    first, second = (humans.mesh(8 * number + number) for number in (0, 3))
    kept, faces = decimate(first.vertices, first.faces, 600)
    a, b = (Mesh(human.vertices[kept], faces) for human in (first, second))
    found = match(a, b, cache=False)
    assert found.report.working_copies["a"]["working"] > 1500
    errors = np.linalg.norm(b.vertices[found.a_to_b] - b.vertices, axis=1)
    assert (errors > 0.3).mean() < 0.01
    assert repr(found) == f"PairMatch(600 vertices, {found.verdict}, mean confidence {found.confidence.mean():.2f})"
    own = match(a, b, working_size=0, cache=False)
    assert not own.copies[0].is_copy
