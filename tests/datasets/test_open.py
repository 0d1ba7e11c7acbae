"""Opening datasets: built-in humans, FAUST's layouts, folders of one's own; every message says what was looked for."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from acnn.datasets import Dataset, builtin_humans, faust, humans_dataset, open_dataset
from acnn.datasets.faust import open_faust
from acnn.errors import InputError
from acnn.shapes import Mesh, load, save

needs_faust = pytest.mark.skipif(not os.environ.get("ACNN_DATA"), reason="ACNN_DATA is not set")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))


def grid(n: int, seed: int = 0) -> Mesh:
    """An open bumpy n x n grid."""
    x, y = (a.ravel() for a in np.meshgrid(np.arange(n), np.arange(n)))
    z = np.random.default_rng(seed).uniform(0, 0.3, n * n)
    a = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = np.concatenate([np.stack([a, a + 1, a + n + 1], 1), np.stack([a, a + n + 1, a + n], 1)])
    return Mesh(np.stack([x, y, z], 1).astype(float), faces.astype(np.int32))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


def write_lines(path: Path, values: object) -> None:
    path.write_text("\n".join(map(str, values)) + "\n")  # type: ignore[call-overload]


def test_humans_are_split_by_subject_and_labelled_with_themselves() -> None:
    data = open_dataset("humans")
    humans = builtin_humans()
    assert len(data) == len(humans)
    train, test = ({s.subject for s in data if s.split == split} for split in ("train", "test"))
    assert train
    assert test
    assert not train & test
    example = data.named("human_03_05").read()
    np.testing.assert_array_equal(example.labels, np.arange(humans.vertices.shape[1]))
    np.testing.assert_array_equal(data.reference.vertices, humans.vertices[0])
    np.testing.assert_array_equal(data.mirror, humans.mirror)
    assert data.select("0").samples[0].name == "human_00_00"


def test_a_folder_named_like_the_built_in_humans_is_not_passed_over(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "humans").mkdir()
    save(grid(6), tmp_path / "humans" / "a.ply")
    for word in ("humans", "humans+cuts"):
        with pytest.raises(InputError, match=r"write \./humans for the folder"):
            open_dataset(word)
    for folder in ("./humans", Path("humans")):
        assert [s.name for s in open_dataset(folder)] == ["a"]


def test_remeshed_copies_have_truth_on_the_surface_they_copy() -> None:
    data = open_dataset("humans+remeshed")
    humans = builtin_humans()
    assert len(data) == 2 * len(humans)
    copy = data.named("human_17_02_remeshed")
    original = data.named("human_17_02")
    assert (copy.split, copy.subject) == (original.split, original.subject)
    assert copy.number == original.number + 1000
    example = pickle.loads(pickle.dumps(copy)).read()  # processes are sent samples this way
    mesh = original.read().shape
    assert example.truth is not None
    assert len(example.shape.vertices) != len(mesh.vertices)
    on_faces = np.einsum("nk,nkd->nd", example.truth.weights, mesh.vertices[mesh.faces[example.truth.faces]])
    assert np.linalg.norm(on_faces - example.shape.vertices, axis=1).max() < 0.03  # rounded between vertices
    np.testing.assert_array_equal(example.labels, example.truth.nearest_vertex(data.reference.vertices, mesh.faces))
    kept = list((Path(os.environ["ACNN_CACHE"])).glob("remeshed-*.safetensors"))
    assert len(kept) == 1
    again = copy.read()
    np.testing.assert_array_equal(again.shape.vertices, example.shape.vertices)
    kept[0].write_bytes(kept[0].read_bytes()[:-9])
    np.testing.assert_array_equal(copy.read().truth.weights, example.truth.weights)


def test_two_copies_differ() -> None:
    data = humans_dataset(remeshed=2)
    assert data.samples[160].read.seed != data.samples[320].read.seed
    assert data.samples[320].name == "human_00_00_remeshed2"


def test_one_connectivity(root: Path) -> None:
    for k in (10, 2, 1):
        save(grid(6, k), root / f"s{k}.ply")
    data = open_dataset(root)
    assert [s.name for s in data] == ["s1", "s2", "s10"]
    np.testing.assert_array_equal(data.reference.vertices, load(root / "s1.ply").vertices)
    np.testing.assert_array_equal(data.named("s10").read().labels, np.arange(36))


def test_a_shape_of_other_connectivity_is_told_and_the_others_are_read(root: Path) -> None:
    save(grid(6), root / "a.ply")
    save(grid(7), root / "b.ply")
    other = grid(6)
    order = np.random.default_rng(1).permutation(36)
    save(Mesh(other.vertices[order], np.argsort(order)[other.faces].astype(np.int32)), root / "c.ply")
    data = open_dataset(root)
    assert len(data.named("a").read().labels) == 36
    with pytest.raises(InputError, match=r"49 vertices, not 36.*b\.labels\.txt"):
        data.named("b").read()
    with pytest.raises(InputError, match="other edges"):
        data.named("c").read()


def test_labels_file_with_unequal_counts_and_a_vertex_that_loading_drops(root: Path) -> None:
    mesh = grid(5)
    loose = Mesh(np.concatenate([[[9.0, 9, 9]], mesh.vertices]), mesh.faces + 1)  # vertex 0 in no face
    save(loose, root / "a.ply")
    save(grid(6), root / "reference.ply")
    labels = np.r_[35, np.arange(25) + 3]
    labels[5] = -1
    write_lines(root / "a.labels.txt", labels)
    write_lines(root / "mirror.txt", np.arange(36)[::-1])
    data = open_dataset(root)
    assert [s.name for s in data] == ["a"]
    np.testing.assert_array_equal(data.named("a").read().labels, labels[1:])
    np.testing.assert_array_equal(data.mirror, np.arange(36)[::-1])


@pytest.mark.parametrize(
    ("lines", "told"),
    [(range(24), "has 24 lines, but the shape has 25"), (range(12, 37), "line 25 is 36"),
     ([*range(24), -2], "line 25 is -2"), ([*range(24), "x"], "cannot be read"), ([], "empty")],
)  # fmt: skip
def test_labels_that_do_not_fit_are_told(root: Path, lines: object, told: str) -> None:
    save(grid(5), root / "a.ply")
    save(grid(6), root / "reference.ply")
    write_lines(root / "a.labels.txt", lines)
    with pytest.raises(InputError) as error:
        open_dataset(root).named("a").read()
    assert told in str(error.value)
    assert "a.labels.txt" in str(error.value)


def test_labels_without_reference_and_shape_without_labels(root: Path) -> None:
    save(grid(5), root / "a.ply")
    save(grid(5), root / "b.ply")
    write_lines(root / "a.labels.txt", range(25))
    with pytest.raises(InputError, match=r"looked for reference\.EXT"):
        open_dataset(root)
    save(grid(5), root / "reference.off")
    with pytest.raises(InputError, match=r"looked for .*b\.labels\.txt.*b\.truth\.txt.*b\.vts"):
        open_dataset(root).named("b").read()


def test_vts_rows_correspond_and_count_from_one(root: Path) -> None:
    save(grid(6), root / "a.ply")
    save(grid(5), root / "b.ply")
    write_lines(root / "a.vts", [1, 2, 36, 3])
    write_lines(root / "b.vts", [25, 1, 7, 7])
    data = open_dataset(root)
    example = data.named("b").read()
    np.testing.assert_array_equal(example.pairs, [[24, 0], [0, 1], [6, 35], [6, 2]])
    assert {v: label for v, label in enumerate(example.labels) if label >= 0 and v != 6} == {0: 1, 24: 0}
    assert example.labels[6] in (2, 35)
    write_lines(root / "b.vts", [25, 1, 0, 7])
    with pytest.raises(InputError, match="line 3 is 0"):
        data.named("b").read()
    write_lines(root / "b.vts", [25, 1])
    with pytest.raises(InputError, match="has 2 rows"):
        data.named("b").read()


def test_folder_with_dataset_json(root: Path) -> None:
    reference, copy = grid(6), grid(5)
    save(reference, root / "reference.ply")
    save(reference, root / "p_00.ply")
    save(copy, root / "p_01.ply")
    rows = [(3, 0.2, 0.7, 0.1)] * 25
    (root / "p_01.truth.txt").write_text("".join(f"{f} {a} {b} {c}\n" for f, a, b, c in rows))
    shapes = [{"name": f"p_0{k}", "subject": k, "split": s} for k, s in enumerate(["train", "test", "test"])]
    (root / "dataset.json").write_text(json.dumps({"kind": "humans", "reference": "reference.ply", "shapes": shapes}))
    data = open_dataset(root)
    assert [(s.name, s.split, s.subject) for s in data][1:] == [("p_01", "test", 1), ("p_02", "test", 2)]
    example = data.named("p_01").read()
    np.testing.assert_array_equal(example.truth.faces, np.full(25, 3))
    np.testing.assert_array_equal(example.labels, np.full(25, load(root / "reference.ply").faces[3, 1]))
    with pytest.raises(InputError, match=r"p_02\.ply: there is no such file"):
        data.named("p_02").read()
    (root / "dataset.json").write_text("{}")
    with pytest.raises(InputError, match=r"dataset\.json: does not list shapes"):
        open_dataset(root)


def test_what_was_looked_for_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACNN_DATA", raising=False)
    with pytest.raises(InputError, match="there is no such folder"):
        open_dataset(root / "nothing")
    with pytest.raises(InputError, match=r"looked for files ending in \.ply"):
        open_dataset(root)
    with pytest.raises(InputError, match=r"ACNN_DATA, which is not set.*register at https://"):
        open_dataset("faust")
    (root / "training").mkdir()
    with pytest.raises(InputError, match=r"training/registrations/tr_reg_\*\.ply.*register at https://"):
        open_dataset(root)
    (root / "f.txt").write_text("1")
    with pytest.raises(InputError, match="is a file"):
        open_dataset(root / "f.txt")


def test_faust_layout(root: Path) -> None:
    folder = root / "MPI-FAUST" / "training" / "registrations"
    folder.mkdir(parents=True)
    for k in (0, 1, 80):
        save(grid(5, k), folder / f"tr_reg_{k:03d}.ply")
    data = open_faust(root)
    assert [(s.name, s.subject, s.split) for s in data] == [
        ("tr_reg_000", 0, "train"), ("tr_reg_001", 0, "train"), ("tr_reg_080", 8, "test")]  # fmt: skip
    with pytest.raises(InputError, match="has 25 vertices; FAUST registrations have 6890"):
        data.named("tr_reg_001").read()


def faust_like(folder: Path, monkeypatch: pytest.MonkeyPatch, **shapes: Mesh) -> Dataset:
    """A folder in FAUST's layout, of meshes of fewer vertices."""
    monkeypatch.setattr(faust, "VERTICES", len(next(iter(shapes.values())).vertices))
    for name, mesh in shapes.items():
        save(mesh, folder / f"{name}.ply")
    return open_faust(folder)


def test_faust_labels_are_vertices_of_the_reference_as_loaded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = grid(6)
    without = Mesh(mesh.vertices, mesh.faces[(mesh.faces != 0).all(axis=1)])  # no face uses vertex 0: loading drops it
    data = faust_like(root, monkeypatch, tr_reg_000=without, tr_reg_001=mesh)
    assert len(data.reference.vertices) == 35
    for name, unknown in (("tr_reg_000", []), ("tr_reg_001", [0])):
        example = data.named(name).read()
        np.testing.assert_array_equal(np.flatnonzero(example.labels < 0), unknown)
        known = example.labels >= 0
        np.testing.assert_array_equal(data.reference.vertices[example.labels[known]], example.shape.vertices[known])


def test_a_shape_in_faust_layout_of_another_triangulation_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = grid(6)
    order = np.random.default_rng(1).permutation(36)
    other = Mesh(mesh.vertices[order], np.argsort(order)[mesh.faces].astype(np.int32))
    data = faust_like(root, monkeypatch, tr_reg_000=mesh, tr_reg_001=other)
    with pytest.raises(InputError, match=r"tr_reg_001\.ply: has other edges.* not those of tr_reg_000\.ply"):
        data.named("tr_reg_001").read()


@needs_faust
def test_faust_and_its_remeshed_copies_agree() -> None:
    faust, copies = open_dataset("faust"), open_dataset("faust_r")
    np.testing.assert_array_equal(faust.named("tr_reg_060").read().labels, np.arange(6890))
    example = copies.named("tr_reg_060").read()
    assert example.pairs is not None
    assert example.mirrored is not None
    known = example.labels >= 0
    assert 0.6 < known.mean() < 0.8
    registered = faust.named("tr_reg_060").read().shape.vertices
    # the copies are in another frame and scale: fit it, then labels must lie on the copy's own surface
    a, b = example.shape.vertices[known], registered[example.labels[known]]
    a, b = a - a.mean(0), b - b.mean(0)
    u, s, vt = np.linalg.svd(a.T @ b)
    off = np.linalg.norm(a @ (u @ vt) * (s.sum() / (a**2).sum()) - b, axis=1)
    assert off.mean() < 0.01  # metres
    left = example.mirrored >= 0
    reference = copies.reference.vertices
    both = left & known
    assert np.linalg.norm(reference[example.mirrored[both]] - reference[example.labels[both]], axis=1).mean() > 0.1
