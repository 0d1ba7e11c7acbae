"""Disturbances of posed bodies: shoes, hair, hats, clothing, missing hands and feet, noise, and other triangulations.

Displacements keep the connectivity, so that every vertex remains a known point of the body. Lengths are in metres for
a body of 1.7 m and scale with its height.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from acnn.datasets.humans.body import close_loops
from acnn.datasets.implicit import neighbour_mean
from acnn.shapes.mesh import Mesh
from acnn.surface.simplify import decimate
from acnn.surface.surface import vertex_normals
from acnn.types import FloatArray

Random = np.random.Generator

REGIONS: dict[str, tuple[str, ...]] = {
    "head": ("head", "jaw", "eye", "orbicularis", "oris", "levator", "risorius", "tongue", "temporalis", "special"),
    "neck": ("neck",),
    "torso": ("spine", "breast", "clavicle", "pelvis", "root"),
    "upper_arm": ("shoulder", "upperarm"),
    "lower_arm": ("lowerarm",),
    "hand": ("wrist", "metacarpal", "finger"),
    "thigh": ("upperleg",),
    "shin": ("lowerleg",),
    "foot": ("foot", "toe"),
}
"""Parts of the body, and how the names of their bones begin."""

ENDS = {"hand": "lower_arm", "foot": "shin"}
"""Parts that may be missing, and those that they hang on."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A posed body, closed and with its parts known.

    Attributes
    ----------
    mesh : Mesh
        The posed body, n vertices.
    rest : (n, 3) array
        The same body unposed: x to its left, y up, z to the front.
    regions : dict[str, (n,) array]
        Weight in 0..1 of each part of `REGIONS` at every vertex.
    """

    mesh: Mesh
    rest: FloatArray
    regions: dict[str, FloatArray]

    @cached_property
    def size(self) -> float:
        """Height at rest over 1.7 m."""
        return float(np.ptp(self.rest[:, 1])) / 1.7

    @cached_property
    def normals(self) -> FloatArray:
        """(n, 3) normals of the posed body."""
        return vertex_normals(self.mesh.vertices, self.mesh.faces)

    def moved(self, vertices: FloatArray) -> Figure:
        """The same body with its vertices elsewhere."""
        return replace(self, mesh=Mesh(vertices, self.mesh.faces))

    def offset(self, height: FloatArray) -> Figure:
        """The same body, displaced by (n,) heights along the normals."""
        return self.moved(self.mesh.vertices + height[:, None] * self.normals)

    def smoothed(self, weight: FloatArray, rounds: int) -> Figure:
        """The same body, smoothed where the weight (n,) is 1."""
        points = self.mesh.vertices
        for _ in range(rounds):
            points = points + 0.7 * weight[:, None] * (neighbour_mean(points, self.mesh.faces) - points)
        return self.moved(points)


def regions_of(bones: Sequence[str], weights: FloatArray) -> dict[str, FloatArray]:
    """Weights (n,) of the parts of the body, from those of the bones (n, b)."""
    return {
        part: weights[:, [b for b, name in enumerate(bones) if name.startswith(starts)]].sum(axis=1)
        for part, starts in REGIONS.items()
    }


def shoes(figure: Figure, random: Random) -> Figure:
    """Fuse the toes and displace the feet: 6 to 18 mm all around, and a sole of 5 to 35 mm; boots reach up the shin."""
    foot = figure.regions["foot"]
    weight = _step(foot, 0.3, 0.6)
    if random.random() < 0.3:  # boots
        shin = figure.regions["shin"] * _step(-figure.rest[:, 1], -0.30 * figure.size, -0.25 * figure.size)
        weight = np.maximum(weight, shin)
    smooth = figure.smoothed(_step(foot, 0.5, 0.9), int(random.integers(4, 16)))
    down = np.clip(-vertex_normals(figure.rest, figure.mesh.faces)[:, 1], 0.0, 1.0)
    thickness = random.uniform(0.006, 0.018) + random.uniform(0.005, 0.035) * down * _step(foot, 0.3, 0.6)
    return smooth.offset(figure.size * weight * thickness)


def hair(figure: Figure, random: Random) -> Figure:
    """Displace the scalp by 8 to 45 mm with strands; long hair also displaces neck and upper back, over the neck."""
    where = _head_frame(figure)
    face = _step(where[:, 2], 0.1, 0.45) * _step(-where[:, 1], -0.55, -0.25)
    scalp = np.clip(figure.regions["head"], 0, 1) * (1 - face) * _step(where[:, 1], -0.6, -0.2)
    height = random.uniform(0.008, 0.045) * scalp
    if random.random() < 0.5:
        nape = (figure.regions["neck"] + figure.regions["torso"] + figure.regions["head"]) * _step(
            where[:, 1], -random.uniform(1.8, 3.5), -0.9
        )
        behind = _step(-where[:, 2], -0.2, 0.2) * _step(-np.abs(where[:, 0]), -1.4, -0.9)
        height = np.maximum(height, random.uniform(0.01, 0.04) * np.clip(nape, 0, 1) * behind)
    return figure.offset(figure.size * height * (0.8 + 0.35 * _waves(figure, random, 0.02, 0.08)))


def hat(figure: Figure, random: Random) -> Figure:
    """Pull a brim of 20 to 80 mm out of a ring around the head, and raise what is above it by 10 to 90 mm."""
    where, head = _head_frame(figure), np.clip(figure.regions["head"], 0, 1)
    level, tilt = random.uniform(0.25, 0.45), random.uniform(-0.25, 0.1)
    above = where[:, 1] - level - tilt * where[:, 2]
    front = 1.0 if random.random() < 0.5 else _step(where[:, 2], -0.2, 0.5)  # a cap has a peak only
    brim = head * np.exp(-((above / 0.12) ** 2)) * front * random.uniform(0.02, 0.08)
    crown = head * _step(above, 0.0, 0.15)
    up = np.average(figure.normals, axis=0, weights=head * (where[:, 1] > 0.8) + 1e-12)
    up /= np.linalg.norm(up)
    level_normals = figure.normals - (figure.normals @ up)[:, None] * up
    move = brim[:, None] * level_normals + crown[:, None] * (random.uniform(0.01, 0.09) * up + 0.008 * figure.normals)
    return figure.moved(figure.mesh.vertices + figure.size * move)


def clothing(figure: Figure, random: Random) -> Figure:
    """Displace torso and limbs by 4 to 40 mm with folds and sharp hems: a top, trousers, or both."""
    parts = figure.regions
    top = parts["torso"] + parts["upper_arm"] + (parts["lower_arm"] if random.random() < 0.5 else 0.0)
    trousers = parts["thigh"] + (parts["shin"] if random.random() < 0.6 else 0.0) + 0.6 * parts["torso"]
    worn = int(random.integers(3))
    cover = np.zeros(len(figure.rest))
    for garment in [top][: worn != 1] + [trousers][: worn != 0]:
        thickness = random.uniform(0.004, 0.02) + random.uniform(0.0, 0.02) * _waves(figure, random, 0.05, 0.3)
        cover = np.maximum(cover, np.maximum(thickness, 0.002) * _step(garment, 0.45, 0.6))
    return figure.offset(figure.size * cover)


def without_ends(figure: Figure, random: Random) -> Mesh:
    """Cut off hands or feet, one to four of them, somewhere near wrist or ankle; half of the cuts are closed."""
    left = figure.rest[:, 0] > np.median(figure.rest[:, 0])
    ends = [(part, side) for part in ENDS for side in (left, ~left)]
    chosen = random.choice(len(ends), int(random.integers(1, 5)), replace=False)
    gone = np.zeros(len(figure.rest), bool)
    for part, side in (ends[k] for k in chosen):
        end, limb = figure.regions[part] * side, figure.regions[ENDS[part]] * side
        centre, along = (np.average(figure.rest, axis=0, weights=weight + 1e-12) for weight in (limb, end))
        axis = (along - centre) / np.linalg.norm(along - centre)
        depth = (figure.rest - centre) @ axis
        joint = np.average(depth, weights=end * limb + 1e-12)
        cut = joint + figure.size * random.uniform(-0.06, 0.05)
        gone |= (depth > cut) & (end + limb > 0.3)
    faces = figure.mesh.faces[~gone[figure.mesh.faces].any(axis=1)]
    mesh = _used(Mesh(figure.mesh.vertices, faces))
    if random.random() < 0.5:
        closed, means = close_loops(mesh.faces.astype(np.int64), len(mesh.vertices))
        mesh = Mesh(np.concatenate([mesh.vertices, means @ mesh.vertices]), closed.astype(np.int32))
    return mesh


def noisy(figure: Figure, random: Random) -> Figure:
    """Move vertices along normals by normal noise of 1 to 4 mm, then smooth once or not at all."""
    height = figure.size * random.uniform(0.001, 0.004) * random.standard_normal(len(figure.rest))
    return figure.offset(height).smoothed(np.ones(len(figure.rest)), int(random.integers(2)))


def uneven(mesh: Mesh, vertices: int, random: Random) -> Mesh:
    """Triangulate with edges whose length varies by a factor of up to 5 over the surface."""
    wave = _smooth_noise(mesh.vertices / np.ptp(mesh.vertices, axis=0).max(), random, 0.2, 1.0)
    size = np.exp(0.8 * np.clip(wave, -1, 1))
    noise = np.exp(0.7 * random.standard_normal(len(mesh.vertices)))
    return _decimated(mesh, mesh.vertices, vertices, size, noise)


def anisotropic(mesh: Mesh, vertices: int, random: Random) -> Mesh:
    """Triangulate evenly after compressing the body 3 to 6 times along an axis near the vertical: long triangles."""
    axis = random.standard_normal(3) * [0.3, 1.0, 0.3]
    axis /= np.linalg.norm(axis)
    shorter = 1 / random.uniform(3.0, 6.0) - 1
    points = mesh.vertices + shorter * (mesh.vertices @ axis)[:, None] * axis
    return _decimated(mesh, points, vertices, None, None)


def irregular(mesh: Mesh, vertices: int, random: Random) -> Mesh:
    """Triangulate at random, with vertices nearly as dense as those of the mesh, evenly, or in between."""
    start, end = mesh.faces.ravel(), mesh.faces[:, [1, 2, 0]].ravel()
    length = np.linalg.norm(mesh.vertices[start] - mesh.vertices[end], axis=1)
    degree = np.bincount(start, minlength=len(mesh.vertices))
    size = np.bincount(start, length, len(mesh.vertices)) / np.maximum(degree, 1)
    noise = np.exp(0.7 * random.standard_normal(len(mesh.vertices)))
    return _decimated(mesh, mesh.vertices, vertices, (size / size.mean()) ** random.uniform(0.0, 1.0), noise)


def _decimated(
    mesh: Mesh, points: FloatArray, vertices: int, size: NDArray[np.float64] | None, noise: NDArray[np.float64] | None
) -> Mesh:
    kept, faces = decimate(points, mesh.faces, min(vertices, len(points)), size=size, noise=noise, required=False)
    return Mesh(mesh.vertices[kept], faces)


def _used(mesh: Mesh) -> Mesh:
    """The mesh without vertices that no face has."""
    used, faces = np.unique(mesh.faces, return_inverse=True)
    return Mesh(mesh.vertices[used], faces.reshape(-1, 3).astype(np.int32))


def _head_frame(figure: Figure) -> FloatArray:
    """(n, 3) positions at rest relative to the head: -1 to 1 from chin to crown, ear to ear, nape to nose."""
    head = figure.rest[figure.regions["head"] > 0.9]
    low, high = head.min(axis=0), head.max(axis=0)
    frame: FloatArray = (figure.rest - (low + high) / 2) / ((high - low) / 2)
    return frame


def _waves(figure: Figure, random: Random, shortest: float, longest: float) -> FloatArray:
    """(n,) smooth noise on the body at rest, of about unit size, with wavelengths in metres."""
    return _smooth_noise(figure.rest / figure.size, random, shortest, longest)


def _smooth_noise(
    points: FloatArray, random: Random, shortest: float, longest: float, waves: int = 8
) -> NDArray[np.float64]:
    direction = random.standard_normal((waves, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    length = np.exp(random.uniform(np.log(shortest), np.log(longest), waves))
    phase = random.uniform(0, 2 * np.pi, waves)
    wave = np.cos(2 * np.pi * points @ (direction / length[:, None]).T + phase)  # (n, waves)
    noise: NDArray[np.float64] = wave.sum(axis=1) / np.sqrt(waves / 2)
    return noise


def _step(values: FloatArray, low: float, high: float) -> NDArray[np.float64]:
    """0 below `low`, 1 above `high`, smooth in between."""
    t = np.clip((values - low) / (high - low), 0.0, 1.0)
    return t * t * (3 - 2 * t)
