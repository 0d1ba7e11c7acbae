"""Estimated time and memory of a match and of a patch operator, and the memory of this process and machine."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from acnn.errors import InputError
from acnn.patches.settings import PatchSettings

SECONDS = 2.0, 3e-7, 4e-5
"""Processor time per shape: constant, and coefficients of the square of the vertices that are matched, and of the
vertices of a shape that is copied for that."""

GIGABYTES = 0.7, 4.7e-9, 2e-6
"""Peak memory: constant, and the same coefficients, the first for the larger shape."""

STAGES = {
    **{"reading": 0.02, "working copies": 0.02, "operators": 0.48, "network output": 0.07},
    **{"refinement": 0.21, "fit": 0.13, "lifting": 0.02, "writing": 0.05},
}
"""Fraction of the time of a match that each stage takes, of A and B together."""

MIN_REPORTED = 60.0
"""Shortest estimate that is reported, in seconds."""

BYTES = {".ply": 38, ".stl": 100, ".glb": 36, ".gltf": 36, ".obj": 75, ".off": 70, ".npy": 24}
"""Bytes of a file for every vertex of a mesh with two triangles each, in the most compact form in use; a cloud's in
`.npy`. Other files are taken for text of `TEXT` bytes."""

TEXT = 30

AREA = 14_500.0
"""Area of a human in normalised units."""

ENTRY = 24e-9, 6e-9
"""Gigabytes of an entry of a patch operator while it is computed, and stored."""

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

    def text(self, memory: float, purpose: str = "matched") -> str:
        """What is about to be read, where that is much.

        Parameters
        ----------
        memory : float
            Available memory of this machine in gigabytes.
        purpose : str
            What the files are read for, a participle.

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
            most = max(0.1, memory / self.gigabytes * max(self.vertices) / 1e6)
            raise InputError(
                f"{names}: needs roughly {self.gigabytes:.0f} GB of memory to be read and {purpose}, and "
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


def announce_reading(
    files: Sequence[Path], announce: Callable[[str], object] | None, purpose: str = "matched"
) -> float:
    """Announce that large files are about to be read, before any of them is opened.

    Parameters
    ----------
    files : Sequence[Path]
        Files of shapes.
    announce : callable or None
        Called with a sentence, where the files are large.
    purpose : str
        As for `ReadingCost.text`.

    Returns
    -------
    float
        Available memory of this machine in gigabytes.

    Raises
    ------
    InputError
        Where they will not fit into memory.
    """
    memory = machine_memory_mb()["available"] / 1000
    words = reading_cost(files).text(memory, purpose)
    if words and announce is not None:
        announce(words)
    return memory


@dataclass(frozen=True)
class PatchesCost:
    """Estimated size of a patch operator.

    Attributes
    ----------
    vertices : int
    rows : int
        Rows of every vertex: angles times scales.
    entries : float
        Mean number of entries of a row.
    gigabytes : float
        Peak memory: of all angles, or of one where they are computed one after the other.
    stored : float
        Gigabytes of its file.
    """

    vertices: int
    rows: int
    entries: float
    gigabytes: float
    stored: float

    def text(self, memory: float, name: str) -> str:
        """What a large operator will take.

        Parameters
        ----------
        memory : float
            Available memory of this machine in gigabytes.
        name : str
            Of the shape.

        Returns
        -------
        str
            Empty where it is small.

        Raises
        ------
        InputError
            Where it will not fit into memory.
        """
        if self.gigabytes < 0.1 * memory:
            return ""
        what = (
            f"the patch operator of {name} ({self.vertices / 1e6:.2g} million vertices) has {self.rows} rows of "
            f"{self.entries:,.0f} entries for every vertex: roughly {self.gigabytes:,.0f} GB of memory"
        )
        if self.gigabytes > memory:
            raise InputError(
                f"{what}, and {memory:.0f} GB are available. Entries grow with the vertices and with the scales: "
                "choose smaller --scales or fewer --angles, write it angle by angle with --out, or reduce the mesh."
            )
        return f"{what[0].upper()}{what[1:]}, and {self.stored:,.0f} GB where it is stored."


def patches_cost(vertices: int, settings: PatchSettings, *, area: float = AREA, by_angle: bool = False) -> PatchesCost:
    """Estimate the size of a patch operator.

    A kernel holds nine tenths of its mass in an ellipse of 4.6 pi standard deviations, sqrt(2 t) along and at least
    0.7 mean edges across. Estimates are within a factor of 1.5 on humans of 2,500 and 6,890 vertices.

    Parameters
    ----------
    vertices : int
        Number of vertices.
    settings : PatchSettings
        Angles, anisotropy and scales.
    area : float
        Of the surface in normalised units; that of a human where it is not known.
    by_angle : bool
        Whether angles are computed one after the other, with the rows on disk.

    Returns
    -------
    PatchesCost
    """
    edge = area / (0.87 * max(vertices, 1))  # squared, of equilateral triangles
    entries = [
        14.5 * math.sqrt(2.0 * t * (2.0 * t / settings.alpha + 0.5 * edge)) * vertices / area for t in settings.scales
    ]
    mean = sum(min(count, vertices) for count in entries) / len(entries)
    rows = settings.angles * len(settings.scales)
    total = vertices * rows * mean
    held = total / settings.angles if by_angle else total
    return PatchesCost(vertices, rows, mean, GIGABYTES[0] + ENTRY[0] * held, ENTRY[1] * total)


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
    for name, cost in reversed([*zip("AB", costs, strict=False)]):  # B comes first
        of = f" of {name}" if len(costs) > 1 else ""
        stages |= {f"{stage}{of}": STAGES[stage] * cost for stage in ("operators", "network output")}
    improved = ("refinement", "fit") if len(costs) > 1 else ("refinement",)
    last = (*(improved if refined else ()), "lifting", "writing")
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
