"""Numbers in text, row by row, read with array operations: the ground of every ASCII format."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acnn.shapes.formats.raw import FormatError

NEWLINE = ord("\n")


class TextTable:
    """The rows of a text that hold at least one word, and how many words each has.

    - rows: how many such rows there are
    - words: (rows,) int64, words in each of them
    - unit: what a row is called in messages
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

        Raises FormatError with the line where a word is not a number.
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
