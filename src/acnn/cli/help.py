"""`acnn help`: the commands, or the options of one."""

from __future__ import annotations

import contextlib
import io
from typing import Annotated

import typer

from acnn.cli._commands import Output, command
from acnn.cli._program import show_help


@command
def help(
    out: Output,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="A command, such as 'match' or 'data humans'.")
    ] = None,
) -> None:
    """List the commands, or the arguments and options of one."""
    if not out.json:
        show_help(words or [])
        return
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        show_help(words or [])
    out.result({"command": " ".join(["acnn", *(words or [])]), "help": text.getvalue()})
