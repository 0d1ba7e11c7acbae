"""The humans that come with the package: 20 people in 8 poses each, with one connectivity.

Made by `acnn.datasets.humans.generate` from the anny body model (data CC0). Needs only numpy to load.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import IO

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.errors import InputError
from acnn.shapes.mesh import Mesh

PHENOTYPES = ("gender", "age", "muscle", "weight", "height", "proportions")


@dataclass(frozen=True, eq=False)
class Humans:
    """People in poses: vertex i is the same point of the body on every shape.

    Metres; x to the body's left, y up with the ground at 0, facing z.

    Attributes
    ----------
    names : tuple[str, ...]
        Of the shapes, e.g. `human_03_05`; (k,) of everything below.
    subjects : (k,) array
        Number of the person.
    poses : tuple[str, ...]
        Names of the poses.
    split : tuple[str, ...]
        "train" or "test", by person.
    vertices : (k, n, 3) float64 array
    faces : (m, 3) int32 array
        Counter-clockwise from outside, shared by all shapes.
    mirror : (n,) array
        The vertex nearest to the point on the other side of the body; twice is nearly always the start.
    phenotypes : (people, 6) array
        In 0..1, columns as `PHENOTYPES`: gender 0 male to 1 female, age 1/3 child, 2/3 young, 1 old.
    """

    names: tuple[str, ...]
    subjects: NDArray[np.int64]
    poses: tuple[str, ...]
    split: tuple[str, ...]
    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]
    mirror: NDArray[np.int64]
    phenotypes: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.names)

    def mesh(self, index: int) -> Mesh:
        """Shape number `index` as a mesh."""
        return Mesh(self.vertices[index].copy(), self.faces.copy())

    def __repr__(self) -> str:
        return f"Humans({len(self)} shapes, {len(self.phenotypes)} people, {self.vertices.shape[1]} vertices)"


@cache
def builtin_humans() -> Humans:
    """The built-in humans; the arrays are read-only and shared between calls."""
    with resources.files("acnn.datasets").joinpath("data/humans.npz").open("rb") as stream:
        humans = read_humans(stream)
    for array in (humans.subjects, humans.vertices, humans.faces, humans.mirror, humans.phenotypes):
        array.setflags(write=False)
    return humans


@check_arguments
def builtin_human(subject: int = 0, pose: int = 0) -> Mesh:
    """One built-in human; pose counts within the person's own poses, and pose 0 of subject 0 stands upright.

    Raises `InputError` where there is no such person or pose.
    """
    humans = builtin_humans()
    own = np.flatnonzero(humans.subjects == subject)
    if not 0 <= pose < len(own):
        people = len(humans.phenotypes)
        each = len(humans) // people
        raise InputError(
            f"There is no built-in human with subject {subject} and pose {pose}: "
            f"subjects are 0 to {people - 1}, poses 0 to {each - 1}."
        )
    return humans.mesh(int(own[pose]))


def read_humans(stream: IO[bytes]) -> Humans:
    """Read what `pack_humans` wrote: whole numbers of a step of length from an origin, without pickle."""
    with np.load(stream, allow_pickle=False) as data:
        vertices = data["vertices"].astype(np.float64)
        vertices *= float(data["step"])
        vertices += data["origin"]
        return Humans(
            names=tuple(map(str, data["names"])),
            subjects=data["subjects"].astype(np.int64),
            poses=tuple(map(str, data["poses"])),
            split=tuple(map(str, data["split"])),
            vertices=vertices,
            faces=data["faces"].astype(np.int32),
            mirror=data["mirror"].astype(np.int64),
            phenotypes=data["phenotypes"].astype(np.float64),
        )


def pack_humans(humans: Humans, stream: IO[bytes]) -> None:
    """Write humans as npz with vertices as int16: a step of 1/65534 of the largest extent, below 0.05 mm."""
    low, high = humans.vertices.min(axis=(0, 1)), humans.vertices.max(axis=(0, 1))
    step = float((high - low).max()) / 65534
    origin = (low + high) / 2
    np.savez_compressed(
        stream,
        vertices=np.rint((humans.vertices - origin) / step).astype(np.int16),
        step=np.float64(step),
        origin=origin,
        faces=humans.faces.astype(np.uint16 if humans.vertices.shape[1] < 65536 else np.uint32),
        mirror=humans.mirror.astype(np.uint16 if humans.vertices.shape[1] < 65536 else np.uint32),
        names=np.array(humans.names),
        subjects=humans.subjects.astype(np.int16),
        poses=np.array(humans.poses),
        split=np.array(humans.split),
        phenotypes=humans.phenotypes.astype(np.float32),
    )
