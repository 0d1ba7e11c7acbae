"""What goes out comes back, in every format; and files of other programs, written here by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud, Texture, describe, load, save


def octahedron() -> tuple[np.ndarray, np.ndarray]:
    vertices = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1.0]])
    faces = [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
    return vertices, np.array(faces, np.int32)


def textured() -> Mesh:
    """An octahedron whose every face has texture coordinates of its own: all edges are seams."""
    vertices, faces = octahedron()
    rng = np.random.default_rng(3)
    uv = rng.random((24, 2)).round(3)
    colors = rng.integers(0, 256, (6, 4)).astype(np.uint8)
    image = rng.integers(0, 256, (5, 7, 3)).astype(np.uint8)
    return Mesh(vertices, faces, colors, Texture(uv, np.arange(24, dtype=np.int32).reshape(8, 3), image))


@pytest.mark.parametrize("name", ["a.ply", "a.obj", "a.off", "a.glb"])
def test_geometry_and_colors_survive_exactly(tmp_path: Path, name: str) -> None:
    vertices, faces = octahedron()
    colors = np.random.default_rng(0).integers(0, 256, (6, 4)).astype(np.uint8)
    assert save(Mesh(vertices, faces, colors), tmp_path / name) == ()
    back = load(tmp_path / name)
    assert isinstance(back, Mesh)
    np.testing.assert_allclose(back.vertices, vertices, rtol=0, atol=1e-6 if name == "c.ply" else 0)
    np.testing.assert_array_equal(back.faces, faces)
    np.testing.assert_array_equal(back.colors, colors)
    assert back.source is not None
    assert back.source.findings == ()
    assert back.vertices.dtype == np.float64
    assert back.faces.dtype == np.int32


@pytest.mark.parametrize("name", ["a.ply", "a.obj", "a.glb"])
def test_seams_and_image_survive_without_duplicate_vertices(tmp_path: Path, name: str) -> None:
    mesh = textured()
    save(mesh, tmp_path / name)
    back = load(tmp_path / name)
    assert isinstance(back, Mesh)
    np.testing.assert_array_equal(back.vertices, mesh.vertices)
    np.testing.assert_array_equal(back.faces, mesh.faces)
    np.testing.assert_array_equal(back.colors, mesh.colors)
    assert back.texture is not None
    np.testing.assert_allclose(
        back.texture.uv[back.texture.uv_faces], mesh.texture.uv[mesh.texture.uv_faces], rtol=0, atol=1e-6
    )
    np.testing.assert_array_equal(back.texture.image, mesh.texture.image)


@pytest.mark.parametrize("name", ["a.ply", "a.obj"])
def test_files_beside_a_shape_are_never_overwritten(tmp_path: Path, name: str) -> None:
    for other in ("a.png", "a.mtl", "a-1.png"):
        (tmp_path / other).write_text("mine")
    mesh = textured()
    for _ in range(2):  # the second time, the files of the first hold just what is needed
        save(mesh, tmp_path / name)
        assert all((tmp_path / other).read_text() == "mine" for other in ("a.png", "a.mtl", "a-1.png"))
        np.testing.assert_array_equal(load(tmp_path / name).texture.image, mesh.texture.image)
    beside = {"a.png", "a.mtl", "a-1.png", "a-2.png"} | ({"a-1.mtl"} if name == "a.obj" else set())
    assert {path.name for path in tmp_path.iterdir()} == beside | {name}


def test_glb_seam_copies_map_to_one_vertex(tmp_path: Path) -> None:
    save(textured(), tmp_path / "a.glb")
    source = load(tmp_path / "a.glb").source
    assert len(source.from_file) == 24
    assert [f.kind for f in source.findings if f.repaired] == ["duplicate-vertices"]
    # Every copy stands for the vertex whose first copy `to_file` names.
    np.testing.assert_array_equal(source.from_file[source.to_file], np.arange(6))


def test_all_digits_survive_text(tmp_path: Path) -> None:
    vertices, faces = octahedron()
    vertices = vertices * np.pi * 1e-9 + 1 / 3
    for name in ("a.off", "a.obj", "a.ply"):
        save(Mesh(vertices, faces), tmp_path / name)
        np.testing.assert_array_equal(load(tmp_path / name).vertices, vertices)


def test_stl_is_welded_and_reports_what_it_cannot_store(tmp_path: Path) -> None:
    assert save(textured(), tmp_path / "a.stl") == ("colours", "texture", "image")
    back = load(tmp_path / "a.stl")
    assert (len(back.vertices), len(back.faces)) == (6, 8)
    assert len(back.source.from_file) == 24
    np.testing.assert_array_equal(back.vertices[back.source.from_file[3:6]], textured().vertices[textured().faces[1]])


@pytest.mark.parametrize("name", ["c.ply", "c.xyz", "c.npy"])
def test_clouds_survive(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(1)
    vertices = rng.normal(size=(50, 3))
    normals = vertices / np.linalg.norm(vertices, axis=1, keepdims=True)
    colors = np.column_stack([rng.integers(0, 256, (50, 3)), np.full(50, 255)]).astype(np.uint8)
    lost = save(PointCloud(vertices, normals, colors), tmp_path / name)
    back = load(tmp_path / name)
    assert isinstance(back, PointCloud)
    np.testing.assert_allclose(back.vertices, vertices, rtol=0, atol=1e-6 if name == "c.ply" else 0)
    np.testing.assert_allclose(back.normals, normals, atol=1e-15)
    if name == "c.npy":
        assert lost == ("colours",)
    else:
        np.testing.assert_array_equal(back.colors, colors)


@pytest.mark.parametrize("order", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_ply_with_mixed_polygons_keeps_the_order_of_faces(tmp_path: Path, order: str) -> None:
    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [2, 0.5, 0.5]], float)
    polygons = [[0, 1, 2, 3], [1, 4, 2]]
    header = f"ply\nformat {order} 1.0\ncomment made by hand\nelement vertex 5\nproperty float x\nproperty float y\n"
    header += (
        "property float z\nelement face 2\nproperty list uchar int vertex_indices\nproperty uchar flag\nend_header\n"
    )
    if order == "ascii":
        body = "".join(f"{x} {y} {z}\n" for x, y, z in points)
        body += "".join(f"{len(p)} {' '.join(map(str, p))} 9\n" for p in polygons)
        data = (header + body).encode()
    else:
        e = ">" if "big" in order else "<"
        body = points.astype(e + "f4").tobytes()
        for p in polygons:
            body += bytes([len(p)]) + np.array(p, e + "i4").tobytes() + b"\x09"
        data = header.encode() + body
    (tmp_path / "a.ply").write_bytes(data)
    mesh = load(tmp_path / "a.ply", repair=False)
    np.testing.assert_array_equal(mesh.vertices, points)
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [0, 2, 3], [1, 4, 2]])
    assert (mesh.source.findings[0].kind, mesh.source.findings[0].count) == ("polygons", 1)


def test_a_concave_polygon_is_split_inside_itself(tmp_path: Path) -> None:
    # An L of area 3 and an arrow head of area 1, whose fans around the first corner leave the polygon.
    shapes = {
        3.0: [(1, 1), (1, 2), (0, 2), (0, 0), (2, 0), (2, 1)],
        1.0: [(0, 1), (-1, -1), (0, 0), (1, -1)],
    }
    for area, outline in shapes.items():
        for shift in range(len(outline)):
            turned = outline[shift:] + outline[:shift]
            text = "".join(f"v {x} {y} {0.0}\n" for x, y in turned)
            text += "f " + " ".join(str(i + 1) for i in range(len(turned))) + "\n"
            (tmp_path / "a.obj").write_text(text)
            mesh = load(tmp_path / "a.obj", repair=False)
            p = mesh.vertices[mesh.faces]
            signed = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])[:, 2] / 2
            assert signed.sum() == pytest.approx(area)
            assert (np.sign(signed) == np.sign(area)).all()


def test_obj_negative_indices_continued_lines_and_mixed_corners(tmp_path: Path) -> None:
    text = "# by hand\n  v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\nvn 0 0 1\nf -3/-3 -2/-2/-1 \\\n -1/-1\n"
    text += "v 0 0 1\nv 1 0 1\nv 0 1 1\nf 4 6 5\n"
    (tmp_path / "a.obj").write_text(text)
    mesh = load(tmp_path / "a.obj", repair=False)
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [3, 5, 4]])
    np.testing.assert_array_equal(mesh.texture.uv[mesh.texture.uv_faces[0]], [[0, 0], [1, 0], [0, 1]])
    assert "texture-incomplete" in [f.kind for f in mesh.source.findings]


def test_off_variants(tmp_path: Path) -> None:
    body = "3 1 0\n0 0 0 1.0 0.5 0.0 1.0\n1 0 0 0 1 0 1 # inline\n\n0 1 0 0 0 1 1\n3 0 1 2 0.5 0.5 0.5\n"
    (tmp_path / "a.off").write_text("COFF " + body)
    mesh = load(tmp_path / "a.off")
    np.testing.assert_array_equal(mesh.colors[0], [255, 128, 0, 255])
    assert "face-colors" in [f.kind for f in mesh.source.findings]


def test_gltf_transforms_mirror_and_outside_file(tmp_path: Path) -> None:
    save(Mesh(*octahedron()), tmp_path / "a.glb")
    glb = (tmp_path / "a.glb").read_bytes()
    length = int.from_bytes(glb[12:16], "little")
    document = json.loads(glb[20 : 20 + length])
    (tmp_path / "a.bin").write_bytes(glb[28 + length :])
    document["buffers"][0]["uri"] = "a.bin"
    document["nodes"] = [{"children": [1]}, {"mesh": 0, "scale": [-2, 1, 1], "translation": [5, 0, 0]}]
    (tmp_path / "a.gltf").write_text(json.dumps(document))
    mesh = load(tmp_path / "a.gltf")
    # The mirrored coordinates stay; the reader turns the faces, so that the outside is outside.
    np.testing.assert_array_equal(mesh.vertices[:, 0], 5 - 2 * octahedron()[0][:, 0])
    assert mesh.source.findings == ()
    secret = tmp_path / "secret.bin"
    secret.write_bytes(glb[28 + length :])
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "link.bin").symlink_to(secret)
    for uri in (
        "../secret.bin",
        str(secret),
        f"file://{secret}",
        "http://localhost/secret.bin",
        "%2e%2e/secret.bin",
        "link.bin",
    ):
        document["buffers"][0]["uri"] = uri
        (tmp_path / "inner" / "a.gltf").write_text(json.dumps(document))
        with pytest.raises(InputError, match="same folder"):
            load(tmp_path / "inner" / "a.gltf")


def test_a_gltf_half_and_its_mirror_image_are_stitched(tmp_path: Path) -> None:
    vertices, faces = octahedron()
    half = faces[(faces != 1).all(axis=1)]
    uv = np.random.default_rng(0).random((6, 2)).astype(np.float32).astype(float)
    save(Mesh(vertices, half, texture=Texture(uv, half)), tmp_path / "a.glb")
    glb = (tmp_path / "a.glb").read_bytes()
    length = int.from_bytes(glb[12:16], "little")
    document = json.loads(glb[20 : 20 + length])
    (tmp_path / "a b.bin").write_bytes(glb[28 + length :])
    document["buffers"][0]["uri"] = "a%20b.bin"
    document["nodes"] = [{"mesh": 0}, {"mesh": 0, "scale": [-1, 1, 1]}]
    document["scenes"] = [{"nodes": [0, 1]}]
    (tmp_path / "a.gltf").write_text(json.dumps(document))
    mesh = load(tmp_path / "a.gltf")
    facts = describe(mesh)
    assert (facts["closed"], facts["components"], len(mesh.vertices)) == (True, 1, 6)
    assert facts["volume"] == pytest.approx(4 / 3)
    corners, places = mesh.texture.uv[mesh.texture.uv_faces], mesh.vertices[mesh.faces]
    for corner, place in zip(corners.reshape(-1, 2), np.abs(places).reshape(-1, 3), strict=True):
        wanted = uv[(np.abs(vertices) == place).all(axis=1)]
        assert np.abs(wanted - corner).sum(axis=1).min() < 1e-6


def test_images_are_found_by_the_names_that_files_give_them(tmp_path: Path) -> None:
    mesh = textured()
    for name in ("körper.ply", "körper.obj", "a#1.obj", "a%201.obj", "a%201.ply"):
        save(mesh, tmp_path / name)
        back = load(tmp_path / name)
        assert back.source.findings == (), name
        np.testing.assert_array_equal(back.texture.image, mesh.texture.image)
    old = (tmp_path / "körper.ply").read_bytes().replace("körper".encode(), "körper".encode("latin-1"))
    (tmp_path / "old.ply").write_bytes(old)
    assert load(tmp_path / "old.ply").texture.image is not None


def test_names_of_materials_are_reported_as_left_out(tmp_path: Path) -> None:
    save(textured(), tmp_path / "own.obj")
    assert load(tmp_path / "own.obj").source.findings == ()
    text = (tmp_path / "own.obj").read_text().replace("usemtl surface", "usemtl skin\n  usemtl grey cloth")
    (tmp_path / "a.obj").write_text(text)
    (found,) = load(tmp_path / "a.obj").source.findings
    assert (found.kind, found.count) == ("materials", 2)
    assert "skin, grey cloth" in found.text


def test_obj_comments(tmp_path: Path) -> None:
    save(textured(), tmp_path / "a.obj")
    text = (tmp_path / "a.obj").read_text().replace("mtllib a.mtl", "mtllib a.mtl # beside it").replace("\nf", "# x\nf")
    (tmp_path / "b.obj").write_text("#by hand\n" + text)
    mesh = load(tmp_path / "b.obj")
    assert mesh.source.findings == ()
    np.testing.assert_array_equal(mesh.faces, octahedron()[1])
    assert mesh.texture.image is not None


@pytest.mark.parametrize("name", ["a.ply", "a.obj", "a.off", "a.stl", "a.xyz"])
def test_a_byte_order_mark_changes_nothing(tmp_path: Path, name: str) -> None:
    facets = "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"
    columns = "property float x\nproperty float y\nproperty float z\n"
    text = {
        "a.ply": f"ply\nformat ascii 1.0\nelement vertex 4\n{columns}end_header\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n",
        "a.obj": "v 7 7 7\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 9 9 9\nf 2 3 4\n",
        "a.off": "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n",
        "a.stl": f"solid\n{facets}endsolid\n",
        "a.xyz": "0 0 0\n1 0 0\n0 1 0\n0 0 1\n",
    }[name]
    shapes = []
    for encoding in ("utf-8", "utf-8-sig"):
        (tmp_path / name).write_text(text, encoding=encoding)
        shapes.append(load(tmp_path / name))
    np.testing.assert_array_equal(shapes[0].vertices, shapes[1].vertices)
    assert [f.kind for f in shapes[0].source.findings] == [f.kind for f in shapes[1].source.findings]


def test_a_comment_ends_with_its_line_whatever_ends_lines(tmp_path: Path) -> None:
    text = "0 0 0\n1 0 0\n# the last two\n0 1 0\n1 1 1\n"
    for end in ("\n", "\r\n", "\r"):
        (tmp_path / "a.xyz").write_bytes(text.replace("\n", end).encode())
        assert len(load(tmp_path / "a.xyz").vertices) == 4
        (tmp_path / "a.off").write_bytes(f"OFF\n4 0 0\n{text}".replace("\n", end).encode())
        assert len(load(tmp_path / "a.off").vertices) == 4


@pytest.mark.parametrize(
    ("further", "color", "left_out"),
    [
        ([[145, 10, 20, 30], [12, 10, 20, 30]], [10, 20, 30], "column 4"),
        ([[-900, 10, 20, 255], [12, 10, 20, 255]], [10, 20, 255], "column 4"),
        ([[145, 255, 255, 255], [12, 255, 255, 255]], [255, 255, 255], "column 4"),
        ([[10, 20, 30, 255], [40, 20, 30, 255]], [10, 20, 30], "columns 7"),
        ([[10, 20, 30, 0.5], [40, 20, 30, 0.25]], [10, 20, 30], "columns 7"),
    ],
)
def test_seven_columns_hold_an_intensity_or_something_after_the_color(
    tmp_path: Path, further: list, color: list[int], left_out: str
) -> None:
    rows = [f"{i} 0.5 {i * i} " + " ".join(map(str, row)) for i, row in enumerate(further)]
    (tmp_path / "a.pts").write_text("\n".join(["2", *rows]) + "\n")
    cloud = load(tmp_path / "a.pts")
    np.testing.assert_array_equal(cloud.colors[0], [*color, 255])
    assert cloud.normals is None
    assert left_out in cloud.source.findings[0].text


def test_seven_columns_with_a_normal_keep_it(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("0 0 0 0 0 1 7\n1 0 0 0 0 1 8\n0 1 0 0 0 1 9\n")
    cloud = load(tmp_path / "a.xyz")
    np.testing.assert_array_equal(cloud.normals, [[0, 0, 1]] * 3)
    assert cloud.colors is None


@pytest.mark.parametrize("order", ["ascii", "binary_little_endian", "binary_big_endian"])
@pytest.mark.parametrize(
    ("kind", "alpha", "rows", "wanted"),
    [
        ("ushort", "uchar", [[0, 32768, 65535, 255], [257, 2570, 1, 64]], [[0, 128, 255, 255], [1, 10, 0, 64]]),
        ("short", "ushort", [[0, 16384, 32767, 65535], [0, 0, 0, 0]], [[0, 128, 255, 255], [0, 0, 0, 0]]),
        ("int", "int", [[0, 100, 255, 255], [1, 2, 3, 255]], [[0, 100, 255, 255], [1, 2, 3, 255]]),
        ("uint", "uchar", [[0, 32768, 65535, 255], [0, 0, 0, 9]], [[0, 128, 255, 255], [0, 0, 0, 9]]),
        ("uint", "uchar", [[0, 2**31, 2**32 - 1, 255], [0, 0, 0, 9]], [[0, 128, 255, 255], [0, 0, 0, 9]]),
        ("float", "uchar", [[0, 0.5, 1, 255], [0, 0, 0, 9]], [[0, 128, 255, 255], [0, 0, 0, 9]]),
    ],
)
def test_ply_colors_of_other_types(tmp_path: Path, order: str, kind: str, alpha: str, rows: list, wanted: list) -> None:
    channels = {"red": kind, "green": kind, "blue": kind, "alpha": alpha}
    header = ["ply", f"format {order} 1.0", "element vertex 2", *(f"property float {axis}" for axis in "xyz")]
    header += [*(f"property {of} {name}" for name, of in channels.items()), "end_header\n"]
    if order == "ascii":
        body = "".join(f"{i} 0 0 {' '.join(map(str, row))}\n" for i, row in enumerate(rows)).encode()
    else:
        types = {"uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4"}
        e = ">" if "big" in order else "<"
        dtype = [(axis, e + "f4") for axis in "xyz"] + [(name, e + types[of]) for name, of in channels.items()]
        body = np.array([(i, 0, 0, *row) for i, row in enumerate(rows)], dtype).tobytes()
    (tmp_path / "a.ply").write_bytes("\n".join(header).encode() + body)
    np.testing.assert_array_equal(load(tmp_path / "a.ply").colors, wanted)


def test_pickled_npy_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        load(tmp_path / "a.npy")


def test_broken_stl_normals_do_not_matter_and_nothing_is_printed(tmp_path: Path, capfd, caplog) -> None:
    facets = []
    for corners in octahedron()[0][octahedron()[1]]:
        rows = [f"vertex {x} {y} {z}" for x, y, z in corners]
        facets.append("\n".join(["facet normal 0 x 0", "outer loop", *rows, "endloop", "endfacet"]))
    (tmp_path / "a.stl").write_text("\n".join(["solid a", *facets, "endsolid a\n"]))
    assert len(load(tmp_path / "a.stl").vertices) == 6
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_save_refuses_what_does_not_fit(tmp_path: Path) -> None:
    mesh = Mesh(*octahedron())
    with pytest.raises(InputError, match="cannot be written"):
        save(mesh, tmp_path / "a.xyz")
    with pytest.raises(InputError, match="does not exist"):
        save(mesh, tmp_path / "nowhere" / "a.ply")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.ply", "a.obj", "a.off", "a.stl", "a.glb"])
def test_a_shape_without_vertices_is_not_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no vertices"):
        save(Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32)), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_what_an_empty_shape_does_not_have_is_none() -> None:
    no_faces = describe(Mesh(np.eye(3), np.zeros((0, 3), np.int32)))
    assert (no_faces["faces"], no_faces["area"], no_faces["closed"]) == (0, 0.0, False)
    assert {no_faces[key] for key in ("mean_edge", "smallest_angle", "obtuse_share", "volume")} == {None}
    nothing = describe(PointCloud(np.zeros((0, 3))))
    assert (nothing["vertices"], nothing["bounding_box"], nothing["extent"]) == (0, None, None)


@pytest.mark.parametrize(
    "make", [lambda c: Mesh(np.eye(3), np.array([[0, 1, 2]]), c), lambda c: PointCloud(np.eye(3), colors=c)]
)
def test_only_bytes_are_colors(make) -> None:
    assert make(np.full((3, 4), 255, np.uint8)).colors.max() == 255
    with pytest.raises(InputError, match="colors holds uint16, but uint8 are needed"):
        make(np.full((3, 4), 65535, np.uint16))
