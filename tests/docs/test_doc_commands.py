"""Command lines in the Markdown files are ones that the program takes. They are parsed, not run."""

import importlib.util
import re
import shlex
import sys

import pytest
import typer
from doc_pages import PAGES, ROOT, command_lines

from acnn.cli._program import app

PROGRAM = typer.main.get_command(app)


LINES = [(page.name, line, text) for page in PAGES for line, text in command_lines(page)]


def named(words):
    """The command that the words begin with, and the words after it."""
    command, context = PROGRAM, PROGRAM.make_context("acnn", [], resilient_parsing=True)
    while hasattr(command, "get_command") and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, f"there is no command {words[0]}"
        command, words = found, words[1:]
        context = command.make_context(command.name, [], resilient_parsing=True)
    return command, words


def parsed(command, words):
    """Raises typer's own error where the words do not fit."""
    with command.make_context(command.name or "program", list(words)):
        pass


def test_there_are_command_lines():
    assert sum(line.startswith("acnn ") for _, _, line in LINES) > 20


def test_the_check_notices_wrong_lines():
    command, words = named(["match", "A", "--out", "x", "--no-such-option"])
    with pytest.raises(Exception, match="no-such-option"):
        parsed(command, words)
    command, words = named(["transfer", "result"])
    with pytest.raises(Exception, match=r"[Mm]issing"):
        parsed(command, words)


@pytest.mark.parametrize(("page", "line", "text"), LINES, ids=[f"{page}:{line}" for page, line, _ in LINES])
def test_a_command_line_is_taken(page, line, text):
    words = shlex.split(text)
    while "=" in words[0]:
        words = words[1:]
    if words[0] == "acnn":
        parsed(*named(words[1:]))
    elif words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(words[1:]) <= set(targets)
    elif words[1] not in ("-m", "-c"):
        check_script(words[1], words[2:])


def check_script(script, words):
    path = ROOT / script
    assert path.is_file(), f"{script} does not exist"
    text = path.read_text()
    options = [word.strip("[]") for word in words if word.strip("[]").startswith("--")]
    if "run_alone(" in text and not any(word.startswith("[") for word in words):
        spec = importlib.util.spec_from_file_location(f"script_{path.parent.name}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        program = typer.Typer(add_completion=False)
        program.command()(module.experiment)
        parsed(typer.main.get_command(program), words)
    else:
        for option in options:
            assert f'"{option}"' in text, f"{script} has no option {option}"


INLINE = sorted({(page.name, code) for page in PAGES for code in page.inline_code if code.startswith("acnn ")})


@pytest.mark.parametrize(("page", "code"), INLINE, ids=[f"{page}: {code}" for page, code in INLINE])
def test_a_command_in_a_sentence_exists(page, code):
    """Such a one may leave out what is required, but what it names must be there."""
    command, words = named(shlex.split(code)[1:])
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    for word in words:
        if word.startswith("--"):
            assert word in known, f"{code}: there is no {word}"
