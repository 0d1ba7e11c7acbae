"""Names of files and shapes that try to be markup or code come out as text in every page."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources

import pytest
from analytic import bumpy
from test_match_html import matched_pair
from test_report_page import report_data

import acnn
from acnn.shapes.mesh import Source
from acnn.viewer.match_page import write_match_page
from acnn.viewer.pages import TableRow, app_page, write_page, write_table_page
from acnn.viewer.register_page import write_register_page
from acnn.viewer.report import write_report
from acnn.viewer.statistics_page import StatisticsPage, write_statistics_page

HOSTILE = {
    "script": "</script><script>alert(1)</script>",
    "quotes": "\"><img src=x onerror='alert(1)'> ` ${alert(1)} {{ body }}",
    "comment": "<!--<script> ]]> &lt;b&gt; &#60;",
    "address": "javascript:alert(1)//?#",
    "unicode": "人 \u202e cba \u2028 é\u0301 🦒",
    "undecodable": "scan \udcff\udc80",
    "long": 200 * "x",
}


class Outline(HTMLParser):
    """Elements with their attributes, texts, and the addresses that a page leads to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements, self.texts, self.addresses = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes) -> None:
        self.elements.append((tag, tuple(name for name, _ in attributes)))
        self.addresses += [value for name, value in attributes if name in ("href", "src", "action")]
        self.texts += [value for name, value in attributes if name in ("alt", "title", "aria-label") and value]

    def handle_data(self, data) -> None:
        self.texts.append(data)

    def data(self) -> dict:
        """What the scripts of the page get."""
        return next(json.loads(text) for text in self.texts if text.startswith("{"))


@pytest.fixture(scope="module")
def model():
    """Statistics of a stretched shape, and its faces."""
    mesh = bumpy(1)
    shapes = [mesh.vertices * [1, 1 + 0.1 * k, 1 + 0.1 * k**2] for k in range(4)]
    return acnn.shape_statistics(shapes, modes=1, groups=["a", "a", "b", "b"], permutations=99, samples=5), mesh.faces


def match(name, out, _):
    pair = matched_pair(notices=[name], why=name, model=name)
    shapes = (
        replace(shape, source=Source(f"folder/{name}", *2 * (pair.a.source.to_file,)))
        for shape in (pair.a, pair.target)
    )
    a, target = shapes
    return write_match_page(replace(pair, a=a, target=target), out)


def report(name, out, _):
    data = report_data()
    shapes = tuple(replace(shape, name=name) for shape in data.shapes)
    return write_report(replace(data, title=name, dataset=name, shapes=shapes), out)


def register(name, out, _):
    numbers = {
        "mean_residual": 0.1,
        "with_data": 0.9,
        "mean_confidence": 0.8,
        "inverted_faces": 0,
        "collapsed_faces": 0,
    }
    file = name.replace("/", "|")  # which no file's name holds
    shape = {"name": file, "verdict": "good", "largest_shown": 0.2, "out": f"results/{file}.ply", **numbers}
    return write_register_page({"template": f"{file}.ply", "registered": 1, "shapes": [shape]}, [(name, name)], out)


def statistics(name, out, model):
    result, faces = model
    result = replace(result, groups=replace(result.groups, names=(name, "b")))
    page = StatisticsPage(name, result, faces, 4 * [name], [name, name, "b", "b"], [name])
    return write_statistics_page(page, out)


def pairs(name, out, _):
    rows = [TableRow((name, name, "good"), f"{name}/match.html")]
    return write_table_page(out, name, name, ("A", "B", name), rows)


PAGES = {"match": match, "report": report, "register": register, "statistics": statistics, "pairs": pairs}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_name_stays_text(page, name, model, tmp_path) -> None:
    outline = Outline(page(name, tmp_path / "page.html", model).read_text(encoding="utf-8"))
    harmless = Outline(page("harmless", tmp_path / "other.html", model).read_text(encoding="utf-8"))
    assert outline.elements == harmless.elements  # no element and no attribute more
    assert all(re.match(r"data:|#|[^:]*$", address) for address in outline.addresses)  # no other scheme
    shown = name.encode(errors="replace").decode()
    here = [text for text in outline.texts if shown.rsplit("/", 1)[-1] in text]
    assert here or json.dumps(name)[1:-1].rsplit("/", 1)[-1] in json.dumps(outline.data())


def test_scripts_make_no_markup_of_names() -> None:
    """Scripts set texts and attributes; the one that writes markup writes numbers and colours only."""
    sources = resources.files("acnn.viewer") / "page"
    scripts = {file.name: file.read_text() for file in sources.iterdir() if file.name.endswith(".js")}
    assert {"match.js", "report.js", "statistics.js", "app.js"} <= set(scripts)
    writers = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|srcdoc|\beval\(|Function\("
    )
    found = [
        (name, line.strip()) for name, text in scripts.items() for line in text.splitlines() if re.search(writers, line)
    ]
    assert found == [("match.js", 'by("overlay").innerHTML = state.pins')]


def test_the_page_of_the_application_holds_no_name_but_its_token(tmp_path) -> None:
    for token in HOSTILE.values():
        path = write_page(app_page(token), tmp_path / "app.html")
        outline = Outline(path.read_text(encoding="utf-8"))
        assert outline.elements == Outline(app_page("harmless")).elements
        assert outline.data() == {"token": token}
