"""`acnn demo`: the complete workflow on the built-in humans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acnn.cli._commands import Output, long_command
from acnn.cli._options import Changes, settings_of

if TYPE_CHECKING:  # slow to import
    from acnn.shapes.mesh import Mesh
    from acnn.viewer.match_page import FileMatch


@long_command
def demo(
    out: Output,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Output folder; must be empty or missing.")
    ] = Path("demo"),
    partial: Annotated[bool, typer.Option("--partial", help="Match partial humans, with cuts and holes.")] = False,
    changes: Changes = None,
    train_shapes: Annotated[int | None, typer.Option(help="Train on fewer shapes, for a quick trial.")] = None,
    test_shapes: Annotated[int, typer.Option(help="Number of shapes of unseen subjects to match.")] = 8,
) -> None:
    """Match two built-in humans with the pretrained model, then train, match and evaluate from scratch.

    The network is trained on the bundled human meshes for a fixed number of steps, matches unseen subjects, and the
    results are rendered.
    """
    from acnn.runs.demo import run_demo, show_demo, show_first_match
    from acnn.training.config import preset_config

    config = preset_config("quick-partial" if partial else "quick").with_changes(settings_of(changes))

    def show_first(match: FileMatch, textured: Mesh, where: Path) -> None:
        page = show_first_match(match, textured, where)
        out.message(f"{page}: two built-in humans, matched by the pretrained model. Open it in a browser.")
        out.message(
            f"{where / 'texture.png'}: the texture of one, transferred to the other ({where / 'a_textured.glb'})."
        )

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
    kinds = {"remeshed": ("unseen subjects", "  remeshed"), "holes": ("cuts", "holes")}
    second = next(kind for kind in kinds if kind in facts)
    for kind, part in zip(kinds[second], (facts, facts[second]), strict=True):
        for name, row in ((kind, part), ("    refined", part["refined"])):
            lines.append(f"{name:20s} {row['exact']:7.1%}   {row['mean_error_x100']:11.2f}   {row['coverage']:8.1%}")
    lines += [
        f"trained on {facts['train_shapes']} shapes in {facts['seconds_training']:.0f} s "
        f"(prepared in {facts['seconds_preparing']:.0f} s); {facts['seconds']:.0f} s in total, first result after "
        f"{facts['first_result_seconds']:.0f} s",
        f"errors divided by {facts['normalisation']} of the reference",
        "results: " + ", ".join(Path(file).name for file in facts["files"]) + f" in {folder}",
    ]
    return "\n".join(lines)
