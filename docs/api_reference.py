"""The API reference: a hook of MkDocs that writes a page for each subpackage with its public names.

Read from the sources without importing them; mkdocstrings turns the numpydoc docstrings into Markdown.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src" / "acnn"
SUBPACKAGES = (
    *("shapes", "surface", "descriptors", "patches", "network", "correspondence", "datasets", "evaluation"),
    *("training", "methods", "registration", "viewer", "runs"),
)
"""In the order of the data flow."""
MODULES = ("array_functions", "testing")
"""Modules of the package itself with public functions of their own."""


def on_files(files: Any, config: Any) -> Any:
    """Add a page for every subpackage and module."""
    from mkdocs.structure.files import File

    for name in (*SUBPACKAGES, *MODULES):
        files.append(File.generated(config, f"api/{name}.md", content=subpackage_page(name)))
    return files


def subpackage_page(name: str) -> str:
    """Markdown that makes mkdocstrings show a subpackage or a module."""
    parts = [f"# {name}", "", ast.get_docstring(_tree(name)) or "", ""]
    return "\n".join(parts) + "\n".join(f"\n::: {path}" for path in public_names(name)) + "\n"


def public_names(subpackage: str) -> list[str]:
    """Full names of what a subpackage exports, or `acnn` exports from it, in the order of the import statements.

    Of a module, the functions that it defines.
    """
    if subpackage in MODULES:
        functions = [node.name for node in _tree(subpackage).body if isinstance(node, ast.FunctionDef)]
        return [f"acnn.{subpackage}.{name}" for name in functions if not name.startswith("_")]
    names = [
        f"{node.module}.{alias.name}"
        for tree in (_tree(subpackage), _tree(""))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"acnn.{subpackage}.")
        for alias in node.names
        if not alias.name.startswith("_")
    ]
    return list(dict.fromkeys(names))


def _tree(subpackage: str) -> ast.Module:
    path = SOURCE / f"{subpackage}.py" if subpackage in MODULES else SOURCE / subpackage / "__init__.py"
    return ast.parse(path.read_text(encoding="utf-8"))
