"""The first hour of a new user, in seconds: `python benchmarks/first_hour.py [--json]`.

Commands run one after the other on the files of `acnn sample`, each in a fresh process, in a temporary folder, with
empty caches of compiled code and of operators. On a machine that does other work, seconds mean little; processor time
is printed beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from _table import Record, environment, print_table

LIMITS = {
    "first match, nothing compiled": 60,
    "match, compiled": 10,
    "texture transferred": 20,
    "own training started": 60,
}
"""Seconds on two idle cores."""

MATCH = ["match", "sample/A.ply", "sample/B.obj", "--barycentric", "--out"]
TEXTURE = ["--from", "sample/B.obj", "--to", "sample/A.ply", "--texture", "--out", "A_painted.glb"]
TRAIN = ["train", "sample/shapes", "--out", "run"]
PATIENCE = 3600


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the first hour of a new user.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object on standard output.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="acnn-first-hour-") as name:
        records = first_hour(Path(name))
    facts = environment(["acnn", "numba", "numpy", "scipy", "torch"])
    if asked.json:
        print(json.dumps({"environment": facts, "first_hour": records}))
        return
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print_table("The first hour", records, "Limits are for two idle cores.")


def first_hour(folder: Path) -> list[Record]:
    """Run the commands in a folder and return what each took."""
    compiled = folder / "compiled"

    def measured(what: str, words: list[str], cache: str, until: Callable[[], bool] | None = None) -> Record:
        places = {"NUMBA_CACHE_DIR": str(compiled), "ACNN_CACHE": str(folder / cache)}
        seconds, processor = timed(words, folder, places, until)
        print(f"{what}: {seconds:.1f} s, {processor:.1f} s of processor time", file=sys.stderr, flush=True)
        return {"step": what, "seconds": seconds, "limit": LIMITS.get(what), "processor_seconds": processor}

    return [
        measured("sample files", ["sample", "--out", "sample"], "operators"),
        measured("first match, nothing compiled", [*MATCH, "result"], "operators"),
        measured("match, compiled", [*MATCH, "again"], "empty"),
        measured("texture transferred", ["transfer", "result", *TEXTURE], "operators"),
        measured("own training started", TRAIN, "operators", lambda: has_step(folder / "run" / "log.jsonl")),
    ]


def timed(
    words: list[str], folder: Path, places: dict[str, str], until: Callable[[], bool] | None
) -> tuple[float, float]:
    """Seconds and processor seconds of a command, or of its beginning until something holds."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "acnn", *words, "--quiet"]
    with (folder / "errors.txt").open("w+") as errors:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **places}, stdout=subprocess.DEVNULL, stderr=errors
        )
        watched, spent = psutil.Process(process.pid), 0.0
        while process.poll() is None and not (until is not None and until()):
            if time.perf_counter() - began > PATIENCE:
                process.kill()
            # Of a process that has ended, the last value read stands.
            try:
                usage = watched.cpu_times()
                spent = usage.user + usage.system
            except psutil.Error:
                pass
            time.sleep(0.05)
        seconds = time.perf_counter() - began
        if process.poll() is None:
            process.terminate()  # Ctrl-C may be ignored: in the background it is
            process.wait()
        elif process.returncode:
            errors.seek(0)
            raise SystemExit(f"acnn {' '.join(words)}: exit code {process.returncode}\n{errors.read()}")
    return seconds, spent


def has_step(log: Path) -> bool:
    """Whether the log of a training records a step."""
    try:
        return '"step"' in log.read_text()
    except OSError:
        return False


if __name__ == "__main__":
    main()
