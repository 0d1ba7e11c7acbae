"""Options that several commands share, and values of options that the shell completes (`acnn --install-completion`).

Values are found without slow imports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from acnn.errors import InputError

PACKAGE = Path(__file__).parents[1]
TRAINED = ("osd", "add", "rf", "gcnn", "scnn", "lscnn", "acnn")
PAIRWISE = ("descriptors", "pfm", "bim")
REFINEMENTS = ("none", "fm", "zoomout", "pfm", "auto")
KERNELS = ("auto", "rational", "squaring", "spectral", "exact")


def presets(incomplete: str) -> list[str]:
    """Names of presets that begin like this."""
    return _beginning((path.stem for path in (PACKAGE / "training" / "presets").glob("*.toml")), incomplete)


def models(incomplete: str) -> list[str]:
    """Names of pretrained models, and run folders, that begin like this."""
    shipped = (path.parent.name for path in (PACKAGE / "methods" / "models").glob("*/model.safetensors"))
    return _beginning([*shipped, *_folders(incomplete)], incomplete)


def runs(incomplete: str) -> list[str]:
    """Folders that begin like this."""
    return _beginning(_folders(incomplete), incomplete)


def datasets(incomplete: str) -> list[str]:
    """Names of datasets, and folders, that begin like this."""
    return _beginning(["humans", "faust", "faust_r", *_folders(incomplete)], incomplete)


def methods(incomplete: str) -> list[str]:
    """Names of methods for `acnn match` that begin like this."""
    return _beginning(["auto", *PAIRWISE, *TRAINED], incomplete)


def trained_methods(incomplete: str) -> list[str]:
    """Names of methods for `acnn train` that begin like this."""
    return _beginning(TRAINED, incomplete)


def refinements(incomplete: str) -> list[str]:
    """Names of refinements that begin like this."""
    return _beginning(REFINEMENTS, incomplete)


def kernels(incomplete: str) -> list[str]:
    """Names of kernels that begin like this."""
    return _beginning(KERNELS, incomplete)


def one_of(*values: str) -> Callable[[str], list[str]]:
    """Completion of an option that takes one of a few values."""
    return lambda incomplete: _beginning(values, incomplete)


Changes = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a setting.")]
"""Of every command that takes settings; `settings_of` parses its values."""

Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files (never an input).")]
"""Of every command that writes files; see `acnn.files.check_outputs`."""

Refine = Annotated[
    str, typer.Option(metavar="none|fm|zoomout|pfm|auto", help="How maps are refined.", autocompletion=refinements)
]
WorkingSize = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Match copies of at most N vertices; 0: the shapes themselves. Default: 2500, or the model's.",
    ),
]
Workers = Annotated[int, typer.Option(help="Number of processes that prepare shapes.")]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Distribute over the workers of a Dask scheduler.")
]
Seed = Annotated[int, typer.Option(metavar="K", help="Random seed.")]
Up = Annotated[str, typer.Option(metavar="x|y|z", help="Up axis of the shapes.", autocompletion=one_of("x", "y", "z"))]

RunFolder = Annotated[Path, typer.Option("--out", metavar="RUN", help="Run folder to write.")]
TrainingSeed = Annotated[int | None, typer.Option(help="Random seed.")]
"""By default that of the settings."""


def settings_of(changes: Sequence[str] | None) -> dict[str, str]:
    """Parse the values of `--set`.

    Parameters
    ----------
    changes : sequence of str or None
        Texts `KEY=VALUE`.

    Returns
    -------
    dict of str to str
        Values by key; a later one replaces an earlier one.

    Raises
    ------
    InputError
        If a text is not `KEY=VALUE`.
    """
    settings = {}
    for change in changes or []:
        key, sign, value = change.partition("=")
        if not sign:
            raise InputError(f"--set {change}: write KEY=VALUE, such as --set learning_rate=0.002.")
        settings[key] = value
    return settings


def _folders(incomplete: str) -> list[str]:
    """Folders below the one that is being typed."""
    parent, sign, _ = incomplete.rpartition("/")
    try:
        return [f"{parent}{sign}{path.name}" for path in Path(parent + sign or ".").iterdir() if path.is_dir()]
    except OSError:
        return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})
