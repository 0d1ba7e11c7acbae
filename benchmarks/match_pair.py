"""Where the time of `acnn match A B` goes, from 5,000 to a million vertices, beside pyFM's functional map and ZoomOut.

    python benchmarks/match_pair.py [--sizes 5000,12500,50000,200000,1000000] [--descriptors] [--no-peer] [--json]

Two built-in humans in different poses, triangulated differently and subdivided to each size, are written to PLY files,
then matched with `acnn.match_files` in a fresh process on two cores after compiled code was loaded, with an empty cache
but for the eigenpairs of the model's reference: reading, working copies, operators, network, refinement, lifting, all
files and the page. Errors are mean Euclidean distances on B
between 1,000 lifted matches and the ground truth, over the root of B's area, times 100. pyFM (`pip install -e
".[bench]"`) runs at 5,000 vertices with its defaults, functional map and ZoomOut, reading included. It is not trained,
and may exchange left and right, so its error is no comparison.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _table import Record, environment, peak_mb, print_table, run_fresh, serve

SIZES = (5000, 12_500, 50_000, 200_000, 1_000_000)
HUMANS = (0, 11)
"""Built-in humans of the training split, of two subjects, in different poses."""

REMESHED = 12_500
"""Largest number of vertices that is triangulated; larger meshes are subdivided from about as many."""

FLOORS = {5000: 6.0, 12_500: 8.0, 50_000: 20.0, 200_000: 60.0, 1_000_000: 180.0}
"""Seconds on two idle cores that a match may take."""


class Stages:
    """A progress that keeps the processor and wall time of every stage."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}
        self._name, self._since = "start", (time.process_time(), time.perf_counter())

    def __call__(self, done: int, total: int) -> None:
        """Nothing is shown."""

    def stage(self, name: str) -> Stages:
        now = time.process_time(), time.perf_counter()
        spent = self.times.setdefault(self._name, [0.0, 0.0])
        spent[0] += now[0] - self._since[0]
        spent[1] += now[1] - self._since[1]
        self._name, self._since = name, now
        return self


def make_pair(size: int, folder: Path) -> None:
    """Write A and B of some `size` vertices, and the ground truth of 1,000 vertices of A as points in space."""
    from acnn.datasets import builtin_humans
    from acnn.shapes import Mesh, save
    from acnn.surface.simplify import remesh
    from acnn.surface.simplify import split_long_edges as split

    humans = [builtin_humans().mesh(k) for k in HUMANS]
    rounds = 0
    while size / 4**rounds > REMESHED:
        rounds += 1
    made = [remesh(human, vertices=round(size / 4**rounds), seed=k) for k, human in zip(HUMANS, humans, strict=True)]
    rows = np.random.default_rng(0).choice(len(made[0].mesh.vertices), 1000, replace=False)
    truth = made[0].truth.interpolate(humans[1].vertices[humans[1].faces])[rows]
    for name, one in zip("ab", made, strict=True):
        vertices, faces = one.mesh.vertices, one.mesh.faces
        for _ in range(rounds):  # every edge is longer than 0, so that each face is split into four
            vertices, faces = split(vertices, faces, 0.0, limit=len(vertices) + 1)
        save(Mesh(vertices, faces), folder / f"{name}.ply")
    np.savez(folder / "truth.npz", rows=rows, truth=truth)


def match_job(folder: str, method: str) -> Callable[[], Record]:
    """Match the files of a folder."""
    from acnn.runs.match import match
    from acnn.runs.match_files import match_files
    from acnn.viewer.match_page import write_match_page

    where = Path(folder)
    os.environ["ACNN_CACHE"] = str(where / f"cache_{method}")
    _warm_up(match, method)

    def run() -> Record:
        stages, began, processor = Stages(), time.perf_counter(), time.process_time()
        pages: list[Any] = []
        out = where / f"result_{method}"
        options: dict[str, Any] = {"method": method, "progress": stages, "keep": pages.append}
        facts = match_files(where / "a.ply", where / "b.ply", None, out, **options)
        stages.stage("page")
        write_match_page(pages[0], out / "match.html")
        stages.stage("end")
        seconds, used = time.perf_counter() - began, time.process_time() - processor
        stored = np.load(where / "truth.npz")
        error = _error(np.load(out / "map.npz")["a_to_b"][stored["rows"]], stored["truth"], where)
        return {
            **{"vertices": facts["vertices"], "route": facts["route"], "verdict": facts["verdict"]},
            **{"seconds": seconds, "processor": used, "peak_mb": peak_mb(), "error": error},
            "_stages": {name: spent for name, spent in stages.times.items() if max(spent) > 0.005},
        }

    return run


def peer_job(folder: str) -> Callable[[], Record]:
    """PyFM's functional map and ZoomOut of the same files."""
    from pyFM.functional import FunctionalMapping
    from pyFM.mesh import TriMesh

    from acnn.shapes import load

    where = Path(folder)

    def run() -> Record:
        began, processor = time.perf_counter(), time.process_time()
        a, b = (load(where / f"{name}.ply", kind="mesh") for name in "ab")
        # its maps go from the second mesh to the first
        model = FunctionalMapping(TriMesh(b.vertices, b.faces), TriMesh(a.vertices, a.faces))
        model.preprocess()
        model.fit()
        model.get_p2p(FM=model.zoomout_refine())
        seconds, used = time.perf_counter() - began, time.process_time() - processor
        return {"vertices": len(a.vertices), "seconds": seconds, "processor": used, "peak_mb": peak_mb()}

    return run


def _warm_up(match: Callable[..., Any], method: str) -> None:
    """Load or compile everything that a match uses."""
    from acnn.datasets import builtin_humans
    from acnn.surface.simplify import remesh

    a, b = (remesh(builtin_humans().mesh(k), vertices=600, seed=k).mesh for k in (20, 31))
    match(a, b, method=method, working_size=300)


def _error(matched: np.ndarray, truth: np.ndarray, folder: Path) -> float:
    from acnn.shapes import load
    from acnn.surface.surface import surface_of

    b = load(folder / "b.ply", kind="mesh")
    apart = np.linalg.norm(b.vertices[matched] - truth, axis=1)
    return float(100 * apart.mean() / np.sqrt(surface_of(b, unit=1.0).vertex_areas.sum()))


JOBS = {"match": match_job, "peer": peer_job}


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] == "--job":
        serve(JOBS, sys.argv[2], sys.argv[3])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--descriptors", action="store_true", help="also match by descriptors")
    parser.add_argument("--no-peer", action="store_true", help="without pyFM")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    report: dict[str, Any] = {"environment": environment(["acnn", "numpy", "scipy", "numba", "torch", "pyfmaps"])}
    rows, stages = [], []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            where = Path(folder) / str(size)
            where.mkdir()
            make_pair(size, where)
            for method in ("auto", "descriptors") if options.descriptors else ("auto",):
                record = run_fresh("match", threads=2, folder=str(where), method=method)
                rows.append({"what": f"acnn match ({method})", **record, "floor": FLOORS.get(size)})
                for name, (processor, wall) in record["_stages"].items():
                    stages.append(
                        {"vertices": size, "method": method, "stage": name, "processor": processor, "wall": wall}
                    )
            if size == 5000 and not options.no_peer:
                rows.append({"what": "pyFM", **run_fresh("peer", threads=2, folder=str(where))})
    report |= {"pairs": rows, "stages": stages}
    if options.json:
        sys.stdout, output = sys.stderr, sys.stdout
    note = "seconds: wall time on two cores; processor: summed over both. Floors are for two idle cores."
    print_table("Matching two humans", rows, note)
    print_table("Where the time goes (seconds)", stages)
    if options.json:
        print(json.dumps(report), file=output)


if __name__ == "__main__":
    main()
