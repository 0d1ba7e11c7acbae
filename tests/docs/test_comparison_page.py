"""The page of the comparison shows the rows that are kept, and which are missing."""

import importlib.util
import json
import re

import pytest
from doc_pages import ROOT

spec = importlib.util.spec_from_file_location("generated_pages", ROOT / "docs" / "generated_pages.py")
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)

PARTS = pages.COMPARISON.findall((ROOT / "docs" / "comparison.md").read_text())


def test_every_part_is_on_the_page():
    assert PARTS == ["properties", "faust", "descriptors", "shrec16", "claims"]


@pytest.mark.parametrize("part", PARTS)
def test_tables_are_complete(part):
    table = pages.comparison_markdown(part)
    lines = [line for line in table.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1


def test_faust_rows_are_those_of_the_files():
    script = pages._script("table/run")
    table = pages.comparison_markdown("faust")
    for name in script.ROWS:
        (line,) = re.findall(rf"^\| {name} \|.*$", table, re.MULTILINE)
        file = script.RESULTS / f"{name}.json"
        assert ("*missing*" in line) == (not file.is_file())
        if file.is_file():
            assert f"| {json.loads(file.read_text())['exact']:.1%} |" in line
    assert b"<svg" in pages.comparison_curves()["curves_faust.svg"]
