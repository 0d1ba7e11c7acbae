"""The program `acnn`: how its commands are found, parsed and run as a process.

Modules of commands are imported when used.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from acnn.cli._commands import BAD_INPUT, FAILED, Terminated, stopped
from acnn.errors import InputError

HELP = ["-h", "--help"]

# The order in which a newcomer meets the commands; any further ones follow by name.
ORDER = (
    *("sample", "demo", "info", "patches", "data", "prepare", "train", "adapt", "evaluate"),
    *("match", "app", "transfer", "register", "statistics", "report", "view", "figure", "methods", "bench", "doctor"),
    *("cache", "help"),
)

BARE = {("evaluate", "--pairs"): "all", ("evaluate", "--rotate"): "0"}
"""Options that may stand without a value, and the value that they then have."""

COLLECTED = 50_000
"""Number of new objects after which Python looks for unreachable cycles; 700 unless set."""


class Commands(TyperGroup):
    """The commands, one for each module of `acnn.cli`, imported when used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, without importing them."""
        package = importlib.import_module("acnn.cli")
        names = {m.name for m in pkgutil.iter_modules(package.__path__) if m.name[0] != "_"}
        return [name for name in ORDER if name in names] + sorted(names - set(ORDER))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the words begin with; for a misspelt one, the error names what is close to it."""
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command '{args[0]}'.{_suggestion(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name, or None if there is none."""
        if cmd_name not in self.list_commands(ctx):
            return None
        item = getattr(importlib.import_module(f"acnn.cli.{cmd_name}"), cmd_name)
        if not isinstance(item, typer.Typer):
            single = typer.Typer(add_completion=False)
            single.command(name=cmd_name)(item)
            item = single
        parsed = typer.main.get_command(item)
        parsed.name = cmd_name
        return _flags_without_type(parsed)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": HELP},  # of all commands below as well
)


def _show_version(asked: bool) -> None:
    if asked:
        from acnn._version import __version__

        print(f"acnn {__version__}")
        raise typer.Exit


@app.callback(help="Dense correspondence between deformable 3D shapes.")
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def show_help(words: Sequence[str]) -> None:
    """Print the help of a command, or of the program for no words.

    Raises
    ------
    InputError
        Where there is no such command.
    """
    command = _flags_without_type(typer.main.get_command(app))
    context = typer.Context(command, info_name="acnn", help_option_names=HELP)
    for word in words:
        names = command.list_commands(context) if hasattr(command, "list_commands") else []
        if word not in names:
            raise InputError(f"There is no command '{context.command_path} {word}'.{_suggestion(word, names)}")
        command = command.get_command(context, word)
        context = typer.Context(command, parent=context, info_name=word)
    if text := command.get_help(context):  # empty where it has been printed in colours
        print(text)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; see `acnn.cli.main`."""
    return _run_program(app, "acnn", arguments)


def run_alone(function: Callable[..., None], arguments: Sequence[str] | None = None) -> int:
    """Run one command as a separate program, such as an experiment, and return its exit code."""
    settings = {"help_option_names": HELP}
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False, context_settings=settings)
    program.command()(function)
    return _run_program(program, os.path.basename(sys.argv[0]), arguments)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Raise `Terminated` in the main thread on SIGTERM, unless the calling program handles the signal itself."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not ours:
        yield
        return

    def terminate(number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt the cleanup
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run_program(program: typer.Typer, name: str, arguments: Sequence[str] | None) -> int:
    if arguments is None:  # a process of its own
        _collect_seldom()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _terminated_as_interrupted():
            code = _parse_and_run(program, name, arguments)
        if sys.stdout is not None:  # None if it was closed
            sys.stdout.flush()
        return code
    except KeyboardInterrupt as stop:
        message, code = stopped(stop)
        print(message, file=sys.stderr)
        return code
    except OSError as error:
        # Commands report their own errors, so this is standard output that cannot be written. If its reader is gone
        # (a closed pipe), no message is needed. Redirected, because Python flushes again at exit and would fail again.
        if not isinstance(error, BrokenPipeError):
            print(f"error: standard output cannot be written ({error.strerror}).", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED


def _collect_seldom() -> None:
    """Look for unreachable cycles seldom while modules are imported, and not at all when the process ends.

    Of a match of ten seconds, they are a whole one: a few hundred thousand objects of the libraries are looked through.
    """
    gc.set_threshold(COLLECTED)
    atexit.register(gc.freeze)


def _parse_and_run(program: typer.Typer, name: str, arguments: list[str]) -> int:
    try:
        main = _flags_without_type(typer.main.get_command(program)).main
        code = main(args=_with_bare_values(arguments), prog_name=name, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except Exception as error:
        # Usage errors come from typer, or from click in older versions: recognised by their method.
        if not hasattr(error, "format_message"):
            raise
        message = str(error.format_message())
        context = getattr(error, "ctx", None)
        if not message:  # no command was given, and typer has printed the help
            return BAD_INPUT
        message += "" if message.endswith((".", "?", "!")) else "."
        hint = f" Try '{context.command_path} --help'." if context is not None else ""
        print(f"error: {message}{hint}", file=sys.stderr)
        if "--json" in arguments:
            print(json.dumps({"error": message}))
        return BAD_INPUT


def _with_bare_values(arguments: list[str]) -> list[str]:
    """The arguments, with the values of options of `BARE` that are last or followed by another option."""
    completed = []
    for argument, following in zip(arguments, [*arguments, "--"][1:], strict=True):
        completed.append(argument)
        if following.startswith("-") and (value := BARE.get((arguments[0], argument))) is not None:
            completed.append(value)
    return completed


def _suggestion(word: str, names: Sequence[str]) -> str:
    """A sentence on what may have been meant; empty if that is unknown."""
    if os.path.isfile(word):
        return f" To match shapes: acnn match {word} OTHER."
    close = get_close_matches(word, names, 3)
    return f" Did you mean {' or '.join(repr(name) for name in close)}?" if close else ""


def _flags_without_type(command: Any) -> Any:
    """Return the command with an empty metavar for flags: they take no value, but typer would print <bool>."""
    # The help option is made here, for good, and so needs its names.
    for option in [*command.params, command.get_help_option(typer.Context(command, help_option_names=HELP))]:
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        _flags_without_type(inner)
    return command
