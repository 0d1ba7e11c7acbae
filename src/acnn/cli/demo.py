"""`acnn demo`: the main job on the built-in humans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acnn.cli.app import Changes, Output, command, settings_of

if TYPE_CHECKING:  # these take a while to load
    from acnn.shapes.mesh import Mesh
    from acnn.viewer.match_page import FileMatch


@command
def demo(
    out: Output,
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where everything goes.")] = Path("demo"),
    partial: Annotated[bool, typer.Option("--partial", help="Match parts of people: cuts and holes.")] = False,
    changes: Changes = None,
    train_shapes: Annotated[int | None, typer.Option(help="Learn from fewer shapes, for a quick try.")] = None,
    test_shapes: Annotated[int, typer.Option(help="Shapes of unseen people to match.")] = 12,
) -> None:
    """First the pretrained model on two built-in humans, then the whole job: prepare, train, match, evaluate, draw.

    The network is trained on some of the built-in humans, for a fixed number of steps, and matches others.
    """
    from acnn.runs.demo import run_demo, show_demo, show_first_match
    from acnn.training.config import preset_config

    config = preset_config("quick-partial" if partial else "quick").with_changes(settings_of(changes))

    def show_first(match: FileMatch, textured: Mesh, where: Path) -> None:
        page = show_first_match(match, textured, where)
        out.say(f"{page}: two built-in humans, matched by the pretrained model. Open it in a browser.")
        out.say(f"{where / 'texture.png'}: the texture of one, transferred to the other ({where / 'a_textured.glb'}).")

    with out.progress() as progress:
        facts = run_demo(
            folder,
            partial=partial,
            config=config,
            train_shapes=train_shapes,
            test_shapes=test_shapes,
            progress=progress,
            show_first=show_first,
            draw=show_demo,
        )
    out.result(facts, human=lambda figures: _text(figures, folder))


def _text(facts: dict[str, Any], folder: Path) -> str:
    lines = ["                       exact   error x 100   coverage"]
    kinds = {"remeshed": ("unseen people", "  remeshed"), "holes": ("parts with cuts", "parts with holes")}
    second = next(kind for kind in kinds if kind in facts)
    for kind, part in zip(kinds[second], (facts, facts[second]), strict=True):
        for name, row in ((kind, part), ("    refined", part["refined"])):
            lines.append(f"{name:20s} {row['exact']:7.1%}   {row['mean_error_x100']:11.2f}   {row['coverage']:8.1%}")
    lines += [
        f"learned from {facts['train_shapes']} shapes in {facts['seconds_training']:.0f} s "
        f"(prepared in {facts['seconds_preparing']:.0f} s); {facts['seconds']:.0f} s in all, the first result after "
        f"{facts['first_result_seconds']:.0f} s",
        f"errors over {facts['normalisation']} of the reference",
        "to look at: " + ", ".join(Path(file).name for file in facts["files"]) + f" in {folder}",
    ]
    return "\n".join(lines)
