"""`acnn app`: a local page on which two shapes are dropped, matched and looked at."""

from __future__ import annotations

from typing import Annotated

import typer

from acnn.cli._commands import Output, command


@command
def app(
    out: Output,
    port: Annotated[int | None, typer.Option(help="Port; default: 8090, or any free one.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Match two shapes on a page in the browser, without typing commands. Stop with Ctrl-C.

    Listens on this machine only; the address contains a token without which nothing is answered. Uploaded files and
    results are deleted at the end.
    """
    import time
    import webbrowser

    from acnn.runs.app import serve_app

    with serve_app(port) as address:
        out.message(f"Open {address} in a browser. Press Ctrl-C to stop.")
        if browser:
            webbrowser.open(address)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            out.result({"address": address}, human=lambda facts: "The application is closed.")
