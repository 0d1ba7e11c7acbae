"""Choosing samples, and carrying labels and truth from files over to shapes as loaded."""

import dataclasses

import numpy as np
import pytest
from analytic import grid

from acnn.datasets.dataset import Dataset, Example, Sample, labels_as_loaded, truth_as_loaded
from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints, Mesh, Source

TETRA = Mesh(
    np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]),
    np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32),
)


def read_tetra() -> Example:
    return Example(TETRA, np.arange(4, dtype=np.int32))


def dataset(*names: str) -> Dataset:
    return Dataset(
        "toy", TETRA, tuple(Sample(name, read_tetra, "train" if i % 2 else "test") for i, name in enumerate(names))
    )


@pytest.fixture
def faust() -> Dataset:
    return dataset(*(f"tr_reg_{i:03d}" for i in range(80)))


def names(data: Dataset) -> list[str]:
    return [sample.name for sample in data]


def test_numbers_ranges_and_names(faust: Dataset) -> None:
    assert names(faust.select("000-059,065")) == [f"tr_reg_{i:03d}" for i in [*range(60), 65]]
    assert names(faust.select("7")) == names(faust.select("007")) == names(faust.select("tr_reg_007")) == ["tr_reg_007"]
    assert names(faust.select("tr_reg_003-tr_reg_005, 4")) == ["tr_reg_003", "tr_reg_004", "tr_reg_005"]
    assert names(faust.select(["9", "tr_reg_000"])) == ["tr_reg_009", "tr_reg_000"]
    assert names(faust.select("tr_reg_01*")) == [f"tr_reg_{i:03d}" for i in range(10, 20)]
    assert len(faust.select("train")) == len(faust.select("test")) == 40
    assert len(faust.select("all")) == 80
    assert faust.select("3").reference is TETRA


def test_a_number_may_belong_to_several_classes() -> None:
    parts = dataset("cat_1", "cat_2", "dog_1", "dog_2", "dog_3")
    assert names(parts.select("1-2")) == ["cat_1", "dog_1", "cat_2", "dog_2"]


def test_names_with_hyphens() -> None:
    data = dataset("left-hand", "left-foot", "head", "1-2")
    assert names(data.select("left-foot-head")) == ["left-foot", "head"]
    assert names(data.select("1-2")) == ["1-2"]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [("080", "'080'"), ("70-85", "number 80 (nor 5 more of '70-85')"), ("tr_reg_1", "'tr_reg_1'"),
     ("5-3", "'5-3' runs backwards"), ("tr_reg_005-tr_reg_003", "'tr_reg_005-tr_reg_003' runs backwards"),
     ("", "names no shape"), ("999999999-1000000000", "'999999999-1000000000'"), ("-3", "'-3'"),
     ("0-999999999", "number 80 (nor 999999919 more")],
)  # fmt: skip
def test_what_is_not_there_is_told(faust: Dataset, wanted: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        faust.select(wanted)
    assert told in str(error.value)
    assert "80 shapes: tr_reg_000 to tr_reg_079" in str(error.value)


def test_named(faust: Dataset) -> None:
    assert faust.named("tr_reg_004").number == 4
    with pytest.raises(InputError, match="tr_reg_4"):
        faust.named("tr_reg_4")


def test_two_shapes_of_one_name_are_rejected() -> None:
    with pytest.raises(InputError, match="two shapes are named 'a'"):
        dataset("a", "b", "a")


def test_nearest_vertex_is_not_the_corner_of_largest_weight() -> None:
    # a long thin triangle: the point is near its first corner, but the other two lie on one line with it
    vertices = np.array([[0.0, 1, 0], [-10, 0, 0], [10, 0, 0], [0, -1, 0]])
    faces = np.array([[0, 1, 2], [1, 3, 2]], np.int32)
    truth = BarycentricPoints(np.array([0, 0, -1], np.int32), np.array([[0.2, 0.4, 0.4], [0.3, 0.3, 0.4], [0, 0, 0]]))
    np.testing.assert_array_equal(truth.nearest_vertex(vertices, faces), [0, 0, -1])
    # a vertex across the edge counts where it is nearer than all corners
    low = BarycentricPoints(np.array([0], np.int32), np.array([[0.0, 0.5, 0.5]]))
    nearer = vertices * [1, 2, 1] + np.array([[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(low.nearest_vertex(nearer, faces), [3])


def test_nearest_vertex_stays_on_its_fold_of_the_surface() -> None:
    sheet = grid(4)
    over = sheet.vertices + [0.5, 0.5, 0.01]  # its vertices lie over the middles of the cells below
    faces = np.concatenate([sheet.faces, sheet.faces + 16])
    truth = BarycentricPoints(np.arange(len(sheet.faces), dtype=np.int32), np.full((len(sheet.faces), 3), 1 / 3))
    assert truth.nearest_vertex(np.concatenate([sheet.vertices, over]), faces).max() < 16


def test_nearest_vertex_of_a_midpoint_does_not_depend_on_rounding_or_on_its_face() -> None:
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    # the middle of the edge from 0 to 1, as a point of either face
    truth = BarycentricPoints(np.array([0, 1], np.int32), np.array([[0.5, 0, 0.5], [0.5, 0.5, 0]]))
    for vertices in (TETRA.vertices, TETRA.vertices @ turn / 3 + 0.1, TETRA.vertices @ turn.T * 7 - 2):
        np.testing.assert_array_equal(truth.nearest_vertex(vertices, TETRA.faces), [0, 0])


def test_labels_follow_vertices_dropped_and_split_on_loading() -> None:
    # the file has 5 vertices: 0 is dropped, 4 is split in two; in the reference's file 1 was dropped
    source = Source("a.ply", np.array([-1, 0, 1, 2, 3], np.int32), np.array([1, 2, 3, 4, 4], np.int32))
    shape = Mesh(np.zeros((5, 3)), np.zeros((0, 3), np.int32), source=source)
    there = Source("r.ply", np.array([0, -1, 1, 2], np.int32), np.array([0, 2, 3], np.int32))
    reference = Mesh(np.zeros((3, 3)), np.zeros((0, 3), np.int32), source=there)
    in_file = np.array([0, 3, 1, -1, 2])
    np.testing.assert_array_equal(labels_as_loaded(in_file, shape, reference), [2, -1, -1, 1, 1])


def test_truth_keeps_its_points_when_loading_turns_and_reorders_the_reference() -> None:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet([1, 1, 1], 6)
    face = np.array([0, 1, 2, 3, 3, -1], np.int32)
    shape = Mesh(np.zeros((6, 3)), np.zeros((0, 3), np.int32))
    turned = dataclasses.replace(TETRA, faces=TETRA.faces[[2, 0, 3, 1]][:, [1, 0, 2]])
    moved = truth_as_loaded(BarycentricPoints(face, weights), TETRA.faces, shape, turned)

    def points(mesh: Mesh, truth: BarycentricPoints) -> np.ndarray:
        return np.einsum("nk,nkd->nd", truth.weights, mesh.vertices[mesh.faces[truth.faces]])[:5]

    np.testing.assert_allclose(points(turned, moved), points(TETRA, BarycentricPoints(face, weights)), atol=1e-15)
    assert moved.faces[5] == -1
    without = dataclasses.replace(TETRA, faces=TETRA.faces[:3])
    gone = truth_as_loaded(BarycentricPoints(face, weights), TETRA.faces, shape, without)
    np.testing.assert_array_equal(gone.faces, [0, 1, 2, -1, -1, -1])
