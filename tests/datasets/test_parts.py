"""Parts: where planes and discs cut, how much they take, and what is known of what stays."""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analytic import grid, sphere

from acnn.datasets import builtin_human, builtin_humans, humans_dataset, open_dataset
from acnn.datasets.dataset import Dataset, Example, InMemory, Sample
from acnn.datasets.parts import KINDS, TOLERANCE, cut_part, parts_of
from acnn.errors import InputError
from acnn.runs.data import make_parts
from acnn.shapes import Mesh, PointCloud, load, save
from acnn.shapes.mesh import BarycentricPoints
from acnn.shapes.topology import face_components, fans, mesh_edges
from acnn.surface import surface_of


def area(mesh: Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.faces[:, i]] for i in range(3))
    return float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2)


def pieces(faces: np.ndarray, n: int) -> np.ndarray:
    """Faces of each component."""
    first, second = mesh_edges(faces).pairs()
    return np.bincount(face_components(first, second, len(faces))[1])


@pytest.mark.parametrize("seed", range(4))
def test_planes_take_a_few_caps_off_a_sphere_and_discs_many(seed: int) -> None:
    mesh = sphere(4)
    regions = {}
    for kind in KINDS:
        _, kept = cut_part(mesh, kind, 0.2, seed)
        gone = mesh.faces[~np.isin(mesh.faces, kept).all(axis=1)]
        regions[kind] = pieces(gone, len(mesh.vertices))
    # single faces on the rim may be taken by tidying
    assert 1 <= (regions["cuts"] > 2).sum() <= 3
    assert (regions["holes"] > 2).sum() >= 4


@pytest.mark.parametrize("seed", range(3))
def test_what_planes_leave_of_a_square_is_convex(seed: int) -> None:
    from scipy.spatial import ConvexHull

    mesh = grid(40)
    _, kept = cut_part(mesh, "cuts", 0.4, seed)
    hull = ConvexHull(mesh.vertices[kept, :2])
    inside = (mesh.vertices[:, :2] @ hull.equations[:, :2].T + hull.equations[:, 2] < -1.5).all(axis=1)
    assert inside.sum() > 500
    assert np.isin(np.flatnonzero(inside), kept).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [0.05, 0.3, 0.8])
def test_share_and_soundness_of_a_part(kind: str, missing: float) -> None:
    whole = builtin_human(4, 3)
    part, kept = cut_part(whole, kind, missing, seed=5)
    assert 1 - area(part) / area(whole) == pytest.approx(missing, abs=TOLERANCE)
    assert (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(part.vertices, whole.vertices[kept])
    theirs = {tuple(face) for face in whole.faces.tolist()}
    assert all(tuple(face) in theirs for face in kept[part.faces].tolist())  # orientation too
    n = len(kept)
    np.testing.assert_array_equal(np.unique(part.faces), np.arange(n))
    edges = mesh_edges(part.faces)
    assert edges.counts.max() == 2
    assert fans(part.faces, *edges.pairs())[0] == n  # nothing hangs on by one vertex
    assert pieces(part.faces, n).min() >= 10


def test_a_seed_is_a_part() -> None:
    whole = builtin_human()
    for kind in KINDS:
        first, again, other = (cut_part(whole, kind, 0.3, seed)[1] for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)


def test_nothing_missing_is_the_whole_shape() -> None:
    whole = builtin_human()
    part, kept = cut_part(whole, "holes", 0.0)
    np.testing.assert_array_equal(kept, np.arange(len(whole.vertices)))
    np.testing.assert_array_equal(part.faces, whole.faces)


def test_other_components_are_cut_or_kept_as_they_are() -> None:
    ball = sphere(3)
    far = Mesh(
        np.concatenate([ball.vertices, ball.vertices + [9.0, 0, 0]]),
        np.concatenate([ball.faces, ball.faces + len(ball.vertices)]).astype(np.int32),
    )
    for kind in KINDS:
        part, _ = cut_part(far, kind, 0.3, 2)
        assert 1 - area(part) / area(far) == pytest.approx(0.3, abs=TOLERANCE)


def test_bad_arguments_and_coarse_meshes_are_told() -> None:
    with pytest.raises(InputError, match="'slices': use 'cuts' or 'holes'"):
        cut_part(sphere(1), "slices")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"Missing area 1\.5"):
        cut_part(sphere(1), missing=1.5)
    with pytest.raises(InputError, match="Seed -1"):
        cut_part(sphere(1), seed=-1)
    with pytest.raises(InputError, match="with 20 faces the nearest is"):
        cut_part(sphere(0), missing=0.07)
    humans = humans_dataset()
    with pytest.raises(InputError, match="smaller fraction first"):
        parts_of(humans, missing=(0.5, 0.2))
    with pytest.raises(InputError, match="0 parts"):
        parts_of(humans, count=0)


def test_parts_of_a_dataset_keep_what_is_known() -> None:
    humans = humans_dataset()
    parts = parts_of(humans, "cuts", (0.2, 0.6), count=200, seed=3)
    assert [s.number for s in parts] == list(range(1, 201))
    assert parts.samples[160].name == "human_00_00_cuts2"
    first, second = parts.samples[7], parts.samples[167]
    assert (first.split, first.subject) == (humans.samples[7].split, humans.samples[7].subject)
    shares = [s.read.missing for s in parts]
    assert 0.2 <= min(shares) < 0.25
    assert 0.55 < max(shares) <= 0.6
    example, share = pickle.loads(pickle.dumps(first)).read.with_missing()
    assert share == pytest.approx(first.read.missing, abs=TOLERANCE)
    assert not np.array_equal(example.labels, second.read().labels)
    # of another size: one unit serves all
    whole = humans.samples[7].read().shape
    scale = parts.unit / surface_of(whole).unit
    assert abs(scale - 1) > 0.01
    np.testing.assert_allclose(example.shape.vertices, scale * whole.vertices[example.labels], rtol=1e-12)
    assert parts.unit == surface_of(humans.reference).unit
    fewer = parts_of(humans, count=4)
    assert [s.name for s in fewer] == [f"human_{k:02d}_00_cuts" for k in (0, 5, 10, 15)]


def test_truth_pairs_and_mirrored_truth_are_carried_over() -> None:
    mesh = sphere(3)
    n = len(mesh.vertices)
    truth = BarycentricPoints(np.arange(n, dtype=np.int32), np.full((n, 3), 1 / 3))
    mirrored = BarycentricPoints(truth.faces[::-1].copy(), truth.weights)
    labels = np.arange(n, dtype=np.int32)[::-1].copy()
    pairs = np.stack([np.repeat(np.arange(n), 2), np.arange(2 * n) // 2], axis=1).astype(np.int32)
    whole = Example(mesh, labels, truth, pairs, labels[::-1].copy(), mirrored)
    data = Dataset("ball", mesh, (Sample("a", InMemory(whole)),), unit=0.1)
    parts = parts_of(data, "holes", 0.4)
    example = parts.samples[0].read()
    kept = n - 1 - example.labels
    np.testing.assert_array_equal(example.shape.vertices, mesh.vertices[kept])  # its unit was given
    np.testing.assert_array_equal(example.truth.faces, kept)
    np.testing.assert_array_equal(example.mirrored_truth.faces, n - 1 - kept)
    np.testing.assert_array_equal(example.mirrored, kept)
    assert len(example.pairs) == 2 * len(kept)
    np.testing.assert_array_equal(kept[example.pairs[:, 0]], example.pairs[:, 1])
    assert parts.unit == 0.1
    cloud = Dataset("c", mesh, (Sample("a", InMemory(replace(whole, shape=PointCloud(mesh.vertices)))),))
    with pytest.raises(InputError, match="no faces to cut"):
        parts_of(cloud).samples[0].read()


def test_word_with_an_ending() -> None:
    data = open_dataset("humans+holes")
    assert (len(data), data.name) == (160, "humans+holes")
    assert data.samples[0].read.kind == "holes"


def test_written_parts_of_humans_are_read_as_they_were_made(tmp_path: Path) -> None:
    humans = humans_dataset()
    facts, failures = make_parts("humans", tmp_path, count=4, seed=1)
    assert not failures
    assert facts["mirrored"] is True
    made = parts_of(humans, count=4, seed=1)
    read = open_dataset(tmp_path)
    assert [(s.number, s.split, s.subject) for s in read] == [(s.number, s.split, s.subject) for s in made]
    np.testing.assert_array_equal(read.reference.vertices, humans.reference.vertices)
    assert read.unit == pytest.approx(made.unit, rel=1e-12)
    for sample, original in zip(read, made, strict=True):
        example, wanted = sample.read(), original.read()
        np.testing.assert_array_equal(example.labels, wanted.labels)
        np.testing.assert_array_equal(example.shape.vertices, wanted.shape.vertices)
        np.testing.assert_array_equal(example.shape.faces, wanted.shape.faces)
        on_reference = np.einsum(
            "nk,nkd->nd", example.truth.weights, read.reference.vertices[read.reference.faces[example.truth.faces]]
        )
        np.testing.assert_array_equal(on_reference, humans.reference.vertices[wanted.labels])
        np.testing.assert_array_equal(example.mirrored, builtin_humans().mirror[wanted.labels])


def test_kinds_and_shapes_share_a_folder_but_parts_are_not_mixed(tmp_path: Path) -> None:
    save(builtin_human(1, 2), tmp_path / "one.ply")
    out = tmp_path / "out"
    facts, _ = make_parts(tmp_path / "one.ply", out, count=2)
    assert facts["mirrored"] is False
    part = open_dataset(out).select("2").samples[0].read()
    whole = load(tmp_path / "one.ply").vertices
    np.testing.assert_array_equal(part.shape.vertices, whole[part.labels])  # a shape of its own: no scaling
    assert part.mirrored is None
    make_parts(tmp_path / "one.ply", out, kind="holes")
    before = (out / "cuts" / "cuts_one_shape_1.off").read_bytes()
    make_parts(tmp_path / "one.ply", out, count=2)
    assert (out / "cuts" / "cuts_one_shape_1.off").read_bytes() == before
    with pytest.raises(InputError, match="already contains other cuts of 'one'"):
        make_parts(tmp_path / "one.ply", out, count=2, seed=1)
    save(builtin_human(0, 0), tmp_path / "one.ply")
    with pytest.raises(InputError, match=r"one\.off: contains another shape"):
        make_parts(tmp_path / "one.ply", out, kind="holes")
    with pytest.raises(InputError, match=r"name one kind and class.*cuts/one, holes/one"):
        open_dataset(out)
    assert len(open_dataset(out / "holes")) == 1
    assert len(open_dataset(out / "cuts" / "one")) == 2
