"""Estimated time and memory of a match, and the memory of this process and machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acnn.errors import InputError

SECONDS = 2.0, 3e-7, 4e-5
"""Processor time per shape: constant, and coefficients of the square of the vertices that are matched, and of the
vertices of a shape that is copied for that."""

GIGABYTES = 0.7, 4.7e-9, 2e-6
"""Peak memory: constant, and the same coefficients, the first for the larger shape."""

STAGES = {
    **{"reading": 0.02, "working copies": 0.02, "operators": 0.58, "network output": 0.08},
    **{"refinement": 0.23, "lifting": 0.02, "writing": 0.05},
}
"""Fraction of the time of a match that each stage takes, of A and B together."""

MIN_REPORTED = 60.0
"""Shortest estimate that is reported, in seconds."""

BYTES = {".ply": 38, ".stl": 100, ".glb": 36, ".gltf": 36, ".obj": 75, ".off": 70, ".npy": 24}
"""Bytes of a file for every vertex of a mesh with two triangles each, in the most compact form in use; a cloud's in
`.npy`. Other files are taken for text of `TEXT` bytes."""

TEXT = 30

ANNOUNCED = 5_000_000
"""Estimated vertices of the files from which on reading them is announced."""


@dataclass(frozen=True)
class MatchCost:
    """Estimated cost of a match.

    Attributes
    ----------
    vertices : tuple[int, ...]
        Number of vertices of each shape.
    working_size : int
        Largest number of vertices that is matched; 0 for all.
    seconds : float
        Processor time, summed over cores.
    gigabytes : float
        Peak memory.
    """

    vertices: tuple[int, ...]
    working_size: int
    seconds: float
    gigabytes: float

    def text(self, memory: float | None = None) -> str:
        """Format the estimate: what will be done with large shapes, and what it takes.

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
        if self.working_size:
            parts.append(
                f". Copies of {self.working_size:,} vertices are matched, and the map is lifted to all vertices"
            )
        else:
            parts.append(". Working copies (--working-size 2500) take seconds")
        return "".join(parts) + "."


def match_cost(vertices: Sequence[int], working_size: int = 0) -> MatchCost:
    """Estimate the cost of a match without cached operators.

    Parameters
    ----------
    vertices : Sequence[int]
        Number of vertices of A, or of A and B.
    working_size : int
        Largest number of vertices that is matched; 0 for all.

    Returns
    -------
    MatchCost
    """
    counts = tuple(int(count) for count in vertices)
    matched = [min(count, working_size) if working_size else count for count in counts]
    copied = sum(count for count, used in zip(counts, matched, strict=True) if count > used)
    seconds = sum(SECONDS[0] + SECONDS[1] * used**2 for used in matched) + SECONDS[2] * copied
    gigabytes = GIGABYTES[0] + GIGABYTES[1] * max(matched) ** 2 + GIGABYTES[2] * copied
    return MatchCost(counts, working_size, seconds, gigabytes)


@dataclass(frozen=True)
class ReadingCost:
    """What files will take before they are read, from their sizes.

    Attributes
    ----------
    files : tuple[Path, ...]
    vertices : tuple[int, ...]
        Estimated number of each.
    gigabytes : float
        Peak memory of reading and matching them on working copies.
    """

    files: tuple[Path, ...]
    vertices: tuple[int, ...]
    gigabytes: float

    def text(self, memory: float) -> str:
        """What is about to be read, where that is much.

        Parameters
        ----------
        memory : float
            Available memory of this machine in gigabytes.

        Returns
        -------
        str
            Empty for files that are read in seconds.

        Raises
        ------
        InputError
            Where they will not fit into memory.
        """
        if sum(self.vertices) < ANNOUNCED:
            return ""
        names = " and ".join(
            f"{file.name} ({file.stat().st_size / 1e9:.1f} GB, up to {count / 1e6:.0f} million vertices)"
            for file, count in zip(self.files, self.vertices, strict=True)
        )
        if self.gigabytes > memory:
            most = max(0.1, memory / self.gigabytes * sum(self.vertices) / len(self.vertices) / 1e6)
            raise InputError(
                f"{names}: needs roughly {self.gigabytes:.0f} GB of memory to be read and matched, and "
                f"{memory:.0f} GB are available. Reduce it with mesh software first, to {most:.1f} million vertices "
                "or fewer."
            )
        return f"Reading {names}; this takes minutes and roughly {self.gigabytes:.0f} GB of memory."


def reading_cost(files: Sequence[Path]) -> ReadingCost:
    """Estimate what reading and matching files takes, before any of them is opened.

    Parameters
    ----------
    files : Sequence[Path]
        Files of shapes; a missing one counts as empty.

    Returns
    -------
    ReadingCost
    """
    sizes = [file.stat().st_size if file.is_file() else 0 for file in files]
    counts = tuple(size // BYTES.get(file.suffix.lower(), TEXT) for file, size in zip(files, sizes, strict=True))
    return ReadingCost(tuple(files), counts, GIGABYTES[0] + GIGABYTES[2] * sum(counts))


def match_stages(vertices: Sequence[int], working_size: int = 0, *, refined: bool = True) -> dict[str, float]:
    """Expected seconds of the stages of a match through a network, on two cores.

    Parameters
    ----------
    vertices : Sequence[int]
        Number of vertices of A, or of A and B.
    working_size : int
        As for `match_cost`.
    refined : bool
        Whether the map is refined.

    Returns
    -------
    dict[str, float]
        By the names of the stages, in their order; working copies are made, and maps lifted, only of large shapes.
    """
    costs = [match_cost([count], working_size).seconds / 2 for count in vertices]
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
