"""State of the machine: speed and memory of the main steps (`acnn bench`), versions and self-test (`acnn doctor`)."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from acnn._version import __version__
from acnn.cache import cache_folder, cache_summary
from acnn.files import can_write
from acnn.progress import Progress
from acnn.reports import Report
from acnn.runs.cost import machine_memory_mb, peak_memory_mb

PAIRS = 200
"""Number of Laplacian eigenpairs that acnn and the other libraries compute."""

PACKAGES = ("numpy", "scipy", "torch", "numba", "trimesh", "matplotlib", "potpourri3d", "pygeodesic", "safetensors")
EXTRAS = {
    "app": "starlette",
    "view": "viser",
    "humans": "anny",
    "dask": "distributed",
    "log": "tensorboard",
    "bench": "robust_laplacian",
}
"""The main dependency of each optional extra of acnn."""

MAX_KERNEL_ERROR, MAX_LAYER_ERROR = 0.02, 1e-3
"""Largest errors that pass the self-test: L1 error of a kernel row, and largest difference of a layer output."""


@dataclass(frozen=True, eq=False)
class BenchReport(Report):
    """What `acnn bench --json` prints.

    Attributes
    ----------
    vertices, angles, scales, architecture, repeat
        The shape and the settings.
    parts : list of dict
        For each step its `name`, `seconds`, and `peak_memory_mb` of the process up to then; beside peers also `ratio`,
        its time divided by that of acnn.
    """

    vertices: int
    angles: int
    scales: list[float]
    architecture: str
    repeat: int
    parts: list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class DoctorReport(Report):
    """What `acnn doctor --json` prints; the only paths in it are those of the cache and of `ACNN_DATA`.

    Attributes
    ----------
    python, platform, versions, extras, cores, threads, memory_mb
        Of this machine.
    cache, data, self_test : dict
        As `cache_state`, `data_state` and `self_test` return them.
    problems : list of str
        Messages with advice.
    """

    python: str
    platform: str
    versions: dict[str, str | None]
    extras: dict[str, str | None]
    cores: int
    threads: dict[str, int | None]
    memory_mb: dict[str, float]
    cache: dict[str, Any]
    data: dict[str, Any]
    self_test: dict[str, Any]
    problems: list[str] = field(default_factory=list)


def bench(*, peers: bool = False, repeat: int = 2, progress: Progress | None = None) -> BenchReport:
    """Time the main steps one after the other, in this process.

    Each step runs once for compilation and loading, and then `repeat` times; the best time counts.

    Parameters
    ----------
    peers : bool
        Compare Laplacian eigenpairs with LaPy and robust_laplacian, if installed.
    repeat : int
        Number of timed runs of each step.
    progress : Progress or None
        Called with (done, total).

    Returns
    -------
    BenchReport
    """
    steps = _steps()
    if peers:
        steps |= {"eigenpairs": _acnn_pairs()} | _peers()
    rows: list[dict[str, Any]] = []
    for done, (name, work) in enumerate(steps.items()):
        if progress:
            progress(done, len(steps))
        work()
        gc.collect()
        times = []
        for _ in range(max(1, repeat)):
            began = time.perf_counter()
            work()
            times.append(time.perf_counter() - began)
        rows.append({"name": name, "seconds": min(times), "peak_memory_mb": peak_memory_mb()})
    base = next((row["seconds"] for row in rows if row["name"] == "eigenpairs"), None)
    for row in rows:
        if base and row["name"].startswith("eigenpairs"):
            row["ratio"] = row["seconds"] / base
    config = _config()
    return BenchReport(
        vertices=len(_human().vertices),
        angles=config.patches.angles,
        scales=list(config.patches.scales),
        architecture=config.train.architecture,
        repeat=repeat,
        parts=rows,
    )


def examine() -> DoctorReport:
    """Collect everything that `acnn doctor` reports."""
    versions = {"acnn": __version__} | {name: _version(name) for name in PACKAGES}
    report = DoctorReport(
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        versions=versions,
        extras={extra: _version(package) for extra, package in EXTRAS.items()},
        cores=_cores(),
        threads=_threads(),
        memory_mb=machine_memory_mb() | {"peak": peak_memory_mb()},
        cache=cache_state(cache_folder()),
        data=data_state(os.environ.get("ACNN_DATA")),
        self_test=self_test(),
    )
    return replace(report, problems=problems(report))


def problems(facts: Mapping[str, Any]) -> list[str]:
    """List the problems in what `examine` collects.

    Parameters
    ----------
    facts : mapping of str to Any
        A report of `examine`.

    Returns
    -------
    list[str]
        One message per problem, with advice; empty if there are none.
    """
    found = [f"{name} is missing: pip install {name}" for name, v in facts["versions"].items() if v is None]
    if not facts["cache"]["writable"]:
        found.append(f"The cache {facts['cache']['folder']} is not writable: set ACNN_CACHE to a writable folder.")
    if facts["data"]["set"] and not facts["data"]["exists"]:
        found.append("ACNN_DATA names a folder that does not exist: correct it, or unset it.")
    if not facts["self_test"]["passed"]:
        found.append(f"The self-test failed: {facts['self_test']['why']}. Reinstall acnn, or report it.")
    memory = facts["memory_mb"]["available"]
    if memory < 1500:
        found.append(f"{memory:.0f} MB of memory are available, but training needs 2000 or more. Close other programs.")
    return found


def cache_state(folder: Path) -> dict[str, Any]:
    """Return the entries of `acnn.cache.CacheSummary`, and `writable`."""
    return cache_summary(folder) | {"writable": can_write(folder)}


def data_state(where: str | None) -> dict[str, Any]:
    """Describe the folder of research data.

    Parameters
    ----------
    where : str or None
        Value of `ACNN_DATA`.

    Returns
    -------
    dict[str, Any]
        `set`, `folder`, `exists`, and `found`, the names of its subfolders.
    """
    if not where:
        return {"set": False, "folder": None, "exists": False, "found": []}
    folder = Path(where)
    try:
        found = sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return {"set": True, "folder": where, "exists": False, "found": []}
    return {"set": True, "folder": where, "exists": True, "found": found}


def self_test() -> dict[str, Any]:
    """Compare a kernel with the exact one, and a layer with the sum that defines it, on a small ellipsoid.

    Returns
    -------
    dict[str, Any]
        `passed`, `why` where not, `kernel_error`, `layer_error` and `seconds`.
    """
    began = time.perf_counter()
    try:
        kernel, layer = _kernel_error(), _layer_error()
    except Exception as problem:  # any failure is a result of the test
        seconds = time.perf_counter() - began
        return {"passed": False, "why": f"{type(problem).__name__}: {problem}", "seconds": seconds}
    seconds = time.perf_counter() - began
    passed = kernel < MAX_KERNEL_ERROR and layer < MAX_LAYER_ERROR
    why = "" if passed else f"errors {kernel:.2g} and {layer:.2g} are too large"
    return {"passed": passed, "why": why, "kernel_error": kernel, "layer_error": layer, "seconds": seconds}


def _steps() -> dict[str, Callable[[], Any]]:
    """The steps by name; their inputs are computed beforehand."""
    import torch

    from acnn.correspondence.refine import refine
    from acnn.correspondence.soft_map import soft_map_from_features
    from acnn.descriptors.settings import describe_surface
    from acnn.network.model import ShapeNetwork
    from acnn.network.patches import Patches
    from acnn.patches.anisotropic import build_patches
    from acnn.surface.surface import surface_of

    config, mesh = _config(), _human()
    surface = surface_of(mesh)
    operator = build_patches(surface, config.patches)
    patches = Patches.of(operator)
    values = torch.from_numpy(np.array(describe_surface(surface, config.descriptors), np.float32))
    n = operator.n
    torch.manual_seed(0)
    settings = config.patches
    model = ShapeNetwork(config.train.architecture, values.shape[1], n, settings.angles, len(settings.scales))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    rows = torch.arange(n)[: config.train.loss_vertices]
    # one wrong match in ten, as a network might produce
    rng = np.random.default_rng(0)
    start = np.where(rng.random(n) < 0.1, rng.integers(0, n, n), np.arange(n)).astype(np.int32)

    def step() -> None:
        model.train()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(values, patches, rows), rows).backward()
        optimiser.step()

    def infer() -> Any:
        model.eval()
        with torch.no_grad():
            features = model.features(values, patches)
            assert model.classifier is not None
            return soft_map_from_features(features, model.classifier.weight, model.classifier.bias)

    return {
        "patch operator": lambda: build_patches(surface, config.patches),
        "SHOT": lambda: describe_surface(surface, config.descriptors),
        "training step": step,
        "inference": infer,
        "refinement": lambda: refine(start, surface, surface, "zoomout"),
    }


def _acnn_pairs() -> Callable[[], Any]:
    from acnn.surface.laplacian import stiffness
    from acnn.surface.spectra import eigenpairs
    from acnn.surface.surface import surface_of

    surface = surface_of(_human())
    return lambda: eigenpairs(stiffness(surface), surface.vertex_areas, PAIRS)


def _peers() -> dict[str, Callable[[], Any]]:
    """The same eigenpairs by other libraries, as far as they are installed."""
    from acnn.surface.surface import surface_of

    surface = surface_of(_human())
    solvers: dict[str, Callable[[], Any]] = {}
    try:
        from lapy import Solver, TriaMesh

        solvers["eigenpairs, LaPy"] = lambda: Solver(TriaMesh(surface.vertices, surface.faces), lump=True).eigs(PAIRS)
    except ImportError:
        pass
    try:
        from robust_laplacian import mesh_laplacian
        from scipy.sparse.linalg import eigsh

        def robust() -> Any:
            matrix, mass = mesh_laplacian(surface.vertices, surface.faces)
            return eigsh(matrix, PAIRS, mass, sigma=1e-8)

        solvers["eigenpairs, robust_laplacian"] = robust
    except ImportError:
        pass
    return solvers


def _human() -> Any:
    from acnn.datasets.builtin import builtin_human

    return builtin_human(0, 0)


def _config() -> Any:
    from acnn.training.config import preset_config

    return preset_config("quick")


def _kernel_error() -> float:
    from acnn.patches.anisotropic import check_kernels
    from acnn.patches.settings import PatchSettings
    from acnn.surface.surface import surface_of

    settings = PatchSettings(angles=2, scales=(200.0,), kernel="rational")
    report = check_kernels(surface_of(_ellipsoid()), settings, rows=5)
    return float(report["l1_error_max"])


def _layer_error() -> float:
    import torch

    from acnn.network.conv import IntrinsicConv
    from acnn.network.patches import Patches
    from acnn.patches.anisotropic import build_patches
    from acnn.patches.settings import PatchSettings

    operator = build_patches(_ellipsoid(), PatchSettings(angles=2, scales=(200.0,), kernel="rational"))
    torch.manual_seed(0)
    layer = IntrinsicConv(3, 4, angles=2, scales=1)
    f = torch.randn(operator.n, 3)
    with torch.no_grad():
        output = layer(f, Patches.of(operator)).numpy()
    weight = layer.weight.detach().numpy()
    expected = np.einsum("natp,atpq->nq", operator.apply(f.numpy()), weight)
    return float(np.abs(output - expected).max())


def _ellipsoid() -> Any:
    """An ellipsoid of 162 vertices with three different axes."""
    import trimesh

    from acnn.shapes.mesh import Mesh

    sphere = trimesh.creation.icosphere(subdivisions=2)
    return Mesh(np.asarray(sphere.vertices) * [1.0, 1.3, 1.7], np.asarray(sphere.faces, np.int32))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cores() -> int:
    # those available to this process: in a container possibly fewer than the machine has
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _threads() -> dict[str, int | None]:
    threads: dict[str, int | None] = {"torch": None, "numba": None}
    try:
        import torch

        threads["torch"] = torch.get_num_threads()
        import numba

        threads["numba"] = int(numba.get_num_threads())
    except Exception:  # a broken package is reported by the self-test
        return threads
    return threads
