"""Page with one table: results of many shapes or pairs, with links to the page of each."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from acnn.viewer.pages import plain_page, write_page


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
        first = f'<a href="{html.escape(quote(row.link))}">{first}</a>'
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)
