"""Pictures for papers and pages, drawn without a screen: transfer, errors, filters and curves of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acnn.errors import InputError
from acnn.files import check_outputs
from acnn.shapes.shape import FloatArray, Mesh
from acnn.types import Progress, begin_stage
from acnn.viewer.figures_filters import first_filters, polar_picture, strongest_filters
from acnn.viewer.figures_parts import caption, chequered, color_bar, refined_mesh
from acnn.viewer.pictures import grid, render, save_png

if TYPE_CHECKING:  # these load torch
    from acnn.network import AcnnModel
    from acnn.pipeline.report_data import ReportData, ReportShape

KINDS = ("transfer", "errors", "filters", "curve")
HOTTEST = 0.1
"""Error, over the reference's length, that is drawn in the hottest colour."""

MOST_FACES = 400_000
"""Triangles are split for the pattern as long as there are no more of them than this."""

LENGTHS = {"sqrt_area": "sqrt(area)", "diameter": "geodesic diameter"}
Image = NDArray[np.uint8]


def known_kind(kind: str) -> str:
    """The kind of picture itself. Raises InputError where there is no such kind."""
    if kind not in KINDS:
        raise InputError(f"There is no figure '{kind}': use one of {', '.join(KINDS)}.")
    return kind


def draw_transfer(data: ReportData, *, size: tuple[int, int] = (360, 600), up: str = "y") -> Image:
    """The reference with a procedural pattern, and every shape with the pattern pulled back along its map.

    The pattern is drawn inside the triangles, too: the matched points of a triangle's corners are interpolated.

    - data: of `collect_report`; the refined maps are taken where there are some
    - size: of one shape, (width, height)
    - up: the shapes' axis that points up
    """
    reference = data.run.reference
    box = reference.vertices.min(axis=0), reference.vertices.max(axis=0)

    def drawn(mesh: Mesh, on_reference: FloatArray) -> Image:
        times = next((k for k in (3, 2, 1) if len(mesh.faces) * 4**k <= MOST_FACES), 0)
        fine, points = refined_mesh(mesh, on_reference, times)
        return render(fine, colors=chequered(points, *box, up=up), size=size, up=up)

    pictures, labels = [drawn(reference, reference.vertices)], ["reference"]
    for shape in data.shapes:
        final = shape.refined if shape.refined is not None else shape.network
        pictures.append(drawn(Mesh(shape.vertices, shape.faces), reference.vertices[final]))
        labels.append(_name(shape))
    return grid([pictures], [labels])


def draw_errors(data: ReportData, *, size: tuple[int, int] = (340, 500), up: str = "y") -> Image:
    """Geodesic error of every point: a column for each shape, a row for each map, and a colour bar.

    Grey: no truth is known there. Below each shape its mean error x 100.
    """
    length = LENGTHS.get(data.figures["normalisation"], data.figures["normalisation"])
    rows: list[list[Image | None]] = []
    labels: list[list[str]] = []
    for name in ("network", "refined"):
        errors = [getattr(shape, f"{name}_errors") for shape in data.shapes]
        if any(e is None for e in errors):
            continue
        drawn: list[Image | None] = []
        words = []
        for shape, error in zip(data.shapes, errors, strict=True):
            mesh = Mesh(shape.vertices, shape.faces)
            drawn.append(render(mesh, values=error, vmin=0.0, vmax=HOTTEST, size=size, up=up))
            words.append(f"{_name(shape)}: {100 * np.nanmean(error):.2f}")
        rows.append([caption(name, size[1], upright=True), *drawn])
        labels.append(["", *words])
    sheet = grid(rows, labels)
    bar = color_bar("heat", 0.0, HOTTEST, f"geodesic error / {length}", height=min(sheet.shape[0] - 60, 640))
    return grid([[sheet, _centred(bar, sheet.shape[0])]], gap=0)


def draw_filters(model: AcnnModel, *, columns: int = 8, rows: int = 4, size: int = 150) -> Image:
    """The strongest filters of the first intrinsic convolution as discs, one for each output channel.

    Direction is the kernel's angle from that of the larger principal curvature (to the right), distance from the
    middle its scale; red is positive, blue negative, each disc from its own largest size.
    """
    filters = first_filters(model)
    chosen = strongest_filters(filters, columns * rows)
    discs = [polar_picture(filters[:, :, source, out], size) for source, out in chosen]
    words = [f"in {source}, out {out}" for source, out in chosen]
    lines = [slice(i, i + columns) for i in range(0, len(discs), columns)]
    sheet = grid([discs[part] for part in lines], [words[part] for part in lines], text=15, gap=12)
    bar = color_bar("diverging", -1.0, 1.0, "weight over its largest size", height=min(sheet.shape[0] - 40, 420))
    return grid([[sheet, _centred(bar, sheet.shape[0])]], gap=0)


def write_figure(
    folder: Path,
    kind: str,
    out: Path,
    *,
    data: str | None = None,
    test_list: str | None = None,
    shapes: int = 5,
    refinement: str = "auto",
    up: str = "y",
    workers: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> tuple[dict[str, Any], list[Any]]:
    """Draw one kind of picture of a run into a PNG file.

    Parameters
    - folder: of a run, or of `acnn demo`
    - kind: `transfer`, `errors`, `filters` or `curve`
    - out: the file, ending in .png
    - data, test_list, shapes, refinement, workers, progress: as for `collect_report`
    - up: the shapes' axis that points up
    - force: overwrite a file that is there already, unless it is an input

    Returns facts about the picture, and the shapes that failed to be prepared.
    Raises InputError for an unknown kind, a file of another format or that must not be overwritten, or what is no run.
    """
    from acnn.pipeline.report_data import collect_report
    from acnn.pipeline.run import inputs_of_run, open_run, run_folder

    known_kind(kind)
    if out.suffix.lower() != ".png":
        raise InputError(f"{out}: pictures are written as PNG. Give a name that ends in .png.")
    if up not in ("x", "y", "z"):
        raise InputError(f"--up {up}: use x, y or z.")
    check_outputs([out], inputs=inputs_of_run(folder, data), force=force)
    facts: dict[str, Any] = {"figure": str(out), "kind": kind}
    if kind == "filters":
        save_png(draw_filters(open_run(run_folder(folder)).model), out)
        return facts, []
    gathered, failures = collect_report(
        folder,
        data,
        test_list=test_list,
        shapes=shapes,
        refinement=refinement,
        workers=workers,
        progress=progress,
    )
    begin_stage(progress, "drawing")
    if kind == "curve":
        _write_curve(gathered, out)
    else:
        save_png((draw_transfer if kind == "transfer" else draw_errors)(gathered, up=up), out)
    facts |= {"shapes": [shape.name for shape in gathered.shapes]}
    return facts | {name: gathered.figures[name] for name in ("exact", "mean_error_x100")}, failures


def _write_curve(data: ReportData, out: Path) -> None:
    from acnn.evaluation.curves import report_curves, write_curves_png

    published = data.published if data.comparable else None
    curves = report_curves(data.figures)
    write_curves_png(out, curves, data.figures["normalisation"], published=published, title=data.title)


def _name(shape: ReportShape) -> str:
    return shape.name.replace("_remeshed", " (remeshed)").replace("_", " ")


def _centred(picture: Image, height: int) -> Image:
    """The picture in the middle of a white strip."""
    strip = np.full((max(height, picture.shape[0]), *picture.shape[1:]), 255, np.uint8)
    top = (len(strip) - len(picture)) // 2
    strip[top : top + len(picture)] = picture
    return strip
