"""Many pairs in one command: lists, resuming, failures, table and page."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from analytic import bumpy, permuted

from acnn.cli import main
from acnn.errors import InputError
from acnn.runs import match_many as match_many_module
from acnn.runs.match_many import match_many, read_pairs
from acnn.shapes import load, save

OPTIONS = {"method": "descriptors", "refinement": "none", "cache": False, "workers": 1}


@pytest.fixture
def shapes(tmp_path):
    mesh = bumpy(2)
    save(mesh, tmp_path / "one.ply")
    save(permuted(mesh, 1)[0], tmp_path / "two.ply")
    save(permuted(mesh, 2)[0], tmp_path / "three <b>.ply")
    (tmp_path / "broken.ply").write_text("ply\nnothing")
    return tmp_path


def test_pairs_are_matched_once_and_failures_do_not_stop_the_rest(shapes):
    (shapes / "pairs.txt").write_text("# A\tB\none.ply\ttwo.ply\nbroken.ply\ttwo.ply\nthree <b>.ply\ttwo.ply\n")
    pairs = read_pairs(shapes / "pairs.txt")
    seen = []
    found = match_many(pairs, shapes / "out", progress=lambda done, total: seen.append((done, total)), **OPTIONS)
    assert [failure.item for failure in found.failures] == ["broken.ply to two.ply"]
    assert "broken.ply" in found.failures[0].why
    assert (len(found.matched), found.resumed, found.as_dict()["pairs"]) == (2, 0, 3)
    assert seen[-1] == (3, 3)
    with (shapes / "out" / "matches.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["verdict"] for row in rows] == ["good", "", "good"]
    assert rows[1]["failed"] == found.failures[0].why
    text = (shapes / "out" / "index.html").read_text()
    assert 'href="one_to_two/match.html"' in text
    assert "three &lt;b&gt;.ply" in text
    assert (shapes / "out" / "three_b_to_two" / "match.html").is_file()

    before = (shapes / "out" / "one_to_two" / "map.npz").stat().st_mtime_ns
    save(bumpy(2), shapes / "broken.ply")
    again = match_many(pairs, shapes / "out", **OPTIONS)
    assert (len(again.matched), again.resumed, again.failures) == (3, 2, [])
    assert (shapes / "out" / "one_to_two" / "map.npz").stat().st_mtime_ns == before
    changed = match_many(pairs[:1], shapes / "out", **OPTIONS | {"refinement": "zoomout"})
    assert changed.resumed == 0


def test_a_pair_that_fails_unexpectedly_does_not_stop_the_rest(shapes, monkeypatch):
    original = match_many_module.match_files

    def fails_once(a, *arguments, **options):
        if a.name == "one.ply":
            raise np.linalg.LinAlgError("Singular matrix")
        return original(a, *arguments, **options)

    monkeypatch.setattr(match_many_module, "match_files", fails_once)
    pairs = [(shapes / name, shapes / "two.ply") for name in ("one.ply", "three <b>.ply")]
    found = match_many(pairs, shapes / "out", **OPTIONS)
    assert [failure.why for failure in found.failures] == ["LinAlgError: Singular matrix"]
    assert len(found.matched) == 1


def test_pairs_are_matched_again_by_a_network_that_was_trained_further(shapes, monkeypatch):
    original = match_many_module.match_files

    def by_descriptors(a, b, model, out, **options):
        assert model == shapes / "run"
        return original(a, b, None, out, **options | {"method": "descriptors"})

    monkeypatch.setattr(match_many_module, "match_files", by_descriptors)
    (shapes / "run").mkdir()
    for name in ("model.safetensors", "reference.safetensors"):
        (shapes / "run" / name).write_bytes(b"before")
    pairs, options = [(shapes / "one.ply", shapes / "two.ply")], {**OPTIONS, "method": "auto", "model": shapes / "run"}
    assert [match_many(pairs, shapes / "out", **options).resumed for _ in range(2)] == [0, 1]
    (shapes / "run" / "model.safetensors").write_bytes(b"trained further")
    assert [match_many(pairs, shapes / "out", **options).resumed for _ in range(2)] == [0, 1]


def test_a_folder_that_was_renamed_goes_on(shapes):
    pairs = [(shapes / "one.ply", shapes / "two.ply")]
    before = match_many(pairs, shapes / "out", **OPTIONS).matched[0]
    (shapes / "out").rename(shapes / "moved")
    found = match_many(pairs, shapes / "moved", **OPTIONS)
    assert found.resumed == 1
    for name in ("out", "map", "page"):
        assert found.matched[0][name] == before[name].replace(str(shapes / "out"), str(shapes / "moved"))


def test_a_shape_of_consecutive_pairs_is_read_once(shapes, monkeypatch):
    read = []
    monkeypatch.setattr(match_many_module, "load", lambda path: read.append(path.name) or load(path))
    pairs = [(shapes / name, shapes / "two.ply") for name in ("one.ply", "three <b>.ply")]
    assert len(match_many(pairs, shapes / "out", **OPTIONS).matched) == 2
    assert read == ["one.ply", "two.ply", "three <b>.ply"]


def test_pairs_are_matched_by_the_workers_of_a_dask_scheduler(shapes, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'acnn[dask]'")
    monkeypatch.chdir(shapes)
    pairs = [(Path("one.ply"), Path("two.ply")), (Path("broken.ply"), Path("two.ply"))]
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        options = OPTIONS | {"workers": 2, "scheduler": cluster.scheduler_address}
        found = match_many(pairs, Path("out"), **options)
    assert [match["verdict"] for match in found.matched] == ["good"]
    assert [failure.item for failure in found.failures] == ["broken.ply to two.ply"]
    assert (shapes / "out" / "one_to_two" / "match.html").is_file()


def test_a_folder_is_matched_to_one_shape(shapes):
    pairs = read_pairs(shapes, shapes / "two.ply")
    assert [a.name for a, _ in pairs] == ["broken.ply", "one.ply", "three <b>.ply"]
    assert {b.name for _, b in pairs} == {"two.ply"}


def test_lists_that_cannot_be_understood(shapes):
    (shapes / "pairs.txt").write_text("one.ply\n")
    with pytest.raises(InputError, match="line 1: two files are needed"):
        read_pairs(shapes / "pairs.txt")
    with pytest.raises(InputError, match="give that as the second argument"):
        read_pairs(shapes)
    with pytest.raises(InputError, match=r"none\.ply: there is no such file"):
        read_pairs(shapes, shapes / "none.ply")
    with pytest.raises(InputError, match="Leave the second argument out"):
        read_pairs(shapes / "pairs.txt", shapes / "two.ply")
    (shapes / "pairs.txt").write_text("# nothing\n")
    with pytest.raises(InputError, match="no pairs"):
        read_pairs(shapes / "pairs.txt")


def test_files_of_others_are_not_overwritten(shapes):
    (shapes / "out").mkdir()
    (shapes / "out" / "index.html").write_text("mine")
    with pytest.raises(InputError, match=r"index\.html"):
        match_many([(shapes / "one.ply", shapes / "two.ply")], shapes / "out", **OPTIONS)
    assert (shapes / "out" / "index.html").read_text() == "mine"


def test_a_list_none_of_whose_pairs_could_be_matched_can_be_corrected(shapes):
    assert match_many([(shapes / "broken.ply", shapes / "none.ply")], shapes / "out", **OPTIONS).matched == []
    found = match_many([(shapes / "one.ply", shapes / "two.ply")], shapes / "out", **OPTIONS)
    assert (len(found.matched), found.failures) == (1, [])
    (shapes / "out" / "matches.csv").write_text("a,b\nmine,mine\n")
    with pytest.raises(InputError, match=r"matches\.csv: already exists"):
        match_many([(shapes / "one.ply", shapes / "three <b>.ply")], shapes / "out", **OPTIONS)


def test_the_command_reports_failures_with_exit_code_1(shapes, capsys):
    options = ["--method", "descriptors", "--refine", "none", "--no-cache", "--workers", "1", "--json"]
    assert main(["match", str(shapes), str(shapes / "two.ply"), "--out", str(shapes / "out"), *options]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["pairs"] == 3
    assert [entry["item"] for entry in facts["failed"]] == ["broken.ply to two.ply"]
    assert main(["match", "--out", str(shapes / "other")]) == 2
    (shapes / "pairs.txt").write_text("one.ply two.ply\n")
    assert main(["match", str(shapes / "one.ply"), "--pairs", str(shapes / "pairs.txt")]) == 2
