"""`acnn view` as a program: it says where to look, serves, and ends with Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest
from analytic import bumpy

from acnn.cli import main
from acnn.shapes import save

RUN = [sys.executable, "-c", "import sys; from acnn.cli import main; sys.exit(main())"]


def test_it_serves_until_interrupted(tmp_path):
    pytest.importorskip("viser", reason="viser is not installed: pip install 'acnn[view]'")
    save(bumpy(1), tmp_path / "a.ply")
    environment = os.environ | {"ACNN_CACHE": str(tmp_path / "cache")}
    # Started in the background, the tests may have inherited that Ctrl-C is ignored.
    heeding = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {RUN[-1]}"
    command = [*RUN[:-1], heeding, "view", str(tmp_path / "a.ply"), "--port", "0", "--json"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        try:
            lines = []
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", lines[-1] if lines else "")):
                line = program.stderr.readline()
                assert line, "".join(lines)
                lines.append(line)
            with urllib.request.urlopen(found[0], timeout=60) as page:
                assert page.status == 200
            program.send_signal(signal.SIGINT)
            out, _ = program.communicate(timeout=120)
        finally:
            program.kill()
    assert program.returncode == 0
    assert json.loads(out) == {"address": found[0], "shapes": ["a.ply"]}


def test_clear_errors(tmp_path, capsys, monkeypatch):
    assert main(["view", str(tmp_path / "none.ply")]) == 2
    assert "none.ply" in capsys.readouterr().err
    assert main(["view", str(tmp_path)]) == 2
    assert "not a finished run" in capsys.readouterr().err
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["view", str(tmp_path / "none.ply")]) == 2
    assert "pip install 'acnn[view]'" in capsys.readouterr().err
