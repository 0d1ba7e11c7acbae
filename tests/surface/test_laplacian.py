import numpy as np
import pytest
from analytic import bumpy, grid, sphere

from acnn.errors import InputError
from acnn.shapes import Mesh
from acnn.shapes.topology import mesh_edges
from acnn.surface import eigenpairs, principal_frames, stiffness, stiffness_parts, surface_of


def test_eigenvalues_of_the_sphere_are_l_times_l_plus_1():
    surface = surface_of(sphere(5), unit=1.0)  # 10,242 vertices
    values, functions = eigenpairs(stiffness(surface), surface.vertex_areas, 25)
    expected = np.repeat([l * (l + 1) for l in range(5)], [2 * l + 1 for l in range(5)])
    assert values[0] < 1e-6
    assert np.abs(values[1:] / expected[1:] - 1).max() < 0.01
    gram = functions.T @ (surface.vertex_areas[:, None] * functions)
    assert np.abs(gram - np.eye(25)).max() < 1e-8


def test_isotropic_stiffness_is_the_cotangent_laplacian():
    surface = surface_of(bumpy())
    table = mesh_edges(surface.faces)
    edges, opposite = table.vertices, table.opposite
    cotangents = 0.0
    for side in range(2):
        a, b = (surface.vertices[edges[:, k]] - surface.vertices[opposite[:, side]] for k in range(2))
        cotangents = cotangents + np.einsum("ij,ij->i", a, b) / np.linalg.norm(np.cross(a, b), axis=1)
    matrix = stiffness(surface).toarray()
    assert np.allclose(matrix[edges[:, 0], edges[:, 1]], -0.5 * cotangents, atol=1e-12)
    assert np.allclose(stiffness_parts(surface, principal_frames(surface)).matrix(1.0, 0.7).toarray(), matrix)


@pytest.mark.parametrize(("alpha", "theta"), [(4.0, 0.0), (25.0, 0.9), (100.0, 2.5)])
def test_three_parts_mix_to_the_operator_of_the_tensor(alpha, theta):
    surface = surface_of(bumpy())
    frames = principal_frames(surface)
    along = np.cos(theta) * frames[:, 0] + np.sin(theta) * frames[:, 1]
    across = -np.sin(theta) * frames[:, 0] + np.cos(theta) * frames[:, 1]
    tensor = along[:, :, None] * along[:, None] + across[:, :, None] * across[:, None] / alpha
    direct = stiffness(surface, tensor)
    mixed = stiffness_parts(surface, frames).matrix(alpha, theta)
    assert np.abs((direct - mixed).data).max() < 1e-12 * np.abs(direct.data).max()


def test_the_papers_edge_form_is_the_hat_gradient_form_turned_by_90_degrees():
    """Eq. (acotan) conducts across the axis it names: W_hat(theta) = -W_acotan(theta + 90 degrees)."""
    surface = surface_of(bumpy())
    frames = principal_frames(surface)
    alpha, theta = 9.0, 0.4

    def edge_form(angle: float) -> np.ndarray:
        major = np.cos(angle) * frames[:, 0] + np.sin(angle) * frames[:, 1]
        minor = np.cross(surface.face_normals, major)
        shear = major[:, :, None] * major[:, None] + minor[:, :, None] * minor[:, None] / alpha
        weights = np.zeros((len(surface.vertices), len(surface.vertices)))
        for k in range(3):
            corner, i, j = (surface.faces[:, (k + step) % 3] for step in range(3))
            to_i, to_j = (surface.vertices[v] - surface.vertices[corner] for v in (i, j))
            to_i, to_j = (e / np.linalg.norm(e, axis=1, keepdims=True) for e in (to_i, to_j))
            sine = np.linalg.norm(np.cross(to_i, to_j), axis=1)
            weight = 0.5 * np.einsum("fa,fab,fb->f", to_j, shear, to_i) / sine
            np.add.at(weights, (i, j), weight)
            np.add.at(weights, (j, i), weight)
        return weights - np.diag(weights.sum(axis=1))

    hat = stiffness_parts(surface, frames).matrix(alpha, theta).toarray()
    assert np.abs(hat + edge_form(theta + np.pi / 2)).max() < 1e-9 * np.abs(hat).max()
    assert np.abs(hat + edge_form(theta)).max() > 0.1 * np.abs(hat).max()


def test_stiffness_is_positive_semidefinite_with_zero_row_sums():
    surface = surface_of(bumpy(2))
    matrix = stiffness_parts(surface, principal_frames(surface)).matrix(100.0, 0.3).toarray()
    assert np.abs(matrix.sum(axis=1)).max() < 1e-10 * np.abs(matrix).max()
    assert np.array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > -1e-10 * np.abs(matrix).max()


def test_eigenpairs_are_deterministic_and_say_what_is_wrong():
    surface = surface_of(bumpy())
    matrix, mass = stiffness(surface), surface.vertex_areas
    first, second = (eigenpairs(matrix, mass, 20) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    with pytest.raises(InputError, match="1 to"):
        eigenpairs(matrix, mass, len(mass))
    with pytest.raises(InputError, match="Vertex 3"):
        eigenpairs(matrix, np.where(np.arange(len(mass)) == 3, 0.0, mass), 5)


def test_eigenpairs_survive_slivers_and_several_components():
    mesh = grid(20)
    vertices = mesh.vertices.copy()
    vertices[210] = vertices[211] + [1e-6, 3e-7, 0]  # needles around one vertex
    twice = Mesh(
        np.concatenate([vertices, vertices + [0, 0, 50.0]]), np.concatenate([mesh.faces, mesh.faces + len(vertices)])
    )
    surface = surface_of(twice)
    values, functions = eigenpairs(stiffness(surface), surface.vertex_areas, 12)
    assert np.isfinite(functions).all()
    assert values[1] < 1e-3 * values[2]


def test_eigenpairs_of_a_shape_with_more_components_than_pairs():
    big, ball = sphere(3), sphere(0)
    balls = [ball.vertices * 0.02 + [2.0 + 0.1 * i, 0.0, 0.0] for i in range(30)]
    faces = [ball.faces + len(big.vertices) + i * len(ball.vertices) for i in range(30)]
    surface = surface_of(Mesh(np.concatenate([big.vertices, *balls]), np.concatenate([big.faces, *faces])))
    matrix, mass = stiffness(surface), surface.vertex_areas
    for k in (31, 20):
        values, functions = eigenpairs(matrix, mass, k)
        assert np.abs(values).max() < 1e-12
        assert np.abs(functions.T @ (mass[:, None] * functions) - np.eye(k)).max() < 1e-12
        assert np.abs(matrix @ functions).max() < 1e-9
        assert np.ptp(functions[: len(big.vertices)], axis=0).max() < 1e-12  # the largest component comes first
        assert functions[0, 0] > 0
    assert eigenpairs(matrix, mass, 32)[0][31] > 1e-6
