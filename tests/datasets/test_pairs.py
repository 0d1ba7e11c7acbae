"""Pairs of shapes: ground truth of each layout, remeshing, and lists."""

from pathlib import Path

import numpy as np
import pytest
from analytic import grid, sphere

from acnn.datasets.pairs import open_pairs, read_pair_list
from acnn.datasets.shrec16 import write_baryc
from acnn.errors import InputError
from acnn.shapes import BarycentricPoints, Mesh, load, save

STRETCHED = {"egg0": (1, 1, 1), "egg1": (1.5, 1, 0.8), "bowl4": (2, 1, 1)}


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ellipsoids of one connectivity, and another class, as in TOSCA."""
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    ball = sphere(3)
    (tmp_path / "zoo").mkdir()
    for name, axes in STRETCHED.items():
        save(Mesh(ball.vertices * axes, ball.faces), tmp_path / "zoo" / f"{name}.ply")
    return tmp_path / "zoo"


def test_pairs_stay_within_a_class(classes: Path) -> None:
    pairs = open_pairs(classes)
    assert set(pairs) == {("egg0", "egg0"), ("egg0", "egg1"), ("egg1", "egg0"), ("egg1", "egg1"), ("bowl4", "bowl4")}
    assert {pair for pair in pairs.drawn(5)} == {("egg0", "egg1"), ("egg1", "egg0")}
    assert set(pairs.among("4")) == {("bowl4", "bowl4")}
    with pytest.raises(InputError, match="no pair 'egg0 bowl4'"):
        pairs.select([("egg0", "bowl4")])
    with pytest.raises(InputError, match="no shape '7'"):
        pairs.among("7")


def test_without_remeshing_vertex_i_is_vertex_i(classes: Path) -> None:
    pair = open_pairs(classes, remesh=False).read("egg0", "egg1")
    assert isinstance(pair.truth, BarycentricPoints)
    n = len(pair.a.vertices)
    np.testing.assert_array_equal(pair.truth.nearest_vertex(pair.b.vertices, pair.b.faces), np.arange(n))
    assert pair.truth.weights.max(axis=1).min() > 1 - 1e-9
    assert pair.mirrored is None


def test_remeshed_shapes_share_nothing_but_the_truth(classes: Path) -> None:
    pair = open_pairs(classes).read("egg0", "egg1")
    again = open_pairs(classes).read("egg0", "egg1")
    other = open_pairs(classes, seed=1).read("egg0", "egg1")
    np.testing.assert_array_equal(pair.a.vertices, again.a.vertices)
    assert pair.a.vertices.shape != pair.b.vertices.shape
    assert pair.a.vertices.shape != other.a.vertices.shape
    assert isinstance(pair.truth, BarycentricPoints)
    there = pair.truth.interpolate(pair.b.vertices[pair.b.faces])
    expected = pair.a.vertices * STRETCHED["egg1"]
    edge = 0.15  # of the unit sphere with 642 vertices
    assert np.linalg.norm(there - expected, axis=1).max() < 0.2 * edge


def test_mirrored_truth_of_a_dataset_with_a_mirror() -> None:
    pairs = open_pairs("humans", remesh=False)
    pair = pairs.read("human_00_00", "human_17_03")
    assert isinstance(pair.mirrored, BarycentricPoints)
    from acnn.datasets.builtin import builtin_humans

    nearest = pair.mirrored.nearest_vertex(pair.b.vertices, pair.b.faces)
    np.testing.assert_array_equal(nearest, builtin_humans().mirror)
    assert len(pairs.among("test").among("human_17_*").names) == 64


def test_truth_files_count_from_one(tmp_path: Path) -> None:
    a, b = grid(5), grid(6)
    (tmp_path / "truth").mkdir()
    save(a, tmp_path / "3.ply")
    save(b, tmp_path / "12.ply")
    truth = np.random.default_rng(0).integers(0, 36, 25)
    np.savetxt(tmp_path / "truth" / "3_12.txt", truth + 1, fmt="%d")
    pairs = open_pairs(tmp_path)
    assert pairs.names == (("3", "12"),)
    np.testing.assert_array_equal(pairs.read("3", "12").truth, truth)
    np.savetxt(tmp_path / "truth" / "3_12.txt", truth[:-1] + 1, fmt="%d")
    with pytest.raises(InputError, match="24 lines, but 3 has 25"):
        pairs.read("3", "12")


def test_rows_of_vts_files_correspond(tmp_path: Path) -> None:
    for folder in ("off", "corres"):
        (tmp_path / folder).mkdir()
    listed = {"x": [1, 5, 5, 9], "y": [4, 3, 2, 1], "y.sym": [1, 2, 3, 4]}
    for name in ("x", "y"):
        save(grid(3), tmp_path / "off" / f"{name}.off")
    for name, rows in listed.items():
        np.savetxt(tmp_path / "corres" / f"{name}.vts", rows, fmt="%d")
    pair = open_pairs(tmp_path).read("x", "y")
    assert pair.rows is not None
    assert pair.rows.tolist() == [0, 4, 4, 8]
    assert np.asarray(pair.truth).tolist() == [3, 2, 1, 0]
    assert np.asarray(pair.mirrored).tolist() == [0, 1, 2, 3]
    assert open_pairs(tmp_path).read("y", "x").mirrored is None


def test_parts_to_the_full_shape_of_their_class(tmp_path: Path) -> None:
    full, part = grid(6), grid(4)
    for folder in ("null", "holes"):
        (tmp_path / folder).mkdir()
    save(full, tmp_path / "null" / "cat.off")
    save(part, tmp_path / "holes" / "holes_cat_shape_2.off")
    labels = np.arange(16) + 2
    truth = BarycentricPoints.at_vertices(full.faces, labels)
    write_baryc(tmp_path / "holes" / "holes_cat_shape_2.baryc_gt", truth)
    pairs = open_pairs(tmp_path / "holes")
    assert pairs.names == (("holes_cat_shape_2", "cat"),)
    pair = pairs.read(*pairs.names[0])
    assert isinstance(pair.truth, BarycentricPoints)
    np.testing.assert_array_equal(pair.truth.nearest_vertex(pair.b.vertices, pair.b.faces), labels)


def test_folder_with_a_list(tmp_path: Path) -> None:
    for name, side in (("one", 4), ("two", 5)):
        save(grid(side), tmp_path / f"{name}.ply")
    labels = np.full(16, -1)
    labels[:3] = [24, 0, 7]
    np.savetxt(tmp_path / "forward.txt", labels, fmt="%d")
    np.savetxt(tmp_path / "back.txt", np.tile([1, 0.5, 0.25, 0.25], (25, 1)), fmt="%g")
    (tmp_path / "pairs.txt").write_text("# A B TRUTH MIRRORED\none two forward.txt forward.txt\ntwo one back.txt\n")
    pairs = open_pairs(tmp_path)
    forward, back = (pairs.read(*names) for names in pairs)
    np.testing.assert_array_equal(forward.truth, labels)
    np.testing.assert_array_equal(forward.mirrored, labels)
    assert isinstance(back.truth, BarycentricPoints)
    small = load(tmp_path / "one.ply", kind="mesh")
    point = back.truth.interpolate(small.vertices[small.faces])[0]
    np.testing.assert_allclose(point, [0.5, 0.25, 0.25] @ grid(4).vertices[grid(4).faces[1]], atol=1e-6)
    (tmp_path / "pairs.txt").write_text("one.ply two.ply forward.txt\n")
    assert list(open_pairs(tmp_path)) == [("one", "two")]
    (tmp_path / "pairs.txt").write_text("one three\n")
    with pytest.raises(InputError, match="no shape 'three'"):
        open_pairs(tmp_path)


def test_lists_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# chosen at random\na b\n\nc d  # twice\nc d\n")
    assert read_pair_list(path) == [("a", "b"), ("c", "d"), ("c", "d")]
    path.write_text("a b\na\n")
    with pytest.raises(InputError, match="line 2 has 1 entries"):
        read_pair_list(path)


def test_research_sets_are_looked_for_below_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ACNN_DATA", raising=False)
    with pytest.raises(InputError, match="ACNN_DATA, which is not set"):
        open_pairs("scape")
    monkeypatch.setenv("ACNN_DATA", str(tmp_path))
    with pytest.raises(InputError, match="no folder"):
        open_pairs("shrec16/cuts")


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "benchmarks" / "pairs").glob("*.txt")), ids=str)
def test_committed_lists_have_twelve_pairs(path: Path) -> None:
    pairs = read_pair_list(path)
    assert len(set(pairs)) == len(pairs) == 12
    assert all(a != b for a, b in pairs)
