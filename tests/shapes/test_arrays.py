"""Shapes from arrays: checked and repaired as files are, with the same messages."""

from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh
from test_checks import CUBE, CUBE_FACES, assert_valid, kinds, written

import acnn
from acnn import InputError, Mesh, PointCloud, from_arrays, load
from acnn.shapes.load import own_descriptors


def assert_same(made: Mesh | PointCloud, loaded: Mesh | PointCloud) -> None:
    """The same shape with the same findings, but for where it came from."""
    np.testing.assert_array_equal(made.vertices, loaded.vertices)
    if isinstance(made, Mesh):
        np.testing.assert_array_equal(made.faces, loaded.faces)
    np.testing.assert_array_equal(made.source.from_file, loaded.source.from_file)
    np.testing.assert_array_equal(made.source.to_file, loaded.source.to_file)
    assert [vars(f) for f in made.source.findings] == [vars(f) for f in loaded.source.findings]
    assert (made.source.path, made.source.name) == ("", "arrays")


@pytest.mark.parametrize("repair", [True, False])
def test_the_same_as_a_file_with_the_same_faults(tmp_path: Path, repair: bool) -> None:
    # A vertex without a face, a face without area, a repeated face, an inside-out cube, a corner shared by two cubes.
    vertices = np.vstack([CUBE, CUBE[1:] + 1, [[5, 5, 5]]])
    faces = np.vstack([CUBE_FACES[:, ::-1], CUBE_FACES + 7, [[1, 1, 2]], CUBE_FACES[:1]])
    loaded = load(written(tmp_path, vertices, faces), repair=repair)
    made = from_arrays(vertices, faces, repair=repair)
    assert_same(made, loaded)
    assert {"degenerate-faces", "duplicate-faces", "inside-out", "non-manifold-vertices"} <= set(kinds(made))
    if repair:
        assert_valid(made)


def test_polygons_are_split_and_points_alone_are_a_cloud(tmp_path: Path) -> None:
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    assert_same(from_arrays(CUBE, quads), load(written(tmp_path, CUBE, quads)))
    points = np.vstack([CUBE, CUBE[:2], [[np.nan, 0, 0]]])
    np.save(tmp_path / "points.npy", points)
    cloud = from_arrays(points)
    assert isinstance(cloud, PointCloud)
    assert_same(cloud, load(tmp_path / "points.npy"))
    assert kinds(cloud) == {"not-finite": 1, "duplicate-vertices": 2}


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_the_same_messages_as_for_files(tmp_path: Path, wrong: float) -> None:
    bad = CUBE.copy()
    bad[5, 1] = wrong
    outside = CUBE_FACES.copy()
    outside[7, 2] = 8
    for vertices, faces, words in [
        (bad, CUBE_FACES, rf"1 vertices of faces are not finite \(first: vertex 5, \[1\.0, {wrong}, 1\.0\]\)"),
        (CUBE, outside, "face 7 uses vertex 8, but the (file|array) has 8 vertices"),
        (np.ones((8, 3)), CUBE_FACES, "all its vertices coincide"),
        (CUBE[:, [0, 0, 0]], CUBE_FACES, "no face has an area"),
    ]:
        with pytest.raises(InputError, match=rf"^arrays: {words}"):
            from_arrays(vertices, faces)
        with pytest.raises(InputError, match=rf"^a\.off: {words}"):
            load(written(tmp_path, vertices, faces))


def test_lists_tensors_and_other_types_of_numbers() -> None:
    wanted = from_arrays(CUBE, CUBE_FACES)
    tensor = torch.tensor(CUBE, dtype=torch.float32, requires_grad=True)
    for vertices, faces in [
        (CUBE.tolist(), CUBE_FACES.tolist()),
        (tensor, torch.tensor(CUBE_FACES)),
        (tensor.to(torch.bfloat16), CUBE_FACES.astype(np.uint16)),
        (CUBE.astype(np.int8), tuple(map(tuple, CUBE_FACES))),
        (np.asfortranarray(CUBE.astype(">f4")), CUBE_FACES.astype(">i8")),
    ]:
        made = from_arrays(vertices, faces)
        np.testing.assert_array_equal(made.vertices, wanted.vertices)
        np.testing.assert_array_equal(made.faces, wanted.faces)
        assert (made.vertices.dtype, made.faces.dtype) == (np.float64, np.int32)
    own = CUBE.copy()
    made = from_arrays(own, CUBE_FACES, repair=False)
    own[:] = 0
    np.testing.assert_array_equal(made.vertices, CUBE)


def test_objects_of_trimesh_with_their_colors_and_texture() -> None:
    colors = np.arange(32, dtype=np.uint8).reshape(8, 4)
    plain = trimesh.Trimesh(CUBE, CUBE_FACES[:, ::-1], process=False)
    assert kinds(from_arrays(plain)) == {"inside-out": 12}
    colored = from_arrays(trimesh.Trimesh(CUBE, CUBE_FACES, vertex_colors=colors, process=False))
    np.testing.assert_array_equal(colored.colors, colors)
    cloud = from_arrays(trimesh.PointCloud(CUBE, colors=colors))
    assert isinstance(cloud, PointCloud)
    np.testing.assert_array_equal(cloud.colors, colors)
    from PIL import Image

    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    visual = trimesh.visual.TextureVisuals(uv=CUBE[:, :2], image=Image.fromarray(image))
    textured = from_arrays(trimesh.Trimesh(CUBE, CUBE_FACES, visual=visual, process=False))
    np.testing.assert_array_equal(textured.texture.uv[textured.texture.uv_faces], CUBE[CUBE_FACES][..., :2])
    np.testing.assert_array_equal(textured.texture.image, image)
    with pytest.raises(TypeError, match="alone, without faces"):
        from_arrays(plain, CUBE_FACES)


def test_colors_normals_and_texture() -> None:
    uv = np.random.default_rng(0).uniform(size=(36, 2))
    corners = np.arange(36).reshape(12, 3)
    image = np.zeros((2, 2, 3), np.uint8)
    loose = np.vstack([[[9, 9, 9]], CUBE])
    made = from_arrays(
        loose, CUBE_FACES + 1, colors=np.linspace(0, 1, 27).reshape(9, 3), uv=uv, uv_faces=corners, image=image
    )
    assert made.colors.shape == (8, 4)
    np.testing.assert_array_equal(made.colors[0], [29, 39, 49, 255])
    np.testing.assert_array_equal(made.texture.uv[made.texture.uv_faces], uv[corners])
    np.testing.assert_array_equal(made.source.to_file, np.arange(1, 9))
    cloud = from_arrays(CUBE, normals=2 * CUBE - 1)
    np.testing.assert_allclose(np.linalg.norm(cloud.normals, axis=1), 1)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((CUBE.T,), {}, r"shape of vertices is \(3, 8\), but \(n, 3\) is needed. Transpose"),
        ((CUBE[:, :2],), {}, r"\(8, 2\), but \(n, 3\)"),
        (([[0, 0, 0], [1, 0]],), {}, "not all of the same length"),
        ((CUBE.astype(complex),), {}, "real numbers, not complex128"),
        ((CUBE.astype(str),), {}, "real numbers, not <U"),
        ((np.array([[{}, 1, 2]], dtype=object),), {}, "real numbers, not object"),
        ((CUBE, CUBE_FACES.astype(float)), {}, "integers, not float64"),
        ((CUBE, np.zeros((0, 3), int)), {}, "faces is empty"),
        ((CUBE, []), {}, "faces is empty"),
        ((CUBE, CUBE_FACES.ravel()), {}, r"\(36,\), but \(m, 3\)"),
        ((CUBE, np.full((1, 3), 2**63, np.uint64)), {}, "face 0 uses vertex 9223372036854775807"),
        ((CUBE, CUBE_FACES), {"colors": np.zeros((7, 3))}, r"shape of colors is \(7, 3\), but \(8, 3\) or \(8, 4\)"),
        ((CUBE, CUBE_FACES), {"normals": CUBE}, "normals are for point clouds"),
        ((CUBE, CUBE_FACES), {"image": np.zeros((2, 2, 3), np.uint8)}, "give uv"),
        ((CUBE, CUBE_FACES), {"uv": np.zeros((8, 2)), "image": np.zeros((2, 2))}, "image holds float64"),
        ((CUBE, CUBE_FACES), {"uv": np.zeros((2, 2)), "uv_faces": CUBE_FACES}, "face 0 uses row 3 of uv, which has 2"),
        ((CUBE,), {"uv": np.zeros((8, 2))}, "no texture"),
        ((np.zeros((0, 3)),), {}, "no vertices"),
    ],
)
def test_arrays_that_do_not_fit_are_reported(arguments: tuple, options: dict, words: str) -> None:
    with pytest.raises(InputError, match=rf"^arrays: .*{words}"):
        from_arrays(*arguments, **options)


@pytest.mark.parametrize("wrong", ["scan.ply", Path("scan.ply"), 3, None, {"vertices": CUBE}, Mesh(CUBE, CUBE_FACES)])
def test_anything_else_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"^from_arrays: vertices must be an array"):
        from_arrays(wrong)


def test_a_shape_from_arrays_has_no_file_beside_it() -> None:
    with pytest.raises(InputError, match="read from files"):
        own_descriptors(from_arrays(CUBE, CUBE_FACES))
    assert acnn.describe(from_arrays(CUBE, CUBE_FACES))["path"] is None


def test_a_mesh_made_directly_is_checked_for_what_would_break_later() -> None:
    bad = CUBE.copy()
    bad[3] = np.nan
    with pytest.raises(InputError, match=r"vertex 3 is \[nan"):
        Mesh(bad, CUBE_FACES)
    with pytest.raises(InputError, match="face 0 uses vertex 8, but there are 8 vertices"):
        Mesh(CUBE, np.array([[0, 1, 8]]))
    with pytest.raises(InputError, match="face 1 uses vertex -1"):
        Mesh(CUBE, np.array([[0, 1, 2], [-1, 2, 3]]))
    with pytest.raises(InputError, match=r"faces has shape \(6, 4\)"):
        Mesh(CUBE, np.zeros((6, 4), int))
    with pytest.raises(InputError, match="integers"):
        Mesh(CUBE, CUBE_FACES.astype(float))
    with pytest.raises(TypeError, match=r"vertices must be a NumPy array, not list; acnn\.from_arrays takes lists"):
        Mesh(CUBE.tolist(), CUBE_FACES)
    with pytest.raises(InputError, match="point 3 is"):
        PointCloud(bad)
    with pytest.raises(InputError, match=r"normals has shape \(7, 3\), but \(8, 3\)"):
        PointCloud(CUBE, CUBE[:7])
