"""The shared ground of all commands, seen through `acnn info`: one JSON object, exit codes, clean messages."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from acnn import __version__
from acnn.cli import main
from acnn.cli._commands import Output, command
from acnn.cli._program import app
from acnn.errors import InputError
from acnn.shapes import load

SQUARE = "OFF\n5 3 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n9 9 9\n3 0 1 2\n3 0 2 3\n3 1 1 2\n"


@pytest.fixture
def square(tmp_path: Path) -> Path:
    (tmp_path / "square.off").write_text(SQUARE)
    return tmp_path / "square.off"


def test_json_is_one_object(square: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["info", str(square), "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert (facts["kind"], facts["vertices"], facts["faces"]) == ("mesh", 5, 3)
    found = {f["kind"]: f for f in facts["findings"]}
    assert set(found) == {"degenerate-faces", "unreferenced-vertices", "boundary"}
    assert not any(f["repaired"] for f in facts["findings"])


def test_repair_writes_the_mended_shape(square: Path, capfd: pytest.CaptureFixture) -> None:
    out = square.with_name("mended.ply")
    assert main(["info", str(square), "--repair", str(out), "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert (facts["vertices"], facts["faces"], facts["area"]) == (4, 2, 1.0)
    assert facts["repaired_to"] == str(out)
    assert [f["kind"] for f in facts["findings"] if f["repaired"]] == ["degenerate-faces", "unreferenced-vertices"]
    np.testing.assert_array_equal(load(out).faces, [[0, 1, 2], [0, 2, 3]])


def test_text_for_people_names_every_finding(square: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["info", str(square)]) == 0
    text = capfd.readouterr().out
    assert "5 vertices, 3 faces" in text
    assert "face 2" in text
    assert "vertex 4" in text


def test_a_surface_without_boundary_that_is_no_manifold_is_not_called_open(
    tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    # Two tetrahedra that share a vertex, then an edge.
    faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    corners = ["0 0 0", "1 0 0", "0 1 0", "0 0 1", "0 0 -1", "-1 0 -1", "0 -1 -1"]
    for shared, other, words in [
        (1, [0, 4, 5, 6], "1 vertex where fans of faces meet in a point"),
        (2, [0, 3, 5, 6], "1 edge with more than two faces, 2 vertices where"),
    ]:
        used = sorted({*range(4), *other})
        rows = [corners[i] for i in used]
        second = np.searchsorted(used, np.array(other)[faces])
        rows += [f"3 {a} {b} {c}" for a, b, c in [*faces.tolist(), *second.tolist()]]
        path = tmp_path / f"shared{shared}.off"
        path.write_text(f"OFF\n{len(used)} 8 0\n" + "\n".join(rows) + "\n")
        assert main(["info", str(path)]) == 0
        line = next(line for line in capfd.readouterr().out.splitlines() if "component" in line)
        assert "no boundary, not a manifold" in line
        assert words in line
        assert "open" not in line


def test_bad_input_is_a_message_and_code_2(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    (tmp_path / "a.ply").write_bytes(b"ply\n")
    assert main(["info", str(tmp_path / "a.ply"), "--json"]) == 2
    out, err = capfd.readouterr()
    assert json.loads(out)["error"].startswith("a.ply: ")
    assert err.startswith("error: a.ply: ")
    assert "Traceback" not in err
    assert main(["info", str(tmp_path / "a.ply")]) == 2
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("arguments", [["info"], ["info", "a", "--wrong"], ["nothing"], ["info", "a", "b"]])
def test_bad_usage_is_code_2(arguments: list[str], capfd: pytest.CaptureFixture) -> None:
    assert main([*arguments, "--json"]) == 2
    out, err = capfd.readouterr()
    assert "error" in json.loads(out)
    assert "--help" in err


def test_help_lists_commands(capfd: pytest.CaptureFixture) -> None:
    assert main(["--help"]) == 0
    assert "info" in capfd.readouterr().out
    assert main(["info", "--help"]) == 0
    text = capfd.readouterr().out
    assert all(option in text for option in ("--json", "--no-cache", "--quiet", "--repair"))


def commands() -> list[tuple[str, ...]]:
    program = typer.main.get_command(app)
    context = program.make_context("acnn", [], resilient_parsing=True)
    found = [(name, program.get_command(context, name)) for name in program.list_commands(context)]
    inner = [(name, other) for name, command in found for other in getattr(command, "commands", {})]
    return [(name,) for name, _ in found] + inner


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_help_loses_nothing_to_markup(words, capfd: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main([*words, "--help"]) == 0
    text = capfd.readouterr().out
    shown = " ".join(text.replace("│", " ").split())
    assert "<bool>" not in shown
    command = typer.main.get_command(app)
    for word in words:
        command = command.get_command(command.make_context("acnn", [], resilient_parsing=True), word)
    for told in [command.help, *(parameter.help for parameter in command.params)]:
        for word in (told or "").split():
            assert word in shown, f"'{word}' of '{told}' is not shown"


def test_version(capfd: pytest.CaptureFixture) -> None:
    assert main(["--version"]) == 0
    assert capfd.readouterr().out == f"acnn {__version__}\n"


def test_messages_are_whole_sentences(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["info", "a", "--zzz"]) == 2
    assert "--zzz. Try 'acnn info --help'." in capfd.readouterr().err
    (tmp_path / "empty.ply").touch()
    assert main(["info", str(tmp_path / "empty.ply")]) == 2
    assert capfd.readouterr().err == "error: empty.ply: the file is empty. Export or copy it again.\n"
    (tmp_path / "text.ply").write_text("hello, this is a letter\n")
    assert main(["info", str(tmp_path / "text.ply")]) == 2
    assert "text.ply: it is not a valid PLY file" in capfd.readouterr().err


def test_a_cloud_without_a_surface_is_told(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    points = np.random.default_rng(0).normal(size=(60, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    for count, found in ((3, ["no-surface"]), (60, [])):
        np.savetxt(tmp_path / "points.xyz", points[:count])
        assert main(["info", str(tmp_path / "points.xyz"), "--json"]) == 0
        assert [f["kind"] for f in json.loads(capfd.readouterr().out)["findings"]] == found


def test_doubled_points_do_not_take_the_surface_of_a_cloud(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    points = np.random.default_rng(0).normal(size=(200, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    path = tmp_path / "points.xyz"
    for rows, found in (
        ([*points, *points[:1].repeat(60, axis=0)], ["duplicate-vertices"]),
        (points[:3].repeat(400, axis=0), ["duplicate-vertices", "no-surface"]),
    ):
        np.savetxt(path, rows)
        for more in ([], ["--repair", str(tmp_path / "mended.xyz"), "--force"]):
            assert main(["info", str(path), "--json", *more]) == 0
            assert [f["kind"] for f in json.loads(capfd.readouterr().out)["findings"]] == found


def test_repair_makes_the_folder_but_not_for_a_wrong_format(square: Path) -> None:
    out = square.parent / "new"
    assert main(["info", str(square), "--repair", str(out / "mended.xyz")]) == 2
    assert not out.exists()
    assert main(["info", str(square), "--repair", str(out / "mended.ply")]) == 0
    assert (out / "mended.ply").is_file()


def shout(what: str, *options: str):
    """Run a small command made here and return typer's result."""

    @command
    def small(out: Output, what: Annotated[str, typer.Argument()]) -> None:
        """Do what the argument asks for."""
        print("a library prints")
        out.message("working")
        logging.getLogger("acnn.work").info("computing")
        logging.getLogger("acnn.work").debug("details")
        with out.progress("steps") as step:
            step(1, 2)
            step(2, 2)
        if what == "input":
            raise InputError("no such word. Say another.")
        if what == "fault":
            raise ZeroDivisionError("by zero")
        if what == "interrupt":
            raise KeyboardInterrupt
        if what == "part":
            out.failed("b", "was broken")
        out.result(
            {"said": what, "cache": out.cache, "odd": [np.float64("nan"), np.int64(3)]}, human=lambda f: f["said"]
        )

    app = typer.Typer()
    app.command()(small)
    return CliRunner().invoke(app, [what, *options])


def test_only_json_reaches_standard_output() -> None:
    result = shout("word", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"said": "word", "cache": True, "odd": [None, 3]}
    assert "working" in result.stderr
    assert "a library prints" in result.stderr


def test_quiet_and_no_cache() -> None:
    result = shout("word", "--json", "--quiet", "--no-cache")
    assert json.loads(result.stdout)["cache"] is False
    assert "working" not in result.stderr


def test_verbose_shows_the_log_on_standard_error() -> None:
    plain, verbose = shout("word", "--json"), shout("word", "--json", "--verbose")
    assert verbose.stdout == plain.stdout
    assert "INFO" not in plain.stderr
    for line in (
        "INFO acnn.work: computing",
        "INFO acnn.cli._commands: stage: steps",
        "INFO acnn.cli._commands: finished in",
    ):
        assert line in verbose.stderr
    assert "details" not in verbose.stderr
    # --quiet hides messages, not the log; afterwards the loggers are as before
    quiet = shout("word", "--quiet", "--verbose")
    assert "INFO acnn.work: computing" in quiet.stderr
    assert "working" not in quiet.stderr
    assert logging.getLogger("acnn").handlers == []
    assert not logging.getLogger("acnn.work").isEnabledFor(logging.INFO)


def test_every_option_of_every_command_has_a_help_text() -> None:
    program = typer.main.get_command(app)
    context = program.make_context("acnn", [], resilient_parsing=True)
    for name in program.list_commands(context):
        found = program.get_command(context, name)
        for one in getattr(found, "commands", {name: found}).values():
            assert one.help, one.name
            assert [p.name for p in one.params if not getattr(p, "help", None)] == [], one.name


def test_exit_codes() -> None:
    assert shout("input").exit_code == 2
    assert shout("fault").exit_code == 1
    assert "ZeroDivisionError" in shout("fault").stderr
    assert shout("interrupt").exit_code == 130
    part = shout("part", "--json")
    assert part.exit_code == 1
    assert json.loads(part.stdout)["failed"] == [{"item": "b", "why": "was broken"}]
    assert json.loads(shout("input", "--json").stdout) == {"error": "no such word. Say another."}


def test_module_and_closed_pipe(square: Path) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    run = subprocess.Popen(
        [sys.executable, "-m", "acnn", "info", str(square)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
    )  # fmt: skip
    run.stdout.close()
    assert run.stderr.read() == b""
    assert run.wait() == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("options", [[], ["--json"], ["--help"], ["--wrong", "--json"]])
def test_standard_output_that_is_full_is_a_message_and_code_1(square: Path, options: list[str]) -> None:
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "acnn", "info", str(square), *options],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert run.returncode == 1
    assert run.stderr.endswith("error: standard output cannot be written (No space left on device).\n")
    assert "Traceback" not in run.stderr


def test_help_stays_light() -> None:
    code = (
        "import sys; from acnn.cli import main; main(['info', '--help']); print(sorted(sys.modules), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stderr.strip("[]\n").replace("'", "").split(", "))
    assert not {"numpy", "scipy", "torch", "trimesh"} & loaded
