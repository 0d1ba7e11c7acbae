"""Files carried along maps: there and back, numbered as in the files."""

import numpy as np
import pytest
from analytic import bumpy, permuted, subdivided

from acnn.correspondence.map_files import fingerprint, read_map
from acnn.errors import InputError
from acnn.runs.transfer import transfer_files
from acnn.shapes import Mesh, PointCloud, load, save
from acnn.shapes.mesh import Texture
from acnn.surface.closest_points import ClosestPoints


@pytest.fixture
def pair(tmp_path):
    """B, and A: the same surface with vertices in another order and a stray vertex in front; maps both ways."""
    b = bumpy(2)
    a, place = permuted(b, 5)
    save(b, tmp_path / "b.ply")
    save(Mesh(np.vstack([[[9.0, 9, 9]], a.vertices]), a.faces + 1), tmp_path / "a.off")
    a_to_b = np.append(-1, np.argsort(place))
    np.savetxt(tmp_path / "a_to_b.txt", a_to_b, fmt="%d")
    np.savetxt(tmp_path / "b_to_a.txt", place + 1, fmt="%d")
    return tmp_path, b, a, a_to_b


def there_and_back(folder, what, first, name):
    transfer_files(folder / "a_to_b.txt", folder / "b.ply", folder / "a.off", folder / f"there{name}", what, first)
    transfer_files(
        folder / "b_to_a.txt", folder / "a.off", folder / "b.ply", folder / f"back{name}", what, folder / f"there{name}"
    )
    return folder / f"back{name}"


@pytest.mark.parametrize("kind", ["whole", "fraction", "word", "columns"])
def test_labels_there_and_back(pair, kind):
    folder, b, _, a_to_b = pair
    n = len(b.vertices)
    rng = np.random.default_rng(0)
    values = {
        "whole": rng.integers(0, 9, n),
        "fraction": rng.normal(size=n),
        "word": np.array(["arm", "leg"])[rng.integers(0, 2, n)],
        "columns": rng.normal(size=(n, 3)),
    }[kind]
    form = {"whole": "%d", "word": "%s"}.get(kind, "%.12g")
    name = ".npy" if kind == "columns" else ".txt"
    if name == ".npy":
        np.save(folder / "labels.npy", values)
    else:
        np.savetxt(folder / "labels.txt", values, fmt=form)
    back = there_and_back(folder, "labels", folder / f"labels{name}", name)
    if kind == "word":
        assert back.read_text().split() == values.tolist()
        assert (folder / "there.txt").read_text().splitlines()[1] == values[a_to_b[1]]
        return
    there = np.load(folder / "there.npy") if name == ".npy" else np.loadtxt(folder / "there.txt")
    assert len(there) == n + 1
    assert np.isnan(there[0]).all() if kind != "whole" else there[0] == -1
    np.testing.assert_allclose(there[1:], values[a_to_b[1:]], rtol=1e-8)
    np.testing.assert_allclose(np.load(back) if name == ".npy" else np.loadtxt(back), values, rtol=1e-8)


def test_landmarks_there_and_back_with_their_names(pair):
    folder, _, _, a_to_b = pair
    (folder / "marks.txt").write_text("nose 7\nleft hand 30\n0\n")
    back = there_and_back(folder, "landmarks", folder / "marks.txt", ".txt")
    assert back.read_text() == "nose 7\nleft hand 30\n0\n"
    there = [int(line.split()[-1]) for line in (folder / "there.txt").read_text().splitlines()]
    assert [a_to_b[k] for k in there] == [7, 30, 0]


def test_colours_there_and_back(pair):
    folder, b, _, a_to_b = pair
    colors = np.random.default_rng(1).integers(0, 256, (len(b.vertices), 4)).astype(np.uint8)
    save(Mesh(b.vertices, b.faces, colors), folder / "b.ply")
    facts = transfer_files(folder / "a_to_b.txt", folder / "b.ply", folder / "a.off", folder / "there.ply", "colors")
    assert facts["unmatched"] == 0
    np.testing.assert_array_equal(load(folder / "there.ply").colors, colors[a_to_b[1:]])
    np.savetxt(folder / "back.vts", np.argsort(a_to_b[1:]) + 1, fmt="%d")
    transfer_files(folder / "back.vts", folder / "there.ply", folder / "b.ply", folder / "back.ply", "colors")
    np.testing.assert_array_equal(load(folder / "back.ply").colors, colors)


def test_a_texture_and_a_shape_through_their_files(pair):
    folder, b, a, _ = pair
    uv = np.stack([0.5 + 0.3 * b.vertices[:, 0], 0.5 + 0.2 * b.vertices[:, 2]], axis=1)
    image = np.random.default_rng(2).integers(0, 256, (8, 8, 3)).astype(np.uint8)
    save(Mesh(b.vertices, b.faces, texture=Texture(uv, b.faces, image)), folder / "b.obj")
    facts = transfer_files(folder / "a_to_b.txt", folder / "b.obj", folder / "a.off", folder / "a.glb", "texture")
    assert facts["seam_faces"] == 0
    carried = load(folder / "a.glb")
    np.testing.assert_array_equal(carried.texture.image, image)
    np.testing.assert_allclose(carried.vertices, a.vertices, atol=1e-5)
    corner = carried.texture.uv[carried.texture.uv_faces]
    place = carried.vertices[carried.faces]
    np.testing.assert_allclose(corner[..., 0], 0.5 + 0.3 * place[..., 0], atol=1e-5)
    transfer_files(folder / "a_to_b.txt", folder / "b.obj", folder / "a.off", folder / "moved.obj", "shape")
    moved = load(folder / "moved.obj")
    np.testing.assert_array_equal(moved.faces, b.faces)
    np.testing.assert_allclose(moved.vertices, b.vertices, atol=0.05)
    np.testing.assert_array_equal(moved.texture.image, image)  # B's triangles keep B's picture


def test_exact_places_are_used_where_the_map_has_them(tmp_path):
    b = bumpy(2)
    a = subdivided(b)
    save(b, tmp_path / "b.ply")
    save(a, tmp_path / "a.ply")
    places = ClosestPoints(b.vertices, b.faces)(a.vertices)
    arrays = {"a_to_b": places.largest_corner(b.faces), "a_to_b_faces": places.faces, "a_to_b_weights": places.weights}
    np.savez(tmp_path / "map.npz", **arrays)
    np.save(tmp_path / "height.npy", b.vertices[:, 2])
    transfer_files(
        tmp_path, tmp_path / "b.ply", tmp_path / "a.ply", tmp_path / "o.npy", "labels", tmp_path / "height.npy"
    )
    np.testing.assert_allclose(np.load(tmp_path / "o.npy"), a.vertices[:, 2], atol=1e-6)


def test_clouds_take_colours_and_refuse_textures(pair):
    folder, b, _, _ = pair
    save(PointCloud(b.vertices), folder / "cloud.ply")
    np.savetxt(folder / "same.txt", np.arange(len(b.vertices)), fmt="%d")
    colors = np.random.default_rng(1).integers(0, 256, (len(b.vertices), 4)).astype(np.uint8)
    save(Mesh(b.vertices, b.faces, colors), folder / "b.ply")
    transfer_files(folder / "same.txt", folder / "b.ply", folder / "cloud.ply", folder / "c.ply", "colors")
    np.testing.assert_array_equal(load(folder / "c.ply").colors, colors)
    with pytest.raises(InputError, match="cloud"):
        transfer_files(folder / "same.txt", folder / "b.ply", folder / "cloud.ply", folder / "d.ply", "texture")
    with pytest.raises(InputError, match="cloud"):
        transfer_files(folder / "same.txt", folder / "cloud.ply", folder / "b.ply", folder / "d.ply", "shape")


@pytest.fixture
def recorded(tmp_path):
    """A map in both forms with a record of its shapes, and a third shape of the same triangulation."""
    b = bumpy(2)
    a, place = permuted(b, 5)
    save(a, tmp_path / "a.ply")
    save(b, tmp_path / "b.ply")
    save(Mesh(b.vertices * [1.0, 1.0, 1.3], b.faces), tmp_path / "other.ply")
    prints = {f"{name}_fingerprint": fingerprint(load(tmp_path / f"{name}.ply")) for name in "ab"}
    np.savez(tmp_path / "map.npz", a_to_b=np.argsort(place), **prints)
    np.savetxt(tmp_path / "a_to_b.txt", np.argsort(place), fmt="%d")
    return tmp_path, a, b


@pytest.mark.parametrize("name", ["", "map.npz", "a_to_b.txt"])
def test_a_map_knows_its_shapes_again(recorded, name):
    folder, a, _ = recorded
    first, second, other = (load(folder / f"{name}.ply") for name in ("a", "b", "other"))
    assert len(read_map(folder / name, first, second).vertices) == len(a.vertices)
    assert read_map(folder / name, first, second).notes == ()
    (note,) = read_map(folder / name, first, other).notes
    assert "other.ply, given as B" in note
    (note,) = read_map(folder / name, other, second).notes
    assert "other.ply, given as A" in note
    with pytest.raises(InputError, match="given as B"):
        read_map(folder / name, first, Mesh(second.vertices, second.faces[1:]))
    with pytest.raises(InputError, match="swapped"):
        read_map(folder / name, second, first)


def test_a_shape_is_known_again_moved_scaled_rounded_or_as_points(recorded):
    folder, _, b = recorded
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    first = load(folder / "a.ply")
    for again in (
        Mesh(100 * b.vertices @ turn + 7, b.faces),
        Mesh(np.round(b.vertices, 4), b.faces),
        PointCloud(b.vertices),
    ):
        assert (read_map(folder, first, again).vertices >= 0).all()
    with pytest.raises(InputError, match="faces"):
        read_map(folder, first, Mesh(b.vertices, b.faces[1:]))


def test_a_map_without_a_record_is_taken(recorded):
    folder, a, _ = recorded
    first, other = load(folder / "a.ply"), load(folder / "other.ply")
    (folder / "elsewhere.txt").write_text((folder / "a_to_b.txt").read_text())
    assert len(read_map(folder / "elsewhere.txt", first, other).vertices) == len(a.vertices)
    (folder / "map.npz").write_bytes(b"damaged")
    assert len(read_map(folder / "a_to_b.txt", first, other).vertices) == len(a.vertices)
    with pytest.raises(InputError, match=r"map\.npz"):
        read_map(folder, first, other)


def test_what_does_not_fit_is_told(pair):
    folder, b, _, _ = pair
    first, second = load(folder / "a.off"), load(folder / "b.ply")
    with pytest.raises(InputError, match="swapped"):
        read_map(folder / "a_to_b.txt", second, first)
    (folder / "far.txt").write_text("500\n" * (len(b.vertices) + 1))
    with pytest.raises(InputError, match="names vertex 500"):
        read_map(folder / "far.txt", first, second)
    np.savez(folder / "map.npz", other=[1])
    with pytest.raises(InputError, match="a_to_b"):
        read_map(folder, first, second)
    with pytest.raises(InputError, match="no such file"):
        read_map(folder / "none.txt", first, second)
    (folder / "short.txt").write_text("1\n2\n")
    with pytest.raises(InputError, match="2 rows"):
        transfer_files(
            folder / "a_to_b.txt", folder / "b.ply", folder / "a.off", folder / "o.txt", "labels", folder / "short.txt"
        )


@pytest.mark.parametrize("kind", [np.uint8, np.bool_, np.uint64])
def test_labels_of_other_whole_numbers(pair, kind):
    folder, b, _, a_to_b = pair
    labels = np.random.default_rng(0).integers(0, 2, len(b.vertices)).astype(kind)
    np.save(folder / "labels.npy", labels)
    files = [folder / name for name in ("a_to_b.txt", "b.ply", "a.off", "o.npy")]
    transfer_files(*files, "labels", folder / "labels.npy")
    np.testing.assert_array_equal(np.load(folder / "o.npy"), np.append(-1, labels[a_to_b[1:]].astype(int)))


def test_numbers_too_large_are_told(pair):
    folder, b, _, _ = pair
    files = [folder / name for name in ("a_to_b.txt", "b.ply", "a.off", "o.txt")]
    (folder / "marks.txt").write_text("nose 3\nchin 99999999999999999999\n")
    with pytest.raises(InputError, match="line 2 names vertex 9999"):
        transfer_files(*files, "landmarks", folder / "marks.txt")
    np.save(folder / "labels.npy", np.full(len(b.vertices), 2**63, np.uint64))
    with pytest.raises(InputError, match="below"):
        transfer_files(*files, "labels", folder / "labels.npy")


def test_skin_weights_stay_convex_and_a_map_serves_both_directions(tmp_path):
    b = bumpy(2)
    a = subdivided(b)
    save(a, tmp_path / "a.ply")
    save(b, tmp_path / "b.ply")
    places = ClosestPoints(b.vertices, b.faces)(a.vertices)
    back = ClosestPoints(a.vertices, a.faces)(b.vertices).largest_corner(a.faces)
    prints = {f"{name}_fingerprint": fingerprint(load(tmp_path / f"{name}.ply")) for name in "ab"}
    arrays = {"a_to_b": places.largest_corner(b.faces), "a_to_b_faces": places.faces, "a_to_b_weights": places.weights}
    np.savez(tmp_path / "map.npz", b_to_a=back, **arrays, **prints)
    skin = np.random.default_rng(0).dirichlet(np.ones(6), len(b.vertices))
    np.save(tmp_path / "skin.npy", skin)
    files = [tmp_path / name for name in ("b.ply", "a.ply", "on_a.npy")]
    transfer_files(tmp_path, *files, "labels", tmp_path / "skin.npy")
    on_a = np.load(tmp_path / "on_a.npy")
    assert on_a.shape == (len(a.vertices), 6)
    assert on_a.min() >= 0
    np.testing.assert_allclose(on_a.sum(axis=1), 1.0, atol=1e-12)
    transfer_files(tmp_path, *[tmp_path / n for n in ("a.ply", "b.ply", "on_b.npy")], "labels", tmp_path / "on_a.npy")
    np.testing.assert_allclose(np.load(tmp_path / "on_b.npy"), skin, atol=1e-6)


@pytest.mark.parametrize(("name", "base"), [("out.txt", 0), ("out.vts", 1), ("out.map", 1), ("out.npz", None)])
def test_maps_are_written_and_read_in_every_format(pair, name, base):
    folder, _, _, a_to_b = pair
    files = folder / "b.ply", folder / "a.off"
    facts = transfer_files(folder / "a_to_b.txt", *files, folder / "new" / name, "map")
    if base is not None:
        np.testing.assert_array_equal(np.loadtxt(folder / "new" / name, dtype=int), a_to_b + base)
        assert facts["rows"] == len(a_to_b)
    a, b = load(folder / "a.off"), load(folder / "b.ply")
    again = read_map(folder / "new" / name, a, b)
    np.testing.assert_array_equal(again.vertices, read_map(folder / "a_to_b.txt", a, b).vertices)
    transfer_files(folder / "new" / name, *files, folder / "back.txt", "map")
    np.testing.assert_array_equal(np.loadtxt(folder / "back.txt", dtype=int), a_to_b)
    with pytest.raises(InputError, match="already exists"):
        transfer_files(folder / "a_to_b.txt", *files, folder / "new" / name, "map")


def test_maps_of_other_formats_and_outside_the_shape_are_refused(pair):
    folder, b, _, a_to_b = pair
    files = folder / "b.ply", folder / "a.off"
    with pytest.raises(InputError, match=r"cannot be written as '\.csv'. Use one of .*\.map \(1-based\)"):
        transfer_files(folder / "a_to_b.txt", *files, folder / "out.csv", "map")
    np.savetxt(folder / "from_one.map", np.where(a_to_b == 3, len(b.vertices) + 1, a_to_b + 1), fmt="%d")
    n = len(b.vertices)
    with pytest.raises(InputError, match=rf"names vertex {n + 1}, but B's vertices are 1 to {n} in this format"):
        transfer_files(folder / "from_one.map", *files, folder / "out.txt", "map")


def test_points_of_a_map_survive_writing(tmp_path):
    b = bumpy(2)
    a = subdivided(b)
    save(a, tmp_path / "a.ply")
    save(b, tmp_path / "b.ply")
    points = ClosestPoints(b.vertices, b.faces)(a.vertices)
    faces = points.faces.copy()
    faces[7] = -1
    arrays = {"a_to_b": points.largest_corner(b.faces), "a_to_b_faces": faces, "a_to_b_weights": points.weights}
    np.savez(tmp_path / "map.npz", **arrays, confidence=np.linspace(0, 1, len(faces)))
    transfer_files(tmp_path / "map.npz", tmp_path / "b.ply", tmp_path / "a.ply", tmp_path / "again.npz", "map")
    shapes = load(tmp_path / "a.ply"), load(tmp_path / "b.ply")
    first, again = (read_map(tmp_path / name, *shapes) for name in ("map.npz", "again.npz"))
    np.testing.assert_array_equal(again.vertices, first.vertices)
    assert again.vertices[7] == -1
    np.testing.assert_array_equal(again.points.faces, first.points.faces)
    np.testing.assert_allclose(again.points.weights, first.points.weights, atol=1e-12)
    np.testing.assert_array_equal(again.confidence, first.confidence)
