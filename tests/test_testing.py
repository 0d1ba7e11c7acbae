"""Assertions for descriptors and layers: each passes on a function with the property and fails on one without it."""

import numpy as np
import pytest
import torch
from analytic import bumpy

import acnn
from acnn.surface.simplify import remesh
from acnn.testing import assert_permutation_equivariant, assert_remeshing_stable, assert_rigid_invariant


@pytest.fixture(scope="module")
def mesh():
    return bumpy(3)


def from_centroid(mesh):
    return np.linalg.norm(mesh.vertices - mesh.vertices.mean(axis=0), axis=1)


def areas(mesh):
    return acnn.cotangent_laplacian(mesh.vertices, mesh.faces)[1].diagonal()


def test_distances_are_rigid_invariant(mesh) -> None:
    assert assert_rigid_invariant(from_centroid, mesh) < 1e-12
    assert assert_rigid_invariant(lambda mesh: torch.from_numpy(from_centroid(mesh)), mesh) < 1e-12


@pytest.mark.parametrize(
    "function",
    [
        lambda mesh: mesh.vertices,
        lambda mesh: np.linalg.norm(mesh.vertices, axis=1),  # rotation leaves it, translation does not
        lambda mesh: mesh.vertices - mesh.vertices.mean(axis=0),  # and the other way round
    ],
    ids=["coordinates", "translation", "rotation"],
)
def test_coordinates_are_not_rigid_invariant(mesh, function) -> None:
    with pytest.raises(AssertionError, match=r"Not invariant to rigid motion: vertex \d+, column \d .* of the largest"):
        assert_rigid_invariant(function, mesh)


def test_size_is_noticed_where_scaling_is_asked_for(mesh) -> None:
    assert_rigid_invariant(from_centroid, mesh)
    with pytest.raises(AssertionError, match=r"rigid motion and scaling by 3: .* 2 of the largest value where 0\.0001"):
        assert_rigid_invariant(from_centroid, mesh, scale=3.0)
    assert_rigid_invariant(lambda mesh: from_centroid(mesh) / from_centroid(mesh).mean(), mesh, scale=3.0)


def test_a_reflection_is_no_rigid_motion(mesh) -> None:
    """Signed volumes of tetrahedra keep their sign, whatever the seed of the rotation."""

    def chirality(mesh):
        a, b, c, d = mesh.vertices[[0, 100, 300, 500]]
        return np.full(len(mesh.vertices), np.dot(np.cross(b - a, c - a), d - a))

    for seed in range(6):
        assert_rigid_invariant(chirality, mesh, seed=seed)


def test_normals_of_clouds_turn_with_the_points(mesh) -> None:
    normals = acnn.surface_of(mesh).normals
    cloud = acnn.PointCloud(mesh.vertices, normals)

    def outward(cloud):
        return np.einsum("na,na->n", cloud.normals, cloud.vertices - cloud.vertices.mean(axis=0))

    assert_rigid_invariant(outward, cloud)
    assert_permutation_equivariant(outward, cloud)
    with pytest.raises(AssertionError, match="Not invariant"):
        assert_rigid_invariant(lambda cloud: cloud.normals, cloud)


def test_permutations_are_followed(mesh) -> None:
    assert assert_permutation_equivariant(lambda mesh: mesh.vertices, mesh) == 0
    assert assert_permutation_equivariant(areas, mesh) < 1e-9
    with pytest.raises(AssertionError, match=r"Not equivariant to the order of vertices: .* of the vertices change"):
        assert_permutation_equivariant(lambda mesh: np.arange(len(mesh.vertices)), mesh)
    with pytest.raises(AssertionError, match="Not equivariant"):
        assert_permutation_equivariant(lambda mesh: np.repeat(from_centroid(mesh)[:1], len(mesh.vertices)), mesh)


def test_functions_of_the_surface_are_stable_under_remeshing(mesh) -> None:
    assert assert_remeshing_stable(from_centroid, 0.05, mesh, copies=2) > 0
    with pytest.raises(
        AssertionError, match=r"Not stable under remeshing: the error is \d+\.\d+ of .* above the bound of 0\.5 \(642"
    ):
        assert_remeshing_stable(lambda mesh: np.bincount(mesh.faces.ravel()), 0.5, mesh)
    with pytest.raises(AssertionError, match=r"bound of 0\.5"):
        assert_remeshing_stable(lambda mesh: np.arange(len(mesh.vertices)), 0.5, mesh)


def test_the_error_of_independent_noise(mesh) -> None:
    """Noise of variance 1, drawn again for every mesh: sqrt((1 + v) / 2 v), with v its variance after interpolation."""
    random = np.random.default_rng(0)
    copy = remesh(mesh, seed=4)
    areas_of_copy = areas(copy.mesh)
    v = areas_of_copy @ (copy.truth.weights**2).sum(axis=1) / areas_of_copy.sum()
    error = assert_remeshing_stable(lambda mesh: random.standard_normal((len(mesh.vertices), 200)), 2.0, mesh, seed=4)
    assert error == pytest.approx(np.sqrt((1 + v) / (2 * v)), rel=0.01)


def test_constants_are_stable_and_constants_of_the_mesh_are_not(mesh) -> None:
    assert assert_remeshing_stable(lambda mesh: np.ones(len(mesh.vertices)), 0.0, mesh) == 0
    with pytest.raises(AssertionError, match="error is inf"):
        assert_remeshing_stable(lambda mesh: np.full(len(mesh.vertices), float(len(mesh.faces))), 10.0, mesh)


def test_results_of_a_wrong_form_are_named(mesh) -> None:
    with pytest.raises(AssertionError, match=r"shape \(1280, 3\) for the mesh: \(642, p\) is needed"):
        assert_rigid_invariant(lambda mesh: mesh.faces, mesh)
    with pytest.raises(AssertionError, match="not finite at 642 vertices of the mesh, the first of them 0"):
        assert_permutation_equivariant(lambda mesh: mesh.vertices * np.nan, mesh)
    with pytest.raises(acnn.InputError, match="positive"):
        assert_rigid_invariant(from_centroid, mesh, scale=-1.0)
    with pytest.raises(acnn.InputError, match="at least one"):
        assert_remeshing_stable(from_centroid, 1.0, mesh, copies=0)
    with pytest.raises(TypeError, match="mesh must be a Mesh or PointCloud, not ndarray"):
        assert_rigid_invariant(from_centroid, mesh.vertices)
