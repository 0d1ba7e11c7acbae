"""The API reference: a page for each room of the package with its public names, and docstrings as Markdown.

Read from the sources without importing them. Works twice for the site: as a hook of MkDocs that writes the pages, and
as an extension of griffe, which mkdocstrings reads the sources with.

The project's docstrings are Markdown but for two things that are left out for the sake of reading them in the source:
an empty line before a list, and a paragraph of their own for words such as Parameters. Public names in backticks become
links.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import griffe

SOURCE = Path(__file__).resolve().parents[1] / "src" / "acnn"
ROOMS = (
    *("shapes", "surface", "descriptors", "patches", "network", "correspondence", "datasets", "evaluation"),
    *("training", "pipeline", "viewer"),
)
"""In the order of the data flow."""

BESIDES = ("acnn.pipeline.run.Run", "acnn.pipeline.match.ShapeMatch", "acnn.pipeline.transfer_files.transfer_files")
"""What the functions of `pipeline` give back, and what `acnn` does not name."""

HEADS = ("Parameters", "Shapes", "And")
SENTENCES = ("Returns", "Raises")
ITEM = re.compile(r"^- \*{0,2}\w+(, \*{0,2}\w+)*(?=: )")
"""The names at the head of an item of a list: parameters, or fields of a record."""


def on_files(files: Any, config: Any) -> Any:
    """Add a page for every room, and one for what all of them share."""
    from mkdocs.structure.files import File

    for room in ROOMS:
        files.append(File.generated(config, f"api/{room}.md", content=room_page(room)))
    return files


def room_page(room: str) -> str:
    """Markdown that tells mkdocstrings to show a room."""
    names = public_names()[room]
    parts = [f"# {room}", "", ast.get_docstring(_tree(room)) or "", ""]
    if room == "pipeline":
        parts += ["Functions of the first kind are imported from `acnn` itself; the rest from where they are.", ""]
    return "\n".join(parts) + "\n".join(f"\n::: {path}" for path in names.values()) + "\n"


def public_names() -> dict[str, dict[str, str]]:
    """For each room its public names, and where they are defined, in the order of its import statements."""
    found = {}
    for room in ROOMS:
        tree = _tree(room)
        origin = {
            alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"acnn.{room}.")
            for alias in node.names
        }
        found[room] = {name: origin[name] for name in origin if name in _assigned(tree, "__all__", [])}
    where = _assigned(_tree(""), "_WHERE", {})
    found["pipeline"] |= {name: f"{path}.{name}" for name, path in where.items() if path.startswith("acnn.pipeline.")}
    found["pipeline"] |= {path.rpartition(".")[2]: path for path in BESIDES}
    return found


class DocstringMarkup(griffe.Extension):
    """Rewrites every docstring before it is shown."""

    def __init__(self) -> None:
        self.known = {name: path for names in public_names().values() for name, path in names.items()}

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rewrite the docstring of a class, function or attribute."""
        if obj.docstring is not None:
            others = {name: path for name, path in self.known.items() if name != obj.name}
            obj.docstring.value = marked_up(obj.docstring.value, others)


def marked_up(text: str, known: dict[str, str]) -> str:
    """A docstring as Markdown.

    - known: full names by the short ones that are to become links
    """
    lines: list[str] = []
    for line in text.splitlines():
        before = lines[-1] if lines else ""
        listed = re.match(r"- |\d+\. |  ", before)
        if re.match(r"- |\d+\. ", line) and before.strip() and not listed:
            lines.append("")
        word = line.split(" ", 1)[0]
        if word in SENTENCES or line in HEADS:
            if before.strip():
                lines.append("")
            line = line.replace(word, f"**{word}**", 1)
        lines.append(ITEM.sub(lambda item: re.sub(r"[*\w]+", r"`\g<0>`", item[0]), line))

    def linked(match: re.Match[str]) -> str:
        name = match[1].rpartition(".")[2]
        # A single small word may be many things: the method `zoomout` of a refinement, or the function.
        sure = name != name.lower() or "_" in name or "." in match[1]
        return f"[`{match[1]}`][{known[name]}]" if sure and name in known else match[0]

    # Lines indented by four are formulas, which take no links.
    return "\n".join(line if line.startswith("    ") else re.sub(r"`([\w.]+)`", linked, line) for line in lines)


def _tree(room: str) -> ast.Module:
    return ast.parse((SOURCE / room / "__init__.py").read_text(encoding="utf-8"))


def _assigned(tree: ast.Module, name: str, missing: Any) -> Any:
    """The literal that a module assigns to a name."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    return missing
