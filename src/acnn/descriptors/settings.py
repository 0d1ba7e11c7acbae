"""The settings of the descriptors of a shape, `DescriptorSettings`, and `describe_surface`, which computes them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from acnn.descriptors.shot import shot
from acnn.descriptors.spectral import hks, wks
from acnn.descriptors.valences import valence_descriptors
from acnn.errors import InputError
from acnn.surface.spectra import surface_eigenpairs
from acnn.surface.surface import Surface

KINDS = ("shot", "hks", "wks", "valences", "file")

OLD_KINDS = {"rings": "valences"}
"""Earlier names of kinds, which runs and settings files may still contain."""


@dataclass(frozen=True)
class DescriptorSettings:
    """Everything that the descriptors of a shape depend on besides the shape.

    Attributes
    ----------
    kinds : tuple[str, ...]
        Kinds of descriptors, side by side in this order: `shot`, `hks`, `wks`, `valences` (the valence descriptor, for
        shapes that share a triangulation; earlier named `rings`), or `file`, the user's own array NAME.npy beside the
        shape NAME.ply, with one row for every vertex in the file.
    shot_radii : tuple[float, ...]
        Radii of SHOT in normalised units; each adds 544 columns.
    area_weighted : bool
    signs : {'moment', 'majority'}
    upright : bool
        Options of SHOT, see `acnn.descriptors.shot.shot`.
    hks_count, wks_count : int
        Number of columns of HKS and of WKS.
    eigenpairs : int
        Number of eigenpairs that HKS and WKS use.

    Raises
    ------
    InputError
        Where a kind is unknown or a value is out of range.
    """

    kinds: tuple[str, ...] = ("shot",)
    shot_radii: tuple[float, ...] = (12.0,)
    area_weighted: bool = True
    signs: Literal["moment", "majority"] = "moment"
    upright: bool = False
    hks_count: int = 100
    wks_count: int = 100
    eigenpairs: int = 100

    def __post_init__(self) -> None:
        kinds = (self.kinds,) if isinstance(self.kinds, str) else tuple(self.kinds)
        radii = self.shot_radii if isinstance(self.shot_radii, tuple | list) else (self.shot_radii,)
        kinds = tuple(OLD_KINDS.get(kind, kind) for kind in kinds)
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "shot_radii", tuple(float(radius) for radius in radii))
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown or not kinds or len(set(kinds)) != len(kinds):
            raise InputError(
                f"Descriptors {', '.join(kinds) or 'none'}: use one or more of {', '.join(KINDS)}, each once."
            )
        if not self.shot_radii or not all(np.isfinite(r) and r > 0 for r in self.shot_radii):
            raise InputError(f"Radii of SHOT {self.shot_radii}: give one or more positive numbers, such as 12.")
        if len(set(self.shot_radii)) != len(self.shot_radii):
            raise InputError(f"Radii of SHOT {self.shot_radii}: each may be given once.")
        if self.signs not in ("moment", "majority"):
            raise InputError(f"The signs of SHOT's axes are chosen by 'moment' or 'majority', not by {self.signs!r}.")
        for name in ("hks_count", "wks_count"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} = {getattr(self, name)}: at least one column is needed.")
        if self.eigenpairs < 3:
            raise InputError(f"{self.eigenpairs} eigenpairs: HKS and WKS need at least 3.")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for files and hashes; `DescriptorSettings(**values)` gives equal settings."""
        return {**asdict(self), "kinds": list(self.kinds), "shot_radii": list(self.shot_radii)}


def describe_surface(
    surface: Surface,
    settings: DescriptorSettings,
    *,
    own: NDArray[np.floating[Any]] | None = None,
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Descriptors of every vertex, the kinds of the settings side by side.

    Rows of SHOT, HKS and WKS have length 1 each.

    Parameters
    ----------
    surface : Surface
        Mesh or cloud, in normalised units.
    settings : DescriptorSettings
        Kinds of descriptors and their parameters.
    own : (n, q) array or None
        The user's own descriptors; needed for kind `file` only.
    threads : int or None
        None is one per core.

    Returns
    -------
    (n, p) float32 array

    Raises
    ------
    InputError
        Where the user's own descriptors are missing or do not fit, or a value is not finite.
    """
    columns: list[NDArray[Any]] = []
    if {"hks", "wks"} & set(settings.kinds):
        eigenpairs = surface_eigenpairs(surface, settings.eigenpairs)
    for kind in settings.kinds:
        if kind == "shot":
            for radius in settings.shot_radii:
                columns.append(
                    shot(
                        surface,
                        radius,
                        area_weighted=settings.area_weighted,
                        signs=settings.signs,
                        upright=settings.upright,
                        threads=threads,
                    )
                )
        elif kind == "hks":
            # Unscaled, the late times would be smaller than the early ones by orders of magnitude.
            columns.append(_unit_rows(hks(*eigenpairs, settings.hks_count, scaled=True)))
        elif kind == "wks":
            columns.append(_unit_rows(wks(*eigenpairs, settings.wks_count)))
        elif kind == "valences":
            columns.append(valence_descriptors(surface))
        else:
            columns.append(_checked_own(own, len(surface.vertices)))
    descriptors = np.concatenate([np.asarray(column, np.float32) for column in columns], axis=1)
    bad = np.flatnonzero(~np.isfinite(descriptors).all(axis=1))
    if len(bad):
        raise InputError(f"The descriptor of vertex {bad[0]} (and of {len(bad) - 1} more) is not finite.")
    return descriptors


def _checked_own(own: NDArray[np.floating[Any]] | None, n: int) -> NDArray[np.floating[Any]]:
    """The user's own descriptors, with one row for each of n vertices."""
    if own is None:
        raise InputError("Descriptors of kind 'file' need shapes that were read from files; this one was not.")
    if own.ndim != 2 or len(own) != n:
        raise InputError(f"Own descriptors of shape {own.shape}: ({n}, p) is needed, one row for each vertex.")
    return own


def _unit_rows(values: NDArray[Any]) -> NDArray[Any]:
    """Rows of length 1, as SHOT has them, so that no kind outweighs another."""
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-300)
