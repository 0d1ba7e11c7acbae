"""Carrying textures, shapes and landmarks along maps whose truth is known."""

import numpy as np
import pytest
from analytic import bumpy, cylinder, permuted, rotation, sphere, subdivided

from acnn.correspondence.texture import colors_at, sampled, transfer_texture
from acnn.correspondence.transfer import landmarks_on_query
from acnn.errors import InputError
from acnn.shapes import Mesh
from acnn.shapes.mesh import BarycentricPoints, Texture
from acnn.surface import surface_of
from acnn.surface.closest_points import ClosestPoints


def wrapped(mesh, size=128, repeat=1.0):
    """The mesh with a smooth picture laid around the z axis: one chart that is cut open along a line."""
    x, y, z = mesh.vertices.T
    u = np.arctan2(y, x) / (2 * np.pi) % 1
    corner = np.stack([u, (z - z.min()) / np.ptp(z)], axis=1)[mesh.faces]
    over = np.ptp(corner[..., 0], axis=1) > 0.5
    corner[over, :, 0] += corner[over, :, 0] < 0.5
    corner[..., 0] *= 0.5 * repeat  # so that the two sides of the cut show different colours
    uv, index = np.unique(corner.reshape(-1, 2), axis=0, return_inverse=True)
    row, column = np.mgrid[:size, :size] / size
    waves = [127 + 120 * np.sin(4 * np.pi * column), 127 + 120 * np.cos(3 * row), 255 * row]
    image = np.stack(waves, axis=-1).astype(np.uint8)
    return Mesh(mesh.vertices, mesh.faces, texture=Texture(uv, index.reshape(-1, 3).astype(np.int32), image))


def colors_of(mesh, points):
    return sampled(mesh.texture.image, points.interpolate(mesh.texture.uv[mesh.texture.uv_faces]))


def random_points(mesh, count=4000, seed=0):
    rng = np.random.default_rng(seed)
    return BarycentricPoints(rng.integers(0, len(mesh.faces), count), rng.dirichlet([1, 1, 1], count))


def test_the_same_triangles_in_another_order_wear_the_same_picture():
    b = wrapped(bumpy(2))
    a, place = permuted(b, 3)
    inverse = np.argsort(place)
    texture, crossing = transfer_texture(a, b, BarycentricPoints.at_vertices(b.faces, inverse))
    assert crossing == 0  # seams run along edges
    dressed = Mesh(a.vertices, a.faces, texture=texture)
    points = random_points(a)
    on_b = ClosestPoints(b.vertices, b.faces)(points.interpolate(a.vertices[a.faces]))
    assert np.quantile(np.abs(colors_of(dressed, points) - colors_of(b, on_b)).max(axis=1), 0.995) < 1


@pytest.mark.parametrize("repeat", [1.0, 3.0])
def test_faces_across_a_seam_are_painted_from_the_surface(repeat):
    b = wrapped(cylinder(24, 16), repeat=repeat)
    turn = np.pi / 24  # half a triangle further, so that faces cross the cut
    spin = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
    a = Mesh(b.vertices @ spin.T, b.faces)
    closest = ClosestPoints(b.vertices, b.faces)
    texture, crossing = transfer_texture(a, b, closest(a.vertices))
    assert 15 <= crossing < len(a.faces) / (2 if repeat > 1 else 4)
    points = random_points(a)
    truth = colors_of(b, closest(points.interpolate(a.vertices[a.faces])))
    off = np.abs(colors_of(Mesh(a.vertices, a.faces, texture=texture), points) - truth).max(axis=1)
    assert np.quantile(off, 0.99) < 12 * repeat
    assert off.mean() < 4 * repeat
    bare, again = transfer_texture(
        a, Mesh(b.vertices, b.faces, texture=Texture(b.texture.uv, b.texture.uv_faces)), closest(a.vertices)
    )
    assert bare.image is None
    assert again > 0


def test_a_texture_comes_back_as_it_was():
    b = wrapped(bumpy(2))
    fine = subdivided(b)
    a = Mesh(fine.vertices @ rotation(2).T, fine.faces)
    to_b = ClosestPoints(b.vertices, b.faces)(fine.vertices)
    there, _ = transfer_texture(a, b, to_b)
    # back: every vertex of B is a vertex of A
    back, _ = transfer_texture(
        b, Mesh(a.vertices, a.faces, texture=there), BarycentricPoints.at_vertices(a.faces, np.arange(len(b.vertices)))
    )
    points = random_points(b)
    off = np.abs(colors_of(Mesh(b.vertices, b.faces, texture=back), points) - colors_of(b, points)).max(axis=1)
    assert off.mean() < 1
    assert np.quantile(off, 0.99) < 12


def test_colours_of_vertices_and_of_pictures():
    b = wrapped(sphere(1))
    points = random_points(b, 50)
    from_picture = colors_at(b, points)
    np.testing.assert_array_equal(from_picture[:, :3], np.rint(colors_of(b, points)))
    assert (from_picture[:, 3] == 255).all()
    own = np.random.default_rng(0).integers(0, 256, (len(b.vertices), 4)).astype(np.uint8)
    at = BarycentricPoints.at_vertices(b.faces, [3, 1])
    np.testing.assert_array_equal(colors_at(Mesh(b.vertices, b.faces, own, b.texture), at), own[[3, 1]])
    with pytest.raises(InputError, match="neither"):
        colors_at(Mesh(b.vertices, b.faces), at)
    with pytest.raises(InputError, match="texture coordinates"):
        transfer_texture(b, Mesh(b.vertices, b.faces), points)


def test_landmarks_follow_the_map_backwards():
    b = bumpy(2)
    a, place = permuted(b, 1)
    inverse = np.argsort(place)
    marks = np.array([0, 17, 80])
    surface = surface_of(b)
    np.testing.assert_array_equal(landmarks_on_query(marks, inverse, a.vertices, surface), place[marks])
    # vertex 17 is hit by nothing: the nearest that is hit stands in for it
    moved = np.where(inverse == 17, 0, inverse)
    found = landmarks_on_query([17], moved, a.vertices, surface)[0]
    assert np.linalg.norm(a.vertices[found] - b.vertices[17]) < 0.6
    with pytest.raises(InputError, match="landmarks"):
        landmarks_on_query([len(b.vertices)], inverse, a.vertices, surface)


def two_pieces():
    """Two spheres side by side, the second of them vertices 42 to 83."""
    ball = sphere(1)
    return Mesh(np.vstack([ball.vertices, ball.vertices + [3.0, 0, 0]]), np.vstack([ball.faces, ball.faces + 42]))


def test_a_landmark_on_a_piece_that_nothing_matches_goes_to_the_nearest_place():
    b = two_pieces()
    ball = sphere(1)
    mark = 42 + int(ball.vertices[:, 0].argmin())
    found = landmarks_on_query([mark], np.arange(42), ball.vertices, surface_of(b))[0]
    apart = np.linalg.norm(ball.vertices - b.vertices[mark], axis=1)
    assert apart[found] == pytest.approx(apart.min())
