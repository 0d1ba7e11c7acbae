"""Estimated time and memory of a match, and the memory of this process and machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

SECONDS = 3.0, 4e-7
"""Processor time per shape: constant, and coefficient of n^2."""

GIGABYTES = 0.5, 4.7e-9
"""Peak memory: constant, and coefficient of n^2 of the larger shape."""

STAGES = {
    **{"reading": 0.02, "working copies": 0.02, "operators": 0.58, "network output": 0.08},
    **{"refinement": 0.23, "lifting": 0.02, "writing": 0.05},
}
"""Fraction of the time of a match that each stage takes, of A and B together."""

MIN_REPORTED = 60.0
"""Shortest estimate that is reported, in seconds."""

LARGE = 20_000
"""Vertices above which simplification is advised: matching takes minutes, and gains little over 10,000."""


@dataclass(frozen=True)
class MatchCost:
    """Estimated cost of a match.

    Attributes
    ----------
    vertices : tuple[int, ...]
        Number of vertices of each shape.
    seconds : float
        Processor time, summed over cores.
    gigabytes : float
        Peak memory.
    """

    vertices: tuple[int, ...]
    seconds: float
    gigabytes: float

    def text(self, memory: float | None = None) -> str:
        """Format the estimate, with advice for large shapes.

        Parameters
        ----------
        memory : float or None
            Memory of this machine in gigabytes; None if unknown.

        Returns
        -------
        str
            Empty if the match is quick.
        """
        if self.seconds < MIN_REPORTED:
            return ""
        counts = " and ".join(f"{count:,}" for count in self.vertices)
        parts = [f"This takes roughly {_duration(self.seconds)} of processor time ({counts} vertices)"]
        if memory is not None and self.gigabytes > 0.8 * memory:
            parts.append(f", and {self.gigabytes:.0f} GB of memory (available: {memory:.0f} GB)")
        if max(self.vertices) > LARGE:
            parts.append(". Simplify the large shape to 5,000 to 10,000 vertices first, with mesh software")
        return "".join(parts) + "."


def match_cost(vertices: Sequence[int]) -> MatchCost:
    """Estimate the cost of a match without cached operators.

    Parameters
    ----------
    vertices : Sequence[int]
        Number of vertices of A, or of A and B.

    Returns
    -------
    MatchCost
    """
    counts = tuple(int(count) for count in vertices)
    seconds = sum(SECONDS[0] + SECONDS[1] * count**2 for count in counts)
    return MatchCost(counts, seconds, GIGABYTES[0] + GIGABYTES[1] * max(counts) ** 2)


def match_stages(vertices: Sequence[int], *, refined: bool = True) -> dict[str, float]:
    """Expected seconds of the stages of a match through a network, on two cores.

    Parameters
    ----------
    vertices : Sequence[int]
        Number of vertices of A, or of A and B, that are matched.
    refined : bool
        Whether the map is refined.

    Returns
    -------
    dict[str, float]
        By the names of the stages, in their order; working copies are made, and maps lifted, only of large shapes.
    """
    costs = [match_cost([count]).seconds / 2 for count in vertices]
    total = sum(costs)
    stages = {stage: STAGES[stage] * total for stage in ("reading", "working copies")}
    for name, cost in zip("AB", costs, strict=False):
        of = f" of {name}" if len(costs) > 1 else ""
        stages |= {f"{stage}{of}": STAGES[stage] * cost for stage in ("operators", "network output")}
    last = ("refinement", "lifting", "writing") if refined else ("lifting", "writing")
    return stages | {stage: STAGES[stage] * total for stage in last}


def peak_memory_mb() -> float:
    """Return the peak memory of this process so far, in MB (10^6 bytes).

    On systems without that record, the memory in use now.
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
    """Return the `total` and `available` memory of the machine, in MB (10^6 bytes)."""
    import psutil

    memory = psutil.virtual_memory()
    return {"total": memory.total / 1e6, "available": memory.available / 1e6}


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
