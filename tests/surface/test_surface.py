import numpy as np
import pytest
from analytic import bumpy

import acnn
from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud
from acnn.surface import surface, surface_of, vertex_normals


@pytest.fixture
def built(monkeypatch):
    """Numbers of vertices of the shapes whose surfaces were built."""
    sizes = []
    original = surface._surface_of_size_1
    monkeypatch.setattr(
        surface, "_surface_of_size_1", lambda shape: sizes.append(len(shape.vertices)) or original(shape)
    )
    return sizes


def test_a_surface_is_built_once_for_all_units(built):
    mesh = bumpy(1)
    own, other = surface_of(mesh), surface_of(mesh, 0.5)
    assert len(built) == 1
    assert surface_of(mesh, own.unit).vertices.tobytes() == own.vertices.tobytes()
    assert np.allclose(other.vertices, own.vertices * (own.unit / 0.5), rtol=1e-12)
    copy = Mesh(mesh.vertices.copy(), mesh.faces)
    assert surface_of(copy).vertices.tobytes() == own.vertices.tobytes()
    assert len(built) == 2


def test_arrays_that_were_changed_give_a_new_surface(built):
    mesh = Mesh(bumpy(1).vertices.copy(), bumpy(1).faces)
    before = surface_of(mesh, 1.0)
    mesh.vertices[:] *= 2
    assert np.allclose(surface_of(mesh, 1.0).vertices, 2 * before.vertices)
    assert len(built) == 2


def test_a_match_builds_the_surface_of_each_shape_once(built):
    a, b = bumpy(2), Mesh(bumpy(2).vertices[:, [1, 2, 0]], bumpy(2).faces)
    acnn.match(a, b, method="descriptors", refinement="none", cache=False)
    assert built == [len(a.vertices)] * 2


def test_shapes_without_a_surface_are_refused_with_the_reason() -> None:
    mesh = bumpy(1)
    n = len(mesh.vertices)
    nowhere = Mesh(np.vstack([mesh.vertices, [[np.nan, 0.0, 0.0]]]), mesh.faces)
    normals = vertex_normals(mesh.vertices, mesh.faces)
    normals[[3, 5]] = 0.0
    several = (
        (Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32)), "has no vertices"),
        (PointCloud(np.zeros((0, 3))), "has no vertices"),
        (Mesh(mesh.vertices, np.zeros((0, 3), np.int32)), f"Vertex 0 .and {n - 1} more. belongs to no triangle"),
        (nowhere, f"Vertex {n} .and 0 more. is not finite"),
        (PointCloud(mesh.vertices, normals), "normal of point 3 of the cloud .and of 1 more. is zero"),
    )
    for shape, why in several:
        with pytest.raises(InputError, match=why):
            surface_of(shape)
