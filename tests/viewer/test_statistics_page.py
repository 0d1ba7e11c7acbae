"""The page of shape statistics: what it holds, and that sliders, scatter plot and colours work in a browser."""

import numpy as np
import pytest
from browser import Browser
from page_content import addresses, changed, content, unpacked

import acnn
from acnn.datasets.families import make_family
from acnn.viewer.statistics_page import StatisticsPage, statistics_html, write_statistics_page

NAMES = [f"bone </script> {i}" for i in range(8)]
GROUPS = ["a"] * 4 + ["b"] * 3 + [None]


@pytest.fixture(scope="module")
def bones():
    return make_family("bone", 8, vertices=600, seed=1)


@pytest.fixture(scope="module")
def page(bones):
    statistics = acnn.shape_statistics(bones.vertices, modes=3, groups=GROUPS, permutations=99)
    return StatisticsPage("bones", statistics, bones.faces, NAMES, GROUPS, ["One file is left out."])


def test_the_page_holds_the_model_and_loads_nothing(page, bones):
    text = statistics_html(page)
    assert not addresses(text) - {"http://www.w3.org/2000/svg"}
    held = content(text)
    assert held["names"] == NAMES
    assert held["groups"] == [0, 0, 0, 0, 1, 1, 1, -1]
    statistics = page.statistics

    def points(given):
        return unpacked(given["vertices"]).reshape(-1, 3) * given["step"] + given["low"]

    assert np.allclose(points(held["mean"]), statistics.mean, atol=1e-4)
    one = statistics.shape([0.0, 1.0]) - statistics.mean
    assert np.allclose(points(held["modes"][1]), one, atol=1e-5)
    assert np.allclose(points(held["shapes"][3]), statistics.aligned[3], atol=1e-4)
    assert np.allclose(held["scores"], statistics.scores, atol=1e-3)
    assert np.array_equal(unpacked(held["faces"]).reshape(-1, 3), bones.faces)


def test_large_shapes_are_reduced(bones, monkeypatch):
    monkeypatch.setattr("acnn.viewer.statistics_page.LARGEST", 550)
    statistics = acnn.shape_statistics(bones.vertices, modes=2)
    held = content(statistics_html(StatisticsPage("bones", statistics, bones.faces, NAMES)))
    assert len(unpacked(held["mean"]["vertices"])) == 3 * 550
    assert unpacked(held["faces"]).max() == 549
    assert "550 vertices" in held["summary"]
    assert held["comparison"] is None


def test_sliders_scatter_and_colours_work(page, tmp_path):
    path = write_statistics_page(page, tmp_path / "statistics.html")
    with Browser(1000, 1700) as browser:
        browser.open(path.as_uri())
        browser.wait("Number(document.documentElement.dataset.drawn) > 0")
        assert browser.barriers() == []
        mean = browser.picture("#cell-model")
        shape = browser.picture("#cell-shape")
        _slide(browser, 1, 3)
        bent = browser.picture("#cell-model")
        assert changed(mean, bent) > 0.01
        assert browser.run("document.querySelector('#sliders output').textContent") == "+3.0 sd"
        cross = browser.run("document.getElementById('cross').getAttribute('d')")
        browser.run("document.getElementById('to-mean').click()")
        _drawn(browser)
        assert changed(mean, browser.picture("#cell-model")) < 0.001
        assert browser.run("document.getElementById('cross').getAttribute('d')") != cross
        # a click on the dot of the last shape shows it
        at = browser.run(
            "(() => { const r = document.querySelectorAll('#scatter circle')[7].getBoundingClientRect();"
            " return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        browser.click(*at)
        _drawn(browser)
        assert browser.run("document.getElementById('shape-caption').textContent") == NAMES[7]
        chosen = browser.picture("#cell-shape")
        assert changed(shape, chosen) > 0.005
        browser.run("document.getElementById('to-shape').click()")
        _drawn(browser)
        sliders = browser.run("[...document.querySelectorAll('#sliders input')].map(i => Number(i.value))")
        assert np.allclose(sliders, page.statistics.scores[7], atol=0.03)
        for quantity in ("distance", "difference", "p"):
            browser.run(f"document.querySelector('input[value={quantity}]').click()")
            _drawn(browser)
            assert not browser.run("document.getElementById('bar').hidden")
        assert changed(chosen, browser.picture("#cell-shape")) > 0.01
        # a click elsewhere in the plot moves the model there
        box = browser.box("#scatter svg")
        browser.click(box["x"] + 0.9 * box["width"], box["y"] + 0.1 * box["height"])
        moved = browser.run("[...document.querySelectorAll('#sliders input')].map(i => Number(i.value))")
        assert moved[0] > 2
        assert moved[1] > 2
        assert not browser.problems
        assert all(address.startswith(("file:", "data:")) for address in browser.requests)


def test_narrow_windows_need_no_sideways_scrolling(page, tmp_path):
    path = write_statistics_page(page, tmp_path / "statistics.html")
    with Browser(390, 800, dark=True) as browser:
        browser.open(path.as_uri())
        browser.wait("Number(document.documentElement.dataset.drawn) > 0")
        assert browser.run("document.documentElement.scrollWidth") <= 390
        assert browser.barriers() == []
        assert not browser.problems


def _slide(browser, mode, value):
    browser.run(
        f"(() => {{ const i = document.getElementById('mode-{mode}'); i.value = {value};"
        " i.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    _drawn(browser)


def _drawn(browser):
    """Wait until what was asked for is on the screen."""
    browser.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
