"""`acnn data`: makes datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli.app import Output, command

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
) -> None:
    """Make people of all ages in bent poses from the anny body model, with dense ground truth."""
    from acnn.pipeline.make_humans import humans_into

    facts = humans_into(
        folder, subjects=subjects, poses=poses, vertices=vertices, remeshed=remesh, seed=seed, progress=out.say
    )
    out.result(facts, human=_text)


def _text(facts: dict[str, Any]) -> str:
    own = "each with its own triangulation" if facts["remeshed"] else "one triangulation"
    return (
        f"{facts['shapes']} shapes ({facts['subjects']} people, {facts['poses']} poses each, {own}) written to "
        f"{facts['out']} in {facts['seconds']:.0f} s"
    )
