"""Kinds of disturbed bodies, and the disturbances on a built-in human, whose parts are marked here by position."""

from collections.abc import Mapping

import numpy as np
import pytest

from acnn.datasets import builtin_human
from acnn.datasets.humans import disturb
from acnn.datasets.humans.body import Body
from acnn.datasets.humans.disturb import Figure
from acnn.datasets.humans.kind_files import disturbed_names
from acnn.datasets.humans.kinds import HELD_OUT, KINDS, TRAINED, BodyMaker, draw_kinds, kind_names, kind_of
from acnn.datasets.humans.poses import POSE_FAMILIES, UNSEEN_POSES
from acnn.datasets.implicit import solid_voxels, voxel_mesh
from acnn.errors import InputError
from acnn.shapes.mesh import Mesh
from acnn.shapes.topology import mesh_edges
from acnn.surface.working_copy import working_copy


@pytest.fixture(scope="module")
def figure() -> Figure:
    mesh = builtin_human()
    x, y = np.abs(mesh.vertices[:, 0]), mesh.vertices[:, 1]
    top = y.max()
    arm, foot, head = x > 0.27, y < 0.1, y > 0.87 * top
    low_arm = arm & (y < 0.62 * top)
    parts = {
        "head": head,
        "neck": (y > 0.83 * top) & ~head,
        "upper_arm": arm & ~low_arm,
        "lower_arm": low_arm & (y >= 0.5 * top),
        "hand": low_arm & (y < 0.5 * top),
        "foot": foot,
        "shin": (y < 0.28 * top) & ~foot,
        "thigh": (y >= 0.28 * top) & (y < 0.45 * top) & ~arm,
    }
    parts["torso"] = ~np.any(list(parts.values()), axis=0)
    return Figure(mesh, mesh.vertices, {name: part.astype(float) for name, part in parts.items()})


def box(low: tuple[float, ...], high: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
    faces += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]
    return np.array(low) + corners * (np.array(high) - np.array(low)), np.array(faces, np.int32)


def boxes(*bounds: tuple[tuple[float, ...], tuple[float, ...]]) -> Mesh:
    made = [box(*bound) for bound in bounds]
    return Mesh(
        np.concatenate([points for points, _ in made]),
        np.concatenate([faces + 8 * k for k, (_, faces) in enumerate(made)]).astype(np.int32),
    )


def volume(mesh: Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def test_solid_voxels_are_the_grid_points_inside_a_union_of_boxes() -> None:
    first, second = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), ((0.5, 0.5, 0.5), (1.5, 1.3, 1.2))
    low, shape, cell = np.full(3, -0.21), (20, 18, 17), 0.1
    found = solid_voxels(boxes(first, second), low, shape, cell)
    grid = low + cell * np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
    inside = [((grid > a) & (grid < b)).all(axis=-1) for a, b in (first, second)]
    assert np.array_equal(found, inside[0] | inside[1])


def test_voxels_unite_what_intersects_and_close_narrow_gaps() -> None:
    overlapping = boxes(((0, 0, 0), (1, 1, 1)), ((0.5, 0.2, 0.2), (1.6, 0.8, 0.8)))
    united = voxel_mesh(overlapping, 0.05, smoothing=0)
    assert volume(united) == pytest.approx(1 + 0.6 * 0.36, rel=0.03)
    assert set(mesh_edges(united.faces).counts) == {2}
    fingers = boxes(((0, 0, 0), (1, 0.4, 0.4)), ((0, 0.6, 0), (1, 1, 0.4)))
    assert volume(voxel_mesh(fingers, 0.05, smoothing=0)) == pytest.approx(0.16, rel=0.1)  # the larger one alone
    mitten = voxel_mesh(fingers, 0.04, closing=0.4, smoothing=0)  # without closing 0.32; edges are rounded
    assert volume(mitten) == pytest.approx(0.4, rel=0.08)


@pytest.mark.parametrize(
    ("displace", "moved"),
    [
        (disturb.shoes, ("foot", "shin")),
        (disturb.hair, ("head", "neck", "torso")),
        (disturb.hat, ("head",)),
        (disturb.clothing, ("torso", "upper_arm", "lower_arm", "thigh", "shin")),
    ],
)
def test_displacements_move_only_the_parts_that_they_cover(figure, displace, moved) -> None:  # type: ignore[no-untyped-def]
    distance = [
        np.linalg.norm(displace(figure, np.random.default_rng(seed)).mesh.vertices - figure.mesh.vertices, axis=1)
        for seed in range(3)
    ]
    covered = np.sum([figure.regions[part] for part in moved], axis=0) > 0
    for moves in distance:
        assert 0.005 < moves.max() < 0.15
        assert moves[~covered].max() < 1e-9
    assert not np.allclose(distance[0], distance[1])


def test_missing_ends_are_gone_and_nothing_else(figure: Figure) -> None:
    for seed in range(4):
        mesh = disturb.without_ends(figure, np.random.default_rng(seed))
        inner = figure.regions["torso"] + figure.regions["head"] > 0
        left = {tuple(point) for point in mesh.vertices.tolist()}
        assert all(tuple(point) in left for point in figure.mesh.vertices[inner].tolist())
        assert len(mesh.vertices) < len(figure.mesh.vertices)
        assert (mesh_edges(mesh.faces).counts <= 2).all()


@pytest.mark.parametrize("triangulate", [disturb.uneven, disturb.anisotropic, disturb.irregular])
def test_triangulations_keep_vertices_of_the_surface(figure, triangulate) -> None:  # type: ignore[no-untyped-def]
    mesh = triangulate(figure.mesh, 1500, np.random.default_rng(0))
    assert 1500 <= len(mesh.vertices) <= 1600
    known = {tuple(point) for point in figure.mesh.vertices.tolist()}
    assert all(tuple(point) in known for point in mesh.vertices.tolist())
    assert volume(mesh) == pytest.approx(volume(figure.mesh), rel=0.05)
    assert set(mesh_edges(mesh.faces).counts) == {2}


def test_anisotropic_triangles_are_long(figure: Figure) -> None:
    def edges(mesh: Mesh) -> np.ndarray:
        corners = mesh.vertices[mesh.faces]
        return (corners - np.roll(corners, 1, axis=1)).reshape(-1, 3)

    def upright(vectors: np.ndarray) -> float:
        return float(np.abs(vectors[:, 1]).mean() / np.linalg.norm(vectors[:, ::2], axis=1).mean())

    long = disturb.anisotropic(figure.mesh, 500, np.random.default_rng(1))
    assert upright(edges(long)) > 1.5 * upright(edges(working_copy(figure.mesh, 500).shape))


class StandIn(Body):
    """A body that cannot bend: all of the built-in human hangs on the first bone."""

    def rest(self, phenotypes: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        heads = np.random.default_rng(0).uniform(0.2, 1.0, (len(self.bones), 3))
        heads[0] = 0.0
        return builtin_human().vertices, heads


def stand_in() -> StandIn:
    arm = ["clavicle", "shoulder01", "upperarm01", "upperarm02", "lowerarm01", "lowerarm02", "wrist"]
    fingers = [f"finger{finger}-{joint}" for finger in range(1, 6) for joint in range(1, 4)]
    leg = ["pelvis", "upperleg01", "upperleg02", "lowerleg01", "foot"]
    spine = [*(f"spine0{k}" for k in range(1, 6)), *(f"neck0{k}" for k in range(1, 4)), "head"]
    bones = ["root", *spine, *(f"{name}.{side}" for name in arm + fingers + leg for side in "LR")]
    n = len(builtin_human().vertices)
    weights = np.zeros((n, len(bones)))
    weights[:, 0] = 1.0
    parents = np.full(len(bones), -1)
    return StandIn(builtin_human().faces, tuple(bones), parents, weights, np.arange(n), np.ones(n), None, None)


def test_ground_truth_is_the_point_that_a_vertex_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acnn.datasets.humans.kinds.DENSE", 1500)
    monkeypatch.setattr("acnn.datasets.humans.posing._PROXY", 100)
    maker = BodyMaker(stand_in(), 2, 600, seed=3)
    reference = builtin_human()
    for name in ("hands-on-hips", "hands-on-hips+voxels", "hands-on-hips+cloud"):  # poses that do not lean
        made = maker.make(1, 0, name)
        known = made.truth.faces >= 0
        points = made.truth[known].interpolate(reference.vertices[reference.faces])
        gap = np.linalg.norm(points - made.shape.vertices[known], axis=1)
        assert known.mean() > 0.95
        assert np.median(gap) < 0.006
        assert np.percentile(gap, 99) < 0.03
        assert 300 < len(made.shape.vertices) <= 650
    again = maker.make(1, 0, "hands-on-hips+cloud").shape.vertices
    assert np.array_equal(made.shape.vertices, again)
    assert not np.array_equal(again, maker.make(1, 1, "hands-on-hips+cloud").shape.vertices)


def test_names_of_kinds() -> None:
    assert kind_names("held-out") == HELD_OUT
    assert set(kind_names("trained,held-out")) == set(KINDS)
    assert not set(TRAINED) & set(HELD_OUT)
    both = kind_of("shoes+voxels")
    assert both.surface is disturb.shoes
    assert both.voxels == KINDS["voxels"].voxels
    assert kind_of("shoes+mittens").held_out
    for wrong, why in (
        ("cape", "no kind 'cape'"),
        ("hat+hair", "surface"),
        ("missing-ends+voxels", "voxels"),
        ("", "no"),
    ):
        with pytest.raises(InputError, match=why):
            kind_names(wrong)


def test_kinds_are_drawn_in_turn_and_combined_where_they_fit() -> None:
    assert draw_kinds(("hat", "shoes"), 4, 0) == ["hat", "shoes", "hat", "shoes"]
    drawn = draw_kinds(TRAINED, 200, 3, combine=0.5)
    assert drawn == draw_kinds(TRAINED, 200, 3, combine=0.5)
    assert 60 < sum("+" in name for name in drawn) < 120
    assert not any(kind_of(name).held_out for name in drawn)
    names = disturbed_names(("hat", "shoes"), 2, 3, 0, 0.0)
    assert names[:2] == ["human_00_00_hat", "human_00_01_shoes"]
    assert len(set(names)) == 6


def test_trained_kinds_have_no_pose_that_is_held_out() -> None:
    held_out = {kind.poses for kind in KINDS.values() if kind.held_out and kind.poses}
    trained = {kind.poses for kind in KINDS.values() if not kind.held_out and kind.poses}
    assert not held_out & trained
    for family, poses in POSE_FAMILIES.items():
        assert not set(poses) & set(UNSEEN_POSES), family
