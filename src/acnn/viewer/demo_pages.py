"""What `acnn demo` leaves to look at: its first match, images, and a report of each kind of shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from acnn.correspondence.texture_transfer import sampled
from acnn.datasets.collection import spread_over
from acnn.pipeline.evaluate_run import Matched
from acnn.pipeline.match_files import FileMatch
from acnn.pipeline.report_data import report_of
from acnn.pipeline.run import Run
from acnn.shapes.shape import Mesh
from acnn.viewer.figures_parts import refined_mesh
from acnn.viewer.match_page import write_match_page
from acnn.viewer.matches import draw_matches
from acnn.viewer.pictures import Image, grid, render, save_png
from acnn.viewer.report import write_report

SHOWN = 4
"""Shapes in a report."""


def show_demo(out: Path, run: Run, matched: dict[str, list[Matched]], reports: dict[str, dict[str, Any]]) -> list[Path]:
    """Write `matches_KIND.png` and `report_KIND.html` for each kind of shape, and return the files.

    - out: folder
    - matched: shapes by kind; reports: what `evaluate_run` returned for them
    """
    files = draw_matches(out, run, matched)
    for kind, shapes in matched.items():
        some = spread_over(shapes, SHOWN)
        page = out / f"report_{kind}.html"
        write_report(report_of(f"acnn demo, {kind}", f"humans, {kind}", run, some, reports[kind]), page)
        files.append(page)
    return files


def show_first_match(match: FileMatch, textured: Mesh, folder: Path) -> Path:
    """Write the page of a match (`match.html`) and an image of B's texture on both shapes (`texture.png`).

    Parameters
    ----------
    match
        Of A to B, a mesh with a texture.
    textured
        A with the texture of B.
    folder
        Where the files go.

    Returns
    -------
    Path
        The page.
    """
    assert isinstance(match.target, Mesh)
    labels = ["B with its texture", "A with the texture of B"]
    save_png(grid([[_render_textured(match.target), _render_textured(textured)]], [labels]), folder / "texture.png")
    return write_match_page(match, folder / "match.html")


def _render_textured(mesh: Mesh) -> Image:
    """An image of a mesh with its texture, which is sampled at the corners of smaller triangles."""
    texture = mesh.texture
    assert texture is not None
    assert texture.image is not None
    corners = Mesh(mesh.vertices[mesh.faces].reshape(-1, 3), np.arange(3 * len(mesh.faces)).reshape(-1, 3))
    fine, uv = refined_mesh(corners, texture.uv[texture.uv_faces].reshape(-1, 2), 3)
    return render(fine, colors=sampled(texture.image, uv)[:, :3] / 255.0)
