"""The page of a registration in a browser, wide and narrow."""

import numpy as np
import pytest
from browser import Browser
from page_content import addresses

from acnn.viewer.images import save_png
from acnn.viewer.register_page import write_register_page


@pytest.fixture
def page(tmp_path):
    facts = {"template": "bodies/template.ply", "registered": 2, "kept": 0, "shapes": []}
    for name, verdict in (("scan_1", "good"), ("scan <2> " + 40 * "x", "doubtful")):
        save_png(np.full((8, 6, 3), 128, np.uint8), tmp_path / f"{name}_residual.png")
        facts["shapes"].append(
            {
                **{"name": name, "verdict": verdict, "mean_residual": 4.97e-5, "with_data": 0.9},
                **{"mean_confidence": 0.8, "inverted_faces": 0, "collapsed_faces": 1, "largest_shown": 0.05},
                "out": str(tmp_path / f"{name}.ply"),
            }
        )
    failures = [("shapes/broken.ply", "the header ends too soon <b>")]
    return write_register_page(facts, failures, tmp_path / "register.html")


@pytest.mark.parametrize("width", [1200, 360])
def test_cards_and_failures_are_shown_and_nothing_is_loaded(page, width):
    assert addresses(page.read_text()) == {"src="}
    with Browser(width, 900) as browser:
        browser.open(page.as_uri())
        assert browser.run("[...document.images].map(i => i.naturalWidth)") == [6, 6]
        assert browser.run("[...document.images].every(i => i.src.startsWith('data:'))")
        assert browser.run("document.querySelectorAll('figure.card').length") == 2
        assert browser.run("document.getElementById('failed').textContent") == (
            "broken.ply: the header ends too soon <b>"
        )
        assert browser.run("document.querySelectorAll('.bar')[0].getAttribute('aria-label')") == "colour bar: 0 to 0.05"
        assert "scan%20%3C2%3E" in browser.run("document.querySelectorAll('figure a')[1].href")
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.barriers() == []
        side_by_side = browser.run(
            "(b => b[0].top === b[1].top)([...document.querySelectorAll('figure')].map(f => f.getBoundingClientRect()))"
        )
        assert side_by_side == (width > 600)
        lines = (
            "(r => [...document.querySelectorAll('dd')].map(d => (r.selectNodeContents(d), r.getClientRects().length)))"
        )
        assert set(browser.run(f"{lines}(document.createRange())")) == {1}  # no number is broken over two lines
        assert "4.97e-05" in browser.run("document.querySelector('dl').textContent")
        assert not browser.problems
