from dataclasses import replace

import numpy as np
import pytest
from analytic import bumpy

from acnn.datasets import builtin_human
from acnn.errors import InputError
from acnn.patches import PatchSettings, build_patches, check_kernels
from acnn.shapes import PointCloud
from acnn.surface import exact_rows, principal_frames, stiffness_parts, surface_of

SMALL = PatchSettings(angles=3, scales=(3.0, 24.0, 400.0), eigenpairs=280)


@pytest.fixture(scope="module")
def mesh():
    return bumpy(3)


@pytest.fixture(scope="module")
def operator(mesh):
    return build_patches(mesh, SMALL)


def test_rows_sum_to_1_and_hold_the_stated_share_of_the_mass(operator):
    sums = np.add.reduceat(operator.values.astype(np.float64), operator.start[:-1])
    assert len(sums) == 3 * 2 * operator.n
    assert np.abs(sums - 1).max() < 2e-5
    assert operator.report.mass_kept >= 0.9
    lengths = np.diff(operator.start)
    assert lengths.min() > 0
    assert operator.report.nnz_per_row == pytest.approx(lengths.mean())


def test_stored_rows_are_the_largest_entries_of_exact_ones(mesh, operator):
    surface = surface_of(mesh)
    parts = stiffness_parts(surface, principal_frames(surface))
    vertex = 77
    for angle in range(3):
        exact = exact_rows(parts.matrix(100.0, SMALL.thetas[angle]), surface.vertex_areas, 24.0, np.array([vertex]))[0]
        stored = operator.matrix(angle, 1)[[vertex]].toarray()[0]
        kept = stored != 0
        share = np.abs(exact[kept]).sum() / np.abs(exact).sum()
        assert 0.89 < share < 0.95
        assert np.abs(exact[~kept]).max() < np.abs(exact[kept]).min() * 1.1 + 1e-4
        assert np.abs(stored[kept] - exact[kept] / exact[kept].sum()).sum() < 0.01


def test_apply_gathers_functions_at_narrow_and_wide_scales(mesh, operator):
    surface = surface_of(mesh)
    parts = stiffness_parts(surface, principal_frames(surface))
    smooth = np.stack([np.ones(operator.n), surface.vertices[:, 0] / 100], axis=1)
    patches = operator.apply(smooth)
    assert patches.shape == (operator.n, 3, 3, 2)
    assert np.abs(patches[..., 0] - 1).max() < 1e-3
    vertex = 5
    wide = exact_rows(parts.matrix(100.0, SMALL.thetas[2]), surface.vertex_areas, 400.0, np.array([vertex]))[0]
    assert patches[vertex, 2, 2, 1] == pytest.approx(wide @ smooth[:, 1], abs=2e-3)


def test_keeping_everything_is_exact(mesh):
    settings = PatchSettings(angles=1, scales=(24.0,), keep=1.0)
    operator = build_patches(mesh, settings)
    surface = surface_of(mesh)
    parts = stiffness_parts(surface, principal_frames(surface))
    rows = np.arange(0, operator.n, 50)
    exact = exact_rows(parts.matrix(100.0, 0.0), surface.vertex_areas, 24.0, rows)
    assert np.abs(operator.matrix(0, 0)[rows].toarray() - exact).sum(axis=1).max() < 0.01


def test_scales_keep_the_order_in_which_they_were_given(mesh, operator):
    other = build_patches(mesh, PatchSettings(angles=3, scales=(24.0, 400.0, 3.0), eigenpairs=280))
    for angle in range(3):
        assert (other.matrix(angle, 0) != operator.matrix(angle, 1)).nnz == 0
        assert (other.matrix(angle, 2) != operator.matrix(angle, 0)).nnz == 0


def test_scales_far_apart_are_computed_in_groups(mesh):
    surface = surface_of(mesh)
    facts = check_kernels(surface, PatchSettings(angles=2, scales=(100.0, 1.5, 12.0)), 20)
    assert facts["l1_error_max"] < 0.05
    assert list(facts["l1_errors_by_scale"]) == ["100", "1.5", "12"]


def test_every_scale_is_exact_whichever_kernel_serves_it():
    scales = (60.0, 119.0, 121.0, 160.0, 200.0, 220.0, 260.0, 400.0)
    facts = check_kernels(surface_of(builtin_human()), PatchSettings(angles=1, scales=scales), 50)
    for error in facts["l1_errors_by_scale"].values():
        assert error["median"] <= 0.01
        assert error["max"] <= 0.03
    used = [error["kernel"] for error in facts["l1_errors_by_scale"].values()]
    assert used[:3] == ["rational"] * 3
    assert used[-1] == "eigenpairs"


def test_eigenpairs_serve_a_scale_only_where_the_last_of_them_has_died_out(mesh):
    settings = PatchSettings(angles=2, scales=(400.0, 6.0), eigenpairs=280)
    many, few = (build_patches(mesh, replace(settings, eigenpairs=k)) for k in (280, 12))
    assert many.wide == (0,)
    assert many.report.kernels_by_scale == {"400": "eigenpairs", "6": "rational"}
    assert few.wide == ()
    assert few.report.kernel == "rational"
    assert few.eigenfunctions.shape == (2, few.n, 0)
    function = surface_of(mesh).vertices[:, :1]
    spread = [np.abs(operator.apply(function)[:, :, 0]) for operator in (many, few)]
    assert np.abs(spread[0] - spread[1]).mean() < 0.1 * spread[0].mean()  # the rows of one keep nine tenths
    assert check_kernels(surface_of(mesh), replace(settings, eigenpairs=12), 20)["l1_error_max"] < 0.01


def test_a_shape_with_fewer_vertices_than_eigenpairs_asked_for():
    assert build_patches(bumpy(1), PatchSettings(angles=1, scales=(300.0,))).n == 42


def test_check_sees_a_bad_kernel(mesh):
    facts = check_kernels(
        surface_of(mesh), PatchSettings(angles=2, scales=(3.0,), kernel="spectral", eigenpairs=30), 10
    )
    assert facts["l1_error_median"] > 0.3


def test_a_cloud_has_patches_too(mesh):
    operator = build_patches(PointCloud(mesh.vertices), PatchSettings(angles=2, scales=(6.0,)))
    assert operator.n == len(mesh.vertices)
    assert np.isfinite(operator.apply(mesh.vertices)).all()


def test_same_input_same_bytes_on_any_number_of_threads(mesh):
    settings = PatchSettings(angles=2, scales=(3.0, 12.0))
    one, two = (build_patches(mesh, settings, threads=t) for t in (1, 2))
    assert one.values.tobytes() == two.values.tobytes()
    assert one.vertices.tobytes() == two.vertices.tobytes()


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"angles": 0}, "angles"),
        ({"alpha": 0.5}, "alpha"),
        ({"scales": ()}, "Scales"),
        ({"scales": (3, -1)}, "Scales"),
        ({"scales": (3, 3)}, "once"),
        ({"scales": (1e9,)}, "larger than the shape"),
        ({"kernel": "magic"}, "magic"),
        ({"keep": 0}, "keep"),
        ({"eigenpairs": 0}, "eigenpairs"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, word):
    with pytest.raises(InputError, match=word):
        PatchSettings(**wrong)


def test_settings_may_be_given_one_by_one(mesh):
    one = build_patches(mesh, PatchSettings(angles=2, alpha=9.0, scales=(6.0, 24.0), keep=0.8))
    other = build_patches(mesh, angles=2, alpha=9, scales=[6, 24], keep=0.8)
    assert other.settings == one.settings
    assert other.values.tobytes() == one.values.tobytes()
    assert build_patches(mesh, one.settings, angles=1).settings == replace(one.settings, angles=1)
    with pytest.raises(InputError, match="alpha"):
        build_patches(mesh, alpha=0.5)
    with pytest.raises(TypeError, match="angels"):
        build_patches(mesh, angels=2)


def test_rows_can_be_cut_to_their_largest_entries(mesh, operator):
    short = build_patches(mesh, replace(SMALL, entries=4))
    np.testing.assert_array_equal(np.diff(short.start), np.minimum(np.diff(operator.start), 4))
    assert short.report.mass_kept < operator.report.mass_kept
    whole = operator.matrix(2, 1)[[40]].toarray()[0].astype(float)
    found = short.matrix(2, 1)[[40]].toarray()[0].astype(float)
    largest = np.sort(np.argsort(-np.abs(whole))[:4])
    np.testing.assert_array_equal(np.flatnonzero(found), largest)
    np.testing.assert_allclose(found[largest], whole[largest] / whole[largest].sum(), atol=2e-3)
    with pytest.raises(InputError, match="entries"):
        replace(SMALL, entries=-1)


def test_rows_computed_angle_by_angle_on_disk_are_the_same(mesh, operator, tmp_path):
    on_disk = build_patches(mesh, SMALL, folder=tmp_path)
    assert isinstance(on_disk.values, np.memmap)
    for name in ("start", "vertices", "values", "eigenvalues", "eigenfunctions"):
        np.testing.assert_array_equal(getattr(on_disk, name), getattr(operator, name))
    assert on_disk.report.mass_kept_per_scale == pytest.approx(operator.report.mass_kept_per_scale)
