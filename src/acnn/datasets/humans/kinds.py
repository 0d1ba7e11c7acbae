"""Kinds of disturbed bodies, by name, and the generation of such bodies with their ground truth on the built-in human.

A kind sets some of the steps from a subject to a shape: phenotypes, pose, fingers, displacement of the surface, noise,
union in voxels, missing parts, and triangulation. Kinds that set different steps can be combined, `shoes+voxels`.
Some kinds are held out: networks are never trained on them, so that errors on them measure what is new to a network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import reduce

import numpy as np

from acnn.datasets.builtin import PHENOTYPES, builtin_humans
from acnn.datasets.clouds import sample_points
from acnn.datasets.humans import disturb
from acnn.datasets.humans.body import Body
from acnn.datasets.humans.disturb import Figure, Random, regions_of
from acnn.datasets.humans.generate import draw_phenotypes, mixed_seed
from acnn.datasets.humans.poses import POSE_FAMILIES, TEST_POSES, TRAINING_POSES, Pose, combined, with_curl
from acnn.datasets.humans.posing import Poser
from acnn.datasets.implicit import voxel_mesh
from acnn.datasets.parts import cut_part
from acnn.errors import InputError
from acnn.shapes.mesh import BarycentricPoints, Mesh, PointCloud, Shape
from acnn.surface.closest_points import ClosestPoints
from acnn.surface.surface import vertex_normals
from acnn.surface.working_copy import working_copy
from acnn.types import FloatArray

DENSE = 6000
"""Vertices of the bodies that are disturbed, before they are triangulated."""

_JITTER = 8.0  # degrees
_REACH = 0.01  # metres: farther from the body, a vertex has no ground truth


@dataclass(frozen=True)
class Kind:
    """A kind of body; None leaves a step to chance or out.

    Attributes
    ----------
    held_out : bool
        Whether it is for validation only.
    span : dict[str, tuple[float, float]] or None
        Range of some phenotypes.
    poses : str or None
        Of `POSE_FAMILIES`; None combines limbs of all poses but held-out ones.
    curl : tuple[float, float] or None
        Range of the bend of every finger joint, degrees.
    surface : callable or None
        Displaces the surface.
    noise : callable or None
        As well, afterwards.
    overlap : float or None
        Fraction of the vertices that may lie inside another part of the body.
    voxels : tuple[float, float] or None
        Range of edge lengths in metres; the body becomes the surface of solid voxels.
    closing : tuple[float, float] or None
        Range of radii in metres by which gaps between voxels are closed.
    part : {"ends", "holes", "cuts"} or None
        What is missing.
    triangulation : {"even", "irregular", "uneven", "anisotropic", "cloud"} or None
        Of the result; `even` is a working copy as `acnn match` makes it.
    """

    held_out: bool = False
    span: dict[str, tuple[float, float]] | None = None
    poses: str | None = None
    curl: tuple[float, float] | None = None
    surface: Callable[[Figure, Random], Figure] | None = None
    noise: Callable[[Figure, Random], Figure] | None = None
    overlap: float | None = None
    voxels: tuple[float, float] | None = None
    closing: tuple[float, float] | None = None
    part: str | None = None
    triangulation: str | None = None

    def steps(self) -> set[str]:
        """Names of the steps that the kind sets."""
        return {f.name for f in fields(self) if f.name != "held_out" and getattr(self, f.name) is not None}


_UNION = (0.01, 0.02)

KINDS: dict[str, Kind] = {
    "plain": Kind(),
    "fists": Kind(curl=(65, 95)),
    "fused-fists": Kind(curl=(60, 95), voxels=(0.009, 0.013)),
    "voxels": Kind(voxels=(0.01, 0.025)),
    "shoes": Kind(surface=disturb.shoes),
    "hair": Kind(surface=disturb.hair),
    "clothing": Kind(surface=disturb.clothing),
    "missing-ends": Kind(part="ends"),
    "crouching": Kind(poses="crouching"),
    "bent": Kind(poses="bent"),
    "raised-arms": Kind(poses="raised-arms"),
    "hands-on-hips": Kind(poses="hands-on-hips"),
    "touching": Kind(poses="touching", overlap=0.06, voxels=_UNION),
    "child": Kind(span={"age": (0.12, 0.36), "height": (0.2, 0.6)}),
    "thin": Kind(span={"weight": (0.0, 0.08), "muscle": (0.0, 0.4)}),
    "heavy": Kind(span={"weight": (0.92, 1.0), "age": (0.5, 1.0)}),
    "noise": Kind(noise=disturb.noisy),
    "holes": Kind(part="holes"),
    "cut-off": Kind(part="cuts"),
    "uneven": Kind(triangulation="uneven"),
    "cloud": Kind(triangulation="cloud"),
    "mittens": Kind(True, curl=(0, 20), voxels=(0.0095, 0.012), closing=(0.012, 0.02)),
    "hat": Kind(True, surface=disturb.hat),
    "seated": Kind(True, poses="seated"),
    "seated-voxels": Kind(True, poses="seated", overlap=0.06, voxels=(0.01, 0.014)),
    "anisotropic": Kind(True, triangulation="anisotropic"),
}
"""All kinds by name."""

TRAINED = tuple(name for name, kind in KINDS.items() if not kind.held_out)
HELD_OUT = tuple(name for name, kind in KINDS.items() if kind.held_out)

_TRIANGULATIONS = ("even", "irregular", "uneven")
_MISSING = {"holes": (0.03, 0.15), "cuts": (0.05, 0.2)}


@dataclass(frozen=True, eq=False)
class MadeBody:
    """A disturbed body.

    Attributes
    ----------
    shape : Shape
        Mesh or cloud of n vertices.
    truth : BarycentricPoints
        Point of every vertex on the reference; unknown where there was no surface before, as between fused fingers.
    pose : str
        Name of the pose, or of those that it combines.
    """

    shape: Shape
    truth: BarycentricPoints
    pose: str


def kind_names(text: str) -> tuple[str, ...]:
    """Names of kinds in a list separated by commas, with `trained` and `held-out` for all of these; may be combined.

    Raises
    ------
    InputError
        For an unknown kind, or two that set the same step.

    Examples
    --------
    >>> kind_names("hat,shoes+voxels")
    ('hat', 'shoes+voxels')
    """
    groups = {"trained": TRAINED, "held-out": HELD_OUT}
    names = [name for item in text.split(",") if item.strip() for name in groups.get(item.strip(), (item.strip(),))]
    if not names:
        raise InputError(f"--kinds '{text}' names no kind: use trained, held-out, or some of {', '.join(KINDS)}.")
    for name in names:
        kind_of(name)
    return tuple(names)


def kind_of(name: str) -> Kind:
    """The kind of a name, or the combination of several, `shoes+voxels`; raises InputError as `kind_names` does."""
    parts = name.split("+")
    for part in parts:
        if part not in KINDS:
            raise InputError(f"There is no kind '{part}' of bodies: use {', '.join(KINDS)}.")
    return reduce(lambda a, b: _joined(a, b, name), (KINDS[part] for part in parts))


def draw_kinds(names: Sequence[str], count: int, seed: int, combine: float = 0.0) -> list[str]:
    """Kinds of a number of bodies: the given ones in turn, some of them combined with another of them.

    Parameters
    ----------
    names : Sequence[str]
        As from `kind_names`.
    count : int
        Number of bodies.
    seed : int
        Random seed.
    combine : float
        Fraction of the bodies that are given a second kind, where one fits.

    Returns
    -------
    list[str]
    """
    random = np.random.default_rng((seed, 11))
    drawn = []
    for k in range(count):
        name = names[k % len(names)]
        others = [other for other in names if "plain" not in (name, other) and fit(name, other)]
        if random.random() < combine and others:
            name = f"{name}+{others[int(random.integers(len(others)))]}"
        drawn.append(name)
    return drawn


def fit(first: str, second: str) -> bool:
    """Whether two kinds can be combined."""
    try:
        kind_of(f"{first}+{second}")
    except InputError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class BodyMaker:
    """Makes disturbed bodies of some subjects.

    Attributes
    ----------
    body : Body
        The body model.
    subjects : int
        Number of subjects.
    vertices : int
        Largest number of vertices of a shape; shapes have 0.7 to 1 times as many.
    seed : int
        Random seed.
    """

    body: Body
    subjects: int
    vertices: int = 2500
    seed: int = 0
    _poser: Poser = field(init=False)
    _phenotypes: FloatArray = field(init=False)
    _regions: dict[str, FloatArray] = field(init=False)
    _standing: tuple[FloatArray, FloatArray] = field(init=False)
    _reference: ClosestPoints = field(init=False)

    def __post_init__(self) -> None:
        poser, humans = Poser(self.body, DENSE), builtin_humans()
        reference = humans.mesh(0)
        built_in = dict(zip(PHENOTYPES, humans.phenotypes[0], strict=True))
        standing, _ = poser.pose(poser.subject(built_in), TRAINING_POSES[humans.poses[0]], 0.0, 0)
        normals, closest = vertex_normals(standing, poser.faces), ClosestPoints(reference.vertices, reference.faces)
        found = closest(standing, normals, _REACH).interpolate(reference.vertices[reference.faces])
        gap = float(np.median(np.linalg.norm(found - standing, axis=1)))
        if gap > _REACH / 2:
            raise InputError(
                f"The body model is {1000 * gap:.0f} mm off the built-in human, which it was made from: use anny 0.6."
            )
        made = {
            "_poser": poser,
            "_phenotypes": draw_phenotypes(self.subjects, self.seed),
            "_regions": regions_of(self.body.bones, self.body.weights[poser.kept]),
            "_standing": (standing, normals),
            "_reference": closest,
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def make(self, subject: int, number: int, name: str) -> MadeBody:
        """Make one body.

        Parameters
        ----------
        subject : int
            Number of the subject.
        number : int
            Number of the body among those of the subject.
        name : str
            Its kind, as for `kind_of`.

        Returns
        -------
        MadeBody
        """
        kind, seed = kind_of(name), mixed_seed(self.seed, subject, number, 5)
        random = np.random.default_rng(seed)
        phenotypes = dict(zip(PHENOTYPES, self._phenotypes[subject], strict=True))
        for trait, (low, high) in (kind.span or {}).items():
            phenotypes[trait] = random.uniform(low, high)
        own = self._poser.subject(phenotypes)
        pose_name, pose = _draw_pose(kind, random)
        pose = with_curl(pose, _draw_curl(kind, random))
        overlap = {} if kind.overlap is None else {"overlap": kind.overlap}
        points, _ = self._poser.pose(own, pose, _JITTER, seed, **overlap)
        figure = Figure(Mesh(points, self._poser.faces), own.rest[self._poser.kept], self._regions)
        for displace in (kind.surface, kind.noise):
            figure = figure if displace is None else displace(figure, random)
        mesh, reach = figure.mesh, _REACH * figure.size
        if kind.voxels is not None:
            cell = random.uniform(*kind.voxels) * figure.size
            closing = 0.0 if kind.closing is None else random.uniform(*kind.closing) * figure.size
            mesh = voxel_mesh(mesh, cell, closing=closing, smoothing=int(random.integers(1, 4)))
            reach = max(reach, cell)
        if kind.part == "ends":
            mesh = disturb.without_ends(figure, random)
        elif kind.part is not None:
            missing = random.uniform(*_MISSING[kind.part])
            mesh = cut_part(mesh, "holes" if kind.part == "holes" else "cuts", missing, seed)[0]
        vertices = round(self.vertices * random.uniform(0.7, 1.0))
        shape, normals = _triangulated(mesh, kind.triangulation, vertices, random)
        return MadeBody(shape, self._truth(shape.vertices, normals, figure.mesh, reach), pose_name)

    def _truth(self, points: FloatArray, normals: FloatArray, body: Mesh, reach: float) -> BarycentricPoints:
        """Points on the reference: the closest point on the body, then the closest one to that in the same stance."""
        corners = body.vertices[body.faces]
        edge = float(np.linalg.norm(corners[:, 0] - corners[:, 1], axis=1).mean())
        closest = ClosestPoints(body.vertices, body.faces)(points, normals, edge)
        gap = np.linalg.norm(closest.interpolate(corners) - points, axis=1)
        standing, directions = (closest.interpolate(x[body.faces]) for x in self._standing)
        truth = self._reference(standing, directions, edge)
        return BarycentricPoints(np.where(gap <= reach, truth.faces, -1).astype(np.int32), truth.weights)


def _joined(a: Kind, b: Kind, name: str) -> Kind:
    both = a.steps() & b.steps()
    if both or ("ends" in (a.part, b.part) and "voxels" in a.steps() | b.steps()):
        what = ", ".join(sorted(both)) or "parts of voxels"
        raise InputError(f"Kinds of '{name}' cannot be combined: each sets {what}.")
    steps = {key: getattr(kind, key) for kind in (a, b) for key in kind.steps()}
    return Kind(held_out=a.held_out or b.held_out, **steps)


def _draw_pose(kind: Kind, random: Random) -> tuple[str, Pose]:
    """A pose of the kind's family, or limbs of four poses."""
    if kind.poses is not None:
        family = POSE_FAMILIES[kind.poses]
        name = list(family)[int(random.integers(len(family)))]
        return name, family[name]
    unseen = {other.poses for other in KINDS.values() if other.held_out and other.poses}
    held_out = {name for family in unseen for name in POSE_FAMILIES[family]}
    families = [family for name, family in POSE_FAMILIES.items() if name != "touching"]
    table = {name: pose for poses in (TRAINING_POSES, TEST_POSES, *families) for name, pose in poses.items()}
    names = [name for name in table if name not in held_out]
    if random.random() < 0.4:  # as it is
        name = names[int(random.integers(len(names)))]
        return name, table[name]
    four = [names[int(k)] for k in random.integers(len(names), size=4)]
    return "/".join(four), combined(*(table[name] for name in four))


def _draw_curl(kind: Kind, random: Random) -> tuple[float | None, float | None]:
    """Bend of the finger joints of both hands; None leaves that of the pose."""
    if kind.curl is not None:
        left, right = random.uniform(*kind.curl, size=2)
        return float(left), float(right)
    drawn = [float(random.uniform(0, 90)) if random.random() < 0.4 else None for _ in range(2)]
    return drawn[0], drawn[1]


def _triangulated(mesh: Mesh, how: str | None, vertices: int, random: Random) -> tuple[Shape, FloatArray]:
    """The shape in a triangulation, and its normals."""
    if how is None:
        how = _TRIANGULATIONS[int(random.choice(len(_TRIANGULATIONS), p=(0.6, 0.25, 0.15)))]
    if how == "cloud":
        points = sample_points(mesh, vertices, int(random.integers(2**31)))
        normals = vertex_normals(mesh.vertices, mesh.faces)
        sampled = PointCloud(points.interpolate(mesh.vertices[mesh.faces]))
        return sampled, points.interpolate(normals[mesh.faces])
    makers = {"irregular": disturb.irregular, "uneven": disturb.uneven, "anisotropic": disturb.anisotropic}
    made = makers[how](mesh, vertices, random) if how in makers else working_copy(mesh, vertices).shape
    assert isinstance(made, Mesh)
    return made, vertex_normals(made.vertices, made.faces)
