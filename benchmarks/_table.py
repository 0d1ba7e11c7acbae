"""What benchmarks share: tables, the versions they ran with, and jobs in fresh processes of known width and memory.

A job is a function of keyword arguments that prepares (imports, compiles, loads) and returns another one, which does
what is measured and returns a record. Jobs that are run together start their measured part at the same moment.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

Record = dict[str, Any]
Job = Callable[..., Callable[[], Record]]

CORES = 2
"""Cores that every measured job or pair of jobs may use."""


def environment(packages: Sequence[str]) -> Record:
    """Machine and versions, for the head of a report."""
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "machine": platform.platform(),
        "processor": _processor(),
        "cores_of_machine": os.cpu_count(),
        "cores_used": CORES,
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        **versions,
    }


def print_table(title: str, records: Sequence[Record], note: str = "") -> None:
    """Print records under the names of their fields, numbers to four digits; fields that begin with _ are left out."""
    names = list(dict.fromkeys(name for record in records for name in record if not name.startswith("_")))
    rows = [[_text(record.get(name)) for name in names] for record in records]
    widths = [max(len(name), *(len(row[i]) for row in rows)) for i, name in enumerate(names)]
    left = [all(isinstance(record.get(name), str | None) for record in records) for name in names]
    print(f"\n{title}")
    for row in [names, ["-" * width for width in widths], *rows]:
        cells = [cell.ljust(w) if l else cell.rjust(w) for cell, w, l in zip(row, widths, left, strict=True)]
        print("  " + "  ".join(cells).rstrip())
    if note:
        print("  " + note.replace("\n", "\n  "))


def run_fresh(name: str, threads: int = 1, **arguments: Any) -> Record:
    """Run one job of this program in a process of its own, whose BLAS may use so many threads."""
    return run_together([(name, arguments)], threads)[0]


def run_together(jobs: Sequence[tuple[str, Record]], threads: int = 1) -> list[Record]:
    """Run jobs side by side, each in a fresh process; none starts before all are ready."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    limits = dict.fromkeys(names, str(threads))
    started = [
        subprocess.Popen(
            [sys.executable, sys.argv[0], "--job", name, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **limits},
        )
        for name, arguments in jobs
    ]
    try:
        for process in started:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"The job {process.args!r} did not get ready; its message is above.")
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate()[0] for process in started]
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait()
    for process in started:
        if process.returncode:
            raise RuntimeError(f"The job {process.args!r} failed; its message is above.")
    return [json.loads(answer.splitlines()[-1]) for answer in answers]


def serve(jobs: dict[str, Job], name: str, arguments: str) -> None:
    """The other side of `run_together`: prepare a job, wait for the word, run it, print its record as JSON."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    run = jobs[name](**json.loads(arguments))
    print("ready", flush=True)
    sys.stdin.readline()
    _forget_peak()
    print(json.dumps(run()), flush=True)


def resident_mb() -> float:
    """Memory that this process holds now."""
    return _status("VmRSS")


def peak_mb() -> float:
    """The most memory that this process has held since its job began (on Linux; elsewhere since it started)."""
    # Not ru_maxrss where it can be avoided: on Linux a new process inherits that from the one that started it.
    return _status("VmHWM")


def _forget_peak() -> None:
    """Let the peak start from what is held now, so that preparing does not count."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")


def _status(field: str) -> float:
    if os.path.exists("/proc/self/status"):
        with open("/proc/self/status") as stream:
            found = re.search(rf"{field}:\s+(\d+)", stream.read())
        if found:
            return int(found[1]) / 1024
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / 2**20 if sys.platform == "darwin" else size / 1024


def _processor() -> str:
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as stream:
            found = re.search(r"model name\s*:\s*(.+)", stream.read())
        if found:
            return found[1]
    return platform.processor() or "unknown"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
