"""Families of shapes with known correspondence: long bones, hands and quadrupeds from generators of our own.

All members of a family have one topology, a closed genus-0 mesh of an implicit surface. Bones vary along known linear
modes, so that the exact subspace is known; hands and quadrupeds vary in the lengths and thicknesses of their parts and
in pose. A family is written as a folder: shapes, ground truth where remeshed, and the parameters of every
shape.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from acnn.arguments import check_arguments
from acnn.datasets.implicit import capsule_distances, mesh_of_field, smooth_union
from acnn.datasets.labels import truth_text
from acnn.errors import InputError
from acnn.files import write_atomic
from acnn.input_files import read_json
from acnn.progress import Progress
from acnn.shapes.mesh import Mesh
from acnn.shapes.save import save
from acnn.surface.simplify import remesh

Array = NDArray[np.float64]
Kind = Literal["bone", "hand", "quadruped"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LIMIT = 2.5
"""Parameters are drawn from a normal distribution cut off at this many standard deviations."""


@dataclass(frozen=True, eq=False)
class Family:
    """Shapes of one kind in one topology: vertex i is the same point on every shape.

    Attributes
    ----------
    kind : str
        `bone`, `hand` or `quadruped`.
    template : (n, 3) array
        The shape whose parameters are all 0; y is up, the height or length is about 1.
    faces : (m, 3) int32 array
        Of all shapes.
    vertices : (s, n, 3) array
        The shapes.
    parameters : (s, p) array
        What they were made from, in standard deviations.
    names : tuple[str, ...]
        Of the parameters.
    modes : (p, n, 3) array or None
        For bones: displacement for one standard deviation of each parameter; vertices = template + parameters @ modes.
        The modes are orthogonal to each other and to motions and scaling of the template.
    """

    kind: Kind
    template: Array
    faces: NDArray[np.int32]
    vertices: Array
    parameters: Array
    names: tuple[str, ...]
    modes: Array | None

    def __len__(self) -> int:
        return len(self.vertices)

    def mesh(self, index: int) -> Mesh:
        """One of the shapes."""
        return Mesh(self.vertices[index], self.faces)


@check_arguments
def make_family(kind: Kind, count: int = 20, *, vertices: int = 1500, pose: float = 1.0, seed: int = 0) -> Family:
    """Generate shapes of one kind.

    Parameters
    ----------
    kind : {'bone', 'hand', 'quadruped'}
        What to generate.
    count : int
        Number of shapes. The first ones do not depend on it.
    vertices : int
        Vertices of each shape, 600 to 10,000.
    pose : float
        Size of the joint angles, 0 to 1: with 0 all shapes are in the pose of the template. Bones have no joints.
    seed : int
        Random seed.

    Returns
    -------
    Family

    Raises
    ------
    InputError
        For an unknown kind or a number out of range.

    Examples
    --------
    >>> bones = make_family("bone", 4, vertices=800, seed=1)
    >>> bones.vertices.shape, len(bones.faces)
    ((4, 800, 3), 1596)
    """
    if kind not in KINDS:
        raise InputError(f"Unknown family '{kind}': use {', '.join(KINDS[:-1])} or {KINDS[-1]}.")
    if count < 1 or seed < 0:
        raise InputError(f"{count} shapes, seed {seed}: give at least 1 shape and a seed of 0 or more.")
    if not 600 <= vertices <= 10_000:
        raise InputError(f"{vertices} vertices: give 600 to 10,000.")
    if not 0 <= pose <= 1:
        raise InputError(f"pose {pose}: give a number from 0 to 1.")
    skeleton = _SKELETONS[kind]
    template, faces = _template(kind, vertices)
    names = _BONE_MODES if kind == "bone" else skeleton.parameters
    # one generator a shape, so that a larger family begins with the smaller one
    rows = [
        np.random.default_rng([seed, KINDS.index(kind), number]).standard_normal(len(names)) for number in range(count)
    ]
    parameters = np.clip(rows, -LIMIT, LIMIT)
    if kind == "bone":
        modes = _bone_modes(template)
        return Family(kind, template, faces, template + np.tensordot(parameters, modes, 1), parameters, names, modes)
    parameters[:, len(skeleton.sizes) :] *= pose
    weights = skeleton.weights(template)
    shapes = np.array([skeleton.deformed(template, weights, row) for row in parameters])
    return Family(kind, template, faces, shapes, parameters, names, None)


@dataclass(frozen=True)
class _Part:
    """A capsule from the end of its parent; `bend` lists axis and angle (degrees) of one standard deviation."""

    name: str
    parent: str | None
    end: tuple[float, float, float]
    radii: tuple[float, float]
    start: tuple[float, float, float] | None = None
    bend: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class _Skeleton:
    """Parts of a shape, and the groups of parts that become longer and thicker together.

    `sizes` maps a parameter to (prefix of part names, change of length, change of thickness), as fractions for one
    standard deviation.
    """

    parts: tuple[_Part, ...]
    blend: float
    sizes: tuple[tuple[str, str, float, float], ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names: sizes first, then one for each joint that bends."""
        return tuple(name for name, *_ in self.sizes) + tuple(f"bend {p.name}" for p in self.parts if any(p.bend))

    def segments(self) -> tuple[Array, Array, Array]:
        """Starts, ends and radii of the capsules."""
        ends = {part.name: np.array(part.end) for part in self.parts}
        starts = [np.array(p.start) if p.start else ends[str(p.parent)] for p in self.parts]
        return np.array(starts), np.array(list(ends.values())), np.array([part.radii for part in self.parts])

    def field(self, points: Array) -> Array:
        """Implicit surface of all parts."""
        return smooth_union(capsule_distances(points, *self.segments()), self.blend)

    def weights(self, points: Array) -> Array:
        """(n, parts) influence of the parts on points, which sums to 1 and fades over twice the blending length."""
        distances = capsule_distances(points, *self.segments())
        weights: Array = np.exp((distances.min(axis=1, keepdims=True) - distances) / (1.2 * self.blend))
        return weights / weights.sum(axis=1, keepdims=True)

    def thickness(self, points: Array) -> Array:
        """Square root of the radius of the parts at points, relative to its mean: thin parts get shorter edges."""
        roots = np.sqrt(self.weights(points) @ self.segments()[2].mean(axis=1))
        relative: Array = roots / roots.mean()
        return relative

    def deformed(self, points: Array, weights: Array, parameters: Array) -> Array:
        """Points moved by parts that are stretched, thickened and turned (linear blend skinning)."""
        starts, ends, _ = self.segments()
        index = {part.name: number for number, part in enumerate(self.parts)}
        bends = iter(parameters[len(self.sizes) :])
        turns: list[Array] = []
        linear: list[Array] = []  # with stretching
        moved: list[Array] = []  # starts of the parts
        result = np.zeros_like(points)
        for number, part in enumerate(self.parts):
            longer = thicker = 1.0
            for (_, prefix, length, width), value in zip(self.sizes, parameters, strict=False):
                if part.name.startswith(prefix):
                    longer, thicker = longer * np.exp(length * value), thicker * np.exp(width * value)
            turn = np.eye(3) if part.parent is None else turns[index[part.parent]]
            if any(part.bend):
                turn = turn @ _rotation(np.radians(np.array(part.bend) * next(bends)))
            axis = (ends[number] - starts[number]) / np.linalg.norm(ends[number] - starts[number])
            stretch = thicker * np.eye(3) + (longer - thicker) * np.outer(axis, axis)
            if part.parent is None:
                start = starts[number]
            else:  # attached where it was on its parent
                up = index[part.parent]
                start = moved[up] + linear[up] @ (starts[number] - starts[up])
            turns.append(turn)
            linear.append(turn @ stretch)
            moved.append(start)
            result += weights[:, number, None] * ((points - starts[number]) @ linear[-1].T + start)
        return result


def _rotation(vector: Array) -> Array:
    """Rotation about a vector by its length."""
    angle = float(np.linalg.norm(vector))
    x, y, z = vector / max(angle, 1e-12)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    rotation: Array = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    return rotation


@cache
def _template(kind: Kind, vertices: int) -> tuple[Array, NDArray[np.int32]]:
    skeleton = _SKELETONS[kind]
    starts, ends, radii = skeleton.segments()
    margin = radii.max() + 4 * skeleton.blend
    low, high = (f(np.concatenate([starts, ends]), axis=0) for f in (np.min, np.max))
    points, faces = mesh_of_field(skeleton.field, low - margin, high + margin, 0.02, vertices, skeleton.thickness)
    points.flags.writeable = faces.flags.writeable = False
    return points, faces


_BONE_MODES = ("bow", "slenderness", "torsion", "condyles", "head")
# Root mean square displacements for one standard deviation, in units of the length of the bone; all are well below
# what folds the surface at three standard deviations.
_BONE_SIZES = (0.020, 0.008, 0.005, 0.004, 0.003)


def _bone_modes(points: Array) -> Array:
    """Displacements for one standard deviation, orthogonal to each other and to motions and scaling (5, n, 3)."""
    x, y, z = (points - points.mean(axis=0)).T
    zero = np.zeros_like(y)
    height = np.abs(y).max()
    head = points - np.array(_HEAD)
    distal = np.exp(-(((points[:, 1] + 0.46) / 0.09) ** 2))
    raw = [
        np.stack([zero, zero, (y / height) ** 2], axis=1),
        np.stack([zero, y, zero], axis=1),
        np.stack([z, zero, -x], axis=1) * (y / height)[:, None],
        np.stack([x * distal, zero, 0.5 * z * distal], axis=1),
        head * np.exp(-((head / 0.11) ** 2).sum(axis=1))[:, None],
    ]
    centred = np.stack([x, y, z], axis=1)
    fixed = [np.tile(e, (len(points), 1)) for e in np.eye(3)] + [np.cross(e, centred) for e in np.eye(3)] + [centred]
    basis = np.linalg.qr(np.array([f.ravel() for f in (*fixed, *raw)]).T)[0].T[len(fixed) :]
    signs = np.sign((basis * np.array([r.ravel() for r in raw])).sum(axis=1))
    scales = signs * np.array(_BONE_SIZES) * np.sqrt(len(points))
    return (scales[:, None] * basis).reshape(len(raw), -1, 3)


_HEAD = (0.085, 0.44, 0.01)


def _finger(name: str, x: float, y: float, lean: float, length: float, radius: float, spread: float) -> list[_Part]:
    """Three phalanges; the fingers bend about x and spread about z."""
    direction = np.array([np.sin(np.radians(lean)), np.cos(np.radians(lean)), 0.0])
    base = np.array([x, y, 0.0])
    joints = [base + fraction * length * direction for fraction in (0.45, 0.75, 1.0)]
    points = [(float(x), float(y), float(z)) for x, y, z in joints]
    return [
        _Part(f"{name} 1", "palm", points[0], (radius, 0.95 * radius), (x, y, 0.0), (9.0, 0.0, spread)),
        _Part(f"{name} 2", f"{name} 1", points[1], (0.95 * radius, 0.88 * radius), None, (11.0, 0.0, 0.0)),
        _Part(f"{name} 3", f"{name} 2", points[2], (0.88 * radius, 0.75 * radius), None, (7.0, 0.0, 0.0)),
    ]


def _leg(name: str, x: float, z: float, hip: float, bend: float) -> list[_Part]:
    """Thigh, shank and foot of a leg that stands at (x, z); it swings about z, the axis from left to right."""
    return [
        _Part(f"leg {name} 1", "trunk", (x, 0.27, z), (0.085, 0.05), (x + 0.02, hip, 0.75 * z), (0.0, 0.0, 12.0)),
        _Part(f"leg {name} 2", f"leg {name} 1", (x + bend, 0.06, z), (0.05, 0.032), None, (0.0, 0.0, 8.0)),
        _Part(f"leg {name} 3", f"leg {name} 2", (x + bend + 0.05, 0.03, z), (0.036, 0.03), None, (0.0, 0.0, 5.0)),
    ]


_SKELETONS: dict[Kind, _Skeleton] = {
    # a thigh bone: shaft, neck and head, trochanter, two condyles
    "bone": _Skeleton(
        (
            _Part("shaft", None, (0.0, 0.34, 0.0), (0.042, 0.042), (0.0, -0.36, 0.0)),
            _Part("neck", "shaft", _HEAD, (0.036, 0.03)),
            _Part("head", "neck", (0.087, 0.442, 0.01), (0.058, 0.058)),
            _Part("trochanter", "shaft", (-0.03, 0.41, 0.0), (0.036, 0.03)),
            _Part("flare", "shaft", (0.0, -0.44, 0.0), (0.04, 0.055), (0.0, -0.36, 0.0)),
            _Part("condyle inner", "shaft", (0.05, -0.46, -0.03), (0.045, 0.045), (0.045, -0.46, 0.015)),
            _Part("condyle outer", "shaft", (-0.05, -0.46, -0.03), (0.042, 0.042), (-0.045, -0.46, 0.015)),
        ),
        blend=0.012,
    ),
    "hand": _Skeleton(
        (
            _Part("palm", None, (0.0, 0.34, 0.0), (0.085, 0.09), (0.0, 0.18, 0.0)),
            _Part("wrist", "palm", (0.0, 0.0, 0.0), (0.08, 0.075), (0.0, 0.18, 0.0)),
            _Part("palm index", "palm", (-0.14, 0.42, 0.0), (0.06, 0.058), (-0.04, 0.2, 0.0)),
            _Part("palm middle", "palm", (-0.047, 0.43, 0.0), (0.06, 0.058), (0.0, 0.2, 0.0)),
            _Part("palm ring", "palm", (0.047, 0.42, 0.0), (0.06, 0.058), (0.0, 0.2, 0.0)),
            _Part("palm little", "palm", (0.135, 0.39, 0.0), (0.058, 0.054), (0.04, 0.2, 0.0)),
            *_finger("index", -0.15, 0.44, -9.0, 0.4, 0.040, 2.0),
            *_finger("middle", -0.05, 0.46, -3.0, 0.45, 0.042, 1.0),
            *_finger("ring", 0.05, 0.45, 3.0, 0.41, 0.040, 1.0),
            *_finger("little", 0.145, 0.41, 11.0, 0.32, 0.036, 2.0),
            _Part("thumb 1", "palm", (-0.2, 0.31, 0.05), (0.065, 0.055), (-0.06, 0.16, 0.03), (6.0, 6.0, 6.0)),
            _Part("thumb 2", "thumb 1", (-0.27, 0.42, 0.07), (0.055, 0.05), None, (8.0, 0.0, 8.0)),
            _Part("thumb 3", "thumb 2", (-0.31, 0.51, 0.08), (0.05, 0.042), None, (8.0, 0.0, 8.0)),
        ),
        blend=0.014,
        sizes=(
            ("size", "", 0.06, 0.06),
            ("palm width", "palm", 0.0, 0.08),
            ("finger length", "index", 0.08, 0.0),
            ("middle length", "middle", 0.08, 0.0),
            ("ring length", "ring", 0.08, 0.0),
            ("little length", "little", 0.09, 0.0),
            ("thumb length", "thumb", 0.07, 0.05),
        ),
    ),
    # it looks along x; z goes from left to right
    "quadruped": _Skeleton(
        (
            _Part("trunk", None, (0.3, 0.58, 0.0), (0.125, 0.14), (-0.32, 0.58, 0.0)),
            _Part("neck", "trunk", (0.52, 0.82, 0.0), (0.095, 0.07), (0.34, 0.62, 0.0), (0.0, 7.0, 10.0)),
            _Part("head", "neck", (0.62, 0.84, 0.0), (0.085, 0.075), None, (0.0, 7.0, 9.0)),
            _Part("head snout", "head", (0.76, 0.79, 0.0), (0.06, 0.04)),
            _Part("ear left", "head", (0.53, 0.96, -0.1), (0.03, 0.018), (0.56, 0.88, -0.055)),
            _Part("ear right", "head", (0.53, 0.96, 0.1), (0.03, 0.018), (0.56, 0.88, 0.055)),
            *_leg("front left", 0.27, -0.11, 0.52, 0.0),
            *_leg("front right", 0.27, 0.11, 0.52, 0.0),
            *_leg("hind left", -0.3, -0.11, 0.54, -0.05),
            *_leg("hind right", -0.3, 0.11, 0.54, -0.05),
            _Part("tail 1", "trunk", (-0.58, 0.6, 0.0), (0.045, 0.03), (-0.42, 0.64, 0.0), (0.0, 12.0, 10.0)),
            _Part("tail 2", "tail 1", (-0.75, 0.5, 0.0), (0.03, 0.022), None, (0.0, 14.0, 10.0)),
        ),
        blend=0.014,
        sizes=(
            ("size", "", 0.08, 0.08),
            ("trunk", "trunk", 0.08, 0.07),
            ("leg length", "leg", 0.09, 0.0),
            ("leg thickness", "leg", 0.0, 0.08),
            ("neck length", "neck", 0.12, 0.04),
            ("head size", "head", 0.09, 0.06),
            ("ear length", "ear", 0.18, 0.03),
            ("tail length", "tail", 0.15, 0.05),
        ),
    ),
}

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
