"""The documentation site builds without a warning, shows what is public, and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from doc_pages import ROOT

import acnn
from acnn.cli._commands import ORDER

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


def test_links_to_readmes_lead_to_their_pages(site):
    page = (site / "reproducing.html").read_text()
    assert 'href="experiments/faust.html"' in page
    assert 'href="results.html#results"' in page
    assert "README.md" not in "".join(re.findall(r'href="[^"]*"', page))
