"""Generated families: closed genus-0 meshes, exact modes of bones, and folders that open as datasets."""

import json
from pathlib import Path

import numpy as np
import pytest

import acnn
from acnn.cli import main
from acnn.datasets.families import KINDS, make_family
from acnn.datasets.implicit import capsule_distances, mesh_of_field, smooth_union
from acnn.errors import InputError


def volume(vertices, faces):
    a, b, c = vertices[faces].transpose(1, 0, 2)
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6


def face_normals(vertices, faces):
    a, b, c = vertices[faces].transpose(1, 0, 2)
    return np.cross(b - a, c - a)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_closed_genus_0_oriented_and_not_folded(kind):
    family = make_family(kind, 3, vertices=1000, seed=4)
    assert family.vertices.shape == (3, 1000, 3)
    edges, counts = np.unique(
        np.sort(family.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)), axis=0, return_counts=True
    )
    assert (counts == 2).all()
    assert 1000 - len(edges) + len(family.faces) == 2  # one component without handles: Euler characteristic of a sphere
    directed = family.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    assert len(np.unique(directed, axis=0)) == len(directed)  # neighbours are oriented alike
    for vertices in family.vertices:
        assert volume(vertices, family.faces) > 0
        cross = face_normals(vertices, family.faces)
        area = np.linalg.norm(cross, axis=1)
        assert area.min() > 1e-4 * area.mean()


def test_meshed_sphere_lies_on_the_sphere():
    def field(points):
        return np.linalg.norm(points, axis=1) - 0.5

    points, faces = mesh_of_field(
        field, np.full(3, -0.7), np.full(3, 0.7), 0.07, 400, lambda points: np.ones(len(points))
    )
    assert np.abs(np.linalg.norm(points, axis=1) - 0.5).max() < 1e-6
    assert volume(points, faces) == pytest.approx(np.pi / 6, rel=0.03)
    length = np.linalg.norm(points[faces[:, 0]] - points[faces[:, 1]], axis=1)
    assert length.max() < 4 * length.min()


def test_distance_to_a_capsule_and_union():
    start, end, radii = np.zeros((1, 3)), np.array([[2.0, 0, 0]]), np.array([[0.5, 1.0]])
    points = np.array([[-1.0, 0, 0], [1, 3, 0], [4, 0, 0]])
    assert np.allclose(capsule_distances(points, start, end, radii)[:, 0], [0.5, 2.25, 1.0])
    two = np.array([[1.0, 1.0], [0.0, 5.0]])
    assert np.allclose(smooth_union(two, 0.1), [1 - 0.1 * np.log(2), 0.0])


def test_bones_are_the_template_plus_orthogonal_modes():
    family = make_family("bone", 5, vertices=800, seed=2)
    assert family.modes is not None
    modes = family.modes.reshape(5, -1)
    assert np.allclose(family.vertices, family.template + np.einsum("sp,pnd->snd", family.parameters, family.modes))
    gram = modes @ modes.T
    assert np.allclose(gram, np.diag(np.diag(gram)), atol=1e-9)
    centred = family.template - family.template.mean(axis=0)
    for axis in np.eye(3):
        for motion in (np.tile(axis, (800, 1)), np.cross(axis, centred)):
            assert np.abs(modes @ motion.ravel()).max() < 1e-9
    assert np.abs(modes @ centred.ravel()).max() < 1e-9
    # at three standard deviations of each mode no face turns over
    for mode in family.modes:
        for sign in (-3, 3):
            bent = face_normals(family.template + sign * mode, family.faces)
            rest = face_normals(family.template, family.faces)
            assert np.einsum("ij,ij->i", bent, rest).min() > 0


def test_families_depend_on_the_seed_only():
    small, large = make_family("hand", 2, vertices=900, seed=3), make_family("hand", 4, vertices=900, seed=3)
    assert np.array_equal(small.vertices, large.vertices[:2])
    assert not np.allclose(small.vertices, make_family("hand", 2, vertices=900, seed=4).vertices)
    still = make_family("hand", 1, vertices=900, pose=0.0, seed=3)
    assert np.array_equal(still.parameters[0, :7], small.parameters[0, :7])
    assert not still.parameters[0, 7:].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "fish"}, "bone, hand or quadruped"),
        ({"kind": "bone", "count": 0}, "at least 1"),
        ({"kind": "bone", "vertices": 10}, "600"),
        ({"kind": "bone", "pose": 2.0}, "0 to 1"),
        ({"kind": "bone", "seed": -1}, "seed"),
    ],
)
def test_invalid_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        make_family(**arguments)


def test_command_writes_a_dataset(tmp_path: Path, capsys):
    folder = tmp_path / "bones"
    command = ["data", "family", "bone", "--out", str(folder), "--vertices", "700", "--json"]
    assert main([*command, "--count", "5", "--remesh"]) == 0
    assert json.loads(capsys.readouterr().out)["shapes"] == 5
    dataset = acnn.open_dataset(folder)
    assert [sample.split for sample in dataset.samples] == ["train"] * 4 + ["test"]
    example = dataset.samples[1].read()
    assert len(example.shape.vertices) != 700
    # the exact ground truth lies on the template where the member has its vertex, moved by the known modes
    family = make_family("bone", 5, vertices=700)
    moved = example.truth.interpolate(family.vertices[1][family.faces])
    assert np.linalg.norm(moved - example.shape.vertices, axis=1).max() < 0.01
    # a smaller family of the same kind replaces it, and leaves nothing behind
    assert main([*command, "--count", "3"]) == 0
    assert sorted(path.name for path in folder.glob("*.ply")) == [
        *(f"bone_{i:03d}.ply" for i in range(3)),
        "reference.ply",
    ]
    assert not list(folder.glob("*.truth.txt"))
    assert np.allclose(acnn.open_dataset(folder).samples[2].read().shape.vertices, family.vertices[2], atol=1e-6)
    # another one does not
    other = ["data", "family", "hand", "--out", str(folder), "--count", "3"]
    assert main(other) == 2
    assert "already exists" in capsys.readouterr().err
