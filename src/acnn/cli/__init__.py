"""The command line: arguments, progress bars, messages and exit codes; everything it does, `import acnn` does too.

A command NAME is the function NAME in `acnn/cli/NAME.py`, made with `@command` from `acnn.cli.app`; a group of commands
is a `typer.Typer` of that name. The module is found by its name and imported when the command is used, so it needs no
registering, and what is slow to import belongs inside the function.
"""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed (also in part), 2 bad input or usage."""
    from acnn.cli.app import run

    return run(arguments)
