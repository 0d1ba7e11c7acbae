import numpy as np

import acnn
from acnn.correspondence.lift import lift_map, lift_soft_map
from acnn.correspondence.soft_map import soft_map_from_point_map
from acnn.datasets.builtin import builtin_humans
from acnn.shapes.mesh import Mesh, PointCloud
from acnn.surface.surface import surface_of
from acnn.surface.working_copy import working_copy


def _copies(size=1000):
    """Two built-in humans in different poses with copies of their own; vertex i corresponds to vertex i."""
    humans = builtin_humans()
    return tuple(working_copy(humans.mesh(k), size) for k in (0, 11))


def _true_map(a, b):
    """Vertex of B's copy nearest, on B, to the vertex of each vertex of A's copy."""
    gaps = np.linalg.norm(b.original.vertices[a.vertices][:, None] - b.shape.vertices[None], axis=2)
    return gaps.argmin(axis=1).astype(np.int32)


def test_a_known_map_is_lifted_to_all_vertices():
    a, b = _copies()
    surfaces = tuple(surface_of(copy.shape) for copy in (a, b))
    lifted = lift_map(_true_map(a, b), a, b, surfaces)
    truth = b.original.vertices
    edge = surfaces[1].mean_edge * surfaces[1].unit
    apart = np.linalg.norm(truth[lifted.a_to_b] - truth, axis=1)
    assert np.mean(apart) < 0.35 * edge
    assert np.quantile(apart, 0.99) < 1.2 * edge
    inside = lifted.points.interpolate(truth[b.original.faces])
    assert np.linalg.norm(inside - truth, axis=1).mean() < 0.25 * edge


def test_the_identity_of_a_sphere_is_lifted_to_the_identity():
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=4)
    sphere = Mesh(np.array(ball.vertices), np.array(ball.faces, np.int32))
    copy = working_copy(sphere, 600)
    surface = surface_of(copy.shape)
    lifted = lift_map(np.arange(600, dtype=np.int32), copy, copy, (surface, surface))
    inside = lifted.points.interpolate(sphere.vertices[sphere.faces])
    assert np.linalg.norm(inside - sphere.vertices, axis=1).max() < 0.5 * surface.mean_edge * surface.unit
    assert (lifted.a_to_b == np.arange(len(sphere.vertices))).mean() > 0.8


def test_permuting_vertices_permutes_the_lifted_map():
    a, b = _copies()
    order = np.random.default_rng(0).permutation(2500)
    number = np.argsort(order).astype(np.int32)
    shuffled = working_copy(Mesh(a.original.vertices[order], number[a.original.faces]), 1000)
    np.testing.assert_array_equal(shuffled.shape.vertices, a.shape.vertices)
    maps = []
    for copy in (a, shuffled):
        surfaces = surface_of(copy.shape), surface_of(b.shape)
        maps.append(lift_map(_true_map(a, b), copy, b, surfaces).a_to_b)
    assert (maps[1] == maps[0][order]).mean() > 0.999


def test_clouds_are_lifted_to_points():
    a, b = _copies()
    clouds = [working_copy(PointCloud(copy.original.vertices), 1000) for copy in (a, b)]
    surfaces = tuple(surface_of(copy.shape) for copy in clouds)
    lifted = lift_map(_true_map(*clouds), *clouds, surfaces)
    assert lifted.points is None
    apart = np.linalg.norm(b.original.vertices[lifted.a_to_b] - b.original.vertices, axis=1)
    assert np.median(apart) < 0.6 * surfaces[1].mean_edge * surfaces[1].unit


def test_where_the_map_is_discontinuous_no_vertex_lands_between():
    human = builtin_humans().mesh(0)
    copy = working_copy(human, 1000)
    surface = surface_of(copy.shape)
    # left and right halves go to two single vertices far apart
    low, high = copy.shape.vertices[:, 0].argmin(), copy.shape.vertices[:, 0].argmax()
    collapsed = np.where(copy.shape.vertices[:, 0] < 0, low, high).astype(np.int32)
    lifted = lift_map(collapsed, copy, copy, (surface, surface))
    images = human.vertices[lifted.a_to_b]
    ends = copy.shape.vertices[[low, high]]
    gaps = np.linalg.norm(images[:, None] - ends[None], axis=2).min(axis=1)
    assert gaps.max() < 2 * surface.mean_edge * surface.unit


def test_shapes_that_were_not_copied_keep_their_map():
    copy = working_copy(acnn.builtin_human(), 3000)
    surface = surface_of(copy.shape)
    given = np.arange(2500, dtype=np.int32)[::-1]
    assert lift_map(given, copy, copy, (surface, surface)).a_to_b is given


def test_a_soft_map_is_lifted_with_its_candidates():
    a, b = _copies(500)
    soft = lift_soft_map(soft_map_from_point_map(_true_map(a, b), 500), a, b)
    assert soft.vertices.shape == (2500, 1)
    assert soft.reference_size == 2500
    apart = np.linalg.norm(b.original.vertices[soft.query_to_reference] - b.original.vertices, axis=1)
    assert np.median(apart) < 1.5 * surface_of(b.shape, unit=1.0).mean_edge
