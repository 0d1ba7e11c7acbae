"""The documentation site builds without a warning, shows what is public, and loads nothing from elsewhere."""

import itertools
import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from doc_pages import ROOT

import acnn
from acnn.cli._program import ORDER

HOW = "needs mkdocs: pip install -c constraints.txt -e '.[docs]'"
pytestmark = pytest.mark.skipif(not (find_spec("mkdocs") and find_spec("mkdocstrings")), reason=HOW)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_public_names_are_in_the_reference(site):
    shown = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    anchors = set(re.findall(r'id="acnn\.[\w.]*\.(\w+)"', shown))
    assert set(acnn.__all__) - anchors <= {"InputError"}


def test_every_command_is_described(site):
    page = (site / "commands.html").read_text()
    for name in (*ORDER, "data humans", "data parts"):
        assert f'id="acnn-{name.replace(" ", "-")}"' in page
    assert "--landmarks F" in page


def test_nothing_is_loaded_from_elsewhere(site):
    pages = list(site.glob("**/*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]*)"', text)
        loaded += re.findall(r'<link\b[^>]*\bhref="([^"]*)"', text)
        outside = [where for where in loaded if re.match(r"(https?:)?//", where)]
        assert not outside, f"{page.name}: {outside}"


def test_every_example_has_a_page_with_image_and_download(site):
    index = (site / "gallery" / "index.html").read_text()
    examples = sorted((ROOT / "examples").glob("[0-9][0-9]_*.py"))
    assert len(examples) >= 10
    for script in [*examples, ROOT / "examples" / "tour.ipynb"]:
        page = (site / "gallery" / f"{script.stem}.html").read_text()
        assert f'href="{script.stem}.html"' in index
        assert f'href="{script.name}"' in page
        assert (site / "gallery" / script.name).read_bytes() == script.read_bytes()
        if script.suffix == ".py":
            assert f'src="../images/gallery/{script.stem}.png"' in page
            assert f'src="../images/gallery/{script.stem}.png"' in index


def test_pages_are_accessible(site):
    """A language, one main heading, no level of headings left out, and a text for every image."""
    for path in site.glob("**/*.html"):
        if path.name == "404.html":
            continue
        text = path.read_text()
        assert '<html lang="en"' in text, path
        article = text[text.index("<article") : text.index("</article>")]
        levels = [int(level) for level in re.findall(r"<h([1-6])\b", article)]
        assert levels.count(1) == 1, path
        assert levels[0] == 1, path
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), (path, levels)
        images = re.findall(r"<img\b[^>]*>", article)
        decorative = path.name == "index.html" and path.parent.name == "gallery"  # each stands beside its title
        assert all(re.search(r'\balt="[^"]' if not decorative else r"\balt=", image) for image in images), path


def test_links_to_readmes_lead_to_their_pages(site):
    page = (site / "reproducing.html").read_text()
    assert 'href="experiments/faust.html"' in page
    assert 'href="results.html#results"' in page
    assert "README.md" not in "".join(re.findall(r'href="[^"]*"', page))
