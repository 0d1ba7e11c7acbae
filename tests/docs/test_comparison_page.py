"""The page of the comparison shows the rows that are kept, and which are missing."""

import importlib.util
import json
import re

import pytest
from doc_pages import ROOT

from acnn.evaluation.published import SHREC16_CUTS_ERROR, SHREC16_HOLES_ERROR

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


def test_published_errors_of_partial_shapes_stand_beside_asymmetric_ones():
    """Published figures count the mirrored point as wrong: the column of symmetric errors is empty beside them."""
    text = (ROOT / "experiments" / "shrec16" / "README.md").read_text()
    tables = re.findall(r"^\| \| asymmetric \| symmetric \| exact \|\n(?:\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == 2
    for table, published in zip(tables, (SHREC16_CUTS_ERROR, SHREC16_HOLES_ERROR), strict=True):
        rows = [[cell.strip() for cell in line.split("|")[2:5]] for line in table.splitlines()[2:]]
        own, others = rows[:2], rows[2:]
        assert all(float(asymmetric) > float(symmetric) for asymmetric, symmetric, _ in own)
        values = {f"{entry.value:g}" for entry in published.entries}
        assert others
        for asymmetric, *rest in others:
            assert asymmetric in values
            assert rest == ["", ""]
