"""Generated families as folders: shapes, ground truth where remeshed, and the parameters of every shape."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.families import Family
from acnn.datasets.label_files import truth_text
from acnn.errors import InputError
from acnn.files import write_atomic
from acnn.input_files import read_json
from acnn.progress import Progress
from acnn.shapes.mesh import Mesh
from acnn.shapes.save import save
from acnn.surface.simplify import remesh

TEST_FRACTION = 0.2
"""The last shapes are for testing."""


def write_family(
    folder: Path, family: Family, *, seed: int = 0, remeshed: bool = False, progress: Progress | None = None
) -> None:
    """Write a family into a folder that `open_dataset` reads.

    - NAME.ply for every shape; reference.ply is the template
    - NAME.labels.txt: for every vertex the nearest vertex of the reference, 0-based
    - NAME.truth.txt (remeshed only): for every vertex `face w0 w1 w2`, its exact point on the reference
    - dataset.json: kind, seed, and for each shape its split and parameters in standard deviations

    Parameters
    ----------
    folder : Path
        Created if missing.
    family : Family
        The shapes.
    seed : int
        That the family was made with; it also varies the triangulations.
    remeshed : bool
        Give every shape another triangulation and vertex order.
    progress : Progress or None
        Called with (done, total).
    """
    folder.mkdir(parents=True, exist_ok=True)
    reference = Mesh(family.template, family.faces)
    save(reference, folder / "reference.ply")
    names = family_names(family.kind, len(family))
    test = len(names) - round(TEST_FRACTION * len(names))
    entries = []
    for number, name in enumerate(names):
        if progress:
            progress(number, len(names))
        mesh, labels = family.mesh(number), np.arange(len(family.template))
        if remeshed:
            mesh, labels = _remeshed(folder / f"{name}.truth.txt", mesh, reference, [seed, number])
        save(mesh, folder / f"{name}.ply")
        write_atomic(folder / f"{name}.labels.txt", ("\n".join(map(str, labels)) + "\n").encode())
        values = {key: round(float(x), 6) for key, x in zip(family.names, family.parameters[number], strict=True)}
        entries.append({"name": name, "split": "train" if number < test else "test", "parameters": values})
    about = {"kind": family.kind, "seed": seed, "vertices": len(family.template), "remeshed": remeshed}
    listing = {**about, "reference": "reference.ply", "shapes": entries}
    write_atomic(folder / "dataset.json", (json.dumps(listing, indent=1) + "\n").encode())
    if progress:
        progress(len(names), len(names))


def family_names(kind: str, count: int) -> list[str]:
    """Names of the shapes."""
    return [f"{kind}_{number:03d}" for number in range(count)]


def family_files(folder: Path, names: Sequence[str]) -> list[Path]:
    """List the files that `write_family` may write for shapes of these names; none where there are no names."""
    shared = ("reference.ply", "dataset.json") if names else ()
    own = (f"{name}{ending}" for name in names for ending in (".ply", ".labels.txt", ".truth.txt"))
    return [folder / file for file in (*shared, *own)]


def written_family(folder: Path, kind: str) -> list[str]:
    """Names of the shapes of a kind that `write_family` wrote into a folder; empty where it did not."""
    try:
        about = read_json(folder / "dataset.json")
        return [str(shape["name"]) for shape in about["shapes"]] if about["kind"] == kind else []
    except (InputError, KeyError, TypeError):
        return []


def _remeshed(path: Path, mesh: Mesh, reference: Mesh, seeds: list[int]) -> tuple[Mesh, NDArray[np.int64]]:
    own = remesh(mesh, seed=int(np.random.SeedSequence(seeds).generate_state(1)[0]))
    write_atomic(path, truth_text(own.truth).encode())
    return own.mesh, np.asarray(own.truth.nearest_vertex(reference.vertices, reference.faces), np.int64)
