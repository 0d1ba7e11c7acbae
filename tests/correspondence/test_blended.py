"""Blended intrinsic maps: Moebius maps in closed form, flattening of a sphere, copies, refusals, built-in humans."""

from dataclasses import replace

import numpy as np
import pytest
from analytic import bumpy, cylinder, permuted, random_sphere, rotation, sphere, torus

from acnn.correspondence.blended import blended_map
from acnn.correspondence.conformal import (
    area_confidence,
    flatten,
    homogeneous,
    images,
    inverse,
    moebius_through,
    sphere_points,
)
from acnn.datasets import builtin_humans
from acnn.errors import InputError
from acnn.evaluation import ReferenceDistances
from acnn.shapes import Mesh
from acnn.surface.surface import surface_of


def random_points(count, seed):
    random = np.random.default_rng(seed)
    return homogeneous(random.normal(size=count) + 1j * random.normal(size=count))


def test_moebius_maps_go_through_three_points_also_at_infinity():
    source, target = random_points(30, 0).reshape(10, 3, 2), random_points(30, 1).reshape(10, 3, 2)
    source[0, 1], target[1, 2] = [1.0, 0.0], [1.0, 0.0]
    maps = moebius_through(source, target)
    mapped = np.einsum("kab,kib->kia", maps, source)
    np.testing.assert_allclose(sphere_points(mapped), sphere_points(target), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(maps), 1.0, atol=1e-12)


def test_moebius_map_is_the_known_fraction():
    z = np.array([0.3, 1.0 + 2.0j, -1.5j])
    known = lambda x: ((1 + 2j) * x + 3) / (1j * x + 2)  # noqa: E731
    found = moebius_through(homogeneous(z), homogeneous(known(z)))
    other = np.array([2.0 - 1j, 0.1j, -4.0])
    mapped = images(found[None], homogeneous(other))[0][0]
    np.testing.assert_allclose(mapped[:, 0] / mapped[:, 1], known(other), rtol=1e-12)


def test_moebius_maps_compose_and_invert():
    first, second, third = (random_points(3, seed) for seed in (2, 3, 4))
    forth, onward = moebius_through(first, second), moebius_through(second, third)
    points = random_points(20, 5)
    there = images((onward @ forth)[None], points)[0][0]
    np.testing.assert_allclose(
        sphere_points(there), sphere_points(images(moebius_through(first, third)[None], points)[0][0]), atol=1e-12
    )
    back = images(inverse(onward @ forth)[None], there)[0][0]
    np.testing.assert_allclose(sphere_points(back), sphere_points(points), atol=1e-12)


def test_change_of_area_is_that_of_a_small_triangle():
    mapping = moebius_through(random_points(3, 6), random_points(3, 7))[None]
    z = np.array([0.4 - 0.7j])
    small = homogeneous(z + 1e-5 * np.array([0, 1, 1j]))

    def area(vectors):
        a, b, c = sphere_points(vectors)
        return np.linalg.norm(np.cross(b - a, c - a))

    mapped, change = images(mapping, small)
    assert change[0, 0] == pytest.approx(np.log(area(mapped[0]) / area(small)), abs=1e-3)
    assert area_confidence(np.log([1.0, 2.0, 0.5])) == pytest.approx([1.0, 0.8, 0.8])


@pytest.mark.parametrize("mesh", [sphere(3), random_sphere(1500, 0)], ids=["regular", "irregular"])
def test_sphere_flattens_to_itself_up_to_a_moebius_map(mesh):
    flat = flatten(surface_of(mesh), puncture=5)
    assert (flat.flat_areas > 0).all()
    np.testing.assert_allclose(np.linalg.norm(flat.points, axis=1), 1.0, atol=1e-12)
    # The Moebius map through three vertices takes all others home.
    x, y, z = mesh.vertices.T
    original = homogeneous((x + 1j * y) / (1 + z + 1e-12))
    three = [int(np.argmax(mesh.vertices @ axis)) for axis in np.eye(3)]
    found = moebius_through(homogeneous(flat.coordinates[three]), original[three])
    home = sphere_points(images(found[None], homogeneous(flat.coordinates))[0][0])
    error = np.linalg.norm(home - mesh.vertices, axis=1)
    assert error.mean() < 0.02
    assert error.max() < 0.06


def test_flattening_keeps_angles_and_centres_the_area():
    surface = surface_of(bumpy(4))
    flat = flatten(surface)
    assert (flat.flat_areas > 0).all()
    np.testing.assert_allclose(surface.vertex_areas @ flat.points / surface.vertex_areas.sum(), 0, atol=1e-6)
    change = np.degrees(np.abs(corner_angles(flat.points[flat.faces]) - corner_angles(surface.vertices[flat.faces])))
    assert change.mean() < 2.0


def corner_angles(corners):
    after, before = np.roll(corners, -1, axis=1) - corners, np.roll(corners, 1, axis=1) - corners
    return np.arctan2(np.linalg.norm(np.cross(after, before), axis=2), (after * before).sum(axis=2))


def test_rotated_and_permuted_copy_is_mapped_to_itself():
    mesh = bumpy(3)
    copy, place = permuted(Mesh(3.0 * mesh.vertices @ rotation(1).T + 5.0, mesh.faces), 2)
    a, b = surface_of(mesh), surface_of(copy)
    found = blended_map(a, b)
    error = ReferenceDistances(b).between(found.a_to_b, place)
    assert error.mean() < 0.005
    images_on_b = found.points.interpolate(b.vertices[b.faces])
    assert np.linalg.norm(images_on_b - b.vertices[place], axis=1).mean() < 0.25 * b.mean_edge
    assert found.confidence.min() > 0.9
    assert found.confidence.max() <= 1.0
    assert found.soft_map().query_to_reference.tolist() == found.a_to_b.tolist()


def test_same_seed_gives_the_same_map_and_progress_is_reported():
    a, b = surface_of(bumpy(2)), surface_of(Mesh(bumpy(2).vertices * [1.0, 1.2, 1.0], bumpy(2).faces))
    steps = []
    first, second = blended_map(a, b, 3, lambda done, total: steps.append((done, total))), blended_map(a, b, 3)
    np.testing.assert_array_equal(first.a_to_b, second.a_to_b)
    np.testing.assert_array_equal(first.confidence, second.confidence)
    assert steps[-1] == (4, 4)
    assert first.report.as_dict()["candidates"] > 0


def test_unsuitable_shapes_are_refused_with_another_method():
    good = surface_of(bumpy(2))
    ball = sphere(1)
    two = Mesh(np.concatenate([ball.vertices, ball.vertices + 3]), np.concatenate([ball.faces, ball.faces + 42]))
    flipped = good.faces.copy()
    flipped[0] = flipped[0, ::-1]
    refused = {
        "boundary.*'pfm'": surface_of(cylinder(12, 8)),
        r"1 handle \(genus 1\).*'descriptors'": surface_of(torus(20, 12)[0]),
        "2 separate components.*'descriptors'": surface_of(two),
        "point cloud.*'descriptors' or 'acnn'": replace(good, is_cloud=True),
        "not oriented alike.*--repair": replace(good, faces=flipped),
    }
    for message, bad in refused.items():
        with pytest.raises(InputError, match=f"^A .*{message}"):
            blended_map(bad, good)
        with pytest.raises(InputError, match=f"^B .*{message}"):
            blended_map(good, bad)


@pytest.mark.slow
def test_humans_of_other_build_and_pose_are_matched():
    humans = builtin_humans()
    a, b = surface_of(humans.mesh(18)), surface_of(humans.mesh(0))
    found = blended_map(a, b)
    distances, everyone = ReferenceDistances(b), np.arange(len(humans.mirror))
    direct, mirrored = (distances.between(truth, found.a_to_b).mean() for truth in (everyone, humans.mirror))
    assert min(direct, mirrored) < 0.08
    assert 0.7 < found.report.mean_confidence < 1
    assert found.report.distortion < 0.06
