"""`acnn info`: what was read, what is wrong with it, what repair would do or did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from acnn.cli.app import Output, command


@command
def info(
    out: Output,
    shape: Annotated[Path, typer.Argument(metavar="SHAPE", help="A mesh or point cloud.")],
    repair: Annotated[Path | None, typer.Option(metavar="OUT", help="Write the mended shape here.")] = None,
    kind: Annotated[str | None, typer.Option(metavar="mesh|cloud", help="Insist on one kind.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT if it exists, even if it is SHAPE.")] = False,
) -> None:
    """Show what a file holds, what is wrong with it, and what repair would do; with --repair, do it."""
    from acnn.correspondence.matchable import describe_shape
    from acnn.files import check_outputs, make_folder
    from acnn.shapes.load import load
    from acnn.shapes.save import format_to_write, save

    insisted: Literal["mesh", "cloud"] | None = kind  # type: ignore[assignment]  # load checks it
    if repair is not None:
        check_outputs([repair], force=force)
    loaded = load(shape, kind=insisted, repair=repair is not None)
    facts = describe_shape(loaded)
    if repair is not None:
        format_to_write(loaded, repair)
        make_folder(repair)
        lost = save(loaded, repair)
        facts |= {"repaired_to": str(repair), "left_out_by_format": list(lost)}
    out.result(facts, human=_text)


def _text(facts: dict[str, Any]) -> str:
    lines = [f"{facts['path']}: {facts['kind']}, {facts['vertices']} vertices"]
    if facts["kind"] == "mesh":
        genus = "" if facts["genus"] is None else f", genus {facts['genus']}"
        lines[0] += f", {facts['faces']} faces"
        lines += [
            f"  surface      {facts['components']} component(s), {_boundary(facts)}{genus}",
            f"  area         {facts['area']:.6g}"
            + ("" if facts["volume"] is None else f", volume {facts['volume']:.6g}"),
            f"  mean edge    {facts['mean_edge']:.6g}",
            f"  triangles    smallest angle {facts['smallest_angle']:.3g} degrees, {facts['obtuse_share']:.1%} obtuse",
        ]
    lines.append(f"  size         {' x '.join(f'{side:.6g}' for side in facts['extent'])}")
    carried = [name for name in ("colors", "normals", "uv", "texture") if facts.get(f"has_{name}")]
    lines.append(f"  carries      {', '.join(carried) or 'nothing but its geometry'}")
    for finding in facts["findings"]:
        lines.append(f"  {'mended' if finding['repaired'] else 'found':12s} {finding['text']}")
    if not facts["findings"]:
        lines.append("  nothing is wrong with it")
    if "repaired_to" in facts:
        lost = facts["left_out_by_format"]
        lines.append(
            f"written to {facts['repaired_to']}" + (f"; the format cannot hold: {', '.join(lost)}" if lost else "")
        )
    return "\n".join(lines)


def _boundary(facts: dict[str, Any]) -> str:
    """Whether a mesh is open or closed, and what keeps it from being a manifold."""
    loops = facts["boundary_loops"]
    state = f"open, {loops} boundary loop{'' if loops == 1 else 's'}" if loops else "no boundary"
    if facts["manifold"]:
        return state if loops else "closed"
    faults = []
    if edges := facts["nonmanifold_edges"]:
        faults.append(f"{edges} edge{'' if edges == 1 else 's'} with more than two faces")
    if vertices := facts["nonmanifold_vertices"]:
        faults.append(f"{vertices} {'vertex' if vertices == 1 else 'vertices'} where fans of faces meet in a point")
    return f"{state}, not a manifold ({', '.join(faults) or 'faces that use a vertex twice'})"
