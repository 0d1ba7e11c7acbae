"""`acnn match`: dense map of one shape to another, or to the reference of a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, long_command
from acnn.cli._options import Force, Refine, WorkingSize, methods, models
from acnn.errors import InputError


@long_command
def match(
    out: Output,
    a: Annotated[
        Path | None,
        typer.Argument(metavar="A", help="A mesh or point cloud; a folder, to match each of its shapes to B."),
    ] = None,
    b: Annotated[Path | None, typer.Argument(metavar="B", help="Match A to this shape.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Output folder; default: a new one, A_to_B.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="auto|METHOD",
            help="'auto': the pretrained model or, where it does not fit, descriptors. See 'acnn methods'.",
            autocompletion=methods,
        ),
    ] = "auto",
    model: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|humans", help="Folder of a run, or the name of a pretrained model.", autocompletion=models
        ),
    ] = None,
    refine: Refine = "auto",
    reestimate: Annotated[
        bool, typer.Option("--reestimate", help="Batch statistics of the query, not of the training shapes.")
    ] = False,
    unit: Annotated[
        float | None, typer.Option(help="Unit of length of A; default: its geodesic diameter / 200.")
    ] = None,
    working_size: WorkingSize = None,
    pairs: Annotated[
        Path | None, typer.Option(metavar="LIST", help="Match many pairs: two files on each line, instead of A and B.")
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", help="Of many pairs: number of processes.")] = 2,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of many pairs: Dask scheduler, instead of processes.")
    ] = None,
    landmarks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Known pairs, 'vertex-of-A vertex-of-B' or 'name vertex vertex' per line, that guide the map.",
        ),
    ] = None,
    barycentric: Annotated[bool, typer.Option("--barycentric", help="Also write points inside triangles.")] = False,
    force: Force = False,
) -> None:
    """Match a shape to another, or to the reference of a network; or label it with the classes of a segmentation.

    The pretrained model 'humans' is bundled; where it does not fit, matching falls back to descriptors.
    """
    from acnn.runs.match_files import free_result_folder, match_files
    from acnn.viewer.match_page import FileMatch, write_match_page

    options: dict[str, Any] = {
        **{"method": method, "refinement": refine, "reestimate": reestimate, "unit": unit},
        **{"working_size": working_size, "barycentric": barycentric, "force": force, "cache": out.cache},
    }
    many = a if a is not None and a.is_dir() and b is not None else pairs
    if many is not None:
        if landmarks is not None or (pairs is not None and a is not None):
            raise InputError("--pairs: the list names the shapes, and landmarks belong to one pair. Leave them out.")
        _match_many(out, many, b if many is a else None, folder, workers, scheduler, {**options, "model": model})
        return
    if a is None:
        raise InputError("Give a shape to match, as in 'acnn match A.ply B.ply', or a list of pairs with --pairs.")
    folder = folder or free_result_folder(a, b)
    kept: list[FileMatch] = []
    with out.progress() as progress:
        report = match_files(
            a,
            b,
            model,
            folder,
            landmarks=landmarks,
            progress=progress,
            keep=kept.append,
            announce=out.message,
            **options,
        )
        facts = report.as_dict()
        for found in kept:
            facts["page"] = str(write_match_page(found, folder / "match.html"))
    for notice in facts["notices"]:
        out.message(f"notice: {notice}")
    out.result(facts, human=_text if kept else _classes_text)
    if facts.get("verdict") == "failed":
        out.message("verdict: failed. The files were written, but the map should not be used.")


def _match_many(
    out: Output,
    source: Path,
    target: Path | None,
    folder: Path | None,
    workers: int,
    scheduler: str | None,
    options: dict[str, Any],
) -> None:
    """Match the pairs of a list, or the shapes of a folder to one target."""
    from acnn.runs.match_files import free_result_folder
    from acnn.runs.match_many import match_many, read_pairs

    listed = read_pairs(source, target)
    with out.progress() as progress:
        found = match_many(
            listed,
            folder or free_result_folder(source, target),
            workers=workers,
            scheduler=scheduler,
            progress=progress,
            **options,
        )
    out.result(found.as_dict(), human=_many_text, failures=found.failures)


def _many_text(facts: dict[str, Any]) -> str:
    verdicts = [match["verdict"] for match in facts["matched"]]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in ("good", "doubtful", "failed"))
    resumed = f" ({facts['resumed']} from before)" if facts["resumed"] else ""
    return f"{facts['table']}: {len(verdicts)} of {facts['pairs']} pairs matched{resumed}: {counts}\n{facts['page']}"


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
