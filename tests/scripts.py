"""Scripts of the project, run in this process: as a program of its own, each would first import PyTorch."""

import io
import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Finished:
    returncode: int
    stdout: str
    stderr: str


def run_script(path, *words, **environment):
    """Run a script with words on its command line and variables in its environment, as `python PATH WORDS` does."""
    out, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(errors):
        patch.setattr(sys, "argv", [str(path), *map(str, words)])
        patch.setattr(sys, "path", [str(path.parent), *sys.path])
        for name, value in environment.items():
            patch.setenv(name, str(value))
        try:
            runpy.run_path(str(path), run_name="__main__")
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return Finished(code, out.getvalue(), errors.getvalue())
