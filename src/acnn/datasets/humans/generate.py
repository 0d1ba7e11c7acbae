"""Generates human bodies from the anny body model: subjects of all ages in bent poses, with dense ground truth.

The built-in file is made by `python -m acnn.datasets.humans.generate src/acnn/datasets/data/humans.npz`, which needs
`acnn[humans]`.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acnn.compilation import compiled
from acnn.datasets.builtin import PHENOTYPES, Humans, pack_humans
from acnn.datasets.humans.body import Body, load_body
from acnn.datasets.humans.poses import TEST_POSES, TRAINING_POSES, Arm, Leg, Pose, blend, bone_turns
from acnn.datasets.label_files import truth_text
from acnn.errors import InputError
from acnn.files import atomic_file, write_atomic
from acnn.input_files import read_json
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
_OPEN = Pose(
    Arm((0.8, -1.0, 0.1), (0.8, -1.0, 0.35)),
    Arm((0.8, -1.0, 0.1), (0.8, -1.0, 0.35)),
    Leg((0.25, -1, 0)),
    Leg((0.25, -1, 0)),
)
_PROXY = 1500  # vertices of the coarse body on which collisions are detected
# Tolerated fraction of vertices inside another body part, beyond that of the open stance: folds at groin and knee.
_OVERLAP = 0.02
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
    from acnn.surface.simplify import decimate

    if subjects < 1 or poses < 1:
        raise InputError(f"make_humans: {subjects} subjects and {poses} poses; both must be at least 1.")
    body = load_body()
    middle = body.rest({})[0]
    kept, faces = decimate(middle, body.faces, vertices, size=body.fine)
    proxy_kept, proxy_faces = decimate(middle, body.faces, _PROXY, size=body.fine)
    coarse, proxy = _restrict(body, kept), _restrict(body, proxy_kept)
    # The weight per vertex shrinks with the area of a vertex, so that every resolution relaxes alike.
    relax = rigid_relaxer(faces, vertices, hold=150.0 / vertices, rounds=20)
    phenotypes = _phenotypes(subjects, seed)
    first_test = subjects - (max(1, round(test_share * subjects)) if subjects > 1 and test_share > 0 else 0)
    names = human_names(subjects, poses)
    numbers: list[int] = []
    pose_names: list[str] = []
    split: list[str] = []
    shapes: list[NDArray[np.float64]] = []
    for subject in range(subjects):
        rest, heads = body.rest(dict(zip(PHENOTYPES, phenotypes[subject], strict=True)))
        stance = proxy.posed(rest[proxy_kept], heads, bone_turns(_OPEN, body.bones, heads))
        allowed = overlap_share(stance, proxy_faces) + _OVERLAP
        testing = subject >= first_test
        for k, (name, pose) in enumerate(_choose(subject, first_test, poses, table)):
            eased = 0.0
            jitter = _JITTER if subject or k else 0.0  # the first shape is the reference: upright and even
            for eased in np.arange(0.0, 1.0, 0.1):
                turns = bone_turns(blend(pose, _OPEN, eased), body.bones, heads, jitter, _mixed(seed, subject, k))
                if overlap_share(proxy.posed(rest[proxy_kept], heads, turns), proxy_faces) <= allowed:
                    break
            shapes.append(_on_ground(relax(rest[kept], coarse.posed(rest[kept], heads, turns))))
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
        faces,
        _mirror_of(middle, body.mirror, kept),
        phenotypes,
    )


def remesh_humans(humans: Humans, seed: int = 0) -> list[Remeshed]:
    """Remesh each shape; the ground truth refers to the faces of `humans`."""
    return [remesh(humans.mesh(i), seed=_mixed(seed, i, 7)) for i in range(len(humans))]


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
    from acnn.shapes.save import save

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    humans = make_humans(subjects, poses, vertices, seed, progress=progress)
    save(humans.mesh(0), target / "reference.ply")
    write_atomic(target / "mirror.txt", ("\n".join(map(str, humans.mirror)) + "\n").encode())
    own = remesh_humans(humans, seed) if remeshed else None
    entries = []
    for i, name in enumerate(humans.names):
        labels: NDArray[np.integer] = np.arange(vertices)
        if own is not None:
            labels = own[i].truth.nearest_vertex(humans.vertices[0], humans.faces)
            write_atomic(target / f"{name}.truth.txt", truth_text(own[i].truth).encode())
        save(humans.mesh(i) if own is None else own[i].mesh, target / f"{name}.ply")
        write_atomic(target / f"{name}.labels.txt", ("\n".join(map(str, labels)) + "\n").encode())
        subject = int(humans.subjects[i])
        traits = {key: round(float(x), 4) for key, x in zip(PHENOTYPES, humans.phenotypes[subject], strict=True)}
        entries.append(
            {"name": name, "subject": subject, "pose": humans.poses[i], "split": humans.split[i], "phenotypes": traits}
        )
    about = {"kind": "humans", "seed": seed, "vertices": vertices, "remeshed": remeshed, "reference": "reference.ply"}
    write_atomic(target / "dataset.json", (json.dumps({**about, "shapes": entries}, indent=1) + "\n").encode())
    return target


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


def rigid_relaxer(
    faces: NDArray[np.int32], count: int, *, hold: float = 0.1, rounds: int = 10
) -> Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]:
    """Make a function (rest, posed) -> relaxed, all (n, 3), for one connectivity; as-rigid-as-possible deformation.

    It lowers sum over edges |(p_i - p_j) - R_i (r_i - r_j)|^2 + hold sum over vertices |p_i - posed_i|^2 in turns over
    the rotations R_i and the positions p (Sorkine and Alexa 2007): every neighbourhood keeps its
    shape at rest up to a rotation, as skin does, while the pose stays. The matrix is factorised once.

    Parameters
    ----------
    faces : (m, 3) array
        Closed.
    count : int
        Number of vertices.
    hold : float
        Weight of the given pose.
    rounds : int
        Number of alternations.

    Returns
    -------
    callable
        The function; the matrix is factorised once.
    """
    from scipy import sparse
    from scipy.sparse.linalg import splu

    start, end = faces.ravel(), faces[:, [1, 2, 0]].ravel()  # closed: each edge once in either direction
    ones = np.ones(len(start))
    neighbours = sparse.csr_matrix((ones, (start, end)), shape=(count, count))
    degree = np.asarray(neighbours.sum(axis=1)).ravel()
    # an edge counts at both of its ends, hence the 2
    factor = splu((2 * (sparse.diags(degree) - neighbours) + hold * sparse.identity(count)).tocsc())
    gather = sparse.csr_matrix((ones, (start, np.arange(len(start)))), shape=(count, len(start)))

    def relax(rest: NDArray[np.float64], posed: NDArray[np.float64]) -> NDArray[np.float64]:
        before = rest[start] - rest[end]
        positions = posed
        for _ in range(rounds):
            after = positions[start] - positions[end]
            spread = gather @ (before[:, :, None] * after[:, None, :]).reshape(-1, 9)
            u, _, vt = np.linalg.svd(spread.reshape(-1, 3, 3))
            flip = np.sign(np.linalg.det(u @ vt))
            u[:, :, 2] *= flip[:, None]
            turn = np.transpose(u @ vt, (0, 2, 1))  # (n, 3, 3)
            wanted = np.einsum("eij,ej->ei", turn[start] + turn[end], before)
            positions = factor.solve(gather @ wanted + hold * posed)
        return positions

    return relax


def overlap_share(vertices: NDArray[np.float64], faces: NDArray[np.int32], offset: float = 0.0005) -> float:
    """Fraction of the vertices that lie inside another part of the body.

    A point just outside the surface (moved along the normal by `offset`, in the unit of the vertices) has winding
    number 0, unless another part covers it: then 1. w(x) = sum of the faces' solid angles / 4 pi.
    """
    points = np.ascontiguousarray(vertices, np.float64)
    triangles = np.ascontiguousarray(faces, np.int32)
    corners = points[triangles]
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(points)
    for k in range(3):
        np.add.at(normals, triangles[:, k], cross)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    return float(np.mean(_winding(points + offset * normals, points, triangles) > 0.5))


def _phenotypes(count: int, seed: int) -> NDArray[np.float64]:
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


def _restrict(body: Body, kept: NDArray[np.int64]) -> Body:
    return replace(body, weights=body.weights[kept])


def _mirror_of(points: NDArray[np.float64], mirror: NDArray[np.int64], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    from scipy.spatial import cKDTree

    return cKDTree(points[kept]).query(points[mirror[kept]])[1].astype(np.int64)


def _on_ground(points: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = points.min(axis=0), points.max(axis=0)
    return points - [(low[0] + high[0]) / 2, low[1], (low[2] + high[2]) / 2]


def _mixed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


@compiled()
def _winding(queries, points, faces):  # type: ignore[no-untyped-def]
    out = np.zeros(len(queries))
    for i in range(len(queries)):
        total = 0.0
        for f in range(len(faces)):
            ax = points[faces[f, 0], 0] - queries[i, 0]
            ay = points[faces[f, 0], 1] - queries[i, 1]
            az = points[faces[f, 0], 2] - queries[i, 2]
            bx = points[faces[f, 1], 0] - queries[i, 0]
            by = points[faces[f, 1], 1] - queries[i, 1]
            bz = points[faces[f, 1], 2] - queries[i, 2]
            cx = points[faces[f, 2], 0] - queries[i, 0]
            cy = points[faces[f, 2], 1] - queries[i, 1]
            cz = points[faces[f, 2], 2] - queries[i, 2]
            a = math.sqrt(ax * ax + ay * ay + az * az)
            b = math.sqrt(bx * bx + by * by + bz * bz)
            c = math.sqrt(cx * cx + cy * cy + cz * cz)
            volume = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
            below = a * b * c + (ax * bx + ay * by + az * bz) * c
            below += (bx * cx + by * cy + bz * cz) * a + (cx * ax + cy * ay + cz * az) * b
            total += math.atan2(volume, below)
        out[i] = total / (2.0 * math.pi)
    return out


if __name__ == "__main__":
    write_builtin(sys.argv[1])
