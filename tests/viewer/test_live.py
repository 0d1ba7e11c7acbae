"""The live viewer: what its panels show, and that it works in a browser."""

import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from analytic import bumpy, permuted, rotation
from browser import Browser
from page_content import content, unpacked

from acnn.correspondence import SoftMap
from acnn.datasets import builtin_humans
from acnn.errors import InputError
from acnn.network import ShapeNetwork
from acnn.patches import PatchSettings
from acnn.runs.match import match
from acnn.runs.match_files import match_files
from acnn.runs.view import collect_view
from acnn.shapes import Mesh, load, save
from acnn.shapes.mesh import Texture
from acnn.surface import surface_of
from acnn.surface.simplify import remesh
from acnn.viewer.match_page import write_match_page
from acnn.viewer.view_data import ViewData, ViewShape

pytest.importorskip("viser", reason="viser is not installed: pip install 'acnn[view]'")

from acnn.viewer import live
from acnn.viewer.live import LiveViewer

SETTINGS = PatchSettings(angles=2, scales=(60.0, 400.0), eigenpairs=40)


def view_data():
    """Two turned copies of a reference, their vertices in another order; the first has some wrong matches."""
    reference = bumpy(2)
    n = len(reference.vertices)
    rng = np.random.default_rng(0)
    shapes = []
    for k in range(2):
        mesh, place = permuted(Mesh(reference.vertices @ rotation(k).T, reference.faces), k)
        truth = np.argsort(place).astype(np.int32)
        network = np.where(rng.random(n) < 0.3, rng.integers(0, n, n), truth).astype(np.int32)
        soft = SoftMap(np.stack([network, (network + 1) % n], axis=1), np.tile(np.float32([0.8, 0.15]), (n, 1)), n)
        maps = {"network": network, "refined": truth, "ground truth": truth}
        errors = {"network": (network != truth) * 0.2, "refined": np.zeros(n)}
        shapes.append(ViewShape(f"shape_{k}", mesh, surface_of(mesh), maps, errors, soft, SETTINGS, cache=False))
    model = ShapeNetwork("FC4+IC4+Softmax", 3, n, 2, 2)
    first = ViewShape("reference", reference, surface_of(reference), {}, {}, None, SETTINGS, cache=False)
    return ViewData("bumps", tuple(shapes), SimpleNamespace(model=model), first)


@pytest.fixture(scope="module")
def viewer():
    running = LiveViewer(view_data(), port=0)
    yield running
    running.stop()


def panel(viewer, label):
    return next(p for p in viewer.scene.panels if p.label == label)


def test_matching_vertices_have_the_same_colour(viewer):
    viewer.compare(None)
    viewer.show("matches", "refined")
    reference = panel(viewer, "reference").colors
    for shape in viewer.data.shapes:
        np.testing.assert_array_equal(panel(viewer, shape.name).colors, reference[shape.maps["ground truth"]])
    assert len(np.unique(reference.round(3), axis=0)) > 100
    viewer.show(map_name="network")
    shape = viewer.data.shapes[0]
    np.testing.assert_array_equal(panel(viewer, "shape_0").colors, reference[shape.maps["network"]])
    low, high = (viewer.scene.panels[0].vertices.max(axis=0)[0], viewer.scene.panels[1].vertices.min(axis=0)[0])
    assert low < high  # side by side


def test_numbers_have_a_colour_bar(viewer):
    viewer.show("confidence", "refined")
    assert "confidence" in viewer.controls.bar.content
    assert "linear-gradient" in viewer.controls.bar.content
    viewer.show("matches")
    assert viewer.controls.bar.content == ""


def test_a_result_of_match_is_shown_as_it_was_written(tmp_path):
    mesh = bumpy(2)
    other, _ = permuted(mesh, 3)
    for name, shape in (("a.ply", mesh), ("b.ply", other)):
        save(shape, tmp_path / name)
    options = {"method": "descriptors", "refinement": "none", "cache": False}
    match_files(tmp_path / "a.ply", tmp_path / "b.ply", None, tmp_path / "result", **options)
    data, failures = collect_view([tmp_path / "result"])
    assert failures == []
    written = np.loadtxt(tmp_path / "result" / "a_to_b.txt", dtype=int)
    np.testing.assert_array_equal(data.shapes[0].maps["match"], written)
    np.testing.assert_allclose(data.shapes[0].confidence, np.loadtxt(tmp_path / "result" / "confidence.txt"), atol=1e-6)
    assert (data.shapes[0].name, data.reference.name, data.title) == ("A", "B", "result")
    save(other, tmp_path / "result" / "a_colored.ply")  # another shape in its place
    save(bumpy(1), tmp_path / "result" / "b_colored.ply")
    with pytest.raises(InputError):
        collect_view([tmp_path / "result"])


def test_a_texture_is_shown_on_both_shapes_of_a_result(tmp_path):
    mesh = bumpy(2)
    save(permuted(mesh, 3)[0], tmp_path / "a.ply")
    uv = (mesh.vertices[:, :2] - mesh.vertices[:, :2].min(axis=0)) / 4
    image = np.zeros((64, 64, 3), np.uint8)
    image[:32, :, 0] = 200
    save(replace(mesh, texture=Texture(uv, mesh.faces, image)), tmp_path / "b.obj")
    options = {"method": "descriptors", "refinement": "none", "cache": False}
    match_files(tmp_path / "a.ply", tmp_path / "b.obj", None, tmp_path / "result", **options)
    data, _ = collect_view([tmp_path / "result"])
    np.testing.assert_allclose(data.reference.texture.uv[data.reference.texture.uv_faces], uv[mesh.faces], atol=1e-6)
    assert np.abs(data.reference.texture.image.astype(int) - image).max() < 30  # a JPEG
    viewer = LiveViewer(data, port=0, quantity="texture")
    try:
        for name in "AB":
            assert all(word in panel(viewer, name).node.glb_data for word in (b"image/png", b"NORMAL", b"TEXCOORD_0"))
        viewer.show("matches")
        assert b"image/png" not in panel(viewer, "A").node.glb_data
        assert b'"metallicFactor":0.0' in panel(viewer, "A").node.glb_data  # light from all sides reaches no metal
    finally:
        viewer.stop()
    (tmp_path / "result" / "b_texture.jpg").write_bytes(b"damaged")
    assert "texture" not in live.quantities(collect_view([tmp_path / "result"])[0])


def eye_and_ray(halves, aspect, x, y):
    """The page's camera as it opens: the eye, and a ray through (x, y) in -1..1, in coordinates of a shape."""
    half, slope = np.max(halves, axis=0), np.tan(np.radians(13))
    (ca, cb), (sa, sb) = np.cos([0.35, 0.12]), np.sin([0.35, 0.12])
    turn = np.array([[ca, 0, sa], [sb * sa, cb, -sb * ca], [-cb * sa, sb, cb * ca]])
    side = max(half[0], half[2])
    distance = max(1.14 * half[1], 1.1 * side / aspect) / slope + 0.6 * side
    return turn.T @ [0, 0, distance], turn.T @ [x * slope * aspect, y * slope, -1]


def test_a_click_finds_the_vertex_that_it_finds_on_the_page_of_the_match(tmp_path):
    """A click on the page, and a click of the viewer through the same point of the surface from the same eye."""
    mesh = bumpy(2)
    mesh = Mesh(mesh.vertices * [1.0, 2.5, 0.6], mesh.faces)  # faces of which the nearest corner may weigh least
    other, _ = permuted(Mesh(mesh.vertices @ rotation(1).T, mesh.faces), 3)
    for name, shape in (("a.ply", mesh), ("b.ply", other)):
        save(shape, tmp_path / name)
    found = []
    options = {"method": "descriptors", "refinement": "none", "cache": False, "keep": found.append}
    match_files(tmp_path / "a.ply", tmp_path / "b.ply", None, tmp_path / "result", **options)
    page = write_match_page(found[0], tmp_path / "result" / "match.html")
    held = content(page.read_text())
    assert held["up"] == "y"
    drawn = {name: held[name]["step"] * unpacked(held[name]["vertices"]).reshape(-1, 3) for name in "ab"}
    drawn = {name: points - (points.min(axis=0) + points.max(axis=0)) / 2 for name, points in drawn.items()}
    halves = [points.max(axis=0) for points in drawn.values()]
    viewer = LiveViewer(collect_view([tmp_path / "result"])[0], port=0)
    met = 0
    try:
        with Browser() as browser:
            browser.open(page.as_uri())
            browser.wait("Number(document.documentElement.dataset.drawn) > 0")
            for name, x, y in ((name, x, y) for name in "ab" for x in (-0.11, 0.06) for y in (-0.57, -0.2, 0.13, 0.44)):
                there, cell = panel(viewer, name.upper()), browser.box(f"#cell-{name}")
                browser.click(cell["x"] + cell["width"] * (1 + x) / 2, cell["y"] + cell["height"] * (1 - y) / 2)
                text = browser.run("document.getElementById('picked').textContent")
                eye, ray = eye_and_ray(halves, cell["width"] / cell["height"], x, y)
                to_viewer, *_ = np.linalg.lstsq(
                    np.c_[drawn[name], np.ones(len(mesh.vertices))], there.vertices, rcond=None
                )
                vertex = viewer.scene.vertex_at(there, eye @ to_viewer[:3] + to_viewer[3], ray @ to_viewer[:3])
                assert re.sub(r"[ :→].*", "", text.removeprefix("Vertex ")) == ("" if vertex is None else str(vertex))
                if vertex is not None and name == "a":
                    viewer.pick("A", vertex)
                    assert f"vertex {viewer.vertex_of(panel(viewer, 'B'))} of B" in text
                met += vertex is not None
    finally:
        viewer.stop()
    assert met >= 10


def test_the_pick_is_found_on_every_shape_and_its_probability_spreads(viewer):
    viewer.show("probability of the pick", "refined")
    viewer.pick("shape_0", 5)
    first, second = viewer.data.shapes
    assert viewer.vertex_of(panel(viewer, "shape_0")) == 5
    assert viewer.vertex_of(panel(viewer, "reference")) == first.maps["refined"][5]
    assert viewer.vertex_of(panel(viewer, "shape_1")) == np.flatnonzero(
        second.maps["refined"] == first.maps["refined"][5]
    )
    spread = viewer.spread(panel(viewer, "reference"))
    assert spread.argmax() == first.soft_map.vertices[5, 0]
    assert spread.sum() == pytest.approx(0.95)
    onward = viewer.spread(panel(viewer, "shape_1"))
    np.testing.assert_allclose(onward, spread[second.maps["refined"]], atol=1e-6)
    assert "vertex 5 of **shape\\_0**" in viewer.controls.description.content
    viewer.pick("reference", 9)
    np.testing.assert_allclose(
        viewer.spread(panel(viewer, "shape_0")),
        (np.array([0.8, 0.15]) * (first.soft_map.vertices == 9)).sum(axis=1),
        atol=1e-6,
    )


def test_kernels_and_filters_are_drawn_where_the_pick_is(viewer):
    viewer.show("kernel at the pick")
    viewer.pick("shape_0", 5)
    pale = panel(viewer, "shape_1").colors
    assert np.ptp(pale, axis=0).max() == 0
    viewer.patch(0, 0)
    narrow = panel(viewer, "shape_0").colors.copy()
    darkness = 3 - narrow.sum(axis=1)
    points = panel(viewer, "shape_0").vertices
    assert np.linalg.norm(points[darkness.argmax()] - points[5]) < 0.3
    viewer.patch(1, 0)
    assert not np.array_equal(panel(viewer, "shape_0").colors, narrow)
    viewer.show("filter at the pick")
    before = panel(viewer, "shape_0").colors.copy()
    viewer.filter(2)
    assert viewer.source == np.linalg.norm(viewer.filters[..., 2].reshape(-1, 4), axis=0).argmax()
    assert not np.array_equal(panel(viewer, "shape_0").colors, before)


def test_maps_stand_side_by_side_and_errors_differ(viewer):
    viewer.show("error")
    viewer.compare("shape_0")
    assert [p.label for p in viewer.scene.panels] == ["reference", *(f"shape_0: {m}" for m in viewer.data.map_names)]
    assert np.ptp(panel(viewer, "shape_0: network").colors, axis=0).max() > 0.1
    assert np.ptp(panel(viewer, "shape_0: refined").colors, axis=0).max() == 0
    viewer.show_directions(True)
    assert all("larger" in p.extras for p in viewer.scene.panels)
    viewer.show_directions(False)
    viewer.compare(None)
    assert len(viewer.scene.panels) == 3


def test_clear_errors(viewer, tmp_path):
    with pytest.raises(InputError, match="vertices 0 to 161, not 162"):
        viewer.pick("shape_0", 162)
    with pytest.raises(InputError, match="Unknown quantity 'heat': use one of matches"):
        viewer.show("heat")
    with pytest.raises(InputError, match="use x, y or z"):
        LiveViewer(view_data(), port=0, up="w")
    with pytest.raises(InputError, match="not a finished run"):
        collect_view([tmp_path])
    save(bumpy(1), tmp_path / "a.ply")
    with pytest.raises(InputError, match="cannot be combined with others"):
        collect_view([tmp_path, tmp_path / "a.ply"])
    with pytest.raises(InputError):
        collect_view([tmp_path / "missing.ply"])


def test_files_without_a_run_are_shown_as_they_are(tmp_path):
    for name in ("a.ply", "b.obj"):
        save(bumpy(1), tmp_path / name)
    data, failures = collect_view([tmp_path / "a.ply", tmp_path / "b.obj"], cache=False)
    assert (failures, data.map_names, [s.name for s in data.shapes]) == ([], (), ["a.ply", "b.obj"])
    assert live.quantities(data) == ("kernel at the pick", "plain")


def test_kernels_of_files_are_in_the_unit_of_their_match(tmp_path, monkeypatch):
    from acnn.methods.run import open_run

    save(bumpy(2), tmp_path / "a.ply")
    run = open_run("humans")
    in_parts = replace(run, record=replace(run.record, unit=0.02))
    monkeypatch.setattr("acnn.methods.run.open_run", lambda _: in_parts)
    data, _ = collect_view([tmp_path / "a.ply"], tmp_path, refinement="none", cache=False)
    (shape,) = data.shapes
    assert shape.unit == shape.surface.unit == 0.02


@pytest.mark.parametrize("kind", ["humans", "others"])
def test_two_files_are_shown_with_the_map_that_match_finds(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("ACNN_CACHE", str(tmp_path / "cache"))
    if kind == "humans":
        shapes = [remesh(builtin_humans().mesh(k), vertices=700, seed=k).mesh for k in (130, 150)]
    else:  # descriptors take over
        shapes = [bumpy(2), permuted(bumpy(2), 3)[0]]
    paths = [tmp_path / "a.ply", tmp_path / "b.ply"]
    for shape, path in zip(shapes, paths, strict=True):
        save(shape, path)
    found = match(*map(load, paths), model="humans")
    assert found.report["route"] == ("network" if kind == "humans" else "descriptors")
    data, _ = collect_view(paths, Path("humans"))
    running = LiveViewer(data, port=0)
    try:
        assert [p.label for p in running.scene.panels] == ["a.ply", "b.ply"]
        there, colors = panel(running, "b.ply"), panel(running, "b.ply").colors
        np.testing.assert_array_equal(panel(running, "a.ply").colors, colors[found.a_to_b])
        for vertex in (0, 17, 80):
            running.pick("a.ply", vertex)
            assert running.vertex_of(there) == found.a_to_b[vertex]
            assert f"b.ply: vertex {found.a_to_b[vertex]}" in running.controls.description.content
            assert f"confidence {found.confidence[vertex]:.1%}" in running.controls.description.content
        for quantity in running.quantities:
            running.show(quantity)
    finally:
        running.stop()


@pytest.mark.filterwarnings("error:.*does not match annotation")
def test_values_that_no_page_sends_cost_one_line_and_the_connection(viewer, capfd, caplog):
    import msgspec
    from test_live_guard import close_code_after

    viewer.compare(None)
    viewer.show("matches", "refined")
    camera = {"wxyz": [1, 0, 0, 0], "position": [0, 0, 1], "look_at": [0, 0, 0], "up_direction": [0, 1, 0]}
    camera |= {"image_height": 9, "image_width": 9, "fov": 1.0, "near": 0.1, "far": 9.0}
    hello = {"type": "ViewerCameraMessage", **camera}
    shown, output = viewer.controls.quantity, viewer.controls.channel
    click = {"name": panel(viewer, "shape_0").node.name, "instance_index": None, "screen_pos": [0, 0], "modifier": None}

    def update(control, **values):
        return {"type": "GuiUpdateMessage", "uuid": control._impl.uuid, "updates": values}

    hostile = {
        "an unknown choice": update(shown, value="heat"),
        "no property": update(shown, nonsense=1),
        "no number": update(output, value="many"),
        "a number out of range": update(output, value=10**6),
        "no ray": {"type": "SceneNodeClickMessage", "ray_origin": [0, 0, 0], "ray_direction": [0, 0, None], **click},
        "a ray of 2": {"type": "SceneNodeClickMessage", "ray_origin": [0, 0], "ray_direction": [0, 0, 1], **click},
    }
    capfd.readouterr()
    for name, message in hostile.items():
        assert close_code_after(viewer.server, *map(msgspec.msgpack.encode, (hello, message))) == 1008, name
        said = capfd.readouterr().err.splitlines()
        assert len(said) == 1, (name, said)
        assert "disconnected a client" in said[0]
    assert [record for record in caplog.records if record.exc_info] == []
    assert (viewer.quantity, shown.value) == ("matches", "matches")
    assert output.value == viewer.channel


def differs(before, after):
    """Share of the pixels that differ visibly."""
    return float((np.abs(before - after).max(axis=2) > 24).mean())


def test_the_viewer_works_in_a_browser(viewer):
    viewer.compare(None)
    viewer.show("matches", "refined")
    viewer.pick("reference", 9)
    # small, because the graphics are software's
    with Browser(760, 420) as browser:
        browser.open(viewer.address)
        browser.wait("document.querySelector('canvas') && document.body.innerText.includes('vertex 9 of reference')")
        # the scene fills the window until the panel stands beside it
        browser.wait("document.querySelector('canvas').getBoundingClientRect().width < window.innerWidth")

        def picture_when(changed):
            """A picture of the scene, once it is as wanted."""
            until = time.monotonic() + browser.patience
            while not changed(found := browser.picture("canvas")):
                assert time.monotonic() < until, "the picture did not change"
            return found

        first = picture_when(lambda p: np.ptp(p[..., 0] - p[..., 2]) > 80)  # colours, not grey alone
        scene = browser.box("canvas")
        browser.click(scene["x"] + scene["width"] / 2, scene["y"] + scene["height"] / 2)
        browser.wait("document.body.innerText.includes('of shape_0')")
        assert viewer.picked[0] is viewer.data.shapes[0]

        browser.run("[...document.querySelectorAll('input')].find(i => i.value === 'matches').click()")
        browser.wait("[...document.querySelectorAll('[role=option]')].some(o => o.innerText === 'confidence')")
        browser.run("[...document.querySelectorAll('[role=option]')].find(o => o.innerText === 'confidence').click()")
        picture_when(lambda p: differs(first, p) > 0.02)
        assert viewer.quantity == "confidence"
        assert browser.problems == []
        outside = [r for r in browser.requests if not r.startswith((viewer.address, "data:", f"blob:{viewer.address}"))]
        assert outside == []


def test_all_shapes_are_seen_in_a_narrow_window(viewer):
    viewer.compare(None)
    viewer.show("matches", "refined")
    with Browser(360, 640) as browser:
        browser.open(viewer.address)
        browser.wait("document.querySelector('canvas') !== null && document.body.innerText.includes('Picked')")
        until = time.monotonic() + browser.patience
        while True:
            colored = np.ptp(browser.picture("canvas")[:320], axis=2) > 60
            if colored.any():
                break
            assert time.monotonic() < until
        across = np.flatnonzero(colored.any(axis=0))
        assert 5 < across[0] < 100
        assert 260 < across[-1] < 355
