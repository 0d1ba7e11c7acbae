"""Memory of this process and of the machine, on every system."""

from __future__ import annotations

import sys


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
