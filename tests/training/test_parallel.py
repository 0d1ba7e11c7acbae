"""Processes of one job end with it, whichever way it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PROGRAM = """
import signal, sys, time
from pathlib import Path

from acnn.cli._commands import command
from acnn.cli._program import run_alone
from acnn.files import atomic_file
from acnn.training.parallel import run_in_processes

FOLDER = Path(__file__).parent


def work(number):
    with atomic_file(FOLDER / f"result{number}") as temporary:
        temporary.write_text("half")
        (FOLDER / f"begun{number}").touch()
        while True:
            time.sleep(60)


@command
def job(out):
    for _ in run_in_processes(work, [0, 1], 2):
        pass


if __name__ == "__main__":
    sys.exit(run_alone(job))
"""


@pytest.fixture
def job(tmp_path: Path):
    """A program whose two processes are at work, each with a file half written; all are ended afterwards."""
    script = tmp_path / "job.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script), "--json"]
    main = psutil.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 60
        while not all((tmp_path / f"begun{number}").exists() for number in (0, 1)):
            assert main.poll() is None, main.stderr.read()
            assert time.monotonic() < until
            time.sleep(0.05)
        children = main.children(recursive=True)
        assert len(children) >= 2
        yield main, children
    finally:
        for process in [main, *children]:
            if process.is_running():
                process.kill()


@pytest.mark.skipif(os.name != "posix", reason="other systems have no SIGTERM to handle")
def test_a_terminated_program_ends_its_processes_and_leaves_no_temporary_files(job, tmp_path: Path) -> None:
    main, children = job
    main.send_signal(signal.SIGTERM)
    printed, told = main.communicate(timeout=60)
    assert main.returncode == 143, told
    assert told.splitlines()[-1] == "terminated"
    assert json.loads(printed) == {"error": "terminated"}
    assert not psutil.wait_procs(children, timeout=30)[1]
    assert not list(tmp_path.glob(".*"))


def test_processes_end_by_themselves_where_their_program_is_killed(job, tmp_path: Path) -> None:
    main, children = job
    main.kill()
    main.wait(60)
    assert not psutil.wait_procs(children, timeout=30)[1]
    assert not list(tmp_path.glob(".*"))
