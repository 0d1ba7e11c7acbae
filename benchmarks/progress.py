"""What a terminal shows while `acnn match A B` runs: how long its time stands still, and how good its estimate is.

    python benchmarks/progress.py [--sizes 2500,12500,50000] [--compile] [--json]

The pairs of `match_pair.py`, each in a process of its own with an empty cache of operators, in a recorded terminal.
`still_s` is the longest time between two different elapsed times on the screen; `left_s` the remaining time that is
shown once half of the time has passed, and `ratio` that over the true one. With `--compile`, nothing is compiled
before.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _table import Record, environment, print_table
from match_pair import make_pair

SHOWN = re.compile(r"(\d+):(\d\d):(\d\d) .*?(?:about (\d+):(\d\d):(\d\d) left in total)?\s*$")


def main() -> None:
    """Record, read, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="2500,12500,50000", help="vertices of A and B, separated by commas")
    parser.add_argument("--compile", action="store_true", help="begin with an empty cache of compiled code")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    records = []
    with tempfile.TemporaryDirectory(prefix="acnn-progress-") as name:
        for size in map(int, asked.sizes.split(",")):
            folder = Path(name) / str(size)
            folder.mkdir()
            make_pair(size, folder)
            places = {"ACNN_CACHE": str(folder / "cache")}
            if asked.compile:
                places["NUMBA_CACHE_DIR"] = str(folder / "compiled")
            words = ["match", str(folder / "a.ply"), str(folder / "b.ply"), "--out", str(folder / "result")]
            records.append({"vertices": size, **measured(recorded(words, places))})
            print(json.dumps(records[-1]), file=sys.stderr, flush=True)
    facts = environment(["acnn", "rich"])
    if asked.json:
        print(json.dumps({"environment": facts, "progress": records}))
        return
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print_table("Progress of acnn match", records)


def recorded(words: list[str], places: dict[str, str]) -> list[tuple[float, str]]:
    """(seconds since the start, text written) of a command in a terminal; the last is its end, without text."""
    master, slave = pty.openpty()
    screen = {"TERM": "xterm", "COLUMNS": "140", "LINES": "40"}
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "acnn", *words],
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env={**os.environ, **screen, **places},
    )
    os.close(slave)
    written = []
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # the other end is closed
            data = b""
        written.append((time.monotonic() - began, data.decode(errors="ignore")))
        if not data:
            break
    os.close(master)
    if process.wait():
        raise SystemExit(
            f"acnn {' '.join(words)}: exit code {process.returncode}\n{''.join(text for _, text in written)}"
        )
    return written


def measured(written: list[tuple[float, str]]) -> Record:
    """Numbers of a recording."""
    end = written[-1][0]
    elapsed, changes, lefts = None, [0.0], []
    for moment, text in written:
        for line in re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)):
            found = SHOWN.search(line)
            if not found:
                continue
            if found.groups()[:3] != elapsed:
                elapsed = found.groups()[:3]
                changes.append(moment)
            if found[4]:
                hours, minutes, seconds = map(int, found.groups()[3:])
                lefts.append((moment, 3600 * hours + 60 * minutes + seconds))
    still = max(after - before for before, after in zip(changes, [*changes[1:], end], strict=True))
    known = [left for moment, left in lefts if moment <= end / 2]
    left = known[-1] if known else None
    ratio = None if left is None else left / (end / 2)
    return {"seconds": end, "first_shown_s": changes[1], "still_s": still, "left_s": left, "ratio": ratio}


if __name__ == "__main__":
    main()
