"""Average the weights of runs of one network: `python tools/average_runs.py RUN RUN... --out DIR`.

All else is that of the last run. Stages that continue from one another lie close enough together for their mean to be a
network that is as good as either, or better.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch

from acnn.methods.run import open_run
from acnn.network.model import load_model, save_model


def main() -> None:
    """Read, average, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="a folder that does not exist")
    chosen = parser.parse_args()
    if chosen.out.exists():
        parser.error(f"{chosen.out} exists")
    models = [load_model(open_run(run).folder / "model.safetensors") for run in chosen.runs]
    last, metadata = models[-1]
    states = [model.state_dict() for model, _ in models]
    if any({k: v.shape for k, v in state.items()} != {k: v.shape for k, v in states[-1].items()} for state in states):
        parser.error("the runs are of different networks")
    last.load_state_dict(
        {
            name: torch.stack([state[name] for state in states]).mean(dim=0) if value.is_floating_point() else value
            for name, value in states[-1].items()
        }
    )
    chosen.out.mkdir(parents=True)
    for name in ("config.toml", "reference.safetensors", "run.json"):
        shutil.copyfile(open_run(chosen.runs[-1]).folder / name, chosen.out / name)
    save_model(last, chosen.out / "model.safetensors", metadata)


if __name__ == "__main__":
    main()
