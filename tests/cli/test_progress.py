"""The progress display of commands: one line that keeps moving in a terminal, a line for each stage elsewhere."""

import os
import re
import sys
import threading
from contextlib import contextmanager

import numba
import pytest
from analytic import bumpy, permuted, write_bumps

from acnn.cli import main
from acnn.cli._commands import Output
from acnn.progress import begin_stage, expect_stages, named_stages
from acnn.shapes import save
from acnn.training.parallel import run_in_processes

TINY = ["angles=2", "scales=6,24", "architecture=FC8+IC8+Softmax", "shared_outputs=0", "minutes=0", "epochs=2"]
COMPILING = "compiling (first run only, about half a minute)"


class Terminal:
    """A terminal: its rows of text, what they and the progress bars have shown, and the most bars at once."""

    def __init__(self, master):
        self.master, self.rows, self.row, self.column = master, [""], 0, 0
        self.most_bars, self.seen, self.stages = 0, set(), []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        text = ""
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other end is closed
                data = b""
            with self.changed:
                text = self._show(text + data.decode(errors="ignore"))
                self.changed.notify_all()
            if not data:
                return

    def _show(self, text):
        """Write to the screen; returns a control sequence that is not complete yet."""
        while text:
            found = re.match(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b\r\n]+|\r|\n", text)
            if not found:
                return text
            part, text = found[0], text[found.end() :]
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.row += 1
                self.rows += [""] * (self.row + 1 - len(self.rows))
            elif part.endswith("A"):
                self.row = max(0, self.row - int(part[2:-1] or 1))
            elif part == "\x1b[2K":
                self.rows[self.row] = ""
            elif part[0] != "\x1b":
                line = self.rows[self.row].ljust(self.column)
                self.rows[self.row] = line[: self.column] + part + line[self.column + len(part) :]
                self.column += len(part)
                self.seen.add(self.rows[self.row])
                stage = re.search(r"([A-Za-z][\w ()]*?) +━", self.rows[self.row])
                if stage and stage[1] not in self.stages[-1:]:
                    self.stages.append(stage[1])
                self.most_bars = max(self.most_bars, sum("━" in row for row in self.rows))
        return ""

    def until(self, shown):
        with self.changed:
            assert self.changed.wait_for(lambda: shown(self), timeout=120)


@contextmanager
def terminal_for_errors(patch):
    """A terminal in place of standard error."""
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    master, slave = pty.openpty()
    patch.setenv("TERM", "xterm")
    patch.setenv("COLUMNS", "120")
    patch.delenv("NO_COLOR", raising=False)
    terminal = Terminal(master)
    with os.fdopen(slave, "w") as stream:
        patch.setattr(sys, "stderr", stream)
        yield terminal
    terminal.reader.join(60)
    os.close(master)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run trained for a moment, and its training as a terminal showed it."""
    folder = tmp_path_factory.mktemp("progress")
    shapes = write_bumps(folder / "bumps", 3)
    words = [word for change in TINY for word in ("--set", change)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACNN_CACHE", str(folder / "cache"))
        with pytest.MonkeyPatch.context() as errors, terminal_for_errors(errors) as shown:
            arguments = ["--train", "bump_0,bump_1", "--val", "bump_2", *words]
            assert main(["train", str(shapes), "--out", str(folder / "run"), *arguments]) == 0
        yield folder / "run", shown


def commands(run, folder):
    tested = ["--test", "bump_2", "--refine", "none"]
    yield ["evaluate", str(run), *tested]
    yield ["report", str(run), *tested, "--out", str(folder / "page.html")]
    yield ["figure", str(run), "curve", *tested, "--out", str(folder / "f.png"), "--force"]


def test_a_terminal_never_shows_two_bars(run, tmp_path):
    folder, training = run
    assert training.most_bars == 1
    assert training.stages[-2:] == ["preparing", "training"]
    assert len(training.stages) <= 3
    assert any("validation" in row for row in training.rows)  # messages stay, the bar does not
    assert not any("━" in row for row in training.rows)
    for words in commands(folder, tmp_path):
        with pytest.MonkeyPatch.context() as patch, terminal_for_errors(patch) as shown:
            assert main(words) == 0
        assert shown.most_bars == 1
        assert len(shown.stages) == len(set(shown.stages)), "bars take turns on the same line"
        assert not any(row for row in shown.rows if row != COMPILING), words[0]


def test_elsewhere_there_is_one_line_for_each_stage(run, tmp_path, capsys):
    folder, _ = run
    expected = {"evaluate": ["preparing", "matching"], "report": ["preparing", "matching", "rendering"]}
    expected["figure"] = expected["report"]
    for words in commands(folder, tmp_path):
        assert main(words) == 0
        assert [line for line in capsys.readouterr().err.splitlines() if line != COMPILING] == expected[words[0]]
        for option in ("--quiet", "--json"):
            assert main([*words, option]) == 0
            assert capsys.readouterr().err == ""


def test_match_names_all_its_stages(run, tmp_path, capsys):
    mesh = bumpy(2)
    save(mesh, tmp_path / "left.ply")
    save(permuted(mesh, 3)[0], tmp_path / "right.ply")
    words = ["match", str(tmp_path / "left.ply"), str(tmp_path / "right.ply"), "--out", str(tmp_path / "result")]
    assert main([*words, "--model", str(run[0])]) == 0
    shown = capsys.readouterr().err.splitlines()
    stages = ["operators of B", "network output of B", "operators of A", "network output of A", "refinement", "fit"]
    expected = ["reading", *stages, "lifting", "writing"]
    assert [line for line in shown if not line.startswith(("notice", "verdict", COMPILING))] == expected
    assert main([*words, "--model", "none"]) == 0
    shown = capsys.readouterr().err.splitlines()
    expected = ["reading", "descriptors", "fit", "lifting", "writing"]
    assert [line for line in shown if not line.startswith(("notice", "verdict", COMPILING))] == expected


def test_the_line_moves_while_a_stage_reports_nothing(monkeypatch):
    with terminal_for_errors(monkeypatch) as terminal, Output().progress("waiting") as progress:
        progress(3, 3)
        terminal.until(lambda t: len({line for line in t.seen if "waiting" in line and "3/3" in line}) >= 5)
        begin_stage(progress, "going on")
        terminal.until(lambda t: "going on" in t.rows[0])
        assert "/" not in terminal.rows[0]


def test_one_remaining_time_covers_all_stages(monkeypatch):
    def left(row):
        found = re.search(r"about 0:0(\d):(\d\d) left in total", row)
        return 60 * int(found[1]) + int(found[2]) if found else None

    with terminal_for_errors(monkeypatch) as terminal, Output().progress() as progress:
        expect_stages(progress, {"first": 40.0, "second": 20.0})
        begin_stage(progress, "first")
        terminal.until(lambda t: len({left(row) for row in t.seen if "first" in row} - {None}) >= 3)  # it advances
        assert max(left(row) or 0 for row in terminal.seen) <= 60
        progress(1, 2)
        terminal.until(lambda t: "1/2, about 0:0" in t.rows[0])
        begin_stage(progress, "second")
        terminal.until(lambda t: "second" in t.rows[0] and left(t.rows[0]) is not None)
        assert left(terminal.rows[0]) <= 20
        compile_something(5)
        terminal.until(lambda t: any("compiling (first run only), about" in row for row in t.seen))


def test_messages_and_nested_stages_share_the_display(monkeypatch):
    out = Output()
    with terminal_for_errors(monkeypatch) as terminal, out.progress("first"):
        out.message("a message")
        with out.progress("second") as inner:
            inner(1, 2)
            terminal.until(lambda t: any("second" in row and "1/2" in row for row in t.rows))
        out.failed("b", "it was broken [bold]")
    assert [row for row in terminal.rows if row] == ["a message", "failed: b: it was broken [bold]"]
    assert terminal.most_bars == 1


def test_a_plain_function_is_called_with_done_and_total():
    from acnn.runs.match import match  # loads torch, which the workers below can do without

    calls = []
    mesh = bumpy(2)
    match(
        mesh,
        permuted(mesh, 3)[0],
        method="descriptors",
        refinement="none",
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(0, 3), (1, 3), (2, 3)]
    assert begin_stage(print, "a stage") is print
    assert named_stages(None, "{} of A") is None


def compile_something(number):
    """Compile a function that passes for one of the package's."""

    def kernel(x):
        return x + number

    kernel.__module__ = "acnn.made_here"
    return int(numba.njit(kernel)(1))


def test_compilation_is_mentioned_once(capsys):
    out = Output()
    with out.progress("working"):
        assert compile_something(1) == 2
        assert compile_something(2) == 3
    compile_something(3)
    assert capsys.readouterr().err.splitlines() == ["working", COMPILING]
    with Output(quiet=True).progress("working"):
        compile_something(4)
    assert capsys.readouterr().err == ""


def test_compilation_in_worker_processes_is_mentioned(capsys):
    with Output().progress("working"):
        assert sorted(run_in_processes(compile_something, [1, 2], 2)) == [(0, 2), (1, 3)]
    assert capsys.readouterr().err.splitlines() == ["working", COMPILING]
