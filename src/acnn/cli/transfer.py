"""`acnn transfer`: transfer texture, colours, labels, landmarks, skin weights or the mesh along a map."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, long_command
from acnn.cli._options import Force


@long_command
def transfer(
    out: Output,
    map_file: Annotated[
        Path,
        typer.Argument(
            metavar="MAP",
            help="Result folder of 'acnn match A B', or a map: .npz, .txt (0-based), .vts or .map (1-based).",
        ),
    ],
    b: Annotated[Path, typer.Option("--from", metavar="B", help="Source shape.")],
    a: Annotated[Path, typer.Option("--to", metavar="A", help="Target shape.")],
    file: Annotated[Path, typer.Option("--out", metavar="FILE", help="Output file.")],
    texture: Annotated[bool, typer.Option("--texture", help="Texture of B on A (OBJ, PLY, GLB).")] = False,
    colors: Annotated[bool, typer.Option("--colors", help="Vertex colours of B on A.")] = False,
    labels: Annotated[
        Path | None, typer.Option(metavar="F", help="Values at the vertices of B: text, one per line, or .npy.")
    ] = None,
    landmarks: Annotated[
        Path | None, typer.Option(metavar="F", help="Vertices of B, 'name index' or 'index' per line, 0-based.")
    ] = None,
    skin: Annotated[bool, typer.Option("--skin", help="Skeleton and skin weights of B, a GLB, on A (GLB).")] = False,
    map_itself: Annotated[
        bool, typer.Option("--map", help="The map itself: .txt (0-based), .vts or .map (1-based), .npz.")
    ] = False,
    shape: Annotated[bool, typer.Option("--shape", help="Mesh of B, moved onto the surface of A.")] = False,
    force: Force = False,
) -> None:
    """Transfer attributes of shape B to shape A along a map of A to B."""
    from acnn.errors import InputError
    from acnn.runs.transfer import What, transfer_files

    asked: dict[What, bool] = {
        "texture": texture,
        "colors": colors,
        "labels": labels is not None,
        "landmarks": landmarks is not None,
        "skin": skin,
        "shape": shape,
        "map": map_itself,
    }
    chosen = [what for what, yes in asked.items() if yes]
    if len(chosen) != 1:
        given = " and ".join(f"--{what}" for what in chosen) + " are given" if chosen else "none is given"
        raise InputError(f"Choose what to transfer with one of {', '.join(f'--{what}' for what in asked)}; {given}.")
    with out.progress("transferring"):
        report = transfer_files(map_file, b, a, file, chosen[0], labels or landmarks, force=force)
    out.result(report, human=_text)
    damage = _damage(report)
    if damage:
        out.failed(
            str(file),
            f"written, but {damage}: the map is wrong or too coarse there. Inspect it before use; "
            "'acnn match --barycentric' gives a finer map.",
        )


def _damage(facts: Mapping[str, Any]) -> str:
    """Describe the damaged faces of a moved mesh; empty if there are none."""
    counts = {kind: facts.get(f"{kind}_faces", 0) for kind in ("collapsed", "inverted")}
    return ", ".join(f"{count} face{'s are' if count > 1 else ' is'} {kind}" for kind, count in counts.items() if count)


def _text(facts: dict[str, Any]) -> str:
    if "landmarks" in facts:
        count = len(facts["landmarks"])
        lines = [f"{facts['out']}: {count} landmark{'s' if count != 1 else ''}"]
    else:
        lines = [f"{facts['out']}: {facts['what']} for {facts.get('rows', facts['vertices'])} vertices"]
    if "joints" in facts:
        lines.append(f"{facts['joints']} joints, moved with the surface; at most 4 at each vertex")
    if facts["unmatched"]:
        lines.append(f"{facts['unmatched']} vertices of A have no match")
    if "largest_stretch" in facts:
        lines.append(
            f"{_damage(facts) or 'no face is collapsed or inverted'}; largest edge stretch "
            f"{facts['largest_stretch']:.1f}"
        )
    if facts.get("seam_faces"):
        lines.append(
            f"{facts['seam_faces']} faces cross a seam of the texture and got separate squares in the texture image"
        )
    if facts.get("lost"):
        lines.append(f"{facts['lost']} landmarks of B were removed on loading and have no match (-1)")
    lines += [f"note: {note}" for note in facts["notes"]]
    if facts.get("left_out"):
        lines.append(f"not supported by this format: {', '.join(facts['left_out'])}")
    return "\n".join(lines)
