import numpy as np
import pytest
from analytic import bumpy, cylinder, grid, permuted, rotation

from acnn.datasets import builtin_human
from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud
from acnn.surface import exact_rows, principal_frames, stiffness_parts, surface_of
from acnn.surface.heat import ExactKernels, SpectralKernels
from acnn.surface.heat_rational import RationalKernels, fit_exponentials
from acnn.surface.heat_squaring import SquaringKernels


def exact(surface, t, alpha=100.0, theta=0.4, rows=None):
    parts = stiffness_parts(surface, principal_frames(surface))
    rows = np.arange(len(surface.vertices)) if rows is None else rows
    return exact_rows(parts.matrix(alpha, theta), surface.vertex_areas, t, rows)


def test_exact_rows_equal_all_eigenpairs():
    surface = surface_of(bumpy(2))
    root = np.sqrt(surface.vertex_areas)
    matrix = stiffness_parts(surface, principal_frames(surface)).matrix(100.0, 0.4).toarray()
    values, vectors = np.linalg.eigh(matrix / root / root[:, None])
    for t in (3.0, 24.0, 400.0):
        expected = (vectors * np.exp(-t * values)) @ vectors.T / root[:, None] * root
        assert np.abs(exact(surface, t) - expected).max() < 1e-11


def test_exact_rows_sum_to_1_are_symmetric_and_form_a_semigroup():
    surface = surface_of(bumpy(2))
    once, twice = exact(surface, 12.0), exact(surface, 24.0)
    weighted = surface.vertex_areas[:, None] * once
    assert np.abs(once.sum(axis=1) - 1).max() < 1e-8
    assert np.abs(weighted - weighted.T).max() < 1e-8
    assert np.abs(once @ once - twice).max() < 1e-8


@pytest.mark.parametrize("alpha", [1.0, 4.0, 25.0])
@pytest.mark.parametrize("theta", [0.0, 0.6, 2.0])
def test_flat_kernel_has_the_moments_of_the_anisotropic_gaussian(alpha, theta):
    """In the plane the kernel's covariance is 2 t D: 2 t along the axis at theta, 2 t / alpha across it."""
    mesh = grid(61)
    surface = surface_of(mesh, unit=1.0)
    frames = np.tile(np.eye(3)[:2], (len(mesh.faces), 1, 1))  # theta = 0 is the x axis
    middle = 30 * 61 + 30
    t = 12.0
    rows = RationalKernels(surface, frames).rows(alpha, [theta], [t], rows=np.array([middle]))
    weights = rows.dense(len(mesh.vertices), 0, 1)[0]
    offset = surface.vertices[:, :2] - surface.vertices[middle, :2]
    offset = offset - weights @ offset
    covariance = np.einsum("i,ia,ib->ab", weights, offset, offset)
    small, large = np.linalg.eigvalsh(covariance)
    assert large / small == pytest.approx(alpha, rel=0.05)
    assert large == pytest.approx(2 * t, rel=0.05)
    if alpha > 1:
        axis = np.linalg.eigh(covariance)[1][:, 1]
        turned = np.degrees(np.arctan2(axis[1], axis[0]) - theta)
        assert abs((turned + 90) % 180 - 90) < 2


def long_axis(surface, theta, vertex):
    """Angle of a kernel's long axis at a vertex of a cylinder, from 'around' towards the axis of the cylinder."""
    weights = exact(surface, 24.0, 25.0, theta, np.array([vertex]))[0]
    point = surface.vertices[vertex]
    turn = np.arctan2(surface.vertices[:, 1], surface.vertices[:, 0]) - np.arctan2(point[1], point[0])
    turn = (turn + np.pi) % (2 * np.pi) - np.pi
    flat = np.stack([turn * np.hypot(point[0], point[1]), surface.vertices[:, 2] - point[2]], axis=1)
    axis = np.linalg.eigh(np.einsum("i,ia,ib->ab", weights, flat, flat))[1][:, 1]
    return np.degrees(np.arctan2(axis[1], axis[0])) % 180


def test_theta_starts_around_a_cylinder_and_grows_counter_clockwise_from_outside():
    """Seen from outside with the axis upwards, counter-clockwise leads from 'around' (to the right) upwards."""
    mesh = cylinder()
    surface = surface_of(mesh)
    vertex = 30 * 48 + 5
    assert min(long_axis(surface, 0.0, vertex), 180 - long_axis(surface, 0.0, vertex)) < 2
    assert long_axis(surface, np.pi / 6, vertex) == pytest.approx(30, abs=3)
    assert long_axis(surface, np.pi / 2, vertex) == pytest.approx(90, abs=3)
    mirrored = surface_of(Mesh(mesh.vertices * [1, 1, -1], mesh.faces[:, ::-1]))
    assert long_axis(mirrored, np.pi / 6, vertex) == pytest.approx(30, abs=3)
    # The mirror image's own theta of 30 degrees is the original's kernel at 150 degrees, seen in the mirror.
    original = exact(surface, 24.0, 25.0, np.pi / 6, np.array([vertex]))
    reflected = exact(mirrored, 24.0, 25.0, np.pi - np.pi / 6, np.array([vertex]))
    assert np.abs(original - reflected).sum() < 1e-3


@pytest.mark.parametrize("times", [(3.0, 6.0, 12.0, 24.0), (60.0,), (10.0, 80.0)])
def test_rational_functions_keep_their_tolerance_everywhere(times):
    tau, coefficients = fit_exponentials(times, 1e-3)
    x = np.concatenate([[0.0], np.geomspace(1e-6, 1e9, 4000)])
    powers = (1 / (1 + tau * x)) ** np.arange(coefficients.shape[1])[:, None]
    error = np.abs(coefficients @ powers - np.exp(-np.outer(times, x)))
    assert error.max() < 1.1e-3
    assert error[:, 0].max() < 1e-10


@pytest.fixture(scope="module")
def human():
    return surface_of(builtin_human())


def difference(kernels, surface, times, rows, alpha=100.0, theta=0.4):
    found = kernels.rows(alpha, [theta], times, 1.0, rows)
    for s, t in enumerate(times):
        dense = found.dense(len(surface.vertices), s * len(rows), len(rows))
        yield np.abs(dense - exact(surface, t, alpha, theta, rows)).sum(axis=1), dense


def test_fast_kernel_on_the_built_in_human_is_exact_within_its_tolerance(human):
    rows = np.sort(np.random.default_rng(0).choice(len(human.vertices), 50, replace=False))
    kernels = RationalKernels(human, principal_frames(human))
    for error, dense in difference(kernels, human, [3.0, 6.0, 12.0, 24.0], rows):
        assert np.median(error) < 0.01
        assert error.max() < 0.05
        assert np.abs(dense.sum(axis=1) - 1).max() < 1e-6


def test_fast_kernel_is_symmetric_and_a_semigroup_within_its_error(human):
    kernels = RationalKernels(human, principal_frames(human))
    n = len(human.vertices)
    found = kernels.rows(100.0, [0.4], [12.0, 24.0])
    once, twice = found.dense(n, 0, n), found.dense(n, n, n)
    weighted = human.vertex_areas[:, None] * once
    assert np.abs(weighted - weighted.T).sum() / weighted.sum() < 1e-4
    assert np.abs(once @ once - twice).sum(axis=1).max() < 0.02


def test_wide_and_mixed_scales_are_exact_too(human):
    rows = np.arange(0, len(human.vertices), 100)
    for times in ([60.0], [240.0]):
        for error, _ in difference(RationalKernels(human, principal_frames(human)), human, times, rows):
            assert error.max() < 0.01


def test_the_other_kernels_do_what_they_say(human):
    rows = np.arange(0, len(human.vertices), 100)
    frames = principal_frames(human)
    for error, _ in difference(ExactKernels(human, frames), human, [3.0, 24.0], rows):
        assert error.max() < 1e-6
    for error, dense in difference(SquaringKernels(human, frames), human, [3.0, 6.0], rows):
        assert np.median(error) < 0.1
        assert np.abs(dense.sum(axis=1) - 1).max() < 1e-6
    for error, _ in difference(SpectralKernels(human, frames, 100), human, [400.0], rows):
        assert error.max() < 0.05
    with pytest.raises(InputError, match="power of two"):
        SquaringKernels(human, frames).rows(100.0, [0.0], [3.0, 7.0])
    with pytest.raises(InputError, match="factor of 8"):
        RationalKernels(human, frames).rows(100.0, [0.0], [3.0, 60.0])


def test_rows_do_not_change_with_rigid_motion_scale_or_order():
    mesh = bumpy(3)
    rows = np.arange(0, len(mesh.vertices), 20)

    def kernel(shape, some):
        surface = surface_of(shape)
        found = RationalKernels(surface, principal_frames(surface)).rows(
            100.0, [0.3, 1.2], [3.0, 24.0], 1.0, np.sort(some)
        )
        dense = found.dense(len(shape.vertices), 0, 4 * len(some)).reshape(4, len(some), -1)
        return dense[:, np.argsort(np.argsort(some))]

    base = kernel(mesh, rows)
    moved = Mesh(mesh.vertices @ rotation(1).T * 7.0 + [5.0, -3.0, 2.0], mesh.faces)
    assert np.abs(kernel(moved, rows) - base).sum(axis=2).max() < 1e-5
    other, place = permuted(mesh, 2)
    assert np.abs(kernel(other, place[rows])[:, :, place] - base).sum(axis=2).max() < 1e-5


def test_a_part_with_the_units_of_the_whole_has_the_same_kernels_far_from_the_cut():
    mesh = builtin_human()
    whole = surface_of(mesh)
    high = mesh.vertices[:, 1] > np.median(mesh.vertices[:, 1])
    kept = high[mesh.faces].all(axis=1)
    used = np.unique(mesh.faces[kept])
    number = np.full(len(mesh.vertices), -1)
    number[used] = np.arange(len(used))
    part = surface_of(Mesh(mesh.vertices[used], number[mesh.faces[kept]].astype(np.int32)), whole.unit)
    top = int(np.argmax(mesh.vertices[:, 1]))
    assert surface_of(Mesh(mesh.vertices[used], part.faces)).unit != pytest.approx(whole.unit, rel=0.05)
    difference = exact(part, 24.0, rows=number[[top]])[0] - exact(whole, 24.0, rows=np.array([top]))[0][used]
    assert np.abs(difference).sum() < 1e-3


def test_a_cloud_has_nearly_the_kernels_of_the_mesh():
    mesh = bumpy(4)
    surface = surface_of(mesh)
    cloud = surface_of(PointCloud(mesh.vertices), surface.unit)
    rows = np.arange(0, len(mesh.vertices), 50)
    isotropic = [exact(s, 24.0, 1.0, 0.0, rows) for s in (surface, cloud)]
    assert np.median(np.abs(isotropic[0] - isotropic[1]).sum(axis=1)) < 0.05


def test_large_shapes_have_an_elimination_order_for_each_cell_with_the_same_rows(human, monkeypatch):
    rows = np.arange(0, len(human.vertices), 100)
    frames = principal_frames(human)
    expected = RationalKernels(human, frames).rows(100.0, [0.4], [3.0, 24.0], 1.0, rows)
    monkeypatch.setattr("acnn.surface.heat_rational.ONE_ORDER", 0)
    found = RationalKernels(human, frames).rows(100.0, [0.4], [3.0, 24.0], 1.0, rows)
    n, count = len(human.vertices), 2 * len(rows)
    assert np.abs(found.dense(n, 0, count) - expected.dense(n, 0, count)).sum(axis=1).max() < 1e-5
