"""Time of the intrinsic convolution layer, forward and backward, beside other ways to do the same with torch.

    python benchmarks/layer.py [SHAPE] [--threads N] [--repeat N] [--no-peers]

Without SHAPE: a thin torus of 6,890 vertices whose area and length are those of a human of that size, with so much of
each kernel kept that there are about as many entries. Times are the best of the repeats; CPU time is that of all
threads together, and says more where others use the cores too.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import torch

from acnn.network import IntrinsicConv, Patches
from acnn.network.products import StoredRows, _tiled, _width
from acnn.patches.anisotropic import build_patches
from acnn.patches.operator import PatchOperator
from acnn.patches.settings import PatchSettings
from acnn.runs.cost import peak_memory_mb
from acnn.shapes import Mesh, Shape, load

LAYERS = {"IC64": (64, 64), "IC128": (64, 128), "IC256": (128, 256)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shape", nargs="?")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)

    shape: Shape = load(options.shape) if options.shape else torus()
    operator = build_patches(shape, PatchSettings(keep=0.9 if options.shape else 0.97))
    began = time.perf_counter()
    patches = Patches.of(operator)
    making = time.perf_counter() - began
    s = operator.settings
    print(f"torch {torch.__version__}, numba {numba.__version__}, numpy {np.__version__}, {platform.machine()}")
    print(f"{options.threads} threads; {operator.n} vertices, {s.angles} angles x {len(s.scales)} scales")
    print(f"{len(operator.values):,} entries; Patches.of took {making * 1e3:.0f} ms\n")
    print(f"{'':34}{'forward':>16}{'backward':>16}{'both':>16}   share of CPU time")
    print(f"{'':34}" + f"{'wall':>8}{'CPU':>8}" * 3 + "   sparse  dense + rest")
    for name, (p, q) in LAYERS.items():
        times = measured(layer_step(IntrinsicConv(p, q, s.angles, len(s.scales)), patches), options.repeat)
        sparse = sparse_time(patches.rows, min(p, q), q)
        share = sparse / (times[1] + times[3])
        report(f"{name} ({p} in)", times, f"{share:9.0%}{1 - share:14.0%}")

    print("\nIC64 (64 in) in other forms")
    layer = IntrinsicConv(64, 64, s.angles, len(s.scales))
    report("bf16 features", measured(layer_step(layer, patches, torch.bfloat16), options.repeat))
    wide = Patches.of(with_wide(operator, 200))
    layer = IntrinsicConv(64, 64, s.angles, len(s.scales) + 2)
    report("and 2 wide scales, 200 eigenpairs", measured(layer_step(layer, wide), options.repeat))
    layer = IntrinsicConv(64, 64, s.angles, len(s.scales), angular_max=True)
    report("angular maximum", measured(layer_step(layer, patches), options.repeat))

    if not options.no_peers:
        print("\nIC64 (64 in) in other ways, same result")
        layer = IntrinsicConv(64, 64, s.angles, len(s.scales))
        f = torch.randn(operator.n, 64)
        one = first_angle(operator)
        small = IntrinsicConv(64, 64, 1, len(s.scales))
        expected = small(f, Patches.of(one))
        report("torch CSR", measured(layer_step(layer, patches.as_matrices()), options.repeat))
        for name, method in (("embedding_bag", embedding_bag(one)), ("gather + bmm", gather_bmm(one))):
            torch.testing.assert_close(method(f, small.weight[0]), expected, atol=1e-4, rtol=1e-4)
            times = measured(peer_step(method, small.weight[0], f), 1)
            report(f"{name} (one angle x {s.angles})", tuple(t * s.angles for t in times))
    print(f"\npeak memory of the whole run {peak_memory_mb():.0f} MB")


def torus(around: int = 265, across: int = 26) -> Mesh:
    """A thin torus with a bumpy skin."""
    u, v = np.meshgrid(np.arange(around), np.arange(across), indexing="ij")
    a, b = 2 * np.pi * u / around, 2 * np.pi * v / across
    small = 6 + 0.6 * np.sin(7 * a) * np.cos(2 * b)
    wide = 55 + small * np.cos(b)
    points = np.stack([wide * np.cos(a), wide * np.sin(a), small * np.sin(b)], axis=-1).reshape(-1, 3)

    def at(i: Any, j: Any) -> Any:
        return (i % around) * across + j % across

    corners = np.stack([at(u, v), at(u + 1, v), at(u + 1, v + 1), at(u, v + 1)], axis=-1).reshape(-1, 4)
    return Mesh(points, np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]]).astype(np.int32))


def measured(step: Callable[[], tuple[float, float, float, float]], repeat: int) -> tuple[float, ...]:
    """Best wall and CPU seconds of forward and of backward, after one step to warm up."""
    step()
    return tuple(np.min([step() for _ in range(repeat)], axis=0))


def layer_step(
    layer: IntrinsicConv, patches: Patches, dtype: torch.dtype = torch.float32
) -> Callable[[], tuple[float, float, float, float]]:
    f = torch.randn(patches.n, layer.in_features).to(dtype).requires_grad_()
    return lambda: timed(lambda: layer(f, patches))


def peer_step(method: Any, weight: torch.Tensor, f: torch.Tensor) -> Callable[[], tuple[float, float, float, float]]:
    f = f.clone().requires_grad_()
    return lambda: timed(lambda: method(f, weight))


def timed(forward: Callable[[], torch.Tensor]) -> tuple[float, float, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    y = forward()
    between = time.perf_counter(), time.process_time()
    y.float().square().mean().backward()
    return between[0] - wall, between[1] - cpu, time.perf_counter() - between[0], time.process_time() - between[1]


def sparse_time(rows: StoredRows | None, gathered: int, scattered: int) -> float:
    """CPU seconds of the sparse products alone: forward on `gathered` channels, backward on `scattered`."""
    from acnn.network.compiled_products import add_gathered, add_scattered

    assert rows is not None
    total = 0.0
    for kernel, channels in ((add_gathered, gathered), (add_scattered, scattered)):
        tiles = _tiled(np.ones((rows.n, channels), np.float32), _width(channels))
        out = np.zeros_like(tiles[0])
        began = time.process_time()
        for tile in tiles:
            for block in range(rows.blocks):
                kernel(rows.start, rows.vertices, rows.values, block, 0, rows.n, tile, out)
        total += time.process_time() - began
    return total


def with_wide(operator: PatchOperator, k: int) -> PatchOperator:
    """Two wide scales more, with random eigenpairs: the time does not depend on what they are."""
    s, random = operator.settings, np.random.default_rng(0)
    return replace(
        operator,
        settings=replace(s, scales=(*s.scales, 200.0, 400.0), eigenpairs=k),
        eigenvalues=random.uniform(0, 0.02, (s.angles, k)).astype(np.float32),
        eigenfunctions=random.normal(size=(s.angles, operator.n, k)).astype(np.float32),
        wide=(len(s.scales), len(s.scales) + 1),
    )


def first_angle(operator: PatchOperator) -> PatchOperator:
    s = operator.settings
    rows = len(operator.narrow) * operator.n
    entries = operator.start[rows]
    return replace(
        operator,
        start=operator.start[: rows + 1],
        vertices=operator.vertices[:entries],
        values=operator.values[:entries],
        eigenvalues=operator.eigenvalues[:1],
        eigenfunctions=operator.eigenfunctions[:1],
        settings=replace(s, angles=1),
    )


def embedding_bag(operator: PatchOperator) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Each matrix as bags of weighted rows, int32 indices, after the dense product; autograd does the rest."""
    bags = []
    for scale in range(len(operator.settings.scales)):
        matrix = operator.matrix(0, scale)
        bags.append([torch.from_numpy(np.ascontiguousarray(a)) for a in (matrix.indices, matrix.indptr, matrix.data)])

    def convolved(f: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        y = torch.zeros(len(f), weight.shape[2])
        for (indices, starts, values), bank in zip(bags, weight, strict=True):
            y = y + torch.nn.functional.embedding_bag(
                indices.int(), f @ bank, starts[:-1].int(), mode="sum", per_sample_weights=values
            )
        return y

    return convolved


def gather_bmm(operator: PatchOperator) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Neighbours of each vertex gathered into (vertices, longest row, channels), padded, and multiplied."""
    n, longest = operator.n, int(np.diff(operator.start).max())
    lengths = np.diff(operator.start).reshape(-1, n)
    indices = np.zeros((len(lengths), n, longest), np.int64)
    values = np.zeros((len(lengths), n, longest), np.float32)
    filled = np.arange(longest) < lengths[:, :, None]
    indices[filled], values[filled] = operator.vertices, operator.values
    both = torch.from_numpy(indices), torch.from_numpy(values)

    def convolved(f: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        parts = []
        for begin in range(0, n, 512):
            part = slice(begin, begin + 512)
            y: Any = 0
            for index, value, bank in zip(*both, weight, strict=True):
                y = y + torch.bmm(value[part, None], f[index[part]])[:, 0] @ bank
            parts.append(y)
        return torch.cat(parts)

    return convolved


def report(name: str, times: tuple[float, ...], share: str = "") -> None:
    both = times[0] + times[2], times[1] + times[3]
    print(f"{name:34}" + "".join(f"{t:8.3f}" for t in (*times, *both)) + f"   {share}", flush=True)


if __name__ == "__main__":
    main()
