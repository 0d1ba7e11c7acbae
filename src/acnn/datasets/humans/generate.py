"""Generates human bodies from the anny body model: subjects of all ages in bent poses, with dense ground truth.

The built-in file is made by `python -m acnn.datasets.humans.generate src/acnn/datasets/data/humans.npz`, which needs
`acnn[humans]`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.builtin import PHENOTYPES, Humans, pack_humans
from acnn.datasets.humans.body import load_body
from acnn.datasets.humans.poses import TEST_POSES, TRAINING_POSES, Pose
from acnn.datasets.humans.posing import Poser
from acnn.datasets.labels import truth_text
from acnn.errors import InputError
from acnn.files import atomic_file, write_atomic
from acnn.input_files import read_json
from acnn.shapes.mesh import BarycentricPoints, Mesh, Shape
from acnn.shapes.save import save
from acnn.surface.simplify import Remeshed, remesh

# Lowest and highest value: from a child of about five to old age, without extreme heights.
_SPAN = {
    "gender": (0.0, 1.0),
    "age": (0.24, 1.0),
    "muscle": (0.0, 1.0),
    "weight": (0.0, 1.0),
    "height": (0.15, 0.62),
    "proportions": (0.2, 0.9),
}
_JITTER = 5.0  # degrees


def make_humans(
    subjects: int = 20,
    poses: int = 8,
    vertices: int = 2500,
    seed: int = 0,
    *,
    test_share: float = 0.2,
    table: Mapping[str, Pose] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Humans:
    """Generate posed human bodies, all with one connectivity.

    Subjects differ in sex, age, muscle, weight, height and proportions, spread evenly over the full range (Latin
    hypercube). The last `test_share` of them are for testing, in poses that do not occur in training. Every pose is
    varied slightly for each subject and eased towards an open stance where limbs would intersect the body. Subjects and
    poses do not depend on `vertices`.

    Parameters
    ----------
    subjects : int
        Number of subjects.
    poses : int
        Number of poses of each subject.
    vertices : int
        Number of vertices of each shape (12 to about 49,000).
    seed : int
        Random seed; with the same package versions it gives the same humans.
    test_share : float
        Fraction of the subjects set aside, at least one where there are two or more.
    table : Mapping[str, Pose] or None
        Poses that all subjects take in turn instead of those for training and testing.
    progress : callable or None
        Called with a line of text for every shape.

    Returns
    -------
    Humans
        The shapes, subject after subject.

    Raises
    ------
    InputError
        For numbers out of range, or where anny is not installed.
    """
    if subjects < 1 or poses < 1:
        raise InputError(f"make_humans: {subjects} subjects and {poses} poses; both must be at least 1.")
    poser = Poser(load_body(), vertices)
    phenotypes = draw_phenotypes(subjects, seed)
    first_test = subjects - (max(1, round(test_share * subjects)) if subjects > 1 and test_share > 0 else 0)
    names = human_names(subjects, poses)
    numbers: list[int] = []
    pose_names: list[str] = []
    split: list[str] = []
    shapes: list[NDArray[np.float64]] = []
    for subject in range(subjects):
        own = poser.subject(dict(zip(PHENOTYPES, phenotypes[subject], strict=True)))
        testing = subject >= first_test
        for k, (name, pose) in enumerate(_choose(subject, first_test, poses, table)):
            jitter = _JITTER if subject or k else 0.0  # the first shape is the reference: upright and even
            points, eased = poser.pose(own, pose, jitter, mixed_seed(seed, subject, k))
            shapes.append(points)
            numbers.append(subject)
            pose_names.append(name)
            split.append("test" if testing else "train")
            if progress:
                progress(f"{names[len(shapes) - 1]} {name}" + (f", eased by {eased:.0%}" if eased else ""))
    return Humans(
        tuple(names),
        np.array(numbers, np.int64),
        tuple(pose_names),
        tuple(split),
        np.array(shapes),
        poser.faces,
        _mirror_of(poser.body.rest({})[0], poser.body.mirror, poser.kept),
        phenotypes,
    )


def remesh_humans(humans: Humans, seed: int = 0) -> list[Remeshed]:
    """Remesh each shape; the ground truth refers to the faces of `humans`."""
    return [remesh(humans.mesh(i), seed=mixed_seed(seed, i, 7)) for i in range(len(humans))]


def write_humans(
    folder: str | os.PathLike[str],
    subjects: int = 20,
    poses: int = 8,
    vertices: int = 2500,
    seed: int = 0,
    *,
    remeshed: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Generate humans and write them into a folder, as `acnn data humans` does.

    - NAME.ply for every shape; reference.ply is the first one, standing, with the shared connectivity
    - NAME.labels.txt: for every vertex the nearest vertex of the reference, 0-based
    - NAME.truth.txt (remeshed only): for every vertex `face w0 w1 w2`, its exact point on the reference, 0-based
    - mirror.txt: for every vertex of the reference its mirror image
    - dataset.json: seed, and for each shape its subject, pose, split and phenotypes

    Returns
    -------
    Path
        The folder.
    """
    target = Path(folder)
    humans = make_humans(subjects, poses, vertices, seed, progress=progress)
    write_reference(target, humans)
    own = remesh_humans(humans, seed) if remeshed else None
    entries = []
    for i, name in enumerate(humans.names):
        if own is None:
            save(humans.mesh(i), target / f"{name}.ply")
            write_atomic(target / f"{name}.labels.txt", ("\n".join(map(str, range(vertices))) + "\n").encode())
        else:
            write_shape(target, name, own[i].mesh, own[i].truth, humans.mesh(0))
        subject = int(humans.subjects[i])
        traits = {key: round(float(x), 4) for key, x in zip(PHENOTYPES, humans.phenotypes[subject], strict=True)}
        entries.append(
            {"name": name, "subject": subject, "pose": humans.poses[i], "split": humans.split[i], "phenotypes": traits}
        )
    about = {"kind": "humans", "seed": seed, "vertices": vertices, "remeshed": remeshed, "reference": "reference.ply"}
    write_atomic(target / "dataset.json", (json.dumps({**about, "shapes": entries}, indent=1) + "\n").encode())
    return target


def write_reference(folder: Path, humans: Humans) -> None:
    """Write the first of the humans as the reference of a dataset, and its mirror; the folder is created."""
    folder.mkdir(parents=True, exist_ok=True)
    save(humans.mesh(0), folder / "reference.ply")
    write_atomic(folder / "mirror.txt", ("\n".join(map(str, humans.mirror)) + "\n").encode())


def write_shape(folder: Path, name: str, shape: Shape, truth: BarycentricPoints, reference: Mesh) -> None:
    """Write a shape with its labels and its ground truth on the reference; -1 where unknown."""
    nearest = truth.nearest_vertex(reference.vertices, reference.faces)
    write_atomic(folder / f"{name}.truth.txt", truth_text(truth).encode())
    save(shape, folder / f"{name}.ply")
    write_atomic(folder / f"{name}.labels.txt", ("\n".join(map(str, nearest)) + "\n").encode())


def human_names(subjects: int, poses: int) -> list[str]:
    """Names of the shapes, subject after subject."""
    return [f"human_{subject:02d}_{k:02d}" for subject in range(subjects) for k in range(poses)]


def human_files(folder: Path, names: Sequence[str]) -> list[Path]:
    """List the files that `write_humans` may write for shapes of these names; none where there are no names."""
    shared = ("reference.ply", "mirror.txt", "dataset.json") if names else ()
    own = (f"{name}{ending}" for name in names for ending in (".ply", ".labels.txt", ".truth.txt"))
    return [folder / file for file in (*shared, *own)]


def written_humans(folder: Path) -> list[str]:
    """Names of the shapes that `write_humans` wrote into a folder, from its `dataset.json`; empty without one."""
    try:
        about = read_json(folder / "dataset.json")
        return [str(shape["name"]) for shape in about["shapes"]] if about["kind"] == "humans" else []
    except (InputError, KeyError, TypeError):
        return []


def write_builtin(path: str | os.PathLike[str], seed: int = 0) -> Path:
    """Generate the file of built-in humans."""
    humans = make_humans(seed=seed, progress=lambda line: print(line, file=sys.stderr))
    target = Path(path)
    with atomic_file(target) as temporary, temporary.open("wb") as stream:
        pack_humans(humans, stream)
    return target


def draw_phenotypes(count: int, seed: int) -> NDArray[np.float64]:
    """(count, 6) phenotypes: each column is spread evenly over its range, in a random order."""
    random = np.random.default_rng(seed)
    table = np.empty((count, len(PHENOTYPES)))
    for column, name in enumerate(PHENOTYPES):
        low, high = _SPAN[name]
        spread = (random.permutation(count) + random.uniform(0.2, 0.8, count)) / count
        table[:, column] = low + (high - low) * spread
    # Intermediate values are rare: move them towards 0 and 1, keeping the order.
    sex = table[:, 0]
    table[:, 0] = np.where(sex < 0.5, 0.3 * sex, 1 - 0.3 * (1 - sex))
    return np.clip(table, 0.0, 1.0)


def _choose(subject: int, first_test: int, count: int, table: Mapping[str, Pose] | None) -> list[tuple[str, Pose]]:
    """The poses of one subject: in training first `stand`, then the others in turn, so that all are used alike."""
    if table is None and subject < first_test:
        names = list(TRAINING_POSES)
        turning = [names[1 + (subject * 7 + k) % (len(names) - 1)] for k in range(count - 1)]
        return [(name, TRAINING_POSES[name]) for name in [names[0], *turning]]
    number, chosen = (subject - first_test, TEST_POSES) if table is None else (subject, table)
    names = list(chosen)
    return [(name, chosen[name]) for name in (names[(number * 3 + k) % len(names)] for k in range(count))]


def _mirror_of(points: NDArray[np.float64], mirror: NDArray[np.int64], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    from scipy.spatial import cKDTree

    return cKDTree(points[kept]).query(points[mirror[kept]])[1].astype(np.int64)


def mixed_seed(*numbers: int) -> int:
    """One seed that depends on all of the numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


if __name__ == "__main__":
    write_builtin(sys.argv[1])
