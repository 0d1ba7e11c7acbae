"""The page of a match: what it holds, what it says, and that it works in a browser."""

import re
from dataclasses import replace

import numpy as np
import pytest
from analytic import bumpy, permuted
from browser import Browser
from page_content import addresses, changed, content, unpacked

from acnn.errors import InputError
from acnn.shapes import Mesh, PointCloud
from acnn.shapes.mesh import Source, Texture
from acnn.surface import surface_of
from acnn.viewer.colors import position_bytes
from acnn.viewer.match_page import FileMatch, match_html, write_match_page

NETWORK = {
    "route": "network",
    "why": "",
    "model": "humans",
    "verdict": "good",
    "mean_confidence": 0.61,
    "coverage": 0.93,
    "distortion": 0.12,
    "refinement": {"used": "zoomout", "why": "smoother"},
    "notices": [],
}
TROUBLE = "Left </script><b>or right"


def matched_pair(cloud=False, turned=False, **facts):
    """A shape and a copy of it with vertices in another order, which may be a cloud; `turned`: with z upwards."""
    target = bumpy(2)
    shape, place = permuted(target, 3)
    matched = np.argsort(place).astype(np.int32)
    n = len(matched)
    if turned:
        x, y, z = shape.vertices.T
        shape = Mesh(1000 * np.stack([x, -z, y], axis=1), shape.faces)
    numbers = np.arange(n, dtype=np.int32)
    source = Source("folder/person <1>.ply", np.append(-1, numbers), numbers + 1)  # the file's first vertex was dropped
    shape = PointCloud(shape.vertices, source=source) if cloud else replace(shape, source=source)
    confidence = np.linspace(0, 1, n)
    return FileMatch(
        a=shape,
        target=target,
        here=surface_of(shape),
        there=surface_of(target),
        matched=matched,
        confidence=confidence,
        colors=position_bytes(target.vertices),
        to_reference=False,
        report=NETWORK | facts,
    )


def test_the_page_holds_shapes_map_confidence_and_colours():
    match = matched_pair(notices=[TROUBLE])
    text = match_html(match)
    found = content(text)
    np.testing.assert_array_equal(unpacked(found["matched"]), match.matched)
    np.testing.assert_array_equal(unpacked(found["b"]["colors"]).reshape(-1, 3), match.colors)
    np.testing.assert_array_equal(unpacked(found["a"]["faces"]).reshape(-1, 3), match.here.faces)
    np.testing.assert_array_equal(unpacked(found["a"]["numbers"]), np.arange(1, 163))
    assert found["b"]["numbers"] is None
    np.testing.assert_allclose(unpacked(found["confidence"]) / 65534, match.confidence, atol=1e-5)
    assert found["notices"] == [TROUBLE]
    assert "<b>" not in text.split("<main>")[1]
    assert addresses(text) == set()
    assert "default-src 'none'" in text
    assert match_html(match) == text


def test_shapes_of_other_units_and_axes_are_drawn_at_one_size_and_aligned():
    match = matched_pair(turned=True)
    found = content(match_html(match))
    drawn = {}
    for name in ("a", "b"):
        given = found[name]
        drawn[name] = np.array(given["low"]) + given["step"] * unpacked(given["vertices"]).reshape(-1, 3)
    size = np.ptp(drawn["b"], axis=0).max()
    np.testing.assert_allclose(drawn["a"], drawn["b"][match.matched], atol=0.005 * size)


@pytest.mark.parametrize(("extents", "up"), [((0.6, 0.3, 2.0), "z"), ((0.6, 2.0, 0.3), "y"), ((0.5, 1.0, 1.8), "y")])
def test_the_up_axis_is_that_in_which_both_stand(extents, up):
    match = matched_pair()
    scaled = extents / np.ptp(match.target.vertices, axis=0)
    tall = Mesh(match.target.vertices * scaled, match.target.faces)
    shape = replace(match.a, vertices=tall.vertices[match.matched])
    match = replace(match, a=shape, target=tall, here=surface_of(shape), there=surface_of(tall))
    assert content(match_html(match))["up"] == up


def test_the_checkerboard_on_a_lies_at_the_matched_points():
    match = matched_pair()
    found = content(match_html(match))
    images = found["b"]["low"] + found["b"]["step"] * unpacked(found["images"]).reshape(-1, 3)
    gaps = np.linalg.norm(images - match.there.vertices[match.matched], axis=1)
    assert gaps.max() < match.there.mean_edge
    assert content(match_html(replace(match, target=PointCloud(match.target.vertices), there=match.here)))["images"]
    cloud = PointCloud(match.target.vertices)
    assert content(match_html(replace(match, target=cloud, there=surface_of(cloud))))["images"] is None


def test_a_texture_of_b_is_shown_on_a():
    match = matched_pair()
    assert content(match_html(match))["b"]["texture"] is None
    uv = match.target.vertices[:, :2] - match.target.vertices[:, :2].min(axis=0)
    image = np.zeros((16, 16, 3), np.uint8)
    image[8:, :, 0] = 255
    textured = replace(match.target, texture=Texture(uv / uv.max(), match.target.faces, image))
    found = content(match_html(replace(match, target=textured)))
    for name in ("a", "b"):
        texture = found[name]["texture"]
        assert texture["image"].startswith("data:image/jpeg;base64,")
        corners = texture["low"] + texture["step"] * unpacked(texture["uv"]).reshape(-1, 2)
        assert unpacked(texture["faces"]).max() < len(corners)
        assert len(unpacked(texture["faces"])) == len(unpacked(found[name]["faces"]))


def said(match):
    return {fact["name"]: f"{fact['value']}; {fact['note']}" for fact in content(match_html(match))["facts"]}


def test_facts_are_told_in_words():
    told = said(matched_pair())
    assert told["Matched by"].startswith("network humans; Both are matched to its reference")
    assert told["Verdict"].startswith("good; ")
    assert told["Mean confidence"].startswith("61.0")
    assert told["Coverage"].startswith("93.0")
    assert told["Refinement"].startswith("ZoomOut; A smooth map")
    assert "320 triangles. The file has 163 vertices" in told["Vertices of A"]
    alone = {"route": "descriptors", "why": "no network was asked for", "refinement": {"used": "none", "start": "SHOT"}}
    told = said(matched_pair(cloud=True, unit={"length": 0.25, "why": "given"}, **alone))
    assert told["Matched by"] == "descriptors; No network was asked for."
    unrefined = {"used": "none", "why": "as published"}
    blended = {"route": "bim", "why": "the method bim was asked for", "refinement": unrefined}
    assert said(matched_pair(model=None, **blended))["Matched by"] == "bim; The method bim was asked for."
    assert "probability that a match is within 0.05" in told["Mean confidence"]
    assert said(matched_pair(verdict="failed"))["Verdict"] == "failed; The map should not be used."
    assert told["Refinement"].endswith("Started from SHOT.")
    assert told["Vertices of A"].startswith("162; A point cloud.")
    assert told["Unit of length"] == "0.25; In coordinates of A: given."
    told = said(replace(matched_pair(), to_reference=True))
    assert "Vertices of the reference" in told
    assert "A is matched to its reference" in told["Matched by"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        write_match_page(matched_pair(), tmp_path / "no" / "match.html")


def assert_nothing_covers_the_shapes(browser):
    """Captions and the colour bar stand above or below the cells in which the shapes are drawn."""
    cells = browser.box(".cells")
    for name in ("#a-caption", "#b-caption", "#bar"):
        box = browser.box(name)
        assert box["height"] > 10
        assert box["y"] + box["height"] <= cells["y"] + 0.5 or box["y"] >= cells["y"] + cells["height"] - 0.5


def test_the_page_works_in_a_browser(tmp_path):
    match = matched_pair(notices=[TROUBLE], verdict="failed")
    page = write_match_page(match, tmp_path / "match.html")
    with Browser() as browser:
        browser.open(page.as_uri())
        browser.wait("Number(document.documentElement.dataset.drawn) > 0")

        def after(action):
            """A picture of both cells once what was done is drawn."""
            now = browser.run("Number(document.documentElement.dataset.drawn)")
            action()
            browser.wait(f"Number(document.documentElement.dataset.drawn) > {now}")
            return browser.picture(".cells")

        def press(selector):
            return after(lambda: browser.run(f"document.querySelector({selector!r}).click()"))

        def text(name):
            return browser.run(f"document.getElementById({name!r}).textContent")

        def click(name):
            cell = browser.box(f"#cell-{name}")
            return after(lambda: browser.click(cell["x"] + cell["width"] / 2, cell["y"] + cell["height"] / 2))

        assert text("notices") == f"This match has failed{TROUBLE}"
        assert text("a-caption") == "A person <1>.ply162 vertices"
        first = browser.picture(".cells")
        half = first.shape[1] // 2
        # The shapes are equal and so are their colours: both cells show one picture, edges apart.
        inner = slice(10, -10), slice(10, half - 10)
        assert changed(first[:, :half][inner], first[:, -half:][inner]) < 0.02
        confidence = press("input[value=confidence]")
        assert changed(first[:, :half], confidence[:, :half]) > 0.05
        assert changed(first[:, half:], confidence[:, half:]) > 0.05
        assert browser.run("document.getElementById('bar').hidden") is False
        assert "100" in text("bar-ticks")
        assert_nothing_covers_the_shapes(browser)
        press("input[value=match]")

        board = press("input[value=checkerboard]")
        assert changed(first[:, :half], board[:, :half]) > 0.05
        assert changed(board[:, :half][inner], board[:, -half:][inner]) < 0.1
        press("input[value=distortion]")
        assert text("bar-name") == "relative change of edge lengths"
        press("input[value=match]")

        marked = click("a")
        for side in (slice(None, half), slice(half, None)):  # a marker with a number on each shape, and a line
            assert 0 < changed(first[:, side], marked[:, side]) < 0.03
        assert browser.run("document.querySelectorAll('#overlay line').length") == 1
        vertex, there = map(int, re.search(r"Vertex (\d+) of A → vertex (\d+) of B", text("picked")).groups())
        assert match.matched[vertex - 1] == there
        click("b")
        found = re.search(r"Vertex (\d+) of B: vertex (\d+) of A is matched to it", text("picked"))
        there, vertex = map(int, found.groups())
        assert match.matched[vertex - 1] == there

        pins = browser.run("[...document.querySelectorAll('#pins li')].map(pin => pin.textContent)")
        assert len(pins) in (1, 2)  # both clicks may have met the same pair
        assert re.search(r"vertex \d+ of A → vertex \d+ of B, confidence", pins[0])
        browser.run("window.saved = []; URL.createObjectURL = blob => { saved.push(blob); return 'data:,'; }")
        for name in ("map", "pins"):
            browser.run(f"document.getElementById('save-{name}').click()")
        lines = browser.run("saved[0].text()").split()
        assert [int(line) for line in lines] == [-1, *match.matched]
        assert browser.run("saved[1].text()").startswith("# name, vertex of A, vertex of B\npin1 ")
        press("#clear")
        assert text("pins") == ""
        assert browser.run("document.getElementById('overlay').childElementCount") == 0

        cell = browser.box("#cell-b")
        before = browser.picture(".cells")
        turned = after(lambda: browser.drag(cell["x"] + 100, cell["y"] + 100, 120, 40))
        assert changed(before[:, :half], turned[:, :half]) > 0.02
        assert changed(before[:, half:], turned[:, half:]) > 0.02
        assert browser.barriers() == []
        assert browser.problems == []
        assert browser.requests == [page.as_uri()]


def test_a_cloud_in_a_small_dark_window(tmp_path):
    page = write_match_page(matched_pair(cloud=True), tmp_path / "match.html")
    with Browser(390, 800, dark=True) as browser:
        browser.open(page.as_uri())
        browser.wait("Number(document.documentElement.dataset.drawn) > 0")
        assert browser.run("document.documentElement.scrollWidth") <= 390
        assert browser.run("document.getElementById('notices').hidden") is True
        assert "162 points" in browser.run("document.getElementById('a-caption').textContent")
        assert np.ptp(browser.picture(".cells"), axis=(0, 1)).max() > 80
        browser.run("document.querySelector('input[value=confidence]').click()")
        assert_nothing_covers_the_shapes(browser)
        assert browser.barriers() == []
        assert browser.problems == []
