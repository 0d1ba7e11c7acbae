"""HKS and WKS: the sphere, integrals over the surface, scaling, bad input."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from acnn.descriptors import hks, hks_of, wks, wks_of
from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud
from acnn.surface.laplacian import stiffness
from acnn.surface.spectra import eigenpairs
from acnn.surface.surface import surface_of

RHO = 10.0


def ball(n, stretch=(1.0, 1.0, 1.0)):
    k = np.arange(n) + 0.5
    height, angle = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    flat = np.sqrt(1 - height**2)
    points = np.stack([flat * np.cos(angle), flat * np.sin(angle), height], axis=1)
    faces = ConvexHull(points).simplices
    a, b, c = (points[faces[:, i]] for i in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a + b + c) < 0
    return Mesh(RHO * points * stretch, np.where(inward[:, None], faces[:, ::-1], faces).astype(np.int32))


@pytest.fixture(scope="module")
def sphere():
    surface = surface_of(ball(2000), unit=1.0)
    return surface, *eigenpairs(stiffness(surface), surface.vertex_areas, 36)  # harmonics up to degree 5, whole


@pytest.fixture(scope="module")
def egg():
    surface = surface_of(ball(500, (1.0, 1.4, 2.0)), unit=1.0)
    return surface, *eigenpairs(stiffness(surface), surface.vertex_areas, 40)


def test_hks_of_a_sphere_is_the_series_of_its_harmonics(sphere):
    _, values, functions = sphere
    times = RHO**2 * np.array([0.05, 0.2, 1.0, 5.0])
    degree = np.arange(6)
    exact = ((2 * degree + 1) * np.exp(-np.outer(times / RHO**2, degree * (degree + 1)))).sum(axis=1) / (
        4 * np.pi * RHO**2
    )
    result = hks(values, functions, times=times)
    np.testing.assert_allclose(result, np.broadcast_to(exact, result.shape), rtol=0.03)


def test_wks_of_a_sphere_is_one_over_its_area(sphere):
    _, values, functions = sphere
    np.testing.assert_allclose(wks(values, functions, 20), 1 / (4 * np.pi * RHO**2), rtol=0.05)


def test_hks_is_the_sum_over_eigenpairs(egg):
    _, values, functions = egg
    result = hks(values, functions, times=[3.0, 40.0])
    for x in (0, 17, 333):
        for column, t in enumerate((3.0, 40.0)):
            expected = sum(np.exp(-t * value) * phi**2 for value, phi in zip(values, functions[x], strict=True))
            assert result[x, column] == pytest.approx(expected, rel=1e-12)


def test_default_times_follow_the_spectrum(egg):
    _, values, functions = egg
    times = 4 * np.log(10) / np.geomspace(values[-1], values[1], 7)
    np.testing.assert_allclose(hks(values, functions, 7), hks(values, functions, times=times), rtol=1e-10)


def test_integrals_over_the_surface(egg):
    surface, values, functions = egg
    area = surface.vertex_areas
    times = np.array([2.0, 30.0])
    np.testing.assert_allclose(area @ hks(values, functions, times=times), np.exp(-np.outer(times, values)).sum(axis=1))
    np.testing.assert_allclose(area @ hks(values, functions, 9, scaled=True), 1.0)
    np.testing.assert_allclose(area @ wks(values, functions, 9), 1.0)


def test_wks_bands(egg):
    """Narrow bands pick single eigenfunctions, even far outside the spectrum; seven steps are the default width."""
    _, values, functions = egg
    picked = wks(values, functions, energies=[np.log(values[1]), -900.0, 900.0], sigma=1e-3)
    np.testing.assert_allclose(picked, functions[:, [1, 1, -1]] ** 2, rtol=1e-6, atol=1e-12)
    low, high = np.log(values[1]), np.log(values[-1])
    sigma = 7 * (high - low) / (49 + 28)
    energies = np.linspace(low + 2 * sigma, high - 2 * sigma, 50)
    assert 7 * (energies[1] - energies[0]) == pytest.approx(sigma)
    np.testing.assert_allclose(wks(values, functions, 50), wks(values, functions, energies=energies), rtol=1e-10)


@pytest.mark.parametrize("signature", [hks, wks])
def test_size_cancels_out(egg, signature):
    """A shape three times as large has lambda / 9 and phi / 3; with its own times and energies only phi^2 shrinks."""
    _, values, functions = egg
    np.testing.assert_allclose(
        signature(values / 9, functions / 3, 11), signature(values, functions, 11) / 9, rtol=1e-9
    )


def test_wks_leaves_out_the_constants_of_every_component():
    values = np.array([1e-14, 2e-13, 0.5, 1.0, 2.0])
    functions = np.random.default_rng(0).standard_normal((6, 5))
    np.testing.assert_allclose(wks(values, functions, 5), wks(values[2:], functions[:, 2:], 5), rtol=1e-12)


@pytest.mark.parametrize("signature", [hks_of, wks_of])
def test_of_a_surface(egg, signature):
    surface, values, functions = egg
    plain = {hks_of: hks, wks_of: wks}[signature]
    np.testing.assert_allclose(signature(surface, 10, pairs=40), plain(values, functions, 10), rtol=1e-8)
    cloud = surface_of(PointCloud(surface.vertices, surface.normals), unit=1.0)
    ratio = signature(cloud, 10, pairs=40) / plain(values, functions, 10)
    assert np.abs(np.median(ratio, axis=0) - 1).max() < 0.1
    small = surface_of(ball(30), unit=1.0)
    assert np.isfinite(signature(small)).all()
    assert signature(small).shape == (30, 100)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v, f: hks(v[:-1], f), "do not fit together"),
        (lambda v, f: hks(v, f, 0), "at least 1"),
        (lambda v, f: hks(v, f, times=[1.0, -1.0]), "positive"),
        (lambda v, f: hks(v * np.nan, f), "finite"),
        (lambda v, f: hks(v[:2], f[:, :2]), "more eigenpairs"),
        (lambda v, f: wks(v, f, sigma=-1.0), "sigma"),
        (lambda v, f: wks(v, f, sigma=1e3), "do not fit between"),
        (lambda v, f: wks(v, f, energies=[1.0]), "sigma"),
        (lambda v, f: wks(v, f, energies=[[1.0]]), "list"),
    ],
)
def test_bad_input_is_refused(call, message):
    values, functions = np.array([0.0, 1.0, 2.0, 4.0]), np.eye(4)
    with pytest.raises(InputError, match=message):
        call(values, functions)
