import numpy as np
import pytest
from analytic import bumpy, cylinder, grid, permuted, rotation, sphere, torus

from acnn.datasets import builtin_human
from acnn.shapes import Mesh
from acnn.surface import curvature_tensors, principal_frames, surface_of


def degrees(a, b):
    return np.degrees(np.arccos(np.clip(np.abs(np.einsum("ij,ij->i", a, b)), 0, 1)))


def test_on_a_cylinder_the_larger_curvature_runs_around():
    surface = surface_of(cylinder())
    frames = principal_frames(surface)
    assert np.abs(frames[:, 0, 2]).max() < 1e-6
    inside = np.abs(surface.vertices[:, 2]) < 0.3 * np.ptp(surface.vertices[:, 2])
    largest = np.linalg.eigvalsh(curvature_tensors(surface)[inside])[:, -1]
    assert np.abs(largest * (1 / surface.unit) - 1).max() < 0.05  # 1 / radius; convex is positive


def test_on_a_torus_directions_follow_the_meridians():
    mesh, meridians = torus()
    surface = surface_of(mesh)
    expected = meridians[surface.faces].mean(axis=1)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.mean(degrees(principal_frames(surface)[:, 0], expected) < 5) > 0.99


def test_signed_curvature_decides_on_a_saddle():
    """On the inner side of a torus the tube's curvature is +1/r and the ring's is negative and larger in places."""
    mesh, meridians = torus(tube=0.62)  # ring curvature there: -1 / (1 - 0.62) = -2.6, tube: 1 / 0.62 = 1.6
    surface = surface_of(mesh)
    inner = np.linalg.norm(mesh.vertices[mesh.faces].mean(axis=1)[:, :2], axis=1) < 0.45
    expected = meridians[mesh.faces].mean(axis=1)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert inner.sum() > 50
    assert np.mean(degrees(principal_frames(surface)[:, 0], expected)[inner] < 10) > 0.95


@pytest.mark.parametrize(
    "mesh", [sphere(3), grid(15), cylinder(), bumpy()], ids=["sphere", "grid", "cylinder", "bumpy"]
)
def test_frames_are_orthonormal_right_handed_and_repeatable(mesh):
    surface = surface_of(mesh)
    frames = principal_frames(surface)
    gram = np.einsum("fia,fja->fij", frames, frames)
    assert np.abs(gram - np.eye(2)).max() < 1e-9
    assert np.abs(np.cross(frames[:, 0], frames[:, 1]) - surface.face_normals).max() < 1e-9
    assert np.array_equal(frames, principal_frames(surface))


@pytest.mark.parametrize("mesh", [grid(14), grid(12, jitter=0.2), bumpy()], ids=["flat", "flat jittered", "bumpy"])
def test_frames_turn_with_the_shape(mesh):
    turn = rotation(3)
    before = principal_frames(surface_of(mesh))
    after = principal_frames(surface_of(Mesh(mesh.vertices @ turn.T * 3.0 + [1.0, 2.0, 3.0], mesh.faces)))
    assert degrees(before[:, 0] @ turn.T, after[:, 0]).max() < 1e-3


def test_frames_do_not_depend_on_the_order_of_vertices():
    mesh = bumpy()
    other, place = permuted(mesh, 1)
    before, after = (principal_frames(surface_of(m)) for m in (mesh, other))
    row = {tuple(sorted(face)): i for i, face in enumerate(other.faces.tolist())}
    match = [row[tuple(sorted(face))] for face in place[mesh.faces].tolist()]
    assert degrees(before[:, 0], after[match, 0]).max() < 1e-4


def test_large_shapes_are_averaged_by_iteration_with_the_same_result(monkeypatch):
    surface = surface_of(builtin_human())
    expected = curvature_tensors(surface)
    monkeypatch.setattr("acnn.surface.curvature.DIRECT", 0)
    found = curvature_tensors(surface)
    assert np.abs(found - expected).max() < 1e-7 * np.abs(expected).max()
