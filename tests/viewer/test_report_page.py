"""The report page: what it holds, that it asks for nothing, and that it works in a browser."""

import functools
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from analytic import bumpy, permuted, rotation
from browser import Browser
from page_content import addresses, changed, content, unpacked

from acnn.errors import InputError
from acnn.evaluation import ReferenceDistances, evaluate_map, evaluation_report
from acnn.evaluation.published import FAUST_EXACT
from acnn.methods.run import RunRecord
from acnn.shapes import Mesh
from acnn.surface import surface_of
from acnn.training import RunConfig
from acnn.viewer.pages import packed_indices, packed_points, packed_values
from acnn.viewer.report import ReportData, ReportShape, report_html, write_report


@functools.cache
def report_data(names=("first", "second </script><b>", "a part"), refined=True):
    """Three matched shapes, the last with half of it missing; some matches are wrong, fewer after refinement."""
    reference = bumpy(2)
    distances = ReferenceDistances(surface_of(reference))
    rng = np.random.default_rng(0)
    shapes, evaluations, refined_evaluations = [], [], []
    for k, name in enumerate(names):
        mesh, place = permuted(Mesh(reference.vertices @ rotation(k).T, reference.faces), k)
        truth = np.argsort(place)
        if k == 2:
            kept = mesh.vertices[mesh.faces].mean(axis=1) @ rotation(k) @ [0, 0, 1] > 0
            used, faces = np.unique(mesh.faces[kept], return_inverse=True)
            mesh, truth = Mesh(mesh.vertices[used], faces.reshape(-1, 3).astype(np.int32)), truth[used]
        n = len(truth)
        wrong, fewer = rng.random(n) < 0.5, rng.random(n) < 0.1
        network = np.where(wrong, rng.integers(0, len(reference.vertices), n), truth).astype(np.int32)
        better = np.where(fewer, network, truth).astype(np.int32)
        first, second = (evaluate_map(m, truth, distances, name=name) for m in (network, better))
        evaluations.append(first)
        refined_evaluations.append(second)
        missing = ~np.isin(np.arange(len(reference.vertices)), truth) if k == 2 else None
        shapes.append(
            ReportShape(
                name=name,
                vertices=mesh.vertices,
                faces=mesh.faces,
                is_cloud=k == 1,
                network=network,
                refined=better if refined else None,
                truth=truth.astype(np.int32),
                network_errors=first.errors,
                refined_errors=second.errors if refined else None,
                confidence=rng.random(n),
                missing=missing,
                evaluation=first,
                refined_evaluation=second if refined else None,
            )
        )
    figures = evaluation_report(evaluations, "sqrt_area", refined=refined_evaluations if refined else None)
    run = SimpleNamespace(
        reference=reference,
        config=RunConfig(),
        record=RunRecord("humans", ["x"], [], None, step=7, seconds_training=61.0),
    )
    log = np.stack([np.arange(20.0), 5 / np.arange(1.0, 21.0)], axis=1)
    return ReportData("trial", "bumps", run, tuple(shapes), figures, FAUST_EXACT, False, log)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_report(report_data(), tmp_path_factory.mktemp("report") / "report.html")


def test_numbers_survive_packing():
    points = np.random.default_rng(0).normal(size=(50, 3)) * [1, 5, 0.1] + 100
    packed = packed_points(points)
    again = packed["low"] + packed["step"] * unpacked(packed["vertices"]).reshape(-1, 3)
    assert np.abs(again - points).max() < np.ptp(points) / 65535
    errors = np.array([0.0, 0.5, np.nan, 2.0])
    short = packed_values(errors)
    numbers = np.where(unpacked(short) == 65535, np.nan, unpacked(short) * short["scale"])
    np.testing.assert_allclose(numbers, errors, atol=1e-4)
    assert unpacked(packed_indices(np.array([3, -1]), 10)).tolist() == [3, 65535]
    assert unpacked(packed_indices(np.array([70000, -1]), 80000)).tolist() == [70000, 2**32 - 1]


def test_the_page_holds_the_maps_and_the_figures(page):
    data = report_data()
    text = page.read_text()
    found = content(text)
    assert len(text) < 1_500_000
    for given, shape in zip(found["shapes"], data.shapes, strict=True):
        np.testing.assert_array_equal(unpacked(given["network"]), shape.network)
        np.testing.assert_array_equal(unpacked(given["refined"]), shape.refined)
        np.testing.assert_array_equal(unpacked(given["faces"]).reshape(-1, 3), shape.faces)
        assert given["name"] == shape.name
    assert found["figures"]["network"]["exact"] == data.figures["exact"]
    assert found["figures"]["refined"]["exact"] == data.figures["refined"]["exact"]
    assert "<b>" not in text.split("<main>")[1]  # names cannot become markup
    assert report_html(data) == text  # the same data give the same bytes


def test_no_address_is_in_the_page(page):
    text = page.read_text()
    assert addresses(text) == {"http://www.w3.org/2000/svg"}  # a name, which nothing fetches
    assert "default-src 'none'" in text


def test_without_refinement_there_is_one_map(tmp_path):
    text = report_html(report_data(refined=False))
    assert content(text)["figures"]["refined"] is None
    with pytest.raises(InputError, match="does not exist"):
        write_report(report_data(), tmp_path / "no" / "report.html")


def test_the_page_works_in_a_browser(page):
    with Browser() as browser:
        browser.open(page.as_uri())
        browser.wait("Number(document.documentElement.dataset.drawn) > 0")
        frames = lambda: browser.run("Number(document.documentElement.dataset.drawn)")  # noqa: E731

        def after(action):
            """A picture of both cells once what was done is drawn."""
            now = frames()
            action()
            browser.wait(f"Number(document.documentElement.dataset.drawn) > {now}")
            return browser.picture(".cells")

        def press(selector):
            return after(lambda: browser.run(f"document.querySelector({selector!r}).click()"))

        first = browser.picture(".cells")
        assert np.ptp(first, axis=(0, 1)).max() > 80  # something is drawn
        error = press("input[value=error]")
        assert changed(first, error) > 0.05
        assert browser.run("document.getElementById('bar').hidden") is False
        assert "0.1" in browser.run("document.getElementById('bar-ticks').textContent")
        before_refinement = press("input[value=network]")
        assert changed(error, before_refinement) > 0.02
        assert changed(before_refinement, press("input[value=confidence]")) > 0.05
        assert changed(press("input[value=plain]"), press("input[value=match]")) > 0.05

        cell = browser.box("#cell-shape")
        middle = cell["x"] + cell["width"] / 2, cell["y"] + cell["height"] / 2
        still = browser.picture(".cells")
        marked = after(lambda: browser.click(*middle))
        assert 0 < changed(still, marked) < 0.02  # markers, no more
        told = browser.run("document.getElementById('picked').textContent")
        vertex, match = map(
            int, re.search(r"Vertex (\d+) of first → reference vertex (\d+) \(network\)", told).groups()
        )
        assert report_data().shapes[0].network[vertex] == match

        turned = after(lambda: browser.drag(*middle, 120, 40))
        half = turned.shape[1] // 2
        assert changed(marked[:, half:], turned[:, half:]) > 0.02
        assert changed(marked[:, :half], turned[:, :half]) > 0.02  # both turn together
        assert changed(turned, after(lambda: browser.key("ArrowLeft"))) > 0.01
        other = after(lambda: browser.key("n"))
        assert changed(turned[:, half:], other[:, half:]) > 0.02
        assert "second </script><b>" in browser.run("document.getElementById('shape-caption').textContent")
        press("#table tbody tr:nth-child(3)")
        assert "pale" in browser.run("document.getElementById('legend').textContent")

        reference = browser.box("#cell-reference")
        after(lambda: browser.click(reference["x"] + reference["width"] / 2, reference["y"] + reference["height"] / 2))
        assert "Reference vertex" in browser.run("document.getElementById('picked').textContent")
        assert browser.problems == []
        assert browser.requests == [page.as_uri()]


def test_it_says_how_many_shapes_the_means_are_over(tmp_path):
    data = report_data()
    page = write_report(replace(data, shapes=data.shapes[:2]), tmp_path / "some.html")
    with Browser() as browser:
        browser.open(page.as_uri())
        browser.wait("Number(document.documentElement.dataset.drawn) > 0")
        assert browser.barriers() == []
        subtitle = browser.run("document.getElementById('subtitle').textContent")
        assert subtitle.startswith("Mean over 3 shapes of “bumps”, 2 shown. ")
        assert browser.run("document.querySelector('#table tfoot th').textContent") == "mean over 3"
        assert browser.run("document.querySelectorAll('#table tbody tr').length") == 2
    assert content(report_html(data))["summary"] == "Mean over 3 shapes of “bumps”."


def test_small_dark_window_without_refinement(tmp_path):
    page = write_report(report_data(refined=False), tmp_path / "plain.html")
    with Browser(400, 800, dark=True) as browser:
        browser.open(page.as_uri())
        browser.wait("Number(document.documentElement.dataset.drawn) > 0")
        assert browser.run("document.documentElement.scrollWidth") <= 400  # nothing sticks out sideways
        assert browser.run("document.querySelector('input[value=refined]').disabled") is True
        assert browser.picture(".over").mean() < 90  # dark ground
        assert browser.barriers() == []
        assert browser.problems == []
