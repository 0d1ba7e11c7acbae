"""`acnn match`: dense map of one shape to another, or to the reference of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli.app import Force, Output, command


@command
def match(
    out: Output,
    a: Annotated[Path, typer.Argument(metavar="A", help="A mesh or point cloud.")],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder.")],
    b: Annotated[Path | None, typer.Argument(metavar="[B]", help="Match A to this shape.")] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="auto|METHOD",
            help="'auto': the pretrained model or, where it does not fit, descriptors. See 'acnn methods'.",
        ),
    ] = "auto",
    model: Annotated[
        str | None, typer.Option(metavar="RUN|humans", help="Folder of a run, or the name of a pretrained model.")
    ] = None,
    refine: Annotated[
        str, typer.Option(metavar="none|fm|zoomout|pfm|auto", help="Refinement of the map by functional maps.")
    ] = "auto",
    reestimate: Annotated[
        bool, typer.Option("--reestimate", help="Batch statistics of the query, not of the training shapes.")
    ] = False,
    unit: Annotated[
        float | None, typer.Option(help="Unit of length of A; default: its geodesic diameter / 200.")
    ] = None,
    working_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Match copies of at most N vertices; 0: the shapes themselves. Default: 3000, or the model's.",
        ),
    ] = None,
    landmarks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Known pairs, '[name] vertex-of-A vertex-of-B' on each line, that guide the map."
        ),
    ] = None,
    barycentric: Annotated[bool, typer.Option("--barycentric", help="Also write points inside triangles.")] = False,
    force: Force = False,
) -> None:
    """Match a shape to another, or to the reference of a network; or label it with the classes of a segmentation.

    The pretrained model 'humans' is bundled; where it does not fit, matching falls back to descriptors.
    """
    from acnn.runs.match_files import match_files
    from acnn.viewer.match_page import FileMatch, write_match_page

    kept: list[FileMatch] = []
    with out.progress() as progress:
        facts = match_files(
            a,
            b,
            model,
            folder,
            method=method,
            refinement=refine,
            reestimate=reestimate,
            unit=unit,
            working_size=working_size,
            landmarks=landmarks,
            barycentric=barycentric,
            force=force,
            cache=out.cache,
            progress=progress,
            keep=kept.append,
            announce=out.message,
        )
        for found in kept:
            facts |= {"page": str(write_match_page(found, folder / "match.html"))}
    for notice in facts["notices"]:
        out.message(f"notice: {notice}")
    out.result(facts, human=_text if kept else _classes_text)
    if facts.get("verdict") == "failed":
        out.message("verdict: failed. The files were written, but the map should not be used.")


def _text(facts: dict[str, Any]) -> str:
    by = facts["route"] if facts.get("model") is None else f"{facts['route']} {facts['model']}"
    return (
        f"{facts['map']}: {facts['verdict']}, {facts['vertices']} vertices, matched by {by}, "
        f"mean confidence {facts['mean_confidence']:.1%}, "
        f"refinement {facts['refinement']['used']} ({facts['refinement']['why']})\n"
        f"{facts['page']}: both shapes in 3D. Open it in a browser."
    )


def _classes_text(facts: dict[str, Any]) -> str:
    width = max(len(entry["name"]) for entry in facts["classes"])
    rows = [f"  {entry['name'].ljust(width)}  {entry['area']:6.1%} of the area" for entry in facts["classes"]]
    labels = f"{facts['labels']}: {facts['vertices']} vertices, mean confidence {facts['mean_confidence']:.1%}"
    return "\n".join([labels, *rows, f"{facts['image']}: front and back."])
