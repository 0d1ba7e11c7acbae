"""`acnn info`: properties of a shape file, its defects, and a repaired copy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from acnn.cli._commands import Output, command, counted
from acnn.cli._options import one_of


@command
def info(
    out: Output,
    shape: Annotated[Path, typer.Argument(metavar="SHAPE", help="A mesh or point cloud.")],
    repair: Annotated[Path | None, typer.Option(metavar="OUT", help="Write a repaired copy to this file.")] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="mesh|cloud",
            help="Read the file as this kind; default: by its content.",
            autocompletion=one_of("mesh", "cloud"),
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT if it exists, even if it is SHAPE.")] = False,
) -> None:
    """Inspect a file and list its defects; --repair OUT writes a cleaned copy."""
    from acnn.correspondence.match_checks import describe_shape
    from acnn.files import check_outputs, make_folder
    from acnn.runs.cost import announce_reading
    from acnn.shapes.load import load
    from acnn.shapes.save import format_to_write, save

    expected: Literal["mesh", "cloud"] | None = kind  # type: ignore[assignment]  # load checks it
    if repair is not None:
        check_outputs([repair], force=force)
    announce_reading([shape], out.message, "checked")
    loaded = load(shape, kind=expected, repair=repair is not None)
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
            f"  surface           {counted(facts['components'], 'component')}, {_boundary(facts)}{genus}",
            f"  area              {facts['area']:.6g}"
            + ("" if facts["volume"] is None else f", volume {facts['volume']:.6g}"),
            f"  mean edge length  {facts['mean_edge']:.6g}",
            f"  triangles         smallest angle {facts['smallest_angle']:.3g} degrees, "
            f"{facts['obtuse_share']:.1%} obtuse",
        ]
    lines.append(f"  size              {' x '.join(f'{side:.6g}' for side in facts['extent'])}")
    attributes = [name for name in ("colors", "normals", "uv", "texture") if facts.get(f"has_{name}")]
    lines.append(f"  attributes        {', '.join(attributes) or 'none'}")
    for finding in facts["findings"]:
        lines.append(f"  {'repaired' if finding['repaired'] else 'defect':17s} {finding['text']}")
    if not facts["findings"]:
        lines.append("  no defects found")
    if "repaired_to" in facts:
        lost = facts["left_out_by_format"]
        lines.append(
            f"written to {facts['repaired_to']}" + (f"; not supported by the format: {', '.join(lost)}" if lost else "")
        )
    return "\n".join(lines)


def _boundary(facts: dict[str, Any]) -> str:
    """Whether a mesh is open or closed, and why it is not a manifold."""
    loops = facts["boundary_loops"]
    state = f"open, {counted(loops, 'boundary loop')}" if loops else "no boundary"
    if facts["manifold"]:
        return state if loops else "closed"
    defects = []
    if edges := facts["nonmanifold_edges"]:
        defects.append(f"{counted(edges, 'edge')} with more than two faces")
    if vertices := facts["nonmanifold_vertices"]:
        defects.append(f"{counted(vertices, 'vertex', 'vertices')} where fans of faces meet in a point")
    return f"{state}, not a manifold ({', '.join(defects) or 'faces that use a vertex twice'})"
