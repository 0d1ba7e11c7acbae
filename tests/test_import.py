import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = [
    path
    for folder in ("benchmarks", "docs", "examples", "experiments", "tools")
    for path in (ROOT / folder).rglob("*.py")
]


def test_import_of_the_package_loads_no_large_library():
    """`import acnn` stays below 0.3 s because what takes longer to import is loaded when it is used."""
    listed = "import sys, acnn; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout.split()
    assert "acnn" in loaded
    assert not {"numpy", "scipy", "torch", "numba", "matplotlib", "trimesh", "typer"} & set(loaded)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_import_names_that_exist(path):
    """Scripts take long to run, so that most are not run here: a renamed function is noticed all the same."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "acnn":
            module = importlib.import_module(node.module)
            missing = [name.name for name in node.names if not _has(module, name.name)]
            assert not missing, f"{path.name}: {node.module} has no {', '.join(missing)}"


def _has(module, name):
    try:
        return hasattr(module, name) or bool(importlib.import_module(f"{module.__name__}.{name}"))
    except ModuleNotFoundError:
        return False
