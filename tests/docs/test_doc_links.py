"""Links between the Markdown files lead somewhere."""

import os

import pytest
from doc_pages import PAGES, ROOT, Page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page):
    for link in page.links:
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page.name), path)) if path else page.name
        assert (ROOT / target).exists(), f"{page.name}: {link} leads to {target}, which does not exist"
        if anchor:
            known = Page(target).anchors
            assert anchor in known, f"{page.name}: {link}: the headings there are {sorted(known)}"


def test_every_page_is_linked_or_in_the_contents():
    contents = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES:
        if page.name.startswith("docs/"):
            assert page.name.removeprefix("docs/") in contents, f"{page.name} is not in mkdocs.yml"


def test_every_benchmark_is_listed():
    listed = (ROOT / "benchmarks" / "README.md").read_text()
    for script in (ROOT / "benchmarks").glob("[a-z]*.py"):
        assert f"| `python benchmarks/{script.name}" in listed, script.name


def test_images_are_small():
    for image in (ROOT / "docs" / "images").rglob("*.*"):
        assert image.stat().st_size < 300_000, f"{image.name} has {image.stat().st_size} bytes"


def test_the_python_example_of_the_readme_is_short():
    readme = next(page for page in PAGES if page.name == "README.md")
    (block,) = (block for block in readme.blocks if block.language == "python")
    assert len([line for line in block.text.splitlines() if line.strip()]) <= 10
