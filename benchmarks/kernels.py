"""What anisotropic kernels cost and how good they are, beside other ways to get them, all in one run.

    python benchmarks/kernels.py [--shape FILE] [--quick] [--only speed|growth|accuracy|agreement] [--json]

Every measurement runs in a fresh process on two cores; compiled code is loaded before the clock starts. With ACNN_DATA
set the shape is the first FAUST registration (6,890 vertices), otherwise the built-in human triangulated to that size.
`--quick` takes small shapes, to see that everything runs: its ratios say little.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _kernel_truth import accuracy, agreement
from _shapes import reference_shape, torus
from _table import CORES, Job, Record, environment, peak_mb, print_table, resident_mb, run_fresh, run_together, serve

SECTIONS = ("speed", "growth", "accuracy", "agreement")
PACKAGES = ("acnn", "numpy", "scipy", "numba", "lapy", "robust_laplacian")
SCALES = (3.0, 6.0, 12.0, 24.0)
ANGLES = 16
PAIRS = 300
LAPY_ANISOTROPY = 40.0  # LaPy's conductivity is exp(-a |curvature|): about 1/100 on a limb of radius 8 at diameter 200

WAYS = {
    "rational": "acnn, rational",
    "squaring": "acnn, squaring",
    "truncated": f"truncated spectrum, k = {PAIRS}",
    "all": "all eigenpairs, dense eigh",
    "lapy": f"LaPy anisotropic, eigs, k = {PAIRS}",
    "robust": f"robust_laplacian, eigsh, k = {PAIRS}",
}


def speed(shape: str | None, quick: bool) -> list[Record]:
    """Seconds and memory for all clipped rows of 16 angles x 4 scales, one record for each way to get them."""
    common = {"shape": shape, "vertices": 2500 if quick else 6890, "rows": 10 if quick else 50}
    records = []
    for way in WAYS:
        say(f"speed: {WAYS[way]}")
        try:
            if way in ("rational", "squaring"):
                found = [run_fresh("patches", kernel=way, **common)]
                seconds, cpu, timed = found[0]["seconds"], found[0]["cpu"], f"all {ANGLES} angles"
            else:
                # One process per core, not threads in one: Lanczos hardly gains from them, and where the machine is
                # busy two BLAS threads that wait for each other take several times as long as one.
                jobs = [("eigenpairs", {"way": way, "angle": i * ANGLES // CORES, **common}) for i in range(CORES)]
                found = run_together(jobs)
                seconds = max(r["setup"] for r in found) + max(r["each"] for r in found) * ANGLES / CORES
                cpu = found[0]["setup_cpu"] + sum(r["cpu"] for r in found) * ANGLES / CORES
                timed = f"{CORES} angles, scaled up"
        except RuntimeError as error:
            say(str(error))
            records.append({"way": WAYS[way], "timed": "failed or not installed"})
            continue
        records.append(
            {
                "way": WAYS[way],
                "timed": timed,
                "seconds": seconds,
                "x rational": seconds / records[0]["seconds"] if records else 1.0,
                "CPU s": cpu,
                "x CPU": cpu / records[0]["CPU s"] if records else 1.0,
                "peak MB": sum(r["peak"] for r in found),
                "entries/row": found[0]["entries"],
                "L1 error median": found[0]["error"],
                "_shape": found[0]["shape"],
                "_vertices": found[0]["vertices"],
            }
        )
    return records


def growth(quick: bool) -> dict[str, list[Record]]:
    """Cost of one angle on tori of growing size: scales in units of (mean edge)^2, then fixed scales."""
    sizes = [2000, 5000, 12000] if quick else [7000, 20000, 60000, 200000]
    fixed = sizes if quick else sizes[:3]
    tables: dict[str, list[Record]] = {"by edge": [], "fixed": []}
    for n in sizes:
        say(f"growth: {n} vertices, t by mean edge")
        multiples = [0.5, 1.0, 2.0, 4.0] if quick else [1.5, 3.0, 6.0, 12.0]
        tables["by edge"].append(_growth_record(run_fresh("growth", size=n, edge_of=n, multiples=multiples)))
    for n in fixed:
        say(f"growth: {n} vertices, t fixed")
        record = _growth_record(run_fresh("growth", size=n, edge_of=sizes[0], multiples=[0.375, 0.75, 1.5, 3.0]))
        first = tables["fixed"][0] if tables["fixed"] else record
        for name in ("us/entry", "CPU us/entry"):
            record[f"x first, {name}"] = record[name] / first[name]
        tables["fixed"].append(record)
    columns = ("vertices", "seconds", "CPU s", "MB used")
    n, seconds, cpu, memory = (np.array([r[name] for r in tables["by edge"]], dtype=float) for name in columns)
    tables["exponents"] = [
        {
            "of": name,
            "fitted": float(np.polyfit(np.log(n), np.log(values), 1)[0]),
            "steepest step": float(np.max(np.diff(np.log(values)) / np.diff(np.log(n)))),
        }
        for name, values in (("seconds", seconds), ("CPU seconds", cpu), ("memory", memory))
    ]
    return tables


def _growth_record(found: Record) -> Record:
    return {
        "vertices": found["vertices"],
        "scales": ", ".join(f"{t:.3g}" for t in found["scales"]),
        "seconds": found["seconds"],
        "CPU s": found["cpu"],
        "entries/row": found["entries"] / found["vertices"] / len(found["scales"]),
        "us/entry": 1e6 * found["seconds"] / found["entries"],
        "CPU us/entry": 1e6 * found["cpu"] / found["entries"],
        "peak MB": found["peak"],
        "MB used": found["peak"] - found["before"],
    }


def patches_job(kernel: str, shape: str | None, vertices: int, rows: int) -> Callable[[], Record]:
    """Build the whole patch operator of the reference shape with one of the package's own kernels."""
    from dataclasses import replace

    from acnn.patches import PatchSettings, build_patches, check_kernels
    from acnn.surface import surface_of

    settings = PatchSettings(angles=ANGLES, scales=SCALES, kernel=kernel)  # type: ignore[arg-type]
    name, mesh = reference_shape(shape, vertices)
    build_patches(torus(300), settings, threads=CORES)
    check_kernels(surface_of(torus(300)), replace(settings, angles=1), 2, threads=CORES)

    def run() -> Record:
        began, worked = time.perf_counter(), time.process_time()
        operator = build_patches(mesh, settings, threads=CORES)
        seconds, cpu, peak = time.perf_counter() - began, time.process_time() - worked, peak_mb()
        errors = check_kernels(surface_of(mesh), replace(settings, angles=1), rows, threads=CORES)
        entries, count = len(operator.values) / (len(operator.start) - 1), len(mesh.vertices)
        error = errors["l1_error_median"]
        record = {"seconds": seconds, "cpu": cpu, "peak": peak, "entries": entries, "error": error}
        return {**record, "shape": name, "vertices": count}

    return run


def eigenpairs_job(way: str, angle: int, shape: str | None, vertices: int, rows: int) -> Callable[[], Record]:
    """Eigenpairs of one operator, and the clipped rows of its kernels at every scale formed from them."""
    from acnn.patches import PatchSettings
    from acnn.surface import exact_rows, principal_frames, spectral_rows, stiffness_parts, surface_of

    settings = PatchSettings(angles=ANGLES, scales=SCALES)
    name, mesh = reference_shape(shape, vertices)
    solve = {"truncated": _truncated, "all": _all_pairs, "lapy": _lapy, "robust": _robust}[way]
    small = surface_of(torus(1000))
    warm = solve(small, stiffness_parts(small, principal_frames(small)).matrix())
    _clipped_rows(*warm, small.vertex_areas, settings.keep)

    def run() -> Record:
        began, started = time.perf_counter(), time.process_time()
        surface = surface_of(mesh)
        parts = stiffness_parts(surface, principal_frames(surface, settings.smoothing))
        setup, worked = time.perf_counter() - began, time.process_time()
        matrix = parts.matrix(settings.alpha, settings.thetas[angle])
        values, functions = solve(surface, matrix)
        entries = _clipped_rows(values, functions, surface.vertex_areas, settings.keep)
        each, cpu, peak = time.perf_counter() - began - setup, time.process_time() - worked, peak_mb()
        error = None
        if way in ("truncated", "all"):  # the others have operators of their own
            n, mass = len(mesh.vertices), surface.vertex_areas
            some = np.sort(np.random.default_rng(0).choice(n, rows, replace=False)).astype(np.int32)
            wrong = [
                spectral_rows(values, functions, mass, t, some) - exact_rows(matrix, mass, t, some) for t in SCALES
            ]
            error = float(np.median(np.abs(wrong).sum(axis=2)))
        count = len(mesh.vertices)
        record = {"setup": setup, "each": each, "cpu": cpu, "peak": peak, "entries": entries / count / len(SCALES)}
        return {**record, "setup_cpu": worked - started, "error": error, "shape": name, "vertices": count}

    return run


def _truncated(surface: Any, matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    from acnn.surface import eigenpairs

    return eigenpairs(matrix, surface.vertex_areas, PAIRS)


def _all_pairs(surface: Any, matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    from scipy.linalg import eigh

    root = np.sqrt(surface.vertex_areas)
    values, vectors = eigh(matrix.toarray() / np.outer(root, root), driver="evd", overwrite_a=True, check_finite=False)
    vectors /= root[:, None]
    return np.maximum(values, 0.0), vectors


def _lapy(surface: Any, matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    from lapy import Solver, TriaMesh

    return Solver(TriaMesh(surface.vertices, surface.faces), lump=True, aniso=LAPY_ANISOTROPY).eigs(PAIRS)


def _robust(surface: Any, matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    from robust_laplacian import mesh_laplacian
    from scipy.sparse.linalg import eigsh

    stiffness, mass = mesh_laplacian(surface.vertices, surface.faces)
    return eigsh(stiffness, PAIRS, mass, sigma=1e-8)


def _clipped_rows(values: np.ndarray, functions: np.ndarray, mass: np.ndarray, keep: float) -> int:
    """Form all rows at every scale, clip, renormalise and round them as a patch operator does; returns the entries."""
    from acnn.surface.sparse_rows import clip_dense, renormalise_and_round

    weighted = functions.T * mass
    entries = 0
    for t in SCALES:
        decay = np.exp(-t * values)
        for first in range(0, len(mass), 1024):
            block = (functions[first : first + 1024] * decay) @ weighted
            _, counts, _, _, kept = clip_dense(block, keep)
            renormalise_and_round(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), kept, 1)
            entries += len(kept)
    return entries


def growth_job(size: int, edge_of: int, multiples: list[float]) -> Callable[[], Record]:
    """One angle on a torus, with scales in units of the squared mean edge of a torus of `edge_of` vertices."""
    from acnn.patches import PatchSettings, build_patches
    from acnn.surface import surface_of

    mesh, other = torus(size), surface_of(torus(edge_of))
    # Not `auto`: on coarse tori the largest scale may be one that it keeps as eigenpairs.
    scales = tuple(m * other.mean_edge**2 for m in multiples)
    settings = PatchSettings(angles=1, scales=scales, kernel="rational")
    build_patches(torus(300), settings, threads=CORES)
    del other
    before = resident_mb()

    def run() -> Record:
        began, worked = time.perf_counter(), time.process_time()
        operator = build_patches(mesh, settings, threads=CORES)
        seconds, cpu, peak = time.perf_counter() - began, time.process_time() - worked, peak_mb()
        record = {"seconds": seconds, "cpu": cpu, "peak": peak, "before": before, "entries": len(operator.values)}
        return {**record, "vertices": len(mesh.vertices), "scales": settings.scales}

    return run


def truth_job(section: str, shape: str | None, quick: bool) -> Callable[[], Record]:
    """The tables on accuracy or agreement."""
    compute = accuracy if section == "accuracy" else agreement
    return lambda: compute(shape, quick, say)


JOBS: dict[str, Job] = {
    "patches": patches_job,
    "eigenpairs": eigenpairs_job,
    "growth": growth_job,
    "truth": truth_job,
}


def say(text: str) -> None:
    """Tell on standard error what is being done."""
    print(f"... {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", metavar="FILE", help="a mesh, instead of FAUST or the built-in human")
    parser.add_argument("--quick", action="store_true", help="small shapes: only to see that everything runs")
    parser.add_argument("--only", choices=SECTIONS, help="one part of it")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object on standard output, tables on standard error"
    )
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        serve(JOBS, *options.job)
        return 0
    results: Record = {"environment": environment(PACKAGES), "quick": options.quick}
    with contextlib.redirect_stdout(sys.stderr if options.json else sys.stdout):
        for name, value in results["environment"].items():
            print(f"{name:18s} {value}")
        for section in [options.only] if options.only else SECTIONS:
            if section == "speed":
                results[section] = speed(options.shape, options.quick)
                _show_speed(results[section])
            elif section == "growth":
                results[section] = growth(options.quick)
                _show_growth(results[section])
            else:
                tables = run_fresh("truth", section=section, shape=options.shape, quick=options.quick)
                results[section] = tables
                for title, table in tables.items():
                    print_table(title, table["records"], table["note"])
    if options.json:
        print(json.dumps(results))
    return 0


def _show_speed(records: list[Record]) -> None:
    scales = ", ".join(f"{t:g}" for t in SCALES)
    about = f"{records[0].get('_shape')}: {records[0].get('_vertices')} vertices, {ANGLES} angles x scales {scales}"
    print_table(
        f"Speed. {about}, alpha 100, 90 % of the mass kept, {CORES} cores",
        records,
        "Ways by eigenpairs: one angle per core, each in a process of its own (peak MB is their sum), scaled up to\n"
        f"{ANGLES} angles; all form, clip and round their rows in the same way. LaPy has one direction and\n"
        "robust_laplacian none: their times are those of as many such operators, and their errors do not compare.\n"
        "CPU s: of all threads, which a busy machine changes less.\n"
        "Wanted: rational at most 15 s and 2000 MB, truncated at least 2 x, all eigenpairs at least 50 x as long.",
    )


def _show_growth(tables: dict[str, list[Record]]) -> None:
    print_table(
        f"Growth. Irregular torus, one angle, scales in units of (mean edge)^2, {CORES} cores", tables["by edge"]
    )
    print_table(
        "Growth exponents of the table above (wanted: at most 1.2)",
        tables["exponents"],
        "Memory: 'MB used', the peak less what the process held before it began.",
    )
    print_table(
        "Growth at fixed scales",
        tables["fixed"],
        "Wanted: time per kept entry at most 1.5 x that of the first.",
    )


if __name__ == "__main__":
    sys.exit(main())
