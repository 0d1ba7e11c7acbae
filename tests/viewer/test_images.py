"""Pictures: silhouettes, depth order, colours and files, on shapes whose picture is known."""

import numpy as np
import pytest

from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud
from acnn.viewer import grid, position_colors, render, save_png, value_colors


def sphere(rings=40, sectors=80):
    theta = np.linspace(0, np.pi, rings + 1)[1:-1]
    phi = np.arange(sectors) * 2 * np.pi / sectors
    body = np.stack(
        [
            np.outer(np.sin(theta), np.cos(phi)).ravel(),
            np.repeat(np.cos(theta), sectors),
            -np.outer(np.sin(theta), np.sin(phi)).ravel(),
        ],
        axis=1,
    )
    vertices = np.concatenate([body, [[0, 1, 0], [0, -1, 0]]])
    at = np.arange((rings - 1) * sectors).reshape(rings - 1, sectors)
    a, b, c, d = at[:-1], np.roll(at, -1, 1)[:-1], at[1:], np.roll(at, -1, 1)[1:]
    faces = [np.stack([a, c, b], -1), np.stack([b, c, d], -1)]
    top, bottom = len(vertices) - 2, len(vertices) - 1
    caps = [(top, at[0, i], at[0, i - sectors + 1]) for i in range(sectors)]
    caps += [(bottom, at[-1, i - sectors + 1], at[-1, i]) for i in range(sectors)]
    return Mesh(vertices, np.concatenate([f.reshape(-1, 3) for f in faces] + [np.array(caps)]).astype(np.int32))


def square(z, half=1.0):
    corners = np.array([[-half, -half, z], [half, -half, z], [half, half, z], [-half, half, z]])
    return corners, np.array([[0, 1, 2], [0, 2, 3]])


def two_squares(front, back):
    """A large square behind, a small one in front (towards +z), with their colours."""
    v1, f1 = square(0.0)
    v2, f2 = square(1.0, 0.5)
    colors = np.concatenate([np.tile(back, (4, 1)), np.tile(front, (4, 1))])
    return Mesh(np.concatenate([v1, v2]), np.concatenate([f1, f2 + 4]).astype(np.int32)), colors


def covered(image):
    return (image != 255).any(axis=2)


def test_sphere_has_a_round_silhouette_of_the_right_size():
    image = render(sphere(), size=(200, 200), perspective=0, span=2.5)
    mask = covered(image)
    rows, columns = np.nonzero(mask)
    radius = 200 / 2.5
    assert mask.sum() == pytest.approx(np.pi * radius**2, rel=0.02)
    distance = np.hypot(rows + 0.5 - 100, columns + 0.5 - 100)
    assert distance.max() < radius + 1.5
    inside = np.hypot(*np.mgrid[-99.5:100, -99.5:100]) < radius - 2
    assert mask[inside].all()


def test_sphere_is_lit_from_above_left():
    image = render(sphere(), size=(200, 200)).astype(float).mean(axis=2)
    assert image[60, 60] > image[140, 140] + 20


@pytest.mark.parametrize("perspective", [0.0, 30.0])
def test_a_red_face_hides_a_blue_one_behind(perspective):
    mesh, colors = two_squares((1.0, 0, 0), (0, 0, 1.0))
    front = render(mesh, colors=colors, size=(120, 120), perspective=perspective)
    assert front[60, 60, 0] > 100 > front[60, 60, 2]
    assert front[15, 15, 2] > 100 > front[15, 15, 0]
    back = render(mesh, colors=colors, size=(120, 120), view="back", perspective=perspective)
    assert back[60, 60, 2] > 100 > back[60, 60, 0]


def test_order_of_faces_does_not_matter():
    mesh, colors = two_squares((1.0, 0, 0), (0, 0, 1.0))
    turned = Mesh(mesh.vertices, mesh.faces[::-1].copy())
    assert np.array_equal(render(mesh, colors=colors, size=(90, 90)), render(turned, colors=colors, size=(90, 90)))


def test_the_nearer_point_of_a_cloud_wins():
    cloud = PointCloud(np.array([[0, 0, 1.0], [0, 0, 0.0], [1, 1, 0], [-1, -1, 0]]))
    colors = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 0]])
    image = render(cloud, colors=colors, size=(100, 100), point_size=0.5, perspective=0)
    assert image[50, 50, 0] > 100 > image[50, 50, 2]
    disc = covered(render(cloud, colors=colors, size=(400, 400), point_size=0.5, perspective=0, span=3.0))
    assert disc.sum() == pytest.approx(3 * np.pi * (0.25 * 400 / 3) ** 2, rel=0.03)


def test_left_view_sees_the_left_side():
    # the body's left is +x when it faces +z: seen from there, the front (+z) is at the left of the picture
    vertices = np.array([[0, 0, -1.0], [0, 0, 1], [0, 1, 1], [0, 1, -1]])
    mesh = Mesh(vertices, np.array([[0, 1, 2], [0, 2, 3]], np.int32))
    colors = np.array([[0, 0, 1.0], [1, 0, 0], [1, 0, 0], [0, 0, 1]])
    image = render(mesh, colors=colors, view="left", size=(100, 60))
    assert image[30, 15, 0] > image[30, 15, 2]
    assert image[30, 85, 2] > image[30, 85, 0]


def test_up_axis_turns_the_picture():
    mesh = sphere()
    tall = Mesh(mesh.vertices * [1, 1, 3], mesh.faces)
    rows, columns = np.nonzero(covered(render(tall, up="z", size=(150, 150))))
    assert np.ptp(rows) > 2.5 * np.ptp(columns)


def test_same_input_same_picture():
    mesh = sphere()
    colors = position_colors(mesh.vertices)
    assert np.array_equal(render(mesh, colors=colors, size=(80, 80)), render(mesh, colors=colors, size=(80, 80)))


def test_values_follow_the_scale_and_unknown_ones_are_grey():
    colors = value_colors([0.0, 0.5, 1.0, np.nan], "grey")
    assert colors[0, 0] > colors[1, 0] > colors[2, 0]
    assert np.allclose(colors[3], 0.8)
    assert np.allclose(value_colors([5.0], "grey", 0, 1), value_colors([1.0], "grey", 0, 1))
    mesh = sphere()
    image = render(mesh, values=mesh.vertices[:, 1], cmap="grey", size=(100, 100), vmin=-1, vmax=1)
    assert image[85, 50].mean() > image[15, 50].mean()


def test_position_colors_tell_places_apart():
    mesh = sphere()
    colors = position_colors(mesh.vertices)
    assert colors.shape == mesh.vertices.shape
    assert colors.min() >= 0
    assert colors.max() <= 1
    ends = colors[[np.argmax(mesh.vertices @ d) for d in np.concatenate([np.eye(3), -np.eye(3)])]]
    gaps = np.linalg.norm(ends[:, None] - ends[None], axis=2)[np.triu_indices(6, 1)]
    assert gaps.min() > 0.1
    edge = np.linalg.norm(colors[mesh.faces[:, 0]] - colors[mesh.faces[:, 1]], axis=1)
    assert edge.max() < 0.25


def test_grid_places_pictures_and_png_keeps_them(tmp_path):
    from PIL import Image

    red, blue = np.zeros((20, 30, 3), np.uint8), np.zeros((20, 30, 3), np.uint8)
    red[..., 0] = blue[..., 2] = 255
    sheet = grid([[red, blue], [None, red]], [["one", "two"]], gap=4, text=10)
    assert sheet.shape == (4 * 3 + 2 * 20 + 16, 4 * 3 + 60, 3)
    assert (sheet[4, 4] == [255, 0, 0]).all()
    assert (sheet[4, 38] == [0, 0, 255]).all()
    assert (sheet[-5, 10] == 255).all()
    assert (sheet[24:40] < 100).any()
    path = save_png(sheet, tmp_path / "new" / "sheet.png")
    assert np.array_equal(np.asarray(Image.open(path)), sheet)
    assert [p.name for p in path.parent.iterdir()] == ["sheet.png"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"view": "sideways"}, "sideways"),
        ({"up": "w"}, "up"),
        ({"values": np.zeros(3)}, "vertices"),
        ({"colors": np.zeros((3, 3))}, "expected"),
        ({"values": np.zeros(3122), "colors": np.zeros((3122, 3))}, "not both"),
        ({"size": (0, 10)}, "size"),
        ({"values": np.zeros(3122), "cmap": "no such map"}, "colour map"),
    ],
)
def test_bad_arguments_are_explained(arguments, word):
    with pytest.raises(InputError, match=word):
        render(sphere(), **arguments)


def test_empty_shape_is_refused():
    with pytest.raises(InputError, match="no vertices"):
        render(Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32)))
