"""Shapes of trimesh, pyvista and PyTorch Geometric: taken wherever a shape is, as the same arrays are."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import trimesh
from analytic import bumpy, sphere

import acnn
from acnn import InputError, Mesh, PointCloud, from_arrays

MESH = bumpy(2)
QUADS = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
CUBE = np.array([[i, j, k] for i in (0.0, 1) for j in (0.0, 1) for k in (0.0, 1)])


def padded(faces):
    """The list of pyvista: each polygon after the number of its corners."""
    return np.concatenate([[len(face), *face] for face in faces])


class PolyData:
    """Stands in for pyvista.PolyData."""

    def __init__(self, points, faces, **point_data):
        self.points, self.faces, self.point_data = points, faces, point_data


def data(mesh):
    """Stands in for torch_geometric.data.Data."""
    return SimpleNamespace(pos=torch.tensor(mesh.vertices), face=torch.tensor(mesh.faces.T.astype(np.int64)))


def real_pyvista(mesh):
    return pytest.importorskip("pyvista").PolyData(mesh.vertices, padded(mesh.faces))


def real_data(mesh):
    kind = pytest.importorskip("torch_geometric.data").Data
    return kind(pos=torch.tensor(mesh.vertices), face=torch.tensor(mesh.faces.T.astype(np.int64)))


MAKERS = {
    "trimesh": lambda mesh: trimesh.Trimesh(mesh.vertices, mesh.faces, process=False),
    "like trimesh": lambda mesh: SimpleNamespace(vertices=mesh.vertices, faces=mesh.faces),
    "like pyvista": lambda mesh: PolyData(mesh.vertices, padded(mesh.faces)),
    "pyvista": real_pyvista,
    "like PyTorch Geometric": data,
    "PyTorch Geometric": real_data,
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_shape_of_another_library_is_taken_wherever_a_mesh_is(maker, tmp_path) -> None:
    other = maker(MESH)
    made = from_arrays(other)
    np.testing.assert_array_equal(made.vertices, MESH.vertices)
    np.testing.assert_array_equal(made.faces, MESH.faces)
    settings = acnn.PatchSettings(angles=2, scales=(20.0,))
    ours = acnn.build_patches(MESH, settings)
    theirs = acnn.build_patches(other, settings)
    np.testing.assert_array_equal(theirs.matrix(1, 0).toarray(), ours.matrix(1, 0).toarray())
    assert acnn.describe(other)["vertices"] == len(MESH.vertices)
    assert acnn.save(other, tmp_path / "other.ply") == ()
    np.testing.assert_array_equal(acnn.surface_of(other).faces, MESH.faces)
    statistics = acnn.shape_statistics([other, maker(sphere(2)), MESH], modes=1)
    assert statistics.modes.shape == (1, len(MESH.vertices), 3)


def test_two_shapes_of_other_libraries_are_matched() -> None:
    options = {"method": "descriptors", "refinement": "none"}
    ours = acnn.match(MESH, MESH, **options)
    theirs = acnn.match(MAKERS["trimesh"](MESH), MAKERS["like pyvista"](MESH), **options)
    np.testing.assert_array_equal(theirs.a_to_b, ours.a_to_b)


@pytest.mark.parametrize("poly_data", [PolyData, lambda *a: pytest.importorskip("pyvista").PolyData(*a)])
def test_polygons_clouds_and_attributes_of_pyvista(poly_data) -> None:
    mixed = [*QUADS[1:].tolist(), [0, 1, 3], [0, 3, 2]]
    made = from_arrays(poly_data(CUBE, padded(mixed)))
    assert made.faces.shape == (12, 3)
    np.testing.assert_array_equal(np.sort(made.faces[-2:], axis=1), [[0, 1, 3], [0, 2, 3]])
    assert from_arrays(poly_data(CUBE, padded(QUADS))).faces.shape == (12, 3)
    cloud = poly_data(CUBE, []) if poly_data is PolyData else poly_data(CUBE)
    colors = np.arange(24, dtype=np.uint8).reshape(8, 3)
    cloud.point_data["RGB"], cloud.point_data["Normals"] = colors, CUBE - 0.5
    made = from_arrays(cloud)
    assert isinstance(made, PointCloud)
    np.testing.assert_array_equal(made.colors[:, :3], colors)
    np.testing.assert_allclose(made.normals, (CUBE - 0.5) / np.sqrt(0.75), rtol=1e-6)


def test_what_cannot_be_taken_is_refused_with_a_remedy() -> None:
    stray = SimpleNamespace(vertices=np.vstack([[[9.0, 9, 9]], MESH.vertices]), faces=MESH.faces + 1)
    with pytest.raises(InputError, match=r"^surface_of: shape: this SimpleNamespace .*acnn\.from_arrays"):
        acnn.surface_of(stray)  # vertices would be renumbered without the caller's knowledge
    assert from_arrays(stray).source.to_file[0] == 1
    broken = SimpleNamespace(vertices=CUBE, faces=np.array([[0, 1, 8]]))
    with pytest.raises(InputError, match=r"^match: b: arrays: face 0 uses vertex 8"):
        acnn.match(MESH, broken)
    with pytest.raises(InputError, match="polygon 1 of faces has 9 corners or is truncated"):
        acnn.describe(PolyData(CUBE, np.array([3, 0, 1, 2, 9, 1])))
    with pytest.raises(TypeError, match="not Scene; take its mesh with its method to_mesh"):
        acnn.describe(trimesh.Scene())
    points = trimesh.PointCloud(CUBE)
    assert acnn.describe(points)["vertices"] == 8
    with pytest.raises(TypeError, match="query must be a Mesh, not PointCloud"):
        acnn.transfer_texture(points, MESH, None)
    with pytest.raises(TypeError, match="pass a PolyData alone, without faces"):
        from_arrays(PolyData(CUBE, padded(QUADS)), QUADS)
    assert Mesh.from_library(MESH) is None
