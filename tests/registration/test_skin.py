"""Skins along maps: weights at the matches, joints moved with the surface, GLB files that other programs can play."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from analytic import permuted, sphere, subdivided

from acnn.errors import InputError
from acnn.registration.skin import transfer_skin
from acnn.runs.transfer import transfer_files
from acnn.shapes import Mesh, load, save
from acnn.shapes.formats.gltf import write_glb
from acnn.shapes.load import load_skin
from acnn.shapes.mesh import BarycentricPoints
from acnn.shapes.skin import Skin, strongest
from acnn.surface.closest_points import ClosestPoints

NAMES = ("hip", "knee", "ankle", "loose end")
HEIGHTS = (-3.0, -1.0, 1.0, 3.0)


def limb(level: int = 3) -> Mesh:
    """A long body along z, wider in x than in y, and different at its ends."""
    ball = sphere(level)
    x, y, z = ball.vertices.T
    return Mesh(np.column_stack([(1.2 + 0.3 * z) * x, 0.8 * y, 3.5 * z]), ball.faces)


def skin_of(mesh: Mesh) -> Skin:
    """Three bones along z that blend into each other, and a joint without vertices below the last one."""
    z = mesh.vertices[:, 2]
    low, high = np.clip((z + 1) / 0.6 + 0.5, 0, 1), np.clip((z - 1) / 0.6 + 0.5, 0, 1)
    weights = np.column_stack([1 - low, low * (1 - high), low * high, 0 * z])
    transforms = np.tile(np.eye(4), (4, 1, 1))
    transforms[:, 2, 3] = HEIGHTS
    return Skin(NAMES, np.array([-1, 0, 1, 2], np.int32), transforms, sp.csr_array(weights))


def turn(axis: int, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    i, j = [k for k in range(3) if k != axis]
    matrix = np.eye(4)
    matrix[[i, i, j, j], [i, j, i, j]] = c, -s, s, c
    return matrix


def posed(mesh: Mesh, skin: Skin, local: list[np.ndarray]) -> tuple[Mesh, np.ndarray]:
    """The mesh with its joints turned, by linear blend skinning, and the transforms of its joints there."""
    world = []
    for number, parent in enumerate(skin.parents):
        above = np.eye(4) if parent < 0 else world[parent] @ np.linalg.inv(skin.transforms[parent])
        world.append(above @ skin.transforms[number] @ local[number])
    moves = np.array(world) @ np.linalg.inv(skin.transforms)
    blended = np.einsum("nj,jab->nab", skin.weights.toarray(), moves)
    points = np.einsum("nab,nb->na", blended, np.column_stack([mesh.vertices, np.ones(len(mesh.vertices))]))
    return Mesh(points[:, :3], mesh.faces), np.array(world)


def test_the_four_strongest_joints_are_kept_and_normalised() -> None:
    weights = sp.csr_array(np.array([[0.1, 0.3, 0.1, 0.2, 0.25, 0.05], [0, 0, 2.0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]))
    joints, kept = strongest(weights)
    assert joints.tolist() == [[1, 4, 3, 0], [2, 0, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(kept, [np.array([0.3, 0.25, 0.2, 0.1]) / 0.85, [1, 0, 0, 0], [0, 0, 0, 0]])


def test_a_moved_and_scaled_copy_gets_the_same_skin_there() -> None:
    mesh = limb()
    skin = skin_of(mesh)
    shuffled, place = permuted(mesh, 3)
    motion = turn(0, 1.0) @ turn(2, 2.0)
    copy = Mesh(2.5 * shuffled.vertices @ motion[:3, :3].T + [4.0, 5, 6], shuffled.faces)
    points = BarycentricPoints.at_vertices(mesh.faces, np.argsort(place))
    moved = transfer_skin(skin, mesh, copy, points)
    np.testing.assert_allclose(moved.weights.toarray()[place], skin.weights.toarray(), atol=1e-12)
    joints = 2.5 * skin.transforms[:, :3, 3] @ motion[:3, :3].T + [4.0, 5, 6]
    np.testing.assert_allclose(moved.transforms[:, :3, 3], joints, atol=1e-9)
    np.testing.assert_allclose(moved.transforms[:, :3, :3], motion[:3, :3] @ skin.transforms[:, :3, :3], atol=1e-9)


def test_joints_follow_a_bent_body() -> None:
    mesh = limb()
    skin = skin_of(mesh)
    bent, world = posed(mesh, skin, [turn(0, 0.2), turn(1, 0.5), turn(0, -0.4), np.eye(4)])
    finer = subdivided(bent)
    points = ClosestPoints(bent.vertices, bent.faces)(finer.vertices)  # the same triangles on the unbent body
    moved = transfer_skin(skin, mesh, finer, points)
    error = np.linalg.norm(moved.transforms[:, :3, 3] - world[:, :3, 3], axis=1)
    unmoved = np.linalg.norm(skin.transforms[:, :3, 3] - world[:, :3, 3], axis=1)
    assert error.max() < 0.12  # of a body of length 7, where joints moved by up to 1.7
    assert unmoved.max() > 1.5
    np.testing.assert_allclose(moved.weights.sum(axis=1), 1.0, atol=1e-12)


def parts(path):
    """The document and the accessors of a GLB file, read without the package."""
    data = path.read_bytes()
    length = int.from_bytes(data[12:16], "little")
    document, binary = json.loads(data[20 : 20 + length]), data[28 + length :]
    types = {5121: np.uint8, 5123: np.uint16, 5125: np.uint32, 5126: np.float32}
    widths = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}

    def accessor(number):
        record = document["accessors"][number]
        begin = document["bufferViews"][record["bufferView"]]["byteOffset"]
        count = record["count"] * widths[record["type"]]
        return np.frombuffer(binary, types[record["componentType"]], count, begin).reshape(record["count"], -1)

    return document, accessor


def rest_pose(path):
    """Vertices as a program shows them that follows the joints of the file; and joints, weights and positions."""
    document, accessor = parts(path)
    nodes, skin = document["nodes"], document["skins"][0]
    attributes = document["meshes"][0]["primitives"][0]["attributes"]
    above = {child: number for number, node in enumerate(nodes) for child in node.get("children", [])}

    def world(number):
        own = np.array(nodes[number].get("matrix", np.eye(4).ravel())).reshape(4, 4).T
        return world(above[number]) @ own if number in above else own

    inverse = accessor(skin["inverseBindMatrices"]).reshape(-1, 4, 4).transpose(0, 2, 1)
    moves = np.array([world(joint) for joint in skin["joints"]]) @ inverse
    position, joints, weights = (accessor(attributes[name]) for name in ("POSITION", "JOINTS_0", "WEIGHTS_0"))
    blended = np.einsum("nk,nkab->nab", weights, moves[joints])
    shown = np.einsum("nab,nb->na", blended, np.column_stack([position, np.ones(len(position))]))[:, :3]
    return shown, joints, weights, position, [nodes[joint]["name"] for joint in skin["joints"]]


@pytest.fixture
def files(tmp_path):
    """B with its skin, a finer A in other coordinates, and the map of A to B as text."""
    b = limb(2)
    (tmp_path / "b.glb").write_bytes(write_glb(b, skin_of(b)))
    a = subdivided(b)
    save(Mesh(a.vertices @ turn(0, 1.0)[:3, :3].T * 3, a.faces), tmp_path / "a.ply")
    b_loaded, a_loaded = load(tmp_path / "b.glb"), load(tmp_path / "a.ply")
    assert len(b_loaded.vertices) == len(b.vertices)
    points = ClosestPoints(b_loaded.vertices, b_loaded.faces)(a_loaded.vertices / 3 @ turn(0, 1.0)[:3, :3])
    np.savez(
        tmp_path / "map.npz",
        a_to_b=points.largest_corner(b_loaded.faces),
        a_to_b_faces=points.faces,
        a_to_b_weights=points.weights,
    )
    return tmp_path, b, a_loaded


def test_a_skin_goes_from_one_file_to_another(files) -> None:
    folder, b, a = files
    facts = transfer_files(folder / "map.npz", folder / "b.glb", folder / "a.ply", folder / "out.glb", "skin")
    assert (facts["joints"], facts["vertices"], facts["unmatched"]) == (4, len(a.vertices), 0)
    shown, joints, weights, position, names = rest_pose(folder / "out.glb")
    assert tuple(names) == NAMES
    np.testing.assert_allclose(shown, position, atol=1e-5)  # the joints of the file leave the mesh as it is
    np.testing.assert_allclose(position, a.vertices, atol=1e-5)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-6)
    assert joints.shape == (len(a.vertices), 4)
    assert (joints[weights == 0] == 0).all()
    again = load(folder / "out.glb")
    read = load_skin(folder / "out.glb", again)
    assert read.names == NAMES
    assert read.parents.tolist() == [-1, 0, 1, 2]
    direction = turn(0, 1.0)[:3, 2]
    np.testing.assert_allclose(read.transforms[:, :3, 3], 3 * np.outer(HEIGHTS, direction), atol=0.02)
    matches = np.load(folder / "map.npz")
    corners = skin_of(b).weights.toarray()[load(folder / "b.glb").faces[matches["a_to_b_faces"]]]
    wanted = np.einsum("nk,nkj->nj", matches["a_to_b_weights"], corners)
    np.testing.assert_allclose(read.weights.toarray(), wanted, atol=1e-6)


def test_vertices_without_a_match_take_the_weights_beside_them(files) -> None:
    folder, _, a = files
    arrays = dict(np.load(folder / "map.npz"))
    arrays["a_to_b_faces"][::5] = -1
    np.savez(folder / "map.npz", **arrays)
    facts = transfer_files(folder / "map.npz", folder / "b.glb", folder / "a.ply", folder / "out.glb", "skin")
    assert facts["unmatched"] == len(a.vertices[::5])
    np.testing.assert_allclose(rest_pose(folder / "out.glb")[2].sum(axis=1), 1.0, atol=1e-6)


def changed(path, change) -> None:
    """Write a GLB file again with another document."""
    data = path.read_bytes()
    length = int.from_bytes(data[12:16], "little")
    document = json.loads(data[20 : 20 + length])
    change(document)
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    body = len(text).to_bytes(4, "little") + b"JSON" + text + data[20 + length :]
    path.write_bytes(b"glTF" + (2).to_bytes(4, "little") + (12 + len(body)).to_bytes(4, "little") + body)


def several(document) -> None:
    document["skins"].append(document["skins"][0])
    document["nodes"][0].pop("skin")
    document["nodes"] += [{"mesh": 0, "skin": 0}, {"mesh": 0, "skin": 1}]
    document["scenes"][0]["nodes"] += [5, 6]


def loop(document) -> None:
    document["nodes"][4]["children"] = [1]
    document["scenes"][0]["nodes"] = [0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["nodes"][0].pop("skin"), "it has no skin"),
        (several, "2 different skins"),
        (lambda d: d["nodes"][0].update(skin=7), r"'nodes\[0\].skin' is 7"),
        (lambda d: d["skins"][0].update(joints=[1, 2, 99]), r"'skins\[0\].joints\[2\]' is 99"),
        (lambda d: d["skins"][0].update(joints=[1, 2]), "uses joint 2, but there are 2"),
        (lambda d: d["skins"][0].update(joints=[1, 2, 3, 3]), "4 joints, some of them twice"),
        (lambda d: d["skins"][0].update(joints=[]), "0 joints"),
        (loop, "above themselves"),
        (lambda d: d["skins"][0].update(inverseBindMatrices=0), "inverse bind matrices have shape"),
        (lambda d: d["meshes"][0]["primitives"][0]["attributes"].pop("WEIGHTS_0"), "do not fit each other"),
        (lambda d: d["meshes"][0]["primitives"][0]["attributes"].update(WEIGHTS_0=0), "accessor 0 has"),
    ],
)
def test_damaged_and_missing_skins_are_refused(files, change, words) -> None:
    folder = files[0]
    changed(folder / "b.glb", change)
    arguments = folder / "map.npz", folder / "b.glb", folder / "a.ply", folder / "out.glb", "skin"
    with pytest.raises(InputError, match=words) as caught:
        transfer_files(*arguments)
    assert str(caught.value).startswith("b.glb: ")
    assert not (folder / "out.glb").exists()


def test_what_has_no_skin_or_cannot_hold_one_is_refused(files) -> None:
    folder, b, _ = files
    save(b, folder / "b.ply")
    with pytest.raises(InputError, match=r"b\.ply: only glTF and GLB files have skins"):
        transfer_files(folder / "map.npz", folder / "b.ply", folder / "a.ply", folder / "out.glb", "skin")
    with pytest.raises(InputError, match=r"cannot store skins\. Use one of GLB"):
        transfer_files(folder / "map.npz", folder / "b.glb", folder / "a.ply", folder / "out.obj", "skin")
