"""What a reader hands over: the contents of a file before anything is checked or mended."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.shape import Finding


class FormatError(Exception):
    """The bytes of a file do not follow its format; the message says what and where, without the file's name."""


@dataclass(eq=False)
class RawShape:
    """The contents of a file, with its own numbering.

    - vertices: (n, 3) float64
    - corners: (c,) int64, the vertices of all polygons, one polygon after another
    - sizes: (polygons,) int64, how many corners each polygon has
    - uv: (k, 2) float64, v upwards, or None
    - uv_corners: (c,) int64, for each corner its row in `uv`, or None
    - colors: (n, 4) uint8, or None
    - normals: (n, 3), or None
    - image: (height, width, 3 or 4) uint8, or None
    - soup: True where the format cannot share vertices between faces
    - origin: what holds it, in messages: `file` or `array`
    - findings: what the reader noticed
    """

    vertices: NDArray[np.float64]
    corners: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    sizes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    uv: NDArray[np.float64] | None = None
    uv_corners: NDArray[np.int64] | None = None
    colors: NDArray[np.uint8] | None = None
    normals: NDArray[np.float64] | None = None
    image: NDArray[np.uint8] | None = None
    soup: bool = False
    origin: str = "file"
    findings: list[Finding] = field(default_factory=list)

    def note(self, kind: str, count: int, text: str) -> None:
        """Record something that was noticed and that no repair can bring back."""
        self.findings.append(Finding(kind, int(count), text, repaired=False))


def colors_from(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """RGBA bytes from up to 4 columns.

    Floats count as 0..1, or as 0..255 where one is above 1. Integers count as 0..255; where one is above that, by the
    range of their type, or as 0..65535 where the type is wider than 16 bits but no number needs more.
    """
    values = np.asarray(values)
    if values.dtype.kind == "f":
        finite = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=1.0, neginf=0.0)
        scale = 1.0 if finite.size and finite.max() > 1.0 else 255.0
        values = np.rint(finite * scale)
    elif values.size and values.max() > 255:
        full = np.iinfo(values.dtype.name).max
        if values.dtype.itemsize > 2 and values.max() <= 65535:
            full = 65535
        values = np.rint(values.astype(np.float64) * (255.0 / full))
    rgba = np.full((len(values), 4), 255, np.uint8)
    rgba[:, : values.shape[1]] = np.clip(values, 0, 255).astype(np.uint8)
    return rgba
