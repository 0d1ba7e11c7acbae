"""SHOT: analytic planes and spheres, a slow reference, invariances."""

import itertools

import numpy as np
import pytest
from scipy.spatial import ConvexHull, cKDTree
from scipy.spatial.transform import Rotation

from acnn.descriptors import SHOT_LENGTH, shot
from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud
from acnn.surface.surface import Surface, surface_of
from acnn.testing import assert_permutation_equivariant, assert_remeshing_stable, assert_rigid_invariant

MOTION = Rotation.from_rotvec([0.4, -1.1, 0.7]).as_matrix()


def sphere_points(n):
    """Unit vectors of nearly equal density in no symmetric arrangement."""
    k = np.arange(n) + 0.5
    height, angle = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    flat = np.sqrt(1 - height**2)
    return np.stack([flat * np.cos(angle), flat * np.sin(angle), height], axis=1)


def hull_faces(directions):
    """Triangles over points of a sphere, counter-clockwise seen from outside."""
    faces = ConvexHull(directions).simplices
    a, b, c = (directions[faces[:, i]] for i in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a + b + c) < 0
    return np.where(inward[:, None], faces[:, ::-1], faces).astype(np.int32)


def bumpy(directions):
    """A smooth potato without any symmetry."""
    x, y, z = directions.T
    size = 1 + 0.25 * x * y + 0.2 * np.sin(2 * z + x) + 0.15 * y**3 + 0.1 * np.cos(3 * x + 2 * y)
    return directions * size[:, None] * [30.0, 22.0, 40.0]


def potato(n=400):
    directions = sphere_points(n)
    return Mesh(bumpy(directions), hull_faces(directions))


def slow_shot(surface, i, radius, area_weighted, majority):
    """One descriptor, by summing hat functions over all bins for one neighbour after another."""
    p, total = surface.vertices[i], np.zeros((8, 2, 2, 17))
    near = []
    for j, q in enumerate(surface.vertices):
        if j != i and np.linalg.norm(q - p) < radius:
            near.append((q - p, surface.normals[j], surface.vertex_areas[j] if area_weighted else 1.0))
    spread = sum(a * (radius - np.linalg.norm(q)) * np.outer(q, q) for q, _, a in near)
    axes = np.linalg.eigh(spread)[1]
    frame = {}
    for name, axis in (("x", axes[:, 2]), ("z", axes[:, 0])):
        moment = sum(a * (radius - np.linalg.norm(q)) * (q @ axis) for q, _, a in near)
        vote = sum(a * np.sign(q @ axis) for q, _, a in near) if majority else 0.0
        if abs(vote) < 1e-9:  # asked for moments, or as many on one side as on the other
            vote = moment
        frame[name] = axis if vote > 0 else -axis
    x, z = frame["x"], frame["z"]
    y = np.cross(z, x)

    def hats(value, centres, step, period=None):
        distance = np.abs(value - np.asarray(centres))
        if period:
            distance = np.minimum(distance, period - distance)
        return np.clip(1 - distance / step, 0, None)

    for q, normal, a in near:
        d = np.linalg.norm(q)
        azimuth = hats(np.degrees(np.arctan2(q @ y, q @ x)), -157.5 + 45.0 * np.arange(8), 45, 360)
        radial = hats(d, [radius / 4, 3 * radius / 4], radius / 2)
        elevation = hats(np.degrees(np.arcsin(q @ z / d)), [-45, 45], 90)
        cosine = hats(normal @ z, np.linspace(-1, 1, 17), 1 / 8)
        total += a * np.einsum("a,r,e,c->arec", azimuth, radial, elevation, cosine)
    return total.ravel() / np.linalg.norm(total)


@pytest.mark.parametrize(("area_weighted", "signs"), list(itertools.product([True, False], ["moment", "majority"])))
def test_compiled_equals_slow_reference(area_weighted, signs):
    surface = surface_of(potato(300), unit=1.0)
    fast = shot(surface, 18.0, area_weighted=area_weighted, signs=signs)
    for i in range(0, 300, 7):
        slow = slow_shot(surface, i, 18.0, area_weighted, signs == "majority")
        np.testing.assert_allclose(fast[i], slow, atol=1e-6)


def test_sphere_matches_the_integral_over_a_cap():
    """At chord d: area 2 pi d dd, elevation asin(d / 2 rho), and <z, n> = d^2 / (2 rho^2) - 1 as z points inwards."""
    rho, radius = 20.0, 12.0
    directions = sphere_points(4000)
    result = shot(surface_of(Mesh(rho * directions, hull_faces(directions)), unit=1.0), radius)
    around = result.reshape(-1, 8, 2, 2, 17).sum(axis=1)
    edges = np.linspace(0, radius, 4001)
    expected = np.zeros((2, 2, 17))
    for d in (edges[1:] + edges[:-1]) / 2:
        radial = np.clip(1 - np.abs(d - np.array([0.25, 0.75]) * radius) / (radius / 2), 0, None)
        elevation = np.clip(1 - np.abs(np.degrees(np.arcsin(d / 2 / rho)) - [-45, 45]) / 90, 0, None)
        cosine = np.clip(1 - np.abs(d**2 / (2 * rho**2) - 1 - np.linspace(-1, 1, 17)) * 8, 0, None)
        expected += d * np.einsum("r,e,c->rec", radial, elevation, cosine)
    expected /= expected.sum()
    around /= around.sum(axis=(1, 2, 3), keepdims=True)
    np.testing.assert_allclose(around.mean(axis=0), expected, atol=2e-3)
    assert np.abs(around - expected).max() < 0.02
    assert (result @ result.mean(axis=0)).min() > 0.98  # no vertex differs


def grid(side, turned):
    x, y = (a.ravel() for a in np.meshgrid(np.arange(side), np.arange(side), indexing="ij"))
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
    right, up, both = corner + side, corner + 1, corner + side + 1
    faces = np.concatenate([np.stack([corner, right, both], 1), np.stack([corner, both, up], 1)]).astype(np.int32)
    points = np.stack([x, y, np.zeros(side**2)], 1).astype(float)
    inner = np.flatnonzero((np.minimum(x, y) >= 4) & (np.maximum(x, y) < side - 4))
    return Mesh(points @ turned.T, faces), inner


def test_plane_has_one_descriptor_and_it_turns_with_the_plane():
    """On a square grid both tangent axes and all signs are ties: the frame must come from the shape even so."""
    mesh, inner = grid(14, np.eye(3))
    straight = shot(surface_of(mesh, unit=1.0), 3.3)[inner]
    turned = shot(surface_of(grid(14, MOTION)[0], unit=1.0), 3.3)[inner]
    np.testing.assert_allclose(straight, np.broadcast_to(straight[0], straight.shape), atol=1e-5)
    np.testing.assert_allclose(turned, straight, atol=1e-5)
    sectors = straight[0].reshape(8, 2, 2, 17)
    assert np.abs(sectors[..., 1:]).max() < 1e-6  # every normal against z, which points inwards
    np.testing.assert_allclose(sectors[:, :, 0], sectors[:, :, 1], atol=1e-6)  # no neighbour above or below
    np.testing.assert_allclose(sectors[:4], sectors[4:], atol=1e-6)  # half a turn maps the grid onto itself


def test_rows_are_float32_of_length_one():
    result = shot(surface_of(potato(), unit=1.0), 15.0)
    assert result.dtype == np.float32
    assert result.shape == (400, SHOT_LENGTH)
    np.testing.assert_allclose((result.astype(float) ** 2).sum(axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("signs", ["moment", "majority"])
def test_motion_scaling_and_permutation_change_nothing(signs):
    mesh = potato()
    assert_rigid_invariant(lambda mesh: shot(mesh, 15.0, signs=signs), mesh, scale=0.013)
    assert_rigid_invariant(lambda mesh: shot(mesh, 15.0, signs=signs, unit=1.0), mesh)
    assert_permutation_equivariant(lambda mesh: shot(mesh, 15.0, signs=signs), mesh)


def test_remeshing_a_human_changes_little():
    error = assert_remeshing_stable(lambda mesh: shot(mesh, 24.0), 0.5)
    assert error < assert_remeshing_stable(lambda mesh: shot(mesh, 24.0, area_weighted=False), 1.0)


def test_mirror_image_has_other_descriptors():
    mesh = potato()
    mirrored = Mesh(mesh.vertices * [-1.0, 1.0, 1.0], mesh.faces[:, ::-1].copy())
    cosine = (shot(surface_of(mesh, 1.0), 15.0) * shot(surface_of(mirrored, 1.0), 15.0)).sum(axis=1)
    assert np.median(cosine) < 0.9


def test_area_weights_make_triangulations_agree():
    even = sphere_points(1500)
    # The same surface, with the vertices crowded to one side.
    crowded = even + np.array([0.0, 0.0, 0.55])
    crowded /= np.linalg.norm(crowded, axis=1, keepdims=True)
    first = surface_of(Mesh(bumpy(even), hull_faces(even)), unit=1.0)
    second = surface_of(Mesh(bumpy(crowded), hull_faces(crowded)), unit=1.0)
    distance, nearest = cKDTree(bumpy(even)).query(bumpy(crowded))
    pairs = distance < 1.0

    def agreement(area_weighted):
        one, other = (shot(s, 15.0, area_weighted=area_weighted) for s in (first, second))
        return float((one[nearest[pairs]] * other[pairs]).sum(axis=1).mean())

    assert agreement(True) > 0.92
    assert agreement(True) > agreement(False) + 0.02


def test_cloud_is_close_to_its_mesh():
    mesh = potato(1500)
    surface = surface_of(mesh, unit=1.0)
    cloud = surface_of(PointCloud(mesh.vertices, surface.normals), unit=1.0)
    cosine = (shot(surface, 15.0) * shot(cloud, 15.0)).sum(axis=1)
    assert np.median(cosine) > 0.99
    assert cosine.mean() > 0.95


def test_upright_frames_stand_on_the_surface_and_survive_a_cut():
    whole = surface_of(potato(900), unit=1.0)
    assert (shot(whole, 14.0, upright=True) != shot(whole, 14.0)).any()
    turned = surface_of(Mesh(potato(900).vertices @ MOTION.T, potato(900).faces), unit=1.0)
    np.testing.assert_allclose(shot(turned, 14.0, upright=True), shot(whole, 14.0, upright=True), atol=1e-5)
    kept = np.flatnonzero(whole.vertices[:, 2] < 12.0)
    mesh = potato(900)
    number = np.full(900, -1)
    number[kept] = np.arange(len(kept))
    faces = number[mesh.faces]
    part = surface_of(Mesh(mesh.vertices[kept], faces[(faces >= 0).all(axis=1)].astype(np.int32)), unit=1.0)
    rim = kept[whole.vertices[kept, 2] > 2.0]
    cosine = {}
    for upright in (False, True):
        pair = shot(part, 14.0, upright=upright)[number[rim]], shot(whole, 14.0, upright=upright)[rim]
        cosine[upright] = float((pair[0] * pair[1]).sum(axis=1).mean())
    assert cosine[True] > cosine[False]


def test_too_few_neighbours_give_zeros():
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.1], [0.5, 0.4, 0.3], [0.2, 0.6, -0.2], [50, 0, 0.0]])
    faces = np.array([[0, 1, 3], [0, 3, 2], [4, 5, 6]], np.int32)
    surface = Surface(points, faces, np.ones(3), np.tile([0.0, 0.0, 1.0], (7, 1)), 1.0)
    result = shot(surface, 10.0)
    assert not result[6].any()
    np.testing.assert_allclose(np.linalg.norm(result[:6], axis=1), 1.0, atol=1e-6)  # five neighbours each
    assert not shot(surface, 0.01).any()


def test_doubled_points_and_lines_stay_finite():
    points = np.stack([np.arange(12.0), np.zeros(12), np.zeros(12)], axis=1)
    points[5] = points[4]
    faces = np.stack([np.arange(10), np.arange(1, 11), np.arange(2, 12)], axis=1).astype(np.int32)
    surface = Surface(points, faces, np.ones(10), np.tile([0.0, 0.6, 0.8], (12, 1)), 1.0)
    result = shot(surface, 6.5, area_weighted=False)
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), 1.0, atol=1e-6)


def test_threads_change_no_bit():
    surface = surface_of(potato(600), unit=1.0)
    assert shot(surface, 15.0, threads=1).tobytes() == shot(surface, 15.0, threads=3).tobytes()


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf])
def test_radius_must_be_positive(radius):
    with pytest.raises(InputError, match="radius"):
        shot(surface_of(potato(50), unit=1.0), radius)


def test_unknown_signs_are_refused():
    with pytest.raises(InputError, match="majority"):
        shot(surface_of(potato(50), unit=1.0), signs="normals")
