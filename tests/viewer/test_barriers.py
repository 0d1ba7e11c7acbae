"""The audit of pages finds what it is for; other tests rely on its silence."""

import pytest
from browser import Browser

from acnn.viewer.pages import TableRow, write_table_page

PAGE = """<!doctype html><html><head><title>page</title></head><body><h1>a</h1><h3>b</h3>
<p style="color: #999">pale</p><div style="background: #333"><p style="color: #0008">dark</p></div>
<input><img src="data:,"><button></button><p id="same">c</p><p id="same">d</p></body></html>"""


def test_every_kind_of_barrier_is_found(tmp_path):
    (tmp_path / "page.html").write_text(PAGE)
    with Browser() as browser:
        browser.open((tmp_path / "page.html").as_uri())
        assert browser.barriers() == [
            "html has no lang",
            "heading left out: 1,3",
            'no alt: <img src="data:,">',
            "no label: <input>",
            "no name: <button></button>",
            "id twice: same",
            "contrast 2.85: pale",
            "contrast 1.41: dark",
        ]


@pytest.mark.parametrize(("dark", "accent"), [(False, "rgb(11, 107, 93)"), (True, "rgb(79, 209, 189)")])
def test_a_table_of_matches_can_be_read(tmp_path, dark, accent):
    rows = [TableRow(("a.ply", "b.ply", "good", "95.6%"), "a_to_b/match.html"), TableRow(("c.ply", "b.ply", "", "no"))]
    page = write_table_page(tmp_path / "index.html", "Matches", "1 of 2.", ("A", "B", "verdict", "confidence"), rows)
    with Browser(dark=dark) as browser:
        browser.open(page.as_uri())
        assert browser.barriers() == []
        assert browser.run("getComputedStyle(document.querySelector('a')).color") == accent
