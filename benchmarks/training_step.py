"""Where the time of a training step goes, layer by layer.

    python benchmarks/training_step.py SHAPE [--preset faust-connectivity] [--set KEY=VALUE] [--threads N]
                                       [--repeat N] [--json]
    python benchmarks/training_step.py SHAPE --run out/best

One step on one shape, taken apart: each layer forward and backward on its own, the loss, the optimiser. Times are the
best of the repeats; CPU time is that of all threads together, and says more where others use the cores too. `whole` is
forward and backward in one (output weights are not shared here), `inference` a soft correspondence of all vertices with
the 16 most probable kept. With `--run` the network is a trained one: inference is quicker than with a new one, to which
every vertex is probable.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch

from acnn.cli._options import settings_of
from acnn.correspondence import soft_map_from_features
from acnn.methods.run import open_run
from acnn.network import Patches, ShapeNetwork
from acnn.network.layers import apply_layers
from acnn.network.patches import Operators
from acnn.patches.anisotropic import build_patches
from acnn.shapes import load
from acnn.surface import surface_of
from acnn.training.config import preset_config
from acnn.training.prepared import compute_descriptors


def main() -> None:
    """Build operator, descriptors and network for a shape, and time a step."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("shape")
    parser.add_argument("--preset", default="faust-connectivity")
    parser.add_argument("--run", metavar="DIR", help="a trained network instead of a new one")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    run = open_run(given.run) if given.run else None
    config = run.config if run else preset_config(given.preset)
    config = config.with_changes(settings_of(given.set))
    shape = load(given.shape)
    surface = surface_of(shape)
    patches = Patches.of(build_patches(surface, config.patches))
    f = torch.from_numpy(compute_descriptors(shape, surface, config.descriptors))
    n = len(f)
    model = (
        run.model
        if run
        else ShapeNetwork(
            config.train.architecture,
            f.shape[1],
            n,
            config.patches.angles,
            len(config.patches.scales),
            config.train.angular_max,
        )
    )
    rows = torch.randperm(n)[: config.train.loss_vertices or n].sort().values
    parts = layer_times(model, f, patches, rows, given.repeat)
    whole = timed(lambda: step(model, f, patches, rows), given.repeat)
    model.eval()
    matched = timed(lambda: infer(model, f, patches), given.repeat)
    if given.json:
        facts = {"vertices": n, "threads": given.threads, "layers": parts, "whole": whole, "inference": matched}
        print(json.dumps(facts, indent=1))
        return
    total = sum(part["cpu"] for part in parts)
    print(f"{config.train.architecture}\n{n} vertices, {len(rows)} in the loss, {given.threads} threads\n")
    print(f"{'':30}{'wall s':>9}{'CPU s':>9}{'share':>8}")
    for part in parts:
        print(f"{part['layer']:30}{part['wall']:9.3f}{part['cpu']:9.3f}{part['cpu'] / total:8.0%}")
    for name, found in (("whole step", whole), ("inference", matched)):
        print(f"{name:30}{found['wall']:9.3f}{found['cpu']:9.3f}")


def layer_times(
    model: ShapeNetwork, f: torch.Tensor, patches: Patches, rows: torch.Tensor, repeat: int
) -> list[dict[str, Any]]:
    """Time of every layer, forward and backward, of the output layer with the loss, and of the optimiser."""
    model.train()
    x = (f - model.input_mean) / model.input_std
    last = max((i for i, layer in enumerate(model.layers) if layer.uses), default=-1)
    parts = []
    for i, (layer, spec) in enumerate(zip(model.layers, model.architecture.layers, strict=True)):
        given = x.detach().requires_grad_(i > 0)

        def both(layer: torch.nn.Module = layer, given: torch.Tensor = given) -> None:
            apply_layers([layer], given, Operators(patches=patches)).sum().backward()

        parts.append({"layer": str(spec), **timed(both, repeat)})
        with torch.no_grad():
            x = apply_layers([layer], x, Operators(patches=patches))
            if i == last:
                x = x.index_select(0, rows)
    hidden = x.detach().requires_grad_()

    def loss() -> None:
        torch.nn.functional.cross_entropy(model.classifier(hidden), rows).backward()

    parts.append({"layer": "output and loss", **timed(loss, repeat)})
    optimiser = torch.optim.AdamW(model.parameters())
    parts.append({"layer": "optimiser", **timed(optimiser.step, repeat)})
    return parts


def step(model: ShapeNetwork, f: torch.Tensor, patches: Patches, rows: torch.Tensor) -> None:
    """Forward and backward."""
    torch.nn.functional.cross_entropy(model(f, patches, rows), rows).backward()


@torch.no_grad()
def infer(model: ShapeNetwork, f: torch.Tensor, patches: Patches) -> None:
    """The soft correspondence of a shape."""
    soft_map_from_features(model.features(f, patches), model.classifier.weight, model.classifier.bias, 16)


def timed(work: Callable[[], Any], repeat: int) -> dict[str, float]:
    """Best wall and CPU seconds of some repeats, after one that does not count."""
    work()
    walls, cores = [], []
    for _ in range(repeat):
        wall, core = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cores.append(time.process_time() - core)
    return {"wall": min(walls), "cpu": min(cores)}


if __name__ == "__main__":
    main()
