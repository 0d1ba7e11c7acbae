"""Values of options that the shell completes (`acnn --install-completion`), found without slow imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
TRAINED = ("osd", "add", "rf", "gcnn", "scnn", "lscnn", "acnn")
PAIRWISE = ("descriptors", "pfm", "bim")
REFINEMENTS = ("none", "fm", "zoomout", "pfm", "auto")
KERNELS = ("auto", "rational", "squaring", "spectral", "exact")

Completion = Callable[[str], list[str]]


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


def _folders(incomplete: str) -> list[str]:
    """Folders below the one that is being typed."""
    parent, sign, _ = incomplete.rpartition("/")
    try:
        return [f"{parent}{sign}{path.name}" for path in Path(parent + sign or ".").iterdir() if path.is_dir()]
    except OSError:
        return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})
