"""Classes of vertices: the body parts of the built-in humans, files of classes, and datasets labelled with them."""

import numpy as np
import pytest
from analytic import bumpy, write_bumps
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from acnn.datasets.builtin import BODY_PARTS, LIMBS, body_parts, builtin_humans
from acnn.datasets.labels import classes_from_file, segmented
from acnn.datasets.open import humans_dataset, open_dataset
from acnn.errors import InputError
from acnn.shapes import Mesh, save


def test_every_body_part_is_one_connected_region():
    faces, parts = builtin_humans().faces, body_parts().of_reference
    assert len(parts) == builtin_humans().vertices.shape[1]
    for part in range(len(BODY_PARTS)):
        inside = faces[(parts[faces] == part).all(axis=1)]
        used, corners = np.unique(inside, return_inverse=True)
        corners = corners.reshape(-1, 3)
        edges = np.ones(len(corners)), (corners[:, 0], corners[:, 1])
        more = np.ones(len(corners)), (corners[:, 1], corners[:, 2])
        graph = sum(sparse.coo_matrix(e, shape=(len(used), len(used))) for e in (edges, more))
        assert connected_components(graph, directed=False)[0] == 1, BODY_PARTS[part]
        assert len(used) > 30


def test_body_parts_of_left_and_right_are_mirror_images_and_lie_where_their_names_say():
    humans, parts = builtin_humans(), body_parts().of_reference
    count = len(LIMBS)
    other = np.array([0, 1, *range(2 + count, 2 + 2 * count), *range(2, 2 + count)])
    assert (other[parts] == parts[humans.mirror]).mean() > 0.99
    standing = humans.vertices[0]
    centre = {name: standing[parts == k].mean(axis=0) for k, name in enumerate(BODY_PARTS)}
    assert centre["left hand"][0] > 0.2 > -0.2 > centre["right hand"][0]
    order = ["head", "torso", "left thigh", "left shin", "left foot"]
    assert sorted(order, key=lambda name: -centre[name][1]) == order
    order = ["left upper arm", "left forearm", "left hand"]
    assert sorted(order, key=lambda name: -centre[name][1]) == order


def test_classes_are_those_of_the_points_on_the_reference_whatever_the_sampling(tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path))
    parts = body_parts().of_reference
    plain = segmented(humans_dataset()).named("human_03_02").read()
    assert np.array_equal(plain.labels, parts)
    assert plain.truth is None
    positions = plain.shape.vertices
    for data, name in (("humans+remeshed", "human_03_02_remeshed"), ("humans+clouds", "human_03_02_cloud")):
        example = segmented(open_dataset(data)).named(name).read()
        nearest = np.linalg.norm(example.shape.vertices[::10, None] - positions, axis=2).argmin(axis=1)
        assert (example.labels[::10] == parts[nearest]).mean() > 0.97, data
        assert set(example.labels) == set(range(len(BODY_PARTS)))


def test_classes_of_a_folder_come_from_one_file_over_the_reference(tmp_path):
    folder = write_bumps(tmp_path / "bumps", 2)
    assert open_dataset(folder).classes is None
    with pytest.raises(InputError, match=r"bumps: the classes .* not known: .*--classes FILE"):
        segmented(open_dataset(folder))
    classes = (bumpy(2).vertices[:, 2] > 0).astype(int)
    (folder / "classes.txt").write_text("".join(f"{k}\n" for k in classes))
    dataset = segmented(open_dataset(folder))
    assert dataset.classes.names == ("class 0", "class 1")
    assert np.array_equal(dataset.samples[1].read().labels, classes)
    (folder / "classes.names.txt").write_text("below\nabove\n")
    assert open_dataset(folder).classes.names == ("below", "above")
    np.save(tmp_path / "other.npy", np.where(classes == 1, -1, 0))
    other = segmented(open_dataset(folder), classes_from_file(tmp_path / "other.npy", dataset.reference))
    assert set(other.samples[0].read().labels) == {-1, 0}


def test_shapes_with_classes_of_their_own_need_no_correspondence(tmp_path):
    for i, detail in enumerate((1, 2)):
        mesh = bumpy(detail)
        save(mesh, tmp_path / f"shape_{i}.ply")
        np.save(tmp_path / f"shape_{i}.classes.npy", (mesh.vertices[:, 2] > 0).astype(np.int8))
    dataset = segmented(open_dataset(tmp_path))
    for sample, detail in zip(dataset.samples, (1, 2), strict=True):
        assert np.array_equal(sample.read().labels, bumpy(detail).vertices[:, 2] > 0)
    (tmp_path / "shape_1.classes.npy").unlink()
    with pytest.raises(InputError, match=r"looked for shape_1\.classes\.txt and shape_1\.classes\.npy"):
        segmented(open_dataset(tmp_path)).samples[1].read()
    np.save(tmp_path / "shape_1.classes.npy", np.array([0, 0xFFFF]))  # colours or other numbers, not classes
    with pytest.raises(InputError, match=r"shape_1\.classes\.npy: line 2 is 65535, but classes"):
        open_dataset(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("0\n1\n", "has 2 classes, but the shape has 3 vertices"),
        ("0\n1\n-2\n", "line 3 is -2"),
        ("0 1\n1 0\n1 1\n", "one per line"),
        ("-1\n-1\n-1\n", "no vertex has a class"),
        ("0\n1\n2\n", "line 3 is 2"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, content, words):
    (tmp_path / "parts.txt").write_text(content)
    (tmp_path / "parts.names.txt").write_text("one\ntwo\n")
    with pytest.raises(InputError, match=words):
        classes_from_file(tmp_path / "parts.txt", Mesh(np.eye(3), np.array([[0, 1, 2]], np.int32)))
