"""The shipped humans, and the pieces that make them (no body model needed)."""

from dataclasses import replace
from importlib import resources

import numpy as np
import pytest

from acnn.datasets import builtin_human, builtin_humans
from acnn.datasets.builtin import pack_humans, read_humans
from acnn.datasets.humans.poses import TEST_POSES, TRAINING_POSES, UNSEEN_POSES, Pose, blend, bone_turns
from acnn.datasets.humans.posing import overlap_share, rigid_relaxer
from acnn.errors import InputError
from acnn.surface.simplify import decimate, remesh


@pytest.fixture(scope="module")
def humans():
    return builtin_humans()


def edges_of(faces):
    return np.unique(np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1), axis=0)


def assert_closed_genus_zero(vertices, faces):
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    assert len(np.unique(directed, axis=0)) == len(directed), "an edge is used twice in one direction"
    there, back = set(map(tuple, directed.tolist())), set(map(tuple, directed[:, ::-1].tolist()))
    assert there == back, "open, or not oriented alike"
    assert set(np.unique(faces)) == set(range(len(vertices)))
    assert len(vertices) - len(directed) // 2 + len(faces) == 2
    # one fan of faces around every vertex: the edges opposite to it form one ring
    following = {(a, b): c for f in faces.tolist() for a, b, c in (f, f[1:] + f[:1], f[2:] + f[:2])}
    degree = np.bincount(faces.ravel())
    start = {}
    for (a, b), _ in following.items():
        start.setdefault(a, b)
    for vertex, first in start.items():
        at, steps = following[(vertex, first)], 1
        while at != first:
            at, steps = following[(vertex, at)], steps + 1
        assert steps == degree[vertex]


def volume(vertices, faces):
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def icosphere(levels):
    g = (1 + 5**0.5) / 2
    v = np.array(
        [
            *[(-1, g, 0), (1, g, 0), (-1, -g, 0), (1, -g, 0), (0, -1, g), (0, 1, g)],
            *[(0, -1, -g), (0, 1, -g), (g, 0, -1), (g, 0, 1), (-g, 0, -1), (-g, 0, 1)],
        ]
    )
    f = [(0, 11, 5), (0, 5, 1), (0, 1, 7), (0, 7, 10), (0, 10, 11), (1, 5, 9), (5, 11, 4), (11, 10, 2), (10, 7, 6)]
    f += [(7, 1, 8), (3, 9, 4), (3, 4, 2), (3, 2, 6), (3, 6, 8), (3, 8, 9), (4, 9, 5), (2, 4, 11), (6, 2, 10)]
    f = np.array([*f, (8, 6, 7), (9, 8, 1)])
    for _ in range(levels):
        edges = edges_of(f)
        number = {tuple(e): len(v) + i for i, e in enumerate(edges.tolist())}
        v = np.concatenate([v, v[edges].mean(axis=1)])
        m = np.array([[number[tuple(sorted((t[k], t[(k + 1) % 3])))] for k in range(3)] for t in f.tolist()])
        f = np.concatenate(
            [
                np.stack([f[:, 0], m[:, 0], m[:, 2]], 1),
                np.stack([m[:, 0], f[:, 1], m[:, 1]], 1),
                np.stack([m[:, 2], m[:, 1], f[:, 2]], 1),
                m,
            ]
        )
    return v / np.linalg.norm(v, axis=1, keepdims=True), f.astype(np.int32)


def test_file_is_small_and_holds_no_objects():
    data = resources.files("acnn.datasets").joinpath("data/humans.npz").read_bytes()
    assert len(data) < 3_000_000
    with resources.files("acnn.datasets").joinpath("data/humans.npz").open("rb") as stream:
        arrays = np.load(stream, allow_pickle=False)
        assert float(arrays["step"]) < 1e-4  # metres


def test_counts_and_split(humans):
    people = len(humans.phenotypes)
    assert people >= 10
    assert 2000 <= humans.vertices.shape[1] <= 3000
    assert humans.vertices.shape == (len(humans.names), humans.mirror.size, 3)
    assert (np.bincount(humans.subjects, minlength=people) >= 6).all()
    assert len(set(humans.names)) == len(humans.names)
    train = {s for s, part in zip(humans.subjects, humans.split, strict=True) if part == "train"}
    test = {s for s, part in zip(humans.subjects, humans.split, strict=True) if part == "test"}
    assert len(train) >= 8
    assert len(test) >= 2
    assert not train & test
    seen = {p for p, part in zip(humans.poses, humans.split, strict=True) if part == "train"}
    unseen = {p for p, part in zip(humans.poses, humans.split, strict=True) if part == "test"}
    assert not seen & unseen
    assert len(seen | unseen) >= 12


def test_connectivity_is_closed_manifold_and_genus_zero(humans):
    assert_closed_genus_zero(humans.vertices[0], humans.faces)


def test_every_shape_is_outward_and_without_degenerate_faces(humans):
    for vertices in humans.vertices:
        assert 0.01 < volume(vertices, humans.faces) < 0.15  # cubic metres: a child to a heavy man
        a, b, c = (vertices[humans.faces[:, k]] for k in range(3))
        assert 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).min() > 1e-7
        assert len(np.unique(vertices, axis=0)) == len(vertices)


def test_triangles_of_the_reference_are_well_shaped(humans):
    corners = humans.vertices[0][humans.faces]
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    quality = 4 * np.sqrt(3) * area / (sides**2).sum(axis=1)
    assert np.median(quality) > 0.8
    assert np.percentile(quality, 1) > 0.3


def test_humans_stand_upright_and_face_the_front(humans):
    stand = humans.vertices[0]
    assert humans.poses[0] == "stand"
    assert np.ptp(stand[:, 1]) > 2 * np.ptp(stand[:, 0]) > 2 * np.ptp(stand[:, 2]) * 0.5
    assert np.allclose(humans.vertices[:, :, 1].min(axis=1), 0, atol=1e-3)
    feet = stand[stand[:, 1] < 0.03 * np.ptp(stand[:, 1])]
    head = stand[stand[:, 1] > 0.95 * np.ptp(stand[:, 1])]
    heels = feet[feet[:, 0] > 0]
    ankle = stand[np.abs(stand[:, 1] - 0.08 * np.ptp(stand[:, 1])) < 0.02]
    assert heels[:, 2].max() - ankle[:, 2].mean() > 1.5 * (ankle[:, 2].mean() - heels[:, 2].min())  # toes to +z
    assert abs(head[:, 2].mean() - feet[:, 2].mean()) < 0.1  # and no lean
    heights = [np.ptp(v[:, 1]) for v, p in zip(humans.vertices, humans.poses, strict=True) if p == "stand"]
    assert 1.0 < min(heights) < 1.4
    assert 1.7 < max(heights) < 2.1


def test_people_differ_in_shape_and_poses_in_bending(humans):
    edges = edges_of(humans.faces)
    lengths = np.linalg.norm(humans.vertices[:, edges[:, 0]] - humans.vertices[:, edges[:, 1]], axis=2)
    stands = [i for i, p in enumerate(humans.poses) if p == "stand"]
    scaled = lengths[stands] / lengths[stands].mean(axis=1, keepdims=True)
    other_person = np.abs(np.log(scaled[1:] / scaled[0])).mean()
    same_person = []
    for person in np.unique(humans.subjects):
        own = lengths[humans.subjects == person]
        change = np.abs(np.log(own / np.median(own, axis=0)))
        same_person.append(change.mean())
        # bending keeps lengths: nearly all edges change by less than a fifth, but for folds at groin and armpit
        assert np.median(change) < 0.02
        assert np.percentile(change, 97) < 0.2
    assert other_person > 2 * np.mean(same_person)
    for person in np.unique(humans.subjects):
        own = humans.vertices[humans.subjects == person]
        spread = np.array([np.sqrt(((a[:, None] - a[None, ::50]) ** 2).sum(-1)) for a in own[:, ::10]])
        for i in range(len(own)):
            for j in range(i):
                assert np.abs(spread[i] - spread[j]).max() > 0.15  # some pair of points moved 15 cm apart or together


def test_limbs_bend_by_60_degrees_and_more():
    heads, bones = skeleton()
    elbows, knees = [], []
    for pose in [*TRAINING_POSES.values(), *TEST_POSES.values()]:
        turns = bone_turns(pose, bones, heads)
        rest = angle(heads[1] - heads[0], heads[2] - heads[1])
        elbows += [rest + rotation_angle(turns[f"lowerarm01.{s}"]) for s in "LR"]
        knees += [rotation_angle(turns[f"lowerleg01.{s}"]) for s in "LR"]
    assert sum(e > 60 for e in elbows) >= 10
    assert sum(k > 60 for k in knees) >= 10
    assert max(elbows) < 160
    assert max(knees) < 140


def test_mirror_swaps_left_and_right(humans):
    stand = humans.vertices[0]
    mirror = humans.mirror
    assert (mirror[mirror] == np.arange(len(mirror))).mean() > 0.95
    left_hand = np.argmax(stand[:, 0])
    right_hand = np.argmin(stand[:, 0])
    assert np.linalg.norm(stand[mirror[left_hand]] - stand[right_hand]) < 0.05
    t_pose = humans.vertices[humans.poses.index("t-pose")]
    assert t_pose[mirror[np.argmax(t_pose[:, 0])], 0] < 0.8 * t_pose[:, 0].min()
    # the reference stands evenly, so its mirror image lies on itself
    assert np.percentile(np.linalg.norm(stand[mirror] - stand * [-1, 1, 1], axis=1), 99) < 0.02


def test_one_human_by_number(humans):
    mesh = builtin_human(1, 2)
    index = np.flatnonzero(humans.subjects == 1)[2]
    assert np.array_equal(mesh.vertices, humans.vertices[index])
    mesh.vertices[0] = 0  # a copy: the shared one stays
    assert not np.array_equal(mesh.vertices, builtin_human(1, 2).vertices)
    with pytest.raises(InputError, match="subjects are 0 to"):
        builtin_human(99)
    with pytest.raises(InputError, match="poses 0 to"):
        builtin_human(0, -1)


def test_packing_keeps_places_to_a_step(humans, tmp_path):
    path = tmp_path / "again.npz"
    with path.open("wb") as stream:
        pack_humans(humans, stream)
    with path.open("rb") as stream:
        again = read_humans(stream)
    assert np.abs(again.vertices - humans.vertices).max() < 5e-5
    assert again.names == humans.names
    assert np.array_equal(again.faces, humans.faces)


def test_decimated_sphere_is_closed_round_and_even():
    vertices, faces = icosphere(4)
    kept, coarse = decimate(vertices, faces, 400)
    assert len(kept) == 400
    assert_closed_genus_zero(kept, coarse)
    assert volume(vertices[kept], coarse) == pytest.approx(4 / 3 * np.pi, rel=0.04)
    edges = edges_of(coarse)
    length = np.linalg.norm(vertices[kept][edges[:, 0]] - vertices[kept][edges[:, 1]], axis=1)
    assert np.percentile(length, 95) < 2.5 * np.percentile(length, 5)
    with pytest.raises(InputError, match="Cannot take"):
        decimate(vertices, faces, len(vertices) + 1)


def test_a_vertex_of_more_faces_than_any_table_is_expected_to_hold():
    around, along = 100, 30
    height, angle = np.meshgrid(
        np.pi * np.arange(1, along) / along, 2 * np.pi * np.arange(around) / around, indexing="ij"
    )
    rows = np.stack([np.sin(height) * np.cos(angle), np.sin(height) * np.sin(angle), np.cos(height)], -1).reshape(-1, 3)
    vertices = np.vstack([rows, [[0, 0, 1.0], [0, 0, -1.0]]])
    here = np.arange(around)
    right = (here + 1) % around
    north, south = len(rows), len(rows) + 1
    last = (along - 2) * around
    faces = [
        np.stack([np.full(around, north), here, right], 1),
        np.stack([np.full(around, south), last + right, last + here], 1),
    ]
    for start in range(0, last, around):
        below = start + around
        faces += [
            np.stack([start + here, below + here, below + right], 1),
            np.stack([start + here, below + right, start + right], 1),
        ]
    faces = np.concatenate(faces).astype(np.int32)
    assert np.bincount(faces.ravel()).max() == 100
    kept, coarse = decimate(vertices, faces, 600)
    assert len(kept) == 600
    assert_closed_genus_zero(kept, coarse)


def test_wanted_size_is_followed():
    vertices, faces = icosphere(4)
    kept, _ = decimate(vertices, faces, 500, size=np.where(vertices[:, 0] > 0, 0.5, 1.0))
    right = (vertices[kept][:, 0] > 0).sum()
    assert right > 2 * (500 - right)


def test_remeshed_human_lies_on_the_old_one_where_the_truth_says(humans):
    mesh = humans.mesh(0)
    new = remesh(mesh, seed=3)
    assert_closed_genus_zero(new.mesh.vertices, new.mesh.faces)
    assert 0.9 * 2500 <= len(new.mesh.vertices) <= 1.1 * 2500
    assert np.allclose(new.truth.weights.sum(axis=1), 1)
    assert new.truth.weights.min() >= 0
    there = np.einsum("nk,nkd->nd", new.truth.weights, mesh.vertices[mesh.faces[new.truth.faces]])
    gap = np.linalg.norm(there - new.mesh.vertices, axis=1)
    assert gap.max() < 0.02
    assert np.median(gap) < 0.001
    assert volume(new.mesh.vertices, new.mesh.faces) == pytest.approx(volume(mesh.vertices, mesh.faces), rel=0.03)
    assert (new.truth.weights.max(axis=1) > 1 - 1e-9).mean() < 0.3  # most vertices are new ones
    assert (
        len(np.unique(np.diff(new.truth.nearest_vertex(mesh.vertices, mesh.faces)))) > 1000
    )  # and the order is another
    again, other = remesh(mesh, seed=3), remesh(mesh, seed=4)
    assert np.array_equal(again.mesh.vertices, new.mesh.vertices)
    assert np.array_equal(again.mesh.faces, new.mesh.faces)
    assert len(other.mesh.vertices) != len(new.mesh.vertices) or not np.allclose(other.mesh.vertices, new.mesh.vertices)


def test_overlap_of_two_spheres_is_the_share_inside():
    vertices, faces = icosphere(3)
    apart = np.concatenate([vertices, vertices + np.array([3, 0, 0])])
    both = np.concatenate([faces, faces + len(vertices)])
    assert overlap_share(apart, both, 1e-3) == 0
    near = np.concatenate([vertices, vertices + np.array([1, 0, 0])])
    assert overlap_share(near, both, 1e-3) == pytest.approx(0.25, abs=0.02)  # caps of height 1/2


def test_relaxing_undoes_a_stretch_and_keeps_a_rotation():
    vertices, faces = icosphere(2)
    relax = rigid_relaxer(faces, len(vertices), hold=1e-3, rounds=60)
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    assert np.allclose(relax(vertices, vertices @ turn.T), vertices @ turn.T, atol=1e-9)
    stretched = vertices * [1.3, 1, 1]
    before = np.ptp(stretched[:, 0]) - 2
    assert abs(np.ptp(relax(vertices, stretched)[:, 0]) - 2) < 0.5 * before


def test_turns_bring_the_limbs_where_the_pose_says():
    heads, bones = skeleton()
    turns = bone_turns(TRAINING_POSES["surrender"], bones, heads)
    arm = TRAINING_POSES["surrender"].left_arm
    moved = turns["clavicle.L"] @ turns["shoulder01.L"] @ turns["upperarm01.L"] @ turns["upperarm02.L"]
    assert angle(moved @ (heads[1] - heads[0]), np.array(arm.upper)) < 1e-6
    moved = moved @ turns["lowerarm01.L"]
    assert angle(moved @ (heads[2] - heads[1]), np.array(arm.fore)) < 1e-6
    same = bone_turns(TRAINING_POSES["run"], bones, heads, 5.0, 3)
    again = bone_turns(TRAINING_POSES["run"], bones, heads, 5.0, 3)
    assert all(np.array_equal(same[b], again[b]) for b in same)
    assert not np.allclose(
        same["lowerarm01.L"], bone_turns(TRAINING_POSES["run"], bones, heads, 5.0, 4)["lowerarm01.L"]
    )


def test_unseen_poses_are_unlike_all_others():
    """Far beyond the variation of a pose from body to body, which is 5 degrees."""

    def apart(pose, other):
        limbs = [(pose.left_arm, other.left_arm), (pose.right_arm, other.right_arm)]
        pairs = [pair for a, b in limbs for pair in ((a.upper, b.upper), (a.fore, b.fore))]
        legs = [(pose.left_leg, other.left_leg), (pose.right_leg, other.right_leg)]
        turns = [angle(np.array(u), np.array(v)) for u, v in [*pairs, *((a.thigh, b.thigh) for a, b in legs)]]
        return np.mean([*turns, *(abs(a.knee - b.knee) for a, b in legs)])

    known = [*TRAINING_POSES.values(), *TEST_POSES.values()]
    known += [
        replace(p, left_arm=p.right_arm, right_arm=p.left_arm, left_leg=p.right_leg, right_leg=p.left_leg)
        for p in known
    ]
    assert len(UNSEEN_POSES) == 8
    assert not {*UNSEEN_POSES} & {*TRAINING_POSES, *TEST_POSES}
    assert min(apart(pose, other) for pose in UNSEEN_POSES.values() for other in known) > 20


def test_blend_runs_from_one_pose_to_the_other():
    run, stand = TRAINING_POSES["run"], Pose()
    assert blend(run, stand, 0.0) == run
    assert blend(run, stand, 0.5).left_leg.knee == pytest.approx((run.left_leg.knee + stand.left_leg.knee) / 2)


def skeleton():
    """A body at rest with the proportions of the model: the bones that poses name, left and right."""
    left = {
        "upperarm01": (0.16, 0.47, 0.02),
        "lowerarm01": (0.33, 0.28, 0.02),
        "wrist": (0.45, 0.16, 0.18),
        "upperleg01": (0.10, 0.04, 0.01),
        "lowerleg01": (0.13, -0.35, 0.04),
        "foot": (0.18, -0.75, 0.0),
    }
    for finger in range(1, 6):
        for joint in (1, 2, 3):
            left[f"finger{finger}-{joint}"] = (0.47 + 0.02 * joint, 0.14 - 0.02 * joint, 0.3 - 0.02 * finger)
    heads = [*left.values(), *((-x, y, z) for x, y, z in left.values())]
    bones = [f"{name}.{side}" for side in "LR" for name in left]
    return np.array(heads), bones


def angle(a, b):
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b)), np.dot(a, b)))


def rotation_angle(matrix):
    return np.degrees(np.arccos(np.clip((np.trace(matrix) - 1) / 2, -1, 1)))
