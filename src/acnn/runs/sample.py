"""Files to try everything on: two humans, one with a texture, landmarks, labels, a partial shape, a point cloud.

All of them are made from the built-in humans, without network access, and are the same on every run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acnn.datasets.builtin import BODY_PARTS, body_parts, builtin_human
from acnn.datasets.humans.sample_shapes import (
    COARSE,
    POINTS,
    VERTICES,
    A,
    B,
    SampleShapes,
    body_landmarks,
    sample_shapes,
    with_texture,
)
from acnn.datasets.parts import cut_part
from acnn.errors import InputError
from acnn.files import check_outputs, make_folder, write_atomic
from acnn.input_files import read_json
from acnn.reports import Report
from acnn.shapes.mesh import PointCloud
from acnn.shapes.save import save

FOLDER = {f"shapes/human_{number:02d}.ply": (number, number) for number in range(8)}
"""Subject and pose of the shapes in the folder, by file; the first stands upright."""

MISSING = 0.4
"""Fraction of the area of A that the partial shape lacks."""

LISTING = "sample.json"


@dataclass(frozen=True, eq=False)
class SampleReport(Report):
    """What `acnn sample --json` prints: the folder, and what each file in it contains."""

    out: str
    files: dict[str, str]


def write_sample(folder: Path, *, force: bool = False) -> SampleReport:
    """Write sample files into a folder.

    - `A.ply`, `B.obj` (with `B.mtl` and `B.png`): two humans in different poses and triangulations, B with a texture
    - `A_to_B.txt`: the ground truth, for every vertex of A the nearest vertex of B, 0-based
    - `B_labels.txt`, `B_landmarks.txt`: a body part for every vertex of B, and named vertices; the same of A
    - `A_part.ply`: a partial shape of A, in the same coordinates
    - `cloud.xyz`: points of a third human, without faces
    - `shapes/`: humans of one connectivity, to train on
    - `sample.json`: all of these files, and what they contain

    Parameters
    ----------
    folder : Path
        Output folder, created if missing.
    force : bool
        Overwrite existing files of other origin; those of an earlier sample are always replaced.

    Returns
    -------
    SampleReport

    Raises
    ------
    InputError
        If a file exists already, or the folder cannot be written.
    """
    contents = _contents()
    listing = folder / LISTING
    check_outputs([listing, *(folder / name for name in contents)], earlier=_earlier(folder), force=force)
    for name in ("", "shapes/"):
        make_folder(folder / name / LISTING)
    # First, so that an interrupted sample can be written again.
    write_atomic(listing, (json.dumps({"kind": "sample", "files": contents}, indent=1) + "\n").encode())
    shapes, b = sample_shapes(), builtin_human(*B)
    a_to_b = shapes.a_truth.nearest_vertex(b.vertices, b.faces)
    labels, landmarks = body_parts().of_reference, body_landmarks()
    assert labels is not None
    save(shapes.a, folder / "A.ply")
    for name in ("B.mtl", "B.png"):  # `save` would keep existing ones, under other names
        (folder / name).unlink(missing_ok=True)
    save(with_texture(b), folder / "B.obj")
    _write_lines(folder / "A_to_B.txt", a_to_b)
    on_a = _landmarks_of_a(shapes)
    _write_lines(folder / "landmark_pairs.txt", (f"{name} {on_a[name]} {vertex}" for name, vertex in landmarks.items()))
    for name, values, points in (("A", labels[a_to_b], on_a), ("B", labels, landmarks)):
        _write_lines(folder / f"{name}_labels.txt", values)
        _write_lines(folder / f"{name}_landmarks.txt", (f"{key} {vertex}" for key, vertex in points.items()))
    save(cut_part(shapes.a, "cuts", MISSING, seed=5)[0], folder / "A_part.ply")
    save(PointCloud(np.round(shapes.points, 6)), folder / "cloud.xyz")
    for name, (subject, pose) in FOLDER.items():
        save(shapes.coarse_human(subject, pose), folder / name)
    _write_lines(folder / "shapes/classes.txt", labels[shapes.kept])
    _write_lines(folder / "shapes/classes.names.txt", BODY_PARTS)
    return SampleReport(str(folder), contents)


def _contents() -> dict[str, str]:
    """What each file contains, by its path in the folder."""
    contents = {
        "A.ply": f"a human of {VERTICES} vertices",
        "B.obj": "another human in another pose and triangulation, with a texture",
        "B.mtl": "the material of B",
        "B.png": "the texture of B",
        "A_to_B.txt": "ground truth: for every vertex of A one of B, 0-based",
    }
    parts = ", ".join(f"{number} {part}" for number, part in enumerate(BODY_PARTS))
    for name in ("A", "B"):
        contents[f"{name}_labels.txt"] = f"for every vertex of {name} a body part: {parts}"
        contents[f"{name}_landmarks.txt"] = f"named vertices of {name}, 0-based"
    contents |= {
        "landmark_pairs.txt": "landmarks: name, vertex of A, vertex of B, 0-based",
        "A_part.ply": f"a partial shape of A, in its coordinates; {100 * MISSING:.0f} % of the area are missing",
        "cloud.xyz": f"{POINTS} points of a third human, without faces",
    }
    contents |= {
        "shapes/classes.txt": "for every vertex of these shapes a body part, as in A_labels.txt",
        "shapes/classes.names.txt": "the names of the body parts",
    }
    return contents | {name: f"a human of {COARSE} vertices, one connectivity in the folder" for name in FOLDER}


def _earlier(folder: Path) -> list[Path]:
    """The files of an earlier sample in a folder."""
    try:
        about = read_json(folder / LISTING)
        return [folder / LISTING, *(folder / name for name in about["files"])] if about["kind"] == "sample" else []
    except (InputError, KeyError, TypeError):
        return []


def _landmarks_of_a(shapes: SampleShapes) -> dict[str, int]:
    """The vertices of A that are nearest to the landmarks of the original mesh."""
    original, landmarks = builtin_human(*A), body_landmarks()
    origins = shapes.a_truth.interpolate(original.vertices[original.faces])
    return {
        name: int(np.argmin(np.linalg.norm(origins - original.vertices[vertex], axis=1)))
        for name, vertex in landmarks.items()
    }


def _write_lines(path: Path, values: Iterable[Any]) -> None:
    write_atomic(path, "".join(f"{value}\n" for value in values).encode())
