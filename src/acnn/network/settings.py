"""Settings of spectral layers, apart from the layers, so that they can be read without loading torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from acnn.errors import InputError


@dataclass(frozen=True)
class SpectralSettings:
    """How the spectral layers of a network see the spectrum.

    Attributes
    ----------
    eigenpairs : int
        How many eigenpairs the layers use.
    splines : int
        Number of cubic B-splines that responses are made of; 0 learns one free coefficient for each eigenpair.
    over : {"index", "eigenvalue"}
        What responses are functions of. The index is the paper's choice; eigenvalues can be compared between shapes.
    upper : float
        Largest eigenvalue that the splines cover, in normalised units; 0 takes the 99th percentile of the training
        shapes.
    skip : bool
        Add a pointwise linear map of the input to every SC layer: a smooth filter alone cannot tell neighbours apart.
    """

    eigenpairs: int = 100
    splines: int = 20
    over: Literal["index", "eigenvalue"] = "index"
    upper: float = 0.0
    skip: bool = False

    def __post_init__(self) -> None:
        if self.over not in ("index", "eigenvalue"):
            raise InputError(f"Spectral filters over '{self.over}': use 'index' or 'eigenvalue'.")
        if self.eigenpairs < 2 or self.splines < 0 or not self.upper >= 0:
            raise InputError(f"{self}: at least 2 eigenpairs are needed, and splines and upper cannot be negative.")
        if self.splines == 0 and self.over == "eigenvalue":
            raise InputError("Free coefficients belong to the index of an eigenpair: set splines, or over = 'index'.")

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @property
    def size(self) -> int:
        """Numbers that describe one response."""
        return self.splines or self.eigenpairs
