"""Registration of a folder of 100: 95 bones, three broken files, an empty shape, and a shape of another kind.

    python benchmarks/hundred_shapes.py --out DIR [--count 100] [--vertices 600] [--workers N]

Bones have one triangulation in random vertex orders. `acnn register` is started, killed when a third of the shapes is
done, and started again: what was done before is kept, byte for byte. Prints the result and fails where it is not the
expected one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import acnn


def write_folder(folder: Path, count: int, vertices: int) -> Path:
    """The shapes, and the template beside their folder."""
    shapes = folder / "shapes"
    shapes.mkdir(parents=True)
    bones = acnn.make_family("bone", count=count - 5, vertices=vertices, seed=3)
    acnn.save(acnn.from_arrays(bones.template, bones.faces), folder / "template.ply")
    for i in range(len(bones)):
        mesh, order = bones.mesh(i), np.random.default_rng(i).permutation(vertices)
        place = np.argsort(order)
        acnn.save(acnn.from_arrays(mesh.vertices[order], place[mesh.faces]), shapes / f"bone_{i:03d}.ply")
    whole = (shapes / "bone_000.ply").read_bytes()
    (shapes / "broken_cut.ply").write_bytes(whole[: len(whole) // 2])
    (shapes / "broken_text.obj").write_text("v 0 0 zero\nf 1 2 3\n")
    (shapes / "broken_head.ply").write_bytes(b"not a mesh at all")
    (shapes / "empty.obj").write_text("# nothing\n")
    acnn.save(acnn.make_family("hand", count=1, vertices=vertices, seed=0).mesh(0), shapes / "hand.ply")
    return shapes


def main() -> None:
    """Register, kill, resume and check."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--vertices", type=int, default=600)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    if given.out.exists():
        shutil.rmtree(given.out)
    shapes, out = write_folder(given.out, given.count, given.vertices), given.out / "registered"
    command = [
        sys.executable,
        "-m",
        "acnn",
        "register",
        str(given.out / "template.ply"),
        str(shapes),
        "--out",
        str(out),
    ]
    command += ["--method", "descriptors", "--workers", str(given.workers), "--json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        while len(list(out.glob("bone_*.json"))) < given.count // 3:
            assert first.poll() is None, "it ended before it was killed"
            time.sleep(0.2)
        first.kill()
    done = {path: path.read_bytes() for path in out.glob("bone_*.*")}
    complete = [path for path in done if path.suffix == ".json"]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    facts = json.loads(second.stdout)
    for path in complete:
        for suffix in (".json", ".ply", ".npz"):
            assert path.with_suffix(suffix).read_bytes() == done[path.with_suffix(suffix)], f"{path} changed"
    print(f"killed with {len(complete)} done; then exit code {second.returncode}, {facts['registered']} registered, "
          f"{facts['kept']} of them kept, {len(facts['failed'])} failed:")  # fmt: skip
    for failure in facts["failed"]:
        print(f"  {Path(failure['item']).name}: {failure['why']}")
    assert second.returncode == 1
    assert facts["registered"] == given.count - 5
    assert facts["kept"] == len(complete)
    assert len(facts["failed"]) == 5


if __name__ == "__main__":
    main()
