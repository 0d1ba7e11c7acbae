import numpy as np
import pytest
from analytic import grid, random_sphere, rotation, sphere, subdivided, torus

from acnn.datasets import builtin_human
from acnn.errors import InputError
from acnn.shapes import PointCloud
from acnn.surface import eigenpairs, principal_frames, stiffness, surface_of, vertex_normals
from acnn.surface.cloud import quadric_tensors
from acnn.surface.simplify import decimate


def spectra(mesh, **cloud):
    surface = surface_of(mesh)
    points = surface_of(PointCloud(mesh.vertices, **cloud), surface.unit)
    values = [eigenpairs(stiffness(s), s.vertex_areas, 25)[0][1:] for s in (surface, points)]
    return np.abs(values[1] / values[0] - 1).max()


def test_a_torus_as_a_cloud_has_the_directions_and_eigenvalues_of_the_mesh():
    mesh, meridians = torus()
    surface = surface_of(PointCloud(mesh.vertices))
    expected = meridians[surface.faces].mean(axis=1)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    cosine = np.abs(np.einsum("ij,ij->i", principal_frames(surface)[:, 0], expected))
    assert np.mean(np.degrees(np.arccos(np.clip(cosine, 0, 1))) < 5) > 0.95
    assert spectra(mesh) < 0.03


def test_a_human_as_a_cloud_has_the_eigenvalues_of_the_mesh():
    coarse = builtin_human()
    assert spectra(coarse, normals=vertex_normals(coarse.vertices, coarse.faces)) < 0.03
    mesh = subdivided(coarse)  # fingers need more than 2,500 points for their sides to be told apart
    assert spectra(mesh) < 0.03


def test_estimated_normals_point_outwards():
    mesh = sphere(4)
    assert np.einsum("ij,ij->i", surface_of(PointCloud(mesh.vertices)).normals, mesh.vertices).min() > 0.99


def test_triangles_face_outwards_and_cover_the_surface_once():
    mesh = sphere(4)
    surface = surface_of(PointCloud(mesh.vertices), unit=1.0)
    assert np.einsum("ij,ij->i", surface.face_normals, surface.vertices[surface.faces].mean(axis=1)).min() > 0
    assert surface.vertex_areas.sum() == pytest.approx(4 * np.pi, rel=0.01)
    assert set(np.round(np.unique(surface.face_weights) * 3)) <= {1, 2, 3}


def test_an_open_cloud_ends_where_its_points_end():
    mesh = grid(15, jitter=0.1)
    surface = surface_of(PointCloud(mesh.vertices, np.tile([0.0, 0.0, 1.0], (225, 1))), unit=1.0)
    assert surface.vertex_areas.sum() == pytest.approx(14**2, rel=0.02)


def tube():
    """Points and normals of a cylinder on a regular grid of squares."""
    angle, height = np.meshgrid(np.arange(48) * np.pi / 24, np.arange(30) * np.pi / 24)
    normals = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1).reshape(-1, 3)
    return PointCloud(normals + height.reshape(-1, 1) * [0, 0, 1.0], normals)


CLOUDS = {
    "grid": lambda: PointCloud(grid(15).vertices),
    "grid with normals": lambda: PointCloud(grid(15).vertices, np.tile([0.0, 0.0, 1.0], (225, 1))),
    "tube": tube,
    "sphere": lambda: PointCloud(sphere(3).vertices),
    "random": lambda: PointCloud(random_sphere(800, 0).vertices),
    "human": lambda: PointCloud(builtin_human().vertices),
}


def weights_of(surface, numbers=None):
    """Weight of each triangle by its corners, under other numbers."""
    faces = np.sort(surface.faces if numbers is None else numbers[surface.faces], axis=1)
    return {tuple(face): round(weight, 9) for face, weight in zip(faces.tolist(), surface.face_weights, strict=True)}


def test_clouds_on_regular_grids_keep_their_area():
    surface = surface_of(CLOUDS["grid with normals"](), unit=1.0)
    expected = np.ones((15, 15))
    expected[[0, -1]] *= 0.5
    expected[:, [0, -1]] *= 0.5
    np.testing.assert_allclose(surface.vertex_areas, expected.ravel(), rtol=1e-12)
    assert surface_of(tube(), unit=1.0).vertex_areas.sum() == pytest.approx(2 * np.pi * 29 * np.pi / 24, rel=0.002)


@pytest.mark.parametrize("kind", CLOUDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_permuting_points_permutes_the_surface(kind, seed):
    cloud = CLOUDS[kind]()
    order = np.random.default_rng(seed).permutation(len(cloud.vertices))
    other = PointCloud(cloud.vertices[order], None if cloud.normals is None else cloud.normals[order])
    surface, permuted = surface_of(cloud, unit=1.0), surface_of(other, unit=1.0)
    assert weights_of(permuted, order) == weights_of(surface)
    np.testing.assert_allclose(permuted.vertex_areas, surface.vertex_areas[order], rtol=1e-9)
    np.testing.assert_allclose(permuted.normals, surface.normals[order], atol=1e-9)
    tensors = quadric_tensors(surface, 0.1), quadric_tensors(permuted, 0.1)
    np.testing.assert_allclose(tensors[1], tensors[0][order], atol=1e-6 * np.abs(tensors[0]).max() + 1e-9)


@pytest.mark.parametrize("kind", CLOUDS)
def test_rigid_motion_scale_and_single_precision_change_no_triangle(kind):
    cloud = CLOUDS[kind]()
    turn = rotation(3)
    normals = None if cloud.normals is None else cloud.normals @ turn.T
    moved = PointCloud(3 * cloud.vertices @ turn.T + [5.0, -2.0, 1.0], normals)
    rounded = PointCloud(moved.vertices.astype(np.float32).astype(float), normals)
    surface = surface_of(cloud, unit=1.0)
    for other, error in ((moved, 1e-9), (rounded, 1e-4)):
        found = surface_of(other, unit=3.0)
        assert weights_of(found) == weights_of(surface)
        np.testing.assert_allclose(found.vertex_areas, surface.vertex_areas, rtol=error)


def test_curvature_of_noisy_clouds_gets_steadier_with_density():
    spread = []
    for n in (1000, 6000):
        normals = random_sphere(n, 0).vertices
        radii = 1 + 0.01 * np.random.default_rng(1).standard_normal((n, 1))
        surface = surface_of(PointCloud(normals * radii, normals), unit=1.0)
        spread.append(np.einsum("ijj->i", quadric_tensors(surface, 0.2)).std() / 2)
    assert spread[1] < 0.6 * spread[0]


def test_too_few_or_coinciding_points_are_refused():
    with pytest.raises(InputError, match="at least 4"):
        surface_of(PointCloud(np.eye(3)))
    with pytest.raises(InputError, match="coincide"):
        surface_of(PointCloud(np.ones((5, 3))))


def test_a_point_too_far_away_for_any_triangle_is_named():
    points = np.vstack([random_sphere(200, 0).vertices, [[1e9, 0.0, 0.0]]])
    with pytest.raises(InputError, match=r"Point 200 of the cloud .* too far"):
        surface_of(PointCloud(points))


def test_a_point_that_noise_leaves_without_triangles_gets_one():
    random = np.random.default_rng(17)
    count = int(random.integers(60, 200))
    points = random.standard_normal((count, 3))
    points *= np.array([1.0, 1.0, 0.2]) / np.linalg.norm(points, axis=1, keepdims=True)
    surface = surface_of(PointCloud(points + random.normal(0, 0.08, (count, 3))))
    assert (surface.vertex_areas > 0).all()


def test_curvature_turns_with_the_cloud_where_points_are_few() -> None:
    human = builtin_human(0, 2)
    points = human.vertices[decimate(human.vertices, human.faces, 1000)[0]]  # too coarse for the fingers
    turn = rotation(3)
    tensors, turned = (quadric_tensors(surface_of(PointCloud(x)), 3.0) for x in (points, points @ turn.T))
    off = np.abs(turn @ tensors @ turn.T - turned).max(axis=(1, 2))
    assert (off < 1e-4 * np.abs(tensors).max(axis=(1, 2))).all()
