"""Every defect a file can have: repaired with a map to the vertices of the file, or rejected with its location."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud, describe, load, save

CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
CUBE_FACES = np.array(
    [
        *([0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]),
        *([2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]),
    ]
)


def written(tmp_path: Path, vertices: np.ndarray, faces: np.ndarray, name: str = "a.off") -> Path:
    rows = ["OFF", f"{len(vertices)} {len(faces)} 0"]
    rows += [" ".join(repr(float(x)) for x in p) for p in vertices]
    rows += [f"{len(f)} {' '.join(str(int(i)) for i in f)}" for f in faces]
    (tmp_path / name).write_text("\n".join(rows) + "\n")
    return tmp_path / name


def kinds(shape: Mesh | PointCloud) -> dict[str, int]:
    return {f.kind: f.count for f in shape.source.findings}


def assert_valid(mesh: Mesh) -> dict:
    """What every repaired mesh must be; returns its description."""
    facts = describe(mesh)
    assert facts["manifold"]
    assert facts["oriented"]
    assert len(np.unique(mesh.faces)) == len(mesh.vertices)
    here = mesh.source.from_file[mesh.source.to_file]
    assert (here >= 0).all()
    np.testing.assert_array_equal(mesh.vertices[here], mesh.vertices)
    return facts


def test_a_valid_cube_is_left_alone(tmp_path: Path) -> None:
    mesh = load(written(tmp_path, CUBE, CUBE_FACES))
    assert mesh.source.findings == ()
    np.testing.assert_array_equal(mesh.faces, CUBE_FACES)
    facts = assert_valid(mesh)
    assert facts["volume"] == pytest.approx(1)
    assert facts["area"] == pytest.approx(6)
    assert (facts["genus"], facts["closed"], facts["components"]) == (0, True, 1)
    assert facts["mean_edge"] == pytest.approx((12 + 6 * 2**0.5) / 18)
    assert facts["smallest_angle"] == pytest.approx(45)
    assert facts["obtuse_share"] == 0


@pytest.mark.parametrize("suffix", [".ply", ".off", ".obj", ".stl", ".glb", ".gltf", ".xyz", ".npy", ""])
def test_empty_file(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a{suffix}").write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        load(tmp_path / f"a{suffix}")


@pytest.mark.parametrize("name", ["a.ply", "a.off", "a.stl", "a.glb"])
def test_truncated_file(tmp_path: Path, name: str) -> None:
    save(Mesh(CUBE, CUBE_FACES.astype(np.int32)), tmp_path / name)
    data = (tmp_path / name).read_bytes()
    for share in (0.3, 0.6, 0.9):
        (tmp_path / name).write_bytes(data[: int(share * len(data))])
        with pytest.raises(InputError, match=f"^{name}: "):
            load(tmp_path / name)


def test_missing_file_folder_and_unknown_content(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "none.ply")
    with pytest.raises(InputError, match="folder"):
        load(tmp_path)
    (tmp_path / "a.ply").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(InputError, match="ZIP"):
        load(tmp_path / "a.ply")
    (tmp_path / "a.docx").write_bytes(b"\x00\x01\x02")
    with pytest.raises(InputError, match="known format"):
        load(tmp_path / "a.docx")


def test_a_fault_of_a_reader_is_not_taken_for_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, CUBE, CUBE_FACES)
    for fault in (AttributeError("no such thing"), TypeError("not that"), IndexError("beyond")):

        def faulty(data: bytes, path: Path, fault: Exception = fault) -> None:
            raise fault

        monkeypatch.setattr("acnn.shapes.formats.off.read_off", faulty)
        with pytest.raises(type(fault), match=str(fault)):
            load(path)


@pytest.mark.parametrize("true", [".ply", ".off", ".obj", ".stl", ".glb"])
def test_a_lying_extension_is_seen_through(tmp_path: Path, true: str) -> None:
    save(Mesh(CUBE, CUBE_FACES.astype(np.int32)), tmp_path / f"a{true}")
    lie = tmp_path / ("a.obj" if true != ".obj" else "a.ply")
    (tmp_path / f"a{true}").rename(lie)
    mesh = load(lie)
    assert len(mesh.vertices) == 8
    assert mesh.source.findings[0].kind == "wrong-extension"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_coordinates_that_are_not_finite(tmp_path: Path, value: float) -> None:
    vertices = CUBE.copy()
    vertices[5, 1] = value
    with pytest.raises(InputError, match="vertex 5"):
        load(written(tmp_path, vertices, CUBE_FACES))
    loose = np.vstack([CUBE, [[0, value, 0]]])
    mesh = load(written(tmp_path, loose, CUBE_FACES))
    assert mesh.source.from_file[8] == -1
    np.save(tmp_path / "c.npy", vertices)
    cloud = load(tmp_path / "c.npy")
    assert kinds(cloud) == {"not-finite": 1}
    np.testing.assert_array_equal(cloud.source.from_file, [0, 1, 2, 3, 4, -1, 5, 6])
    np.testing.assert_array_equal(cloud.source.to_file, [0, 1, 2, 3, 4, 6, 7])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e250])
def test_a_loose_vertex_far_away_or_nowhere_changes_no_fact(tmp_path: Path, value: float) -> None:
    loose = np.vstack([CUBE + [0, 0, 3], [[value, 0, 3]] * 2, [[0, 0, 0]]])
    path = written(tmp_path, loose, CUBE_FACES)
    sound = describe(load(written(tmp_path, CUBE + [0, 0, 3], CUBE_FACES, "sound.off")))
    for repair in (False, True):
        mesh = load(path, repair=repair)
        found = {"not-finite": 2} if not np.isfinite(value) else {"coincident-vertices": 1}
        assert kinds(mesh) == found | {"unreferenced-vertices": 3}
        facts = describe(mesh)
        for name in ("bounding_box", "extent", "area", "volume", "mean_edge", "smallest_angle", "obtuse_share"):
            assert facts[name] == sound[name], name


def test_absurd_coordinates_are_refused(tmp_path: Path) -> None:
    vertices = CUBE.copy()
    vertices[3, 0] = 1e250
    with pytest.raises(InputError, match="vertex 3"):
        load(written(tmp_path, vertices, CUBE_FACES))


@pytest.mark.parametrize("wrong", [8, -1, 2**31])
def test_face_index_out_of_range(tmp_path: Path, wrong: int) -> None:
    faces = CUBE_FACES.copy()
    faces[7, 2] = wrong
    with pytest.raises(InputError, match=f"face 7 uses vertex {wrong}, but the file has 8 vertices"):
        load(written(tmp_path, CUBE, faces))


def test_degenerate_and_duplicate_faces(tmp_path: Path) -> None:
    vertices = np.vstack([CUBE, [[0, 0, 0.5]]])
    faces = np.vstack([CUBE_FACES, [[1, 1, 2], CUBE_FACES[4][[1, 2, 0]], CUBE_FACES[5][::-1], [0, 8, 1]]])
    mesh = load(written(tmp_path, vertices, faces))
    assert kinds(mesh) == {"degenerate-faces": 2, "duplicate-faces": 2, "unreferenced-vertices": 1}
    np.testing.assert_array_equal(mesh.faces, CUBE_FACES)
    assert "face 12" in mesh.source.findings[0].text
    assert_valid(mesh)


def test_a_flat_face_inside_a_closed_surface_leaves_no_slit(tmp_path: Path) -> None:
    # Vertex 8 halves the diagonal 0-3 for one of its faces; a face without area closes the gap to the other.
    vertices = np.vstack([CUBE, (CUBE[0] + CUBE[3]) / 2])
    faces = np.vstack([[[0, 1, 8], [8, 1, 3], [0, 8, 3]], CUBE_FACES[1:]])
    mesh = load(written(tmp_path, vertices, faces))
    assert kinds(mesh) == {"degenerate-faces": 1}
    facts = assert_valid(mesh)
    assert facts["closed"]
    assert (len(mesh.vertices), len(mesh.faces)) == (9, 14)
    assert facts["area"] == pytest.approx(6)
    assert facts["volume"] == pytest.approx(1)


def test_unreferenced_vertices_are_dropped_with_a_map(tmp_path: Path) -> None:
    vertices = np.insert(CUBE, 3, [[9, 9, 9]], axis=0)
    faces = CUBE_FACES + (CUBE_FACES >= 3)
    mesh = load(written(tmp_path, vertices, faces))
    np.testing.assert_array_equal(mesh.source.from_file, [0, 1, 2, -1, 3, 4, 5, 6, 7])
    np.testing.assert_array_equal(mesh.source.to_file, [0, 1, 2, 4, 5, 6, 7, 8])
    np.testing.assert_array_equal(mesh.faces, CUBE_FACES)


def test_a_soup_in_any_format_is_joined(tmp_path: Path) -> None:
    soup = CUBE[CUBE_FACES].reshape(-1, 3)
    mesh = load(written(tmp_path, soup, np.arange(36).reshape(-1, 3)))
    assert assert_valid(mesh)["closed"]
    np.testing.assert_array_equal(mesh.vertices[mesh.source.from_file], soup)


def test_coincident_sheets_stay_apart(tmp_path: Path) -> None:
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    for second in (faces + 4, faces[:, ::-1] + 4):
        mesh = load(written(tmp_path, np.vstack([square, square]), np.vstack([faces, second])))
        assert describe(mesh)["components"] == 2
        assert kinds(mesh)["coincident-vertices"] == 4
    # Two closed cubes in the same place are two cubes.
    both = load(written(tmp_path, np.vstack([CUBE, CUBE]), np.vstack([CUBE_FACES, CUBE_FACES + 8])))
    assert assert_valid(both)["components"] == 2
    assert len(both.vertices) == 16


def test_non_manifold_edge_is_cut(tmp_path: Path) -> None:
    # Three half-planes along one edge, like the pages of a book.
    vertices = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [-1, 0.5, 0], [-1, -0.5, 0.0]])
    mesh = load(written(tmp_path, vertices, np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4]])))
    assert kinds(mesh)["non-manifold-edges"] == 1
    assert kinds(mesh)["non-manifold-vertices"] == 2
    assert assert_valid(mesh)["components"] == 3
    assert len(mesh.vertices) == 9
    np.testing.assert_array_equal(mesh.source.to_file[:5], np.arange(5))
    np.testing.assert_array_equal(mesh.vertices, vertices[mesh.source.to_file])


def test_non_manifold_vertex_is_cut(tmp_path: Path) -> None:
    # Two cubes that share one corner.
    other = CUBE_FACES + 7
    vertices = np.vstack([CUBE, CUBE[1:] + 1])
    mesh = load(written(tmp_path, vertices, np.vstack([CUBE_FACES, other])))
    facts = assert_valid(mesh)
    assert kinds(mesh)["non-manifold-vertices"] == 1
    assert (facts["components"], facts["closed"], len(mesh.vertices)) == (2, True, 16)
    assert facts["volume"] == pytest.approx(2)
    assert mesh.source.to_file[15] == 7


def test_inconsistent_orientation(tmp_path: Path) -> None:
    faces = CUBE_FACES.copy()
    faces[[2, 5, 9]] = faces[[2, 5, 9]][:, [0, 2, 1]]
    mesh = load(written(tmp_path, CUBE, faces))
    assert kinds(mesh) == {"inconsistent-orientation": 3}
    assert assert_valid(mesh)["volume"] == pytest.approx(1)


def test_closed_mesh_inside_out(tmp_path: Path) -> None:
    mesh = load(written(tmp_path, CUBE, CUBE_FACES[:, ::-1]))
    assert kinds(mesh) == {"inside-out": 12}
    assert assert_valid(mesh)["volume"] == pytest.approx(1)


def test_open_mesh_inside_out(tmp_path: Path) -> None:
    bucket = CUBE_FACES[2:]
    right, wrong = (load(written(tmp_path, CUBE, f)) for f in (bucket, bucket[:, [0, 2, 1]]))
    assert kinds(right) == {"boundary": 4}
    assert kinds(wrong) == {"inside-out": 10, "boundary": 4}
    np.testing.assert_array_equal(right.faces, wrong.faces)
    # A flat sheet has no inside: nothing is turned.
    flat = np.column_stack([CUBE[:4, 1:], np.zeros(4)])
    assert "inside-out" not in kinds(load(written(tmp_path, flat, np.array([[0, 2, 1], [1, 2, 3]]))))


def test_a_hollow_beside_a_body_is_not_turned(tmp_path: Path) -> None:
    socket = CUBE_FACES[2:][:, [0, 2, 1]] + 8
    vertices = np.vstack([3 * CUBE, 0.5 * CUBE + 5])
    mesh = load(written(tmp_path, vertices, np.vstack([CUBE_FACES, socket])))
    assert kinds(mesh) == {"components": 2, "boundary": 4}


def test_moebius_band_is_cut_open(tmp_path: Path) -> None:
    n = 12
    angle = 2 * np.pi * np.arange(n) / n
    rows = []
    for side in (-0.3, 0.3):
        r = 1 + side * np.cos(angle / 2)
        rows.append(np.column_stack([r * np.cos(angle), r * np.sin(angle), side * np.sin(angle / 2)]))
    a, b = np.arange(n), np.arange(n) + n
    next_a, next_b = np.append(a[1:], b[0]), np.append(b[1:], a[0])
    faces = np.vstack([np.column_stack([a, next_a, b]), np.column_stack([next_a, next_b, b])])
    mesh = load(written(tmp_path, np.vstack(rows), faces))
    assert kinds(mesh)["one-sided-surface"] == 2 * n
    facts = assert_valid(mesh)
    assert (facts["components"], len(mesh.faces)) == (1, 2 * n)


def test_boundaries_components_and_quads(tmp_path: Path) -> None:
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6]]
    shifted = [[i + 8 for i in q] for q in quads]
    path = written(tmp_path, np.vstack([CUBE, CUBE + 3]), [*quads, *shifted])
    mesh = load(path)
    assert kinds(mesh) == {"polygons": 8, "components": 2, "boundary": 16}
    facts = assert_valid(mesh)
    assert facts["boundary_loops"] == 4
    np.testing.assert_allclose(facts["boundary_lengths"], 4)
    assert (facts["genus"], facts["euler_characteristic"], facts["volume"]) == (0, 0, None)


def test_no_area_is_refused(tmp_path: Path) -> None:
    line = np.column_stack([np.arange(4.0)] * 3)
    for vertices in (line, np.ones((4, 3))):
        with pytest.raises(InputError, match="area"):
            load(written(tmp_path, vertices, np.array([[0, 1, 2], [1, 2, 3]])))
    with pytest.raises(InputError, match="no faces"):
        load(written(tmp_path, CUBE, np.zeros((0, 3))), kind="mesh")
    assert isinstance(load(written(tmp_path, CUBE, np.zeros((0, 3)))), PointCloud)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_findings_do_not_depend_on_the_unit_of_length(tmp_path: Path, scale: float) -> None:
    faces = np.vstack([CUBE_FACES[:, ::-1], [[1, 1, 2]], CUBE_FACES[:1]])
    mesh = load(written(tmp_path, CUBE * scale + 3 * scale, faces))
    assert kinds(mesh) == {"degenerate-faces": 1, "duplicate-faces": 1, "inside-out": 12}
    facts = assert_valid(mesh)
    assert facts["volume"] == pytest.approx(scale**3)
    assert facts["smallest_angle"] == pytest.approx(45)


def test_without_repair_nothing_changes_and_all_is_listed(tmp_path: Path) -> None:
    vertices = np.vstack([CUBE, [[4, 4, 4]]])
    faces = np.vstack([CUBE_FACES[:, ::-1], [[1, 1, 2]]])
    mesh = load(written(tmp_path, vertices, faces), repair=False)
    np.testing.assert_array_equal(mesh.vertices, vertices)
    np.testing.assert_array_equal(mesh.faces, faces)
    assert kinds(mesh) == {"degenerate-faces": 1, "unreferenced-vertices": 1, "inside-out": 12}
    assert not any(f.repaired for f in mesh.source.findings)
    describe(mesh)


def test_cloud_asked_of_a_mesh_and_doubled_points(tmp_path: Path) -> None:
    cloud = load(written(tmp_path, np.vstack([CUBE, CUBE[:1]]), CUBE_FACES), kind="cloud")
    assert isinstance(cloud, PointCloud)
    assert kinds(cloud) == {"faces-ignored": 12, "duplicate-vertices": 1}
    np.testing.assert_array_equal(cloud.source.from_file, [0, 1, 2, 3, 4, 5, 6, 7, 0])


def test_repair_is_idempotent_and_survives_saving(tmp_path: Path) -> None:
    vertices = np.vstack([CUBE, CUBE[1:] + 1, [[5, 5, 5]]])
    mesh = load(written(tmp_path, vertices, np.vstack([CUBE_FACES, CUBE_FACES[:, ::-1] + 7])))
    save(mesh, tmp_path / "repaired.ply")
    again = load(tmp_path / "repaired.ply")
    assert not any(f.repaired for f in again.source.findings)
    np.testing.assert_array_equal(again.vertices, mesh.vertices)
    np.testing.assert_array_equal(again.faces, mesh.faces)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 7)] * 3), min_size=1, max_size=30), st.booleans())
def test_any_set_of_faces_becomes_a_valid_surface_or_is_refused(tmp_path_factory, faces, doubled) -> None:
    folder = tmp_path_factory.mktemp("any")
    vertices = CUBE + 0.01 * np.random.default_rng(0).normal(size=CUBE.shape)
    if doubled:
        vertices[4:] = vertices[:4]
    try:
        mesh = load(written(folder, vertices, np.array(faces)))
    except InputError:
        if not any(len(np.unique(vertices[list(face)], axis=0)) == 3 for face in faces):
            return
        raise
    assert_valid(mesh)


def test_permuting_the_vertices_permutes_the_result(tmp_path: Path) -> None:
    vertices = np.vstack([CUBE, CUBE[1:] + 1, [[5, 5, 5]]])
    faces = np.vstack([CUBE_FACES, CUBE_FACES[:, ::-1] + 7])
    order = np.random.default_rng(2).permutation(len(vertices))
    place = np.argsort(order)
    plain = load(written(tmp_path, vertices, faces))
    mixed = load(written(tmp_path, vertices[order], place[faces]))
    assert {k: v for k, v in kinds(plain).items()} == kinds(mixed)
    np.testing.assert_array_equal(plain.vertices[plain.faces], mixed.vertices[mixed.faces])
