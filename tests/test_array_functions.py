"""Functions on arrays: analytic truths, scaling laws, and agreement with the operators of the package."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from analytic import bumpy, cylinder, grid, sphere, torus

import acnn
import acnn.array_functions
import acnn.network.conv
import acnn.network.patches
import acnn.patches.anisotropic
import acnn.testing

PACKAGE = Path(acnn.__file__).parent
EXAMPLES = sorted(path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_examples_run(path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = ".".join(("acnn", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_importing_the_package_loads_no_library() -> None:
    command = [sys.executable, "-X", "importtime", "-c", "import acnn"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "acnn" in loaded
    assert not loaded & {"numpy", "scipy", "torch", "numba"}


def test_modules_are_attributes_of_the_package() -> None:
    code = "import acnn; assert acnn.nn.IntrinsicConv and acnn.testing.assert_rigid_invariant; assert 'nn' in dir(acnn)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_layers_are_those_of_the_network() -> None:
    for name in acnn.nn.__all__:
        assert getattr(acnn.nn, name) is getattr(acnn.network, name)
    with pytest.raises(AttributeError, match=r"'acnn\.nn' has no attribute 'Conv'"):
        _ = acnn.nn.Conv


def test_weights_of_two_triangles_are_the_cotangents() -> None:
    # Angles opposite the shared edge (0, 1) are 90 and 60 degrees.
    height = np.sqrt(3) / 2
    v = [[0, 0, 0], [1, 0, 0], [0.5, 0.5, 0], [0.5, -height, 0]]
    L, M = acnn.cotangent_laplacian(v, [[0, 1, 2], [1, 0, 3]])
    weight = 1 / np.tan(np.pi / 3)
    expected = {(0, 1): -0.5 * (0 + weight), (0, 2): -0.5, (1, 2): -0.5, (0, 3): -weight / 2, (1, 3): -weight / 2}
    for (i, j), value in expected.items():
        assert L[i, j] == pytest.approx(value, abs=1e-12)
        assert L[j, i] == pytest.approx(value, abs=1e-12)
    assert L[2, 3] == 0
    np.testing.assert_allclose(L.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(M.diagonal(), [(0.25 + height / 2) / 3] * 2 + [0.25 / 3, height / 6])


def test_weights_of_a_square_grid_are_those_of_the_five_point_stencil() -> None:
    mesh = grid(5)
    L, M = acnn.cotangent_laplacian(mesh.vertices, mesh.faces)
    inner = 2 * 5 + 2
    row = L[[inner]].toarray()[0]
    np.testing.assert_allclose(
        row[[inner, inner - 1, inner + 1, inner - 5, inner + 5]], [4, -1, -1, -1, -1], atol=1e-12
    )
    assert np.abs(np.delete(row, [inner, inner - 1, inner + 1, inner - 5, inner + 5])).max() < 1e-12
    assert M[inner, inner] == pytest.approx(1.0)


def test_eigenvalues_of_the_sphere() -> None:
    mesh = sphere(4)
    values, functions = acnn.eigenpairs(3.0 * mesh.vertices, mesh.faces, 16)
    expected = np.repeat([l * (l + 1) / 9 for l in range(4)], [2 * l + 1 for l in range(4)])
    assert values[0] < 1e-9
    assert np.abs(values[1:] / expected[1:] - 1).max() < 0.01
    _, M = acnn.cotangent_laplacian(3.0 * mesh.vertices, mesh.faces)
    np.testing.assert_allclose(functions.T @ (M @ functions), np.eye(16), atol=1e-9)
    cloud = acnn.eigenpairs(3.0 * mesh.vertices, None, 16)[0]
    assert np.abs(cloud[1:] / expected[1:] - 1).max() < 0.02


def test_eigenvalues_of_a_flat_cylinder() -> None:
    """Isometric to a flat strip joined at its sides: (k / r)^2 + (pi l / h)^2 with free ends."""
    mesh = cylinder(96, 60)
    height = np.ptp(mesh.vertices[:, 2])
    values, _ = acnn.eigenpairs(mesh.vertices, mesh.faces, 12)
    around, along = np.meshgrid(np.arange(-6, 7), np.arange(12))
    expected = np.sort((around**2 + (np.pi * along / height) ** 2).ravel())[:12]
    assert np.abs(values[1:] / expected[1:] - 1).max() < 0.01


def test_an_anisotropic_cylinder_conducts_around_at_theta_0() -> None:
    """Conductivity 1 around and 1 / alpha along: k^2 + (pi l / h)^2 / alpha; at 90 degrees the other way."""
    mesh = cylinder(96, 60)
    height = np.ptp(mesh.vertices[:, 2])
    around, along = np.meshgrid(np.arange(-12, 13), np.arange(12))
    for theta, powers in ((0.0, (1.0, 0.25)), (np.pi / 2, (0.25, 1.0))):
        values, _ = acnn.eigenpairs(mesh.vertices, mesh.faces, 10, alpha=4.0, theta=theta)
        expected = np.sort((powers[0] * around**2 + powers[1] * (np.pi * along / height) ** 2).ravel())[:10]
        assert np.abs(values[1:] / expected[1:] - 1).max() < 0.02
    L, _ = acnn.anisotropic_laplacian(mesh.vertices, mesh.faces, 4.0, 0.0)
    height_energy = mesh.vertices[:, 2] @ (L @ mesh.vertices[:, 2])
    assert height_energy == pytest.approx(2 * np.pi * height / 4, rel=0.01)  # area times conductivity along the axis


def test_heat_kernels_sum_to_1_and_follow_the_long_axis() -> None:
    mesh = cylinder()
    vertex = 30 * 48 + 5
    t = 0.05
    for theta in (0.0, np.pi / 6, np.pi / 2):
        row = acnn.heat_kernel_rows(mesh.vertices, mesh.faces, t, [vertex], alpha=16.0, theta=theta)[0]
        assert row.sum() == pytest.approx(1.0, abs=1e-9)
        point = mesh.vertices[vertex]
        turn = np.arctan2(mesh.vertices[:, 1], mesh.vertices[:, 0]) - np.arctan2(point[1], point[0])
        flat = np.stack([(turn + np.pi) % (2 * np.pi) - np.pi, mesh.vertices[:, 2] - point[2]], axis=1)
        variances, axes = np.linalg.eigh(np.einsum("n,na,nb->ab", row, flat, flat))
        assert variances[1] == pytest.approx(2 * t, rel=0.05)
        assert variances[0] == pytest.approx(2 * t / 16, rel=0.1)
        angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]) - theta)
        assert abs((angle + 90) % 180 - 90) < 2


def test_heat_kernel_rows_of_a_mesh_and_a_cloud_sum_to_1() -> None:
    mesh = bumpy(2)
    for f in (mesh.faces, None):
        rows = acnn.heat_kernel_rows(mesh.vertices, f, 0.1, np.arange(162), alpha=25, theta=0.4)
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("faces", [True, False], ids=["mesh", "cloud"])
def test_scaling_laws(faces: bool) -> None:
    mesh, s = bumpy(2), 40.0
    f = mesh.faces if faces else None
    v, w = mesh.vertices, s * mesh.vertices + 1000.0
    L, M = acnn.anisotropic_laplacian(v, f, 9.0, 0.7)
    L2, M2 = acnn.anisotropic_laplacian(w, f, 9.0, 0.7)
    np.testing.assert_allclose(L2.toarray(), L.toarray(), atol=1e-7 * abs(L).max())
    np.testing.assert_allclose(M2.diagonal(), s**2 * M.diagonal(), rtol=1e-9)
    rows = acnn.heat_kernel_rows(v, f, 0.1, [3, 70], 9.0, 0.7)
    np.testing.assert_allclose(acnn.heat_kernel_rows(w, f, 0.1 * s**2, [3, 70], 9.0, 0.7), rows, atol=1e-8)
    values, functions = acnn.eigenpairs(v, f, 6)
    values2, functions2 = acnn.eigenpairs(w, f, 6)
    np.testing.assert_allclose(values2 * s**2, values, atol=1e-8)
    np.testing.assert_allclose(np.abs(functions2 * s), np.abs(functions), atol=1e-5)
    distances = acnn.geodesic_distances(v, f, [5])
    np.testing.assert_allclose(acnn.geodesic_distances(w, f, [5]), s * distances, rtol=1e-9)
    np.testing.assert_allclose(
        acnn.principal_curvatures(w, f) * s, acnn.principal_curvatures(v, f), atol=1e-6 * s, rtol=1e-6
    )
    np.testing.assert_allclose(acnn.shot_descriptors(w, f, 0.5 * s), acnn.shot_descriptors(v, f, 0.5), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-9, 1e-5, 1e9])
def test_eigenpairs_are_the_same_in_any_unit_of_length(scale: float) -> None:
    mesh = bumpy(3)
    values, functions = acnn.eigenpairs(mesh.vertices, mesh.faces, 20)
    scaled_values, scaled_functions = acnn.eigenpairs(scale * mesh.vertices, mesh.faces, 20)
    np.testing.assert_allclose(scaled_values * scale**2, values, atol=1e-11 * values.max())
    np.testing.assert_allclose(scaled_functions * scale, functions, atol=1e-10 * np.abs(functions).max())


def test_isotropic_is_the_cotangent_laplacian() -> None:
    mesh = bumpy(2)
    L, M = acnn.cotangent_laplacian(mesh.vertices, mesh.faces)
    for theta in (0.0, 1.1):
        other, mass = acnn.anisotropic_laplacian(mesh.vertices, mesh.faces, 1.0, theta)
        assert abs(other - L).max() < 1e-12
        assert abs(mass - M).max() == 0
    nearly, _ = acnn.anisotropic_laplacian(mesh.vertices, mesh.faces, 1.0 + 1e-9, 1.1)
    assert abs(nearly - L).max() < 1e-7


def test_the_operator_has_the_same_kernels() -> None:
    """theta = 0, alpha and t mean the same in `build_patches`, whose unit of length is the diameter / 200."""
    mesh = bumpy(3)
    operator = acnn.build_patches(mesh, angles=2, scales=(24,), keep=1.0)
    rows = np.arange(0, 642, 40)
    for angle in range(2):
        theta = angle * np.pi / 2
        exact = acnn.heat_kernel_rows(mesh.vertices, mesh.faces, 24 * operator.unit**2, rows, 100.0, theta)
        assert np.abs(operator.matrix(angle, 0)[rows].toarray() - exact).sum(axis=1).max() < 0.01


def test_shot_is_that_of_the_mesh() -> None:
    mesh = bumpy(3)
    unit = acnn.surface_of(mesh).unit
    plain = acnn.shot_descriptors(mesh.vertices, mesh.faces, 24.0 * unit)
    np.testing.assert_allclose(plain, acnn.shot(mesh, 24.0), atol=1e-5)
    np.testing.assert_array_equal(acnn.shot(mesh, 24.0), acnn.shot(acnn.surface_of(mesh), 24.0))


def test_geodesics_on_the_sphere_are_angles() -> None:
    mesh = sphere(3)
    angles = np.arccos(np.clip(mesh.vertices[[0, 9]] @ mesh.vertices.T, -1, 1))
    far = angles > 0.5
    for method, worst in (("graph", 0.07), ("exact", 0.01)):
        found = acnn.geodesic_distances(2 * mesh.vertices, mesh.faces, [0, 9], method=method)
        assert found.shape == (2, 642)
        assert np.abs(found[far] / (2 * angles[far]) - 1).max() < worst
    of_cloud = acnn.geodesic_distances(2 * mesh.vertices, None, 0)[0]
    assert np.abs(of_cloud[far[0]] / (2 * angles[0, far[0]]) - 1).max() < 0.07
    with pytest.raises(acnn.InputError, match="mesh"):
        acnn.geodesic_distances(mesh.vertices, None, [0], method="exact")


def test_curvatures_and_directions_of_a_torus() -> None:
    mesh, meridians = torus()
    tube, ring = 0.4, np.linalg.norm(mesh.vertices[:, :2], axis=1)
    for f, within in ((mesh.faces, 0.05), (None, 0.05)):
        larger, smaller = acnn.principal_curvatures(mesh.vertices, f).T
        assert np.median(np.abs(larger * tube - 1)) < within
        assert np.median(np.abs(smaller - (ring - 1) / tube / ring)) < within
        frames = acnn.principal_directions(mesh.vertices, f)
        cosine = np.abs(np.einsum("na,na->n", frames[:, 0], meridians))
        assert np.mean(cosine > np.cos(np.radians(5))) > 0.95
        np.testing.assert_allclose(
            np.einsum("nia,nja->nij", frames, frames), np.tile(np.eye(2), (4200, 1, 1)), atol=1e-9
        )


def test_curvatures_of_a_sphere_and_of_its_inside() -> None:
    mesh = sphere(3)
    for f, expected in ((mesh.faces, 0.5), (mesh.faces[:, ::-1], -0.5)):
        error = np.abs(acnn.principal_curvatures(2 * mesh.vertices, f) / expected - 1).max(axis=1)
        assert np.sort(error)[-13] < 0.05
        assert error.max() < 0.12  # the 12 vertices of valence 5: a third of the area around them is not theirs


def test_lists_and_tensors_are_arrays() -> None:
    mesh = bumpy(1)
    expected = acnn.cotangent_laplacian(mesh.vertices, mesh.faces)[0]
    v, f = torch.tensor(mesh.vertices, requires_grad=True), torch.tensor(mesh.faces, dtype=torch.int64)
    for given in ((mesh.vertices.tolist(), mesh.faces.tolist()), (v, f)):
        assert abs(acnn.cotangent_laplacian(*given)[0] - expected).max() < 1e-12


V, F = np.eye(3), np.array([[0, 1, 2]])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: acnn.cotangent_laplacian(V.T[:2].T, F), r"shape \(3, 2\), but \(n, 3\)"),
        (lambda: acnn.cotangent_laplacian(V * np.nan, F), "vertex 0 is .* not finite"),
        (lambda: acnn.cotangent_laplacian(V, F + 1), "face 0 uses vertex 3, but there are 3"),
        (lambda: acnn.cotangent_laplacian(V, F * 1.0), "integers"),
        (lambda: acnn.cotangent_laplacian([[0, 0, 0], [1, 0]], F), "same length"),
        (lambda: acnn.cotangent_laplacian(np.vstack([V, V[:1]]), F), "Vertex 3 .* no triangle"),
        (lambda: acnn.cotangent_laplacian(V, None), "at least 4"),
        (lambda: acnn.anisotropic_laplacian(V, F, 0.5, 0.0), "alpha"),
        (lambda: acnn.anisotropic_laplacian(V, F, 2.0, np.inf), "theta"),
        (lambda: acnn.anisotropic_laplacian(V, F, 2.0, 0.0, smoothing=-1.0), "fraction of the geodesic diameter"),
        (lambda: acnn.heat_kernel_rows(V, F, 0.0, [0]), "t = 0"),
        (lambda: acnn.heat_kernel_rows(V, F, 1.0, [3]), "vertex 3, but the vertices are 0 to 2"),
        (lambda: acnn.geodesic_distances(V, F, [0.5]), "sources must be a list of vertices"),
        (lambda: acnn.eigenpairs(V, F, 3), "1 to 2"),
        (lambda: acnn.shot_descriptors(V, F, 0.0), "radius"),
    ],
)
def test_bad_input_is_named(call, words) -> None:
    with pytest.raises(acnn.InputError, match=words):
        call()
