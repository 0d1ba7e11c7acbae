"""Pictures of matched shapes: corresponding colours, and errors as heat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.collection import spread_over
from acnn.datasets.parts import KINDS
from acnn.evaluation import ReferenceDistances
from acnn.pipeline.evaluate_run import Matched
from acnn.pipeline.run import Run
from acnn.shapes.shape import IntArray, Mesh
from acnn.surface import surface_of
from acnn.viewer.colors import position_colors
from acnn.viewer.pictures import grid, render, save_png

PALE = 0.93
"""Grey of what a part lacks."""

HOTTEST = 0.1
"""Error, over sqrt(area), that is drawn in the hottest colour."""


def draw_matches(out: Path, run: Run, matched: dict[str, list[Matched]], count: int = 5) -> list[Path]:
    """Draw the reference and some matched shapes, for each kind of shape one picture.

    Rows: colours carried over from the reference by the refined map; errors of the network's map; errors after
    refinement. Of parts, also the reference with the region that was found, the rest pale.

    Parameters
    - out: folder; files are `matches_KIND.png`
    - run: whose reference it is
    - matched: shapes by kind
    - count: how many shapes to draw, spread over the list

    Returns the files.
    """
    colors = position_colors(run.reference.vertices)
    distances = ReferenceDistances(surface_of(run.reference))
    files = []
    for kind, shapes in matched.items():
        some = spread_over(shapes, count)
        rows = [[render(run.reference, colors=colors)], [], []]
        labels = [["reference"], [""], [""]]
        blank = np.full_like(rows[0][0], 255)
        rows[1].append(blank)
        rows[2].append(blank)
        if kind in KINDS:
            rows.append([blank])
            labels.append([""])
        for one in some:
            final = one.refined if one.refined is not None else one.soft_map.query_to_reference
            shape = one.example.shape
            rows[0].append(render(shape, colors=colors[final]))
            labels[0].append(one.name.replace("_remeshed", ""))
            for row, point_map in ((1, one.soft_map.query_to_reference), (2, final)):
                known = one.example.labels >= 0
                error = np.zeros(len(point_map))
                error[known] = distances.between(point_map[known], one.example.labels[known])
                rows[row].append(render(shape, values=error, cmap="heat", vmin=0.0, vmax=HOTTEST))
                labels[row].append(f"{'network' if row == 1 else 'refined'}: {100 * error[known].mean():.2f}")
            if kind in KINDS:
                found = _around(final, run.reference)
                rows[3].append(render(run.reference, colors=np.where(found[:, None], colors, PALE)))
                labels[3].append(f"found on the whole: {found.mean():.0%} of the vertices")
        path = out / f"matches_{kind}.png"
        save_png(grid(rows, labels), path)
        files.append(path)
    return files


def _around(matched: IntArray, reference: Mesh) -> NDArray[np.bool_]:
    """(m,) whether a reference vertex, or two of its neighbours, are the match of some vertex."""
    hit = np.zeros(len(reference.vertices), dtype=bool)
    hit[matched] = True
    corners = hit[reference.faces]
    beside = np.zeros(len(hit), dtype=int)
    for k in range(3):
        np.add.at(beside, reference.faces[:, k], corners[:, (k + 1) % 3] & corners[:, (k + 2) % 3])
    return hit | (beside > 0)
