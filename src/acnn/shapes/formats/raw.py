"""What all readers share: the unchecked contents of a file, tables of numbers in text, and files beside a shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.mesh import Finding


class FormatError(Exception):
    """The bytes of a file do not follow its format; the message says what and where, without the file's name."""


@dataclass(eq=False)
class RawShape:
    """The contents of a file, with its own numbering.

    Attributes
    ----------
    vertices : (n, 3) float64 array
    corners : (c,) int64 array
        The vertices of all polygons, one polygon after another.
    sizes : (polygons,) int64 array
        How many corners each polygon has.
    uv : (k, 2) float64 array or None
        V upwards, or None.
    uv_corners : (c,) int64 array or None
        For each corner its row in `uv`, or None.
    colors : (n, 4) uint8 array or None
        Or None.
    normals : (n, 3) array or None
        Or None.
    image : (height, width, 3 or 4) uint8 array or None
        Or None.
    soup : bool
        True where the format cannot share vertices between faces.
    origin : str
        What holds it, in messages: `file` or `array`.
    findings : list[Finding]
        What the reader noticed.
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


MAX_PIXELS = 1 << 26


def read_beside(path: Path, name: str) -> bytes | None:
    """The bytes of a file that `path` refers to by a relative name, or None.

    Only files inside the folder of `path` are read: no absolute name, no way up, no address, no link leading out.
    """
    name = name.strip().replace("\\", "/")
    if not name or ":" in name or "\0" in name or name.startswith("/") or ".." in name.split("/"):
        return None
    folder = path.parent.resolve()
    try:
        wanted = (folder / name).resolve()
        if not wanted.is_relative_to(folder) or not wanted.is_file():
            return None
        return wanted.read_bytes()
    except (OSError, ValueError, RuntimeError):  # no name of a file here, or links that run in a circle
        return None


def decode_image(data: bytes) -> NDArray[np.uint8] | None:
    """A picture as (height, width, 3 or 4) uint8, or None where it cannot be read or has more than 2^26 pixels."""
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
    except Exception:  # the decoders raise many kinds; a broken picture must not cost the shape
        return None


def encode_png(image: NDArray[np.uint8]) -> bytes:
    """A picture as the bytes of a PNG file."""
    import io

    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(image)).save(stream, format="PNG")
    return stream.getvalue()


NEWLINE = ord("\n")


class TextTable:
    """The rows of a text that hold at least one word, and how many words each has.

    - rows: how many such rows there are
    - words: (rows,) int64, words in each of them

    Parameters
    ----------
    unit : str
        What a row is called in messages.
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

    def place(self, row: int) -> str:
        """Where a row is, for messages: lines are counted from 1."""
        return f"{self.unit} {int(self._lines[row])}"

    def text(self, first: int, last: int) -> bytes:
        """The text of rows first to last - 1."""
        begin = int(self._starts[first]) if first < self.rows else len(self._text)
        end = int(self._starts[last]) if last < self.rows else len(self._text)
        return self._text[begin:end]

    def numbers(self, first: int, last: int, dtype: type = np.float64) -> NDArray[np.float64] | NDArray[np.int64]:
        """All numbers of rows first to last - 1, one after another.

        Raises
        ------
        FormatError
            With the line where a word is not a number.
        """
        expected = int(self.words[first:last].sum())
        if expected == 0:
            return np.zeros(0, dtype)
        values = _parse(self.text(first, last), dtype)
        if values is None or len(values) != expected:
            row = self._first_bad_row(first, last, dtype)
            snippet = self.text(row, row + 1).strip()[:40].decode("ascii", "replace")
            raise FormatError(f"{self.place(row)} should hold numbers only, but reads '{snippet}'")
        return values

    def table(self, first: int, last: int, columns: int, what: str) -> NDArray[np.float64]:
        """Rows first to last - 1 as a (rows, columns) array; further words of each row are left out."""
        words = self.words[first:last]
        if len(words) == 0:
            return np.zeros((0, columns))
        short = np.flatnonzero(words < columns)
        if len(short):
            row = first + int(short[0])
            raise FormatError(
                f"{what} {int(short[0])} ({self.place(row)}) has {int(self.words[row])} numbers, "
                f"but {columns} are needed"
            )
        values = self.numbers(first, last)
        if (words == words[0]).all():
            return values.reshape(len(words), -1)[:, :columns].astype(np.float64)
        begins = np.cumsum(words) - words
        return values[begins[:, None] + np.arange(columns)].astype(np.float64)

    def _first_bad_row(self, first: int, last: int, dtype: type) -> int:
        # Halving: the front half either holds the first bad row or is sound.
        while last - first > 1:
            middle = (first + last) // 2
            values = _parse(self.text(first, middle), dtype)
            if values is None or len(values) != int(self.words[first:middle].sum()):
                last = middle
            else:
                first = middle
        return first


def word_starts(array: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Where words begin in a text; every ASCII control character counts as a blank."""
    blank = array <= 32
    begins = ~blank
    begins[1:] &= blank[:-1]
    return np.flatnonzero(begins)


def _parse(text: bytes, dtype: type) -> NDArray[np.float64] | NDArray[np.int64] | None:
    try:
        return np.fromstring(text.decode("ascii"), dtype=dtype, sep=" ")
    except ValueError:  # not ASCII, or a word that is no number
        return None
