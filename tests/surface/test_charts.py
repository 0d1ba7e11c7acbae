import os
from pathlib import Path

import numpy as np
import potpourri3d as pp3d
import pytest
from analytic import bumpy, grid, permuted, sphere

from acnn.datasets.builtin import builtin_human
from acnn.errors import InputError
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh, PointCloud
from acnn.surface.charts import geodesic_charts
from acnn.surface.geodesics import geodesics_from
from acnn.surface.surface import surface_of

FAUST = Path(os.environ.get("ACNN_DATA", "")) / "faust/training/registrations/tr_reg_000.ply"


def wrapped(angle):
    return np.angle(np.exp(1j * angle))


def centred(angle):
    """Angles about their mean direction: the origin of a chart is free."""
    return wrapped(angle - np.angle(np.exp(1j * angle).mean()))


@pytest.mark.parametrize("jitter", [0.0, 0.3])
def test_charts_of_a_plane_are_polar_coordinates(jitter):
    surface = surface_of(grid(31, jitter), unit=1.0)
    charts = geodesic_charts(surface, 7.9)
    for centre in (15 * 31 + 15, 12 * 31 + 17):
        vertices, rho, theta = charts.chart(centre)
        offset = (surface.vertices - surface.vertices[centre])[:, :2] @ [1, 1j]
        assert vertices.tolist() == np.flatnonzero(np.abs(offset) <= 7.9).tolist()
        others = vertices != centre
        np.testing.assert_allclose(rho, np.abs(offset[vertices]), atol=1e-5)
        turn = (theta - np.angle(offset[vertices]))[others]
        assert np.abs(wrapped(turn - turn[0])).max() < 1e-5  # counter-clockwise about z, too


def test_fans_on_the_boundary_keep_their_angle():
    surface = surface_of(grid(21), unit=1.0)
    charts = geodesic_charts(surface, 6.0)
    corner, side, inner = 0, 10, 10 * 21 + 10
    assert charts.angles[[corner, side, inner]] == pytest.approx([np.pi / 2, np.pi, 2 * np.pi])
    for centre in (corner, side):
        vertices, rho, theta = charts.chart(centre)
        offset = (surface.vertices[vertices] - surface.vertices[centre])[:, :2] @ [1, 1j]
        np.testing.assert_allclose(rho, np.abs(offset), atol=1e-5)
        others = vertices != centre
        turn = wrapped(theta - np.angle(offset))[others]
        assert np.abs(wrapped(turn - turn[0])).max() < 1e-5
        assert theta.min() >= 0
        assert theta[others].max() == pytest.approx(charts.angles[centre], abs=1e-5)


def test_charts_of_a_sphere_are_great_circles():
    mesh = sphere(4)
    charts = geodesic_charts(surface_of(mesh, unit=1.0), 1.0)
    radius_errors, angle_errors = [], []
    for centre in range(0, len(charts), 97):
        vertices, rho, theta = charts.chart(centre)
        others = vertices != centre
        points, pole = mesh.vertices[vertices[others]], mesh.vertices[centre]
        exact = np.arccos(np.clip(points @ pole, -1, 1))
        x = np.cross(pole, [0.6, 0.0, 0.8] if abs(pole[2]) < 0.7 else [1.0, 0.0, 0.0])
        x /= np.linalg.norm(x)
        azimuth = np.arctan2(points @ np.cross(pole, x), points @ x)
        radius_errors.append(np.abs(rho[others] / exact - 1))
        angle_errors.append(np.abs(centred(theta[others] - azimuth)))
    assert np.concatenate(radius_errors).max() < 0.005
    assert np.median(np.concatenate(angle_errors)) < np.radians(1.0)
    assert np.concatenate(angle_errors).max() < np.radians(6.0)


def test_the_order_of_vertices_means_nothing():
    mesh = bumpy(3)
    other, place = permuted(mesh, 1)
    one, two = (geodesic_charts(surface_of(m, unit=0.02), 20.0) for m in (mesh, other))
    for centre in (0, 99, 600):
        vertices, rho, theta = one.chart(centre)
        order = np.argsort(place[vertices])
        found, found_rho, found_theta = two.chart(place[centre])
        assert found.tolist() == place[vertices][order].tolist()
        np.testing.assert_allclose(found_rho, rho[order], atol=1e-4)
        assert np.abs(wrapped(found_theta - theta[order])).max() < 1e-3


def test_same_bytes_on_any_number_of_threads():
    surface = surface_of(bumpy(3))
    one, two = (geodesic_charts(surface, 15.0, threads=t) for t in (1, 2))
    for name in ("offsets", "vertices", "rho", "theta", "angles"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()


def errors(surface, radius, sources):
    """Medians of the relative error of rho (exact geodesics) and of theta in degrees (affine log map)."""
    charts = geodesic_charts(surface, radius)
    exact = geodesics_from(surface, sources, "exact")
    solver = pp3d.MeshVectorHeatSolver(surface.vertices, surface.faces)
    radii, angles = [], []
    for centre, distances in zip(sources, exact, strict=True):
        vertices, rho, theta = charts.chart(centre)
        vertices, rho, theta = (a[vertices != centre] for a in (vertices, rho, theta))
        logarithm = solver.compute_log_map(int(centre), strategy="AffineAdaptive")[vertices]
        radii.append(np.abs(rho / distances[vertices] - 1))
        angles.append(np.abs(centred(theta - np.arctan2(logarithm[:, 1], logarithm[:, 0]))))
    return np.median(np.concatenate(radii)), np.degrees(np.median(np.concatenate(angles)))


@pytest.mark.slow
def test_charts_of_a_human_against_exact_distances_and_log_maps():
    surface = surface_of(builtin_human())
    sources = np.random.default_rng(0).choice(len(surface.vertices), 12, replace=False)
    radius_error, angle_error = errors(surface, 12.0, sources)
    assert radius_error < 0.01
    assert angle_error < 10


@pytest.mark.skipif(not FAUST.is_file(), reason="ACNN_DATA holds no FAUST")
@pytest.mark.slow
def test_charts_of_faust_against_exact_distances_and_log_maps():
    surface = surface_of(load(FAUST))
    radius_error, angle_error = errors(surface, 12.0, np.random.default_rng(1).choice(6890, 12, replace=False))
    assert radius_error < 0.01
    assert angle_error < 10


def test_what_has_no_charts_is_refused():
    mesh = sphere(1)
    with pytest.raises(InputError, match=r"cloud.*acnn"):
        geodesic_charts(surface_of(PointCloud(sphere(3).vertices)), 5.0)
    with pytest.raises(InputError, match="radius"):
        geodesic_charts(surface_of(mesh), -1.0)
    fin = Mesh(np.vstack([mesh.vertices, [[0.0, 0.0, 3.0]]]), np.vstack([mesh.faces, [*mesh.faces[0, :2], 42]]))
    with pytest.raises(InputError, match=r"3 triangles.*acnn"):
        geodesic_charts(surface_of(fin, unit=1.0), 1.0)
    touching = np.where(mesh.faces == 0, 0, mesh.faces + 41)
    far = np.vstack([mesh.vertices, 2 * mesh.vertices[0] - mesh.vertices[1:]])
    with pytest.raises(InputError, match=r"2 fans.*vertex 0.*acnn"):
        geodesic_charts(surface_of(Mesh(far, np.vstack([mesh.faces, touching]).astype(np.int32)), unit=1.0), 1.0)
    doubled = mesh.vertices.copy()
    doubled[mesh.faces[0, 1]] = doubled[mesh.faces[0, 0]]
    with pytest.raises(InputError, match=r"vertices \d+ and \d+, .* coincide"):
        geodesic_charts(surface_of(Mesh(doubled, mesh.faces), unit=1.0), 1.0)
