"""Command line: arguments, progress display, messages and exit codes. The work itself is done by `acnn.runs`.

A command NAME is the function NAME in `acnn/cli/NAME.py`, decorated with `@command` from `acnn.cli._commands`; a group
of commands is a `typer.Typer` of that name. Modules are found by name and imported when the command is used, so
commands need not be registered, and slow imports belong inside the function.
"""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str or None
        The words after `acnn`; None takes those of the process.

    Returns
    -------
    int
        Exit code: 0 success, 1 failure or partial failure, 2 invalid input or usage.
    """
    from acnn.cli._program import run

    return run(arguments)
