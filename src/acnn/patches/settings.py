"""`PatchSettings`, the settings of a patch operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from acnn.arguments import check_fields
from acnn.errors import InputError
from acnn.surface.spectra import SpectraSettings
from acnn.surface.surface import REFERENCE_LENGTH
from acnn.types import FloatArray

Kernel = Literal["auto", "rational", "squaring", "spectral", "exact"]
KERNELS = ("auto", "rational", "squaring", "spectral", "exact")

WIDE = 120.0
"""With kernel `auto`, scales above this are kept as eigenpairs where these suffice (`SUFFICIENT`).

On a human of 6,890 vertices a row at t = 60 has about 190 entries, while an error of 1 % would need 600 eigenpairs; at
t = 300 rows are longer than that, and 200 eigenpairs are enough."""

SUFFICIENT = 2e-3
"""Eigenpairs suffice for a scale t where exp(-t lambda) has fallen to this at the last of them.

The L1 error of rows is then about as large, and up to five times as large in the worst row, on humans of 2,500 and
6,890 vertices: as that of the kernel `rational`."""

NEGLIGIBLE = 1e-4
"""Eigenpairs with exp(-t lambda) below this are not stored: a twentieth of `SUFFICIENT`."""


@dataclass(frozen=True)
class PatchSettings:
    """Everything that a patch operator depends on besides the shape.

    Attributes
    ----------
    angles : int
        Number of angles, theta_l = l pi / angles.
    alpha : float
        Conductivity along the kernel's long axis over that across it; 1 is isotropic.
    scales : tuple[float, ...]
        Times t, in normalised units squared.
    kernel : Kernel
        How kernels are computed; `auto` is eigenpairs for scales above 120 where these suffice on the shape, and
        `rational` for all others.
    keep : float
        Least fraction of sum |row| that a stored row holds.
    entries : int
        Store at most this many of a row's largest entries, as the authors' program does; 0 is no limit.
    eigenpairs : int
        Number of eigenpairs of each angle for wide scales, or for the kernel `spectral`.
    smoothing : float
        Radius over which curvature is averaged, in normalised units.

    Raises
    ------
    InputError
        Where a value is out of range.

    Examples
    --------
    >>> from acnn import PatchSettings
    >>> PatchSettings(angles=4, scales=(4, 16)).scales
    (4.0, 16.0)
    """

    angles: int = 16
    alpha: float = 100.0
    scales: tuple[float, ...] = (3.0, 6.0, 12.0, 24.0)
    kernel: Kernel = "auto"
    keep: float = 0.9
    entries: int = 0
    eigenpairs: int = 200
    smoothing: float = 3.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not all(isinstance(t, Real) for t in self.scales):
            raise TypeError(f"PatchSettings: scales must be numbers, not {self.scales}")
        object.__setattr__(self, "scales", tuple(float(t) for t in self.scales))
        if not 1 <= self.angles <= 360:
            raise InputError(f"{self.angles} angles: the number of angles must be between 1 and 360.")
        if not (np.isfinite(self.alpha) and self.alpha >= 1):
            raise InputError(f"alpha = {self.alpha}: it must be at least 1, which is isotropic.")
        if not self.scales or not all(np.isfinite(t) and t > 0 for t in self.scales):
            raise InputError(f"Scales {self.scales}: give one or more positive numbers, such as 3,6,12,24.")
        longest = REFERENCE_LENGTH**2
        if max(self.scales) > longest:
            raise InputError(
                f"Scale {max(self.scales):g} is larger than the shape; the largest allowed is {longest:g}."
            )
        if len(set(self.scales)) != len(self.scales):
            raise InputError(f"Scales {self.scales}: each may be given once.")
        if self.kernel not in KERNELS:
            raise InputError(f"Unknown kernel '{self.kernel}': use one of {', '.join(KERNELS)}.")
        if not 0 < self.keep <= 1:
            raise InputError(f"keep = {self.keep}: the fraction of a row to keep must be above 0 and at most 1.")
        if self.entries < 0:
            raise InputError(f"entries = {self.entries}: give the number of entries of a row, or 0 for no limit.")
        if self.eigenpairs < 1:
            raise InputError(f"{self.eigenpairs} eigenpairs: at least one is needed.")

    @property
    def thetas(self) -> FloatArray:
        """(angles,) angles of the kernels' long axes from v_M, in radians."""
        return np.arange(self.angles) * np.pi / self.angles

    @property
    def spectra(self) -> SpectraSettings:
        """Settings of the eigenproblems that serve the wide scales."""
        return SpectraSettings(self.alpha, self.angles, self.eigenpairs, self.smoothing)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for files and hashes."""
        return {**asdict(self), "scales": list(self.scales)}


def parse_scales(text: str) -> tuple[float, ...]:
    """Scales from text such as `3,6,12,24`.

    Raises
    ------
    InputError
        Where a part is no number.
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"Scales '{text}': give numbers separated by commas, such as 3,6,12,24.") from None


@dataclass(frozen=True)
class GeodesicPatchSettings:
    """Everything that a geodesic patch operator depends on besides the shape.

    The default is as published: a radius of 0.01 where the geodesic diameter is 1. `WIDER` has a radius that is several
    edges of a body of 7,000 vertices.

    Attributes
    ----------
    rings : int
        How many, evenly spaced up to the radius; the scale axis of the operator.
    rays : int
        How many, spread over [0, 2 pi); the angle axis of the operator.
    radius : float
        Of the last ring, in normalised units.
    angular_width : float
        h_a, in squared radians.
    radial_width : float
        h_s, in distances between rings.
    """

    kind: ClassVar[str] = "geodesic"

    rings: int = 5
    rays: int = 16
    radius: float = 2.0
    angular_width: float = 0.01
    radial_width: float = 2.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= self.rings <= 100:
            raise InputError(f"{self.rings} rings: between 1 and 100 make sense.")
        if not 1 <= self.rays <= 360:
            raise InputError(f"{self.rays} rays: between 1 and 360 make sense.")
        if not 0 < self.radius <= REFERENCE_LENGTH:
            raise InputError(f"Radius {self.radius:g}: it lies above 0 and is at most {REFERENCE_LENGTH:g}.")
        for name in ("angular_width", "radial_width"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise InputError(f"{name} = {getattr(self, name)}: it must be a positive number.")

    @property
    def angles(self) -> int:
        """Length of the operator's angle axis."""
        return self.rays

    @property
    def scales(self) -> tuple[float, ...]:
        """Radii of the rings: the operator's scale axis."""
        return tuple(self.radius * (i + 1) / self.rings for i in range(self.rings))

    @property
    def thetas(self) -> FloatArray:
        """(rays,) directions of the rays, in radians."""
        return np.arange(self.rays) * 2.0 * np.pi / self.rays

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for files and hashes."""
        return {"kind": self.kind, **asdict(self)}


PATCH_KINDS: dict[str, type[PatchSettings | GeodesicPatchSettings]] = {
    "anisotropic": PatchSettings,
    "geodesic": GeodesicPatchSettings,
}
"""Settings of every kind of patch operator, by the name of the kind."""


def patch_settings_from_dict(values: Mapping[str, Any]) -> PatchSettings | GeodesicPatchSettings:
    """Settings of a patch operator from plain values, as `as_dict` gives them; without `kind` they are anisotropic.

    Raises
    ------
    InputError
        Where there is no such kind.
    TypeError
        Where a value is missing, unknown or of a wrong type.
    """
    given = dict(values)
    kind = given.pop("kind", "anisotropic")
    if kind not in PATCH_KINDS:
        raise InputError(f"There are no patches of kind '{kind}'; there are {', '.join(PATCH_KINDS)}.")
    return PATCH_KINDS[kind](**given)
