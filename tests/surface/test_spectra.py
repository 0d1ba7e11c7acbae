"""Spectra of several angles: the eigenproblems that they solve, and their use for the wide scales of patches."""

import numpy as np
import pytest
from analytic import bumpy, sphere

from acnn.errors import InputError
from acnn.patches import PatchSettings, build_patches
from acnn.shapes import Mesh
from acnn.surface import (
    SpectraSettings,
    compute_spectra,
    eigenpairs,
    principal_frames,
    stiffness,
    stiffness_parts,
    surface_of,
)
from acnn.surface.spectra import sufficient_spectra, surface_eigenpairs

SETTINGS = SpectraSettings(alpha=30.0, angles=3, count=40)


@pytest.fixture(scope="module")
def surface():
    return surface_of(bumpy(3))


@pytest.fixture(scope="module")
def spectra(surface):
    return compute_spectra(surface, SETTINGS)


def test_eigenvalues_of_a_sphere_are_those_of_spherical_harmonics():
    unit_sphere = surface_of(sphere(4), 1.0)
    eigenvalues = compute_spectra(unit_sphere, SpectraSettings(count=9)).eigenvalues
    np.testing.assert_allclose(eigenvalues[0], [0, 2, 2, 2, 6, 6, 6, 6, 6], rtol=0.01, atol=1e-9)


def test_every_angle_solves_its_own_eigenproblem(surface, spectra):
    parts = stiffness_parts(surface, principal_frames(surface))
    assert spectra.eigenvalues.shape == (3, 40)
    assert spectra.eigenfunctions.shape == (3, len(surface.vertices), 40)
    for angle, theta in enumerate((0.0, np.pi / 3, 2 * np.pi / 3)):
        functions, values = spectra.eigenfunctions[angle], spectra.eigenvalues[angle]
        residual = parts.matrix(30.0, theta) @ functions - surface.vertex_areas[:, None] * functions * values
        assert np.abs(residual).max() < 1e-6 * np.abs(parts.matrix(30.0, theta) @ functions).max()
        gram = functions.T @ (spectra.areas[:, None] * functions)
        np.testing.assert_allclose(gram, np.eye(40), atol=1e-8)
        assert (np.diff(values) >= 0).all()


def test_one_angle_without_anisotropy_is_the_laplacian(surface):
    spectra = compute_spectra(surface, SpectraSettings(count=20))
    values, functions = surface_eigenpairs(surface, 20)
    np.testing.assert_array_equal(spectra.eigenvalues, values[None])
    np.testing.assert_array_equal(spectra.eigenfunctions, functions[None])


def test_wide_scales_of_patches_are_these_spectra(surface):
    settings = PatchSettings(angles=3, scales=(600.0, 1200.0), eigenpairs=280)
    operator = build_patches(surface, settings)
    assert operator.wide == (0, 1)
    spectra = compute_spectra(surface, settings.spectra)
    count = operator.eigenvalues.shape[1]
    np.testing.assert_array_equal(operator.eigenvalues, spectra.eigenvalues[:, :count].astype(np.float32))
    np.testing.assert_array_equal(operator.eigenfunctions, spectra.eigenfunctions[:, :, :count].astype(np.float32))
    assert np.exp(-600.0 * spectra.eigenvalues[:, count:]).max() <= 1e-4


def test_what_does_not_suffice_on_the_principal_directions_is_given_up(surface, spectra):
    frames = principal_frames(surface)
    asked = []

    def never(last: float) -> bool:
        asked.append(last)
        return False

    assert sufficient_spectra(surface, frames, SETTINGS, never) is None
    assert asked == [spectra.eigenvalues[:2, -1].min()]
    complete = sufficient_spectra(surface, frames, SETTINGS, lambda last: True)
    np.testing.assert_array_equal(complete.eigenvalues, spectra.eigenvalues)


def test_progress_counts_angles_and_threads_change_nothing(surface, spectra):
    steps = []
    other = compute_spectra(surface, SETTINGS, progress=lambda done, total: steps.append((done, total)), threads=1)
    assert steps == [(1, 3), (2, 3), (3, 3)]
    np.testing.assert_array_equal(other.eigenfunctions, spectra.eigenfunctions)


@pytest.mark.parametrize("wrong", [{"alpha": 0.5}, {"alpha": np.nan}, {"angles": 0}, {"angles": 361}, {"count": 0}])
def test_wrong_settings_are_rejected(wrong):
    with pytest.raises(InputError):
        SpectraSettings(**wrong)


def test_a_small_shape_of_many_components_has_a_constant_function_on_each_of_the_largest() -> None:
    solid = sphere(0)
    sizes = np.array([2.0, 5.0, 1.0, 4.0, 3.0])
    vertices = np.concatenate([size * solid.vertices + 20 * size for size in sizes])
    faces = np.concatenate([solid.faces + 12 * k for k in range(5)])
    surface = surface_of(Mesh(vertices, faces), unit=1.0)
    eigenvalues, eigenfunctions = eigenpairs(stiffness(surface), surface.vertex_areas, 3)
    assert (eigenvalues == 0).all()
    for function, component in zip(eigenfunctions.T, np.argsort(-sizes), strict=False):
        members = np.arange(60) // 12 == component
        np.testing.assert_allclose(function, members / np.sqrt(surface.vertex_areas[members].sum()), atol=1e-12)
