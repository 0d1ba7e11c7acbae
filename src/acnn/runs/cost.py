"""Memory of this process and machine, and an estimate of what a match costs, made before the work."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass


def peak_memory_mb() -> float:
    """Most memory that this process has held so far, in MB (10^6 bytes).

    Where a system keeps no such record, what the process holds now.
    """
    import psutil

    try:
        import resource
    except ImportError:  # Windows
        now = psutil.Process().memory_info()
        return float(getattr(now, "peak_wset", now.rss) / 1e6)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def machine_memory_mb() -> dict[str, float]:
    """`total` memory of the machine and what of it is `available`, in MB (10^6 bytes)."""
    import psutil

    memory = psutil.virtual_memory()
    return {"total": memory.total / 1e6, "available": memory.available / 1e6}


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
