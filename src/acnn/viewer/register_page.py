"""The page of a registration: one row for each shape, with its image and numbers, and what failed."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acnn.viewer.pages import write_page

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 64rem; padding: 0 1rem; color: #222; }
.results { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 1.5rem; }
figure { margin: 0; } img { width: 100%; max-width: 15rem; } dl { display: grid; grid-template-columns: auto 1fr; }
dl { gap: 0 1rem; margin: 0; } dd { margin: 0; text-align: right; } h2 { font-size: 1rem; margin: 0; }
h2, dd, li { overflow-wrap: anywhere; }
"""


def write_register_page(facts: dict[str, Any], failures: Sequence[tuple[str, str]], out: Path) -> Path:
    """Write the page of a registration.

    Parameters
    ----------
    facts : dict[str, Any]
        As `register_files` returns them; images are read from beside each result.
    failures : sequence of (item, reason)
        What failed.
    out : Path
        Output file.

    Returns
    -------
    Path
        The file.
    """
    title = f"Registration of {Path(facts['template']).name}"
    failed = "".join(f"<li><b>{html.escape(Path(item).name)}</b>: {html.escape(why)}</li>" for item, why in failures)
    summary = f"{facts['registered']} shapes registered, {len(failures)} failed. Colour: distance to the shape."
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
        f"<h1>{html.escape(title)}</h1><p>{summary}</p>"
        + (f"<h2>Failed</h2><ul>{failed}</ul>" if failures else "")
        + f'<div class="results">{"".join(_figure(shape) for shape in facts["shapes"])}</div></body></html>\n'
    )
    return write_page(text, out)


def _figure(shape: dict[str, Any]) -> str:
    image = Path(shape["out"]).with_name(f"{shape['name']}_residual.png")
    data = base64.b64encode(image.read_bytes()).decode() if image.is_file() else ""
    residual = shape["mean_residual"]
    rows = {
        "verdict": shape["verdict"],
        "mean distance": "none" if residual is None else f"{residual:.3g}",
        "vertices with data": f"{shape['with_data']:.1%}",
        "confidence": f"{shape['mean_confidence']:.1%}",
        "inverted, collapsed faces": f"{shape['inverted_faces']}, {shape['collapsed_faces']}",
    }
    name = html.escape(shape["name"])
    listed = "".join(f"<dt>{label}</dt><dd>{html.escape(value)}</dd>" for label, value in rows.items())
    return f'<figure><img alt="{name}" src="data:image/png;base64,{data}"><h2>{name}</h2><dl>{listed}</dl></figure>'
