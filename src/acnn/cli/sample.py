"""`acnn sample`: files to try everything on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acnn.cli._commands import Output, command
from acnn.cli._options import Force


@command
def sample(
    out: Output,
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder, created if missing.")] = Path(
        "sample"
    ),
    force: Force = False,
) -> None:
    """Write files to try everything on: humans, a texture, landmarks, labels, a partial shape, a point cloud."""
    from acnn.runs.sample import write_sample

    out.result(write_sample(folder, force=force), human=_summary if out.quiet else _text)


def _summary(facts: dict[str, Any]) -> str:
    return f"{facts['out']}: {len(facts['files'])} files"


def _text(facts: dict[str, Any]) -> str:
    files, folder = facts["files"], Path(facts["out"])
    alone = {name: about for name, about in files.items() if "/" not in name}
    humans = sum(name.endswith(".ply") for name in files if name not in alone)
    width = max(map(len, alone))
    lines = [_summary(facts)]
    lines += [f"  {name:<{width}}  {about}" for name, about in alone.items()]
    lines += [f"  {'shapes/':<{width}}  {humans} humans in one connectivity, to train on, with body parts"]
    lines += [f"Next: acnn match {folder / 'A.ply'} {folder / 'B.obj'} --barycentric --out result"]
    return "\n".join(lines)
