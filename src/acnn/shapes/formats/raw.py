"""Common parts of the readers: unchecked file contents, colours, images, files beside a shape, tables in text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.mesh import Finding

NEWLINE = ord("\n")
MAX_PIXELS = 1 << 26
"""Largest texture image that is decoded: 8192 x 8192 pixels, 256 MB as RGBA."""


class FormatError(Exception):
    """The bytes of a file do not follow its format; the message names what and where, without the file's name."""


@dataclass(eq=False)
class RawShape:
    """The unchecked contents of a file, in file order.

    Attributes
    ----------
    vertices : (n, 3) float64 array
        Coordinates, possibly not finite.
    corners : (c,) int64 array
        The vertices of all polygons, one polygon after another.
    sizes : (polygons,) int64 array
        Number of corners of each polygon.
    uv : (k, 2) float64 array or None
        Texture coordinates, v upwards.
    uv_corners : (c,) int64 array or None
        Row of `uv` for each corner.
    colors : (n, 4) uint8 array or None
        RGBA colours of the vertices.
    normals : (n, 3) float64 array or None
        Normals of the vertices, of any length.
    image : (height, width, 3 or 4) uint8 array or None
        Texture image.
    soup : bool
        Whether the format cannot share vertices between faces.
    origin : str
        What the data come from, in messages: `file` or `array`.
    findings : list[Finding]
        Findings of the reader.
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
        """Record a finding that no repair can undo."""
        self.findings.append(Finding(kind, int(count), text, repaired=False))


def colors_from(values: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Convert colours to RGBA bytes.

    Floats have the range 0..1, or 0..255 where one is above 1. Integers have the range 0..255; where one is above that,
    the range of their type, or 0..65535 where the type is wider than 16 bits but no value needs more.

    Parameters
    ----------
    values : (n, up to 4) array
        Colour channels; missing ones become 255.

    Returns
    -------
    (n, 4) uint8 array
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


def read_beside(path: Path, name: str) -> bytes | None:
    """The bytes of a file that `path` refers to by a relative name; None where it cannot be read.

    Only files inside the folder of `path` are read: no absolute paths, no parent folders, no URLs, no links that leave
    the folder.
    """
    name = name.strip().replace("\\", "/")
    if not name or ":" in name or "\0" in name or name.startswith("/") or ".." in name.split("/"):
        return None
    folder = path.parent.resolve()
    try:
        file = (folder / name).resolve()
        if not file.is_relative_to(folder) or not file.is_file():
            return None
        return file.read_bytes()
    except (OSError, ValueError, RuntimeError):  # not a valid file name here, or a cycle of links
        return None


def decode_image(data: bytes) -> NDArray[np.uint8] | None:
    """Decode an image to (height, width, 3 or 4) uint8; None where it is damaged or larger than `MAX_PIXELS`."""
    import io
    import warnings

    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "BMP", "TIFF", "WEBP", "TGA")) as image:
                if image.width * image.height > MAX_PIXELS:
                    return None
                has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
                return np.array(image.convert("RGBA" if has_alpha else "RGB"), dtype=np.uint8)
    except Exception:  # decoders raise many types; a damaged image must not prevent the shape from loading
        return None


def encode_png(image: NDArray[np.uint8]) -> bytes:
    """Encode a (height, width, 3 or 4) uint8 image as PNG."""
    import io

    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(stream, format="PNG")
    return stream.getvalue()


class TextTable:
    """The non-empty lines of a text as rows of words.

    Parameters
    ----------
    text : bytes
        With any line ends.
    unit : str
        Name of a line in messages.

    Attributes
    ----------
    rows : int
        Number of non-empty lines.
    words : (rows,) int64 array
        Number of words of each.
    """

    def __init__(self, text: bytes, unit: str = "line") -> None:
        self.unit = unit
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._text = text
        array = np.frombuffer(text, np.uint8)
        line_starts = np.concatenate([[0], np.flatnonzero(array == NEWLINE) + 1])
        line_starts = line_starts[line_starts < len(array)]
        begins = word_starts(array)
        words = np.diff(np.append(np.searchsorted(begins, line_starts), len(begins)))
        kept = words > 0
        self.words: NDArray[np.int64] = words[kept]
        self._starts = line_starts[kept]
        self._lines = np.flatnonzero(kept) + 1
        self.rows = len(self.words)

    def location(self, row: int) -> str:
        """The line of a row, for messages; 1-based."""
        return f"{self.unit} {int(self._lines[row])}"

    def text(self, first: int, last: int) -> bytes:
        """Text of rows first to last - 1."""
        begin = int(self._starts[first]) if first < self.rows else len(self._text)
        end = int(self._starts[last]) if last < self.rows else len(self._text)
        return self._text[begin:end]

    def numbers(self, first: int, last: int, dtype: type = np.float64) -> NDArray[np.float64] | NDArray[np.int64]:
        """All numbers of rows first to last - 1, one after another.

        Raises
        ------
        FormatError
            Where a word is not a number, with its line.
        """
        expected = int(self.words[first:last].sum())
        if expected == 0:
            return np.zeros(0, dtype)
        values = _parse(self.text(first, last), dtype)
        if values is None or len(values) != expected:
            row = self._first_bad_row(first, last, dtype)
            snippet = self.text(row, row + 1).strip()[:40].decode("ascii", "replace")
            raise FormatError(f"{self.location(row)} should hold numbers only, but reads '{snippet}'")
        return values

    def table(self, first: int, last: int, columns: int, what: str) -> NDArray[np.float64]:
        """Rows first to last - 1 as a (rows, columns) array; further words of each row are ignored."""
        words = self.words[first:last]
        if len(words) == 0:
            return np.zeros((0, columns))
        short = np.flatnonzero(words < columns)
        if len(short):
            row = first + int(short[0])
            raise FormatError(
                f"{what} {int(short[0])} ({self.location(row)}) has {int(self.words[row])} numbers, "
                f"but {columns} are needed"
            )
        values = self.numbers(first, last)
        if (words == words[0]).all():
            return values.reshape(len(words), -1)[:, :columns].astype(np.float64)
        begins = np.cumsum(words) - words
        return values[begins[:, None] + np.arange(columns)].astype(np.float64)

    def _first_bad_row(self, first: int, last: int, dtype: type) -> int:
        """Binary search: either the first half contains the first bad row, or it is valid."""
        while last - first > 1:
            middle = (first + last) // 2
            values = _parse(self.text(first, middle), dtype)
            if values is None or len(values) != int(self.words[first:middle].sum()):
                last = middle
            else:
                first = middle
        return first


def word_starts(array: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Indices where words begin in a text; every ASCII control character counts as a blank."""
    blank = array <= 32
    begins = ~blank
    begins[1:] &= blank[:-1]
    return np.flatnonzero(begins)


def _parse(text: bytes, dtype: type) -> NDArray[np.float64] | NDArray[np.int64] | None:
    try:
        return np.fromstring(text.decode("ascii"), dtype=dtype, sep=" ")
    except ValueError:  # not ASCII, or not a number
        return None
