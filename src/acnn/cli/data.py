"""`acnn data`: generate datasets of humans, of other families of shapes, and of partial shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, command
from acnn.cli._options import Force, Seed, one_of

Folder = Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder, created if missing.")]
Remesh = Annotated[
    bool, typer.Option("--remesh", help="Remesh every shape, so that each has a different triangulation.")
]
Vertices = Annotated[int, typer.Option(metavar="N", help="Vertices per shape.")]

data = typer.Typer(no_args_is_help=True, add_completion=False, help="Generate datasets.")


@data.callback()
def _group() -> None:
    # Without a callback, a group of one command would lose that command's name.
    pass


@data.command("humans")
@command
def humans(
    out: Output,
    folder: Folder,
    subjects: Annotated[int, typer.Option(metavar="N", help="Number of subjects.")] = 20,
    poses: Annotated[int, typer.Option(metavar="N", help="Poses per subject.")] = 8,
    vertices: Vertices = 2500,
    remesh: Remesh = False,
    seed: Seed = 0,
    kinds: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Disturbed bodies of these kinds in turn: trained, held-out, or names such as fists,hat,shoes+voxels.",
        ),
    ] = None,
    combine: Annotated[
        float, typer.Option(metavar="FRACTION", help="Fraction of the disturbed bodies that are of two kinds.")
    ] = 0.0,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes that make disturbed bodies.")] = 1,
    force: Force = False,
) -> None:
    """Generate humans of all ages in various poses with the anny body model, with dense ground truth."""
    from acnn.runs.data import humans_into

    facts = humans_into(
        folder,
        subjects=subjects,
        poses=poses,
        vertices=vertices,
        remeshed=remesh,
        seed=seed,
        kinds=kinds,
        combine=combine,
        workers=workers,
        force=force,
        progress=out.message,
    )
    out.result(facts, human=_text)


@data.command("family")
@command
def family(
    out: Output,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="bone, hand or quadruped.", autocompletion=one_of("bone", "hand", "quadruped")
        ),
    ],
    folder: Folder,
    count: Annotated[int, typer.Option(metavar="N", help="Number of shapes.")] = 20,
    vertices: Vertices = 1500,
    pose: Annotated[float, typer.Option(metavar="X", help="Size of the joint angles, 0 (all in one pose) to 1.")] = 1.0,
    remesh: Remesh = False,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Generate a family of shapes with known correspondence: long bones, hands or quadrupeds."""
    from acnn.runs.data import family_into

    with out.progress(f"writing {kind}s") as progress:
        facts = family_into(
            kind,
            folder,
            count=count,
            vertices=vertices,
            pose=pose,
            remeshed=remesh,
            seed=seed,
            force=force,
            progress=progress,
        )
    out.result(facts, human=_family_text)


@data.command("parts")
@command
def parts(
    out: Output,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SHAPE_OR_DIR", help="A mesh, a dataset folder, or the name of a dataset such as 'humans'."
        ),
    ],
    folder: Folder,
    kind: Annotated[
        str,
        typer.Option(
            metavar="cuts|holes",
            autocompletion=one_of("cuts", "holes"),
            help="cuts: large regions cut off by planes; holes: many small discs.",
        ),
    ] = "cuts",
    missing: Annotated[
        str, typer.Option(metavar="FRACTION", help="Missing fraction of the area, or a range: 0.2-0.6.")
    ] = "0.3",
    count: Annotated[
        int | None, typer.Option(metavar="N", help="Total number of partial shapes; default: one per shape.")
    ] = None,
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Generate partial shapes of a mesh or of a dataset, with exact ground truth, in the layout of SHREC'16 Partial."""
    from acnn.runs.data import make_parts

    with out.progress(f"cutting {kind}") as progress:
        facts, failures = make_parts(
            source,
            folder,
            kind=kind,
            missing=_fraction(missing),
            count=count,
            seed=seed,
            force=force,
            progress=progress,
        )
    out.result(facts, human=_parts_text, failures=failures)


def _fraction(text: str) -> float | tuple[float, float]:
    """Parse a number, or a range of two with a hyphen between them."""
    from acnn.errors import InputError

    try:
        low, _, high = text.partition("-")
        return (float(low), float(high)) if high else float(text)
    except ValueError:
        raise InputError(
            f"--missing {text}: give a fraction of the area such as 0.3, or a range such as 0.2-0.6."
        ) from None


def _parts_text(facts: dict[str, Any]) -> str:
    low, high = facts["missing_range"]
    mirrored = "with mirrored ground truth" if facts["mirrored"] else "no mirrored ground truth known"
    lines = [
        f"{facts['parts']} {facts['kind']} of {facts['shapes']} shape{'s' if facts['shapes'] != 1 else ''} written to "
        f"{facts['out']} in {facts['seconds']:.0f} s",
        f"  missing  {100 * low:.1f} to {100 * high:.1f} % of the area; {mirrored}",
        f"  open as  {facts['data']}",
    ]
    return "\n".join(lines)


def _family_text(facts: dict[str, Any]) -> str:
    return _written(facts, f"{facts['shapes']} {facts['kind']}s ({facts['vertices']} vertices")


def _text(facts: dict[str, Any]) -> str:
    return _written(facts, f"{facts['shapes']} shapes ({facts['subjects']} subjects, {facts['poses']} poses each")


def _written(facts: dict[str, Any], what: str) -> str:
    own = "each in a different triangulation" if facts["remeshed"] else "one triangulation"
    return f"{what}, {own}) written to {facts['out']} in {facts['seconds']:.0f} s"
