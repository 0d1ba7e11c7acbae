import numpy as np
import pytest
import trimesh

import acnn
from acnn.correspondence.refine import has_longer_boundary
from acnn.datasets.parts import cut_part
from acnn.errors import InputError
from acnn.shapes.mesh import Mesh, PointCloud
from acnn.shapes.topology import mesh_edges
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.simplify import split_long_edges
from acnn.surface.surface import surface_of
from acnn.surface.working_copy import farthest_points, reduced, working_copy


def _sphere(subdivisions):
    ball = trimesh.creation.icosphere(subdivisions=subdivisions)
    return Mesh(np.array(ball.vertices), np.array(ball.faces, np.int32))


def _box():
    box = trimesh.creation.box((1.0, 1.0, 3.0))
    return Mesh(np.array(box.vertices), np.array(box.faces, np.int32))


def _needles():
    """A sphere of 642 vertices, stretched to 20 times its width."""
    return Mesh(_sphere(3).vertices * [1.0, 0.05, 0.05], _sphere(3).faces)


def _edge_lengths(mesh):
    ends = mesh.vertices[mesh_edges(mesh.faces).vertices]
    return np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)


def test_a_small_shape_is_used_as_it_is():
    human = acnn.builtin_human()
    assert working_copy(human, 2500).shape is human
    assert working_copy(human, 0).shape is human
    assert not working_copy(human, 3000).is_copy


def test_a_copy_has_the_size_asked_for_and_lies_on_the_surface():
    human = acnn.builtin_human()
    copy = working_copy(human, 1000)
    assert copy.report["vertices"] == 2500
    assert copy.report["working"] == 1000
    same = (copy.shape.vertices == human.vertices[copy.vertices]).all(axis=1)
    assert same.mean() > 0.99  # the others are midpoints of long edges
    area, reduced_area = (surface_of(s, unit=1.0).vertex_areas.sum() for s in (human, copy.shape))
    assert reduced_area == pytest.approx(area, rel=0.04)
    apart = copy.points.interpolate(copy.shape.vertices[copy.shape.faces]) - human.vertices
    assert np.linalg.norm(apart, axis=1).mean() < 0.06 * _edge_lengths(copy.shape).mean()


def test_a_copy_does_not_depend_on_the_order_of_vertices():
    human = acnn.builtin_human()
    order = np.random.default_rng(0).permutation(2500)
    number = np.argsort(order).astype(np.int32)
    permuted = Mesh(human.vertices[order], number[human.faces][::-1].copy())
    first, second = working_copy(human, 800).shape, working_copy(permuted, 800).shape
    np.testing.assert_array_equal(first.vertices, second.vertices)


def _unevenness(mesh):
    """Mean over the area of the squared longest edge of a triangle; 1 where all are equilateral and of equal size."""
    corners = mesh.vertices[mesh.faces]
    longest = ((corners - np.roll(corners, 1, axis=1)) ** 2).sum(axis=2).max(axis=1)
    areas = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    total = areas.sum()
    return areas @ longest / (total * 2 / np.sqrt(3) * total / len(mesh.vertices))


def test_an_uneven_shape_becomes_even():
    copy = working_copy(_needles(), 600)
    assert len(copy.shape.vertices) == 600
    assert _unevenness(_needles()) > 4 * _unevenness(copy.shape)
    lengths = _edge_lengths(copy.shape)
    assert lengths.max() < 3 * np.median(lengths)
    area, after = (surface_of(shape, unit=1.0).vertex_areas.sum() for shape in (_needles(), copy.shape))
    assert after == pytest.approx(area, rel=0.08)


def test_splitting_edges_leaves_the_surface_as_it_was():
    points, faces = split_long_edges(_box().vertices, _box().faces, 0.3, limit=10**6)
    mesh = Mesh(points, faces)
    assert _edge_lengths(mesh).max() <= 0.3
    assert (mesh_edges(faces).counts == 2).all()
    assert surface_of(mesh, unit=1.0).vertex_areas.sum() == pytest.approx(14.0)


def test_the_boundary_of_a_part_stays_where_it_is():
    human = acnn.builtin_human()
    part, _ = cut_part(human, "cuts", missing=0.4)
    copy = working_copy(part, 400).shape
    before, after = (surface_of(shape, unit=1.0) for shape in (part, copy))
    assert has_longer_boundary(after, surface_of(human, unit=1.0))
    assert after.vertex_areas.sum() == pytest.approx(before.vertex_areas.sum(), rel=0.06)
    rim = [np.unique(shape.faces.ravel()[mesh_edges(shape.faces).boundary()]) for shape in (part, copy)]
    gaps = np.linalg.norm(part.vertices[rim[0]][:, None] - copy.vertices[rim[1]][None], axis=2)
    assert (gaps.min(axis=0) == 0).all()  # vertices of the copy's boundary are vertices of the part's
    assert gaps.min(axis=1).max() < 2 * _edge_lengths(copy).mean()


def test_points_of_a_cloud_are_spread_evenly():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3000, 3)) * [1.0, 1.0, 3.0]  # denser at the equator
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    copy = working_copy(PointCloud(points, points), 300).shape
    np.testing.assert_array_equal(copy.vertices, copy.normals)
    gaps = np.linalg.norm(copy.vertices[:, None] - copy.vertices[None], axis=2) + 9 * np.eye(300)
    assert gaps.min(axis=1).max() < 2 * gaps.min()
    assert len(set(farthest_points(points, 300))) == 300


def test_a_reduced_shape_lists_its_vertices(monkeypatch):
    for shape in (_sphere(4), PointCloud(_sphere(4).vertices)):
        small = reduced(shape, 500)
        assert len(small.vertices) == 500
        np.testing.assert_array_equal(small.vertices, shape.vertices[small.source.to_file])
        np.testing.assert_array_equal(small.source.from_file[small.source.to_file], np.arange(500))
    assert working_copy(_sphere(4), 1000).preview.source is None
    monkeypatch.setattr("acnn.surface.working_copy.PREVIEW", 1200)
    copy = working_copy(_sphere(4), 1000)
    assert len(copy.preview.vertices) == 1200
    assert len(copy.shape.vertices) == 1000


def test_debris_is_left_out_of_a_copy():
    ball = _sphere(4)
    speck = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * 1e-3
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
    parts = [(ball.vertices, ball.faces)] + [(speck + 2.0 + 0.01 * k, faces) for k in range(60)]
    starts = np.cumsum([0] + [len(vertices) for vertices, _ in parts])
    joined = [part[1] + start for part, start in zip(parts, starts, strict=False)]
    mesh = Mesh(np.concatenate([part[0] for part in parts]), np.concatenate(joined).astype(np.int32))
    copy = working_copy(mesh, 500)
    assert np.linalg.norm(copy.shape.vertices, axis=1).max() < 1.01
    assert len(copy.nearest) == len(mesh.vertices)


def test_a_size_that_is_too_small_is_refused():
    with pytest.raises(InputError, match="0 for none, or 100 or more"):
        working_copy(_box(), 20)


def test_closest_points_prefer_faces_of_the_same_direction():
    # two sheets, one just above the other, facing apart
    square = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    vertices = np.concatenate([square, square + [0, 0, 0.01]])
    faces = np.array([[0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7]], np.int32)
    closest = ClosestPoints(vertices, faces)
    point, down = [[0.5, 0.2, 0.009]], [[0.0, 0.0, -1.0]]
    assert closest(point).faces[0] >= 2
    assert closest(point, down).faces[0] < 2
    assert closest(point, down, reach=0.001).faces[0] >= 2
    assert closest(point, [[1.0, 0.0, 0.0]]).faces[0] >= 2  # no face has this direction
