"""A short benchmark of the main parts on one built-in human, and of a step that other libraries can do, too."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from acnn.memory import peak_memory_mb
from acnn.types import Progress

PAIRS = 200
"""Eigenpairs of the Laplacian that acnn and its peers compute."""


def bench(*, peers: bool = False, repeat: int = 2, progress: Progress | None = None) -> dict[str, Any]:
    """Time the parts one after another, in this process.

    Each part runs once to compile or load what it needs, and then `repeat` times; the best time counts.

    - peers: compare the eigenpairs of the Laplacian with LaPy and robust_laplacian, where they are installed
    - repeat: how often each is timed
    - progress: called with (done, in all)

    Returns `vertices`, the settings, and `parts`: for each its `name`, `seconds`, and `peak_memory_mb`, the most that
    the process has held until then; with `peers` also `ratio`, its time over that of acnn.
    """
    parts = _parts()
    if peers:
        parts |= {"eigenpairs": _acnn_pairs()} | _peers()
    rows: list[dict[str, Any]] = []
    for done, (name, work) in enumerate(parts.items()):
        if progress:
            progress(done, len(parts))
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
    return {
        "vertices": len(_human().vertices),
        "angles": config.patches.angles,
        "scales": list(config.patches.scales),
        "architecture": config.train.architecture,
        "repeat": repeat,
        "parts": rows,
    }


def _parts() -> dict[str, Callable[[], Any]]:
    """The parts by name; what one needs of another is made beforehand."""
    import torch

    from acnn.correspondence import refine, soft_map_from_features
    from acnn.descriptors.settings import describe_surface
    from acnn.network import AcnnModel, Patches
    from acnn.patches import build_patches
    from acnn.surface import surface_of

    config, mesh = _config(), _human()
    surface = surface_of(mesh)
    operator = build_patches(surface, config.patches)
    patches = Patches.of(operator)
    values = torch.from_numpy(np.array(describe_surface(surface, config.descriptors), np.float32))
    n = operator.n
    torch.manual_seed(0)
    settings = config.patches
    model = AcnnModel(config.train.architecture, values.shape[1], n, settings.angles, len(settings.scales))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    rows = torch.arange(n)[: config.train.loss_vertices]
    # every tenth vertex matched wrongly, as a network might
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
            return soft_map_from_features(features, model.classifier.weight, model.classifier.bias)

    return {
        "patch operator": lambda: build_patches(surface, config.patches),
        "SHOT": lambda: describe_surface(surface, config.descriptors),
        "training step": step,
        "inference": infer,
        "refinement": lambda: refine(start, surface, surface, "zoomout"),
    }


def _acnn_pairs() -> Callable[[], Any]:
    from acnn.surface import eigenpairs, stiffness, surface_of

    surface = surface_of(_human())
    return lambda: eigenpairs(stiffness(surface), surface.vertex_areas, PAIRS)


def _peers() -> dict[str, Callable[[], Any]]:
    """The same eigenpairs by other libraries, of those that are installed."""
    from acnn.surface import surface_of

    surface = surface_of(_human())
    found: dict[str, Callable[[], Any]] = {}
    try:
        from lapy import Solver, TriaMesh

        found["eigenpairs, LaPy"] = lambda: Solver(TriaMesh(surface.vertices, surface.faces), lump=True).eigs(PAIRS)
    except ImportError:
        pass
    try:
        from robust_laplacian import mesh_laplacian
        from scipy.sparse.linalg import eigsh

        def robust() -> Any:
            matrix, mass = mesh_laplacian(surface.vertices, surface.faces)
            return eigsh(matrix, PAIRS, mass, sigma=1e-8)

        found["eigenpairs, robust_laplacian"] = robust
    except ImportError:
        pass
    return found


def _human() -> Any:
    from acnn.datasets import builtin_human

    return builtin_human(0, 0)


def _config() -> Any:
    from acnn.training import preset_config

    return preset_config("quick")
