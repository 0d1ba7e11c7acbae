import numpy as np
import pytest
import torch
from analytic import bumpy, grid, permuted

from acnn.errors import InputError
from acnn.network.conv import IntrinsicConv
from acnn.network.patches import Patches
from acnn.patches.geodesic import AS_PUBLISHED, WIDER, build_geodesic_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import GeodesicPatchSettings
from acnn.shapes.mesh import PointCloud
from acnn.surface.surface import surface_of

SETTINGS = GeodesicPatchSettings(radius=30.0, radial_width=0.5)


@pytest.fixture(scope="module")
def mesh():
    return bumpy(3)


@pytest.fixture(scope="module")
def operator(mesh):
    return build_geodesic_patches(mesh, SETTINGS)


def rolled(operator, shifts):
    """The operator with the rays of every vertex renumbered: ray r becomes ray r + shift."""
    s, n = operator.settings, operator.n
    rows = np.arange(s.angles * len(s.scales) * n).reshape(s.angles, len(s.scales), n)
    source = np.stack([np.roll(rows[..., i], shifts[i], axis=0) for i in range(n)], axis=2).ravel()
    lengths = np.diff(operator.start)[source]
    start = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.concatenate([np.arange(operator.start[k], operator.start[k + 1]) for k in source])
    arrays = operator.vertices[entries], operator.values[entries], operator.eigenvalues, operator.eigenfunctions
    return PatchOperator(start, *arrays, operator.vertex_areas, operator.unit, s, operator.report)


def test_every_bin_sums_to_1(operator):
    lengths = np.diff(operator.start)
    assert len(lengths) == 16 * 5 * operator.n
    assert lengths.min() >= 1
    sums = np.add.reduceat(operator.values.astype(float), operator.start[:-1])
    assert np.abs(sums - 1).max() < 2e-5
    assert operator.values.min() >= 0
    assert operator.wide == ()
    assert operator.apply(np.ones((operator.n, 1))) == pytest.approx(1.0, abs=1e-4)


def test_bins_on_a_plane_lie_at_their_ring_and_ray():
    mesh = grid(41)
    surface = surface_of(mesh, unit=1.0)
    settings = GeodesicPatchSettings(radius=10.0, radial_width=0.5)
    patches = build_geodesic_patches(surface, settings).apply(surface.vertices[:, :2])
    centre = 20 * 41 + 20
    offset = (patches[centre] - surface.vertices[centre, :2]) @ [1, 1j]  # (rays, rings)
    turn = np.angle(offset[:, 2:] * np.exp(-1j * settings.thetas)[:, None])
    origin = np.angle(np.exp(1j * turn).mean())
    # Bins are averages over vertices one apart: at radius 6 and more that is a tenth of the radius.
    assert np.abs(np.angle(np.exp(1j * (turn - origin)))).max() < 0.15
    assert np.abs(np.abs(offset[:, 1:4]).mean(axis=0) - settings.scales[1:4]).max() < 0.5


def test_the_layer_does_not_depend_on_the_origin_of_angles(operator):
    rng = np.random.default_rng(0)
    f = torch.from_numpy(rng.standard_normal((operator.n, 3)))
    other = rolled(operator, rng.integers(0, 16, operator.n))
    torch.manual_seed(0)
    layer = IntrinsicConv(3, 4, angles=16, scales=5, angular_max=True)
    fixed = IntrinsicConv(3, 4, angles=16, scales=5)
    with torch.no_grad():
        assert torch.allclose(layer(f, Patches.of(operator)), layer(f, Patches.of(other)), atol=1e-6)
        assert not torch.allclose(fixed(f, Patches.of(operator)), fixed(f, Patches.of(other)), atol=0.1)


def test_the_order_of_vertices_means_nothing(mesh, operator):
    other, place = permuted(mesh, 0)
    f = mesh.vertices
    moved = np.empty_like(f)
    moved[place] = f
    found = build_geodesic_patches(other, SETTINGS).apply(moved)[place]
    difference = np.abs(found - operator.apply(f)).max(axis=(1, 2, 3))
    assert np.mean(difference < 2e-3) > 0.99  # distances that are equal but for rounding decide a few bins


def test_bins_beyond_the_boundary_take_the_nearest_vertex():
    surface = surface_of(grid(21), unit=1.0)
    operator = build_geodesic_patches(surface, GeodesicPatchSettings(radius=4.0, radial_width=0.5))
    corner = 0  # a fan of a right angle: rays 0 to 4 of 16 lie within it
    lengths = np.diff(operator.start).reshape(16, 5, -1)[:, :, corner]
    assert (lengths[6:15] == 1).all()
    assert (lengths[:5, 3:] > 1).all()
    opposite = operator.matrix(10, 4)[[corner]].toarray()[0]
    assert np.flatnonzero(opposite).tolist() == [corner]


def test_presets_and_records():
    assert (AS_PUBLISHED.rings, AS_PUBLISHED.rays, AS_PUBLISHED.radius) == (5, 16, 2.0)
    assert 6 <= WIDER.radius <= 12
    assert WIDER.as_dict()["kind"] == "geodesic"
    assert WIDER.scales == pytest.approx((1.6, 3.2, 4.8, 6.4, 8.0))
    wanted = {key: value for key, value in WIDER.as_dict().items() if key != "kind"}
    assert GeodesicPatchSettings(**wanted) == WIDER


@pytest.mark.parametrize("wrong", [{"rings": 0}, {"rays": 0}, {"radius": -1.0}, {"angular_width": 0.0}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError):
        GeodesicPatchSettings(**wrong)


def test_clouds_are_refused(mesh):
    with pytest.raises(InputError, match="acnn"):
        build_geodesic_patches(PointCloud(mesh.vertices))


def test_same_bytes_on_any_number_of_threads(mesh, operator):
    one = build_geodesic_patches(mesh, SETTINGS, threads=1)
    assert one.values.tobytes() == operator.values.tobytes()
    assert one.vertices.tobytes() == operator.vertices.tobytes()
