"""Common parts of the web pages, one self-contained HTML file each with arrays as base64 text; the page of a table."""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.files import write_atomic
from acnn.types import FloatArray
from acnn.viewer.colors import value_colors

STYLES = ("page.css", "stage.css")
SCRIPTS = ("elements.js", "arrays.js", "colors.js", "geometry.js", "mesh_view.js", "stage.js")
NONE16 = 65535
"""Stands for unknown in 16-bit arrays; in 32-bit arrays it is 2^32 - 1."""


@dataclass(frozen=True)
class Page:
    """One kind of page: what it adds to the common parts; names are of files in `page/`.

    Attributes
    ----------
    body : str
        The template of the page's body, with `{{ stage }}` where the 3D stage goes.
    styles, scripts : tuple[str, ...]
        Files added after the common ones.
    stage : dict[str, str]
        Texts of `stage.html`: `label` of the 3D view; `left` and `right`, ids of its cells; `all`, the shapes that
        rotate together; `click`, what a click does; `keys`, a phrase about further keys; `range` and `below`, further
        elements.
    """

    body: str
    styles: tuple[str, ...]
    scripts: tuple[str, ...]
    stage: dict[str, str]


def page_html(page: Page, title: str, content: dict[str, Any]) -> str:
    """Assemble a page from template, styles, scripts and content.

    Parameters
    ----------
    page : Page
        Kind of page.
    title : str
        Title of the document.
    content : dict[str, Any]
        Data for the scripts; JSON without NaN.

    Returns
    -------
    str
        The page as text.
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


def plain_page(title: str, body: str) -> str:
    """Assemble a page of text and tables, without a 3D view.

    Parameters
    ----------
    title : str
        Title of the document.
    body : str
        HTML, in which texts are escaped.

    Returns
    -------
    str
        The page as text.
    """
    parts = {"title": html.escape(title), "generator": "acnn", "style": _joined(("page.css",)), "body": body}
    return _filled("shell.html", parts | {"data": "{}", "script": ""})


def app_page(token: str) -> str:
    """Assemble the page of the local application (`acnn app`), which may talk to its own server.

    Parameters
    ----------
    token : str
        That the page sends with every request.

    Returns
    -------
    str
        The page as text.
    """
    data = json.dumps({"token": token}).replace("<", "\\u003c")
    parts = {"title": "acnn: match two shapes", "generator": "acnn app", "style": _joined(("page.css", "app.css"))}
    page = _filled("shell.html", parts | {"body": _text("app.html"), "data": data, "script": _text("app.js")})
    own = "connect-src 'self'; frame-src 'self'; img-src"
    return page.replace("img-src", own, 1)


def is_page(page: Page, path: Path) -> bool:
    """Return whether a file is a page of this kind."""
    try:
        with path.open("rb") as stream:
            return f'<meta name="generator" content="{_generator(page)}">'.encode() in stream.read(4096)
    except OSError:
        return False


def write_page(text: str, out: Path) -> Path:
    """Write a page and return its file; InputError if it cannot be written."""
    if not out.parent.is_dir():
        raise InputError(f"{out}: the folder {out.parent} does not exist. Create it first.")
    write_atomic(out, text.encode(errors="replace"))  # names of files need not be valid Unicode
    return out


def scale_stops(scale: str, count: int = 33) -> list[list[int]]:
    """Return equally spaced colours of a colour map of `value_colors`, in 0..255."""
    rows = np.rint(255 * value_colors(np.linspace(0, 1, count), scale, 0.0, 1.0)).astype(int)
    return [[int(c) for c in row] for row in rows]


CONFIDENCE_STOPS = scale_stops("depth")[::-1]
"""Colours of confidence, dark for low."""


def packed(values: NDArray[Any]) -> dict[str, str]:
    """Pack unsigned integers of 8, 16 or 32 bits as `{type, data}`."""
    array = np.ascontiguousarray(values)
    kinds = {"u1": "u1", "u2": "<u2", "u4": "<u4"}
    name = f"{array.dtype.kind}{array.dtype.itemsize}"
    return {"type": name, "data": base64.b64encode(array.astype(kinds[name]).tobytes()).decode("ascii")}


def packed_indices(values: NDArray[Any], count: int) -> dict[str, str]:
    """Pack indices in 0..count-1, -1 for unknown, in 16 bits if they fit, else 32."""
    small = count < NONE16
    kind, none = (np.uint16, NONE16) if small else (np.uint32, 2**32 - 1)
    array = np.asarray(values).ravel()
    return packed(np.where(array < 0, none, array).astype(kind))


def packed_values(values: FloatArray, largest: float | None = None) -> dict[str, Any]:
    """Pack numbers from 0 to `largest` (None: their maximum) in 16 bits, with a factor `scale`; NaN is unknown."""
    array = np.asarray(values, float)
    known = np.isfinite(array)
    top = largest if largest is not None else float(array[known].max(initial=0.0))
    scale = max(top, 1e-12) / (NONE16 - 1)
    steps = np.rint(np.clip(np.where(known, array, 0.0) / scale, 0, NONE16 - 1))
    return packed(np.where(known, steps, NONE16).astype(np.uint16)) | {"scale": scale}


def packed_points(vertices: FloatArray) -> dict[str, Any]:
    """Pack points in 16 bits per coordinate: `{vertices, low, step}`, a coordinate is low + step * integer."""
    points = np.asarray(vertices, float)
    low = points.min(axis=0)
    step = max(float(np.ptp(points, axis=0).max()), 1e-300) / 65535
    numbers = np.rint((points - low) / step).astype(np.uint16)
    return {"vertices": packed(numbers), "low": [float(x) for x in low], "step": step}


def _generator(page: Page) -> str:
    return f"acnn {Path(page.body).stem}"


def _filled(template: str, parts: dict[str, str]) -> str:
    """Return a template with `{{ name }}` replaced by the part of that name."""
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


@dataclass(frozen=True)
class TableRow:
    """One row of the page.

    Attributes
    ----------
    cells : tuple[str, ...]
        Texts, one for each heading.
    link : str
        Path of the file that the first cell leads to, relative to the page; empty for none.
    """

    cells: tuple[str, ...]
    link: str = ""


def write_table_page(
    out: Path, title: str, introduction: str, headings: Sequence[str], rows: Sequence[TableRow]
) -> Path:
    """Write a page with a table.

    Parameters
    ----------
    out : Path
        The HTML file.
    title, introduction : str
        Texts above the table.
    headings : Sequence[str]
        Of the columns.
    rows : Sequence[TableRow]
        The table.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in headings)
    body = "\n".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    header = f"<header><h1>{html.escape(title)}</h1><p>{html.escape(introduction)}</p></header>"
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return write_page(plain_page(title, f'{header}\n<main><div class="scroll">{table}</div></main>'), out)


def _cells(row: TableRow) -> str:
    first, *others = (html.escape(cell) for cell in row.cells)
    if row.link:
        first = f'<a href="{html.escape(quote(os.fsencode(row.link)))}">{first}</a>'
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)
