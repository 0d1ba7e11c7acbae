"""Infrastructure of all commands: flags that all of them have, output, exit codes, and how commands are found.

A command is written like this, in `acnn/cli/area.py`::

    @command
    def area(out: Output, shape: Annotated[Path, typer.Argument(help="A mesh.")]) -> None:
        \"\"\"Print the area of a mesh.\"\"\"
        from acnn.runs.area import area_of_file  # slow imports inside

        out.message("reading")                    # standard error, unless --quiet
        out.result(area_of_file(shape), human=lambda facts: f"{facts['area']:.6g}")
"""

from __future__ import annotations

import atexit
import gc
import importlib
import inspect
import json
import logging
import os
import pkgutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from acnn.errors import InputError, TrainingError
from acnn.progress import Progress
from acnn.reports import Report

if TYPE_CHECKING:
    from acnn.cli._display import Display
    from acnn.training.prepare import Failure

LOGGER = logging.getLogger(__name__)

COLLECTED = 50_000
"""Number of new objects after which Python looks for unreachable cycles; 700 unless set."""

FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 1, 2, 130, 143
COMPILING = "compiling (first run only, about half a minute)"
HELP = ["-h", "--help"]
# The order in which a newcomer meets the commands; any further ones follow by name.
ORDER = (
    *("sample", "demo", "info", "patches", "data", "prepare", "train", "adapt", "evaluate"),
    *("match", "app", "transfer", "register", "statistics", "report", "view", "figure", "methods", "bench", "doctor"),
    *("cache", "help"),
)

BARE = {("evaluate", "--pairs"): "all", ("evaluate", "--rotate"): "0"}
"""Options that may stand without a value, and the value that they then have."""


@dataclass
class Output:
    """Output of a command: one result on standard output, everything else on standard error.

    Attributes
    ----------
    json : bool
        Print the result as one JSON object, and nothing else on standard output.
    quiet : bool
        Show no messages and no progress display; errors and the result are still shown.
    cache : bool
        False with `--no-cache`.
    failures : list of dict
        Items that failed, as `{"item", "why"}`.
    """

    json: bool = False
    quiet: bool = False
    cache: bool = True
    failures: list[dict[str, str]] = field(default_factory=list)
    _display: Display | None = None
    _result: dict[str, Any] | None = None
    _human: Callable[[dict[str, Any]], str] | None = None

    def message(self, text: str) -> None:
        """Show a message on standard error, unless `--quiet` was given."""
        if not self.quiet:
            self.show(text)

    def result(
        self,
        facts: Mapping[str, Any],
        human: Callable[[dict[str, Any]], str] | None = None,
        failures: Iterable[Failure] = (),
    ) -> None:
        """Set the result of the command.

        Parameters
        ----------
        facts : mapping of str to Any
            Printed as JSON with `--json`: a dictionary or a report.
        human : callable or None
            Formats the facts as the text that is printed otherwise; None prints indented JSON.
        failures : iterable of Failure
            Items that failed while the others were done, see `failed`.
        """
        for failure in failures:
            self.failed(failure.item, failure.why)
        self._result, self._human = facts.as_dict() if isinstance(facts, Report) else dict(facts), human

    def failed(self, item: str, why: str) -> None:
        """Record that one of several items failed while the others continue; the exit code becomes 1."""
        self.failures.append({"item": item, "why": why})
        self.show(f"failed: {item}: {why}")

    @contextmanager
    def progress(self, stage: str | None = None) -> Iterator[Progress]:
        """Open the progress display of the command for the duration of the `with` block.

        Within the block, a further call begins a new stage of the same display.

        Parameters
        ----------
        stage : str or None
            Name of the first stage. Functions that begin their own stages (`acnn.progress.begin_stage`) need none.

        Yields
        ------
        Progress
            Callback for the work; it shows nothing with `--quiet` and `--json`.
        """
        if self.quiet or self.json:
            if stage is not None:
                LOGGER.info("stage: %s", stage)
            yield _LoggedStages()
            return
        if self._display is not None:
            yield self._display if stage is None else self._display.stage(stage)
            return
        from acnn.cli._display import open_display

        with open_display() as display:
            self._display = display
            from acnn.compilation import on_compilation  # numba takes a second, during which the time advances

            compiling = on_compilation(
                lambda: self.message(COMPILING),
                pause=lambda: display.compiling(True),
                go_on=lambda: display.compiling(False),
            )
            try:
                with compiling:
                    yield display if stage is None else display.stage(stage)
            finally:
                self._display = None

    def show(self, text: str) -> None:
        """Show a line on standard error, above the progress display where there is one."""
        if self._display is not None:
            self._display.message(text)
        else:
            print(text, file=sys.stderr, flush=True)


def counted(count: int, one: str, several: str | None = None) -> str:
    """A number with its noun: ``1 shape``, ``2 shapes``, ``2 vertices``."""
    return f"{count} {one if count == 1 else several or one + 's'}"


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Turn a function into a command and add the options that all commands share.

    Parameters
    ----------
    function : callable
        Takes `out: Output` first; its other parameters become arguments and options.

    Returns
    -------
    callable
        For `typer`; it raises `typer.Exit` with a non-zero exit code.
    """
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    shared = [
        _flag("as_json", "--json", "Print one JSON object on standard output; everything else goes to standard error."),
        _flag("no_cache", "--no-cache", "Neither read nor write the cache."),
        _flag("quiet", "--quiet", "Show no messages and no progress display."),
        _flag("verbose", "--verbose", "Show log messages on standard error."),
    ]

    def invoke(as_json: bool, no_cache: bool, quiet: bool, verbose: bool, **arguments: Any) -> None:
        out = Output(json=as_json, quiet=quiet, cache=not no_cache)
        with _log_shown(out, verbose):
            code = _run_command(function, out, arguments)
        if code:
            raise typer.Exit(code)

    keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own + shared]
    invoke.__signature__ = inspect.Signature(keyword)  # type: ignore[attr-defined]
    invoke.__annotations__ = {p.name: p.annotation for p in keyword}
    invoke.__name__, invoke.__doc__, invoke.__module__ = function.__name__, function.__doc__, function.__module__
    return invoke


def long_command(function: Callable[..., None]) -> Callable[..., None]:
    """As `command`, with the progress display open from the beginning: imports alone take seconds."""

    @wraps(function)
    def displayed(out: Output, **arguments: Any) -> None:
        with out.progress():
            function(out, **arguments)

    return command(displayed)


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


class Terminated(KeyboardInterrupt):
    """SIGTERM was received: handled like an interruption, so that child processes end and temporary files go."""


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


def _stopped(stop: KeyboardInterrupt) -> tuple[str, int]:
    """Return the message and the exit code of an interruption."""
    return ("terminated", TERMINATED) if isinstance(stop, Terminated) else ("interrupted", INTERRUPTED)


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
        message, code = _stopped(stop)
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


def _flag(name: str, option: str, text: str) -> inspect.Parameter:
    annotation = Annotated[bool, typer.Option(option, help=text, rich_help_panel="All commands")]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)


@contextmanager
def _log_shown(out: Output, verbose: bool) -> Iterator[None]:
    """With `--verbose`, show the messages of the `acnn` loggers from INFO on, and the duration at the end."""
    if not verbose:
        yield
        return
    from acnn._version import __version__
    from acnn.cache import cache_folder

    handler = _LogLines(out)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    package = logging.getLogger("acnn")
    level = package.level
    package.addHandler(handler)
    package.setLevel(logging.INFO)
    started = time.monotonic()
    try:
        LOGGER.info("acnn %s, cache: %s", __version__, cache_folder() if out.cache else "not used")
        yield
        LOGGER.info("finished in %.1f s", time.monotonic() - started)
    finally:
        package.setLevel(level)
        package.removeHandler(handler)


class _LoggedStages:
    """Progress without a display: the stages are logged."""

    def __call__(self, done: int, total: int) -> None:
        pass

    def stage(self, name: str) -> _LoggedStages:
        LOGGER.info("stage: %s", name)
        return self


class _LogLines(logging.Handler):
    """Shows log records above the progress display; not affected by `--quiet`, which concerns other messages."""

    def __init__(self, out: Output) -> None:
        super().__init__()
        self.out = out

    def emit(self, record: logging.LogRecord) -> None:
        self.out.show(self.format(record))


def _run_command(function: Callable[..., None], out: Output, arguments: dict[str, Any]) -> int:
    """Run a command, show its result or its error, and return the exit code."""
    error: str | None = None
    code = 0
    with _stdout_kept_clean(out.json), _cache_left_alone(not out.cache):
        try:
            function(out, **arguments)
        except InputError as problem:
            error, code = str(problem), BAD_INPUT
        except KeyboardInterrupt as stop:
            error, code = _stopped(stop)
        except MemoryError:
            error, code = "out of memory", FAILED
        except BrokenPipeError:
            raise
        except (OSError, TrainingError) as problem:
            error, code = str(problem), FAILED
        except Exception as problem:
            if os.environ.get("ACNN_DEBUG"):
                raise
            kind = type(problem).__name__
            error, code = (
                f"{kind}: {problem} (a bug in acnn: set ACNN_DEBUG=1 for the traceback, and please report it)",
                FAILED,
            )
    if error is not None:
        print(error if code in (INTERRUPTED, TERMINATED) else f"error: {error}", file=sys.stderr, flush=True)
    facts = dict(out._result or {})
    if error is not None:
        facts["error"] = error
    if out.failures:
        facts["failed"] = out.failures
        code = code or FAILED
    if out.json:
        print(json.dumps(_plain(facts), allow_nan=False))
    elif out._result is not None and error is None:
        print(out._human(out._result) if out._human else json.dumps(_plain(out._result), indent=2))
    return code


@contextmanager
def _cache_left_alone(active: bool) -> Iterator[None]:
    """Give this process and its children an empty temporary cache folder, which is deleted afterwards."""
    if not active:
        yield
        return
    before = os.environ.get("ACNN_CACHE")
    with tempfile.TemporaryDirectory(prefix="acnn-") as folder:
        os.environ["ACNN_CACHE"] = folder
        try:
            yield
        finally:
            os.environ.pop("ACNN_CACHE")
            if before is not None:
                os.environ["ACNN_CACHE"] = before


@contextmanager
def _stdout_kept_clean(active: bool) -> Iterator[None]:
    """While active, redirect what libraries print, in Python or in C, to standard error."""
    if not active:
        yield
        return
    if sys.stdout is not None:
        sys.stdout.flush()
    python_stdout = sys.stdout
    try:
        real = os.dup(1) if python_stdout.fileno() == 1 else None
    except (OSError, ValueError, AttributeError):  # not a file: captured by a test
        real = None
    sys.stdout = sys.stderr
    if real is not None:
        os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout = python_stdout
        if real is not None:
            os.dup2(real, 1)
            os.close(real)


def _plain(value: Any) -> Any:
    """Convert a value to types of JSON; numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and numbers of numpy and torch
        return _plain(value.tolist())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
