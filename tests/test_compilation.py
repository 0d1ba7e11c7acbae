"""Compiled functions kept on disk follow edits of every file that they were compiled from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import acnn

PROGRAM = """
import numpy as np
from acnn.network.compiled_products import add_gathered
weights = np.array([1.0], np.float16).view(np.uint16)
y = np.zeros((1, 8), np.float32)
add_gathered(np.array([0, 1]), np.zeros(1, np.uint16), weights, 0, 0, 1, np.ones((1, 8), np.float32), y)
print(y[0, 0], len(add_gathered.stats.cache_hits))
"""


def test_an_edit_of_another_file_is_noticed(tmp_path):
    package = tmp_path / "acnn"
    shutil.copytree(Path(acnn.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "data", "models"))
    (package / "network" / "__init__.py").write_text("")  # importing torch would take most of the time
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    environment["PYTHONPATH"] = str(tmp_path)

    def run():
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert run() == ["1.0", "0"]
    assert run() == ["1.0", "1"]  # from the disk
    other = package / "surface" / "closest_points.py"  # another file with compiled functions
    other.write_text(other.read_text() + "\n# edited\n")
    assert run() == ["1.0", "0"]
    own = package / "network" / "compiled_products.py"
    source = own.read_text()
    assert source.count("2.0**112") == 1
    own.write_text(source.replace("2.0**112", "2.0**113"))
    assert run() == ["2.0", "0"]
