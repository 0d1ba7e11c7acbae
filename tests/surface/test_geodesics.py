import numpy as np
import pytest
from analytic import bumpy, cylinder, grid, permuted, rotation, sphere

from acnn.datasets import builtin_human
from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud
from acnn.surface import GeodesicSolver, geodesic_diameter, geodesics_from, surface_of
from acnn.surface.simplify import decimate


def test_a_surface_is_its_own_surface_in_any_unit() -> None:
    for shape in (bumpy(2), PointCloud(bumpy(2).vertices)):
        surface = surface_of(shape)
        assert surface_of(surface) is surface
        assert surface_of(surface, surface.unit) is surface
        other, wanted = surface_of(surface, 0.3), surface_of(shape, 0.3)
        assert (other.unit, other.is_cloud) == (wanted.unit, wanted.is_cloud)
        np.testing.assert_allclose(other.vertices, wanted.vertices, atol=1e-12)
        np.testing.assert_allclose(other.vertex_areas, wanted.vertex_areas)


@pytest.mark.parametrize(("method", "worst"), [("graph", 0.06), ("exact", 0.005)])
def test_distances_on_the_sphere_are_angles(method, worst):
    mesh = sphere(4)
    surface = surface_of(mesh, unit=1.0)
    sources = [0, 700]
    angles = np.arccos(np.clip(mesh.vertices[sources] @ mesh.vertices.T, -1, 1))
    found = geodesics_from(surface, sources, method)
    far = angles > 0.3
    assert np.abs(found[far] / angles[far] - 1).max() < worst
    assert np.abs(found[[0, 1], sources]).max() == 0


def test_graph_distances_are_never_shorter_than_exact_ones():
    surface = surface_of(bumpy())
    graph, exact = (geodesics_from(surface, [5, 77], method) for method in ("graph", "exact"))
    assert (graph > exact - 1e-9).all()


def test_blocks_give_the_rows_of_the_whole_matrix():
    surface = surface_of(bumpy(2))
    solver = GeodesicSolver(surface)
    rows = np.concatenate([block for _, block in solver.blocks(50)])
    assert rows.shape == (162, 162)
    assert np.array_equal(rows, solver.distances_from(np.arange(162)))
    assert np.allclose(rows, rows.T)


def test_other_components_are_infinitely_far():
    mesh = sphere(2)
    two = Mesh(np.concatenate([mesh.vertices, mesh.vertices + 5]), np.concatenate([mesh.faces, mesh.faces + 162]))
    for method in ("graph", "exact"):
        rows = geodesics_from(surface_of(two), [0], method)[0]
        assert np.isfinite(rows[:162]).all()
        assert np.isinf(rows[162:]).all()


def test_diameter_of_sphere_and_unrolled_cylinder():
    assert geodesic_diameter(surface_of(sphere(4), unit=1.0)) == pytest.approx(np.pi, rel=0.01)
    mesh = cylinder(48, 60)
    height = np.ptp(mesh.vertices[:, 2])
    assert geodesic_diameter(surface_of(mesh, unit=1.0)) == pytest.approx(np.hypot(height, np.pi), rel=0.01)


def test_the_unit_makes_the_diameter_200_whatever_pose_size_or_order():
    mesh = bumpy()
    base = surface_of(mesh)
    assert geodesic_diameter(base) == pytest.approx(200, rel=1e-9)
    moved = Mesh(mesh.vertices @ rotation(0).T * 1e-6 + 4.0e-6, mesh.faces)
    assert surface_of(moved).unit == pytest.approx(base.unit * 1e-6, rel=1e-9)
    assert surface_of(permuted(mesh, 0)[0]).unit == pytest.approx(base.unit, rel=1e-9)
    far = Mesh(mesh.vertices + 1e9, mesh.faces)
    assert surface_of(far).unit == pytest.approx(base.unit, rel=1e-4)


def test_the_largest_component_sets_the_unit():
    big, small = grid(20), grid(5)
    both = Mesh(
        np.concatenate([small.vertices + [100, 0, 0], big.vertices]),
        np.concatenate([small.faces, big.faces + len(small.vertices)]),
    )
    assert surface_of(both).unit == pytest.approx(surface_of(big).unit)


def test_bad_requests_are_refused():
    surface = surface_of(sphere(1))
    with pytest.raises(InputError, match="0 to 41"):
        geodesics_from(surface, [42])
    with pytest.raises(InputError, match="graph"):
        GeodesicSolver(surface, "flight")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="mesh"):
        GeodesicSolver(surface_of(PointCloud(sphere(3).vertices)), "exact")
    with pytest.raises(InputError, match="positive"):
        surface_of(sphere(1), unit=0.0)
    with pytest.raises(InputError, match="Vertex 12"):
        surface_of(Mesh(np.vstack([sphere(0).vertices, [[9.0, 9, 9]]]), sphere(0).faces))


def test_exact_distances_of_meshes_that_are_not_manifold_are_refused() -> None:
    mesh = sphere(1)
    several = (("3 faces meet", mesh.faces[0, [1, 0]].tolist() + [5]), ("a face has vertex 0 twice", [0, 0, 1]))
    for why, face in several:
        surface = surface_of(Mesh(mesh.vertices, np.vstack([mesh.faces, [face]])))
        with pytest.raises(InputError, match=why):
            geodesics_from(surface, [0], "exact")
        assert np.isfinite(geodesics_from(surface, [0], "graph")).all()


def test_distances_of_a_cloud_do_not_depend_on_the_order_of_its_points() -> None:
    human = builtin_human(2, 1)
    points = human.vertices[decimate(human.vertices, human.faces, 400)[0]]  # coarse: many triangles overlap
    order = np.random.default_rng(0).permutation(400)
    one, other = surface_of(PointCloud(points)), surface_of(PointCloud(points[order]))
    assert other.unit == pytest.approx(one.unit, rel=1e-9)
    sources = np.arange(0, 400, 40)
    np.testing.assert_allclose(geodesics_from(other, sources), geodesics_from(one, order[sources])[:, order], atol=1e-9)


def test_an_edge_of_three_faces_is_crossed_from_each_to_each() -> None:
    angles = np.radians([0.0, 120.0, 240.0])
    tips = np.column_stack([np.full(3, 0.5), np.cos(angles), np.sin(angles)])
    surface = surface_of(
        Mesh(np.vstack([[[0.0, 0, 0], [1, 0, 0]], tips]), np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4]])), 1.0
    )
    np.testing.assert_allclose(geodesics_from(surface, [2, 3, 4])[:, 2:], 2.0 * (1.0 - np.eye(3)), atol=1e-12)
