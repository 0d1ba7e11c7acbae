"""`acnn data`: makes datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli.app import Force, Output, command

data = typer.Typer(no_args_is_help=True, add_completion=False, help="Make datasets.")


@data.callback()
def _group() -> None:
    # Without a callback, a group of one command would lose that command's name.
    pass


@data.command("humans")
@command
def humans(
    out: Output,
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write, made where it is missing.")],
    subjects: Annotated[int, typer.Option(metavar="N", help="How many people.")] = 20,
    poses: Annotated[int, typer.Option(metavar="N", help="Poses of each.")] = 8,
    vertices: Annotated[int, typer.Option(metavar="N", help="Vertices of each shape.")] = 2500,
    remesh: Annotated[bool, typer.Option("--remesh", help="Give each shape a triangulation of its own.")] = False,
    seed: Annotated[int, typer.Option(metavar="K", help="Same seed, same people.")] = 0,
    force: Force = False,
) -> None:
    """Make people of all ages in bent poses from the anny body model, with dense ground truth."""
    from acnn.runs.data import humans_into

    facts = humans_into(
        folder,
        subjects=subjects,
        poses=poses,
        vertices=vertices,
        remeshed=remesh,
        seed=seed,
        force=force,
        progress=out.say,
    )
    out.result(facts, human=_text)


@data.command("parts")
@command
def parts(
    out: Output,
    source: Annotated[
        str, typer.Argument(metavar="SHAPE_OR_DIR", help="A mesh, a dataset's folder, or a dataset's name: 'humans'.")
    ],
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write, made where it is missing.")],
    kind: Annotated[str, typer.Option(help="cuts: planes take off large regions; holes: many small discs.")] = "cuts",
    missing: Annotated[
        str, typer.Option(metavar="SHARE", help="Share of the area that a part lacks, or a range: 0.2-0.6.")
    ] = "0.3",
    count: Annotated[int | None, typer.Option(metavar="N", help="Parts in all; by default one of each shape.")] = None,
    seed: Annotated[int, typer.Option(metavar="K", help="Same seed, same parts.")] = 0,
    force: Force = False,
) -> None:
    """Make parts of a shape or of a dataset's shapes, with exact truth, in the layout of SHREC'16 Partial."""
    from acnn.runs.data import make_parts

    with out.progress(f"cutting {kind}") as progress:
        facts, failures = make_parts(
            source, folder, kind=kind, missing=_share(missing), count=count, seed=seed, force=force, progress=progress
        )
    for failure in failures:
        out.failed(failure.item, failure.why)
    out.result(facts, human=_parts_text)


def _share(text: str) -> float | tuple[float, float]:
    """A number, or two with a hyphen between them."""
    from acnn.errors import InputError

    try:
        low, _, high = text.partition("-")
        return (float(low), float(high)) if high else float(text)
    except ValueError:
        raise InputError(
            f"--missing {text}: give a share of the area such as 0.3, or a range such as 0.2-0.6."
        ) from None


def _parts_text(facts: dict[str, Any]) -> str:
    low, high = facts["missing_range"]
    mirrored = "with the mirrored truth" if facts["mirrored"] else "no mirrored truth known"
    lines = [
        f"{facts['parts']} {facts['kind']} of {facts['shapes']} shape{'s' if facts['shapes'] != 1 else ''} written to "
        f"{facts['out']} in {facts['seconds']:.0f} s",
        f"  missing  {100 * low:.1f} to {100 * high:.1f} % of the area; {mirrored}",
        f"  open as  {facts['data']}",
    ]
    return "\n".join(lines)


def _text(facts: dict[str, Any]) -> str:
    own = "each with its own triangulation" if facts["remeshed"] else "one triangulation"
    return (
        f"{facts['shapes']} shapes ({facts['subjects']} people, {facts['poses']} poses each, {own}) written to "
        f"{facts['out']} in {facts['seconds']:.0f} s"
    )
