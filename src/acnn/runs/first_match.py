"""First result of the demo: two built-in humans matched by the pretrained model, with a texture transferred."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from acnn.correspondence.texture import sampled
from acnn.datasets.humans.attributes import with_texture
from acnn.datasets.open import humans_dataset
from acnn.files import make_folder
from acnn.progress import Progress, begin_stage
from acnn.runs.match import HUMANS
from acnn.runs.match_files import match_files
from acnn.runs.transfer import transfer_files
from acnn.shapes.load import load
from acnn.shapes.mesh import Mesh
from acnn.shapes.save import save
from acnn.viewer.figure_parts import refined_mesh
from acnn.viewer.images import Image, grid, render, save_png
from acnn.viewer.match_page import FileMatch, write_match_page

A, B = "human_16_05_remeshed", "human_18_02"
"""Humans of the test split in different poses; A is remeshed, so the triangulations differ."""

Show = Callable[[FileMatch, Mesh, Path], Any]
"""Writes pages and images of a match, and of A with the texture of B, into a folder."""


def first_match(folder: Path, show: Show, *, progress: Progress | None = None) -> dict[str, Any]:
    """Match two built-in humans with the pretrained model, transfer a texture from one to the other, and show both.

    Parameters
    ----------
    folder : Path
        Output folder: both shapes (B with a texture), the files of `match_files`, A with the texture
        (`a_textured.glb`), and the files that `show` writes.
    show : Show
        Called with the match, A with the texture, and the folder.
    progress : Progress or None
        Called with (done, total); the stages are those of `match`.

    Returns
    -------
    dict[str, Any]
        The facts of `match_files`, and `textured`, the file of A with the texture.
    """
    begin_stage(progress, "two humans")
    humans = humans_dataset(remeshed=1)
    a, b = folder / f"{A}.ply", folder / f"{B}.obj"
    make_folder(a)
    save(humans.named(A).read().shape, a)
    save(with_texture(humans.named(B).read().shape), b)
    matches: list[FileMatch] = []
    facts = match_files(a, b, HUMANS, folder, barycentric=True, progress=progress, keep=matches.append)
    begin_stage(progress, "texture")
    textured = folder / "a_textured.glb"
    transfer_files(folder, b, a, textured, "texture")
    painted = load(textured)
    assert isinstance(painted, Mesh)
    show(matches[0], painted, folder)
    return facts | {"textured": str(textured)}


def show_first_match(match: FileMatch, textured: Mesh, folder: Path) -> Path:
    """Write the page of a match (`match.html`) and an image of B's texture on both shapes (`texture.png`).

    Parameters
    ----------
    match : FileMatch
        Match of A to B, a mesh with a texture.
    textured : Mesh
        A with the texture of B.
    folder : Path
        Output folder.

    Returns
    -------
    Path
        The page.
    """
    assert isinstance(match.target, Mesh)
    labels = ["B with its texture", "A with the texture of B"]
    save_png(grid([[render_textured(match.target), render_textured(textured)]], [labels]), folder / "texture.png")
    return write_match_page(match, folder / "match.html")


def render_textured(mesh: Mesh, **options: Any) -> Image:
    """Render a mesh with its texture, sampled at the vertices of a subdivided mesh; options as of `render`."""
    texture = mesh.texture
    assert texture is not None
    assert texture.image is not None
    corners = Mesh(mesh.vertices[mesh.faces].reshape(-1, 3), np.arange(3 * len(mesh.faces)).reshape(-1, 3))
    fine, uv = refined_mesh(corners, texture.uv[texture.uv_faces].reshape(-1, 2), 3)
    return render(fine, colors=sampled(texture.image, uv)[:, :3] / 255.0, **options)
