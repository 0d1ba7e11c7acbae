"""The page of a registration: a card for each shape with its image and numbers, and a list of what failed."""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from acnn.viewer.pages import plain_page, scale_stops, write_page

STYLE = """<style>
.results { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr)); gap: 16px; }
.results { margin-top: 24px; } .results h2 { font-size: 1rem; margin: 6px 0; overflow-wrap: anywhere; }
.results img { display: block; width: 100%; border-radius: 8px; background: #fff; }
dl { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0 12px; margin: 0; font-size: .88rem; }
dt { color: var(--soft); } dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
dd, .ends span { white-space: nowrap; }
.bar { height: 8px; border-radius: 4px; margin-top: 8px; } .ends { display: flex; justify-content: space-between; }
.ends { color: var(--soft); font-size: .8rem; } li { overflow-wrap: anywhere; } .doubtful { color: var(--warning); }
</style>"""


def write_register_page(report: Mapping[str, Any], failures: Sequence[tuple[str, str]], out: Path) -> Path:
    """Write the page of a registration.

    Parameters
    ----------
    report : mapping
        As `register_files` returns it; images are read from beside each result.
    failures : sequence of (item, reason)
        What failed.
    out : Path
        Output file.

    Returns
    -------
    Path
        The file.
    """
    title = f"Registration of {Path(report['template']).name}"
    summary = (
        f"{report['registered']} shape{'s' * (report['registered'] != 1)} registered, {len(failures)} failed. "
        "Colour: distance of each vertex to the shape, in its units; a close fit is pale, as every scale ends at 0.5 % "
        "of the root of the area or above."
    )
    failed = "".join(f"<li><b>{html.escape(Path(item).name)}</b>: {html.escape(why)}</li>" for item, why in failures)
    body = (
        f"{STYLE}<header><h1>{html.escape(title)}</h1><p>{summary}</p></header><main>"
        + (f'<h2>Failed</h2><ul id="failed">{failed}</ul>' if failures else "")
        + f'<div class="results">{"".join(_card(shape) for shape in report["shapes"])}</div></main>'
    )
    return write_page(plain_page(title, body), out)


def _card(shape: Mapping[str, Any]) -> str:
    """One result: image, colour bar, numbers, and a link to its mesh."""
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
    name, file = html.escape(shape["name"]), quote(os.fsencode(Path(shape["out"]).name))
    listed = "".join(
        f'<dt>{label}</dt><dd class="{html.escape(value) if label == "verdict" else ""}">{html.escape(value)}</dd>'
        for label, value in rows.items()
    )
    return (
        f'<figure class="card"><img alt="{name}, coloured by distance" src="data:image/png;base64,{data}">'
        f'{_colour_bar(shape.get("largest_shown"))}<h2><a href="{file}">{name}</a></h2><dl>{listed}</dl></figure>'
    )


def _colour_bar(largest: float | None) -> str:
    """The colours of distances from 0 to the largest that is shown; empty where it is not known."""
    if largest is None:
        return ""
    stops = ",".join("rgb({},{},{})".format(*stop) for stop in scale_stops("heat"))
    return (
        f'<div class="bar" role="img" aria-label="colour bar: 0 to {largest:.2g}" '
        f'style="background:linear-gradient(to right,{stops})"></div>'
        f'<div class="ends"><span>0</span><span>{largest:.2g}</span></div>'
    )
