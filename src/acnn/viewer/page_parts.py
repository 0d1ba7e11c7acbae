"""Pages as one HTML file each, with everything in it, which ask for nothing from anywhere: what they share."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from acnn.errors import InputError
from acnn.files import write_whole
from acnn.viewer.colors import value_colors

STYLES = ("page.css", "stage.css")
SCRIPTS = ("elements.js", "arrays.js", "colors.js", "geometry.js", "mesh_view.js", "stage.js")


@dataclass(frozen=True)
class Page:
    """What one kind of page adds to the parts that all share; names are of files in `page/`.

    - body: the template of the page's body, with `{{ stage }}` where the 3D stage goes
    - styles, scripts: after the shared ones
    - stage: texts of `stage.html`: `label` of the 3D view; `left` and `right`, ids of its cells; `all`, a word for the
      shapes that turn together; `keys`, a sentence part about further keys; `range` and `below`, further elements
    """

    body: str
    styles: tuple[str, ...]
    scripts: tuple[str, ...]
    stage: dict[str, str]


def page_html(page: Page, title: str, content: dict[str, Any]) -> str:
    """The page as text: template, style, scripts and content joined.

    - content: what the page's scripts get as `data`; JSON without NaN
    """
    data = json.dumps(content, allow_nan=False, separators=(",", ":"))
    parts = {
        "title": html.escape(title),
        "generator": _generator(page),
        "style": _joined((*STYLES, *page.styles)),
        "body": _filled(page.body, {"stage": _filled("stage.html", page.stage)}),
        # In a script element "</" and "<!" could end or comment out the data; inside JSON strings "<" may be escaped.
        "data": data.replace("<", "\\u003c"),
        "script": _joined((*SCRIPTS, *page.scripts)),
    }
    return _filled("shell.html", parts)


def is_page(page: Page, path: Path) -> bool:
    """Whether a file is a page of this kind."""
    try:
        with path.open("rb") as stream:
            return f'<meta name="generator" content="{_generator(page)}">'.encode() in stream.read(4096)
    except OSError:
        return False


def write_page(text: str, out: Path) -> Path:
    """Write a page and return its file. Raises InputError where it cannot be written."""
    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} does not exist. Make it first.")
    write_whole(out, text.encode())
    return out


def scale_stops(scale: str, count: int = 33) -> list[list[int]]:
    """Colours at equal steps along a scale of `value_colors`, 0..255."""
    rows = np.rint(255 * value_colors(np.linspace(0, 1, count), scale, 0.0, 1.0)).astype(int)
    return [[int(c) for c in row] for row in rows]


CONFIDENCE_STOPS = scale_stops("depth")[::-1]
"""Dark is doubtful."""


def _generator(page: Page) -> str:
    return f"acnn {Path(page.body).stem}"


def _filled(template: str, parts: dict[str, str]) -> str:
    """A template with `{{ name }}` replaced by the part of that name."""
    first, *pieces = _text(template).split("{{")
    filled = [first]
    for piece in pieces:
        name, _, rest = piece.partition("}}")
        filled += [parts[name.strip()], rest]
    return "".join(filled)


def _joined(names: tuple[str, ...]) -> str:
    return "\n".join(_text(name) for name in names)


def _text(name: str) -> str:
    return (resources.files("acnn.viewer") / "page" / name).read_text(encoding="utf-8")
