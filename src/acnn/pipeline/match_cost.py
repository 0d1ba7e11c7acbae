"""What a match will cost, from the numbers of vertices alone: an estimate before the work, and advice for large shapes.

Kernels of a given width cover an area, so that their rows grow with the number n of vertices, and time and memory with
n^2. Measured with the pretrained model, built-in humans of n vertices matched to one of 2,500 (one core of an Intel
Xeon server):

| n | processor time | peak memory |
|---|---|---|
| 2,500 | 10 s | 0.5 GB |
| 5,000 | 16 s | 0.6 GB |
| 10,000 | 45 s | 1.0 GB |
| 20,000 | 145 s | 2.3 GB |

Where descriptors are tried as well it takes up to twice as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SECONDS = 3.0, 4e-7
"""Processor time for each shape: fixed, and times n^2."""

GIGABYTES = 0.5, 4.7e-9
"""Peak memory: fixed, and times the n^2 of the larger shape."""

WORTH_TELLING = 60.0
"""Seconds from which on an estimate is given."""

LARGE = 20_000
"""Vertices above which a simplified shape is advised: here it takes minutes, and little is gained over 10,000."""


@dataclass(frozen=True)
class MatchCost:
    """An estimate of what a match will cost.

    Attributes
    ----------
    vertices
        Of each shape.
    seconds
        Of processor time, all cores together.
    gigabytes
        Peak memory.
    """

    vertices: tuple[int, ...]
    seconds: float
    gigabytes: float

    def text(self, memory: float | None = None) -> str:
        """The estimate in words, and what to do where a shape is large; empty where there is little to wait for.

        Parameters
        ----------
        memory
            Gigabytes that this machine has; None where that is not known.
        """
        if self.seconds < WORTH_TELLING:
            return ""
        counts = " and ".join(f"{count:,}" for count in self.vertices)
        words = [f"This takes roughly {_duration(self.seconds)} of processor time ({counts} vertices)"]
        if memory is not None and self.gigabytes > 0.8 * memory:
            words.append(f", and {self.gigabytes:.0f} GB of memory, of which there are {memory:.0f}")
        if max(self.vertices) > LARGE:
            words.append(". Simplify the large one to 5,000 to 10,000 vertices first, with a mesh program")
        return "".join(words) + "."


def match_cost(vertices: Sequence[int]) -> MatchCost:
    """Estimate what it costs to match shapes of these numbers of vertices; what is in the cache costs less.

    Parameters
    ----------
    vertices
        Of A, or of A and B.

    Returns
    -------
    MatchCost
    """
    counts = tuple(int(count) for count in vertices)
    seconds = sum(SECONDS[0] + SECONDS[1] * count**2 for count in counts)
    return MatchCost(counts, seconds, GIGABYTES[0] + GIGABYTES[1] * max(counts) ** 2)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
