"""SHREC'16 Partial in its official layout: how truth is read, which vertex is a label, and how a class is named."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from analytic import grid

from acnn.datasets import open_dataset
from acnn.datasets.shrec16 import open_shrec16, read_baryc, shrec16_classes, write_baryc
from acnn.errors import InputError
from acnn.shapes import BarycentricPoints, Mesh, load, save
from acnn.surface import surface_of

needs_data = pytest.mark.skipif(
    not (Path(os.environ.get("ACNN_DATA", "")) / "shrec16_partial" / "null").is_dir(),
    reason="ACNN_DATA holds no shrec16_partial",
)
CLASSES = ("cat", "centaur", "david", "dog", "horse", "michael", "victoria", "wolf")


def bumpy(side: int) -> Mesh:
    mesh = grid(side, jitter=0.3)
    lift = np.random.default_rng(0).uniform(0, 0.4, len(mesh.vertices))
    return Mesh(mesh.vertices + lift[:, None] * [0, 0, 1], mesh.faces)


def corner_rows(mesh: Mesh, vertices: np.ndarray) -> str:
    """Lines of a .baryc_gt file that name vertices as corners of triangles."""
    flat = mesh.faces.ravel().tolist()
    places = [flat.index(v) for v in vertices]
    return "".join(f"{p // 3 + 1} " + " ".join(str(float(p % 3 == i)) for i in range(3)) + "\n" for p in places)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two classes; the parts are the lower rows of a bumpy square."""
    for name in ("null", "cuts"):
        (tmp_path / "data" / name).mkdir(parents=True)
    for cls, side in (("cat", 6), ("sea_horse", 7)):
        whole = bumpy(side)
        save(whole, tmp_path / "data" / "null" / f"{cls}.off")
        for number in (1, 2, 10):
            stem = tmp_path / "data" / "cuts" / f"cuts_{cls}_shape_{number}"
            count = side * (side - 2)
            save(Mesh(whole.vertices[:count], whole.faces[(whole.faces < count).all(axis=1)]), stem.with_suffix(".off"))
            stem.with_suffix(".baryc_gt").write_text(corner_rows(whole, np.arange(count)))
            if number == 1:
                stem.with_suffix(".baryc_gt_sym").write_text(corner_rows(whole, np.arange(count)[::-1]))
    return tmp_path / "data"


def test_one_class_of_one_kind(root: Path) -> None:
    assert shrec16_classes(root, "cuts") == ("cat", "sea_horse")
    data = open_shrec16(root, "cuts", "sea_horse")
    assert [(s.name, s.number) for s in data] == [(f"cuts_sea_horse_shape_{k}", k) for k in (1, 2, 10)]
    assert [s.number for s in data.select("1-2")] == [1, 2]
    np.testing.assert_array_equal(data.reference.vertices, bumpy(7).vertices)
    assert data.unit == surface_of(data.reference).unit
    example = pickle.loads(pickle.dumps(data.samples[0])).read()
    np.testing.assert_array_equal(example.labels, np.arange(35))
    np.testing.assert_array_equal(example.mirrored, np.arange(35)[::-1])
    points = np.einsum(
        "nk,nkd->nd", example.truth.weights, data.reference.vertices[data.reference.faces[example.truth.faces]]
    )
    np.testing.assert_array_equal(points, example.shape.vertices)
    assert example.mirrored_truth is not None
    without = data.samples[1].read()
    assert without.mirrored is None
    assert without.mirrored_truth is None


def test_truth_survives_what_loading_mends(root: Path) -> None:
    path = root / "null" / "cat.off"
    lines = path.read_text().splitlines()
    whole = bumpy(6)
    # the first face twice, and another vertex that no face uses in front of all
    first = 2 + len(whole.vertices)
    shifted = [" ".join(["3", *(str(int(v) + 1) for v in line.split()[1:4])]) for line in lines[first:]]
    counts = f"{len(whole.vertices) + 1} {len(whole.faces) + 1} 0"
    path.write_text("\n".join(["OFF", counts, "9 9 9", *lines[2:first], shifted[0], *shifted]) + "\n")
    for file in (root / "cuts").glob("cuts_cat_*.baryc_gt"):
        rows = [line.split(" ", 1) for line in file.read_text().splitlines()]
        file.write_text("".join(f"{int(face) + 1} {rest}\n" for face, rest in rows))
    data = open_dataset(root / "cuts" / "cat")
    assert len(data.reference.vertices) == 36
    np.testing.assert_array_equal(data.samples[1].read().labels, np.arange(24))


def test_written_truth_is_read_back(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(3), 5)
    face = np.array([0, 7, 3, -1, 2], np.int32)
    write_baryc(tmp_path / "a.baryc_gt", BarycentricPoints(face, weights))
    again = read_baryc(tmp_path / "a.baryc_gt", 5, 8)
    np.testing.assert_array_equal(again.faces, face)
    np.testing.assert_allclose(again.weights[face >= 0], weights[face >= 0], rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "told"),
    [("1 1 0 0\n", "has 1 lines of 4 numbers, but 2"), ("1 1 0 0\n0 1 0 0\n", "line 2 is 0"),
     ("1 1 0 0\n9 1 0 0\n", "line 2 is 9"), ("1 1 0 0\n2 .5 .4 0\n", "line 2: the weights"),
     ("1 1 0 0\n1.5 1 0 0\n", "not whole"), ("1 1 0 0\n1 nan 0 0\n", "not finite"), ("", "empty")],
)  # fmt: skip
def test_truth_that_does_not_fit_is_told(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "a.baryc_gt"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_baryc(path, 2, 8)
    assert told in str(error.value)
    assert "a.baryc_gt" in str(error.value)


def test_ways_to_name_a_class(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(open_dataset(root / "cuts" / "cat")) == 3
    with pytest.raises(
        InputError, match=r"name one kind and class, such as .*cuts/cat: it has cuts/cat, cuts/sea_horse"
    ):
        open_dataset(root)
    with pytest.raises(InputError, match="name one kind and class"):
        open_dataset(root / "cuts")
    with pytest.raises(InputError, match=r"no cuts of 'cow'. Classes: cat, sea_horse"):
        open_dataset(root / "cuts" / "cow")
    with pytest.raises(InputError, match=r"no holes of 'cat'. Classes: none: looked for"):
        open_dataset(root / "holes" / "cat")
    monkeypatch.delenv("ACNN_DATA", raising=False)
    with pytest.raises(InputError, match=r"ACNN_DATA, which is not set.*https://"):
        open_dataset("shrec16/cuts/cat")
    root.rename(root.parent / "shrec16_partial")
    monkeypatch.setenv("ACNN_DATA", str(root.parent))
    assert open_dataset("shrec16/cuts/cat").name == "shrec16_partial/cuts/cat"
    with pytest.raises(InputError, match="name one kind and class"):
        open_dataset("shrec16")
    with pytest.raises(InputError, match=r"'shrec16/cut/cat': .* Name it as in 'shrec16/cuts/cat'"):
        open_dataset("shrec16/cut/cat")


def test_missing_files_are_told_when_the_part_is_read(root: Path) -> None:
    (root / "cuts" / "cuts_cat_shape_2.baryc_gt").unlink()
    data = open_dataset(root / "cuts" / "cat")
    assert len(data.samples[0].read().labels) == 24
    with pytest.raises(InputError, match=r"cuts_cat_shape_2\.baryc_gt: there is no such file"):
        data.samples[1].read()
    (root / "null" / "cat.off").unlink()
    with pytest.raises(InputError, match=r"cat\.off: there is no such file"):
        open_dataset(root / "cuts" / "cat")


@needs_data
def test_published_parts() -> None:
    root = Path(os.environ["ACNN_DATA"]) / "shrec16_partial"
    for kind, count in (("cuts", 12), ("holes", 8)):
        assert shrec16_classes(root, kind) == CLASSES
        data = open_dataset(f"shrec16/{kind}/wolf")
        assert [s.number for s in data] == list(range(1, count + 1))
    # this part is in the pose of its whole shape, which loading mends: every vertex lies where its truth says
    data = open_dataset("shrec16/cuts/cat")
    example = data.select("1").samples[0].read()
    faces = data.reference.faces
    for truth, bound in ((example.truth, 0.05), (example.mirrored_truth, None)):
        assert (truth.faces >= 0).all()
        points = np.einsum("nk,nkd->nd", truth.weights, data.reference.vertices[faces[truth.faces]])
        off = np.linalg.norm(points - example.shape.vertices, axis=1) / data.unit
        assert np.median(off) < bound if bound else np.median(off) > 1
    near = np.linalg.norm(data.reference.vertices[example.labels] - example.shape.vertices, axis=1) / data.unit
    assert np.median(near) < 0.2
    # a part in another pose whose file has a vertex that loading splits
    split = open_dataset("shrec16/holes/wolf").select("4").samples[0].read()
    assert len(split.labels) == len(split.shape.vertices) > len(load(split.shape.source.path, repair=False).vertices)
    assert (split.labels >= 0).all()
