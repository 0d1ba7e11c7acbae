"""Pictures of matched shapes: corresponding colours, and errors as heat."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from acnn.evaluation import ReferenceDistances
from acnn.pipeline.evaluate_run import Matched
from acnn.pipeline.run import Run
from acnn.surface import surface_of
from acnn.viewer.colors import position_colors
from acnn.viewer.pictures import grid, render, save_png

HOTTEST = 0.1
"""Error, over sqrt(area), that is drawn in the hottest colour."""


def draw_matches(out: Path, run: Run, matched: dict[str, list[Matched]], count: int = 5) -> list[Path]:
    """Draw the reference and some matched shapes, for each kind of shape one picture.

    Rows: colours carried over from the reference by the refined map; errors of the network's map; errors after
    refinement.

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
        some = [shapes[(i * len(shapes)) // min(count, len(shapes))] for i in range(min(count, len(shapes)))]
        rows = [[render(run.reference, colors=colors)], [], []]
        labels = [["reference"], [""], [""]]
        blank = np.full_like(rows[0][0], 255)
        rows[1].append(blank)
        rows[2].append(blank)
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
        path = out / f"matches_{kind}.png"
        save_png(grid(rows, labels), path)
        files.append(path)
    return files
