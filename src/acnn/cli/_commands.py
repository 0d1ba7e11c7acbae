"""Infrastructure of all commands: flags that all of them have, output, errors and exit codes.

A command is written like this, in `acnn/cli/area.py`::

    @command
    def area(out: Output, shape: Annotated[Path, typer.Argument(help="A mesh.")]) -> None:
        \"\"\"Print the area of a mesh.\"\"\"
        from acnn.runs.area import area_of_file  # slow imports inside

        out.message("reading")                    # standard error, unless --quiet
        out.result(area_of_file(shape), human=lambda facts: f"{facts['area']:.6g}")
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acnn.errors import InputError, TrainingError
from acnn.progress import Progress
from acnn.reports import Report

if TYPE_CHECKING:
    from acnn.cli._display import Display
    from acnn.training.prepare import Failure

LOGGER = logging.getLogger(__name__)

FAILED, BAD_INPUT, INTERRUPTED, TERMINATED = 1, 2, 130, 143
COMPILING = "compiling (first run only, about half a minute)"


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


class Terminated(KeyboardInterrupt):
    """SIGTERM was received: handled like an interruption, so that child processes end and temporary files go."""


def stopped(stop: KeyboardInterrupt) -> tuple[str, int]:
    """Return the message and the exit code of an interruption."""
    return ("terminated", TERMINATED) if isinstance(stop, Terminated) else ("interrupted", INTERRUPTED)


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
            error, code = stopped(stop)
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
