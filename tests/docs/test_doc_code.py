"""Commands and Python blocks of the Markdown files run as they stand, on the files of `acnn sample`.

Commands of `RUN` run first, in their order, in one folder; then the Python blocks of all pages, in the same folder. The
blocks of a page share their names. Of the page for users of other software, the right columns run, too. Commands that
serve a page, or that train for minutes, are only parsed (`test_doc_commands.py`).
"""

import os
import shlex

import numpy as np
import pytest
from doc_pages import PAGES, acnn_commands
from generated_pages import attribute_docs, settings_markdown

from acnn.cli import main
from acnn.training import RunConfig

RUN = ("README.md", "docs/index.md", "docs/tutorial.md", "docs/collections.md")
NOT_RUN = ("acnn view", "acnn demo")
COMMANDS = list(
    dict.fromkeys(
        line
        for name in RUN
        for page in PAGES
        if page.name == name
        for _, line in acnn_commands(page)
        if not line.startswith(NOT_RUN)
    )
)
WITH_CODE = [page for page in PAGES if any(block.language == "python" for block in page.blocks)]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder in which all commands have run, and their exit codes."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        groups = [f"bone_{i:03d},{'young' if i < 3 else 'old'}" for i in range(6)]
        (folder / "groups.csv").write_text("\n".join(["name,group", *groups, ""]))
        yield folder, {line: main(shlex.split(line)[1:]) for line in COMMANDS}


def test_there_are_commands_and_blocks():
    assert COMMANDS[0] == "acnn sample --out sample"
    assert {line.split()[1] for line in COMMANDS} >= {"info", "match", "transfer", "train", "evaluate", "report"}
    assert {"README.md", "docs/engineers.md", "docs/tutorial.md"} <= {page.name for page in WITH_CODE}


@pytest.mark.parametrize("line", COMMANDS)
def test_command_runs(line, workplace):
    assert workplace[1][line] == 0


def test_results_of_commands_are_right(workplace):
    """The map of the first command is close to the ground truth, and so is what is transferred along it."""
    from acnn.shapes import load

    truth = np.loadtxt("sample/A_to_B.txt", dtype=int)
    found = np.loadtxt("result/a_to_b.txt", dtype=int)
    b = load("sample/B.obj").vertices
    assert np.linalg.norm(b[found] - b[truth], axis=1).mean() < 0.02  # metres
    assert np.mean(np.loadtxt("A_labels.txt") == np.loadtxt("sample/A_labels.txt")) > 0.95
    assert load("A_painted.glb").texture is not None


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_blocks_run(page, workplace):
    names = {"__name__": "page"}
    columns = page.table_code if page.name == "docs/coming_from.md" else []
    for block in sorted([*page.blocks, *columns], key=lambda block: block.line):
        if block.language == "python":
            # Lines of the block are those of the file, so that an error says where it is.
            code = compile("\n" * (block.line - 1) + block.text, page.name, "exec")
            exec(code, names)
    if page.name == "docs/coming_from.md":
        assert len(columns) > 40
        assert names["C"].shape == (30, 30)
        assert names["refined"].shape == names["a_to_b"].shape == (len(names["v"]),)
        assert not names["failures"]
    if page.name == "docs/engineers.md":
        assert names["smoothed"].shape == names["mesh"].vertices.shape
        assert names["accuracy"] > 0.7
        assert names["table"].shape == (len(names["mesh"].vertices), 8, 3, 3)
        assert np.allclose(names["W"].sum(axis=1), 0, atol=1e-9)
    assert os.getcwd() == str(workplace[0])


def test_all_settings_have_a_meaning():
    table = settings_markdown()
    for line in table.splitlines():
        if line.startswith("| `"):
            assert len(line.split(" | ")[2].strip(" |")) > 5, line
    assert table.count("\n| `") > 50
    assert "angles" in attribute_docs(type(RunConfig().patches))
