"""The audit of pages finds what it is for; other tests rely on its silence."""

from browser import Browser

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
