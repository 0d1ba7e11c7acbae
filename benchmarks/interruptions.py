"""Killed processes, full disks and other faults: what was done is kept, and the resumed result is the same.

    python benchmarks/interruptions.py [--kills 100] [--seed 0] [--only prepare,train,pairs,register,faults]

Four jobs on small generated bones run once undisturbed: `prepare`, `train`, `match --pairs`, `register`. Then each is
killed at random moments by SIGKILL, SIGTERM or SIGINT, and run again until it ends. The files of its result must be
those of the undisturbed run, byte by byte (times of the clock, metadata and paths apart), with no temporary file
left over. After SIGTERM and SIGINT no temporary file may be left even before it is resumed.

The faults are run once each: a full disk, a cache that cannot be written, one that is deleted meanwhile, two processes
on one cache and on one run folder, few file descriptors, little memory. Each must end in a result or in a message
without a traceback. Full disks need the right to mount a file system (root); elsewhere that row is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from _table import environment, print_table

from acnn.files import read_arrays

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TIMES = re.compile(rb'("[a-z_]*(?:seconds|time|minutes)[a-z_]*": *)[-0-9.e+]+')
LIMIT = 600
"""Seconds after which a job counts as hanging."""


@dataclass(frozen=True)
class Job:
    """One command that can be interrupted.

    Attributes
    ----------
    name : str
    command : tuple of str
        Arguments of `acnn`; `{out}` is the folder of the result.
    resumed : tuple of str
        Further arguments when it is run again.
    compared : callable
        Tells by its relative path whether a file of the result is compared.
    """

    name: str
    command: tuple[str, ...]
    resumed: tuple[str, ...] = ()
    compared: Callable[[str], bool] = lambda name: True


def jobs(data: Path) -> list[Job]:
    """The four jobs on the shapes of a folder."""
    shapes = sorted(str(path) for path in data.glob("bone_*.ply"))
    pairs = data / "pairs.txt"
    pairs.write_text("".join(f"{Path(a).name} {Path(b).name}\n" for a, b in pairwise(shapes)))
    settings = ("--set", "shot_radii=20.0", "--set", "angles=4", "--set", "loss_vertices=100")
    network = ("--arch", "FC8+IC8+FC16+Softmax", "--epochs", "60", "--train", "all")

    def results(name: str) -> bool:
        return name.endswith((".txt", ".npz", ".ply"))

    return [
        Job("prepare", ("prepare", str(data), "--angles", "4", "--radius", "20"), compared=_cached),
        Job("train", ("train", str(data), "--out", "{out}", *settings, *network), ("--resume",), _trained),
        Job("pairs", ("match", "--pairs", str(pairs), "--method", "descriptors", "--out", "{out}"), compared=results),
        Job(
            "register",
            ("register", shapes[0], *shapes[1:4], "--method", "descriptors", "--out", "{out}"),
            compared=results,
        ),
    ]


def _cached(name: str) -> bool:
    return name.endswith(".safetensors")


def _trained(name: str) -> bool:
    return name in ("model.safetensors", "reference.safetensors")


def start(job: Job, place: Path, again: bool, **options: Any) -> subprocess.Popen[bytes]:
    """Start a job, with results and cache in folders of `place`."""
    words = [word.format(out=place / "out") for word in job.command] + (list(job.resumed) if again else [])
    cache = {"ACNN_CACHE": str(options.pop("cache", place / "cache"))}
    return subprocess.Popen(
        [sys.executable, "-m", "acnn", *words],
        env=os.environ | cache | options.pop("env", {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        **options,
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Wait for a job: exit code and what it printed."""
    try:
        printed, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return -1, "hangs"
    return process.returncode, printed.decode(errors="replace")


def result(job: Job, place: Path) -> dict[str, str]:
    """Hashes of the files of a result, by their names."""
    folder = place / ("cache" if job.name == "prepare" else "out")
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and job.compared(name):
            found[name] = hashlib.sha256(_content(path, place)).hexdigest()
    return found


def _content(path: Path, place: Path) -> bytes:
    """What is compared of a file: arrays without metadata, which hold times; else bytes without times and paths."""
    if path.suffix == ".safetensors":
        arrays, _ = read_arrays(path)
        return b"".join(name.encode() + arrays[name].tobytes() for name in sorted(arrays))
    return TIMES.sub(rb"\1", path.read_bytes()).replace(str(place).encode(), b"")


def strays(place: Path) -> list[str]:
    """Temporary files that were left over."""
    return [str(path.relative_to(place)) for path in place.rglob("*") if path.name.endswith((".part", ".tmp"))]


def interrupted(job: Job, kills: int, folder: Path, rng: random.Random) -> dict[str, Any]:
    """Kill a job several times at random moments; one row of the table."""
    whole = folder / f"{job.name}-whole"
    began = time.perf_counter()
    code, printed = finish(start(job, whole, False))
    lasts = time.perf_counter() - began
    if code:
        raise SystemExit(f"{job.name} does not run: {printed}")
    expected = result(job, whole)
    row: dict[str, Any] = {"job": job.name, "seconds": lasts, "files": len(expected), "kills": 0}
    row |= {signal.Signals(number).name: 0 for number in SIGNALS} | {"ended before": 0, "different": 0, "left over": 0}
    row["wrong"] = []
    round_number = 0
    while row["kills"] < kills:
        place = folder / f"{job.name}-{round_number}"
        round_number += 1
        again = False
        for _ in range(min(3, kills - row["kills"])):  # also killed while it goes on from an earlier kill
            number = rng.choice(SIGNALS)
            process = start(job, place, again)
            try:
                process.wait(timeout=rng.uniform(0.05, 1.05) * lasts)
                row["ended before"] += 1
                break
            except subprocess.TimeoutExpired:
                (os.killpg if number == signal.SIGKILL else os.kill)(process.pid, number)
            code, printed = finish(process)
            again, row["kills"] = True, row["kills"] + 1
            row[signal.Signals(number).name] += 1
            if number != signal.SIGKILL and (left := strays(place)):
                row["left over"] += 1
                row["wrong"].append(f"{number.name}: left {left[:3]}")
            if "Traceback" in printed:
                row["wrong"].append(f"{number.name}: {printed[-300:]}")
        code, printed = finish(start(job, place, again))
        if code or result(job, place) != expected or strays(place / "out"):
            row["different"] += 1
            changed = [name for name, value in result(job, place).items() if expected.get(name) != value]
            row["wrong"].append(f"exit code {code}, changed {changed[:3]}, left {strays(place)[:3]}: {printed[-200:]}")
        shutil.rmtree(place)
    return row


def faults(job: Job, expected: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Rows of the faults that a training meets."""

    def row(name: str, answers: list[tuple[int, str]], place: Path | None) -> dict[str, Any]:
        wrong = [text[-200:] for code, text in answers if "Traceback" in text or code not in (0, 1, 2)]
        same = place is not None and result(job, place) == result(job, expected)
        last = next((line for line in reversed(answers[-1][1].splitlines()) if line.strip()), "")
        codes = ", ".join(str(code) for code, _ in answers)
        return {"fault": name, "exit codes": codes, "same result": same, "wrong": wrong, "last line": last[:110]}

    place = folder / "cache-read-only"
    cache = place / "cache"
    cache.mkdir(parents=True)
    with unwritable(cache) as possible:
        if possible:
            yield row("cache cannot be written", [finish(start(job, place, False))], place)
    place = folder / "cache-deleted"
    process = start(job, place, False)
    for _ in range(40):
        time.sleep(0.25)
        shutil.rmtree(place / "cache", ignore_errors=True)
    yield row("cache deleted meanwhile", [finish(process)], place)
    place = folder / "shared-cache"
    first, second = start(job, place / "a", False, cache=place / "c"), start(job, place / "b", False, cache=place / "c")
    answers = [finish(first), finish(second)]
    yield row("two processes on one cache", answers, place / "a")
    place = folder / "one-folder"
    first, second = start(job, place, False), start(job, place, False)
    yield row("two processes on one run folder", [finish(first), finish(second)], place)
    place = folder / "descriptors"
    few = start(job, place, False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)))
    yield row("24 file descriptors", [finish(few)], place)
    place = folder / "memory"
    small = 900 * 2**20
    little = start(job, place, False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (small, small)))
    yield row("0.9 GB of addresses", [finish(little)], place)
    for name, size in (("out", "96k"), ("cache", "96k")):
        place = folder / f"full-{name}"
        with small_disk(place / name, size) as possible:
            if possible:
                yield row(
                    f"full disk of the {'result' if name == 'out' else 'cache'}",
                    [finish(start(job, place, False))],
                    None,
                )


@contextmanager
def unwritable(folder: Path) -> Iterator[bool]:
    """Make a folder read-only, for root as well; yields whether that was possible."""
    if os.geteuid():
        folder.chmod(0o555)
        yield True
        folder.chmod(0o755)
        return
    bound = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(folder)], capture_output=True, check=False)
    yield not bound.returncode
    if not bound.returncode:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[bool]:
    """Mount a file system of some size; yields whether that was possible."""
    folder.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = (
        shutil.which("mount") is not None and not subprocess.run(words, capture_output=True, check=False).returncode
    )
    yield mounted
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


def main() -> int:
    """Run and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="in total, over all jobs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="prepare,train,pairs,register,faults")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    wanted = set(options.only.split(","))
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "data"
        words = ["data", "family", "bone", "--count", "6", "--vertices", "600", "--seed", "1", "--out", str(data)]
        subprocess.run([sys.executable, "-m", "acnn", *words], check=True, capture_output=True)
        chosen = [job for job in jobs(data) if job.name in wanted]
        rows = [
            interrupted(job, options.kills // len(chosen) + (i < options.kills % len(chosen)), folder, rng)
            for i, job in enumerate(chosen)
        ]
        train = next(job for job in jobs(data) if job.name == "train")
        whole = folder / "train-whole"
        if "faults" in wanted and not whole.exists():
            finish(start(train, whole, False))
        others = list(faults(train, whole, folder)) if "faults" in wanted else []
    if options.json:
        print(json.dumps({"environment": environment(["torch", "numpy"]), "kills": rows, "faults": others}))
    else:
        for title, table in (("kills", rows), ("faults", others)):
            if table:
                print_table(title, [{key: value for key, value in row.items() if key != "wrong"} for row in table])
    wrong = [f"{row.get('job', row.get('fault'))}: {line}" for row in (*rows, *others) for line in row["wrong"]]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
